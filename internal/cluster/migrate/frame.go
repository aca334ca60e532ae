package migrate

import (
	"encoding/binary"

	"github.com/atomredis/atomredis/internal/cluster"
	"github.com/atomredis/atomredis/internal/wire/peer"
)

// A connection of peer.Migration begins with the target's request, which the source accepts with a reply. Then the source
// sends states of keys, ends of rounds, and at last what it has agreed on; the target acknowledges the ends of rounds, and
// at last that it has claimed the slots. peer.Failed ends the migration.

// The kinds of frames.
const (
	frameState    peer.Kind = 's' // database, deadline, key, payload
	frameBlessed  peer.Kind = 'b' // the same, of a blessed key
	frameGone     peer.Kind = 'g' // database, key
	frameRound    peer.Kind = 'r' // its number
	frameLast     peer.Kind = 'l' // its number; the slots may be exported after it, so that the target must not lose keys any more
	frameExported peer.Kind = 'd' // a cluster.Other in JSON
	// frameAck is the target's: it has committed all states up to the end of a round, whose number is the payload; 0 says
	// that it has claimed the slots.
	frameAck peer.Kind = 'a'
)

// exportRequest is the request of the target.
type exportRequest struct {
	Shard *cluster.Other // that asks
	Task  string
	Slots []cluster.Range
}

// maxFrame is the longest frame, in bytes.
const maxFrame = 8 << 30

// frame is one of frameState, frameBlessed, frameGone, frameRound and frameLast. Unused fields are zero.
type frame struct {
	kind     peer.Kind
	db       int
	deadline int64 // ms since 1970, 0 is none
	round    uint64
	key      []byte
	body     []byte // the payload
}

// hasState reports whether the frame has a key's state.
func (f *frame) hasState() bool { return f.kind == frameState || f.kind == frameBlessed }

// send sends a frame with the next Flush.
func (f *frame) send(c *peer.Conn) error {
	var b []byte
	switch f.kind {
	case frameState, frameBlessed:
		b = binary.AppendVarint(binary.AppendUvarint(nil, uint64(f.db)), f.deadline)
		b = binary.AppendUvarint(peer.AppendPart(b, f.key), uint64(len(f.body)))
		return c.Send(f.kind, b, f.body)
	case frameGone:
		b = peer.AppendPart(binary.AppendUvarint(nil, uint64(f.db)), f.key)
	default:
		b = binary.AppendUvarint(nil, f.round)
	}
	return c.Send(f.kind, b)
}

// parseFrame parses the payload of a frame, of which it keeps slices.
func parseFrame(kind peer.Kind, b []byte) (f frame, err error) {
	f.kind = kind
	if kind == frameRound || kind == frameLast {
		f.round, b, err = peer.Number(b)
		return f, onlyIf(err, b)
	}
	if !f.hasState() && kind != frameGone {
		return f, peer.ErrFrame
	}
	db, b, err := peer.Number(b)
	if err == nil && db > 1<<30 {
		err = peer.ErrFrame
	}
	f.db = int(db)
	if err == nil && f.hasState() {
		var size int
		if f.deadline, size = binary.Varint(b); size <= 0 {
			return f, peer.ErrFrame
		}
		b = b[size:]
	}
	if err == nil {
		f.key, b, err = peer.Part(b)
	}
	if err == nil && f.hasState() {
		f.body, b, err = peer.Part(b)
	}
	return f, onlyIf(err, b)
}

// onlyIf returns err, or an error if there is a rest.
func onlyIf(err error, rest []byte) error {
	if err == nil && len(rest) > 0 {
		return peer.ErrFrame
	}
	return err
}
