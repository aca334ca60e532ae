package balance

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Batches are halved while clients are delayed, and doubled when they are not.
func TestBatchesFollowTheLatencyOfOthers(t *testing.T) {
	const ms = time.Millisecond
	th := Throttle{Limit: 20 * ms, Most: 100, size: 16, usual: 2 * ms}
	for _, step := range []struct {
		latency time.Duration
		slow    bool
		size    int
	}{{22 * ms, false, 32}, {0, false, 64}, {5 * ms, false, 100}, {23 * ms, true, 50}, {time.Second, true, 25}, {30 * ms, true, 12},
		{ms, false, 24}, {time.Second, true, 12}, {time.Second, true, 6}, {time.Second, true, 3}, {time.Second, true, 1},
		{time.Second, true, 1}, {ms, false, 2}} {
		require.Equal(t, step.slow, th.next(step.latency), "%+v", step)
		require.Equal(t, step.size, th.size, "%+v", step)
	}
	require.Zero(t, high(nil))
	require.Equal(t, 9*ms, high([]time.Duration{9 * ms, 2 * ms, ms}))
	require.Equal(t, 2*ms, high([]time.Duration{3 * ms, 2 * ms, ms, ms, ms, ms, ms, ms, ms, ms, 2 * ms}))
}
