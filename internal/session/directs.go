package session

import (
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/atomredis/atomredis/doors/door"
	"github.com/atomredis/atomredis/internal/transport"
)

// This file is the pool of the clients that are part of the program, and how clients come through doors.

// Directs are the clients that are part of the program.
type Directs struct {
	shared *Shared

	mu      sync.Mutex // protects the following fields; taken after Direct.mu
	closed  bool
	all     map[*Direct]struct{}
	idle    []*Direct            // those that are not in use, the last used at the end
	waiting map[*Direct]struct{} // those that Recheck wakes

	settling map[chan struct{}]struct{} // of goroutines in Settle, which Recheck wakes
}

// NewDirects returns the Directs of a server.
func NewDirects(sh *Shared) *Directs {
	return &Directs{shared: sh, all: map[*Direct]struct{}{}, waiting: map[*Direct]struct{}{},
		settling: map[chan struct{}]struct{}{}}
}

// maxIdle is how many sessions are kept for later commands.
func maxIdle() int { return 16 * runtime.GOMAXPROCS(0) }

// Recheck implements carrier.
func (t *Directs) Recheck() {
	t.mu.Lock()
	defer t.mu.Unlock()
	for d := range t.waiting {
		d.wake()
	}
	for signal := range t.settling {
		select {
		case signal <- struct{}{}:
		default:
		}
	}
}

// Close implements carrier.
func (t *Directs) Close() {
	t.mu.Lock()
	t.closed = true
	all := make([]*Direct, 0, len(t.all))
	for d := range t.all {
		all = append(all, d)
	}
	t.mu.Unlock()
	endAll(all)
}

// EndClientsOf ends the clients of a door, but not those that work for the door itself until it is closed. A client
// may run SHUTDOWN, which waits for the door to close.
func (t *Directs) EndClientsOf(by *Door) {
	t.mu.Lock()
	var all []*Direct
	for d := range t.all {
		if d.session.door == by && !d.own {
			all = append(all, d)
		}
	}
	t.mu.Unlock()
	endAll(all)
}

// endAll ends clients. It waits for a command that is being executed; a command that waits ends now.
func endAll(all []*Direct) {
	for _, d := range all {
		d.mu.Lock()
		d.end()
		d.mu.Unlock()
	}
}

// Get returns a client that is part of the program, from a pool; it may do everything. Its commands are executed
// in a database. Release must be called once, when it is not used any more.
func (t *Directs) Get(db int) (*Direct, error) {
	sh := t.shared
	if db < 0 || db >= sh.Keyspace.Databases() || sh.Cluster != nil && db >= sh.Config.Get().Cluster.Databases {
		return nil, fmt.Errorf("there is no database %d", db)
	}
	if err := sh.NotInHandler(); err != nil {
		return nil, err
	}
	for {
		d, err := t.get()
		if err != nil {
			return nil, err
		}
		d.mu.Lock()
		d.readMail()
		if d.session.closing {
			d.end() // it was killed while it was idle
		}
		d.session.db = db
		d.late = false
		ended := d.ended
		d.mu.Unlock()
		if !ended {
			return d, nil
		}
	}
}

// get returns an idle client, or a new one.
func (t *Directs) get() (*Direct, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return nil, door.ErrClosed
	}
	if n := len(t.idle); n > 0 {
		d := t.idle[n-1]
		t.idle = t.idle[:n-1]
		return d, nil
	}
	d := t.begin(transport.Embedded, nil)
	d.pooled = true
	d.session.account.Store(nil)
	d.session.setAuthenticated(true)
	return d, nil
}

// Door has the counters of a door.
type Door struct {
	Clients, Commands atomic.Int64
}

// Entrance is how a client comes through a door.
type Entrance struct {
	Door    *Door
	Peer    transport.Peer
	Library string // as if CLIENT SETINFO had told it
	User    string // the client's user; "" if it must authenticate
	Own     bool   // it works for the door itself, and may do everything
	// AtLeader says that the leaders of shards execute its commands, whichever server the client has come to. If Own is set,
	// reads of keys of the server's own shard stay at the server.
	AtLeader bool
}

// Enter returns a client that has come through a door. The error is door.ErrNoUser if there is no such user.
func (t *Directs) Enter(e Entrance) (*Direct, error) {
	d, err := t.enter(e)
	if err != nil {
		return nil, err
	}
	s := d.session
	switch {
	case e.Own:
		s.account.Store(nil)
		s.setAuthenticated(true)
	case e.User != "" && !s.become(e.User):
		d.Release()
		return nil, door.ErrNoUser
	}
	s.publish()
	return d, nil
}

// enter starts the session of a client that comes through a door.
func (t *Directs) enter(e Entrance) (*Direct, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return nil, door.ErrClosed
	}
	d := t.begin(e.Peer, e.Door)
	d.own = e.Own
	d.session.modes.options.Library = e.Library
	if e.AtLeader {
		d.session.forwarding = forwarding{allowed: true, always: true, vouched: e.Own || e.User != ""}
		d.session.modes.options.ReadOnly = e.Own
	}
	return d, nil
}

// begin starts a session, of a door unless by is nil. mu is locked, and closed false.
func (t *Directs) begin(peer transport.Peer, by *Door) *Direct {
	d := &Direct{owner: t, signal: make(chan struct{}, 1)}
	d.session = t.shared.Open(peer, d.wake)
	d.session.setProto(3)
	if d.session.door = by; by != nil {
		by.Clients.Add(1)
	}
	d.begun.Store(true)
	d.wake() // it may have been killed already
	t.all[d] = struct{}{}
	return d
}

// EndIdle ends, as CLIENT KILL does, the clients of doors' peers that have been idle since a time in ms, as have
// their forks.
func (t *Directs) EndIdle(since int64) {
	for _, s := range t.idleSince(since) {
		s.shared.Log.Debug("closing idle client", "client", s.id, "addr", s.peer.Addr)
		s.Kill()
	}
}

// idleSince returns the sessions that EndIdle ends.
func (t *Directs) idleSince(since int64) (idle []*Session) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for d := range t.all {
		if d.parent != nil || d.session.door == nil || d.session.account.Load() == nil {
			continue // a fork ends with its parent; a session without an account is the door's own
		}
		busy := d.session.busySince(since)
		for fork := range d.forks {
			busy = busy || fork.session.busySince(since)
		}
		if !busy {
			idle = append(idle, d.session)
		}
	}
	return idle
}

// busySince reports whether the client waits, has subscribed, is a monitor, or has executed a command since a time in
// ms.
func (s *Session) busySince(since int64) bool {
	d := s.snapshot()
	return d.LastActive >= since || d.Blocked || d.Subscriptions() > 0 || d.listens || d.Monitor || s.about(since).Paused
}
