package geo

import (
	"cmp"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/atomredis/atomredis/internal/testing/testseed"
)

// Members at the same distance keep the order in which they were found, and sorting makes a fixed number of
// allocations.
func TestFoundMembersAreSortedByDistanceAndThenAsFound(t *testing.T) {
	testseed.Check(t, func(t *rapid.T) {
		var found []geoFound
		for i := range rapid.IntRange(0, 200).Draw(t, "members") {
			found = append(found, geoFound{score: float64(i), distance: float64(rapid.IntRange(0, 20).Draw(t, "distance"))})
		}
		count := rapid.IntRange(0, 50).Draw(t, "count")
		for _, order := range []geoOrder{nearestFirst, farthestFirst} {
			want := slices.Clone(found)
			slices.SortStableFunc(want, func(a, b geoFound) int {
				if order == farthestFirst {
					a, b = b, a
				}
				return cmp.Compare(a.distance, b.distance)
			})
			if count != 0 {
				want = want[:min(count, len(want))]
			}
			require.Equal(t, len(want), len(sortFound(found, order, int64(count))))
			for i, f := range sortFound(found, order, int64(count)) {
				require.Equal(t, want[i].score, f.score)
			}
		}
	})
	found := make([]geoFound, 1000)
	require.LessOrEqual(t, testing.AllocsPerRun(10, func() { sortFound(found, nearestFirst, 10) }), 2.0)
}
