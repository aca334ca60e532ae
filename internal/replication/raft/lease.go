package raft

import (
	"sync/atomic"
	"time"
)

// lease is the time for which no other server can have been elected.
type lease struct {
	began time.Time    // a time on the monotonic clock
	until atomic.Int64 // ns after began; 0 if there is none
}

// clockError is the tolerated difference in the rates of servers' clocks: the lease ends that much earlier than the
// peers' promise.
const clockError = 0.1

// extend records that a majority has heard of the leader after the time heard: none of them elects another one
// before timeout has passed since then.
func (l *lease) extend(heard time.Time, timeout time.Duration) {
	l.until.Store(int64(heard.Sub(l.began) + time.Duration(float64(timeout)*(1-clockError))))
}

func (l *lease) end() { l.until.Store(0) }

func (l *lease) valid() bool { return int64(time.Since(l.began)) < l.until.Load() }
