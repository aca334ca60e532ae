// A small RESP client that keeps every reply as it was sent.

package transcript

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// Conn is a connection to a server. It is not safe for concurrent use.
type Conn struct {
	nc net.Conn
	r  *bufio.Reader
	w  *bufio.Writer
}

// Limits for the lengths that a reply announces, so that a broken server cannot exhaust the tester's memory.
const (
	maxBulk  = 512 << 20
	maxElems = 1 << 24
	maxDepth = 128
)

// Dial connects to "host:port" or, with a slash in it, to the path of a Unix socket.
func Dial(addr string) (net.Conn, error) {
	network := "tcp"
	if strings.Contains(addr, "/") {
		network = "unix"
	}
	return net.DialTimeout(network, addr, 30*time.Second)
}

// NewConn wraps a network connection, which it then owns.
func NewConn(nc net.Conn) *Conn {
	return &Conn{nc: nc, r: bufio.NewReaderSize(nc, 64<<10), w: bufio.NewWriterSize(nc, 64<<10)}
}

// Close closes the network connection.
func (c *Conn) Close() error { return c.nc.Close() }

// Append adds a command to the output buffer.
func (c *Conn) Append(args ...string) {
	c.header('*', len(args))
	for _, a := range args {
		c.header('$', len(a))
		c.w.WriteString(a)
		c.w.WriteString("\r\n")
	}
}

// AppendRaw adds bytes to the output buffer unchanged.
func (c *Conn) AppendRaw(bytes string) { c.w.WriteString(bytes) }

// Flush sends the output buffer. It returns the errors of Append.
func (c *Conn) Flush() error { return c.w.Flush() }

// Buffered returns how many bytes have arrived and are not part of a reply yet.
func (c *Conn) Buffered() int { return c.r.Buffered() }

func (c *Conn) header(kind byte, n int) {
	c.w.WriteByte(kind)
	c.w.Write(strconv.AppendInt(c.w.AvailableBuffer(), int64(n), 10))
	c.w.WriteString("\r\n")
}

// Do sends one command and reads one reply.
func (c *Conn) Do(timeout time.Duration, args ...string) (Value, error) {
	c.Append(args...)
	if err := c.Flush(); err != nil {
		return Value{}, err
	}
	return c.Read(timeout)
}

// Ready waits for the first byte of a reply, or the end of the connection, for at most the given time.
func (c *Conn) Ready(timeout time.Duration) bool {
	if c.r.Buffered() > 0 {
		return true
	}
	c.nc.SetReadDeadline(time.Now().Add(timeout))
	_, err := c.r.Peek(1)
	return !errors.Is(err, os.ErrDeadlineExceeded)
}

// Read reads one reply. A connection that the server has closed gives a value of kind Closed.
func (c *Conn) Read(timeout time.Duration) (Value, error) {
	c.nc.SetReadDeadline(time.Now().Add(timeout))
	return c.ReadBatched()
}

// ReadBatched reads one reply under the deadline of the last Read, for reading many in a row.
func (c *Conn) ReadBatched() (Value, error) {
	v, err := c.read(0)
	if errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET) {
		return Value{Kind: Closed}, nil
	}
	return v, err
}

func (c *Conn) read(depth int) (Value, error) {
	if depth > maxDepth {
		return Value{}, errors.New("reply nested too deeply")
	}
	line, err := c.line()
	if err != nil {
		return Value{}, err
	}
	if line == "" {
		return Value{}, errors.New("empty line where a reply should start")
	}
	v := Value{Kind: line[0]}
	switch v.Kind {
	case Simple, Error, Integer, Double, Boolean, BigInt, Null:
		v.Text = line[1:]
		return v, nil
	case Bulk, Verbatim, BulkErr:
		n, err := c.length(line, maxBulk)
		if err != nil || n < 0 {
			v.Null = true
			return v, err
		}
		buf := make([]byte, n+2)
		if _, err := io.ReadFull(c.r, buf); err != nil {
			return Value{}, err
		}
		if string(buf[n:]) != "\r\n" {
			return Value{}, fmt.Errorf("bulk of %d bytes does not end in CRLF", n)
		}
		v.Text = string(buf[:n])
		return v, nil
	case Array, Map, Set, Push:
		n, err := c.length(line, maxElems)
		if err != nil || n < 0 {
			v.Null = true
			return v, err
		}
		if v.Kind == Map {
			n *= 2
		}
		v.Elems = make([]Value, 0, min(n, 1024))
		for range n {
			e, err := c.read(depth + 1)
			if err != nil {
				return Value{}, err
			}
			v.Elems = append(v.Elems, e)
		}
		return v, nil
	}
	return Value{}, fmt.Errorf("reply of unknown type: %s", Quote(line))
}

// line reads a line and demands CRLF at its end.
func (c *Conn) line() (string, error) {
	s, err := c.r.ReadString('\n')
	if err != nil {
		if errors.Is(err, io.EOF) && s != "" {
			err = fmt.Errorf("connection ended within a reply, after %s", Quote(s))
		}
		return "", err
	}
	if !strings.HasSuffix(s, "\r\n") {
		return "", fmt.Errorf("line does not end in CRLF: %s", Quote(s))
	}
	return s[:len(s)-2], nil
}

// length parses the number of a header; -1 is the RESP2 null.
func (c *Conn) length(line string, limit int) (int, error) {
	n, err := strconv.Atoi(line[1:])
	if err != nil || n < -1 || n > limit {
		return 0, fmt.Errorf("bad length in reply: %s", Quote(line))
	}
	return n, nil
}
