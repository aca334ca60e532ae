// Package old speaks with servers that do not know the hello of package peer: early ones of 0.1.0. Version 0.3 may drop the
// package, with its uses in package raft (docs/releasing.md).
//
// Such a server tells the purpose of a connection by its first byte: R for Raft, Q for questions about the group, S
// for all others, where a question in JSON on a line of its own follows. The rest depends on the purpose. The forms
// here read it as frames of package peer, and write such frames in the form that the old server expects.
package old

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"

	"github.com/atomredis/atomredis/internal/wire/peer"
)

// First bytes of connections.
const (
	forRaft      = 'R'
	forQuestions = 'Q'
	forServer    = 'S'
)

// The values of question.Ask with a purpose of their own.
var asks = map[string]peer.Purpose{"give": peer.Migration, "proxy": peer.Forward, "stream": peer.Stream,
	"publish": peer.Broadcast, "publish-shard": peer.BroadcastShard}

const (
	// maxQuestion and maxLine are the longest question and the longest answer, in bytes.
	maxQuestion = 1 << 20
	maxLine     = 16 << 20
)

var errFirst = errors.New("unknown purpose of a connection")

// Open prepares a new connection to an old server, until the deadline at most.
func Open(raw net.Conn, purpose peer.Purpose, deadline time.Time) (*peer.Conn, error) {
	var begin []byte
	switch purpose {
	case peer.Raft:
		begin = []byte{forRaft}
	case peer.Members:
		begin = []byte{forQuestions}
	default:
		begin = []byte{forServer}
		for ask, of := range asks {
			if of == purpose && purpose != peer.Migration { // its question is a request
				begin = fmt.Appendf(begin, `{"Ask":%q}`+"\n", ask)
			}
		}
	}
	raw.SetDeadline(deadline)
	if _, err := raw.Write(begin); err != nil {
		return nil, err
	}
	raw.SetDeadline(time.Time{})
	return peer.NewConn(raw, purpose, 0, dialled(purpose), nil), nil
}

// dialled returns the form of a connection to an old server.
func dialled(purpose peer.Purpose) peer.Form {
	switch purpose {
	case peer.Migration:
		return &migrationTarget{}
	case peer.Forward:
		return follower{}
	case peer.Broadcast, peer.BroadcastShard:
		return messages{}
	}
	return &questions{asks: true}
}

// Accept prepares a connection that an old server has opened, until the deadline at most. first is its first byte.
func Accept(raw net.Conn, first byte, deadline time.Time) (*peer.Conn, error) {
	switch first {
	case forRaft:
		return peer.NewConn(raw, peer.Raft, 0, nil, nil), nil
	case forQuestions:
		return peer.NewConn(raw, peer.Members, 0, &questions{}, nil), nil
	case forServer:
	default:
		return nil, errFirst
	}
	raw.SetDeadline(deadline)
	in := bufio.NewReader(raw)
	line, err := readLine(in, maxQuestion)
	if err != nil {
		return nil, err
	}
	ahead, _ := in.Peek(in.Buffered())
	raw.SetDeadline(time.Time{})
	var q struct{ Ask string }
	if err := json.Unmarshal(line, &q); err != nil {
		return nil, err
	}
	purpose, ok := asks[q.Ask]
	if !ok {
		purpose = peer.Shards
	}
	var form peer.Form
	switch purpose {
	case peer.Migration:
		form = &migrationSource{question: line}
	case peer.Forward:
		form = leader{}
	case peer.Broadcast, peer.BroadcastShard:
		form = messages{}
	case peer.Stream:
		form = &questions{}
	default:
		form = &questions{question: line}
	}
	return peer.NewConn(raw, purpose, 0, form, ahead), nil
}

// readLine reads a line of at most limit bytes.
func readLine(r *bufio.Reader, limit int64) ([]byte, error) {
	var line []byte
	for {
		part, err := r.ReadSlice('\n')
		line = append(line, part...)
		switch {
		case int64(len(line)) > limit:
			return nil, peer.ErrTooLong
		case err == nil:
			return bytes.TrimSuffix(line, []byte("\n")), nil
		case !errors.Is(err, bufio.ErrBufferFull):
			if len(line) > 0 && errors.Is(err, io.EOF) {
				err = io.ErrUnexpectedEOF
			}
			return nil, err
		}
	}
}

// codes are the codes of errors that old servers send as texts.
var codes = map[string]peer.Code{
	"this server does not lead its group":              peer.NotLeading,
	"this server does not lead its shard":              peer.NotLeading,
	"slots are on their way from one shard to another": peer.Busy,
}

// failed returns the payload of a frame peer.Failed.
func failed(text string) []byte {
	return append(peer.AppendPart(nil, []byte(codes[text])), text...)
}

// failure returns the text of a frame peer.Failed.
func failure(parts [][]byte) (string, error) {
	_, text, err := peer.Part(bytes.Join(parts, nil))
	return string(text), err
}

// failedLine returns the answer for an error.
func failedLine(parts [][]byte) ([]byte, error) {
	text, err := failure(parts)
	if err != nil {
		return nil, err
	}
	line, err := json.Marshal(struct{ Error string }{text})
	return append(line, '\n'), err
}

var newline = []byte("\n")

// errKind is returned for a frame that an old server does not know.
var errKind = errors.New("the other server is too old for this frame")

// questions is the form of a question and its answer, both lines of JSON.
type questions struct {
	asks     bool   // this server asks
	question []byte // already read
}

// Head implements peer.Form.
func (f *questions) Head(r *bufio.Reader, limit int64) (kind peer.Kind, begin []byte, rest int64, err error) {
	if f.question != nil {
		begin, f.question = f.question, nil
		return peer.Request, begin, 0, nil
	}
	line, err := readLine(r, min(limit, maxLine))
	if err != nil || !f.asks {
		return peer.Request, line, 0, err
	}
	kind, begin, err = answered(line)
	return kind, begin, 0, err
}

// answered returns the frame for an answer.
func answered(line []byte) (kind peer.Kind, payload []byte, err error) {
	var a struct{ Error string }
	if err := json.Unmarshal(line, &a); err != nil {
		return 0, nil, err
	}
	if a.Error != "" {
		return peer.Failed, failed(a.Error), nil
	}
	return peer.Reply, line, nil
}

// Append implements peer.Form.
func (f *questions) Append(b []byte, kind peer.Kind, parts [][]byte) ([]byte, [][]byte, error) {
	switch kind {
	case peer.Request, peer.Reply:
		return b, append(parts, newline), nil
	case peer.Failed:
		line, err := failedLine(parts)
		return append(b, line...), nil, err
	}
	return b, nil, errKind
}

// Peers remembers which servers are old, so that they are not tried with a hello each time.
type Peers struct {
	mu    sync.Mutex
	until map[string]time.Time // by address
}

// remembered is the time for which a server counts as old. A server that is upgraded meanwhile still understands the
// old forms.
const remembered = time.Minute

// Add records that the server with an address is old.
func (p *Peers) Add(addr string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.until == nil {
		p.until = map[string]time.Time{}
	}
	p.until[addr] = time.Now().Add(remembered)
}

// Has reports whether the server with an address is old.
func (p *Peers) Has(addr string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	until, ok := p.until[addr]
	if ok && time.Now().After(until) {
		delete(p.until, addr)
		ok = false
	}
	return ok
}
