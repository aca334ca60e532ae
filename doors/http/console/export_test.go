package console

import "time"

// SetIdle sets after what time sessions end that begin from now on.
func (c *Console) SetIdle(d time.Duration) { c.sessions.idle = d }

// SetAfterLeave sets after what time sessions end whose page was closed.
func (c *Console) SetAfterLeave(d time.Duration) { c.sessions.afterLeave = d }

// Sessions returns how many there are.
func (c *Console) Sessions() int {
	c.sessions.mu.Lock()
	defer c.sessions.mu.Unlock()
	return len(c.sessions.byToken)
}

// Feeds returns how many are sampled.
func (c *Console) Feeds() int {
	c.hub.mu.Lock()
	defer c.hub.mu.Unlock()
	return len(c.hub.feeds)
}

// MaxSessions is how many there can be.
const MaxSessions = maxSessions
