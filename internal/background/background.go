// Package background is for long work that shares processors, and locks, with commands.
package background

import "time"

// Pacer puts a thread to sleep now and then.
//
// A thread that computes without a break is put aside by the system whenever its time slice ends, and that is as
// likely while it holds a lock as at any other time: whoever wants the lock then waits for many milliseconds if there
// are more threads than processors. After a short sleep a slice begins anew, so a thread that sleeps now and then
// before it takes a lock keeps its processor until it has given it back.
type Pacer struct{ awake time.Time }
