package door

import (
	"context"
	"errors"
	"net"
	"runtime/debug"
	"sync"
	"time"
)

// Peers serves the connections of a door. Each has a client and goroutines of its own, and all of that ends together:
// when the peer hangs up, when the client is killed, when a goroutine panics, and with Close.
type Peers struct {
	// Host makes the clients.
	Host Host
	// Peer serves a connection until it returns. It should read all the time, also while a command waits: that is how a
	// peer that hangs up is noticed.
	Peer func(c *Conn)
	// Refuse tells a peer why it is not served; nil if the protocol has no words for it. It has a second.
	Refuse func(conn net.Conn, why error)

	mu     sync.Mutex // protects what follows
	all    map[*Conn]struct{}
	closed bool
	wg     sync.WaitGroup
}

// Conn is the connection of a peer.
type Conn struct {
	net.Conn
	// Client acts for the peer.
	Client *Client

	peers *Peers
	ctx   context.Context
}

// patience is how long a peer may take to hear that it is not served.
const patience = time.Second

// Serve is Door.Serve.
func (p *Peers) Serve(l net.Listener) error {
	for {
		conn, err := l.Accept()
		switch {
		case err == nil:
			p.welcome(conn)
		case errors.Is(err, net.ErrClosed):
			return nil
		default:
			return err
		}
	}
}

// welcome begins to serve a connection.
func (p *Peers) welcome(conn net.Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		conn.Close()
		return
	}
	client, err := p.Host.Client(PeerOf(conn))
	if err != nil {
		p.wg.Go(func() { p.turnAway(conn, err) })
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	c := &Conn{Conn: conn, Client: &client, peers: p, ctx: ctx}
	if p.all == nil {
		p.all = map[*Conn]struct{}{}
	}
	p.all[c] = struct{}{}
	p.wg.Go(func() {
		defer cancel()
		<-client.Done()
		c.Close()
		p.mu.Lock()
		delete(p.all, c)
		p.mu.Unlock()
	})
	p.wg.Go(func() {
		defer c.Close()
		c.protect(func() { p.Peer(c) })
	})
}

// turnAway ends a connection that is not served.
func (p *Peers) turnAway(conn net.Conn, why error) {
	defer conn.Close()
	if p.Refuse != nil {
		conn.SetDeadline(time.Now().Add(patience))
		p.Refuse(conn, why)
	}
}

// Close is Door.Close.
func (p *Peers) Close() error {
	p.mu.Lock()
	p.closed = true
	for c := range p.all {
		c.Client.Close()
	}
	p.mu.Unlock()
	p.wg.Wait()
	return nil
}

// Context ends with the connection.
func (c *Conn) Context() context.Context { return c.ctx }

// Go calls a function in a goroutine that Peers.Close waits for. It must return soon after the end of Context.
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
