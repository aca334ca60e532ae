package raft

import (
	"sync/atomic"
	"time"
)

// lease is for how long no other server can have been elected.
type lease struct {
	until     atomic.Int64 // ns after began; 0 if there is none
	forbidden atomic.Bool
}

// began is a moment on the clock that only goes forward.
var began = time.Now()

// Clocks of servers may differ by so much in how fast they go: the lease ends that much earlier than the peers' promise.
const clockError = 0.1

// extend notes that a majority has answered a question that was asked at a moment: none of them elects another before
// timeout has passed since.
func (l *lease) extend(asked time.Time, timeout time.Duration) (renewed bool) {
	renewed = !l.valid()
	l.until.Store(int64(asked.Sub(began) + time.Duration(float64(timeout)*(1-clockError))))
	return renewed
}

func (l *lease) end() { l.until.Store(0) }

// forbid keeps the lease from being valid while the lead is handed over, and ends it.
func (l *lease) forbid(on bool) {
	l.end()
	l.forbidden.Store(on)
}

func (l *lease) valid() bool { return int64(time.Since(began)) < l.until.Load() && !l.forbidden.Load() }
