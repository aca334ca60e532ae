package engine

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math"
	"slices"

	"github.com/atomredis/atomredis/internal/buffers"
)

// Strings stored in parts: writing or reading them at once would double their memory and take long. The parts of a
// string are its consecutive pieces, each named by the position of its first byte. A changed string is stored as a
// whole under a new number, and the same checkpoint removes the old number: parts under a number never mix two values.

// textSizes says how to store strings.
type textSizes struct {
	whole int // length in bytes of the longest one stored in one piece
	piece int // length of the pieces of longer ones
}

var storedTexts = textSizes{whole: 1 << 20, piece: 64 << 10}

// writeText passes all pieces of a string, size bytes each, to put. It needs no lock, because the string is lent.
func (v *frozenValue) writeText(size int, put func(id uint64, name string, data []byte) error) error {
	at := uint64(0)
	for piece := range slices.Chunk(v.text, size) {
		if err := put(v.id, string(PieceName(at)), piece); err != nil {
			return err
		}
		at += uint64(len(piece))
	}
	v.release()
	return nil
}

// PieceName returns the part name of the piece that begins at a position.
func PieceName(at uint64) []byte { return binary.BigEndian.AppendUint64(nil, at) }

// release returns the loan of a string.
func (v *frozenValue) release() {
	if v.loan != nil {
		v.loan.Return()
		v.loan = nil
	}
}

// storeText gives a string to be stored in parts a new number for them, unless its present state is stored. stale is
// the number of parts that a failed checkpoint may have left in the store, 0 if there are none.
func (g *Guard) storeText(e *Entry) (fresh bool, stale uint64) {
	long := e.long()
	if long == nil || len(long.b) <= g.ks.texts.whole {
		return false, 0
	}
	if s := long.stored; s != nil {
		if s.by == nil || !s.by.failed {
			return false, 0
		}
		stale = s.parts
	}
	long.stored = g.ks.standIn(g.ks.nextParts.Add(1), 0, uint64(len(long.b)))
	long.stored.own().by = g.ks.storing
	e.flags |= flagParts
	return true, stale
}

// dropText marks the stored parts of a string, in memory or not, as obsolete, because it is about to change.
func (e *Entry) dropText() {
	if e.typ != String || e.flags&flagParts == 0 {
		return
	}
	at := e.storedText()
	s := &at.ks.shards[e.shard]
	s.dropped = append(s.dropped, at.parts)
	if long := e.long(); long != nil {
		long.stored = nil
	}
	e.flags &^= flagParts
}

// textLength returns the length of a string stored in parts, 0 for other values.
func (e *Entry) textLength() uint64 {
	if e.typ != String || e.flags&flagParts == 0 {
		return 0
	}
	return e.storedText().length
}

// storedText returns where a string is stored in parts.
func (e *Entry) storedText() *unloaded {
	if e.flags&flagUnloaded != 0 {
		return e.unloaded()
	}
	return e.long().stored
}

var (
	errPieces  = errors.New("a piece of the string is missing")
	errAllRead = errors.New("all has been read")
)

// ReadText calls fn with the consecutive pieces of a string of the given length. read returns them as the parts under a
// number. It fails unless all pieces exist. fn must not keep them.
func ReadText(parts, length uint64, read func(id uint64, fn func(name, data []byte) error) error,
	fn func(piece []byte)) error {
	at := uint64(0)
	err := read(parts, func(name, data []byte) error {
		if !bytes.Equal(name, PieceName(at)) || uint64(len(data)) > length-at {
			return errPieces
		}
		fn(data)
		if at += uint64(len(data)); at == length {
			return errAllRead // later parts belong to another value, and may be damaged
		}
		return nil
	})
	switch {
	case errors.Is(err, errAllRead):
		return nil
	case err == nil:
		return errPieces
	}
	return err
}

// loadText reads a whole string as ReadText does.
func loadText(parts, length uint64, read partsReader) ([]byte, error) {
	if length > math.MaxInt {
		return nil, errPieces
	}
	b := buffers.Uncleared(int(length))
	err := ReadText(parts, length, read, func(piece []byte) { b = append(b, piece...) })
	return b, err
}
