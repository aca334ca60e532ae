package chaos

import (
	"errors"
	"net"
	"sync"
	"time"

	"github.com/atomredis/atomredis/internal/memconn"
)

// network connects the servers of a group in memory, and can be cut between any two, in both directions or in one.
type network struct {
	mu        sync.Mutex
	listeners map[string]*listener
	cuts      map[link]bool
	isolated  map[string]int // by address: how often it was isolated; what was connected before hears nothing any more
	conns     map[*conn]bool
}

// link is a direction between two servers.
type link struct{ from, to string }

func newNetwork() *network {
	return &network{listeners: map[string]*listener{}, cuts: map[link]bool{}, isolated: map[string]int{},
		conns: map[*conn]bool{}}
}

var errUnreachable = errors.New("unreachable")

// listen returns where the server with an address takes connections.
func (n *network) listen(addr string) net.Listener {
	n.mu.Lock()
	defer n.mu.Unlock()
	l := &listener{n: n, addr: addr, accepted: make(chan net.Conn), closed: make(chan struct{})}
	n.listeners[addr] = l
	return l
}

// dialer returns how that server connects to others.
func (n *network) dialer(from string) func(to string, timeout time.Duration) (net.Conn, error) {
	n.mu.Lock()
	born := n.isolated[from]
	n.mu.Unlock()
	return func(to string, timeout time.Duration) (net.Conn, error) {
		n.mu.Lock()
		l := n.listeners[to]
		gone := l == nil || n.cuts[link{from, to}] || n.cuts[link{to, from}] || n.isolated[from] != born
		n.mu.Unlock()
		if gone {
			return nil, errUnreachable
		}
		here, there := memconn.Pipe(0)
		a := &conn{Conn: here, n: n, link: link{from, to}}
		b := &conn{Conn: there, n: n, link: link{to, from}}
		n.mu.Lock()
		n.conns[a], n.conns[b] = true, true
		n.mu.Unlock()
		select {
		case l.accepted <- b:
			return a, nil
		case <-l.closed:
		case <-time.After(timeout):
		}
		a.Close()
		b.Close()
		return nil, errUnreachable
	}
}

// cut has nothing arrive any more from one server at another.
func (n *network) cut(from, to string) {
	n.mu.Lock()
	n.cuts[link{from, to}] = true
	n.mu.Unlock()
}

// heal ends all cuts. Connections of which something got lost break.
func (n *network) heal() {
	n.mu.Lock()
	clear(n.cuts)
	var broken []*conn
	for c := range n.conns {
		if c.lost {
			broken = append(broken, c)
		}
	}
	n.mu.Unlock()
	for _, c := range broken {
		c.Close()
	}
}

// isolate has a server that is about to crash neither hear nor say anything any more.
func (n *network) isolate(addr string) {
	n.mu.Lock()
	n.isolated[addr]++
	delete(n.listeners, addr)
	var all []*conn
	for c := range n.conns {
		if c.link.from == addr || c.link.to == addr {
			c.dead = true
			all = append(all, c)
		}
	}
	n.mu.Unlock()
	for _, c := range all {
		c.Close()
	}
}

// conn is one end of a connection.
type conn struct {
	net.Conn
	n    *network
	link link // from this end to the other
	lost bool // protected by network.mu: something was swallowed
	dead bool // likewise: an end has crashed
}

// Write implements net.Conn. What is sent over a cut link is lost without notice.
func (c *conn) Write(b []byte) (int, error) {
	c.n.mu.Lock()
	lost := c.n.cuts[c.link] || c.lost || c.dead
	c.lost = lost
	c.n.mu.Unlock()
	if lost {
		return len(b), nil
	}
	return c.Conn.Write(b)
}

// Read implements net.Conn. An end of a server that has crashed hears nothing, not even what had arrived.
func (c *conn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	c.n.mu.Lock()
	defer c.n.mu.Unlock()
	if c.dead {
		return 0, net.ErrClosed
	}
	return n, err
}

// Close implements net.Conn.
func (c *conn) Close() error {
	c.n.mu.Lock()
	delete(c.n.conns, c)
	c.n.mu.Unlock()
	return c.Conn.Close()
}

// listener is where a server takes connections.
type listener struct {
	n        *network
	addr     string
	accepted chan net.Conn
	closed   chan struct{}
	once     sync.Once
}

// Accept implements net.Listener.
func (l *listener) Accept() (net.Conn, error) {
	select {
	case c := <-l.accepted:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener.
func (l *listener) Close() error {
	l.once.Do(func() {
		close(l.closed)
		l.n.mu.Lock()
		if l.n.listeners[l.addr] == l {
			delete(l.n.listeners, l.addr)
		}
		l.n.mu.Unlock()
	})
	return nil
}

// Addr implements net.Listener.
func (l *listener) Addr() net.Addr { return memconn.Addr{} }
