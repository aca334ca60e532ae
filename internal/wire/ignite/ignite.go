// Package ignite implements the framing of the Ignite thin client protocol for a server: handshakes of versions 1.0
// to 1.7, requests, and replies in both forms. It handles bytes and numbers of operations; the caller interprets
// them.
package ignite

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"github.com/atomredis/atomredis/internal/buffers"
)

// Limits are the limits for a peer.
type Limits struct {
	Message int           // bytes of a request
	Time    time.Duration // for the handshake, and for the peer to read a message
}

// Errors that end a connection.
var (
	// ErrProtocol means that a peer does not speak the protocol.
	ErrProtocol = errors.New("ignite: not a thin client")
	// ErrTooLong means that a message is longer than Limits allow.
	ErrTooLong = errors.New("ignite: the message is too long")
	// ErrRefused means that a peer was refused, and has got the reason.
	ErrRefused = errors.New("ignite: the client was refused")
)

// Version is a version of the protocol.
type Version struct{ Major, Minor, Patch int16 }

// Newest is the version that the server names in a refusal.
var Newest = Version{1, 7, 0}

// AtLeast reports whether the version is 1.minor or a later one.
func (v Version) AtLeast(minor int16) bool { return v.Minor >= minor }

// String returns the version as text.
func (v Version) String() string { return fmt.Sprintf("%d.%d.%d", v.Major, v.Minor, v.Patch) }

// The statuses of replies. 0 is success.
const (
	StatusFailed           int32 = 1
	StatusInvalidOp        int32 = 2
	StatusNoCache          int32 = 1000
	StatusCacheExists      int32 = 1001
	StatusBadConfig        int32 = 1002
	StatusManyCursors      int32 = 1010
	StatusNoResource       int32 = 1011
	StatusUnauthorized     int32 = 1012
	StatusManyTransactions int32 = 1020
	StatusNoTransaction    int32 = 1021
	StatusNotAuthorized    int32 = 2000
)

// features are the features that the server has besides those of the version: the states of the cluster.
const features = 1 << 2

// The codes of the objects that frames have in them.
const (
	codeString    = 9
	codeUUID      = 10
	codeByteArray = 12
	codeMap       = 25
	codeNull      = 101
)

// handshakeMost limits the length of a handshake, which has names, a password and attributes.
const handshakeMost = 64 << 10

// Hello is a client's description of itself.
type Hello struct {
	Version  Version
	Client   byte   // the kind of client; 2 is a thin one
	Features []byte // bits, of version 1.7
	// User and Password are empty if the client does not authenticate.
	User, Password string
}

// Refusal is the reason for which a client is refused.
type Refusal struct {
	Status  int32
	Message string
}

// Conn is a connection whose handshake is done. One goroutine at a time reads, and one writes.
type Conn struct {
	conn   net.Conn
	in     *bufio.Reader
	hello  Hello
	limits Limits
	buf    []byte // of the message that was read last; reused
}

// Accept does the handshake. node is the id of the server. admit returns the reason to refuse the client, or nil.
func Accept(conn net.Conn, node [16]byte, limits Limits, admit func(h *Hello) *Refusal) (*Conn, error) {
	conn.SetDeadline(time.Now().Add(limits.Time))
	c := &Conn{conn: conn, in: bufio.NewReader(conn), limits: limits}
	b, err := c.message(min(handshakeMost, limits.Message))
	if err != nil {
		return nil, err
	}
	refusal, err := c.hello.parse(b)
	if err != nil {
		return nil, err
	}
	if refusal == nil {
		refusal = admit(&c.hello)
	}
	if refusal != nil {
		conn.Write(refusal.append(nil))
		return nil, fmt.Errorf("%w: %s", ErrRefused, refusal.Message)
	}
	if _, err := conn.Write(c.welcome(node)); err != nil {
		return nil, err
	}
	return c, conn.SetDeadline(time.Time{})
}

// Refuse sends the reason to a client that has not been accepted.
func Refuse(conn net.Conn, r Refusal) {
	conn.Write(r.append(nil))
}

// parse reads a handshake. It returns a refusal for unsupported versions.
func (h *Hello) parse(b []byte) (*Refusal, error) {
	if len(b) < 8 || b[0] != 1 {
		return nil, ErrProtocol
	}
	number := func(at int) int16 { return int16(binary.LittleEndian.Uint16(b[at:])) }
	h.Version, h.Client = Version{number(1), number(3), number(5)}, b[7]
	if h.Version.Major != 1 || h.Version.Minor < 0 || h.Version.Minor > Newest.Minor || h.Version.Patch != 0 {
		return &Refusal{StatusFailed, "Unsupported version: " + h.Version.String()}, nil
	}
	if h.Client != 2 {
		return &Refusal{StatusFailed, "Unsupported kind of client: only thin clients are served"}, nil
	}
	rest := b[8:]
	if h.Version.AtLeast(7) {
		features, after, ok := cut(rest, codeByteArray)
		if !ok {
			return nil, ErrProtocol
		}
		h.Features, rest = append([]byte(nil), features...), after
		if len(features) > 0 && features[0]&1 != 0 { // attributes of the user
			if rest, ok = skipAttributes(rest); !ok {
				return nil, ErrProtocol
			}
		}
	}
	for _, part := range []*string{&h.User, &h.Password} {
		if len(rest) == 0 {
			break
		}
		if rest[0] == codeNull {
			rest = rest[1:]
			continue
		}
		text, after, ok := cut(rest, codeString)
		if !ok {
			return nil, ErrProtocol
		}
		*part, rest = string(text), after
	}
	return nil, nil
}

// cut splits off an object that consists of a length and bytes.
func cut(b []byte, code byte) (content, rest []byte, ok bool) {
	if len(b) < 5 || b[0] != code {
		return nil, nil, false
	}
	n := int64(binary.LittleEndian.Uint32(b[1:]))
	if n > int64(len(b)-5) {
		return nil, nil, false
	}
	return b[5 : 5+n], b[5+n:], true
}

// skipAttributes skips a map of strings, or null.
func skipAttributes(b []byte) (rest []byte, ok bool) {
	if len(b) > 0 && b[0] == codeNull {
		return b[1:], true
	}
	if len(b) < 6 || b[0] != codeMap {
		return nil, false
	}
	n := int64(binary.LittleEndian.Uint32(b[1:]))
	if n > int64(len(b)) {
		return nil, false
	}
	b = b[6:]
	for range 2 * n {
		if len(b) > 0 && b[0] == codeNull {
			b = b[1:]
			continue
		}
		if _, b, ok = cut(b, codeString); !ok {
			return nil, false
		}
	}
	return b, true
}

// append appends the refusal with its length.
func (r *Refusal) append(dst []byte) []byte {
	start := len(dst)
	dst = append(dst, 0, 0, 0, 0, 0)
	for _, n := range []int16{Newest.Major, Newest.Minor, Newest.Patch} {
		dst = binary.LittleEndian.AppendUint16(dst, uint16(n))
	}
	dst = appendString(dst, r.Message)
	dst = binary.LittleEndian.AppendUint32(dst, uint32(r.Status))
	return finish(dst, start)
}

// welcome returns the answer to a handshake.
func (c *Conn) welcome(node [16]byte) []byte {
	b := []byte{0, 0, 0, 0, 1}
	if c.hello.Version.AtLeast(7) {
		b = append(b, codeByteArray, 1, 0, 0, 0, features)
	}
	if c.hello.Version.AtLeast(4) {
		b = append(append(b, codeUUID), node[:]...)
	}
	return finish(b, 0)
}

func appendString(dst []byte, s string) []byte {
	dst = binary.LittleEndian.AppendUint32(append(dst, codeString), uint32(len(s)))
	return append(dst, s...)
}

// finish writes the length of a message that begins at an offset.
func finish(b []byte, start int) []byte {
	binary.LittleEndian.PutUint32(b[start:], uint32(len(b)-start-4))
	return b
}

// maxKept is the size of the largest buffer that is kept for the next message.
const maxKept = 64 << 10

// message reads a message without its length. It is valid until the next one. Memory is allocated as the bytes
// arrive.
func (c *Conn) message(most int) ([]byte, error) {
	var head [4]byte
	if _, err := io.ReadFull(c.in, head[:]); err != nil {
		return nil, err
	}
	n := int64(int32(binary.LittleEndian.Uint32(head[:])))
	switch {
	case n < 0:
		return nil, ErrProtocol
	case n > int64(most):
		return nil, ErrTooLong
	}
	if cap(c.buf) > maxKept {
		buffers.Put(c.buf)
		c.buf = nil
	}
	size := int(n)
	if size <= max(shortMessage, cap(c.buf)) {
		if cap(c.buf) < size {
			c.buf = make([]byte, size)
		}
		c.buf = c.buf[:size]
		_, err := io.ReadFull(c.in, c.buf)
		return c.buf, err
	}
	c.buf = nil
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
	c.buf = in.Whole()
	return c.buf, nil
}

// shortMessage is the length up to which a message gets all its memory at once.
const shortMessage = 16 << 10

// Hello returns the client's description of itself.
func (c *Conn) Hello() *Hello { return &c.hello }

// Request is a request of a client.
type Request struct {
	Op int16
	ID int64
	// Body is valid until the next request is read.
	Body []byte
}

// Read reads the next request.
func (c *Conn) Read() (Request, error) {
	b, err := c.message(c.limits.Message)
	if err != nil {
		return Request{}, err
	}
	if len(b) < 10 {
		return Request{}, ErrProtocol
	}
	return Request{Op: int16(binary.LittleEndian.Uint16(b)), ID: int64(binary.LittleEndian.Uint64(b[2:])), Body: b[10:]}, nil
}

// LimitMessage changes the limit of a request in bytes, from the next request on. The goroutine that calls Read must
// call it.
func (c *Conn) LimitMessage(n int) { c.limits.Message = n }

// Ready reports whether a complete short request has been received, so that Read will not wait.
func (c *Conn) Ready() bool {
	n := c.in.Buffered()
	if n < 4 {
		return false
	}
	head, err := c.in.Peek(4)
	return err == nil && int64(int32(binary.LittleEndian.Uint32(head))) <= int64(n-4)
}

// The flags of replies, from version 1.4 on.
const (
	flagError        = 1
	flagTopology     = 2
	flagNotification = 4
)

// AppendReply appends the answer to a request.
func (h *Hello) AppendReply(dst []byte, id int64, body []byte) []byte {
	start := len(dst)
	dst = beginReply(dst, id)
	if h.Version.AtLeast(4) {
		dst = append(dst, 0, 0)
	} else {
		dst = append(dst, 0, 0, 0, 0)
	}
	return finish(append(dst, body...), start)
}

// AppendReplyAndTopology is AppendReply for a client of version 1.4 or later, which it informs of a new version of the
// topology.
func AppendReplyAndTopology(dst []byte, id, topology int64, body []byte) []byte {
	start := len(dst)
	dst = append(beginReply(dst, id), flagTopology, 0)
	dst = binary.LittleEndian.AppendUint64(dst, uint64(topology))
	dst = append(dst, 0, 0, 0, 0) // the minor version
	return finish(append(dst, body...), start)
}

// AppendFailure appends an answer that is an error.
func (h *Hello) AppendFailure(dst []byte, id int64, status int32, message string) []byte {
	start := len(dst)
	dst = beginReply(dst, id)
	if h.Version.AtLeast(4) {
		dst = append(dst, flagError, 0)
	}
	dst = binary.LittleEndian.AppendUint32(dst, uint32(status))
	return finish(appendString(dst, message), start)
}

// AppendNotification appends a message that is not a reply: kind is its kind, resource what the client has opened.
// Clients of versions before 1.4 do not support such messages.
func AppendNotification(dst []byte, resource int64, kind int16, body []byte) []byte {
	start := len(dst)
	dst = append(beginReply(dst, resource), flagNotification, 0)
	dst = binary.LittleEndian.AppendUint16(dst, uint16(kind))
	return finish(append(dst, body...), start)
}

// beginReply appends the head of a message.
func beginReply(dst []byte, id int64) []byte {
	return binary.LittleEndian.AppendUint64(append(dst, 0, 0, 0, 0), uint64(id))
}

// Write sends messages. The peer must read them within the time of Limits. Write may be called while another
// goroutine calls Read.
func (c *Conn) Write(messages []byte) error {
	c.conn.SetWriteDeadline(time.Now().Add(c.limits.Time))
	_, err := c.conn.Write(messages)
	return err
}
