// Package clock has the clocks that deadlines and timeouts follow: the system's, and one for tests that moves only by
// Advance.
package clock

import (
	"sync"
	"time"

	"github.com/atomredis/atomredis/engine/expiry"
)

// Clock gives the time. All deadlines and timeouts follow it.
type Clock interface {
	// Now returns the current time.
	Now() time.Time
	// AfterFunc calls f in a goroutine of its own once d has passed.
	AfterFunc(d time.Duration, f func()) Timer
}

// Timer is a pending call of AfterFunc.
type Timer interface {
	// Stop prevents the call and reports whether it did.
	Stop() bool
}

// System is the clock of the operating system.
type System struct{}

// Now returns time.Now.
func (System) Now() time.Time { return time.Now() }

// AfterFunc is time.AfterFunc.
func (System) AfterFunc(d time.Duration, f func()) Timer { return time.AfterFunc(d, f) }

// Manual is a clock for tests that moves only by Advance.
type Manual struct {
	mu     sync.Mutex
	now    time.Time
	timers expiry.Index[*manualTimer]
}

type manualTimer struct {
	clock *Manual
	f     func()
	slot  int
}

// NewManual returns a clock that shows start.
func NewManual(start time.Time) *Manual { return &Manual{now: start} }

// Now returns the time the clock shows.
func (c *Manual) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

// AfterFunc makes Advance call f.
func (c *Manual) AfterFunc(d time.Duration, f func()) Timer {
	c.mu.Lock()
	defer c.mu.Unlock()
	t := &manualTimer{clock: c, f: f}
	c.timers.Set(t, c.now.Add(d).UnixNano())
	return t
}

// Advance moves the clock forward by d. It calls the timers that fall due, in order, on the caller's goroutine.
func (c *Manual) Advance(d time.Duration) {
	c.mu.Lock()
	end := c.now.Add(d)
	for {
		t, at, ok := c.timers.Min()
		if !ok || at > end.UnixNano() {
			break
		}
		c.timers.Remove(t)
		if due := time.Unix(0, at); due.After(c.now) {
			c.now = due
		}
		c.mu.Unlock()
		t.f()
		c.mu.Lock()
	}
	c.now = end
	c.mu.Unlock()
}

// Stop prevents the call and reports whether it did.
func (t *manualTimer) Stop() bool {
	t.clock.mu.Lock()
	defer t.clock.mu.Unlock()
	pending := t.slot != 0
	t.clock.timers.Remove(t)
	return pending
}

// SetSlot implements expiry.Item.
func (t *manualTimer) SetSlot(s int) { t.slot = s }

// Slot implements expiry.Item.
func (t *manualTimer) Slot() int { return t.slot }
