package buffers

import (
	"bytes"
	"runtime"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"
)

func TestBuffers(t *testing.T) {
	for _, n := range []int{0, 1, Large / 2, Large/2 + 1, Large - 1, Large, Large + 1, 300_000, Large << (classes - 1),
		Large<<(classes-1) + 1} {
		for range 3 {
			b := Get(n)
			require.Empty(t, b)
			require.GreaterOrEqual(t, cap(b), n)
			Put(append(b, bytes.Repeat([]byte{1}, n)...))
		}
		Put(make([]byte, n))
		require.GreaterOrEqual(t, cap(Get(n)), n, "a buffer of another size may have been given back")
	}
	b := []byte("abc")
	for len(b) < 1_000_000 {
		n := len(b)
		b = Grow(b, n)
		require.Len(t, b, n)
		b = append(b, b...)
	}
	require.Equal(t, "abcabc", string(b[len(b)-6:]))
}

func TestFittingBuffersFit(t *testing.T) {
	again := 0
	for n := Large; n < 8*Large; n += 1000 {
		b := GetFitting(n)
		require.Empty(t, b)
		require.GreaterOrEqual(t, cap(b), n)
		require.LessOrEqual(t, cap(b), n+n/8+page)
		Put(b)
		if other := GetFitting(n); unsafe.SliceData(other) == unsafe.SliceData(b) {
			again++
		}
		Put(make([]byte, n))
		less := GetFitting(n - n/4)
		require.LessOrEqual(t, cap(less), n-n/4+n/8+page, "one that is too large is not kept for less")
	}
	require.NotZero(t, again, "the pools forget now and then, but not always")
}

func TestUnclearedMemoryIsTheCallers(t *testing.T) {
	var kept [][]byte
	for _, n := range []int{0, 1, 7, 8, 1000, 32 << 10, 32<<10 + 1, 1 << 20} {
		b := Uncleared(n)
		require.Empty(t, b)
		require.GreaterOrEqual(t, cap(b), n)
		require.LessOrEqual(t, cap(b), n+n/4+8)
		b = b[:cap(b)]
		for i := range b {
			b[i] = byte(n)
		}
		kept = append(kept, b)
	}
	runtime.GC()
	for _, b := range kept {
		for i := range b {
			require.Equal(t, b[0], b[i])
		}
	}
}

func BenchmarkUncleared(b *testing.B) {
	b.Run("uncleared", func(b *testing.B) {
		for b.Loop() {
			sink = Uncleared(256 << 10)
		}
	})
	b.Run("make", func(b *testing.B) {
		for b.Loop() {
			sink = make([]byte, 0, 256<<10)
		}
	})
}

var sink []byte
