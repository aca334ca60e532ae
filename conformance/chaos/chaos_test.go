package chaos

import (
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/anishathalye/porcupine"
	"github.com/stretchr/testify/require"
)

// Nothing that a group has acknowledged is lost, and nothing old is read, whatever breaks. CHAOS_SEEDS is the number of
// runs, CHAOS_SEED the first seed, CHAOS_LOG the directory where the logs of failed runs are left.
func TestAGroupIsLinearizable(t *testing.T) {
	first, seeds := number("CHAOS_SEED", 1), number("CHAOS_SEEDS", 6)
	if testing.Short() {
		seeds = min(seeds, 1)
	}
	for seed := first; seed < first+seeds; seed++ {
		t.Run(strconv.Itoa(seed), func(t *testing.T) {
			t.Parallel()
			var settings []string
			if seed%4 == 0 {
				settings = []string{"replicated-reads=quorum"}
			}
			var r Report
			log := logOf(t, seed)
			synctest.Test(t, func(t *testing.T) {
				var err error
				r, err = Run(Options{Settings: settings, Seed: uint64(seed), Nodes: 3, Clients: 4, Keys: 20, Faults: 8,
					Timeout: 100 * time.Millisecond, Log: log})
				require.NoError(t, err)
			})
			t.Logf("%d operations, %d of them unknown; %v", r.Operations, r.Unknown, r.Faults)
			require.Greater(t, r.Acknowledged, 100)
			require.Equal(t, porcupine.Ok, r.Check())
		})
	}
}

// A write is sent to the others once, however many they are, and takes one round trip; losing the leader costs between
// one and three times raft-timeout. CHAOS_GROWTH prints the table of docs/scaling.md.
func TestTheCostOfAWriteGrowsWithTheServersOnly(t *testing.T) {
	sizes, writes, losses := []int{3, 5}, 50, 1
	if os.Getenv("CHAOS_GROWTH") != "" {
		sizes, writes, losses = []int{1, 3, 5, 7}, 500, 20
	}
	const timeout = 100 * time.Millisecond
	for _, nodes := range sizes {
		var r Growth
		synctest.Test(t, func(t *testing.T) {
			var err error
			r, err = Grow(Options{Seed: 1, Nodes: nodes, Timeout: timeout, Log: slog.New(slog.DiscardHandler)}, writes, losses)
			require.NoError(t, err)
		})
		middle := func(all []time.Duration) time.Duration { slices.Sort(all); return all[len(all)/2] }
		write, failover := middle(r.Writes), middle(r.Failovers)
		t.Logf("%d servers: a write takes %v (median) and %.1f packets; a lost leader %v (median), %v (most)", nodes, write, r.Messages,
			failover, r.Failovers[len(r.Failovers)-1])
		require.Less(t, write, 8*usualDelay)
		require.Less(t, r.Messages, float64(20*nodes))
		require.Less(t, failover, 10*timeout)
	}
}

// logOf returns the logger of a run; its file is removed if the run passes.
func logOf(t *testing.T, seed int) *slog.Logger {
	out := io.Discard
	if dir := os.Getenv("CHAOS_LOG"); dir != "" {
		file, err := os.Create(filepath.Join(dir, strconv.Itoa(seed)))
		require.NoError(t, err)
		t.Cleanup(func() {
			file.Close()
			if !t.Failed() {
				os.Remove(file.Name())
			}
		})
		out = file
	}
	return slog.New(slog.NewTextHandler(out, &slog.HandlerOptions{Level: slog.LevelDebug}))
}

func number(name string, initial int) int {
	if n, err := strconv.Atoi(os.Getenv(name)); err == nil {
		return n
	}
	return initial
}
