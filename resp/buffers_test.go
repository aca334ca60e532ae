package resp

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestBuffers(t *testing.T) {
	for _, n := range []int{0, 1, minLarge / 2, minLarge/2 + 1, minLarge - 1, minLarge, minLarge + 1, 300_000, minLarge << (largeClasses - 1), minLarge<<(largeClasses-1) + 1} {
		for range 3 {
			b := GetBuffer(n)
			require.Empty(t, b)
			require.GreaterOrEqual(t, cap(b), n)
			PutBuffer(append(b, bytes.Repeat([]byte{1}, n)...))
		}
		PutBuffer(make([]byte, n))
		require.GreaterOrEqual(t, cap(GetBuffer(n)), n, "a buffer of another size may have been given back")
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

func TestRoomIsMadeForWhatIsExpected(t *testing.T) {
	w := Writer{Expected: 100_000}
	w.Bulk(make([]byte, 100))
	require.Less(t, cap(w.Buf), 1000, "a short reply needs no more")
	w.Bulk(make([]byte, largeReply))
	require.GreaterOrEqual(t, cap(w.Buf), 100_000)
}
