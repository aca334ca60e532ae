package rdb

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/atomredis/atomredis/engine/timeseries"
	"github.com/atomredis/atomredis/internal/testing/testseed"
)

// randomSamples returns samples with distances and values of all sizes.
func randomSamples(r *rand.Rand, n int) (samples []timeseries.Sample) {
	x := timeseries.Sample{Time: r.Int64N(1 << 40)}
	for range n {
		x.Time += 1 + r.Int64N(1<<r.IntN(34))>>r.IntN(20)
		switch r.IntN(8) {
		case 0:
			x.Value = math.Float64frombits(r.Uint64())
		case 1:
			x.Value = math.NaN()
		case 2:
			x.Value = math.Inf(1 - 2*r.IntN(2))
		case 3, 4:
			x.Value += float64(r.IntN(100))
		case 5:
			x.Value = r.Float64()
		}
		samples = append(samples, x)
	}
	return samples
}

func TestCompressedChunksReadBackAsWritten(t *testing.T) {
	r := testseed.Rand(t)
	for range 2000 {
		samples := randomSamples(r, 1+r.IntN(60))
		c := gorillaOf(samples, nil)
		require.Equal(t, int(c.used+7)/8, len(c.bits))
		reader := gorillaReader{data: c.bits, end: c.used}
		var got []timeseries.Sample
		require.NoError(t, reader.samples(uint64(len(samples)), c.first, func(x timeseries.Sample) error {
			got = append(got, x)
			return nil
		}))
		require.True(t, slices.EqualFunc(samples, got, func(a, b timeseries.Sample) bool {
			return a.Time == b.Time && (a.Value == b.Value || a.Value != a.Value && b.Value != b.Value)
		}))
		require.Equal(t, c.used, reader.pos)
		reader = gorillaReader{data: c.bits, end: c.used}
		require.Error(t, reader.samples(uint64(len(samples)+1), c.first, func(timeseries.Sample) error { return nil }))
	}
}
