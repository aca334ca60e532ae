// Package zmtp implements the framing of ZeroMQ for a server: ZMTP 3.0 and 3.1 with the mechanism NULL
// (https://rfc.zeromq.org/spec/23 and 37). It handles bytes and messages; the caller interprets them and decides
// when a peer is disconnected.
package zmtp

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"

	"github.com/atomredis/atomredis/internal/buffers"
)

// Limits are the limits for a peer.
type Limits struct {
	Message int           // bytes of all frames of a message
	Frames  int           // of a message
	Time    time.Duration // for the handshake, and for the peer to read a message
}

// Errors that end a connection.
var (
	// ErrProtocol means that a peer does not speak ZMTP 3.
	ErrProtocol = errors.New("zmtp: not a peer of ZMTP 3")
	// ErrTooLong means that a message is longer than Limits allow.
	ErrTooLong = errors.New("zmtp: the message is too long")
)

// Conn is a connection whose handshake is done. One goroutine at a time calls Read, and any number call Write.
type Conn struct {
	conn   net.Conn
	in     *bufio.Reader
	limits Limits
	ttl    time.Duration // the time after which the peer wants to be disconnected if it sends nothing; 0 means never
	buf    []byte        // the short frames of the message that was read last; reused
	long   [][]byte      // its long frames, which have memory of their own

	mu  sync.Mutex // protects out
	out []byte     // reused
}

const (
	greetingLen  = 64
	signatureLen = 10
	mechanismLen = 20
)

// The flags of a frame.
const (
	flagMore    = 1
	flagLong    = 2
	flagCommand = 4
)

// maxCommand limits the length of a peer's commands, which have names and a few properties.
const maxCommand = 4096

// Accept does the handshake as a socket of the given type, such as ROUTER, with a peer of one of the types in peers.
// It returns an error for other peers, which they get if the protocol has a message for it.
func Accept(conn net.Conn, socketType string, peers []string, limits Limits) (*Conn, error) {
	conn.SetDeadline(time.Now().Add(limits.Time))
	c := &Conn{conn: conn, in: bufio.NewReader(conn), limits: limits}
	if _, err := conn.Write(greeting()); err != nil {
		return nil, err
	}
	if err := c.readGreeting(); err != nil {
		return nil, err
	}
	ready := appendProperty([]byte("\x05READY"), "Socket-Type", socketType)
	if err := c.writeCommand(appendProperty(ready, "Identity", "")); err != nil {
		return nil, err
	}
	if err := c.readReady(peers); err != nil {
		return nil, err
	}
	return c, conn.SetDeadline(time.Time{})
}

// greeting returns the first bytes that both sides send: signature, version 3.1, mechanism, and which side is the
// server.
func greeting() []byte {
	g := make([]byte, greetingLen)
	g[0], g[8], g[9] = 0xff, 1, 0x7f
	g[10], g[11] = 3, 1
	copy(g[12:12+mechanismLen], "NULL")
	return g
}

func (c *Conn) readGreeting() error {
	var g [greetingLen]byte
	if _, err := io.ReadFull(c.in, g[:signatureLen]); err != nil {
		return err
	}
	if g[0] != 0xff || g[9] != 0x7f {
		return ErrProtocol
	}
	if _, err := io.ReadFull(c.in, g[signatureLen:]); err != nil {
		return err
	}
	if g[10] < 3 || string(g[12:12+mechanismLen]) != string(greeting()[12:12+mechanismLen]) {
		return ErrProtocol
	}
	return nil
}

// readReady reads the peer's READY, and returns an error if its type is not one of peers.
func (c *Conn) readReady(peers []string) error {
	flags, size, err := c.readHeader()
	switch {
	case err != nil:
		return err
	case flags&flagCommand == 0 || size > maxCommand:
		return ErrProtocol
	}
	body := make([]byte, size)
	if _, err := io.ReadFull(c.in, body); err != nil {
		return err
	}
	name, properties, ok := cutName(body)
	if !ok || name != "READY" {
		return ErrProtocol
	}
	socketType, ok := property(properties, "Socket-Type")
	if !ok {
		return ErrProtocol
	}
	for _, p := range peers {
		if p == socketType {
			return nil
		}
	}
	reason := "Invalid socket type"
	c.writeCommand(append(append([]byte("\x05ERROR"), byte(len(reason))), reason...))
	return fmt.Errorf("%w: a socket of type %.32q", ErrProtocol, socketType)
}

// cutName cuts the name of a command from its body.
func cutName(body []byte) (name string, rest []byte, ok bool) {
	if len(body) == 0 || len(body) < 1+int(body[0]) {
		return "", nil, false
	}
	n := 1 + int(body[0])
	return string(body[1:n]), body[n:], true
}

func appendProperty(dst []byte, name, value string) []byte {
	dst = append(append(dst, byte(len(name))), name...)
	return append(binary.BigEndian.AppendUint32(dst, uint32(len(value))), value...)
}

// property returns the value of a property; ok is false if there is none, or if the bytes before it are malformed.
func property(b []byte, want string) (value string, ok bool) {
	for len(b) > 0 {
		name, rest, ok := cutName(b)
		if !ok || len(rest) < 4 {
			return "", false
		}
		size := binary.BigEndian.Uint32(rest)
		rest = rest[4:]
		if uint64(size) > uint64(len(rest)) {
			return "", false
		}
		if equalFold(name, want) {
			return string(rest[:size]), true
		}
		b = rest[size:]
	}
	return "", false
}

// equalFold reports whether two names of properties are the same, ignoring the case of ASCII letters.
func equalFold(a, b string) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range len(a) {
		x, y := a[i], b[i]
		if x != y && (x|0x20 != y|0x20 || x|0x20 < 'a' || x|0x20 > 'z') {
			return false
		}
	}
	return true
}

// readHeader reads the header of a frame.
func (c *Conn) readHeader() (flags byte, size uint64, err error) {
	flags, err = c.in.ReadByte()
	if err != nil {
		return 0, 0, err
	}
	if flags&^(flagMore|flagLong|flagCommand) != 0 || flags&flagCommand != 0 && flags&flagMore != 0 {
		return 0, 0, ErrProtocol
	}
	if flags&flagLong == 0 {
		b, err := c.in.ReadByte()
		return flags, uint64(b), unexpected(err)
	}
	var b [8]byte
	_, err = io.ReadFull(c.in, b[:])
	return flags, binary.BigEndian.Uint64(b[:]), unexpected(err)
}

// unexpected makes the end of the input in the middle of a frame an error.
func unexpected(err error) error {
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}

// LimitMessage changes the limit of a message in bytes, from the next message on. The goroutine that calls Read must
// call it.
func (c *Conn) LimitMessage(n int) { c.limits.Message = n }

// Read returns the frames of the next message. They are valid until the next call. It answers PINGs. io.EOF means
// the end between two messages. Memory is allocated as the bytes arrive.
func (c *Conn) Read() (frames [][]byte, err error) {
	c.drop()
	total := 0
	for {
		if c.ttl > 0 {
			c.conn.SetReadDeadline(time.Now().Add(c.ttl))
		}
		flags, size, err := c.readHeader()
		if err != nil {
			if len(frames) > 0 {
				err = unexpected(err)
			}
			return nil, err
		}
		if flags&flagCommand != 0 {
			if err := c.readCommand(size); err != nil {
				return nil, err
			}
			continue
		}
		if len(frames) == c.limits.Frames || size > uint64(c.limits.Message-total) {
			return nil, ErrTooLong
		}
		frame, err := c.readBody(int(size))
		if err != nil {
			return nil, unexpected(err)
		}
		total += len(frame)
		frames = append(frames, frame)
		if flags&flagMore == 0 {
			return frames, nil
		}
	}
}

// drop gives the memory of the last message back.
func (c *Conn) drop() {
	for _, b := range c.long {
		buffers.Put(b)
	}
	c.long = nil
	if c.buf = c.buf[:0]; cap(c.buf) > maxKept {
		c.buf = nil
	}
}

// shortFrame is the length of the longest frame that shares memory with others.
const shortFrame = 16 << 10

// readBody reads a frame of size bytes.
func (c *Conn) readBody(size int) ([]byte, error) {
	if size <= shortFrame {
		if c.buf == nil || cap(c.buf)-len(c.buf) < size {
			c.buf = make([]byte, 0, max(size, 512, min(2*cap(c.buf), maxKept))) // frames already read are not moved
		}
		start := len(c.buf)
		c.buf = c.buf[:start+size]
		_, err := io.ReadFull(c.in, c.buf[start:])
		return c.buf[start:len(c.buf):len(c.buf)], err
	}
	var in buffers.Incoming
	in.Begin(size, 0)
	for in.Arrived() < size {
		n, err := c.in.Read(in.Room())
		in.Received(n)
		if err != nil {
			in.Drop()
			return nil, err
		}
	}
	frame := in.Whole()
	c.long = append(c.long, frame)
	return frame, nil
}

// readCommand reads a command after the handshake. It answers PING with its context, and ignores others, which have
// no meaning for a socket without subscriptions.
func (c *Conn) readCommand(size uint64) error {
	if size > maxCommand {
		return ErrTooLong
	}
	body := make([]byte, size)
	if _, err := io.ReadFull(c.in, body); err != nil {
		return unexpected(err)
	}
	name, rest, ok := cutName(body)
	switch {
	case !ok:
		return ErrProtocol
	case name != "PING":
		return nil
	case len(rest) < 2:
		return ErrProtocol
	}
	const tenths = time.Second / 10
	if c.ttl = time.Duration(binary.BigEndian.Uint16(rest)) * tenths; c.ttl == 0 {
		c.conn.SetReadDeadline(time.Time{})
	}
	return c.writeCommand(append([]byte("\x04PONG"), rest[2:]...))
}

func (c *Conn) writeCommand(body []byte) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.out = appendFrame(c.out[:0], flagCommand, body)
	_, err := c.conn.Write(c.out)
	return err
}

// maxKept is the size of the largest buffer that is kept for the next message.
const maxKept = 64 << 10

// Write sends a message.
func (c *Conn) Write(frames ...[]byte) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.out = c.out[:0]
	for i, f := range frames {
		flags := byte(flagMore)
		if i == len(frames)-1 {
			flags = 0
		}
		c.out = appendFrame(c.out, flags, f)
	}
	c.conn.SetWriteDeadline(time.Now().Add(c.limits.Time))
	_, err := c.conn.Write(c.out)
	if cap(c.out) > maxKept {
		c.out = nil
	}
	return err
}

func appendFrame(dst []byte, flags byte, body []byte) []byte {
	if len(body) < 256 {
		dst = append(dst, flags, byte(len(body)))
	} else {
		dst = binary.BigEndian.AppendUint64(append(dst, flags|flagLong), uint64(len(body)))
	}
	return append(dst, body...)
}
