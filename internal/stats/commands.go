package stats

import (
	"iter"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/atomredis/atomredis/internal/command"
)

// Command counts the calls of one command.
type Command struct {
	// Calls is the number of executed calls, and Nanos their total duration; Failed of them had an error reply.
	// Rejected calls were not executed.
	Calls, Nanos, Failed, Rejected atomic.Int64
	durations                      atomic.Pointer[Histogram] // nil before the first call with latency-tracking on
	// slow calls are those in the slow log; slowMicros is their total duration in µs, slowest the longest.
	slow, slowMicros, slowest atomic.Int64
}

// A Command is as long as a cache line: counters of two commands in one line would slow each other down.
var _ [64 - unsafe.Sizeof(Command{})]byte

// Slow is how many commands were written to the slow log, their total duration and the longest one.
type Slow struct {
	Calls          int64
	Total, Longest time.Duration
}

// Commands are the counters of all commands, by their Index. They are allocated in parts, each at its first use,
// because most servers use few of the commands and programs may have many servers.
type Commands struct {
	parts []atomic.Pointer[countersPart]
}

type countersPart [8]Command

// NewCommands returns counters for commands with an Index below the given number.
func NewCommands(commands int) Commands {
	return Commands{make([]atomic.Pointer[countersPart], (commands+len(countersPart{})-1)/len(countersPart{}))}
}

// Of returns the counters of a command, to count with.
func (c *Commands) Of(cmd *command.Command) *Command {
	p := &c.parts[cmd.Index/len(countersPart{})]
	part := p.Load()
	for part == nil {
		p.CompareAndSwap(nil, new(countersPart))
		part = p.Load()
	}
	return &part[cmd.Index%len(countersPart{})]
}

var uncounted Command

// Seen returns the counters of a command, to read.
func (c *Commands) Seen(cmd *command.Command) *Command {
	part := c.parts[cmd.Index/len(countersPart{})].Load()
	if part == nil {
		return &uncounted
	}
	return &part[cmd.Index%len(countersPart{})]
}

// All returns the counters of all commands that have been counted; it may include counters that are zero.
func (c *Commands) All() iter.Seq[*Command] {
	return func(yield func(*Command) bool) {
		for i := range c.parts {
			part := c.parts[i].Load()
			if part == nil {
				continue
			}
			for j := range part {
				if !yield(&part[j]) {
					return
				}
			}
		}
	}
}

// Observe counts calls that took ns nanoseconds each.
func (s *Command) Observe(ns, calls int64) {
	h := s.durations.Load()
	for h == nil {
		s.durations.CompareAndSwap(nil, new(Histogram))
		h = s.durations.Load()
	}
	h.add(ns, calls)
}

// Histogram returns how long calls took; nil if none has been observed.
func (s *Command) Histogram() *Histogram { return s.durations.Load() }

// Count counts calls that took a total of took ns.
func (s *Command) Count(calls, took int64) {
	s.Calls.Add(calls)
	s.Nanos.Add(took)
}

// CountSlow counts a call that was written to the slow log.
func (s *Command) CountSlow(micros int64) {
	s.slow.Add(1)
	s.slowMicros.Add(micros)
	for {
		longest := s.slowest.Load()
		if micros <= longest || s.slowest.CompareAndSwap(longest, micros) {
			return
		}
	}
}

// Slow returns what CountSlow has counted.
func (s *Command) Slow() Slow {
	return Slow{s.slow.Load(), time.Duration(s.slowMicros.Load()) * time.Microsecond, time.Duration(s.slowest.Load()) * time.Microsecond}
}

// CommandTotals are sums over all commands.
type CommandTotals struct {
	Calls int64
	Took  time.Duration
	Slow  Slow
}

// Totals returns the sums of all counters.
func (c *Commands) Totals() CommandTotals {
	var t CommandTotals
	for s := range c.All() {
		slow := s.Slow()
		t.Calls += s.Calls.Load()
		t.Took += time.Duration(s.Nanos.Load())
		t.Slow = Slow{t.Slow.Calls + slow.Calls, t.Slow.Total + slow.Total, max(t.Slow.Longest, slow.Longest)}
	}
	return t
}

// Reset sets all counters to zero.
func (s *Command) Reset() {
	for _, n := range []*atomic.Int64{&s.Calls, &s.Nanos, &s.Failed, &s.Rejected, &s.slow, &s.slowMicros, &s.slowest} {
		n.Store(0)
	}
	s.durations.Store(nil)
}
