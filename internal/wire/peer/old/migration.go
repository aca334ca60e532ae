package old

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"io"

	"github.com/atomredis/atomredis/internal/wire/peer"
)

// The old form of a migration. The source answers the question with a line. Then it sends frames of a kind and its fields,
// without a length before them, and the target sends acknowledgements as lines.

// The kinds of frames. All but failedState have the same letters in package migrate.
const (
	state       = 's' // database, deadline, key, payload
	gone        = 'g' // database, key
	round       = 'r' // its number
	lastRound   = 'l' // its number
	exported    = 'd' // JSON
	failedState = 'e' // text
	ack         = 'a' // the number of a round; a line in the old form
)

// maxPart is the longest key, payload or text, in bytes.
const maxPart = 8 << 30

// ackLine is an acknowledgement.
type ackLine struct{ Round uint64 }

// migrationTarget is the form of a connection to an old source.
type migrationTarget struct {
	answered bool // the answer to the question has come
}

// Head implements peer.Form.
func (f *migrationTarget) Head(r *bufio.Reader, limit int64) (kind peer.Kind, payload []byte, rest int64, err error) {
	if !f.answered {
		f.answered = true
		line, err := readLine(r, maxLine)
		if err != nil {
			return 0, nil, 0, err
		}
		kind, payload, err = answered(line)
		return kind, payload, 0, err
	}
	kind, payload, err = readState(r, limit)
	return kind, payload, 0, err
}

// readState reads a frame of the source.
func readState(r *bufio.Reader, limit int64) (kind peer.Kind, payload []byte, err error) {
	first, err := r.ReadByte()
	if err != nil {
		return 0, nil, err
	}
	// payload gets the bytes that are read.
	number := func() (n uint64) {
		if err == nil {
			if n, err = binary.ReadUvarint(r); err == nil {
				payload = binary.AppendUvarint(payload, n)
			}
		}
		return n
	}
	content := func(n uint64) {
		if err == nil && n > uint64(min(limit, maxPart)) {
			err = peer.ErrTooLong
		}
		if err != nil {
			return
		}
		b := bytes.NewBuffer(payload) // it grows as bytes arrive
		_, err = io.CopyN(b, r, int64(n))
		payload = b.Bytes()
	}
	switch kind = peer.Kind(first); kind {
	case state:
		number()
		number() // the deadline, whose sign does not matter here
		content(number())
		content(number())
	case gone:
		number()
		content(number())
	case round, lastRound:
		number()
	case exported, failedState:
		n := number()
		payload = nil
		content(n)
		if kind == failedState {
			kind, payload = peer.Failed, failed(string(payload))
		}
	default:
		err = peer.ErrFrame
	}
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return kind, payload, err
}

// Append implements peer.Form.
func (f *migrationTarget) Append(b []byte, kind peer.Kind, parts [][]byte) ([]byte, [][]byte, error) {
	payload := bytes.Join(parts, nil)
	switch kind {
	case peer.Request:
		if len(payload) < 3 || payload[0] != '{' {
			return b, nil, errKind
		}
		b = append(b, `{"Ask":"give",`...)
		return append(append(b, payload[1:]...), '\n'), nil, nil
	case ack:
		n, _, err := peer.Number(payload)
		if err != nil {
			return b, nil, err
		}
		line, err := json.Marshal(ackLine{n})
		return append(append(b, line...), '\n'), nil, err
	}
	return b, nil, errKind
}

// migrationSource is the form of a connection from an old target.
type migrationSource struct {
	question []byte // already read
	answered bool   // the answer was sent; only the writer uses it
}

// Head implements peer.Form.
func (f *migrationSource) Head(r *bufio.Reader, limit int64) (kind peer.Kind, payload []byte, rest int64, err error) {
	if f.question != nil {
		payload, f.question = f.question, nil
		return peer.Request, payload, 0, nil
	}
	line, err := readLine(r, min(limit, maxLine))
	if err != nil {
		return 0, nil, 0, err
	}
	var a ackLine
	err = json.Unmarshal(line, &a)
	return ack, binary.AppendUvarint(nil, a.Round), 0, err
}

// Append implements peer.Form.
func (f *migrationSource) Append(b []byte, kind peer.Kind, parts [][]byte) ([]byte, [][]byte, error) {
	switch kind {
	case peer.Reply:
		f.answered = true
		return append(b, "{}\n"...), nil, nil
	case peer.Failed:
		if !f.answered {
			line, err := failedLine(parts)
			return append(b, line...), nil, err
		}
		text, err := failure(parts)
		return peer.AppendPart(append(b, failedState), []byte(text)), nil, err
	case exported:
		return peer.AppendPart(append(b, exported), bytes.Join(parts, nil)), nil, nil
	case state, gone, round, lastRound:
		return append(b, byte(kind)), parts, nil
	}
	return b, nil, errKind
}
