package stats

import (
	"math"
	"math/bits"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/atomredis/atomredis/internal/testing/testseed"
)

func TestHistogramHasThePercentilesOfHDR(t *testing.T) {
	testseed.Check(t, func(t *rapid.T) {
		var h Histogram
		var all []int64
		for range rapid.IntRange(1, 50).Draw(t, "n") {
			ns := int64(math.Exp2(rapid.Float64Range(0, 29.8).Draw(t, "exponent")))
			times := rapid.Int64Range(1, 9).Draw(t, "times")
			h.add(ns, times)
			unit := int64(1) << max(0, bits.Len64(uint64(ns))-8)
			all = append(all, slices.Repeat([]int64{ns | (unit - 1)}, int(times))...)
		}
		slices.Sort(all)
		for _, p := range []float64{1, 50, 90, 99, 99.9, 100} {
			rank := max(1, int(p/100*float64(len(all))+0.5))
			require.Equal(t, all[rank-1], h.Percentile(p), "p%v", p)
		}
		require.Equal(t, int64(len(all)), h.Count())
	})
}

func TestHistogramCountsAtPowersOfTwo(t *testing.T) {
	var h Histogram
	for _, ns := range []int64{0, 800, 1024, 1500, 3000, 3001, 70_000, int64(time.Minute)} {
		h.add(ns, 1)
	}
	var steps [][2]int64
	h.Steps(func(micros, count int64) { steps = append(steps, [2]int64{micros, count}) })
	require.Equal(t, [][2]int64{{1, 3}, {2, 4}, {4, 6}, {132, 7}, {1082130, 8}}, steps)
	require.Equal(t, int64(1), h.Percentile(0))
}
