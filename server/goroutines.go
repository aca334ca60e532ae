package server

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"os"
	"sync"
	"time"

	"github.com/atomredis/atomredis/door"
	"github.com/atomredis/atomredis/engine"
	"github.com/atomredis/atomredis/internal/buffers"
	"github.com/atomredis/atomredis/internal/memconn"
)

// goroutines is the transport that serves every client with two goroutines, a reader and a writer, for systems without
// event loops and for connections that are no sockets.
type goroutines struct {
	srv *Server
	wg  sync.WaitGroup

	mu     sync.Mutex
	conns  map[*stream]struct{}
	closed chan struct{} // closed under mu by close: nobody is accepted any more
}

// stream is one client's connection.
type stream struct {
	owner  *goroutines
	conn   net.Conn
	secure *tls.Conn     // under conn; nil without TLS
	signal chan struct{} // the session has mail, or output, or the reader has ended

	mu      sync.Mutex // protects what follows, and the session's owner-only state
	session *Session
	gone    bool // the client has hung up
	timer   engine.Timer
	armed   int64
}

func newGoroutines(srv *Server) *goroutines {
	return &goroutines{srv: srv, conns: map[*stream]struct{}{}, closed: make(chan struct{})}
}

// listen accepts clients in a goroutine.
func (t *goroutines) listen(l net.Listener) (stop func(), err error) {
	t.wg.Add(1)
	go func() {
		defer t.wg.Done()
		for {
			conn, err := l.Accept()
			if err == nil {
				t.accept(conn) // which fails only when the server is being closed
				continue
			}
			if errors.Is(err, net.ErrClosed) || !t.srv.pauseAccepting(err, t.closed) {
				return
			}
		}
	}()
	return func() { l.Close() }, nil
}

// pauseAccepting waits for a second after a failure to accept clients: out of files, most likely, and to ask again at
// once would only spin. It returns false if closed is closed meanwhile.
func (srv *Server) pauseAccepting(err error, closed <-chan struct{}) bool {
	over := make(chan struct{})
	timer := srv.ks.Clock().AfterFunc(time.Second, func() { close(over) })
	defer timer.Stop()
	srv.log.Warn("cannot accept clients for a second", "error", err)
	select {
	case <-over:
		return true
	case <-closed:
		return false
	}
}

// accept serves a client that has connected. The error is door.ErrClosed if the server is closed.
func (t *goroutines) accept(conn net.Conn) error {
	loopback, isSocket := true, true
	peer := Peer{Addr: conn.RemoteAddr().String(), Local: conn.LocalAddr().String()}
	switch a := conn.RemoteAddr().(type) {
	case *net.TCPAddr:
		loopback = a.IP.IsLoopback()
		t.keepAlive(conn)
	case *net.UnixAddr:
		peer.Addr, peer.Local = peer.Local+":0", peer.Local+":0"
	case memconn.Addr:
		peer, isSocket = embeddedPeer, false
	}
	if refusal := t.refuse(loopback, isSocket); refusal != "" {
		return t.turnAway(conn, refusal)
	}
	secure, _ := conn.(*tls.Conn)
	if t.srv.hook != nil {
		conn = t.srv.hook.Conn(conn)
	}
	c := &stream{owner: t, conn: conn, secure: secure, signal: make(chan struct{}, 1)}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.isClosed() {
		conn.Close()
		return door.ErrClosed
	}
	c.session = t.srv.newSession(peer, c.wake)
	t.conns[c] = struct{}{}
	t.wg.Add(2)
	go c.read()
	go c.write()
	return nil
}

// turnAway tells a client that it is not welcome, in the background: with TLS a handshake comes first, which must not
// hold up others.
func (t *goroutines) turnAway(conn net.Conn, refusal string) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.isClosed() {
		conn.Close()
		return door.ErrClosed
	}
	t.wg.Go(func() {
		conn.SetDeadline(time.Now().Add(patience))
		conn.Write([]byte("-" + refusal + "\r\n"))
		conn.Close()
	})
	return nil
}

// keepAlive has the system find out whether a client that says nothing is still there.
func (t *goroutines) keepAlive(conn net.Conn) {
	if secure, ok := conn.(*tls.Conn); ok {
		conn = secure.NetConn()
	}
	if tcp, ok := conn.(*net.TCPConn); ok {
		if seconds := t.srv.config.Get().TCPKeepAlive; seconds > 0 {
			every := time.Duration(seconds) * time.Second
			tcp.SetKeepAliveConfig(net.KeepAliveConfig{Enable: true, Idle: every, Interval: every / 3, Count: 3})
		}
	}
}

// refuse returns the error with which a new connection is turned away, "" if it is welcome. One in memory needs no
// file.
func (t *goroutines) refuse(loopback, isSocket bool) string {
	srv := t.srv
	if isSocket || srv.clients.count.Load() >= int64(srv.config.Get().MaxClients) {
		return srv.refuseClient(loopback)
	}
	srv.stats.connections.Add(1)
	return ""
}

// storageChanged implements transport.
func (t *goroutines) storageChanged() {
	t.mu.Lock()
	defer t.mu.Unlock()
	for c := range t.conns {
		c.wake()
	}
}

// isClosed reports that close has been called.
func (t *goroutines) isClosed() bool {
	select {
	case <-t.closed:
		return true
	default:
		return false
	}
}

// close disconnects all clients and waits for their goroutines. The listeners are closed already.
func (t *goroutines) close() {
	t.mu.Lock()
	close(t.closed)
	for c := range t.conns {
		c.conn.SetReadDeadline(time.Unix(1, 0)) // ends the reader; the writer still sends what the client is ready to read
	}
	t.mu.Unlock()
	t.wg.Wait()
}

// wake makes the writer look at the session. It may be called under any lock.
func (c *stream) wake() {
	select {
	case c.signal <- struct{}{}:
	default:
	}
}

// handshakeTime is how long a client may take for the handshake of TLS: two round trips, and time for three lost
// packets (1, 2 and 4 s). Without a limit a client that never ends it holds one of maxclients for ever.
const handshakeTime = 10 * time.Second

// handshake makes a connection ready. One that takes too long is closed.
func (srv *Server) handshake(conn *tls.Conn) error {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	timer := srv.ks.Clock().AfterFunc(handshakeTime, cancel)
	defer timer.Stop()
	return conn.HandshakeContext(ctx)
}

func (c *stream) read() {
	defer c.owner.wg.Done()
	buf := make([]byte, 16*1024)
	var err error
	if c.secure != nil {
		err = c.owner.srv.handshake(c.secure)
	}
	for {
		n := 0
		if err == nil {
			n, err = c.conn.Read(buf)
		}
		c.mu.Lock()
		if n > 0 {
			c.owner.srv.stats.reads.Add(1)
			if !c.session.Closing() {
				c.session.Input(buf[:n], c.owner.srv.ks.Now())
			}
		}
		if err != nil {
			c.gone = true
		}
		c.mu.Unlock()
		c.wake()
		if err != nil {
			return
		}
	}
}

func (c *stream) write() {
	defer c.owner.wg.Done()
	var spare []byte
	srv := c.owner.srv
	check := srv.ks.Clock().AfterFunc(time.Second, c.wake)
	nextCheck := srv.ks.Now() + 1000
	for range c.signal {
		now := srv.ks.Now()
		c.mu.Lock()
		c.session.Advance(now)
		sendable := c.session.Sendable()
		all := c.session.Output()
		out := all[:sendable]
		c.session.SetOutput(append(spare[:0], all[sendable:]...))
		if c.owner.srv.storage.Storage != nil {
			c.owner.srv.storage.Kick()
		}
		end := c.gone || c.session.Closing() && sendable == len(all)
		if srv.overLimit(c.session, len(out)) {
			end, out = true, nil
		}
		if now >= nextCheck {
			end = end || srv.expired(c.session, now)
			nextCheck = now + 1000
			check = srv.ks.Clock().AfterFunc(time.Second, c.wake)
		}
		c.arm(now)
		c.mu.Unlock()
		if len(out) > 0 {
			if srv.hook != nil {
				srv.hook.Wait(context.Background(), c.session, false) // which has no error
			}
			n, err := c.send(out)
			srv.stats.writes.Add(1)
			srv.stats.bytesOut.Add(int64(n))
			end = end || err != nil
		}
		if spare = out; cap(spare) > maxReplyBuffer {
			buffers.Put(spare)
			spare = nil
		}
		if end {
			break
		}
	}
	check.Stop()
	c.mu.Lock()
	if c.timer != nil {
		c.timer.Stop()
	}
	c.session.abort()
	c.session.Close()
	c.mu.Unlock()
	c.conn.Close() // last, so that who sees it closed finds nothing of the client left
	c.owner.mu.Lock()
	delete(c.owner.conns, c)
	c.owner.mu.Unlock()
}

// patience is how long a client that does not read is waited for before it is asked whether there is still a reason to.
const patience = time.Second

// send writes to the client, and waits for it to read as long as the client may stay.
func (c *stream) send(out []byte) (sent int, err error) {
	for {
		c.conn.SetWriteDeadline(time.Now().Add(patience))
		n, err := c.conn.Write(out[sent:])
		sent += n
		if !errors.Is(err, os.ErrDeadlineExceeded) || c.givesUp(n, len(out)-sent) {
			return sent, err
		}
	}
}

// givesUp reports whether a client must be closed though it has not read all of its output: it has taken n bytes
// lately, and rest are still to be written.
func (c *stream) givesUp(n, rest int) bool {
	closed := c.owner.isClosed()
	c.mu.Lock()
	defer c.mu.Unlock()
	return closed || c.gone && n == 0 || c.session.dying() ||
		c.owner.srv.overLimit(c.session, rest+len(c.session.Output()))
}

// keepBuffer is the largest buffer that is kept for reuse where it is no client's reply buffer.
const keepBuffer = 64 * 1024

// arm wakes the writer when the session's deadline comes.
func (c *stream) arm(now int64) {
	at := c.session.Deadline()
	if at == 0 || c.timer != nil && c.armed == at {
		return
	}
	if c.timer != nil {
		c.timer.Stop()
	}
	c.armed = at
	c.timer = c.owner.srv.ks.Clock().AfterFunc(time.Duration(min(max(at-now, 0),
		int64(time.Hour/time.Millisecond)))*time.Millisecond, func() {
		c.mu.Lock()
		c.timer = nil
		c.mu.Unlock()
		c.wake()
	})
}
