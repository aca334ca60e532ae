// Package memconn is a connection in memory: a net.Conn at both ends, with a buffer for each direction, deadlines,
// and ends that close as those of a TCP connection do. It uses no port, no file and no goroutine, and waiting on it
// is durable blocking in the sense of testing/synctest.
package memconn

import (
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"syscall"
	"time"
)

// DefaultBuffer is the default limit of buffered bytes in each direction.
const DefaultBuffer = 64 << 10

// Addr is the address of both ends of every connection.
type Addr struct{}

// Network returns "memory".
func (Addr) Network() string { return "memory" }

// String returns "memory".
func (Addr) String() string { return "memory" }

// Pipe returns the two ends of a new connection. Bytes written to one can be read from the other. buffer is the
// number of bytes in each direction after which writers block, DefaultBuffer if it is 0.
func Pipe(buffer int) (*Conn, *Conn) {
	if buffer <= 0 {
		buffer = DefaultBuffer
	}
	there, back := newFlow(buffer), newFlow(buffer)
	return &Conn{in: back, out: there}, &Conn{in: there, out: back}
}

// Conn is one end of a connection. Any goroutine may call its methods. Errors other than io.EOF are *net.OpError
// with os.ErrDeadlineExceeded (a net.Error whose Timeout is true), with net.ErrClosed after Close at this end, or
// with syscall.EPIPE when the other end does not read any more.
type Conn struct{ in, out *flow }

// Read returns bytes that the other end has written, and io.EOF once that end has closed and everything has been
// read.
func (c *Conn) Read(b []byte) (int, error) {
	n, err := c.in.read(b)
	return n, opError("read", err)
}

// Write returns when all of b is in the buffer. If it fails, the first n bytes are.
func (c *Conn) Write(b []byte) (n int, err error) {
	n, err = c.out.write(b)
	return n, opError("write", err)
}

// Close ends both directions. The other end can still read what was written before; its own unread bytes are
// dropped.
func (c *Conn) Close() error {
	c.in.closeReader()
	c.out.closeWriter()
	return nil
}

// CloseWrite ends writing: the other end reads io.EOF after the buffered bytes.
func (c *Conn) CloseWrite() error {
	c.out.closeWriter()
	return nil
}

// CloseRead ends reading: the other end cannot write any more.
func (c *Conn) CloseRead() error {
	c.in.closeReader()
	return nil
}

// LocalAddr returns Addr{}.
func (c *Conn) LocalAddr() net.Addr { return Addr{} }

// RemoteAddr returns Addr{}.
func (c *Conn) RemoteAddr() net.Addr { return Addr{} }

// SetDeadline sets the time after which reads and writes fail, including blocked ones; the zero time is never.
func (c *Conn) SetDeadline(t time.Time) error {
	return errors.Join(c.SetReadDeadline(t), c.SetWriteDeadline(t))
}

// SetReadDeadline is SetDeadline for reads only.
func (c *Conn) SetReadDeadline(t time.Time) error {
	return opError("set", c.in.setDeadline(&c.in.reader, t))
}

// SetWriteDeadline is SetDeadline for writes only.
func (c *Conn) SetWriteDeadline(t time.Time) error {
	return opError("set", c.out.setDeadline(&c.out.writer, t))
}

func opError(op string, err error) error {
	if err == nil || err == io.EOF {
		return err
	}
	return &net.OpError{Op: op, Net: "memory", Source: Addr{}, Addr: Addr{}, Err: err}
}

// flow is one direction. The unread bytes are buf[start:]; there are never more than limit.
type flow struct {
	mu             sync.Mutex // protects the fields below
	buf            []byte
	start, limit   int
	reader, writer side
}

// side is the reader or the writer of a flow.
type side struct {
	changed  sync.Cond // a condition of this side may have changed
	closed   bool
	deadline time.Time
	timer    *time.Timer // wakes waiters at the deadline; nil until first needed
	waiting  int
}

func newFlow(limit int) *flow {
	f := &flow{limit: limit}
	f.reader.changed.L, f.writer.changed.L = &f.mu, &f.mu
	return f
}

func (f *flow) read(b []byte) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for {
		switch {
		case f.reader.closed:
			return 0, net.ErrClosed
		case f.reader.expired():
			return 0, os.ErrDeadlineExceeded
		case len(b) == 0:
			return 0, nil
		case f.start < len(f.buf):
			n := copy(b, f.buf[f.start:])
			if f.start += n; f.start == len(f.buf) {
				f.buf, f.start = f.buf[:0], 0
			}
			f.writer.changed.Broadcast()
			return n, nil
		case f.writer.closed:
			return 0, io.EOF
		}
		f.wait(&f.reader)
	}
}

func (f *flow) write(b []byte) (n int, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for {
		switch {
		case f.writer.closed:
			return n, net.ErrClosed
		case f.writer.expired():
			return n, os.ErrDeadlineExceeded
		case f.reader.closed:
			return n, syscall.EPIPE
		case n == len(b):
			return n, nil
		}
		if room := f.limit - (len(f.buf) - f.start); room > 0 {
			part := b[n:min(n+room, len(b))]
			f.add(part)
			f.reader.changed.Broadcast()
			if n += len(part); n == len(b) {
				return n, nil
			}
		}
		f.wait(&f.writer)
	}
}

// add appends bytes. The unread bytes move to the start of the buffer only when at least half of it has been read,
// so that each byte is moved at most once on average.
func (f *flow) add(b []byte) {
	if len(f.buf)+len(b) > cap(f.buf) && f.start >= len(f.buf)/2 {
		f.buf = f.buf[:copy(f.buf, f.buf[f.start:])]
		f.start = 0
	}
	f.buf = append(f.buf, b...)
}

// wait returns when something has changed, or at the side's deadline.
func (f *flow) wait(s *side) {
	s.waiting++
	s.arm()
	s.changed.Wait()
	if s.waiting--; s.waiting == 0 && s.timer != nil {
		s.timer.Stop()
	}
}

// arm makes the timer fire at the deadline, if there is one.
func (s *side) arm() {
	switch {
	case s.deadline.IsZero():
	case s.timer == nil:
		s.timer = time.AfterFunc(time.Until(s.deadline), func() {
			s.changed.L.Lock()
			defer s.changed.L.Unlock()
			s.changed.Broadcast()
		})
	default:
		s.timer.Reset(time.Until(s.deadline))
	}
}

func (s *side) expired() bool { return !s.deadline.IsZero() && !time.Now().Before(s.deadline) }

func (f *flow) setDeadline(s *side, t time.Time) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if s.closed {
		return net.ErrClosed
	}
	s.deadline = t
	s.changed.Broadcast() // waiters check the new deadline
	return nil
}

// closeReader drops the unread bytes.
func (f *flow) closeReader() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.reader.closed = true
	f.buf, f.start = nil, 0
	f.wake()
}

func (f *flow) closeWriter() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.writer.closed = true
	f.wake()
}

func (f *flow) wake() {
	f.reader.changed.Broadcast()
	f.writer.changed.Broadcast()
}
