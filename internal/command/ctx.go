package command

import (
	"log/slog"
	"math"
	"strconv"
	"strings"

	"github.com/atomredis/atomredis/engine"
	"github.com/atomredis/atomredis/engine/hashes"
	"github.com/atomredis/atomredis/engine/lists"
	"github.com/atomredis/atomredis/engine/sets"
	"github.com/atomredis/atomredis/engine/streams"
	"github.com/atomredis/atomredis/engine/zsets"
	"github.com/atomredis/atomredis/persist/rdb"
	"github.com/atomredis/atomredis/resp"
)

// Ctx gives a handler its arguments, a guard over the shards of its keys, and the writer for its reply. It is valid
// only during the call. So are the arguments, which are views into the client's input: a handler must copy what it
// keeps.
type Ctx struct {
	// Args are the command's name and arguments. For a sub-command Args[0] and Args[1] are its names.
	Args [][]byte
	// W takes the reply. In a script it is not the client's.
	W *resp.Writer
	// G is the guard over the shards of the command's keys.
	G *engine.Guard
	// DB is the selected database.
	DB int
	// Client is the client of the command; nil if there is none.
	Client Client
	// Host is the server.
	Host Host
	// Cmd is the command's entry in the table.
	Cmd *Command
	// NoBlock says that a blocking command must answer at once: it is in a transaction or in a script.
	NoBlock bool
	// Origin is the origin of the command; 0 without a client.
	Origin Origin

	// Micros is the time of TIME in µs since 1970, which stands still for a script; 0 elsewhere.
	Micros int64

	// Journalled says that the handler has called Journal.
	Journalled bool
	// Missing are shards that the handler has asked for with Holds, but the guard does not hold.
	Missing uint64
	// Wait is the blocked client's, in a call of Block.Try or Block.Cancel.
	Wait Wait
	// Offload is not nil in an offloaded call of the handler, and in the one that gets its result.
	Offload *Offload
}

// Rights are the rights of a user at a moment.
type Rights interface {
	// MayReadAll is Client.MayReadAll for a client that uses the database db.
	MayReadAll(cmd *Command, args [][]byte, db int) bool
}

// Client is the client of a command, as the commands of data types see it. Other commands declare their own
// interfaces.
type Client interface {
	// Block suspends the client; see Ctx.Block.
	Block(c *Ctx, b Block)
	// Await suspends the client until finish is called; see Ctx.AwaitOr.
	Await(c *Ctx, timeout int64, empty Reply, left func()) (finish func(Reply))
	// Offload offloads the command if it can, and reports whether it has. Then the call of the handler ends; see Ctx.Long.
	Offload(c *Ctx, way Way) bool
	// Rights returns the rights of the client's user, nil without limits. Another value says that they may have changed. Any
	// goroutine may call it.
	Rights() Rights
	// MayReadAll reports whether the client's user may execute a command although it reads keys that are not among its
	// arguments.
	MayReadAll(cmd *Command, args [][]byte) bool
	// MayRead reports whether the client's user may read a key of a database with a command that does not have it among its
	// arguments.
	MayRead(cmd *Command, key []byte, db int) bool
	// MayKeep reports whether the command that runs may keep the memory of an argument.
	MayKeep(arg []byte) bool
	// Kept reports that e has kept the argument, and that the memory old is unused now.
	Kept(g *engine.Guard, e *engine.Entry, old []byte)
	// State returns a service's state for the client.
	State(id ServiceID) any
	// After makes the session call fn when the command has ended and no guard is held. Only handlers of the client's
	// own commands may call it.
	After(fn func(now int64))
}

// Host is the server, as the commands of data types see it.
type Host interface {
	Keyspace() *engine.Keyspace
	// Service returns one of the server's services.
	Service(id ServiceID) Service
	// Follows reports whether the server follows a master; only the master changes keys then.
	Follows() bool
	// Loading reports whether some keys are not in memory yet.
	Loading() bool
	// Directive returns the value of a directive of the configuration.
	Directive(name string) string
	// Log returns the server's log.
	Log() *slog.Logger
	// Clustered reports whether the server is in cluster mode.
	Clustered() bool
	// Foreign returns a function that reports whether a key belongs to another server of the cluster. Clients must
	// not see such keys, which are here because their slots migrate. It returns nil if there are none.
	Foreign() func(key []byte) bool
	// ForeignLen returns the number of foreign keys in a database. The guard holds everything.
	ForeignLen(g *engine.Guard, db int) int
	// MayFlush returns the error for a command that is about to remove all keys of a database, "" if it may. The guard holds
	// everything.
	MayFlush() Error
	// Writable reports whether a read-only command may store a result under guard g.
	Writable(g *engine.Guard) bool
	// MaxBulk is the setting proto-max-bulk-len, in bytes.
	MaxBulk() int
	// These methods return the limits of the compact forms of small values.
	HashLimits() hashes.Limits
	ListLimit() lists.Limit
	SetLimits() sets.Limits
	ZSetLimits() zsets.Limits
	StreamLimits() streams.Limits
	// HyperLogLogSparse is the setting hll-sparse-max-bytes.
	HyperLogLogSparse() int
	// RDBLimits are the limits of serialized values from outside.
	RDBLimits() *rdb.Limits
	// PayloadChecked counts a payload that RESTORE has checked.
	PayloadChecked()
}

// Wait is the wait of a blocked client.
type Wait interface {
	// SetTimeout changes how long the client still waits: timeout ms from now on, 0 for ever.
	SetTimeout(now, timeout int64)
	// TryAgain sets when Try must be called although no key has changed, in ms since 1970.
	TryAgain(at int64)
}

// SetTimeout changes how long the client still waits if Block.Try, which calls it, returns false: timeout ms from
// now on; 0 is for ever.
func (c *Ctx) SetTimeout(timeout int64) { c.Wait.SetTimeout(c.Now(), timeout) }

// TryAgain sets when Block.Try, which calls it and returns false, must be called again although no key has changed.
func (c *Ctx) TryAgain(at int64) { c.Wait.TryAgain(at) }

// Journal adds args, a command in the client's database, to the journal in place of the command itself. A handler
// whose effect does not follow from its arguments and the data alone calls it, in order, with commands that repeat
// its effect at any later time: their deadlines are absolute. args are not kept.
func (c *Ctx) Journal(args ...[]byte) { c.JournalIn(c.DB, args...) }

// JournalIn is Journal for a command in another database.
func (c *Ctx) JournalIn(db int, args ...[]byte) {
	c.Journalled = true
	c.G.Log(db, args)
}

// JournalRecord is Journal for commands that are already encoded.
func (c *Ctx) JournalRecord(r *engine.Record) {
	c.Journalled = true
	c.G.LogRecord(c.DB, r)
}

// Names of commands that many commands are journalled as.
var (
	delWord       = []byte("DEL")
	pexpireatWord = []byte("PEXPIREAT")
	blessWord     = []byte("BLESS")
	setWord       = []byte("SET")
	noEvictWord   = []byte("NO-EVICT")
)

// JournalDelete is Journal for a command that removes a key.
func (c *Ctx) JournalDelete(key []byte) { c.Journal(delWord, key) }

// Rebless blesses an entry that has replaced one, if that was blessed, and journals it. The caller journals the value before.
func (c *Ctx) Rebless(e *engine.Entry, was bool) {
	if was {
		c.G.Bless(e, true)
		c.Journal(blessWord, setWord, []byte(e.Key()), noEvictWord)
	}
}

// JournalDeadline is Journal for a command that gives a key a deadline, in ms since 1970.
func (c *Ctx) JournalDeadline(key []byte, at int64) {
	var room [20]byte
	c.Journal(pexpireatWord, key, strconv.AppendInt(room[:0], at, 10))
}

// Holds reports whether the guard holds shards of keys that the handler of a FollowsKeys command has found in
// values. If not, the handler must return without having changed or written anything: it is called again under a
// guard that holds them too.
func (c *Ctx) Holds(shards uint64) bool {
	if c.G.Holds(shards) {
		return true
	}
	c.Missing |= shards
	return false
}

// Over reports whether a deadline that a command sets has passed, so that the key or field is removed at once. It
// returns false for commands that another server accepted earlier, because that server sends removals itself. Its
// clock may differ, so the guard's time is set back before the deadline: then the record can be repeated at its own
// time.
func (c *Ctx) Over(at int64) bool {
	switch {
	case at > c.Now() || c.Origin.In(FromImport):
		return false
	case c.Origin.In(FromMaster) || c.G.IgnoresDeadlines():
		if at > 0 {
			c.G.SetBack(at - 1)
		}
		return false
	}
	return true
}

// Err writes an error reply.
func (c *Ctx) Err(e Error) { c.W.Error(string(e)) }

// Now returns the time of the command in ms since 1970.
func (c *Ctx) Now() int64 { return c.G.Now() }

// Read returns the entry of a key that the command reads, of any type, or nil.
func (c *Ctx) Read(key []byte) *engine.Entry { return c.G.Read(c.DB, key) }

// WarmKeys must be called before each key by handlers that go through all their arguments; step is the distance
// between keys. It prefetches the memory of the next WarmBatch keys, unless the keys are so few that this was done
// before the command. A step of LongKeys is stepBatches such batches.
func (c *Ctx) WarmKeys(i, step int) {
	if len(c.Args) > MaxHints && (i-1)%(step*engine.WarmBatch) == 0 {
		if (i-1)%(step*engine.WarmBatch*stepBatches) == 0 {
			c.nextKeys()
		}
		c.G.WarmKeys(c.DB, c.Args[i:], step)
	}
}

// ReplyCount replies with the number of elements of a collection, 0 if it does not exist. It does not load the
// value.
func (c *Ctx) ReplyCount(key []byte, typ engine.Type) {
	e, ok := c.ReadAs(key, typ)
	switch {
	case !ok:
	case e == nil:
		c.W.Int(0)
	default:
		c.W.Int(int64(e.Count()))
	}
}

// ReadAs returns the entry of a key that the command reads, or nil if there is none. If it is of another type, an
// error is written and ok is false.
func (c *Ctx) ReadAs(key []byte, typ engine.Type) (e *engine.Entry, ok bool) {
	return c.typed(c.G.Read(c.DB, key), typ)
}

// ReadToWriteAs is ReadAs for a command that may change the entry afterwards.
func (c *Ctx) ReadToWriteAs(key []byte, typ engine.Type) (e *engine.Entry, ok bool) {
	return c.typed(c.G.ReadToWrite(c.DB, key), typ)
}

// WriteAs returns the entry of a key that the command changes, or nil if there is none. If it is of another type, an
// error is written and ok is false.
func (c *Ctx) WriteAs(key []byte, typ engine.Type) (e *engine.Entry, ok bool) {
	return c.typed(c.G.Write(c.DB, key), typ)
}

func (c *Ctx) typed(e *engine.Entry, typ engine.Type) (*engine.Entry, bool) {
	if e != nil && e.Type() != typ {
		c.Err(ErrWrongType)
		return nil, false
	}
	return e, true
}

// Int reads a 64-bit integer argument; if it is not one, it writes an error and ok is false.
func (c *Ctx) Int(arg []byte) (n int64, ok bool) {
	if n, ok = resp.ParseInt(arg); !ok {
		c.Err(ErrNotInteger)
	}
	return n, ok
}

// OppositeInt is Int for a number that will be negated; it refuses the smallest int64, which cannot be.
func (c *Ctx) OppositeInt(arg []byte) (n int64, ok bool) {
	if n, ok = c.Int(arg); ok && n == math.MinInt64 {
		c.Err(ErrOpposite)
		return 0, false
	}
	return n, ok
}

// IntIn reads an integer argument between min and max; otherwise it writes an error and ok is false.
func (c *Ctx) IntIn(arg []byte, min, max int64, otherwise Error) (n int64, ok bool) {
	n, ok = resp.ParseInt(arg)
	if ok = ok && n >= min && n <= max; !ok {
		c.Err(otherwise)
	}
	return n, ok
}

// AsInt converts a client's number to an int; on 32-bit systems it is clamped.
func AsInt(n int64) int { return int(min(max(n, math.MinInt), math.MaxInt)) }

// Float reads a double argument; if it is not one, it writes an error and ok is false.
func (c *Ctx) Float(arg []byte) (f float64, ok bool) {
	if f, ok = resp.ParseFloat(arg); !ok {
		c.Err(ErrNotFloat)
	}
	return f, ok
}

// Options returns a parser over the arguments from index from on.
func (c *Ctx) Options(from int) OptionArgs {
	if from > len(c.Args) {
		from = len(c.Args)
	}
	return OptionsIn(c.Args[from:])
}

// OptionsIn returns a parser over arguments.
func OptionsIn(args [][]byte) OptionArgs { return OptionArgs{rest: args} }

// OptionArgs walks over optional arguments:
//
//	for o := c.Options(3); o.Next(); {
//		switch {
//		case o.Is("nx"):
//		case o.Is("ex") && o.More():
//			seconds := o.Arg()
//		default:
//			c.Err(ErrSyntax)
//			return
//		}
//	}
type OptionArgs struct {
	word []byte
	rest [][]byte
}

// Next moves to the next argument and reports whether there is one.
func (o *OptionArgs) Next() bool {
	if len(o.rest) == 0 {
		return false
	}
	o.word, o.rest = o.rest[0], o.rest[1:]
	return true
}

// Is reports whether the present argument is word, which is in lower case; the argument's case does not matter.
func (o *OptionArgs) Is(word string) bool { return EqualFold(o.word, word) }

// Word returns the present argument.
func (o *OptionArgs) Word() []byte { return o.word }

// More reports whether at least one argument follows.
func (o *OptionArgs) More() bool { return len(o.rest) > 0 }

// Left returns how many arguments follow.
func (o *OptionArgs) Left() int { return len(o.rest) }

// Arg takes the next argument.
func (o *OptionArgs) Arg() []byte {
	o.word, o.rest = o.rest[0], o.rest[1:]
	return o.word
}

// Take takes the next n arguments.
func (o *OptionArgs) Take(n int) [][]byte {
	taken := o.rest[:n:n]
	o.rest = o.rest[n:]
	return taken
}

// Rest returns the remaining arguments without taking them.
func (o *OptionArgs) Rest() [][]byte { return o.rest }

// Skip skips the next n arguments.
func (o *OptionArgs) Skip(n int) { o.rest = o.rest[n:] }

// EqualFold reports whether b equals word, which is in lower case, ignoring ASCII case.
func EqualFold(b []byte, word string) bool {
	if len(b) != len(word) {
		return false
	}
	for i := range b {
		c := b[i]
		if c >= 'A' && c <= 'Z' {
			c |= 0x20
		}
		if c != word[i] {
			return false
		}
	}
	return true
}

// Block is a request to suspend the client until one of its keys has what the command needs.
type Block struct {
	// Keys are the keys that the client waits for.
	Keys [][]byte
	// Shards are further shards that Try uses, as Keyspace.ShardOf returns them.
	Shards uint64
	// OnRemoval says that Try must also be called when a key was removed.
	OnRemoval bool
	// Timeout in ms; 0 waits for ever.
	Timeout int64
	// Again is the time when Try must be called for all keys although none has changed, in ms since 1970; 0 for
	// never. See TryAgain.
	Again int64
	// Try is called when key has changed, with a Ctx of the blocked client that has its own copy of the arguments.
	// It writes the reply and returns true, or writes nothing and returns false; then it has changed nothing, or
	// Cancel can undo its change.
	Try func(c *Ctx, key []byte) bool
	// Cancel, if not nil, undoes partial work of Try or of the handler. It is called before Empty and when the
	// client disconnects, under a guard over Keys and Shards. It must write no reply.
	Cancel func(c *Ctx)
	// Empty writes the reply after the timeout.
	Empty func(w *resp.Writer)
}

// Block suspends the client; the handler must have written no reply, and must return. Where a command must not
// block, it replies as after the timeout.
func (c *Ctx) Block(b Block) {
	if c.NoBlock {
		b.Empty(c.W)
		return
	}
	c.Client.Block(c, b)
}

// Reply writes a reply.
type Reply func(w *resp.Writer)

// Await suspends the client until finish is called with a Reply, or until timeout ms have passed (0 is never); then
// empty writes the reply. Any goroutine may call finish, with no guard held. The handler must have written no reply,
// and must return. It must not call Await where a command must not block.
func (c *Ctx) Await(timeout int64, empty Reply) (finish func(Reply)) {
	return c.Client.Await(c, timeout, empty, nil)
}

// AwaitOr is Await, and calls left when the client waits no longer, for whatever reason.
func (c *Ctx) AwaitOr(timeout int64, empty Reply, left func()) (finish func(Reply)) {
	return c.Client.Await(c, timeout, empty, left)
}

// Timeout reads the timeout of a blocking command, in seconds with a fraction, and returns it in ms, rounded up; if
// it is invalid, it writes an error and ok is false.
func (c *Ctx) Timeout(arg []byte) (ms int64, ok bool) {
	f, ok := resp.ParseFloat(arg)
	if !ok {
		// Redis reads it as a long double, which can hold more than a double.
		if x, isNumber := ParseLongDouble(arg); isNumber {
			f, _ = x.Float64()
			ok = true
		}
	}
	f = math.Ceil(f * 1000)
	switch {
	case !ok:
		c.Err(ErrTimeoutNotFloat)
		return 0, false
	case f >= maxTimeout:
		c.Err(ErrTimeoutRange)
		return 0, false
	case f < 0:
		c.Err(ErrTimeoutNegative)
		return 0, false
	}
	return c.InTime(int64(f))
}

// maxTimeout keeps deadlines within 64 bits.
const maxTimeout = float64(1<<63 - 1)

// IntTimeout reads a timeout in ms; if it is invalid, it writes an error and ok is false.
func (c *Ctx) IntTimeout(arg []byte) (ms int64, ok bool) {
	if ms, ok = c.IntIn(arg, math.MinInt64, math.MaxInt64, ErrTimeoutNotInteger); !ok {
		return 0, false
	}
	return c.InTime(ms)
}

// InTime returns a timeout in ms if its end is a valid time; otherwise it writes an error and ok is false.
func (c *Ctx) InTime(ms int64) (_ int64, ok bool) {
	if err := timeoutError(ms, c.Now()); err != "" {
		c.Err(err)
		return 0, false
	}
	return ms, true
}

// timeoutError returns the error for a timeout that begins now; "" if it is valid.
func timeoutError(ms, now int64) Error {
	switch {
	case ms < 0:
		return ErrTimeoutNegative
	case ms > math.MaxInt64-now:
		return ErrTimeoutRange
	}
	return ""
}

// Lower returns an argument as a string in lower case.
func Lower(b []byte) string { return strings.ToLower(string(b)) }

// Look is Read, but touch, not the client, decides whether the key's time of last access changes.
func (c *Ctx) Look(key []byte, touch bool) *engine.Entry {
	was := c.G.NoTouch
	c.G.NoTouch = !touch
	e := c.Read(key)
	c.G.NoTouch = was
	return e
}

// ClusterMode reports whether the command must obey the rules of a cluster. Accepted commands were checked before.
func (c *Ctx) ClusterMode() bool { return c.Host.Clustered() && !c.Origin.In(Accepted) }

// Databases returns how many databases the command can use: all, except in cluster mode.
func (c *Ctx) Databases() int {
	n := c.Host.Keyspace().Databases()
	if !c.ClusterMode() {
		return n
	}
	reachable, err := strconv.Atoi(c.Host.Directive("cluster-databases"))
	if err != nil {
		return 1
	}
	return min(reachable, n)
}
