package door

import (
	"context"
	"errors"
	"fmt"
	"net"
	"runtime/debug"
	"sync"
	"time"
)

// Peers serves the connections of a door. Each connection has its own client and goroutines. They end together: when
// the peer disconnects, when the client is killed, when a goroutine panics, and with Close. A connection without a
// request within Host.FirstRequest is closed; the door reports a request with Conn.Requested.
type Peers struct {
	// Host makes the clients.
	Host Host
	// Peer serves a connection until it returns. It should read at all times, also while a command waits, to notice
	// that the peer disconnects.
	Peer func(c *Conn)
	// Refuse sends a peer the reason for a refusal, within a second; nil if the protocol has no message for that.
	Refuse func(conn net.Conn, why error)

	mu       sync.Mutex // protects what follows
	byAddr   map[string]*Conn
	accepted int
	closed   bool
	wg       sync.WaitGroup
}

// Conn is the connection of a peer.
type Conn struct {
	net.Conn
	// Client acts for the peer.
	Client *Client

	peers  *Peers
	ctx    context.Context
	remote net.Addr
	first  *time.Timer // closes the connection; nil without a limit
}

// RemoteAddr implements net.Conn. It is unique among the connections of a door, also on a Unix socket.
func (c *Conn) RemoteAddr() net.Addr { return c.remote }

// refusalTimeout is how long Refuse may take.
const refusalTimeout = time.Second

// Serve implements Door.Serve.
func (p *Peers) Serve(l net.Listener) error {
	for {
		conn, err := l.Accept()
		switch {
		case err == nil:
			p.welcome(conn, p.Peer)
		case errors.Is(err, net.ErrClosed):
			return nil
		default:
			return err
		}
	}
}

// Listener returns a listener for a library that accepts connections itself. Its connections are *Conn; Peer is not
// called.
func (p *Peers) Listener(l net.Listener) net.Listener { return &peerListener{l, p} }

// Find returns the connection whose RemoteAddr is addr, nil if there is none. It is for libraries that pass on only the
// address.
func (p *Peers) Find(addr string) *Conn {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.byAddr[addr]
}

// peerListener accepts connections and gives them clients.
type peerListener struct {
	net.Listener
	peers *Peers
}

// Accept implements net.Listener.
func (l *peerListener) Accept() (net.Conn, error) {
	for {
		conn, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if c := l.peers.welcome(conn, nil); c != nil {
			return c, nil
		}
	}
}

// welcome gives a connection a client, or closes it and returns nil. It starts serve, unless nil, on a goroutine.
func (p *Peers) welcome(conn net.Conn, serve func(c *Conn)) *Conn {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		conn.Close()
		return nil
	}
	client, err := p.Host.Client(PeerOf(conn))
	if err != nil {
		p.wg.Go(func() { p.turnAway(conn, err) })
		return nil
	}
	p.accepted++
	ctx, cancel := context.WithCancel(context.Background())
	c := &Conn{Conn: conn, Client: &client, peers: p, ctx: ctx, remote: conn.RemoteAddr()}
	if _, ok := c.remote.(*net.UnixAddr); ok {
		c.remote = &net.UnixAddr{Net: "unix", Name: fmt.Sprintf("%s#%d", conn.LocalAddr(), p.accepted)}
	}
	if p.byAddr == nil {
		p.byAddr = map[string]*Conn{}
	}
	p.byAddr[c.remote.String()] = c
	if d := p.Host.FirstRequest(); d > 0 {
		c.first = time.AfterFunc(d, func() { c.Close() })
	}
	p.wg.Go(func() {
		<-client.Done()
		cancel()
		if c.first != nil {
			c.first.Stop()
		}
		c.Close()
		p.forget(c)
	})
	if serve != nil {
		c.Go(func() {
			defer c.Close()
			serve(c)
		})
	}
	return c
}

// forget removes an ended connection.
func (p *Peers) forget(c *Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if addr := c.remote.String(); p.byAddr[addr] == c {
		delete(p.byAddr, addr)
	}
}

// turnAway refuses and closes a connection.
func (p *Peers) turnAway(conn net.Conn, why error) {
	defer conn.Close()
	if p.Refuse != nil {
		conn.SetDeadline(time.Now().Add(refusalTimeout))
		p.Refuse(conn, why)
	}
}

// Close implements Door.Close.
func (p *Peers) Close() error {
	p.mu.Lock()
	p.closed = true
	for _, c := range p.byAddr {
		c.Client.Close()
	}
	p.mu.Unlock()
	p.wg.Wait()
	return nil
}

// Requested reports that a whole request has arrived. A peer whose client is admitted may be silent from then on; any
// other peer gets the same time again for its next request. Any goroutine may call it.
func (c *Conn) Requested() {
	if c.first == nil {
		return
	}
	if c.Client.Admitted() {
		c.first.Stop()
	} else if d := c.peers.Host.FirstRequest(); d > 0 {
		c.first.Reset(d)
	}
}

// Context ends with the connection.
func (c *Conn) Context() context.Context { return c.ctx }

// Go calls a function on a goroutine that Peers.Close waits for. The function must return soon after the end of
// Context. Only Peers.Peer and functions that Go has started may call Go.
func (c *Conn) Go(fn func()) {
	c.peers.wg.Go(func() { c.protect(fn) })
}

// protect calls a function. A panic in it, which is a bug, ends only this connection.
func (c *Conn) protect(fn func()) {
	defer func() {
		if v := recover(); v != nil {
			c.peers.Host.Log().Error("a door has panicked and disconnects its peer", "peer", c.RemoteAddr().String(), "panic", v,
				"stack", string(debug.Stack()))
			c.Close()
		}
	}()
	fn()
}

// Close disconnects the peer and ends its client.
func (c *Conn) Close() error {
	c.Client.Close()
	return c.Conn.Close()
}
