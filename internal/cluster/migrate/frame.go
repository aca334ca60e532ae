package migrate

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// What the source of a migration sends after its answer, as frames of a kind and its fields: states of keys, ends of
// rounds, and in the end what it has agreed on. The target answers the ends of rounds, and says in the end that it has
// claimed the slots, with an ack each.

const (
	frameState    = 's' // database, deadline, key, payload
	frameGone     = 'g' // database, key
	frameRound    = 'r' // its number
	frameLast     = 'l' // its number; the slots may be exported after it, so that the target must not lose keys any more
	frameExported = 'd' // a cluster.Other
	frameError    = 'e' // text
)

// ack reports that the target has committed all states up to the end of a round.
type ack struct{ Round uint64 }

// maxFramePart is the longest key, payload or text, in bytes.
const maxFramePart = 8 << 30

var errFrame = errors.New("the other shard has sent something that is no state of a key")

// frame is one of them. Unused fields are zero.
type frame struct {
	kind     byte
	db       int
	deadline int64 // ms since 1970, 0 is none
	round    uint64
	key      []byte
	body     []byte // the payload, the text or the JSON
}

// write writes a frame.
func (f *frame) write(w *bufio.Writer) error {
	b := append(w.AvailableBuffer(), f.kind)
	part := func(p []byte) {
		b = binary.AppendUvarint(b, uint64(len(p)))
		_, _ = w.Write(b)
		_, _ = w.Write(p)
		b = w.AvailableBuffer()
	}
	switch f.kind {
	case frameState:
		b = binary.AppendVarint(binary.AppendUvarint(b, uint64(f.db)), f.deadline)
		part(f.key)
		part(f.body)
	case frameGone:
		b = binary.AppendUvarint(b, uint64(f.db))
		part(f.key)
	case frameRound, frameLast:
		b = binary.AppendUvarint(b, f.round)
	default:
		part(f.body)
	}
	_, err := w.Write(b)
	return err
}

// readFrame reads a frame. It allocates memory only for bytes that have arrived.
func readFrame(r *bufio.Reader) (f frame, err error) {
	if f.kind, err = r.ReadByte(); err != nil {
		return f, err
	}
	number := func() (n uint64) {
		if err == nil {
			n, err = binary.ReadUvarint(r)
		}
		return n
	}
	part := func() []byte {
		n := number()
		if err == nil && n > maxFramePart {
			err = errFrame
		}
		if err != nil {
			return nil
		}
		var b bytes.Buffer
		if n < 1<<16 {
			b.Grow(int(n))
		}
		if _, err = io.CopyN(&b, r, int64(n)); errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		return b.Bytes()
	}
	db := func() int {
		n := number()
		if n > 1<<30 {
			err = errors.Join(err, errFrame)
		}
		return int(n)
	}
	switch f.kind {
	case frameState:
		f.db = db()
		if err == nil {
			f.deadline, err = binary.ReadVarint(r)
		}
		f.key, f.body = part(), part()
	case frameGone:
		f.db, f.key = db(), part()
	case frameRound, frameLast:
		f.round = number()
	case frameExported, frameError:
		f.body = part()
	default:
		return f, fmt.Errorf("%w: %q", errFrame, f.kind)
	}
	return f, err
}
