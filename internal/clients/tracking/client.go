package tracking

import (
	"slices"
	"sync/atomic"

	"github.com/atomredis/atomredis/internal/command"
)

// Client is one client's state of CLIENT TRACKING. It belongs to the client's goroutine. That goroutine changes
// redirect and mode under the table's mu and reads them without it; others read them under mu.
type Client struct {
	table    *Table
	peer     Peer
	on       bool
	redirect int64 // the client that gets the messages instead; 0 = this one
	mode     Flags
	caching  bool     // CLIENT CACHING was given for the next command
	prefixes []string // sorted
	broken   atomic.Bool
}

// Flags describe how a client tracks.
type Flags uint8

// Options of a client, and its state.
const (
	On     Flags = 1 << iota
	Bcast        // messages about all keys with its prefixes
	OptIn        // only keys read after CLIENT CACHING yes
	OptOut       // only keys not read after CLIENT CACHING no
	NoLoop       // no messages about its own changes
	Caching
	Broken // the client that it redirects to has disconnected
)

// Join connects a client with the table. It is called once, before anything else.
func (c *Client) Join(t *Table, peer Peer) { c.table, c.peer = t, peer }

// On reports whether the client tracks.
func (c *Client) On() bool { return c.on }

// Pristine reports whether the client has set nothing.
func (c *Client) Pristine() bool { return !c.on && !c.caching }

// Flags returns the client's options and state; 0 if it does not track.
func (c *Client) Flags() Flags {
	if !c.on {
		return 0
	}
	f := On | c.mode
	if c.caching {
		f |= Caching
	}
	if c.broken.Load() {
		f |= Broken
	}
	return f
}

// Redirection returns the client that gets the messages instead: 0 without one, -1 if the client does not track.
func (c *Client) Redirection() int64 {
	if !c.on {
		return -1
	}
	return c.redirect
}

// Prefixes returns the prefixes that the client listens to, sorted.
func (c *Client) Prefixes() []string { return c.prefixes }

// Start makes the client track, or changes its options. prefixes are added to those that it has.
func (c *Client) Start(mode Flags, redirect int64, prefixes []string) {
	t := c.table
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.clients == nil {
		t.clients, t.prefixes = map[int64]*Client{}, map[string]map[*Client]struct{}{}
	}
	t.clients[c.peer.ID()] = c
	c.on, c.mode, c.redirect = true, mode, redirect
	c.broken.Store(false)
	if mode&Bcast != 0 && len(prefixes) == 0 {
		prefixes = []string{""}
	}
	for _, p := range prefixes {
		if slices.Contains(c.prefixes, p) {
			continue
		}
		c.prefixes = append(c.prefixes, p)
		if t.prefixes[p] == nil {
			t.prefixes[p] = map[*Client]struct{}{}
		}
		t.prefixes[p][c] = struct{}{}
	}
	slices.Sort(c.prefixes)
	t.host.ObserveChanges(true)
}

// Stop ends the client's tracking, if it tracks.
func (c *Client) Stop() {
	if !c.on {
		return
	}
	t := c.table
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, p := range c.prefixes {
		delete(t.prefixes[p], c)
		if len(t.prefixes[p]) == 0 {
			delete(t.prefixes, p)
		}
	}
	c.on, c.mode, c.redirect, c.caching, c.prefixes = false, 0, 0, false, nil
	c.broken.Store(false)
	delete(t.clients, c.peer.ID())
	if len(t.clients) == 0 {
		t.host.ObserveChanges(false)
		t.keys = nil // nobody would get a message
	}
}

// Read records the keys that a command of a tracking client has read. by is the client's Changer; within says that
// the command belongs to a transaction or script. It is called under the command's guard, so that no change of the
// keys is missed.
func (c *Client) Read(by *Changer, cmd *command.Command, args [][]byte, within bool) {
	// a script's own commands record what they read
	read := cmd.Flags&command.ReadOnly != 0 && cmd.ACL&command.CatScripting == 0
	switch {
	case !read || c.mode&Bcast != 0:
	case c.mode&OptIn != 0 && !c.caching:
	case c.mode&OptOut != 0 && c.caching:
	default:
		c.table.remember(by, cmd, args)
	}
	// CLIENT CACHING is for the next command, or transaction, that is not CLIENT itself.
	if !within {
		c.EndCaching(cmd)
	}
}

// Cache makes CLIENT CACHING apply to the next command.
func (c *Client) Cache() { c.caching = true }

// EndCaching ends the effect of CLIENT CACHING after a command, whether it ran or was refused; nil is an unknown
// command.
func (c *Client) EndCaching(cmd *command.Command) {
	if cmd == nil || cmd.Parent == nil || !cmd.Parent.KeepsCaching {
		c.caching = false
	}
}
