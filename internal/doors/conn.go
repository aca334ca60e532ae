package doors

import (
	"crypto/tls"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/atomredis/atomredis/internal/transport"
)

// listener accepts the peers of a door. It refuses those that a listener of the server would refuse.
type listener struct {
	net.Listener
	d *openDoor
}

// Accept implements net.Listener.
func (l *listener) Accept() (net.Conn, error) {
	for {
		conn, err := transport.Accept(l.Listener, l.d.in.o.Transport, l.d.ending)
		if err != nil {
			return nil, err
		}
		if conn = l.d.admit(conn); conn != nil {
			return conn, nil
		}
	}
}

// admit wraps an admitted connection for the door; a refused one it closes, and returns nil.
func (d *openDoor) admit(conn net.Conn) net.Conn {
	d.accepted.Add(1)
	ds, sh, loopback := d.in, d.in.sh, true
	set := sh.Config.Get()
	if a, ok := conn.RemoteAddr().(*net.TCPAddr); ok {
		loopback = a.IP.IsLoopback()
		transport.KeepAlive(conn, time.Duration(set.Network.TCPKeepAlive)*time.Second)
	}
	count := sh.Clients.Len()
	if ds.conns.Load() >= ds.maxConns() {
		count = sh.Host.MaxClients() // doors leave the rest to Redis clients
	}
	protected := !d.kind.Authenticates && set.Network.ProtectedMode
	if d.kind.PortDirective != "" {
		protected = protected && !sh.Users.Default().User().NeedsPassword()
	}
	if ds.o.Host.Refuse(count, !loopback && protected) != "" {
		d.refused.Add(1)
		conn.Close()
		return nil
	}
	if sh.Hook != nil {
		conn = sh.Hook.Conn(conn, nil)
	}
	ds.conns.Add(1)
	d.conns.Add(1)
	c := &peerConn{Conn: conn, d: d}
	if set.DoorTLS(d.kind) {
		c.secure = tls.Server(conn, ds.o.TLS.Server())
		c.Conn = c.secure
	}
	return c
}

// peerConn is the connection of a door's peer. It counts bytes and limits the time of the TLS handshake.
type peerConn struct {
	net.Conn
	d      *openDoor
	secure *tls.Conn // Conn; nil without TLS
	shake  sync.Once
	failed error // of the handshake
	closed atomic.Bool
}

// ready returns when bytes can be sent and received.
func (c *peerConn) ready() error {
	if c.secure == nil {
		return nil
	}
	c.shake.Do(func() { c.failed = transport.Handshake(c.secure, c.d.in.o.Transport) })
	return c.failed
}

// Read implements net.Conn.
func (c *peerConn) Read(b []byte) (int, error) {
	if err := c.ready(); err != nil {
		return 0, err
	}
	n, err := c.Conn.Read(b)
	c.d.bytesIn.Add(int64(n))
	c.d.in.sh.Counters.BytesIn.Add(int64(n))
	return n, err
}

// Write implements net.Conn.
func (c *peerConn) Write(b []byte) (int, error) {
	if err := c.ready(); err != nil {
		return 0, err
	}
	n, err := c.Conn.Write(b)
	c.d.bytesOut.Add(int64(n))
	c.d.in.Sent.Add(int64(n))
	return n, err
}

// Close implements net.Conn.
func (c *peerConn) Close() error {
	if !c.closed.Swap(true) {
		c.d.conns.Add(-1)
		c.d.in.conns.Add(-1)
	}
	return c.Conn.Close()
}
