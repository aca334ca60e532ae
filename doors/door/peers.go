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

// Peers serves the connections of a door. Each has a client and goroutines of its own, and all of that ends together:
// when the peer hangs up, when the client is killed, when a goroutine panics, and with Close. A connection on which no
// request has arrived in the time of Host.FirstRequest is closed; the door says that one has with Conn.Requested.
type Peers struct {
	// Host makes the clients.
	Host Host
	// Peer serves a connection until it returns. It should read all the time, also while a command waits: that is how a
	// peer that hangs up is noticed.
	Peer func(c *Conn)
	// Refuse tells a peer why it is not served; nil if the protocol has no words for it. It has a second.
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
	first  *time.Timer // closes the connection; nil if it may wait for ever
}

// RemoteAddr implements net.Conn. No two connections of a door have the same, also not of a Unix socket.
func (c *Conn) RemoteAddr() net.Addr { return c.remote }

// refusalTimeout is how long a peer may take to hear that it is not served.
const refusalTimeout = time.Second

// Serve is Door.Serve.
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

// Listener returns a listener for a library that accepts connections itself. They are *Conn; Peer is not called.
func (p *Peers) Listener(l net.Listener) net.Listener { return &peerListener{l, p} }

// Find returns the connection whose RemoteAddr is addr, for a library that tells of its connections only that; nil if
// there is none.
func (p *Peers) Find(addr string) *Conn {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.byAddr[addr]
}

// peerListener accepts connections that have clients.
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

// welcome gives a connection a client, or ends it and returns nil. serve, unless it is nil, is called in the
// background.
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

// forget forgets a connection that has ended.
func (p *Peers) forget(c *Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if addr := c.remote.String(); p.byAddr[addr] == c {
		delete(p.byAddr, addr)
	}
}

// turnAway ends a connection that is not served.
func (p *Peers) turnAway(conn net.Conn, why error) {
	defer conn.Close()
	if p.Refuse != nil {
		conn.SetDeadline(time.Now().Add(refusalTimeout))
		p.Refuse(conn, why)
	}
}

// Close is Door.Close.
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

// Requested says that a whole request has arrived. A peer whose client is admitted may be silent from then on; another
// one has the time for its next request that it had for the first. Any goroutine may call it.
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

// Go calls a function in a goroutine that Peers.Close waits for. It must return soon after the end of Context. Only
// goroutines that were begun so may call Go, and Peer.
func (c *Conn) Go(fn func()) {
	c.peers.wg.Go(func() { c.protect(fn) })
}

// protect calls a function. If it panics, which is a bug, nobody else suffers from it.
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
