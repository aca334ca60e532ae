package transport

import (
	"crypto/tls"
	"errors"
	"net"
	"os"
	"sync"
	"time"

	"github.com/atomredis/atomredis/internal/buffers"
)

// stream is one client's connection.
type stream struct {
	owner  *Goroutines
	conn   net.Conn
	secure *tls.Conn     // under conn; nil without TLS
	signal chan struct{} // the session has mail, or output, or the reader has ended

	mu      sync.Mutex // protects the following fields and the session's owner-only state
	session Session
	gone    bool // the client has disconnected
	timer   Timer
	armed   int64
}

// wake wakes the writer. It may be called under any lock.
func (c *stream) wake() {
	select {
	case c.signal <- struct{}{}:
	default:
	}
}

func (c *stream) read() {
	defer c.owner.wg.Done()
	buf := make([]byte, 16*1024)
	var err error
	if c.secure != nil {
		err = c.handshake()
	}
	for {
		n := 0
		if err == nil {
			n, err = c.conn.Read(buf)
		}
		c.mu.Lock()
		if n > 0 {
			c.owner.counters.Reads.Add(1)
			if !c.session.Closing() {
				c.session.Input(buf[:n], c.owner.host.Now())
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

// handshake makes the connection secure, and tells the session the client's certificate.
func (c *stream) handshake() error {
	if err := Handshake(c.secure, c.owner.host); err != nil {
		return err
	}
	if chains := c.secure.ConnectionState().VerifiedChains; len(chains) > 0 {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.session.Identify(chains[0][0])
	}
	return nil
}

func (c *stream) write() {
	defer c.owner.wg.Done()
	var spare []byte
	host, counters := c.owner.host, c.owner.counters
	check := host.AfterFunc(time.Second, c.wake)
	nextCheck := host.Now() + 1000
	for range c.signal {
		now := host.Now()
		c.mu.Lock()
		c.session.Advance(now)
		sendable := c.session.Sendable()
		all := c.session.Output()
		out := all[:sendable]
		c.session.SetOutput(append(spare[:0], all[sendable:]...))
		host.CommitSoon()
		end := c.gone || c.session.Closing() && sendable == len(all)
		if c.session.GiveUp(len(out)) {
			end, out = true, nil
		}
		if now >= nextCheck {
			end = end || c.session.Expired(now)
			nextCheck = now + 1000
			check = host.AfterFunc(time.Second, c.wake)
		}
		c.arm(now)
		c.mu.Unlock()
		if len(out) > 0 {
			n, err := c.send(out)
			counters.Writes.Add(1)
			counters.Sent.Add(int64(n))
			end = end || err != nil
		}
		if spare = out; cap(spare) > maxSpare {
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
	c.session.Abort()
	c.session.Close()
	c.mu.Unlock()
	c.conn.Close() // last, so that the client is removed completely before the peer sees the end
	c.owner.mu.Lock()
	delete(c.owner.conns, c)
	c.owner.counters.Clients.Add(-1)
	c.owner.mu.Unlock()
}

// maxSpare is the largest buffer that a writer keeps for its session's next output. Larger buffers are borrowed.
const maxSpare = 16 << 10

// writeTimeout is the time for which a write waits for a client that does not read before it checks whether to give
// up.
const writeTimeout = time.Second

// send writes to the client. It waits for the client to read unless givesUp.
func (c *stream) send(out []byte) (sent int, err error) {
	for {
		c.conn.SetWriteDeadline(time.Now().Add(writeTimeout))
		n, err := c.conn.Write(out[sent:])
		sent += n
		if !errors.Is(err, os.ErrDeadlineExceeded) || c.givesUp(n, len(out)-sent) {
			return sent, err
		}
	}
}

// givesUp reports whether a client must be closed although it has not read all of its output: it has read n bytes
// since the last check, and rest bytes are still to be written.
func (c *stream) givesUp(n, rest int) bool {
	closed := c.owner.isClosed()
	c.mu.Lock()
	defer c.mu.Unlock()
	return closed || c.gone && n == 0 || c.session.GiveUp(rest+len(c.session.Output()))
}

// arm sets the timer that wakes the writer at the session's deadline.
func (c *stream) arm(now int64) {
	at := c.session.Deadline()
	if at == 0 || c.timer != nil && c.armed == at {
		return
	}
	if c.timer != nil {
		c.timer.Stop()
	}
	c.armed = at
	c.timer = c.owner.host.AfterFunc(sleep(at-now), func() {
		c.mu.Lock()
		c.timer = nil
		c.mu.Unlock()
		c.wake()
	})
}
