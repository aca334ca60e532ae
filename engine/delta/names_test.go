package delta

import (
	"slices"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/atomredis/atomredis/internal/testing/testseed"
)

func TestNamesAreAllThatWereAdded(t *testing.T) {
	require.Empty(t, (*Names)(nil).Sorted())
	testseed.Check(t, func(t *rapid.T) {
		var n Names
		want := map[string]bool{}
		parts := rapid.IntRange(0, 3000).Draw(t, "parts")
		for range rapid.IntRange(0, 3).Draw(t, "times") {
			first, most := rapid.IntRange(0, 9000).Draw(t, "first"), rapid.IntRange(1, 9000).Draw(t, "most")
			for i := range rapid.IntRange(0, 20_000).Draw(t, "n") {
				name := strconv.Itoa(first + i%most)
				n.add(name, parts)
				want[name] = true
			}
		}
		sorted := n.Sorted()
		if len(sorted) != len(want) || !slices.IsSorted(sorted) {
			require.Fail(t, "not what was added", "%d instead of %d", len(sorted), len(want))
		}
		for _, name := range sorted {
			if !want[name] {
				require.Fail(t, "not added", name)
			}
		}
		require.LessOrEqual(t, n.len(), len(want)+minListed+2*parts)
	})
}

// TestNamesThatComeAndGoDoNotPileUp changes the same few parts all the time.
func TestNamesThatComeAndGoDoNotPileUp(t *testing.T) {
	l := NewLog(1, &Epochs{Current: 1})
	for i := range 100 * minListed {
		l.After(strconv.Itoa(i%100), 100)
	}
	require.Equal(t, 100, l.names.len())
	require.Len(t, l.names.Sorted(), 100)
}
