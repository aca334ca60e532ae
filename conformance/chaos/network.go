package chaos

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"net"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/atomredis/atomredis/internal/memconn"
)

// network connects the servers of a group in memory. Every message takes a while; servers can be cut off from each
// other, in both directions or in one, and connections break.
type network struct {
	mu        sync.Mutex
	rnd       *rand.Rand
	listeners map[string]*listener
	cuts      map[link]bool
	slow      map[string]time.Duration // by address: the longest delay of its messages
	isolated  map[string]int           // by address: how often it was isolated; older connections receive nothing any more
	conns     map[*conn]bool
	packets   atomic.Int64 // sent between servers
	running   sync.WaitGroup
}

// link is a direction between two servers.
type link struct{ from, to string }

// usualDelay is the longest delay of a message if nothing is wrong.
const usualDelay = time.Millisecond

func newNetwork(rnd *rand.Rand) *network {
	return &network{rnd: rnd, listeners: map[string]*listener{}, cuts: map[link]bool{}, slow: map[string]time.Duration{},
		isolated: map[string]int{}, conns: map[*conn]bool{}}
}

var errUnreachable = errors.New("unreachable")

// listen returns the listener of the server with an address.
func (n *network) listen(addr string) net.Listener {
	n.mu.Lock()
	defer n.mu.Unlock()
	l := &listener{n: n, addr: addr, accepted: make(chan net.Conn), closed: make(chan struct{})}
	n.listeners[addr] = l
	return l
}

// dialer returns the function with which that server connects to others.
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
		a, b := newConn(n, here, link{from, to}), newConn(n, there, link{to, from})
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

// cut makes one server's messages to another disappear.
func (n *network) cut(from, to string) {
	n.mu.Lock()
	n.cuts[link{from, to}] = true
	n.mu.Unlock()
}

// delay makes a server's messages take up to most to arrive.
func (n *network) delay(from string, most time.Duration) {
	n.mu.Lock()
	n.slow[from] = most
	n.mu.Unlock()
}

// heal ends all cuts and delays. Connections that lost messages break.
func (n *network) heal() {
	n.mu.Lock()
	clear(n.cuts)
	clear(n.slow)
	n.mu.Unlock()
	n.breakConns(func(c *conn) bool { return c.lost })
}

// reset breaks about half of the connections between servers.
func (n *network) reset() { n.breakConns(func(*conn) bool { return n.rnd.IntN(2) == 0 }) }

// close breaks all remaining connections, and waits until no message is under way.
func (n *network) close() {
	n.breakConns(func(*conn) bool { return true })
	n.running.Wait()
}

func (n *network) breakConns(which func(c *conn) bool) {
	n.mu.Lock()
	var broken []*conn
	for c := range n.conns {
		if which(c) {
			broken = append(broken, c)
		}
	}
	n.mu.Unlock()
	for _, c := range broken {
		c.Close()
	}
}

// isolate makes a server that is about to crash neither receive nor send anything any more.
func (n *network) isolate(addr string) {
	n.mu.Lock()
	n.isolated[addr]++
	delete(n.listeners, addr)
	n.mu.Unlock()
	n.breakConns(func(c *conn) bool {
		ends := c.link.from == addr || c.link.to == addr
		c.dead = c.dead || ends
		return ends
	})
}

// conn is one end of a connection.
type conn struct {
	net.Conn
	n      *network
	link   link        // from this end to the other
	sent   chan packet // messages under way
	closed chan struct{}
	once   sync.Once
	lost   bool // protected by network.mu: something was lost
	dead   bool // likewise: an end has crashed
}

// packet is a message under way, and its time of arrival.
type packet struct {
	data []byte
	due  time.Time
}

const (
	maxPackets = 1024            // under way on a connection
	stuck      = 5 * time.Second // how long a peer may go without reading
)

func newConn(n *network, nc net.Conn, l link) *conn {
	c := &conn{Conn: nc, n: n, link: l, sent: make(chan packet, maxPackets), closed: make(chan struct{})}
	n.mu.Lock()
	n.conns[c] = true
	n.mu.Unlock()
	n.running.Go(c.deliver)
	return c
}

// deliver delivers the sent packets, one after the other, until the end is closed, including those sent before that.
func (c *conn) deliver() {
	defer c.Conn.Close()
	for {
		var p packet
		select {
		case p = <-c.sent:
		default:
			select {
			case p = <-c.sent:
			case <-c.closed:
				return
			}
		}
		time.Sleep(time.Until(p.due))
		c.n.mu.Lock()
		lost := c.lost || c.dead || c.n.cuts[c.link]
		c.lost = lost
		c.n.mu.Unlock()
		if lost {
			continue
		}
		c.Conn.SetWriteDeadline(time.Now().Add(stuck))
		if _, err := c.Conn.Write(p.data); err != nil {
			c.Close()
			return
		}
	}
}

// Write implements net.Conn. Bytes sent over a cut link are lost without notice.
func (c *conn) Write(b []byte) (int, error) {
	c.n.mu.Lock()
	most := max(c.n.slow[c.link.from], usualDelay)
	due := time.Now().Add(time.Duration(c.n.rnd.Int64N(int64(most))))
	c.n.mu.Unlock()
	if !strings.Contains(c.link.from+c.link.to, "client") {
		c.n.packets.Add(1)
	}
	select {
	case c.sent <- packet{bytes.Clone(b), due}:
		return len(b), nil
	case <-c.closed:
		return 0, net.ErrClosed
	case <-time.After(stuck):
		return 0, os.ErrDeadlineExceeded
	}
}

// Read implements net.Conn. An end of a crashed server receives nothing, not even bytes that had arrived.
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
	c.once.Do(func() {
		c.n.mu.Lock()
		delete(c.n.conns, c)
		c.n.mu.Unlock()
		close(c.closed)
		c.Conn.SetReadDeadline(time.Unix(1, 0)) // wakes readers at this end at once
	})
	return nil
}

// listener accepts connections for a server.
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
