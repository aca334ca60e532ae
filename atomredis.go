// Package atomredis is a Redis server to embed in a program: the whole behaviour of Redis, without a second process.
//
//	db, err := atomredis.Open(atomredis.Options{Addr: "127.0.0.1:0"})
//	if err != nil {
//		return err
//	}
//	defer db.Close()
//	client := redis.NewClient(&redis.Options{Addr: db.Addr()})
//
// Without an address the server accepts no connections from outside. The program executes commands with DB.Do,
// DB.DoMany and DB.Tx, receives messages with DB.Subscribe, and connects clients of any library with DB.Dial.
//
// The types are those of package memory, which has their methods. This package adds what Options.Dir and Options.Raft
// need: storage on disk, and groups of servers. Programs that use neither can import package memory instead and link
// half as much.
package atomredis

import (
	_ "github.com/atomredis/atomredis/internal/durable" // storage and groups
	"github.com/atomredis/atomredis/memory"
)

// Open starts a server. It fails if the options contradict each other, if a directive is unknown or has a bad value, if
// it cannot listen on an address, or if Dir cannot be used: ErrInUse says that another server uses it. An Open that
// fails leaves nothing behind.
func Open(o Options) (*DB, error) { return memory.Open(o) }

type (
	// Options configure an embedded server. The zero value is a private server in memory without a listener.
	Options = memory.Options
	// Raft makes a server a member of a group that replicates its data: acknowledged changes are on the disks of a
	// majority, and another member takes over when the leader fails.
	Raft = memory.Raft
	// DB is a running server, and the database in which Do, DoMany and Tx execute commands.
	DB = memory.DB
	// Clock gives a server its time; see Options.Clock.
	Clock = memory.Clock
	// Timer is a pending call of Clock.AfterFunc.
	Timer = memory.Timer
	// Args are a command: its name and its arguments.
	Args = memory.Args
	// Tx is a transaction in preparation; see DB.Tx.
	Tx = memory.Tx
	// Reply is the answer to a command, with the types of RESP3. Its accessors convert it: an error reply is returned as
	// an Error, null as ErrNull, and a reply that cannot be converted as an error that says so.
	//
	//	func (r Reply) Int() (int64, error)             // an integer, also one that is a string
	//	func (r Reply) Float() (float64, error)         // a number, likewise
	//	func (r Reply) Bool() (bool, error)             // a boolean, or an integer that is not 0
	//	func (r Reply) Text() (string, error)           // a string, a number, a boolean
	//	func (r Reply) Bytes() ([]byte, error)          // likewise; the reply's own memory
	//	func (r Reply) Slice() ([]Reply, error)         // the elements of an array or a set
	//	func (r Reply) Texts() ([]string, error)        // the elements as strings
	//	func (r Reply) Map() (map[string]Reply, error)  // a map, or an array of keys and values
	//	func (r Reply) Scan(dst any) error              // into values of Go: scalars, slices, maps, structs with redis tags
	//	func (r Reply) IsNull() bool                    // no such key or element, or a timeout
	//	func (r Reply) Err() error                      // the Error, if the reply is one
	//	func (r Reply) Encoded() []byte                 // the reply in RESP3; its own memory
	//	func (r Reply) String() string                  // as redis-cli shows it
	//
	// go doc github.com/atomredis/atomredis/resp.Reply has more on each.
	Reply = memory.Reply
	// Error is an error reply: its code word and text, as Redis words them.
	//
	//	func (e Error) Code() string   // the first word: "WRONGTYPE", "NOPERM", "ERR"
	//	func (e Error) Error() string  // the whole text
	Error = memory.Error
	// Message is a published message; Pattern is the subscriber's pattern that matched Channel.
	Message = memory.Message
	// Change is one change of the data; see DB.Changes.
	Change = memory.Change
	// Changed is a command of a Change.
	Changed = memory.Changed
	// Command is a command of the program, for DB.Handle.
	Command = memory.Command
	// CommandFlags are facts about a Command.
	CommandFlags = memory.CommandFlags
	// Ctx gives the handler of a Command its arguments and lets it call commands.
	Ctx = memory.Ctx
	// Status is a string that the handler of a Command returns as a status reply.
	Status = memory.Status
)

// The flags of commands.
const (
	// ReadOnly commands cannot call commands that write. Read-only scripts may call them.
	ReadOnly = memory.ReadOnly
	// Fast says that the command takes constant or logarithmic time; COMMAND reports it to clients.
	Fast = memory.Fast
	// NoScript commands cannot be called by scripts.
	NoScript = memory.NoScript
	// NoMulti commands cannot be part of a transaction.
	NoMulti = memory.NoMulti
	// WholeKeyspace commands may use keys that they do not declare; all other clients wait for them.
	WholeKeyspace = memory.WholeKeyspace
)

// Errors of Open and of the methods of a DB; errors.Is finds them.
var (
	// ErrInUse is wrapped in the error of Open if another server, of this process or another one, uses the directory.
	ErrInUse = memory.ErrInUse
	// ErrNotEmpty is returned by DB.Restore if the server has keys.
	ErrNotEmpty = memory.ErrNotEmpty
	// ErrClosed says that the DB is closed. A command that was under way may have been executed or not.
	ErrClosed = memory.ErrClosed
	// ErrKilled says that CLIENT KILL ended the command, or that a subscriber was too slow for its messages.
	ErrKilled = memory.ErrKilled
	// ErrNotDurable says that the journal has failed: the command's changes may be lost.
	ErrNotDurable = memory.ErrNotDurable
	// ErrNeedsConnection says that the command changes the state of a connection, and Do has no connection: use Tx,
	// Subscribe, Database or Dial.
	ErrNeedsConnection = memory.ErrNeedsConnection
	// ErrTxFailed is returned by DB.Tx if watched keys changed before the commit in every attempt.
	ErrTxFailed = memory.ErrTxFailed
	// ErrSubscriptionEnded says that the iterator of Subscribe or PSubscribe was used before.
	ErrSubscriptionEnded = memory.ErrSubscriptionEnded
	// ErrInHandler is returned by the methods of a DB when a handler of a Command of the same server calls them. The
	// handler must use Ctx.Call instead.
	ErrInHandler = memory.ErrInHandler
	// ErrNull says that the reply is null: the key or element does not exist, or a blocking command timed out.
	ErrNull = memory.ErrNull
	// ErrNoReply says that there is no reply yet: the Reply is the zero value, or its transaction was not committed.
	ErrNoReply = memory.ErrNoReply
)
