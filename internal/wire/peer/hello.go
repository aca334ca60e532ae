package peer

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"time"
)

// The versions of the protocol that this server speaks.
const (
	MinVersion = 1
	MaxVersion = 1
)

// Magic is the beginning of hellos and their answers.
const Magic = "\xa7arp"

// maxHello is the longest hello or answer, in bytes, without magic and size. It is small because the sender is not
// known yet.
const maxHello = 64 << 10

// Purpose is the purpose of a connection.
type Purpose string

// The purposes of connections. Their kinds of frames are documented by the packages that use them.
const (
	Raft           Purpose = "raft"            // the requests of the Raft library, without frames
	Members        Purpose = "members"         // a question of a server of the same group, or of one that wants to join it
	Shards         Purpose = "shards"          // a question of a server of any shard
	Migration      Purpose = "migration"       // the slots of one shard for another
	Forward        Purpose = "forward"         // the commands of a follower's client
	Stream         Purpose = "stream"          // tells the leader that a follower has replicas; nothing follows
	Broadcast      Purpose = "broadcast"       // published messages
	BroadcastShard Purpose = "broadcast-shard" // published messages of shard channels
	Search         Purpose = "search"          // the indexes of a shard, for a server of another one
)

// Hello is the first message of the dialling server.
type Hello struct {
	Min, Max uint64 // versions
	Purpose  Purpose
	Auth     []Field
	// From is the dialling server's name, its raft-addr; "" if it belongs to no group, or to an old version. Nothing
	// proves it.
	From string
}

// Field is a name and a value.
type Field struct {
	Name  string
	Value []byte
}

// Answer answers a hello.
type Answer struct {
	Version uint64 // of the frames that follow; 0: refused
	// Min and Max are the versions that the answering server speaks.
	Min, Max uint64
	Refusal  Error // zero unless refused
	Auth     []Field
}

// ErrOld means that the other server does not know hellos: it has closed the connection, or sent something else.
var ErrOld = errors.New("the server does not know this protocol")

// The numbers of fields. A number keeps its meaning in all versions.
const (
	helloMin = iota + 1
	helloMax
	helloPurpose
	helloAuth
	helloFrom
)

const (
	answerVersion = iota + 1
	answerMin
	answerMax
	answerCode
	answerText
	answerAuth
)

// Append appends the hello as it is sent.
func (h *Hello) Append(b []byte) []byte {
	return appendMessage(b, func(b []byte) []byte {
		b = appendNumberField(b, helloMin, h.Min)
		b = appendNumberField(b, helloMax, h.Max)
		b = appendField(b, helloPurpose, []byte(h.Purpose))
		b = appendAuth(b, helloAuth, h.Auth)
		if h.From != "" {
			b = appendField(b, helloFrom, []byte(h.From))
		}
		return b
	})
}

// ReadHello reads a hello and nothing after it.
func ReadHello(r io.Reader) (h Hello, err error) {
	err = readFields(r, func(number uint64, value []byte) (err error) {
		switch number {
		case helloMin:
			h.Min, err = onlyNumber(value)
		case helloMax:
			h.Max, err = onlyNumber(value)
		case helloPurpose:
			h.Purpose = Purpose(value)
		case helloAuth:
			h.Auth, err = addAuth(h.Auth, value)
		case helloFrom:
			h.From = string(value)
		}
		return err
	})
	return h, err
}

// Append appends the answer as it is sent.
func (a *Answer) Append(b []byte) []byte {
	return appendMessage(b, func(b []byte) []byte {
		b = appendNumberField(b, answerVersion, a.Version)
		b = appendNumberField(b, answerMin, a.Min)
		b = appendNumberField(b, answerMax, a.Max)
		b = appendField(b, answerCode, []byte(a.Refusal.Code))
		b = appendField(b, answerText, []byte(a.Refusal.Text))
		return appendAuth(b, answerAuth, a.Auth)
	})
}

// ReadAnswer reads the answer to a hello and nothing after it.
func ReadAnswer(r io.Reader) (a Answer, err error) {
	err = readFields(r, func(number uint64, value []byte) (err error) {
		switch number {
		case answerVersion:
			a.Version, err = onlyNumber(value)
		case answerMin:
			a.Min, err = onlyNumber(value)
		case answerMax:
			a.Max, err = onlyNumber(value)
		case answerCode:
			a.Refusal.Code = Code(value)
		case answerText:
			a.Refusal.Text = string(value)
		case answerAuth:
			a.Auth, err = addAuth(a.Auth, value)
		}
		return err
	})
	return a, err
}

// Open sends a hello of the server from to the server with the address to, and reads the answer, until the deadline at most.
// With a secret, both servers prove that they know it. The error is ErrOld if the other server does not know hellos, and an
// *Error if it refuses or proves nothing. The caller closes raw if there is an error.
func Open(raw net.Conn, purpose Purpose, from, to, secret string, deadline time.Time) (*Conn, error) {
	raw.SetDeadline(deadline)
	h := Hello{Min: MinVersion, Max: MaxVersion, Purpose: purpose, From: from}
	var asked []byte
	if secret != "" {
		asked = newNonce()
		h.Auth = []Field{{authTo, []byte(to)}, {authNonce, asked}}
	}
	_, err := raw.Write(h.Append(nil))
	var a Answer
	if err == nil {
		a, err = ReadAnswer(raw)
	}
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded), errors.Is(err, net.ErrClosed): // closed here
		return nil, err
	case errors.Is(err, errMagic), err != nil && !errors.Is(err, errHello):
		return nil, fmt.Errorf("%w: %w", ErrOld, err)
	case err != nil:
		return nil, err
	case a.Version == 0:
		return nil, &a.Refusal
	case a.Version < h.Min || a.Version > h.Max:
		return nil, fmt.Errorf("%w: version %d was chosen", errHello, a.Version)
	}
	if secret != "" {
		if err := prove(raw, secret, transcript{purpose, to, asked, authOf(a.Auth, authNonce)}); err != nil {
			return nil, err
		}
	}
	raw.SetDeadline(time.Time{})
	return NewConn(raw, purpose, a.Version, nil, nil), nil
}

// Accept reads a hello, until the deadline at most, and answers it as the server with an address. begin is the part that was
// already read. check returns the reason to refuse the hello; nil accepts it. With a secret, the dialling server must prove
// that it knows it and means this server.
func Accept(raw net.Conn, begin []byte, addr, secret string, check func(*Hello) error, deadline time.Time) (*Conn, error) {
	raw.SetDeadline(deadline)
	h, err := ReadHello(&prefixed{begin, raw})
	if err != nil {
		return nil, err
	}
	a := Answer{Version: min(h.Max, MaxVersion), Min: MinVersion, Max: MaxVersion}
	t := transcript{purpose: h.Purpose, to: string(authOf(h.Auth, authTo)), asked: authOf(h.Auth, authNonce)}
	var refusal error
	switch {
	case a.Version < max(h.Min, MinVersion):
		refusal = &Error{BadVersion, fmt.Sprintf("the versions of the servers' protocols differ: %d to %d, and %d to %d here",
			h.Min, h.Max, MinVersion, MaxVersion)}
	case secret != "" && len(t.asked) != nonceSize:
		refusal = errNoSecret
	default:
		refusal = check(&h)
	}
	if refusal == nil && secret != "" {
		refusal = t.isFor(addr, raw)
	}
	if refusal == nil && secret != "" {
		t.given = newNonce()
		a.Auth = []Field{{authNonce, t.given}}
		if _, err := raw.Write(a.Append(nil)); err != nil {
			return nil, err
		}
		if refusal, err = proven(raw, secret, t); err != nil {
			return nil, err
		}
		a.Auth = []Field{{authProof, t.proof(secret, accepting)}}
	}
	if refusal != nil {
		a.Version, a.Refusal, a.Auth = 0, asError(refusal), nil
	}
	if _, err := raw.Write(a.Append(nil)); err != nil || refusal != nil {
		return nil, errors.Join(err, refusal)
	}
	raw.SetDeadline(time.Time{})
	return NewConn(raw, h.Purpose, a.Version, nil, nil), nil
}

// prefixed reads some bytes, and then from a connection.
type prefixed struct {
	begin []byte
	r     io.Reader
}

// Read implements io.Reader.
func (p *prefixed) Read(b []byte) (int, error) {
	if len(p.begin) > 0 {
		n := copy(b, p.begin)
		p.begin = p.begin[n:]
		return n, nil
	}
	return p.r.Read(b)
}

var (
	// errHello is wrapped by all errors of a hello or an answer that is malformed.
	errHello = errors.New("malformed hello")
	errMagic = fmt.Errorf("%w: unknown magic", errHello)
)

func appendMessage(b []byte, fields func(b []byte) []byte) []byte {
	b = append(b, Magic...)
	at := len(b)
	b = fields(append(b, 0, 0, 0, 0))
	binary.BigEndian.PutUint32(b[at:], uint32(len(b)-at-4))
	return b
}

func appendField(b []byte, number uint64, value []byte) []byte {
	return AppendPart(binary.AppendUvarint(b, number), value)
}

func appendNumberField(b []byte, number, value uint64) []byte {
	return appendField(b, number, binary.AppendUvarint(nil, value))
}

// appendAuth appends a field for each name and value.
func appendAuth(b []byte, number uint64, list []Field) []byte {
	for _, f := range list {
		b = appendField(b, number, append(AppendPart(nil, []byte(f.Name)), f.Value...))
	}
	return b
}

func addAuth(list []Field, field []byte) ([]Field, error) {
	name, value, err := Part(field)
	return append(list, Field{string(name), value}), err
}

// onlyNumber returns the value of a field that is one number.
func onlyNumber(field []byte) (uint64, error) {
	n, rest, err := Number(field)
	if err == nil && len(rest) > 0 {
		err = errPart
	}
	return n, err
}

// readFields reads a hello or an answer and calls fn for each field.
func readFields(r io.Reader, fn func(number uint64, value []byte) error) error {
	var head [len(Magic) + 4]byte
	if n, err := io.ReadFull(r, head[:]); string(head[:min(n, len(Magic))]) != Magic[:min(n, len(Magic))] {
		return errMagic
	} else if err != nil {
		return err
	}
	size := binary.BigEndian.Uint32(head[len(Magic):])
	if size > maxHello {
		return fmt.Errorf("%w: %d bytes", errHello, size)
	}
	fields, err := io.ReadAll(io.LimitReader(r, int64(size)))
	if err == nil && len(fields) < int(size) {
		err = io.ErrUnexpectedEOF
	}
	for len(fields) > 0 && err == nil {
		var number uint64
		var value []byte
		if number, fields, err = Number(fields); err == nil {
			value, fields, err = Part(fields)
		}
		if err == nil {
			err = fn(number, value)
		}
		if err != nil {
			err = fmt.Errorf("%w: %w", errHello, err)
		}
	}
	return err
}
