package dict

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTextKeepsStringsOfAnyLength(t *testing.T) {
	for _, n := range []int{0, 1, 2, 7, 15, 126, 127, 128, 129, 300, 1<<14 - 1, 1 << 14, 1 << 21, 1<<21 + 1} {
		b := bytes.Repeat([]byte("x"), n)
		text := NewText(b)
		if n > 0 {
			b[0] = 'y'
			require.Equal(t, "x", text.Key()[:1])
			b[0] = 'x'
		}
		require.True(t, string(b) == text.Key(), n)
		require.LessOrEqual(t, TextLen(b), n+1+n/127)
	}
}
