package engine

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math"
	"slices"

	"github.com/atomredis/atomredis/internal/buffers"
)

// Strings that are stored in parts: to write or read them at once would take as much memory again, and long. The parts of a
// string are its pieces in order, each named by the position of its first byte. A changed string is stored as a whole under
// a new number, and the same checkpoint removes the old number: the parts under a number never mix two values.

// textSizes says how strings are stored.
type textSizes struct {
	whole int // length in bytes of the longest one that is stored in one piece
	piece int // and of the pieces of others
}

var storedTexts = textSizes{whole: 1 << 20, piece: 64 << 10}

// writeText gives all parts of a string to put, in pieces of a length in bytes. It needs no lock, because the string
// is lent.
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

// PieceName returns the name of the part of a string that begins at a place in it.
func PieceName(at uint64) []byte { return binary.BigEndian.AppendUint64(nil, at) }

// release gives a string back that was lent.
func (v *frozenValue) release() {
	if v.loan != nil {
		v.loan.Return()
		v.loan = nil
	}
}

// storeText gives a string that is to be stored in parts a fresh number for them, unless it is stored as it is. stale
// is the number of what a checkpoint has perhaps left in the store that has failed, 0 if there is none.
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

// dropText marks the stored parts of a string, in memory or not, as no longer needed, because it is about to change.
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

// textLength returns the length of a string that is stored in parts, 0 for everything else.
func (e *Entry) textLength() uint64 {
	if e.typ != String || e.flags&flagParts == 0 {
		return 0
	}
	return e.storedText().length
}

// storedText returns where a string is that is stored in parts.
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

// ReadText calls fn with the pieces of a string of a length in bytes, which read has as the parts under a number, in
// their order. It fails unless all of them are there. fn does not keep them.
func ReadText(parts, length uint64, read func(id uint64, fn func(name, data []byte) error) error,
	fn func(piece []byte)) error {
	at := uint64(0)
	err := read(parts, func(name, data []byte) error {
		if !bytes.Equal(name, PieceName(at)) || uint64(len(data)) > length-at {
			return errPieces
		}
		fn(data)
		if at += uint64(len(data)); at == length {
			return errAllRead // what lies behind is another value's, and may be damaged
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

// loadText returns the string that ReadText reads.
func loadText(parts, length uint64, read partsReader) ([]byte, error) {
	if length > math.MaxInt {
		return nil, errPieces
	}
	b := buffers.Uncleared(int(length))
	err := ReadText(parts, length, read, func(piece []byte) { b = append(b, piece...) })
	return b, err
}
