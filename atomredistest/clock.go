package atomredistest

import (
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/atomredis/atomredis/engine"
	"github.com/atomredis/atomredis/internal/testhook"
	"github.com/atomredis/atomredis/memory"
)

// Clock is a clock of one or more servers that a test moves. Its methods may be called from any goroutine.
type Clock struct {
	base memory.Clock

	moving sync.Mutex // held while the clock moves; taken before mu

	mu     sync.Mutex // protects what follows
	offset time.Duration
	timers map[*timer]struct{} // pending timers
	hooks  []*testhook.Hook    // of the servers that use the clock
}

// hooked is the clock of one server.
type hooked struct {
	*Clock
	hook *testhook.Hook
}

// Hook implements testhook.Clock.
func (h hooked) Hook() *testhook.Hook { return h.hook }

// timer is a pending call.
type timer struct {
	clock *Clock
	at    time.Time // on the moved clock
	f     func()
	base  memory.Timer
	armed int // how often base was set; a call of an older base is ignored
}

// NewClock returns a clock that shows the time at and stands still until a test moves it. Set it as Options.Clock for
// RunOptions; several servers may share it.
func NewClock(at time.Time) *Clock { return newClock(engine.NewManualClock(at)) }

func newClock(base memory.Clock) *Clock { return &Clock{base: base, timers: map[*timer]struct{}{}} }

// FastForward moves the clock forward by d. Timers fire in the order of their times. When FastForward returns, keys
// have expired and blocked clients have timed out in all servers that use the clock.
func (c *Clock) FastForward(d time.Duration) {
	c.advance(d)
	c.settle()
}

// SetTime makes the clock show now. A later time works like FastForward by the difference. At an earlier time nothing
// happens at once; keys expire and clients time out when the clock shows their time.
func (c *Clock) SetTime(now time.Time) {
	c.set(now)
	c.settle()
}

// settle waits for the goroutines of clients that have timed out.
func (c *Clock) settle() {
	const yields, naps = 1000, 10_000
	c.mu.Lock()
	hooks := slices.Clone(c.hooks)
	c.mu.Unlock()
	overdue := func() bool { return slices.ContainsFunc(hooks, (*testhook.Hook).Overdue) }
	for i := 0; i < yields+naps && overdue(); i++ {
		if i < yields {
			runtime.Gosched()
		} else {
			time.Sleep(100 * time.Microsecond)
		}
	}
}

// of returns the clock for the server with hook h.
func (c *Clock) of(h *testhook.Hook) memory.Clock {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.hooks = append(c.hooks, h)
	return hooked{c, h}
}

// leave removes a server that no longer uses the clock.
func (c *Clock) leave(h *testhook.Hook) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.hooks = slices.DeleteFunc(c.hooks, func(other *testhook.Hook) bool { return other == h })
}

// Now implements memory.Clock.
func (c *Clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now()
}

func (c *Clock) now() time.Time { return c.base.Now().Add(c.offset) }

// AfterFunc implements memory.Clock.
func (c *Clock) AfterFunc(d time.Duration, f func()) memory.Timer {
	c.mu.Lock()
	defer c.mu.Unlock()
	t := &timer{clock: c, at: c.now().Add(d), f: f}
	c.timers[t] = struct{}{}
	t.arm()
	return t
}

// arm makes the base clock call fire at the timer's time. clock.mu must be locked.
func (t *timer) arm() {
	if t.base != nil {
		t.base.Stop()
	}
	t.armed++
	number := t.armed
	t.base = t.clock.base.AfterFunc(t.at.Sub(t.clock.now()), func() { t.fire(number) })
}

func (t *timer) fire(number int) {
	c := t.clock
	c.mu.Lock()
	mine := number == t.armed && t.remove()
	c.mu.Unlock()
	if mine {
		t.f()
	}
}

// remove removes a pending timer, and reports whether it was pending. clock.mu must be locked.
func (t *timer) remove() bool {
	_, pending := t.clock.timers[t]
	delete(t.clock.timers, t)
	return pending
}

// Stop implements memory.Timer.
func (t *timer) Stop() bool {
	t.clock.mu.Lock()
	defer t.clock.mu.Unlock()
	t.base.Stop()
	return t.remove()
}

// advance moves the clock by d, and fires each timer when the clock shows its time.
func (c *Clock) advance(d time.Duration) {
	c.moving.Lock()
	defer c.moving.Unlock()
	c.mu.Lock()
	end := c.offset + d
	c.mu.Unlock()
	c.moveTo(end)
}

// set makes the clock show now.
func (c *Clock) set(now time.Time) {
	c.moving.Lock()
	defer c.moving.Unlock()
	c.moveTo(now.Sub(c.base.Now().Round(0))) // by the calendar, not by the monotonic clock
}

// moveTo changes the offset to end, step by step. moving must be locked.
func (c *Clock) moveTo(end time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for {
		t := c.earliest()
		if t == nil {
			break
		}
		at := t.at.Sub(c.base.Now())
		if at > end {
			break
		}
		c.offset = max(c.offset, at)
		t.base.Stop()
		t.remove()
		c.mu.Unlock()
		t.f()
		c.mu.Lock()
	}
	c.offset = end
	for t := range c.timers {
		t.arm()
	}
}

// earliest returns the pending timer with the earliest time; nil if there is none.
func (c *Clock) earliest() (first *timer) {
	for t := range c.timers {
		if first == nil || t.at.Before(first.at) {
			first = t
		}
	}
	return first
}
