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
	// Arity is the number of arguments including the name, as in COMMAND INFO: exactly Arity, or at least -Arity if it
	// is negative. 0 stands for -1, any number.
	Arity int
	// Flags say what the command does. Without any it may write.
	Flags CommandFlags
	// The indexes of the keys among the arguments, as in COMMAND INFO. FirstKey is the index of the first key. LastKey
	// is that of the last one: negative numbers count from the end (-1 is the last argument), 0 means that there is one
	// key. KeyStep is the distance between two keys; 0 means 1. A command that declares its keys may use no others, and
	// runs beside commands that use other keys. With a FirstKey of 0 it may use all keys, and all other clients wait
	// for it.
	FirstKey, LastKey, KeyStep int
	// Summary, Complexity and Syntax appear in COMMAND DOCS. Syntax is the grammar of the arguments in the notation of
	// Redis's documentation, for example "key [key ...] [LIMIT count]".
	Summary, Complexity, Syntax string
	// Do executes the command as one atomic step, both for other clients and after a crash. Its result becomes the
	// reply:
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
	// and types of these kinds. Clients of RESP2 get a map as an array, a boolean as 1 or 0, and a float, or an integer
	// of more than 63 bits, as a string. An error as second result replaces the reply; earlier changes stay. If Do
	// panics, earlier changes stay too, the panic is logged, and the client gets "ERR internal error".
	//
	// Do delays other clients, often all of them. It must not wait for anything, and it must return (t.FailNow does
	// not). It must not use the DB, whose locks it holds: see ErrInHandler. It may use other servers of the program.
	Do func(c *Ctx) (any, error)
}

// CommandFlags are facts about a Command.
type CommandFlags uint

// The flags of commands.
const (
	// ReadOnly commands cannot call commands that write. Read-only scripts may call them.
	ReadOnly CommandFlags = 1 << iota
	// Fast says that the command takes constant or logarithmic time; COMMAND reports it to clients.
	Fast
	// NoScript commands cannot be called by scripts.
	NoScript
	// NoMulti commands cannot be part of a transaction.
	NoMulti
	// WholeKeyspace commands may use keys that they do not declare; all other clients wait for them.
	WholeKeyspace
)

// ErrInHandler is wrapped in the errors of Do and the other methods of a DB when a handler of a Command of the same
// server calls them. The handler must use Ctx.Call instead. A handler that waits for another goroutine or a client that
// uses the DB is not detected, and waits for ever.
var ErrInHandler = session.ErrInHandler

// Status is a string that the handler of a Command returns as a status reply.
type Status string

// Handle adds a command that all clients, scripts and transactions can use until the DB is closed; it is not stored. It
// fails if a command of that name exists, or if cmd contradicts itself. A server has up to 256 such commands.
//
// The journal has the commands that the handler calls, not the command itself, so its changes survive a restart without
// Handle.
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

// Ctx gives the handler of a Command its arguments and lets it call commands. It is valid until the handler returns,
// and only in the handler's goroutine.
type Ctx struct {
	// Args are the name of the command and its arguments, which the handler must neither change nor keep.
	Args [][]byte

	caller *session.Caller
}

// Call executes a command as a part of this one, in the client's database; arguments are as for DB.Do. The error is an
// Error if the reply is one. Blocking commands answer at once, as in a transaction. Call refuses other commands that
// scripts cannot call, and keys that this command does not declare.
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

// Now returns the time of the command, in whole milliseconds. All commands that it calls have the same time.
func (c *Ctx) Now() time.Time { return time.UnixMilli(c.caller.Now()) }
