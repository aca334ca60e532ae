// Package spiderq has the commands on queues of the spiderq protocol: a table of keys and values, and a queue in which
// its keys are ordered by priority. A key is lent for some time, and repaid with a new value and a new place in the
// queue; if it is not repaid in time it returns to the front. docs/spiderq.md explains it to users.
//
// All data is in ordinary keys (package keys), and every change is journalled as ordinary commands. Not stored are
// the counters of SPIDERQ.STATS, and the schedule of loans (package due), which follows from the keys.
package spiderq

import (
	"bytes"
	"math"
	"slices"
	"strconv"

	"github.com/atomredis/atomredis/engine"
	"github.com/atomredis/atomredis/internal/command"
	"github.com/atomredis/atomredis/internal/version"
	"github.com/atomredis/atomredis/resp"
)

func init() { command.Register(commands) }

const (
	writes = command.Write | command.TouchesArbitraryKeys
	adds   = writes | command.DenyOOM | command.Fast
	reads  = command.ReadOnly | command.Fast | command.TouchesArbitraryKeys
)

var commands = []*command.Command{
	{Name: "spiderq.add", Group: "spiderq", Since: version.Number, Arity: -4, Flags: adds, DerivedKeys: keysOf,
		ACL:     command.CatHash | command.CatSortedSet,
		Summary: "Adds a key with its value to a queue, unless it has it", Syntax: "queue key value [HEAD | TAIL]",
		Complexity: "O(log(N)), where N is the number of keys in the queue", Do: add},
	{Name: "spiderq.count", Group: "spiderq", Since: version.Number, Arity: 2, Flags: reads, DerivedKeys: keysOf,
		ACL:     command.CatHash | command.CatSortedSet,
		Summary: "Counts the keys of a queue that can be lent", Syntax: "queue", Complexity: "O(1)", Do: count},
	{Name: "spiderq.flush", Group: "spiderq", Since: version.Number, Arity: 2,
		Flags: command.ReadOnly | command.Blocking | command.TouchesArbitraryKeys, DerivedKeys: keysOf,
		ACL:     command.CatHash | command.CatSortedSet,
		Summary: "Waits until all changes are durable", Syntax: "queue", Complexity: "O(1)", Do: flush},
	{Name: "spiderq.heartbeat", Group: "spiderq", Since: version.Number, Arity: 5, Flags: writes | command.Fast,
		ACL: command.CatHash | command.CatSortedSet, DerivedKeys: keysOf,
		Summary: "Sets how long a key stays lent from now on", Syntax: "queue lend-key key milliseconds",
		Complexity: "O(log(N)), where N is the number of keys that are lent", Do: heartbeat},
	{Name: "spiderq.info", Group: "spiderq", Since: version.Number, Arity: 2, Flags: reads, DerivedKeys: keysOf,
		ACL:     command.CatHash | command.CatSortedSet,
		Summary: "Describes a queue", Syntax: "queue", Complexity: "O(1)", Do: info},
	{Name: "spiderq.lend", Group: "spiderq", Since: version.Number, Arity: -3, Flags: writes | command.Blocking,
		ACL: command.CatHash | command.CatSortedSet, DerivedKeys: keysOf,
		Summary:    "Lends the first key of a queue for some time; waits while there is none",
		Syntax:     "queue milliseconds [BLOCK | POLL]",
		Complexity: "O(log(N)), where N is the number of keys in the queue", Do: lend},
	{Name: "spiderq.list", Group: "spiderq", Since: version.Number, Arity: 1,
		Flags:   command.ReadOnly | command.TouchesArbitraryKeys | command.WholeKeyspace | command.AllKeys,
		ACL:     command.CatHash | command.CatSortedSet,
		Summary: "Lists the names of the queues", Complexity: "O(N), where N is the number of keys in the database", Do: list},
	{Name: "spiderq.lookup", Group: "spiderq", Since: version.Number, Arity: 3, Flags: reads, DerivedKeys: keysOf,
		ACL:     command.CatHash | command.CatSortedSet,
		Summary: "Returns the value of a key", Syntax: "queue key", Complexity: "O(1)", Do: lookup},
	{Name: "spiderq.ping", Group: "spiderq", Since: version.Number, Arity: 2, Flags: reads, DerivedKeys: keysOf,
		ACL:     command.CatHash | command.CatSortedSet,
		Summary: "Checks that the server answers, and counts it", Syntax: "queue", Complexity: "O(1)", Do: ping},
	{Name: "spiderq.remove", Group: "spiderq", Since: version.Number, Arity: 3, Flags: writes | command.Fast,
		ACL: command.CatHash | command.CatSortedSet, DerivedKeys: keysOf,
		Summary: "Removes a key with its value", Syntax: "queue key", Complexity: "O(1)", Do: remove},
	{Name: "spiderq.repay", Group: "spiderq", Since: version.Number, Arity: 6, Flags: adds, DerivedKeys: keysOf,
		ACL:        command.CatHash | command.CatSortedSet,
		Summary:    "Returns a key that was lent, with a new value, to a place in the queue",
		Syntax:     "queue lend-key key value <PENALTY | REWARD | FRONT | DROP>",
		Complexity: "O(log(N)), where N is the number of keys in the queue", Do: repay},
	{Name: "spiderq.stats", Group: "spiderq", Since: version.Number, Arity: 2, Flags: reads, DerivedKeys: keysOf,
		ACL:     command.CatHash | command.CatSortedSet,
		Summary: "Counts the commands on a queue since the server started", Syntax: "queue", Complexity: "O(1)", Do: stats},
	{Name: "spiderq.terminate", Group: "spiderq", Since: version.Number, Arity: 2,
		Flags: command.ReadOnly | command.Admin | command.TouchesArbitraryKeys, DerivedKeys: keysOf,
		Summary: "Closes the server's door for a queue", Syntax: "queue", Complexity: "O(1)", Do: terminate},
	{Name: "spiderq.update", Group: "spiderq", Since: version.Number, Arity: 4, Flags: adds, DerivedKeys: keysOf,
		ACL:     command.CatHash | command.CatSortedSet,
		Summary: "Changes the value of a key that the queue has", Syntax: "queue key value", Complexity: "O(1)", Do: update},
}

// The errors of arguments.
const (
	errTimeout command.Error = "ERR the time is not a number of milliseconds"
	errLendKey command.Error = "ERR the lend key is not a number"
)

// opened returns the queue that the first argument names, counted as used by a command. If one of its keys is of a
// wrong type, it writes an error and ok is false.
func opened(c *command.Ctx, n counter) (q *queue, ok bool) {
	q = queueOf(c, c.Args[1])
	if !q.check() {
		return nil, false
	}
	q.service.count(q.id(), n)
	return q, true
}

func add(c *command.Ctx) {
	head := false
	if o := c.Options(4); o.Next() {
		if head = o.Is("head"); !head && !o.Is("tail") || o.More() {
			c.Err(command.ErrSyntax)
			return
		}
	}
	q, ok := opened(c, countAdd)
	if !ok {
		return
	}
	if !q.add(c.Args[2], c.Args[3], head) {
		c.W.Simple("KEPT")
		return
	}
	c.W.Simple("ADDED")
}

func update(c *command.Ctx) {
	q, ok := opened(c, countUpdate)
	if !ok {
		return
	}
	if _, ok := q.value(c.Args[2]); !ok {
		c.W.Simple("NOTFOUND")
		return
	}
	q.setValue(c.Args[2], c.Args[3])
	c.W.Simple("UPDATED")
}

func lookup(c *command.Ctx) {
	q, ok := opened(c, countLookup)
	if !ok {
		return
	}
	v, ok := q.value(c.Args[2])
	if !ok {
		c.W.Null()
		return
	}
	c.W.Bulk(v)
}

func remove(c *command.Ctx) {
	q, ok := opened(c, countRemove)
	if !ok {
		return
	}
	if !q.removeValue(c.Args[2]) {
		c.W.Simple("NOTREMOVED")
		return
	}
	c.W.Simple("REMOVED")
}

// Host is what SPIDERQ.FLUSH and SPIDERQ.TERMINATE need of the server.
type Host interface {
	command.Host
	// CloseDoor closes, in the background, the door of that name if it is open and a directive of it has the value.
	CloseDoor(name, directive, value string)
	// HasJournal reports whether changes are written to a journal.
	HasJournal() bool
	// Durable reports whether all changes so far are durable.
	Durable() bool
	// AwaitDurable calls finish, in any goroutine, when all changes so far are durable.
	AwaitDurable(finish func())
}

// flush replies at once if the server has no journal, or the command must not block.
func flush(c *command.Ctx) {
	if q := queueOf(c, c.Args[1]); !q.check() {
		return
	}
	flushed := func(w *resp.Writer) { w.Simple("FLUSHED") }
	host := c.Host.(Host)
	if !host.HasJournal() || c.NoBlock || host.Durable() {
		flushed(c.W)
		return
	}
	finish := c.Await(0, flushed)
	host.AwaitDurable(func() { finish(flushed) })
}

// terminate closes the server's door if it serves the queue. The queue stays. Doors serve queues of database 0.
func terminate(c *command.Ctx) {
	if c.DB == 0 {
		c.Host.(Host).CloseDoor("spiderq", "spiderq-queue", string(c.Args[1]))
	}
	c.W.Simple("TERMINATED")
}

func ping(c *command.Ctx) {
	if _, ok := opened(c, countPing); ok {
		c.W.Simple("PONG")
	}
}

func count(c *command.Ctx) {
	if q, ok := opened(c, countCount); ok {
		c.W.Int(int64(q.len()))
	}
}

// milliseconds reads a time. 2^63 and more count as 0: the time ends at once.
func milliseconds(c *command.Ctx, arg []byte) (ms int64, ok bool) {
	n, err := strconv.ParseUint(string(arg), 10, 64)
	if err != nil {
		c.Err(errTimeout)
		return 0, false
	}
	if n > math.MaxInt64 {
		return 0, true
	}
	return int64(n), true
}

// lend takes the first key of the queue. A blocked command is counted when it is served.
func lend(c *command.Ctx) {
	ms, ok := milliseconds(c, c.Args[2])
	if !ok {
		return
	}
	poll := false
	if o := c.Options(3); o.Next() {
		if poll = o.Is("poll"); !poll && !o.Is("block") || o.More() {
			c.Err(command.ErrSyntax)
			return
		}
	}
	q := queueOf(c, c.Args[1])
	if !q.check() {
		return
	}
	if q.lend(ms) {
		return
	}
	if poll || c.NoBlock {
		q.service.count(q.id(), countLend)
		c.W.NullArray()
		return
	}
	name := bytes.Clone(c.Args[1])
	c.Block(command.Block{
		Keys: [][]byte{q.names[queueKey]}, Shards: q.shards(), Empty: (*resp.Writer).NullArray,
		Try: func(c *command.Ctx, _ []byte) bool {
			q := queueOf(c, name)
			return q.typesFit() && q.lend(ms)
		},
	})
}

func repay(c *command.Ctx) {
	lendKey, ok := lendKeyArg(c)
	if !ok {
		return
	}
	how := slices.IndexFunc(outcomes[:], func(word string) bool { return command.EqualFold(c.Args[5], word) })
	if how < 0 {
		c.Err(command.ErrSyntax)
		return
	}
	q, ok := opened(c, countRepay)
	if !ok {
		return
	}
	if !q.has(lendKey, c.Args[3]) {
		c.W.Simple("NOTFOUND")
		return
	}
	q.setValue(c.Args[3], c.Args[4])
	q.giveBack(c.Args[3], outcome(how))
	c.W.Simple("REPAID")
}

// lendKeyArg reads the lend key; if it is no number, it writes an error and ok is false.
func lendKeyArg(c *command.Ctx) (lendKey int64, ok bool) {
	n, err := strconv.ParseUint(string(c.Args[2]), 10, 64)
	if err != nil {
		c.Err(errLendKey)
		return 0, false
	}
	return int64(n), true // 2^63 and more match no loan
}

func heartbeat(c *command.Ctx) {
	lendKey, ok := lendKeyArg(c)
	if !ok {
		return
	}
	ms, ok := milliseconds(c, c.Args[4])
	if !ok {
		return
	}
	q, ok := opened(c, countHeartbeat)
	if !ok {
		return
	}
	if !q.has(lendKey, c.Args[3]) {
		c.W.Simple("SKIPPED")
		return
	}
	q.setDeadline(c.Args[3], ms)
	c.W.Simple("HEARTBEATEN")
}

func stats(c *command.Ctx) {
	q, ok := opened(c, countStats)
	if !ok {
		return
	}
	counts := q.service.counts(q.id())
	c.W.Map(len(counts))
	for i, n := range counts {
		c.W.BulkString(counterNames[i])
		c.W.Int(n)
	}
}

func info(c *command.Ctx) {
	q := queueOf(c, c.Args[1])
	if !q.check() {
		return
	}
	fields := []struct {
		name string
		n    int64
	}{
		{"keys", int64(q.values())},
		{"queued", int64(q.len())},
		{"lent", int64(q.lentCount())},
		{"serial", q.serial()},
	}
	c.W.Map(len(fields))
	for _, f := range fields {
		c.W.BulkString(f.name)
		c.W.Int(f.n)
	}
}

func list(c *command.Ctx) {
	var names []string
	c.G.Each(c.DB, func(e *engine.Entry) bool {
		if name, ok := nameOf(e); ok {
			names = append(names, name)
		}
		return true
	})
	slices.Sort(names)
	c.W.Array(len(names))
	for _, name := range names {
		c.W.BulkString(name)
	}
}
