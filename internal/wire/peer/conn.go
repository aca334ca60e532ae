package peer

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"errors"
	"io"
	"net"
	"slices"
	"time"

	"github.com/atomredis/atomredis/internal/buffers"
)

// Kind is the kind of a frame.
type Kind byte

// The kinds of frames that all purposes share. Those of a purpose are letters.
const (
	Request Kind = 1
	Reply   Kind = 2
	Failed  Kind = 3 // an Error: the code as a part, and the text
)

// Form is a form of frames other than the one that the package documents: package old has some. One goroutine reads
// while another one writes.
type Form interface {
	// Head reads the head of the next frame. begin is the beginning of the payload, and rest the number of its bytes that r
	// still has. Both together must not exceed limit.
	Head(r *bufio.Reader, limit int64) (kind Kind, begin []byte, rest int64, err error)
	// Append appends the head of a frame to b, and returns the payload that follows it.
	Append(b []byte, kind Kind, parts [][]byte) (head []byte, payload [][]byte, err error)
}

// Conn sends and receives frames. One goroutine reads and one writes; any may call the other methods.
type Conn struct {
	raw     net.Conn
	purpose Purpose
	version uint64
	form    Form // nil means the package's own form
	limit   int64
	idle    time.Duration

	ahead []byte        // bytes to read before in
	in    *bufio.Reader // nil before the first frame
	// The unread payload of the current frame: begin, and then rest bytes of in.
	begin []byte
	rest  int64

	out []byte // unsent frames
}

const (
	// DefaultLimit is the longest payload that is accepted, in bytes, unless SetLimit changes it.
	DefaultLimit = 16 << 20

	readBuffer = 16 << 10
	// maxOut is the number of bytes that are collected before sending. Parts of that size are sent without a copy.
	maxOut = 32 << 10
	// step is how much memory is allocated for bytes that have not arrived yet.
	step = 64 << 10
)

// NewConn returns a connection whose hello is done. A form other than the package's belongs to version 0. ahead is
// the bytes that were read from raw after the hello.
func NewConn(raw net.Conn, purpose Purpose, version uint64, form Form, ahead []byte) *Conn {
	return &Conn{raw: raw, purpose: purpose, version: version, form: form, limit: DefaultLimit, ahead: ahead}
}

// Purpose returns the purpose of the connection.
func (c *Conn) Purpose() Purpose { return c.purpose }

// Version returns the version that both servers speak, 0 if the other one does not know hellos.
func (c *Conn) Version() uint64 { return c.version }

// Raw returns the underlying connection. Only a connection without frames may be read or written through it.
func (c *Conn) Raw() net.Conn { return c.raw }

// SetLimit sets the longest payload that is accepted, in bytes, for later reads.
func (c *Conn) SetLimit(n int64) { c.limit = n }

// SetIdleTimeout sets how long each read and each write may take, instead of deadlines. It must be called before the
// first frame.
func (c *Conn) SetIdleTimeout(d time.Duration) { c.idle = d }

// SetDeadline sets the deadline of all reads and writes, as that of a net.Conn.
func (c *Conn) SetDeadline(t time.Time) { c.raw.SetDeadline(t) }

// SetWriteDeadline sets the deadline of all writes.
func (c *Conn) SetWriteDeadline(t time.Time) { c.raw.SetWriteDeadline(t) }

// Close closes the connection.
func (c *Conn) Close() error { return c.raw.Close() }

// source is a Conn as a reader of the received bytes.
type source Conn

// Read implements io.Reader.
func (s *source) Read(b []byte) (int, error) {
	if len(s.ahead) > 0 {
		n := copy(b, s.ahead)
		s.ahead = s.ahead[n:]
		return n, nil
	}
	if s.idle > 0 {
		s.raw.SetReadDeadline(time.Now().Add(s.idle))
	}
	return s.raw.Read(b)
}

// Next skips the rest of the current frame and returns the kind of the next one, whose payload can be read then. It
// returns io.EOF if the connection has ended between frames.
func (c *Conn) Next() (kind Kind, err error) {
	if c.in == nil {
		c.in = bufio.NewReaderSize((*source)(c), readBuffer)
	}
	for c.begin = nil; c.rest > 0; {
		n, err := c.in.Discard(int(min(c.rest, 1<<30)))
		if c.rest -= int64(n); err != nil {
			return 0, unexpected(err)
		}
	}
	if c.form != nil {
		kind, c.begin, c.rest, err = c.form.Head(c.in, c.limit)
	} else {
		kind, c.rest, err = readHead(c.in, c.limit)
	}
	return kind, err
}

// readHead reads the head of a frame.
func readHead(r *bufio.Reader, limit int64) (kind Kind, size int64, err error) {
	first, err := r.ReadByte()
	if err != nil {
		return 0, 0, err
	}
	n, err := binary.ReadUvarint(r)
	switch {
	case err != nil:
		return 0, 0, unexpected(err)
	case n > uint64(limit):
		return 0, 0, ErrTooLong
	}
	return Kind(first), int64(n), nil
}

// unexpected returns the error for a truncated frame.
func unexpected(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// Size returns how many bytes of the current payload have not been read.
func (c *Conn) Size() int64 { return int64(len(c.begin)) + c.rest }

// Read reads the payload of the current frame. It returns io.EOF at its end.
func (c *Conn) Read(b []byte) (n int, err error) {
	switch {
	case len(c.begin) > 0:
		n = copy(b, c.begin)
		c.begin = c.begin[n:]
	case c.rest == 0:
		return 0, io.EOF
	default:
		n, err = c.in.Read(b[:min(int64(len(b)), c.rest)])
		c.rest -= int64(n)
	}
	return n, unexpected(err)
}

// ReadByte reads a byte of the payload.
func (c *Conn) ReadByte() (byte, error) {
	switch {
	case len(c.begin) > 0:
		b := c.begin[0]
		c.begin = c.begin[1:]
		return b, nil
	case c.rest == 0:
		return 0, io.EOF
	}
	b, err := c.in.ReadByte()
	if err == nil {
		c.rest--
	}
	return b, unexpected(err)
}

// Chunk returns bytes of the payload that have arrived, at least one, and io.EOF at its end. They are valid until the next
// read.
func (c *Conn) Chunk() ([]byte, error) {
	if begin := c.begin; len(begin) > 0 {
		c.begin = nil
		return begin, nil
	}
	if c.rest == 0 {
		return nil, io.EOF
	}
	if _, err := c.in.Peek(1); err != nil {
		return nil, unexpected(err)
	}
	b, _ := c.in.Peek(int(min(c.rest, int64(c.in.Buffered()))))
	c.rest -= int64(len(b))
	_, _ = c.in.Discard(len(b)) // they are buffered
	return b, nil
}

// Rest returns the unread payload.
func (c *Conn) Rest() ([]byte, error) {
	if len(c.begin) > 0 && c.rest == 0 {
		b := c.begin
		c.begin = nil
		return b, nil
	}
	b := make([]byte, 0, min(c.Size(), step))
	for c.Size() > 0 {
		if len(b) == cap(b) {
			b = slices.Grow(b, int(min(c.Size(), int64(len(b)))))
		}
		n, err := c.Read(b[len(b):min(cap(b), len(b)+int(min(c.Size(), 1<<30)))])
		if b = b[:len(b)+n]; err != nil {
			return nil, err
		}
	}
	return b, nil
}

// Receive returns the next frame, which has memory of its own.
func (c *Conn) Receive() (kind Kind, payload []byte, err error) {
	if kind, err = c.Next(); err == nil {
		payload, err = c.Rest()
	}
	return kind, payload, err
}

// Send sends a frame, at the latest with Flush. Its payload consists of parts, which are not kept.
func (c *Conn) Send(kind Kind, parts ...[]byte) error {
	if c.form != nil {
		payload, err := c.appendForm(kind, slices.Clone(parts))
		if err != nil {
			return err
		}
		return c.write(payload)
	}
	c.appendHead(kind, parts)
	return c.write(parts)
}

// Queue queues a frame for Flush; it never waits.
func (c *Conn) Queue(kind Kind, parts ...[]byte) error {
	if c.form != nil {
		payload, err := c.appendForm(kind, slices.Clone(parts))
		c.append(payload)
		return err
	}
	c.appendHead(kind, parts)
	c.append(parts)
	return nil
}

// appendForm appends the head of a frame in another form than the package's, and returns the payload that follows
// it.
func (c *Conn) appendForm(kind Kind, parts [][]byte) (payload [][]byte, err error) {
	c.out, payload, err = c.form.Append(c.out, kind, parts)
	return payload, err
}

func (c *Conn) appendHead(kind Kind, parts [][]byte) {
	size := 0
	for _, p := range parts {
		size += len(p)
	}
	c.out = binary.AppendUvarint(append(c.out, byte(kind)), uint64(size))
}

func (c *Conn) append(parts [][]byte) {
	for _, p := range parts {
		c.out = append(buffers.Grow(c.out, len(p)), p...)
	}
}

// write sends the payload of a frame, or keeps it for Flush.
func (c *Conn) write(parts [][]byte) error {
	for _, p := range parts {
		if len(p) < maxOut {
			c.out = append(c.out, p...)
		} else if err := c.flush(p); err != nil {
			return err
		}
	}
	if len(c.out) >= maxOut {
		return c.Flush()
	}
	return nil
}

// Flush sends all frames.
func (c *Conn) Flush() error { return c.flush(nil) }

// flush sends all frames, followed by more.
func (c *Conn) flush(more []byte) (err error) {
	for _, b := range [][]byte{c.out, more} {
		if len(b) > 0 && err == nil {
			if c.idle > 0 {
				c.raw.SetWriteDeadline(time.Now().Add(c.idle))
			}
			_, err = c.raw.Write(b)
		}
	}
	if c.out = c.out[:0]; cap(c.out) > 2*maxOut {
		buffers.Put(c.out)
		c.out = nil
	}
	return err
}

// Request sends a request in JSON.
func (c *Conn) Request(question any) error { return c.sendJSON(Request, question) }

// Reply sends a reply in JSON.
func (c *Conn) Reply(answer any) error { return c.sendJSON(Reply, answer) }

func (c *Conn) sendJSON(kind Kind, v any) error {
	text, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return errors.Join(c.Send(kind, text), c.Flush())
}

// Fail sends an error instead of a reply or in a stream. The code of an *Error in it is kept.
func (c *Conn) Fail(err error) error {
	e := asError(err)
	return errors.Join(c.Send(Failed, AppendPart(nil, []byte(e.Code)), []byte(e.Text)), c.Flush())
}

// ReadRequest reads a request in JSON.
func (c *Conn) ReadRequest(question any) error {
	kind, text, err := c.Receive()
	switch {
	case err != nil:
		return err
	case kind != Request:
		return ErrFrame
	}
	return json.Unmarshal(text, question)
}

// ReadReply reads a reply in JSON. It returns an error that Fail has sent as an *Error.
func (c *Conn) ReadReply(answer any) error {
	kind, text, err := c.Receive()
	switch {
	case err != nil:
		return err
	case kind == Failed:
		return AsFailure(text)
	case kind != Reply:
		return ErrFrame
	}
	return json.Unmarshal(text, answer)
}

// AsFailure returns the error in the payload of a frame Failed.
func AsFailure(payload []byte) error {
	code, text, err := Part(payload)
	if err != nil {
		return err
	}
	return &Error{Code(code), string(text)}
}

// Call sends a request in JSON and reads the reply.
func (c *Conn) Call(question, answer any) error {
	if err := c.Request(question); err != nil {
		return err
	}
	return c.ReadReply(answer)
}
