package server

import (
	"fmt"
	"runtime/debug"
	"runtime/metrics"
	"strings"
	"unsafe"

	"github.com/atomredis/atomredis/engine"
	"github.com/atomredis/atomredis/internal/command"
	"github.com/atomredis/atomredis/internal/stats"
)

func init() { command.Register([]*command.Command{memoryCommand}) }

// memoryCommand shows the use of memory.
var memoryCommand = &command.Command{Name: "memory", Group: "server", Since: "4.0.0", Arity: -2,
	Summary: "Groups the commands about memory", Complexity: "That of the sub-command",
	Subs: []*command.Command{
		{Name: "memory|doctor", Group: "server", Since: "4.0.0", Arity: 2, Flags: command.WholeKeyspace,
			Summary: "Reports on memory use, for people", Complexity: "O(1)", Do: memoryDoctor},
		{Name: "memory|help", Group: "server", Since: "4.0.0", Arity: 2, Flags: command.Loading | command.Stale,
			Summary: "Lists the subcommands", Complexity: "O(1)", Do: memoryHelp},
		{Name: "memory|malloc-stats", Group: "server", Since: "4.0.0", Arity: 2,
			Summary: "Returns the allocator's statistics", Complexity: "O(1)", Do: memoryMallocStats},
		{Name: "memory|purge", Group: "server", Since: "4.0.0", Arity: 2,
			Summary:    "Returns unused memory to the system",
			Complexity: "Depends on the memory in use", Do: memoryPurge},
		{Name: "memory|stats", Group: "server", Since: "4.0.0", Arity: 2, Flags: command.WholeKeyspace,
			Summary: "Returns how memory is used", Complexity: "O(1)", Do: memoryStats},
		{Name: "memory|usage", Group: "server", Since: "4.0.0", Arity: -3, Flags: command.ReadOnly,
			Keys:    command.Keys("i2+r0/1/0[RO]"),
			Summary: "Estimates the memory of a key and its value", Syntax: "key [SAMPLES count]",
			Complexity: "O(1); O(N) for a stream, where N is the number of its groups", Do: memoryUsage},
	}}

// memoryUsage ignores SAMPLES: collections know their size.
func memoryUsage(c *command.Ctx) {
	for o := c.Options(3); o.Next(); {
		if !o.Is("samples") || !o.More() {
			c.Err(command.ErrSyntax)
			return
		}
		n, ok := c.Int(o.Arg())
		if !ok {
			return
		}
		if n < 0 {
			c.Err(command.ErrSyntax)
			return
		}
	}
	e := c.G.Peek(c.DB, c.Args[2])
	if e == nil {
		c.W.Null()
		return
	}
	c.W.Int(int64(e.MemoryUsage()))
}

func memoryPurge(c *command.Ctx) {
	debug.FreeOSMemory()
	c.W.OK()
}

// Estimates of a key's memory beside its value: the entry, its place in the table and its slot in the index; and of
// a key with a deadline.
const (
	keyOverhead      = int64(unsafe.Sizeof(engine.Entry{})) + 2*8
	deadlineOverhead = 2 * 8
)

// Memory is the use of memory in bytes.
type Memory struct {
	stats.Memory
	// Used is the memory of data and clients, which maxmemory limits; Peak is its maximum so far, PeakAt its time in ms since 1970.
	Used, Peak, PeakAt int64
	// Clients is the memory of clients, including unread input and unsent output; Followers is that of followers, of
	// which Streamed waits to be sent.
	Clients, Followers, Streamed int64
	// JournalBuffer is the memory of records that wait to be written to the journal.
	JournalBuffer int64
	// Scripts and Functions are the memory of the sources for EVALSHA and FCALL.
	Scripts, Functions int64
}

// MemoryReport is Memory with derived figures: Overhead is the used memory for clients and for finding keys, and
// Dataset the rest.
type MemoryReport struct {
	Memory
	Overhead, Dataset int64

	resident  int64
	keys      int64
	databases []databaseMemory
}

// databaseMemory is the memory of a database's table of keys.
type databaseMemory struct {
	db              int
	table, expiring int64
}

// ReportMemory collects the figures from the server and the keyspace.
func ReportMemory(c *command.Ctx) MemoryReport {
	r := MemoryReport{Memory: hostOf(c).Memory(c.Now())}
	r.resident = r.Mapped
	if rss, ok := stats.ResidentBytes(); ok {
		r.resident = rss
	}
	r.Overhead = r.Clients
	for db := range hostOf(c).Keyspace().Databases() {
		s := c.G.DBStats(db)
		if s.Keys == 0 {
			continue
		}
		d := databaseMemory{db, int64(s.Keys) * keyOverhead, int64(s.Expires) * deadlineOverhead}
		r.keys += int64(s.Keys)
		r.databases = append(r.databases, d)
		r.Overhead += d.table + d.expiring
	}
	r.Overhead = min(r.Overhead, r.Used)
	r.Dataset = r.Used - r.Overhead
	return r
}

func memoryStats(c *command.Ctx) {
	r := ReportMemory(c)
	m, n := c.W.Defer(), 0
	number := func(name string, v int64) {
		c.W.BulkString(name)
		c.W.Int(v)
		n++
	}
	fraction := func(name string, v float64) {
		c.W.BulkString(name)
		c.W.Double(v)
		n++
	}
	number("peak.allocated", r.Peak)
	number("total.allocated", r.Used)
	number("startup.allocated", 0)
	number("replication.backlog", 0)
	number("clients.slaves", r.Followers)
	number("clients.normal", r.Clients)
	number("cluster.links", 0)
	number("aof.buffer", r.JournalBuffer)
	number("lua.caches", r.Scripts)
	number("functions.caches", r.Functions)
	for _, d := range r.databases {
		c.W.BulkString(fmt.Sprintf("db.%d", d.db))
		c.W.Map(3)
		c.W.BulkString("overhead.hashtable.main")
		c.W.Int(d.table)
		c.W.BulkString("overhead.hashtable.expires")
		c.W.Int(d.expiring)
		c.W.BulkString("overhead.hashtable.slot-to-keys")
		c.W.Int(0)
		n++
	}
	number("overhead.total", r.Overhead)
	number("keys.count", r.keys)
	perKey := int64(0)
	if r.keys > 0 {
		perKey = r.Used / r.keys
	}
	number("keys.bytes-per-key", perKey)
	number("dataset.bytes", r.Dataset)
	fraction("dataset.percentage", 100*stats.Ratio(r.Dataset, r.Used))
	fraction("peak.percentage", 100*stats.Ratio(r.Used, r.Peak))
	number("allocator.allocated", r.Heap)
	number("allocator.active", r.Heap+r.Idle)
	number("allocator.resident", r.Mapped)
	fraction("allocator-fragmentation.ratio", stats.Ratio(r.Heap+r.Idle, r.Heap))
	number("allocator-fragmentation.bytes", r.Idle)
	fraction("allocator-rss.ratio", stats.Ratio(r.Mapped, r.Heap+r.Idle))
	number("allocator-rss.bytes", r.Mapped-r.Heap-r.Idle)
	fraction("rss-overhead.ratio", stats.Ratio(r.resident, r.Mapped))
	number("rss-overhead.bytes", r.resident-r.Mapped)
	fraction("fragmentation", stats.Ratio(r.resident, r.Used))
	number("fragmentation.bytes", r.resident-r.Used)
	c.W.EndMap(m, n)
}

const smallUse = 5 << 20 // too little memory to give advice

func memoryDoctor(c *command.Ctx) {
	r := ReportMemory(c)
	var b strings.Builder
	say := func(format string, args ...any) { fmt.Fprintf(&b, " * "+format+"\n", args...) }
	switch {
	case r.Used < smallUse:
		b.WriteString("Hardly any memory is in use, so that nothing can be said about it.\n")
	default:
		if stats.Ratio(r.Peak, r.Used) > 1.5 {
			say("There was a time when %s were in use, %.1f times as much as now. MEMORY PURGE gives back what is not needed.",
				humanBytes(r.Peak), stats.Ratio(r.Peak, r.Used))
		}
		if stats.Ratio(r.resident, r.Used) > 2.5 {
			say("The process occupies %s, %.1f times what is in use: garbage that will be collected, or memory kept for what comes. "+
				"MEMORY PURGE gives it back.", humanBytes(r.resident), stats.Ratio(r.resident, r.Used))
		}
		if n := hostOf(c).ClientCount(); r.Clients > 200<<10*max(n, 1) {
			say("Clients have %s of commands and replies that are under way. Some may not read what they asked for; CLIENT LIST shows omem and qbuf.",
				humanBytes(r.Clients))
		}
		if b.Len() == 0 {
			b.WriteString("Nothing is remarkable about the memory in use.\n")
		}
	}
	c.W.Verbatim("txt", b.String())
}

// memoryMallocStats shows the memory statistics of the Go runtime.
func memoryMallocStats(c *command.Ctx) {
	var b strings.Builder
	for _, d := range metrics.All() {
		if d.Kind != metrics.KindUint64 || !strings.HasPrefix(d.Name, "/memory/classes/") &&
			!strings.HasPrefix(d.Name, "/gc/") {
			continue
		}
		sample := []metrics.Sample{{Name: d.Name}}
		metrics.Read(sample)
		fmt.Fprintf(&b, "%s %d\n", d.Name, sample[0].Value.Uint64())
	}
	c.W.Verbatim("txt", b.String())
}

func memoryHelp(c *command.Ctx) {
	command.HelpReply(c,
		"MEMORY <subcommand> [<arg> [value] [opt] ...]. Subcommands are:",
		"DOCTOR",
		"    Tell what is remarkable about the memory in use.",
		"MALLOC-STATS",
		"    Show the figures of the memory allocator.",
		"PURGE",
		"    Give memory that is not in use back to the system.",
		"STATS",
		"    Show where the memory is, in bytes.",
		"USAGE <key> [SAMPLES <count>]",
		"    Tell how many bytes the key and its value take. It is known without SAMPLES.",
		"HELP",
		"    Print this help.")
}
