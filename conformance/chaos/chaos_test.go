package chaos

import (
	"bytes"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/anishathalye/porcupine"
	"github.com/stretchr/testify/require"

	"github.com/atomredis/atomredis/internal/testing/crashfs"
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
			nodes := 3
			if seed%5 == 0 { // a deposed leader may still have followers
				nodes = 5
			}
			var r Report
			log := logOf(t, seed)
			synctest.Test(t, func(t *testing.T) {
				var err error
				r, err = Run(Options{Settings: settings, Seed: uint64(seed), Nodes: nodes, Witness: seed%3 == 0, Clients: 4, Keys: 20, Faults: 8,
					Timeout: 100 * time.Millisecond, Log: log})
				require.NoError(t, err)
			})
			t.Logf("%d operations, %d of them unknown; %v", r.Operations, r.Unknown, r.Faults)
			require.Greater(t, r.Acknowledged, 100)
			require.Equal(t, porcupine.Ok, r.Check())
		})
	}
}

// Two faults of three: a follower's log is damaged where it ends, and the leader is lost. What only these two have is not
// lost in silence: the follower finds the damage, and stays out.
func TestTheEndOfALogIsDamaged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := Options{Seed: uint64(number("CHAOS_SEED", 1)), Nodes: 3, Keys: 1, Timeout: 100 * time.Millisecond,
			Log: slog.New(slog.DiscardHandler)}
		g, err := o.group()
		require.NoError(t, err)
		defer g.end()
		require.NoError(t, g.awaitWhole())
		leader := g.leader()
		others := slices.DeleteFunc(g.members(), func(n *node) bool { return n == leader })
		follower, away := others[0], others[1]
		g.net.isolate(away.addr)
		g.stop(away)
		const value = "acknowledged"
		c := g.connect(slices.Index(g.nodes, leader))
		require.True(t, g.do(c, 0, input{op: opWrite, value: value}))
		c.Close()
		g.stopWith(follower, crashfs.CloneCfg{}) // what was synced is left, and no more
		g.stop(leader)
		files, err := filesIn(follower.fs, "/db")
		require.NoError(t, err)
		flipped := 0
		for _, name := range files {
			b, err := follower.fs.Bytes(name)
			require.NoError(t, err)
			if at := bytes.Index(b, []byte(value)); at >= 0 && strings.Contains(name, "/raft/") {
				require.NoError(t, g.flipAt(follower.fs, name, at))
				flipped++
			}
		}
		require.Equal(t, 1, flipped)
		require.ErrorContains(t, g.start(follower), "the journal is damaged")
		require.NoError(t, g.start(away))
		require.NoError(t, g.start(leader))
		require.NoError(t, g.loseDisk(follower))
		require.NoError(t, g.awaitWhole())
		c = g.connect(slices.Index(g.nodes, g.leader()))
		defer c.Close()
		require.True(t, g.do(c, 0, input{op: opRead}))
		require.Equal(t, output{value: value}, g.history[len(g.history)-1].Output)
	})
}

// A write is sent to the others once, however many they are, and takes one round trip. The others have it one message later,
// and not with the next heartbeat. Losing the leader costs between one and three times raft-timeout. CHAOS_GROWTH prints the
// table of docs/scaling.md.
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
		t.Logf("%d servers: a write takes %v (median) and %.1f packets, and is at all after %v (median), %v (most); a lost leader "+
			"%v (median), %v (most)", nodes, write, r.Messages, middle(r.Lags), r.Lags[len(r.Lags)-1], failover,
			r.Failovers[len(r.Failovers)-1])
		require.Less(t, write, 8*usualDelay)
		require.Less(t, middle(r.Lags), 4*usualDelay)
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
