package raft

import (
	"crypto/tls"
	"errors"
	"net"
	"sync"
	"sync/atomic"
	"time"

	consensus "github.com/hashicorp/raft"
)

// Purposes of connections, told by their first byte.
const (
	forRaft      = 'R'
	forQuestions = 'Q'
	forServer    = 'S' // what Options.Serve takes
)

// greeting is the timeout for the first byte of a connection.
const greeting = 5 * time.Second

// mux takes the connections of peers.
type mux struct {
	n        *Node
	listener net.Listener
	raft     *stream

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
func (n *Node) Detach(conn net.Conn) {
	if c, ok := conn.(*tracked); ok {
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

// greet gives a connection to whom it is for.
func (m *mux) greet(c *tracked) {
	var what [1]byte
	c.SetDeadline(time.Now().Add(greeting))
	if _, err := c.Read(what[:]); err != nil {
		c.Close()
		return
	}
	switch what[0] {
	case forRaft:
		c.SetWriteDeadline(time.Time{})
		c.first.Store(true)        // it must say more in the time that it has
		if !m.n.peers.admitted() { // a server that knows nothing must not vote before the group has said that it may
			c.Close()
			return
		}
		select {
		case m.raft.accepted <- c:
		case <-m.n.stop:
			c.Close()
		}
	case forQuestions:
		defer c.Close()
		m.n.peers.answer(c)
	case forServer:
		defer c.Close()
		if m.n.o.Serve != nil {
			m.n.o.Serve(c) // which sets deadlines of its own
		}
	default:
		c.Close()
	}
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

// dial connects to a peer.
func (m *mux) dial(addr string, what byte, timeout time.Duration) (net.Conn, error) {
	c, err := m.n.o.Dial(addr, timeout)
	if err != nil {
		return nil, err
	}
	if !m.keep(c) {
		return nil, net.ErrClosed
	}
	c = &tracked{Conn: c, m: m}
	c.SetDeadline(time.Now().Add(timeout))
	if _, err := c.Write([]byte{what}); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	c.SetDeadline(time.Time{})
	return c, nil
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
	return s.m.dial(string(addr), forRaft, timeout)
}

// address is one that is not resolved.
type address string

func (a address) Network() string { return "tcp" }
func (a address) String() string  { return string(a) }
