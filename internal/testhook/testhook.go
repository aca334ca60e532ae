// Package testhook lets package atomredistest cause failures in a server. It costs nothing in a server without a
// Hook.
package testhook

import (
	"context"
	"errors"
	"net"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/atomredis/atomredis/engine/glob"
)

// Hook has the failures that a test wants in a server. Its methods may be called from any goroutine.
type Hook struct {
	mu       sync.Mutex // protects the following fields; no other lock is taken under it
	faults   []*Fault
	late     map[any]time.Duration // the delay of a client's next replies in addition to latency
	latency  time.Duration
	released chan struct{} // closed when latency changes, so that waits for the old latency end
	dropping bool          // dropAfter applies to the next connection that is written to
	drop     int
	overdue  func() bool
	known    func(words []string) (name string, ok bool)
}

// Clock is the additional interface of a server's clock that provides a Hook. The clock provides the hook because
// the options of an embedded server are public, and this package is not.
type Clock interface{ Hook() *Hook }

// Fault describes failures of command executions. Empty fields match every execution.
type Fault struct {
	// the server's own name, a sub-command such as "config|get", or a container; empty matches all commands except
	// those with which clients open connections
	Command string
	Key     string  // a pattern that one of the keys matches
	Client  string  // name, id or address of the client
	Percent float64 // the percentage of the matching executions that fail; 0 means all
	Left    int     // how many executions fail; negative means all
	Reply   string  // the error reply that replaces the execution
	Latency time.Duration

	seen int // how many executions were counted for Percent
}

// Call is an execution of a command that is about to begin.
type Call struct {
	Command string
	// Key and Client report whether a key, or the client, is one that match accepts.
	Key    func(match func(key []byte) bool) bool
	Client func(match func(name string) bool) bool
}

// New returns a Hook without failures.
func New() *Hook { return &Hook{released: make(chan struct{}), late: map[any]time.Duration{}} }

// Add adds a Fault that applies from now on.
func (h *Hook) Add(f Fault) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if f.Left != 0 {
		h.faults = append(h.faults, &f)
	}
}

// SetKnown is called by the server with a function that returns the server's own name of a command or sub-command.
func (h *Hook) SetKnown(f func(words []string) (name string, ok bool)) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.known = f
}

// Command returns the server's own name of a command such as "CONFIG GET"; ok is false if there is no such command.
func (h *Hook) Command(name string) (own string, ok bool) {
	h.mu.Lock()
	known := h.known
	h.mu.Unlock()
	return known(strings.Fields(strings.ReplaceAll(name, "|", " ")))
}

// SetLatency delays everything that the server sends by d.
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

// DropAfter makes the server close the next connection to which it writes, after n bytes.
func (h *Hook) DropAfter(n int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.dropping, h.drop = true, max(n, 0)
}

// Clear removes all failures, except for connections that already count towards DropAfter.
func (h *Hook) Clear() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.faults, h.dropping = nil, false
	clear(h.late)
	h.setLatency(0)
}

// opening are commands with which client libraries open connections.
var opening = map[string]bool{"hello": true, "auth": true, "select": true, "client": true}

// Failure returns the error reply for a command that is about to be executed, if it is to fail. The latency of a
// Fault delays the next replies of the client that owner identifies.
func (h *Hook) Failure(c *Call, owner any) (reply string, fails bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for i := 0; i < len(h.faults); i++ {
		f := h.faults[i]
		if !f.concerns(c) {
			continue
		}
		if f.Left > 0 {
			f.Left--
		}
		if f.Left == 0 {
			h.faults = slices.Delete(h.faults, i, i+1)
			i--
		}
		if f.Latency > 0 {
			h.late[owner] = max(h.late[owner], f.Latency)
		}
		if f.Reply != "" {
			return f.Reply, true
		}
	}
	return "", false
}

// concerns reports whether the Fault applies to the execution.
func (f *Fault) concerns(c *Call) bool {
	container, _, _ := strings.Cut(c.Command, "|")
	switch {
	case f.Command == "" && opening[container],
		f.Command != "" && f.Command != c.Command && f.Command != container,
		f.Key != "" && !c.Key(func(key []byte) bool { return glob.Match([]byte(f.Key), key, false) }),
		f.Client != "" && !c.Client(func(name string) bool { return name == f.Client }):
		return false
	case f.Percent == 0:
		return true
	}
	f.seen++
	due := func(n int) int { return int(float64(n) * f.Percent / 100) }
	return due(f.seen) > due(f.seen-1)
}

// Wait waits for the delay of replies to the client. If ctx ends first it returns the error of ctx. all includes the
// latency of all clients.
func (h *Hook) Wait(ctx context.Context, owner any, all bool) error {
	h.mu.Lock()
	d, released := h.late[owner], h.released
	delete(h.late, owner)
	if all {
		d += h.latency
	}
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

// SetOverdue is called by the server with a function that reports whether clients are blocked whose deadline has
// passed.
func (h *Hook) SetOverdue(f func() bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.overdue = f
}

// Overdue reports whether clients are blocked whose deadline has passed.
func (h *Hook) Overdue() bool {
	h.mu.Lock()
	f := h.overdue
	h.mu.Unlock()
	return f != nil && f()
}

// Conn returns the server's end of a connection that can fail. owner is as for Failure; nil if the connection also
// has commands of other clients. One goroutine at a time may write to it.
func (h *Hook) Conn(c net.Conn, owner any) net.Conn { return &conn{Conn: c, hook: h, owner: owner} }

type conn struct {
	net.Conn
	hook         *Hook
	owner        any
	writeTimeout time.Duration // the time from setting the write deadline to the deadline; 0 if there is none
	dropping     bool
	left         int // bytes until the connection is closed, if dropping
}

// errDropped is the error for writes to a connection that a test has broken.
var errDropped = errors.New("the connection was dropped for a test")

// SetWriteDeadline sets the time after which a write fails, not counting its own delay.
func (c *conn) SetWriteDeadline(t time.Time) error {
	c.writeTimeout = 0
	if !t.IsZero() {
		c.writeTimeout = time.Until(t)
	}
	return c.Conn.SetWriteDeadline(t)
}

// Write writes after the delay, and only a part if the connection is to break.
func (c *conn) Write(b []byte) (int, error) {
	c.hook.Wait(context.Background(), c.owner, true) // the context never ends
	if c.writeTimeout != 0 {
		c.Conn.SetWriteDeadline(time.Now().Add(c.writeTimeout))
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

// claim makes this connection the one that breaks, if one is to break.
func (c *conn) claim() {
	h := c.hook
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.dropping && !c.dropping {
		c.dropping, c.left = true, h.drop
		h.dropping = false
	}
}
