package raft

import (
	"crypto/tls"
	"errors"
	"net"
	"sync"
	"sync/atomic"
	"time"

	consensus "github.com/hashicorp/raft"

	"github.com/atomredis/atomredis/internal/replication/quorum"
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
	machines machines
	refused  atomic.Int64 // when a refused connection was last logged, in ns since 1970

	mu     sync.Mutex // protects the fields below
	open   map[net.Conn]struct{}
	peers  map[*tracked]struct{} // connections from others, except detached ones
	links  map[*tracked]quorum.Link
	closed bool
}

func newMux(n *Node, l net.Listener) *mux {
	m := &mux{n: n, listener: l, open: map[net.Conn]struct{}{}, peers: map[*tracked]struct{}{}, links: map[*tracked]quorum.Link{}}
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

// keep makes the mux close a connection when it closes. If the mux is already closed, it closes the connection at
// once.
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

// count counts a connection from another server. If there are too many, it closes the one that has been silent for
// longest, and first those whose hello is not accepted yet: anybody can open them. The group's own servers never have too
// many.
func (m *mux) count(conn net.Conn) *tracked {
	c := &tracked{Conn: conn, m: m, since: time.Now()}
	c.heard.Store(time.Now().UnixNano())
	m.mu.Lock()
	defer m.mu.Unlock()
	if most := m.n.o.Connections; most > 0 && len(m.peers) >= most {
		var silent *tracked
		for p := range m.peers {
			if silent == nil || p.goesBefore(silent) {
				silent = p
			}
		}
		delete(m.peers, silent)
		silent.Conn.Close() // its goroutine removes it
	}
	m.peers[c] = struct{}{}
	return c
}

// Detach stops counting a connection of Options.Serve as one of a peer; from now on it counts as a client's.
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
	delete(m.links, c)
	m.mu.Unlock()
}

// greet reads the hello of a connection and passes the connection on by its purpose.
func (m *mux) greet(c *tracked) {
	conn, err := m.hello(c)
	if err != nil {
		c.Close()
		m.logRefused(c, err)
		return
	}
	c.accepted.Store(true)
	m.link(c, conn.Purpose(), c.from, false)
	switch conn.Purpose() {
	case peer.Raft:
		c.SetReadDeadline(time.Now().Add(greeting))
		c.first.Store(true) // the next bytes must arrive before the same deadline
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
		m.n.o.Serve(conn) // Serve sets its own deadlines
	}
}

// hello reads the hello of a connection, which may be from an old server.
func (m *mux) hello(c *tracked) (*peer.Conn, error) {
	deadline := time.Now().Add(greeting)
	c.SetDeadline(deadline)
	var first [1]byte
	if _, err := c.Read(first[:]); err != nil {
		return nil, err
	}
	if first[0] == peer.Magic[0] {
		return peer.Accept(c, first[:], m.n.o.Addr, m.secret(), func(h *peer.Hello) error {
			c.from = h.From
			return m.admits(c, h.Purpose)
		}, deadline)
	}
	if m.secret() != "" {
		return nil, errOldForm
	}
	conn, err := old.Accept(c, first[0], deadline)
	if err == nil {
		err = m.admits(c, conn.Purpose())
	}
	return conn, err
}

var (
	errNotAdmitted = &peer.Error{Code: peer.NotAdmitted, Text: "the server does not take part in its group yet"}
	errPurpose     = &peer.Error{Code: peer.BadPurpose, Text: "the server has no connections of this purpose"}
)

// admits returns an error if a connection of a purpose is refused.
func (m *mux) admits(c net.Conn, purpose peer.Purpose) error {
	if !m.trusts(c.RemoteAddr()) {
		return errStranger
	}
	switch purpose {
	case peer.Raft: // an empty server must not vote before the group allows it
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

// dial connects to another server. A server that does not know hellos is dialled again in the old form.
func (m *mux) dial(addr string, purpose peer.Purpose, timeout time.Duration) (*peer.Conn, error) {
	deadline := time.Now().Add(timeout)
	known := m.old.Has(addr) && m.secret() == ""
	if !known {
		raw, err := m.connect(addr, deadline)
		if err != nil {
			return nil, err
		}
		conn, err := peer.Open(raw, purpose, m.n.o.Addr, addr, m.secret(), deadline)
		if err == nil {
			m.link(raw, purpose, addr, true)
			return conn, nil
		}
		raw.Close()
		if !errors.Is(err, peer.ErrOld) || m.secret() != "" {
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
	m.link(raw, purpose, addr, true)
	return conn, nil
}

// connect opens a connection that is closed with the mux.
func (m *mux) connect(addr string, deadline time.Time) (*tracked, error) {
	since := time.Now()
	c, err := m.n.o.Dial(addr, time.Until(deadline))
	if err != nil {
		return nil, err
	}
	if !m.keep(c) {
		return nil, net.ErrClosed
	}
	return &tracked{Conn: c, m: m, since: since}, nil
}

// tracked is a connection that is closed with the mux. Raft leaves some open when it ends.
type tracked struct {
	net.Conn
	m     *mux
	from  string       // the name in its hello, "" if it has none
	since time.Time    // it was accepted, or dialled
	heard atomic.Int64 // time of the last read, in ns since 1970
	first atomic.Bool  // the next read has a deadline
	// accepted says that the hello was accepted, with its proof if there is a secret.
	accepted atomic.Bool
}

// goesBefore reports whether a connection is closed before another one if there are too many.
func (c *tracked) goesBefore(other *tracked) bool {
	if accepted := c.accepted.Load(); accepted != other.accepted.Load() {
		return !accepted
	}
	return c.heard.Load() < other.heard.Load()
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

// Addr implements net.Listener: it is the server's address for peers.
func (s *stream) Addr() net.Addr { return address(s.m.n.o.Addr) }

// Dial implements consensus.StreamLayer.
func (s *stream) Dial(addr consensus.ServerAddress, timeout time.Duration) (net.Conn, error) {
	conn, err := s.m.dial(nameAt(addr), peer.Raft, timeout)
	if err != nil {
		return nil, err
	}
	return conn.Raw(), nil
}

// address is an unresolved address.
type address string

func (a address) Network() string { return "tcp" }
func (a address) String() string  { return string(a) }
