package engine

import (
	"strings"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"
)

// written is the output of a checkpoint.
type written struct {
	heads   map[string]Head
	pieces  map[uint64]string
	dropped []uint64
	longest int // length of the longest piece
}

// checkpointed runs a checkpoint. It calls piece with every piece of a string.
func checkpointed(t *testing.T, ks *Keyspace, piece func(data []byte)) written {
	w := written{heads: map[string]Head{}, pieces: map[uint64]string{}}
	f := ks.Freeze(func() {})
	require.NoError(t, f.Heads(func(img *Image) error {
		h := img.Head
		h.Blob = []byte(string(h.Blob))
		w.heads[img.Key] = h
		return nil
	}, func(uint32, string, bool) error { return nil }))
	require.NoError(t, f.Parts(nil, func(id uint64) error {
		w.dropped = append(w.dropped, id)
		return nil
	}, func(id uint64, _ string, data []byte) error {
		piece(data)
		w.pieces[id] += string(data)
		w.longest = max(w.longest, len(data))
		return nil
	}, nil))
	f.Done()
	return w
}

// storedKeyspace returns an empty keyspace with storage.
func storedKeyspace(t *testing.T) *Keyspace {
	source := newMemoryStore()
	ks := New(Options{Source: source})
	t.Cleanup(ks.Close)
	require.NoError(t, ks.Restore(source.state))
	ks.EndReplay(nil)
	return ks
}

func TestALongStringIsHandedOverInPiecesOfItself(t *testing.T) {
	ks := storedKeyspace(t)
	value := strings.Repeat("0123456789", 600_000)
	set(ks, "long", value, 0)
	set(ks, "whole", value[:storedTexts.whole], 0)
	var own []byte
	under(ks, func(g *Guard) { own = g.Read(0, []byte("long")).Bytes() })
	within := func(data []byte) {
		at := uintptr(unsafe.Pointer(&data[0])) - uintptr(unsafe.Pointer(&own[0]))
		require.Less(t, at, uintptr(len(own)), "the piece is a copy")
	}
	w := checkpointed(t, ks, within)
	h := w.heads["long"]
	require.NotZero(t, h.Parts)
	require.EqualValues(t, len(value), h.Length)
	require.Equal(t, storedTexts.piece, w.longest)
	require.Equal(t, map[uint64]string{h.Parts: value}, w.pieces)
	require.Zero(t, w.heads["whole"].Parts)
	require.True(t, w.heads["whole"].External)

	// Operations that do not change the value write nothing.
	under(ks, func(g *Guard) {
		e := g.Write(0, []byte("long"))
		g.SetDeadline(e, ks.Now()+1e9)
		g.Changed(e, EventGeneric, "expire")
	})
	under(ks, func(g *Guard) {
		moved := g.Move(g.Write(0, []byte("long")), 1, []byte("moved"))
		g.Changed(moved, EventGeneric, "move_to")
	})
	w = checkpointed(t, ks, within)
	require.Equal(t, h.Parts, w.heads["moved"].Parts)
	require.NotZero(t, w.heads["moved"].Deadline)
	require.Empty(t, w.pieces)
	require.Empty(t, w.dropped)

	// Changing one byte rewrites the string under another number.
	under(ks, func(g *Guard) {
		e := g.Write(1, []byte("moved"))
		e.Resize(len(value))[5] = 'x'
		g.Changed(e, EventString, "setrange")
	})
	w = checkpointed(t, ks, within)
	now := w.heads["moved"].Parts
	require.Greater(t, now, h.Parts)
	require.Equal(t, []uint64{h.Parts}, w.dropped)
	require.Equal(t, map[uint64]string{now: "01234x" + value[6:]}, w.pieces)

	// A string that becomes short is stored whole.
	under(ks, func(g *Guard) {
		e := g.Write(1, []byte("moved"))
		e.Resize(storedTexts.whole)
		g.Changed(e, EventString, "setrange")
	})
	w = checkpointed(t, ks, within)
	require.Zero(t, w.heads["moved"].Parts)
	require.Equal(t, []uint64{now}, w.dropped)
	require.Empty(t, w.pieces)
}

// Changing a string that a checkpoint or a snapshot still has to write does not wait for an unneeded copy.
func TestALongStringIsLentToWhatHasStillToReadIt(t *testing.T) {
	ks := storedKeyspace(t)
	value := strings.Repeat("0123456789", 200_000)
	set(ks, "long", value, 0)
	var own []byte
	under(ks, func(g *Guard) { own = g.Read(0, []byte("long")).Bytes() })
	same := func(data []byte) { require.Same(t, &own[0], &data[0]) }

	f := ks.Freeze(func() {})
	s := begin(t, ks, copiedPieces)
	set(ks, "long", "another one", 0)
	require.EqualValues(t, cap(own), ks.LentMemory())
	require.Zero(t, s.KeptBytes())
	require.NoError(t, s.Each(func(_ int, e *Entry) error {
		same(e.Bytes())
		return nil
	}))
	require.NoError(t, s.Close())
	require.NoError(t, f.Heads(func(img *Image) error {
		require.EqualValues(t, len(value), img.Head.Length)
		same(img.Head.Blob)
		return nil
	}, nil))
	f.Abort()
	checkNothingLent(t, ks)
	w := checkpointed(t, ks, func([]byte) {})
	require.Equal(t, "another one", string(w.heads["long"].Blob))
	require.Len(t, w.dropped, 1, "what the checkpoint has perhaps left that failed")
}

func TestAStringOfWhichAPieceIsMissingIsNotRead(t *testing.T) {
	name := func(at byte) []byte { return []byte{0, 0, 0, 0, 0, 0, 0, at} }
	type piece struct {
		name []byte
		data string
	}
	for what, pieces := range map[string][]piece{
		"the first":     {{name(3), "def"}, {name(6), "g"}},
		"one within":    {{name(0), "abc"}, {name(6), "g"}},
		"the last":      {{name(0), "abc"}, {name(3), "def"}},
		"all":           {},
		"a part of one": {{name(0), "abc"}, {name(3), "de"}, {name(6), "g"}},
		"too much":      {{name(0), "abc"}, {name(3), "def"}, {name(6), "gh"}},
		"a gap":         {{name(0), "abc"}, {name(4), "efg"}},
		"a name":        {{[]byte("x"), "abcdefg"}},
	} {
		read := func(_ uint64, fn func(name, data []byte) error) error {
			for _, p := range pieces {
				if err := fn(p.name, []byte(p.data)); err != nil {
					return err
				}
			}
			return nil
		}
		_, err := loadText(1, 7, read)
		require.ErrorIs(t, err, errPieces, what)
	}
	_, err := loadText(1, 1<<63, nil)
	require.ErrorIs(t, err, errPieces)
}
