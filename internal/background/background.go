// Package background lowers the priority of long work that shares processors and locks with commands.
package background

import "time"

// Pacer puts a thread to sleep now and then.
//
// The kernel preempts a thread that computes without a break when its time slice ends, even while it holds a lock.
// With more threads than processors, others then wait many milliseconds for the lock. A short sleep starts a new
// time slice, so a thread that sleeps now and then before it takes a lock keeps its processor until it releases the
// lock.
type Pacer struct{ awake time.Time }
