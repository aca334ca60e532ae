package engine

import (
	"bytes"
	"runtime"
	"strings"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/atomredis/atomredis/engine/hashes"
	"github.com/atomredis/atomredis/internal/testing/testseed"
)

func TestEntryIsSmall(t *testing.T) {
	require.LessOrEqual(t, unsafe.Sizeof(Entry{}), uintptr(48))
}

// A string behaves like a []byte, wherever it is stored, and the key does not change.
func TestStringValue(t *testing.T) {
	testseed.Check(t, func(t *rapid.T) {
		lengths := rapid.OneOf(rapid.IntRange(0, 40), rapid.IntRange(0, 1200), rapid.IntRange(1000, 1040))
		text := func(name string) []byte {
			return bytes.Repeat([]byte{rapid.Byte().Draw(t, name)}, lengths.Draw(t, "length of "+name))
		}
		key := string(text("key"))
		want := text("value")
		e := newEntry(key, want)
		for range rapid.IntRange(1, 20).Draw(t, "steps") {
			switch rapid.IntRange(0, 4).Draw(t, "step") {
			case 0:
				want = text("value")
				e.SetBytes(want)
			case 1:
				want = text("value")
				e.own(bytes.Clone(want))
			case 2:
				n := lengths.Draw(t, "size")
				want = append(bytes.Clone(want[:min(n, len(want))]), make([]byte, max(0, n-len(want)))...)
				require.Equal(t, string(want), string(e.Resize(n)))
			case 3:
				tail := text("tail")
				copy(e.Resize(len(want) + len(tail))[len(want):], tail)
				want = append(bytes.Clone(want), tail...)
			case 4:
				e.setCollection(new(hashes.Hash))
				require.Zero(t, e.Hash().Len())
				e.discard()
				e.typ = String
				want = nil
			}
			require.Equal(t, key, e.Key())
			require.Equal(t, string(want), string(e.Bytes()))
			require.GreaterOrEqual(t, int(e.units)*textUnit, int(e.strLen))
		}
	})
}

// References to keys stay valid when the value moves.
func TestKeyOutlivesItsMemory(t *testing.T) {
	e := newEntry("key", []byte("value"))
	kept := e.Key()
	e.SetBytes(bytes.Repeat([]byte("x"), 200))
	e.SetBytes(bytes.Repeat([]byte("y"), 5000))
	runtime.GC()
	require.Equal(t, "key", kept)
	require.Equal(t, "key", e.Key())
}

func TestAppendGrowsWithRoomToSpare(t *testing.T) {
	e := newEntry("key", nil)
	moves := 0
	for n := range 100_000 {
		before := unsafe.SliceData(e.Bytes())
		e.Resize(n + 1)[n] = 'x'
		if unsafe.SliceData(e.Bytes()) != before {
			moves++
		}
	}
	require.Equal(t, strings.Repeat("x", 100_000), string(e.Bytes()))
	require.Less(t, moves, 100)
}
