// Package testhook is how package atomredistest reaches into a server: things go wrong there because a test wants them to. A
// server without a Hook pays nothing for it.
package testhook

import (
	"context"
	"errors"
	"net"
	"strings"
	"sync"
	"time"
)

// Hook says what goes wrong in a server. Its methods may be called from any goroutine.
type Hook struct {
	mu       sync.Mutex // protects what follows; a leaf in the order of locks
	failures []failure
	latency  time.Duration
	released chan struct{} // closed when latency changes: nobody waits for the old one
	dropping bool          // the connection that is written to next takes dropAfter
	drop     int
	overdue  func() bool
}

// failure is an error that commands are answered with.
type failure struct {
	command string // in lower case; empty for any
	reply   string
	left    int // how many executions it is for; negative for all
}

// New returns a Hook with which nothing goes wrong.
func New() *Hook { return &Hook{released: make(chan struct{})} }

// Fail answers the next n executions of a command, all if n is negative, with an error reply instead. An empty command is any but
// those with which client libraries open connections.
func (h *Hook) Fail(n int, command, reply string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if n != 0 {
		h.failures = append(h.failures, failure{strings.ToLower(command), reply, n})
	}
}

// SetLatency makes all that the server sends late by d.
func (h *Hook) SetLatency(d time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.setLatency(d)
}

func (h *Hook) setLatency(d time.Duration) {
	h.latency = d
	close(h.released)
	h.released = make(chan struct{})
}

// DropAfter closes the connection to which the server sends next when it has sent n bytes.
func (h *Hook) DropAfter(n int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.dropping, h.drop = true, max(n, 0)
}

// Clear ends everything that goes wrong, but for connections that have begun to count.
func (h *Hook) Clear() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.failures, h.dropping = nil, false
	h.setLatency(0)
}

// opening are commands with which client libraries open connections.
var opening = map[string]bool{"hello": true, "auth": true, "select": true, "client": true}

// Failure returns the error reply for a command that is about to be executed, a sub-command being called "config|get", if it is
// to fail.
func (h *Hook) Failure(command string) (reply string, fails bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	container, _, _ := strings.Cut(command, "|")
	for i := range h.failures {
		f := &h.failures[i]
		if f.command != command && f.command != container && (f.command != "" || opening[container]) {
			continue
		}
		reply = f.reply
		if f.left > 0 {
			f.left--
		}
		if f.left == 0 {
			h.failures = append(h.failures[:i], h.failures[i+1:]...)
		}
		return reply, true
	}
	return "", false
}

// Wait waits as long as replies are late, or ctx lasts, and returns the error of ctx then.
func (h *Hook) Wait(ctx context.Context) error {
	h.mu.Lock()
	d, released := h.latency, h.released
	h.mu.Unlock()
	if d <= 0 {
		return nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-released:
	case <-ctx.Done():
		return ctx.Err()
	}
	return nil
}

// SetOverdue is called by the server, with a function that reports whether clients are blocked whose time is up.
func (h *Hook) SetOverdue(f func() bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.overdue = f
}

// Overdue reports whether clients are blocked whose time is up.
func (h *Hook) Overdue() bool {
	h.mu.Lock()
	f := h.overdue
	h.mu.Unlock()
	return f != nil && f()
}

// Conn returns the server's end of a connection with which things go wrong. One goroutine at a time may write to it.
func (h *Hook) Conn(c net.Conn) net.Conn { return &conn{Conn: c, hook: h} }

type conn struct {
	net.Conn
	hook     *Hook
	patience time.Duration // how far the write deadline was away when it was set; 0 if there is none
	dropping bool
	left     int // bytes until the connection is closed, if dropping
}

// errDropped is what the server gets for writing to a connection that a test wanted to break.
var errDropped = errors.New("the connection was dropped for a test")

// SetWriteDeadline sets the time after which a write fails, the time not counted for which it is late.
func (c *conn) SetWriteDeadline(t time.Time) error {
	c.patience = 0
	if !t.IsZero() {
		c.patience = time.Until(t)
	}
	return c.Conn.SetWriteDeadline(t)
}

// Write writes late, and not everything if the connection is to break.
func (c *conn) Write(b []byte) (int, error) {
	c.hook.Wait(context.Background()) // which has no error
	if c.patience != 0 {
		c.Conn.SetWriteDeadline(time.Now().Add(c.patience))
	}
	c.claim()
	if !c.dropping || len(b) < c.left {
		n, err := c.Conn.Write(b)
		c.left -= n
		return n, err
	}
	n, err := c.Conn.Write(b[:c.left])
	c.left -= n
	if err == nil {
		c.Conn.Close()
		err = errDropped
	}
	return n, err
}

// claim makes the connection the one that breaks, if one is to.
func (c *conn) claim() {
	h := c.hook
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.dropping && !c.dropping {
		c.dropping, c.left = true, h.drop
		h.dropping = false
	}
}
