package stats

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestRatesCompareTwoSamples(t *testing.T) {
	var r Rates
	require.True(t, r.Due(1000))
	r.Add(1000, Totals{Commands: 7})
	require.Zero(t, r.Last(), "there is nothing to compare with")
	require.False(t, r.Due(1999), "it is too early for a sample")
	require.EqualValues(t, 2000, r.Next())
	require.True(t, r.Due(3000))
	require.False(t, r.Due(3000), "another caller has it")
	r.Add(3000, Totals{Commands: 57, Rounds: 10, In: 12 << 10, Out: 1 << 10, ReplIn: 8 << 10, ReplOut: 512,
		Loops: 40 * time.Microsecond})
	want := Throughput{Commands: 25, Rounds: 5, In: 6, Out: 0.5, ReplIn: 4, ReplOut: 0.25, RoundMicros: 4}
	require.Equal(t, want, r.Last())
	r.Add(4000, Totals{})
	require.Equal(t, want, r.Last(), "the counters were reset")
	r.Add(3500, Totals{Commands: 1})
	require.Equal(t, want, r.Last(), "the clock has jumped")
	r.Add(4500, Totals{Commands: 11})
	require.Equal(t, Throughput{Commands: 10}, r.Last())
}
