package engine

import (
	"slices"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/atomredis/atomredis/internal/testing/testseed"
)

func TestRunsAreInTheOrderOfNames(t *testing.T) {
	random := testseed.Rand(t)
	for _, n := range []int{0, 1, 100, runLength, 5*runLength + 7} {
		var parts runs
		var want []string
		for len(want) < n {
			var some []part
			for range min(n-len(want), 1+random.IntN(300)) {
				name := strconv.Itoa(random.IntN(1 + n))
				some, want = append(some, part{name: name}), append(want, name)
			}
			parts.add(some)
		}
		parts.sort()
		slices.Sort(want)
		var got []string
		for p := range parts.all() {
			got = append(got, p.name)
		}
		require.Equal(t, len(slices.Compact(want)), len(got))
		require.True(t, slices.IsSorted(got))
	}
}
