package server

import (
	"crypto/tls"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/atomredis/atomredis/internal/transport"
)

// doorListener accepts the peers of a door, but for those that a listener of the server would not accept either.
type doorListener struct {
	net.Listener
	d *openDoor
}

// Accept implements net.Listener.
func (l *doorListener) Accept() (net.Conn, error) {
	for {
		conn, err := transport.Accept(l.Listener, (*transportHost)(l.d.srv), l.d.ending)
		if err != nil {
			return nil, err
		}
		if conn = l.d.admit(conn); conn != nil {
			return conn, nil
		}
	}
}

// admit returns the connection as the door sees it, or closes it and returns nil.
func (d *openDoor) admit(conn net.Conn) net.Conn {
	d.accepted.Add(1)
	srv, loopback := d.srv, true
	set := srv.config.Get()
	if a, ok := conn.RemoteAddr().(*net.TCPAddr); ok {
		loopback = a.IP.IsLoopback()
		transport.KeepAlive(conn, time.Duration(set.TCPKeepAlive)*time.Second)
	}
	count := srv.sessions.Clients.Len()
	if conns := srv.doors.conns.Load(); conns >= srv.maxDoorClients() {
		count = srv.MaxClients() // they leave the others to clients of Redis
	}
	protected := !d.kind.Authenticates && set.ProtectedMode
	if d.kind.PortDirective != "" {
		protected = protected && !srv.users.Default().User().NeedsPassword()
	}
	if srv.refuse(count, !loopback && protected) != "" {
		d.refused.Add(1)
		conn.Close()
		return nil
	}
	if srv.sessions.Hook != nil {
		conn = srv.sessions.Hook.Conn(conn, nil)
	}
	srv.doors.conns.Add(1)
	d.conns.Add(1)
	c := &doorConn{Conn: conn, d: d}
	if set.DoorTLS(d.kind) {
		c.secure = tls.Server(conn, srv.tls.Server())
		c.Conn = c.secure
	}
	return c
}

// doorConn is the connection of a door's peer. It counts bytes, and has a handshake of TLS end in time.
type doorConn struct {
	net.Conn
	d      *openDoor
	secure *tls.Conn // Conn; nil without TLS
	shake  sync.Once
	failed error // of the handshake
	closed atomic.Bool
}

// ready returns when bytes can be sent and received.
func (c *doorConn) ready() error {
	if c.secure == nil {
		return nil
	}
	c.shake.Do(func() { c.failed = transport.Handshake(c.secure, (*transportHost)(c.d.srv)) })
	return c.failed
}

// Read implements net.Conn.
func (c *doorConn) Read(b []byte) (int, error) {
	if err := c.ready(); err != nil {
		return 0, err
	}
	n, err := c.Conn.Read(b)
	c.d.bytesIn.Add(int64(n))
	c.d.srv.sessions.Counters.BytesIn.Add(int64(n))
	return n, err
}

// Write implements net.Conn.
func (c *doorConn) Write(b []byte) (int, error) {
	if err := c.ready(); err != nil {
		return 0, err
	}
	n, err := c.Conn.Write(b)
	c.d.bytesOut.Add(int64(n))
	c.d.srv.stats.doorsOut.Add(int64(n))
	return n, err
}

// Close implements net.Conn.
func (c *doorConn) Close() error {
	if !c.closed.Swap(true) {
		c.d.conns.Add(-1)
		c.d.srv.doors.conns.Add(-1)
	}
	return c.Conn.Close()
}
