package dict

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestSampleChoosesDifferentNumbersInRange(t *testing.T) {
	for _, n := range []int{0, 1, 2, 3, 10, 100} {
		for count := -1; count <= n+2; count++ {
			seen := map[int]bool{}
			Sample(n, count, func(i int) {
				require.False(t, seen[i])
				require.True(t, i >= 0 && i < n)
				seen[i] = true
			})
			require.Len(t, seen, max(0, min(n, count)))
		}
	}
}

func TestSampleReachesEveryNumber(t *testing.T) {
	for _, count := range []int{2, 5} {
		seen := map[int]bool{}
		for range 10_000 {
			Sample(10, count, func(i int) { seen[i] = true })
		}
		require.Len(t, seen, 10)
	}
}
