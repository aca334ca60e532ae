package memory

import (
	"errors"
	"fmt"
	"time"

	"github.com/atomredis/atomredis/internal/command"
	"github.com/atomredis/atomredis/internal/session"
	"github.com/atomredis/atomredis/internal/values"
	"github.com/atomredis/atomredis/resp"
)

// Command is a command of the program, for DB.Handle.
type Command struct {
	// Name has up to 32 letters, digits and characters of ".:_-". Case does not matter.
	Name string
	// Arity is the number of arguments with the name, as in COMMAND INFO: exactly so many, or at least -Arity if it is
	// negative. 0 stands for -1, any number.
	Arity int
	// Flags say what the command does. Without any it may write.
	Flags CommandFlags
	// FirstKey is the index of the first argument that is a key, LastKey that of the last one (negative counts from the
	// end, -1 being the last argument; 0 means that there is one key), and KeyStep the distance between two of them (0
	// means 1), as in COMMAND INFO. A command that declares its keys runs beside those that use other keys, and may use
	// no others. With a FirstKey of 0 it may use all, and everybody waits for it.
	FirstKey, LastKey, KeyStep int
	// Summary, Complexity and Syntax are what COMMAND DOCS tells. Syntax is the grammar of the arguments as Redis's
	// documentation writes it, for example "key [key ...] [LIMIT count]".
	Summary, Complexity, Syntax string
	// Do carries the command out: all of it is one atomic step, in clients' eyes and after a crash. What it returns is
	// the reply:
	//
	//	nil                                       null
	//	string, []byte                            string
	//	Status                                    status reply, such as OK
	//	integers, float32, float64                number
	//	bool                                      boolean
	//	time.Time                                 string, RFC 3339 with nanoseconds
	//	slices and arrays                         array; of bytes, string
	//	maps                                      map, in order of its keys
	//	structs with tags `redis:"name"`          map of the fields that have one, but for empty ones with "omitempty"
	//	pointers                                  what they point to; null if they are nil
	//	encoding.BinaryMarshaler, TextMarshaler   string
	//	Reply                                     the reply of Ctx.Call
	//	error                                     error: an Error as it is, others with "ERR " before their text
	//
	// and types of these kinds, where clients of RESP2 get a map as an array, a boolean as 1 or 0, and a float, or an
	// integer of more than 63 bits, as a string. An error as second result takes the place of the reply; what was done
	// before stays done. So it is if Do panics, which is logged and answered with "ERR internal error".
	//
	// Do holds up others, in many cases all clients, so it must not wait for anything, and it must return (t.FailNow
	// does not). It must not use the DB, whose locks it holds: see ErrInHandler. Other servers of the program may be
	// used.
	Do func(c *Ctx) (any, error)
}

// CommandFlags are facts about a Command.
type CommandFlags uint

// The flags of commands.
const (
	// ReadOnly commands cannot call commands that write. Read-only scripts may call them.
	ReadOnly CommandFlags = 1 << iota
	// Fast says that the command takes constant or logarithmic time; COMMAND tells it to clients.
	Fast
	// NoScript commands cannot be called by scripts.
	NoScript
	// NoMulti commands cannot be part of a transaction.
	NoMulti
	// WholeKeyspace commands may use other keys than those that they declare, and everybody waits for them.
	WholeKeyspace
)

// ErrInHandler is found by errors.Is in what Do and the other methods of a DB return to a handler of a Command of the
// same server, which must use Ctx.Call instead. Nobody can tell if a handler waits for another goroutine, or for a
// client, that uses the DB: that waits for ever.
var ErrInHandler = session.ErrInHandler

// Status is a status reply in what the handler of a Command returns.
type Status string

// Handle adds a command, which all clients, scripts and transactions can use from now on, until the DB is closed; it
// is not stored. It fails if there is a command of that name, or if cmd contradicts itself. A server has up to 256
// such commands.
//
// What the command calls is journalled, not the command: data that it has changed is there after a restart, with or
// without Handle.
func (db *DB) Handle(cmd Command) error {
	if cmd.Do == nil {
		return fmt.Errorf("atomredis: command %q has no Do", cmd.Name)
	}
	if cmd.Arity == 0 {
		cmd.Arity = -1
	}
	keys, err := cmd.keys()
	if err != nil {
		return fmt.Errorf("atomredis: command %q: %w", cmd.Name, err)
	}
	flags := command.Write
	if cmd.Flags&ReadOnly != 0 {
		flags = command.ReadOnly
	}
	for f, s := range map[CommandFlags]command.Flag{Fast: command.Fast, NoScript: command.NoScript,
		NoMulti:       command.NoMulti,
		WholeKeyspace: command.WholeKeyspace} {
		if cmd.Flags&f != 0 {
			flags |= s
		}
	}
	return wrap(db.srv.Sessions().Handle(command.Command{Name: cmd.Name, Arity: cmd.Arity, Flags: flags, Keys: keys,
		Summary:    cmd.Summary,
		Complexity: cmd.Complexity, Syntax: cmd.Syntax}, func(h *session.Caller) { cmd.run(h) }))
}

// keys returns where the keys are, in the form of the command table.
func (cmd *Command) keys() ([]command.KeySpec, error) {
	least := max(cmd.Arity, -cmd.Arity)
	switch {
	case cmd.FirstKey == 0 && (cmd.LastKey != 0 || cmd.KeyStep != 0):
		return nil, errors.New("LastKey and KeyStep need a FirstKey")
	case cmd.FirstKey == 0:
		return nil, nil
	case cmd.FirstKey < 0 || cmd.KeyStep < 0:
		return nil, errors.New("FirstKey and KeyStep cannot be negative")
	case cmd.FirstKey >= least || cmd.LastKey >= least:
		return nil, fmt.Errorf("FirstKey and LastKey must be less than the %d arguments that Arity demands", least)
	case cmd.LastKey > 0 && cmd.LastKey < cmd.FirstKey:
		return nil, errors.New("LastKey precedes FirstKey")
	}
	spec := command.KeySpec{Index: cmd.FirstKey, Step: max(cmd.KeyStep, 1), Flags: []string{"RW", "access", "update"}}
	if cmd.Flags&ReadOnly != 0 {
		spec.Flags = []string{"RO", "access"}
	}
	switch {
	case cmd.LastKey < 0:
		spec.LastKey = cmd.LastKey
	case cmd.LastKey > 0:
		spec.LastKey = cmd.LastKey - cmd.FirstKey
	}
	return []command.KeySpec{spec}, nil
}

// run executes the command once.
func (cmd *Command) run(h *session.Caller) {
	w := h.Writer()
	result, err := cmd.Do(&Ctx{Args: h.Args(), caller: h})
	mark := len(w.Buf)
	if err == nil {
		err = writeResult(w, result, 0)
	}
	if err != nil {
		w.Buf = w.Buf[:mark]
		w.Error(errorText(err))
	}
}

// Ctx is what the handler of a Command works with. It is valid only until the handler returns, and for its goroutine.
type Ctx struct {
	// Args are the name of the command and its arguments, which the handler must neither change nor keep.
	Args [][]byte

	caller *session.Caller
}

// Call executes a command as a part of this one, in the database of the client; arguments are as for DB.Do. The error
// is an Error if the reply is one. Blocking commands answer at once, as in a transaction. Other commands that scripts
// cannot call, and keys that this command does not declare, are refused.
func (c *Ctx) Call(args ...any) (Reply, error) {
	e := values.NewEncoder()
	defer e.Release()
	if err := e.Add(args); err != nil {
		return Reply{}, wrap(err)
	}
	r := resp.NewReply(c.caller.Call(e.Commands()[0]))
	return r, r.Err()
}

// Database returns the number of the database that the client has selected.
func (c *Ctx) Database() int { return c.caller.DB() }

// Now returns the time of the command, in whole milliseconds, which is that of all commands that it calls.
func (c *Ctx) Now() time.Time { return time.UnixMilli(c.caller.Now()) }
