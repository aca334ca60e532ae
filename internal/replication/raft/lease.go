package raft

import (
	"sync/atomic"
	"time"
)

// lease is for how long no other server can have been elected.
type lease struct {
	began time.Time    // a moment on the clock that only goes forward
	until atomic.Int64 // ns after began; 0 if there is none
}

// Clocks of servers may differ by so much in how fast they go: the lease ends that much earlier than the peers' promise.
const clockError = 0.1

// extend notes that a majority has heard of the leader after a moment: none of them elects another before timeout has
// passed since.
func (l *lease) extend(heard time.Time, timeout time.Duration) {
	l.until.Store(int64(heard.Sub(l.began) + time.Duration(float64(timeout)*(1-clockError))))
}

func (l *lease) end() { l.until.Store(0) }

func (l *lease) valid() bool { return int64(time.Since(l.began)) < l.until.Load() }
