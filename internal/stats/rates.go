package stats

import (
	"sync"
	"sync/atomic"
	"time"
)

// Totals are counters of a server's work at one time.
type Totals struct {
	Commands, Rounds, In, Out, ReplIn, ReplOut int64         // In and Out are bytes, with those of replication
	Loops                                      time.Duration // processor time of event loops
}

// since reports whether then was earlier, and no counter was reset in between.
func (n *Totals) since(then *Totals) bool {
	return n.Commands >= then.Commands && n.Rounds >= then.Rounds && n.In >= then.In && n.Out >= then.Out &&
		n.ReplIn >= then.ReplIn && n.ReplOut >= then.ReplOut && n.Loops >= then.Loops
}

// Throughput is the work per second between two samples.
type Throughput struct {
	Commands, Rounds         int64
	In, Out, ReplIn, ReplOut float64 // kilobytes
	RoundMicros              int64   // processor time of a round of an event loop
}

// Rates computes a Throughput from samples of Totals, at most one per second.
type Rates struct {
	next atomic.Int64 // time of the next sample, in ms since 1970

	mu   sync.Mutex // protects the following fields
	at   int64      // of the last sample
	then Totals
	last Throughput
}

// Due reports whether a sample is due. It returns true to one caller only, which must then call Add.
func (r *Rates) Due(now int64) bool {
	next := r.next.Load()
	return now >= next && r.next.CompareAndSwap(next, now+int64(time.Second/time.Millisecond))
}

// Next returns the time of the next sample, in ms since 1970.
func (r *Rates) Next() int64 { return r.next.Load() }

// Add adds a sample. The first sample, and a sample after CONFIG RESETSTAT or a jump of the clock, cannot be
// compared with an earlier one: Last then does not change.
func (r *Rates) Add(now int64, n Totals) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if ms := now - r.at; r.at != 0 && ms > 0 && n.since(&r.then) {
		perSecond := func(now, then int64) float64 { return float64(now-then) * 1000 / float64(ms) }
		r.last = Throughput{
			Commands: int64(perSecond(n.Commands, r.then.Commands)),
			Rounds:   int64(perSecond(n.Rounds, r.then.Rounds)),
			In:       perSecond(n.In, r.then.In) / 1024,
			Out:      perSecond(n.Out, r.then.Out) / 1024,
			ReplIn:   perSecond(n.ReplIn, r.then.ReplIn) / 1024,
			ReplOut:  perSecond(n.ReplOut, r.then.ReplOut) / 1024,
		}
		if rounds := n.Rounds - r.then.Rounds; rounds > 0 {
			r.last.RoundMicros = (n.Loops - r.then.Loops).Microseconds() / rounds
		}
	}
	r.at, r.then = now, n
}

// Last returns the Throughput between the last two samples.
func (r *Rates) Last() Throughput {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.last
}
