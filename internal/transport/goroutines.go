package transport

import (
	"crypto/tls"
	"net"
	"sync"
	"time"

	"github.com/atomredis/atomredis/internal/memconn"
)

// Goroutines is the Transport that serves every client with two goroutines, a reader and a writer, for systems
// without event loops and for connections that are not sockets.
type Goroutines struct {
	host     Host
	counters *Counters
	wrap     func(net.Conn, Session) net.Conn
	wg       sync.WaitGroup

	mu     sync.Mutex
	conns  map[*stream]struct{}
	closed chan struct{} // closed under mu by Close: no connection is accepted any more
}

// NewGoroutines returns a transport without clients, which counts its work in c. If wrap is not nil it returns a
// replacement for each connection, for tests with failures.
func NewGoroutines(h Host, c *Counters, wrap func(net.Conn, Session) net.Conn) *Goroutines {
	return &Goroutines{host: h, counters: c, wrap: wrap, conns: map[*stream]struct{}{}, closed: make(chan struct{})}
}

// Listen implements Transport, for listeners of any kind.
func (t *Goroutines) Listen(l net.Listener) (stop func(), err error) {
	t.wg.Add(1)
	go func() {
		defer t.wg.Done()
		for {
			conn, err := Accept(l, t.host, t.closed)
			if err != nil {
				return
			}
			t.Serve(conn) // it fails only when the transport is being closed
		}
	}()
	return func() { l.Close() }, nil
}

// Serve serves the client of a connection of any kind in the background; the transport owns conn from now on. The
// error is net.ErrClosed if the transport is closed. A refused client gets the refusal and its connection is closed;
// that is not an error.
func (t *Goroutines) Serve(conn net.Conn) error {
	remote := false
	peer := Peer{Addr: conn.RemoteAddr().String(), Local: conn.LocalAddr().String()}
	switch a := conn.RemoteAddr().(type) {
	case *net.TCPAddr:
		remote = !a.IP.IsLoopback()
		KeepAlive(conn, t.host.KeepAlive())
	case *net.UnixAddr:
		peer.Addr, peer.Local = peer.Local+":0", peer.Local+":0"
	case memconn.Addr:
		peer = Embedded
	}
	if refusal := t.host.Refuse(peer, remote); refusal != "" {
		return t.turnAway(conn, refusal)
	}
	secure, _ := conn.(*tls.Conn)
	c := &stream{owner: t, conn: conn, secure: secure, signal: make(chan struct{}, 1)}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.isClosed() {
		conn.Close()
		return net.ErrClosed
	}
	c.session = t.host.Open(peer, c.wake)
	if t.wrap != nil {
		c.conn = t.wrap(conn, c.session)
	}
	t.conns[c] = struct{}{}
	t.counters.Clients.Add(1)
	t.wg.Add(2)
	go c.read()
	go c.write()
	return nil
}

// turnAway sends a client the refusal in the background, because with TLS a handshake comes first, which must not
// delay others.
func (t *Goroutines) turnAway(conn net.Conn, refusal string) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.isClosed() {
		conn.Close()
		return net.ErrClosed
	}
	t.wg.Go(func() {
		conn.SetDeadline(time.Now().Add(writeTimeout))
		conn.Write([]byte(refusal))
		conn.Close()
	})
	return nil
}

// Recheck implements Transport.
func (t *Goroutines) Recheck() {
	t.mu.Lock()
	defer t.mu.Unlock()
	for c := range t.conns {
		c.wake()
	}
}

// isClosed reports whether Close has been called.
func (t *Goroutines) isClosed() bool {
	select {
	case <-t.closed:
		return true
	default:
		return false
	}
}

// Close implements Transport.
func (t *Goroutines) Close() {
	t.mu.Lock()
	close(t.closed)
	for c := range t.conns {
		c.conn.SetReadDeadline(time.Unix(1, 0)) // ends the reader; the writer still sends the output that the client reads
	}
	t.mu.Unlock()
	t.wg.Wait()
}
