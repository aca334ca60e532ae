package server

import (
	"time"

	"golang.org/x/sys/unix"
)

// This file is when the thread of an event loop sleeps although clients may come, and how soon it is let in when it wakes.

// beQuick asks the system for two things for the calling thread. Its sleeps are to last no longer than they should (see naps); and it is
// to be let in soon when it wakes and others keep the processors busy, as checkpoints and the garbage collector do: since
// Linux 6.12 that is what a thread gets which is content with short slices. Older ones ignore it.
func beQuick() {
	unix.Prctl(unix.PR_SET_TIMERSLACK, 1, 0, 0, 0)
	if attr, err := unix.SchedGetAttr(0, 0); err == nil && attr.Policy == unix.SCHED_NORMAL {
		attr.Runtime = uint64(shortSlice)
		unix.SchedSetAttr(0, attr, 0)
	}
}

// shortSlice is the shortest slice that the system gives.
const shortSlice = 100 * time.Microsecond

// Naps. When many clients have one command under way each, and the next one as soon as they have its reply, they come back one after the other.
// A loop that waits for each of them is woken for each, which costs the client's side as much as it costs ours. So while at least napCrowd clients
// send something within a millisecond, and the loop is busy, it does not wait for the next one after it has served few of them, but sleeps for
// napTime ns and then serves all who came meanwhile at once. That makes up to a tenth more requests per second for less processor time, where requests
// queue up anyway. With fewer clients each would wait for the nap of the others, and with less to do all would wait longer than they need.
const (
	napCrowd = 32
	napTime  = 20_000
)

// naps reports whether to nap after a round in which ready clients were served.
func (l *loop) naps(ready int) bool {
	return l.load.high && ready > 0 && l.crowd >= napCrowd && ready <= l.crowd/2
}

// arrived counts a client among those who sent something in this millisecond.
func (l *loop) arrived(c *socket) {
	if l.tick != l.now {
		l.crowd, l.active, l.tick = l.active, 0, l.now
		if l.keeps {
			l.load.measure(l.now, threadTime)
		}
	}
	if c.seen != l.now {
		c.seen = l.now
		l.active++
	}
}

// loadMeter measures for how much of the time a loop computes.
type loadMeter struct {
	high     bool  // it is busy
	at, used int64 // when it was last measured, in ms, and the processor time until then, in ns
}

const (
	loadWindow = 8  // ms between two measurements at least
	highLoad   = 75 // percent: from here on it is busy
	lowLoad    = 50 // percent: and until here it stays so, because naps themselves make it less
)

// measure is called at time now, in ms; used returns the processor time that the loop has used, in ns.
func (m *loadMeter) measure(now int64, used func() int64) {
	passed := now - m.at
	if passed < loadWindow {
		return
	}
	was := m.used
	m.at, m.used = now, used()
	limit := int64(highLoad)
	if m.high {
		limit = lowLoad
	}
	m.high = m.used-was > passed*1_000_000*limit/100
}

// threadTime returns the processor time that the calling thread has used, in ns.
func threadTime() int64 {
	var t unix.Timespec
	if unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &t) != nil {
		return 0
	}
	return t.Nano()
}
