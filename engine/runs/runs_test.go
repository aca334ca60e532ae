package runs

import (
	"slices"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/atomredis/atomredis/internal/testing/testseed"
)

func TestRunsAreInTheOrderOfNames(t *testing.T) {
	random := testseed.Rand(t)
	for _, n := range []int{0, 1, 100, length, 5*length + 7} {
		var parts Runs
		var want []string
		for len(want) < n {
			var some []Part
			for range min(n-len(want), 1+random.IntN(300)) {
				name := strconv.Itoa(random.IntN(1 + n))
				some, want = append(some, Part{Name: name}), append(want, name)
			}
			parts.Add(some)
		}
		parts.Sort()
		slices.Sort(want)
		var got []string
		for p := range parts.All() {
			got = append(got, p.Name)
		}
		require.Equal(t, len(slices.Compact(want)), len(got))
		require.True(t, slices.IsSorted(got))
	}
}
