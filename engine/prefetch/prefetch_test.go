package prefetch

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestListHasTheLinesOfBothEnds(t *testing.T) {
	const at = 100 * LineSize // unmapped memory, which is harmless
	var l List
	l.Add(0, 10)
	require.Zero(t, l.n)
	l.Fetch()
	l.Add(at+3, LineSize-3)
	require.Equal(t, []uintptr{at + 3}, l.addresses[:l.n])
	l.Add(at+3, LineSize-2)
	require.Equal(t, []uintptr{at + 3, at + 3, at + LineSize}, l.addresses[:l.n])
	l.Fetch()
	require.Zero(t, l.n)
	for range Len {
		l.Add(at+3, LineSize-2)
	}
	require.Equal(t, Len, l.n)
	l.Fetch()
	require.Zero(t, l.n)
}
