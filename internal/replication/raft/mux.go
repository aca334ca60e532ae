package raft

import (
	"crypto/tls"
	"errors"
	"net"
	"sync"
	"sync/atomic"
	"time"

	consensus "github.com/hashicorp/raft"

	"github.com/atomredis/atomredis/internal/wire/peer"
	"github.com/atomredis/atomredis/internal/wire/peer/old"
)

// greeting is the timeout for the hello of a connection, and for the first bytes after it.
const greeting = 5 * time.Second

// mux takes the connections of peers.
type mux struct {
	n        *Node
	listener net.Listener
	raft     *stream
	old      old.Peers

	mu     sync.Mutex // protects what follows
	open   map[net.Conn]struct{}
	peers  map[*tracked]struct{} // connections that others have opened, but for those that Detach was called for
	closed bool
}

func newMux(n *Node, l net.Listener) *mux {
	m := &mux{n: n, listener: l, open: map[net.Conn]struct{}{}, peers: map[*tracked]struct{}{}}
	m.raft = &stream{m: m, accepted: make(chan net.Conn), closed: make(chan struct{})}
	return m
}

// accept takes connections until the node is closed.
func (m *mux) accept() {
	for {
		c, err := m.listener.Accept()
		if err != nil {
			if m.n.stopped() {
				return
			}
			m.n.o.Log.Warn("a connection of a peer cannot be accepted", "error", err.Error())
			if !m.n.pause(100 * time.Millisecond) {
				return
			}
			continue
		}
		if m.n.o.TLS != nil {
			c = tls.Server(c, m.n.o.TLS)
		}
		if m.keep(c) {
			peer := m.count(c)
			m.n.run(func() { m.greet(peer) })
		}
	}
}

// keep has a connection closed with the mux. It is closed at once if that is.
func (m *mux) keep(c net.Conn) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		c.Close()
		return false
	}
	m.open[c] = struct{}{}
	return true
}

// count counts a connection that another server has opened. If there are too many, which those of the group never are,
// the one that has been silent for longest ends.
func (m *mux) count(conn net.Conn) *tracked {
	c := &tracked{Conn: conn, m: m}
	c.heard.Store(time.Now().UnixNano())
	m.mu.Lock()
	defer m.mu.Unlock()
	if most := m.n.o.Connections; most > 0 && len(m.peers) >= most {
		var silent *tracked
		for p := range m.peers {
			if silent == nil || p.heard.Load() < silent.heard.Load() {
				silent = p
			}
		}
		delete(m.peers, silent)
		silent.Conn.Close() // its goroutine forgets it
	}
	m.peers[c] = struct{}{}
	return c
}

// Detach says that a connection that Options.Serve has been given counts elsewhere from now on, as that of a client.
func (n *Node) Detach(conn *peer.Conn) {
	if c, ok := conn.Raw().(*tracked); ok {
		c.m.mu.Lock()
		delete(c.m.peers, c)
		c.m.mu.Unlock()
	}
}

func (m *mux) forget(c *tracked) {
	m.mu.Lock()
	delete(m.open, c.Conn)
	delete(m.peers, c)
	m.mu.Unlock()
}

// greet reads the hello of a connection and gives the connection to whom it is for.
func (m *mux) greet(c *tracked) {
	conn, err := m.hello(c)
	if err != nil {
		c.Close()
		return
	}
	switch conn.Purpose() {
	case peer.Raft:
		c.SetReadDeadline(time.Now().Add(greeting))
		c.first.Store(true) // it must say more in the time that it has
		select {
		case m.raft.accepted <- c:
		case <-m.n.stop:
			c.Close()
		}
	case peer.Members:
		defer c.Close()
		conn.SetDeadline(time.Now().Add(greeting))
		m.n.peers.answer(conn)
	default:
		defer c.Close()
		m.n.o.Serve(conn) // which sets deadlines of its own
	}
}

// hello reads the hello of a connection, which may be one of an old server.
func (m *mux) hello(c *tracked) (*peer.Conn, error) {
	deadline := time.Now().Add(greeting)
	c.SetDeadline(deadline)
	var first [1]byte
	if _, err := c.Read(first[:]); err != nil {
		return nil, err
	}
	if first[0] == peer.Magic[0] {
		return peer.Accept(c, first[:], func(h *peer.Hello) error { return m.admits(h.Purpose) }, deadline)
	}
	conn, err := old.Accept(c, first[0], deadline)
	if err == nil {
		err = m.admits(conn.Purpose())
	}
	return conn, err
}

var (
	errNotAdmitted = &peer.Error{Code: peer.NotAdmitted, Text: "the server does not take part in its group yet"}
	errPurpose     = &peer.Error{Code: peer.BadPurpose, Text: "the server has no connections of this purpose"}
)

// admits returns why there is no connection of a purpose.
func (m *mux) admits(purpose peer.Purpose) error {
	switch purpose {
	case peer.Raft: // a server that knows nothing must not vote before the group has said that it may
		if !m.n.peers.admitted() {
			return errNotAdmitted
		}
	case peer.Members:
	case peer.Shards, peer.Migration, peer.Forward, peer.Stream, peer.Broadcast, peer.BroadcastShard, peer.Search:
		if m.n.o.Serve == nil {
			return errPurpose
		}
	default:
		return errPurpose
	}
	return nil
}

func (m *mux) close() {
	m.listener.Close()
	m.mu.Lock()
	defer m.mu.Unlock()
	m.closed = true
	for c := range m.open {
		c.Close()
	}
}

// dial connects to another server. One that does not know hellos is dialled again, in its own form.
func (m *mux) dial(addr string, purpose peer.Purpose, timeout time.Duration) (*peer.Conn, error) {
	deadline := time.Now().Add(timeout)
	known := m.old.Has(addr)
	if !known {
		raw, err := m.connect(addr, deadline)
		if err != nil {
			return nil, err
		}
		conn, err := peer.Open(raw, purpose, nil, deadline)
		if err == nil {
			return conn, nil
		}
		raw.Close()
		if !errors.Is(err, peer.ErrOld) {
			return nil, err
		}
	}
	raw, err := m.connect(addr, deadline)
	if err != nil {
		return nil, err
	}
	conn, err := old.Open(raw, purpose, deadline)
	if err != nil {
		return nil, errors.Join(err, raw.Close())
	}
	if !known {
		m.old.Add(addr)
	}
	return conn, nil
}

// connect opens a connection that is closed with the mux.
func (m *mux) connect(addr string, deadline time.Time) (net.Conn, error) {
	c, err := m.n.o.Dial(addr, time.Until(deadline))
	if err != nil {
		return nil, err
	}
	if !m.keep(c) {
		return nil, net.ErrClosed
	}
	return &tracked{Conn: c, m: m}, nil
}

// tracked is a connection that is closed with the mux. Raft leaves some open when it ends.
type tracked struct {
	net.Conn
	m     *mux
	heard atomic.Int64 // when something was read last, in ns since 1970
	first atomic.Bool  // there is a deadline for what is read next
}

// Read implements net.Conn.
func (c *tracked) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if n > 0 {
		c.heard.Store(time.Now().UnixNano())
		if c.first.Swap(false) {
			c.SetReadDeadline(time.Time{})
		}
	}
	return n, err
}

// Close implements net.Conn.
func (c *tracked) Close() error {
	c.m.forget(c)
	return c.Conn.Close()
}

// stream is the mux as Raft's transport sees it.
type stream struct {
	m        *mux
	accepted chan net.Conn
	closed   chan struct{}
}

// Accept implements net.Listener.
func (s *stream) Accept() (net.Conn, error) {
	select {
	case c := <-s.accepted:
		return c, nil
	case <-s.closed:
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener. Raft's transport calls it once.
func (s *stream) Close() error {
	close(s.closed)
	return nil
}

// Addr implements net.Listener: where peers reach the server.
func (s *stream) Addr() net.Addr { return address(s.m.n.o.Addr) }

// Dial implements consensus.StreamLayer.
func (s *stream) Dial(addr consensus.ServerAddress, timeout time.Duration) (net.Conn, error) {
	conn, err := s.m.dial(string(addr), peer.Raft, timeout)
	if err != nil {
		return nil, err
	}
	return conn.Raw(), nil
}

// address is one that is not resolved.
type address string

func (a address) Network() string { return "tcp" }
func (a address) String() string  { return string(a) }
