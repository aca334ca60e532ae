package atomredistest

import (
	"sync"
	"time"

	"github.com/atomredis/atomredis/engine"
)

// clock shows the time of another clock, moved by an offset that can be changed.
type clock struct {
	base engine.Clock

	moving sync.Mutex // held by who moves the clock; taken before mu

	mu     sync.Mutex // protects what follows
	offset time.Duration
	timers map[*timer]struct{} // those that are pending
}

// timer is a pending call.
type timer struct {
	clock *clock
	at    time.Time // on the moved clock
	f     func()
	base  engine.Timer
	armed int // how often base was set: an older one that fires is too late to be stopped, and is ignored
}

func newClock(base engine.Clock) *clock { return &clock{base: base, timers: map[*timer]struct{}{}} }

// Now implements engine.Clock.
func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now()
}

func (c *clock) now() time.Time { return c.base.Now().Add(c.offset) }

// AfterFunc implements engine.Clock.
func (c *clock) AfterFunc(d time.Duration, f func()) engine.Timer {
	c.mu.Lock()
	defer c.mu.Unlock()
	t := &timer{clock: c, at: c.now().Add(d), f: f}
	c.timers[t] = struct{}{}
	t.arm()
	return t
}

// arm has the base clock call fire when the time has come. clock.mu must be locked.
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

// remove reports whether the timer was pending; it no longer is. clock.mu must be locked.
func (t *timer) remove() bool {
	_, pending := t.clock.timers[t]
	delete(t.clock.timers, t)
	return pending
}

// Stop implements engine.Timer.
func (t *timer) Stop() bool {
	t.clock.mu.Lock()
	defer t.clock.mu.Unlock()
	t.base.Stop()
	return t.remove()
}

// advance moves the clock by d, and calls what falls due on the way, each when the clock shows its time.
func (c *clock) advance(d time.Duration) {
	c.moving.Lock()
	defer c.moving.Unlock()
	c.mu.Lock()
	end := c.offset + d
	c.mu.Unlock()
	c.moveTo(end)
}

// set makes the clock show now.
func (c *clock) set(now time.Time) {
	c.moving.Lock()
	defer c.moving.Unlock()
	c.moveTo(now.Sub(c.base.Now().Round(0))) // by the calendar, not by the monotonic clock
}

// moveTo changes the offset to end, step by step. moving must be locked.
func (c *clock) moveTo(end time.Duration) {
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

// earliest returns the pending timer that falls due first; nil if there is none.
func (c *clock) earliest() (first *timer) {
	for t := range c.timers {
		if first == nil || t.at.Before(first.at) {
			first = t
		}
	}
	return first
}
