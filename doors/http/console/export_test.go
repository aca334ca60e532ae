package console

import "time"

// SetIdle sets the idle time of new sessions.
func (c *Console) SetIdle(d time.Duration) { c.sessions.idle = d }

// SetAfterLeave sets how long sessions last after their page was closed.
func (c *Console) SetAfterLeave(d time.Duration) { c.sessions.afterLeave = d }

// Sessions returns the number of sessions.
func (c *Console) Sessions() int {
	c.sessions.mu.Lock()
	defer c.sessions.mu.Unlock()
	return len(c.sessions.byToken)
}

// Feeds returns the number of feeds.
func (c *Console) Feeds() int {
	c.hub.mu.Lock()
	defer c.hub.mu.Unlock()
	return len(c.hub.feeds)
}

// MaxSessions is the largest number of sessions.
const MaxSessions = maxSessions
