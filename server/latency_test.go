package server

import (
	"math"
	"math/bits"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/atomredis/atomredis/command"
	"github.com/atomredis/atomredis/engine"
	"github.com/atomredis/atomredis/persist/journal"
)

// TestHistogramHasThePercentilesOfHDR compares with all durations, seen through the buckets of an HDR histogram of
// two digits: a duration is kept in its 8 highest bits, and stands for the longest with the same.
func TestHistogramHasThePercentilesOfHDR(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var h histogram
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
			require.Equal(t, all[rank-1], h.percentile(p), "p%v", p)
		}
		require.Equal(t, int64(len(all)), h.total.Load())
	})
}

func TestHistogramCountsAtPowersOfTwo(t *testing.T) {
	var h histogram
	for _, ns := range []int64{0, 800, 1024, 1500, 3000, 3001, 70_000, int64(time.Minute)} {
		h.add(ns, 1)
	}
	var steps [][2]int64
	h.steps(func(micros, count int64) { steps = append(steps, [2]int64{micros, count}) })
	require.Equal(t, [][2]int64{{1, 3}, {2, 4}, {4, 6}, {132, 7}, {1082130, 8}}, steps)
	require.Equal(t, int64(1), h.percentile(0))
}

func TestLatencyMonitorKeepsOneSampleForEachSecond(t *testing.T) {
	var m latencyMonitor
	ms := int64(time.Millisecond)
	m.add("command", 5_000, 9*ms, 10)
	_, ok := m.series("command")
	require.False(t, ok, "below the threshold")
	m.add("command", 5_000, 20*ms, 10)
	m.add("command", 5_900, 30*ms, 10)
	m.add("command", 5_990, 10*ms, 10)
	m.add("command", 6_000, 15*ms, 10)
	s, ok := m.series("command")
	require.True(t, ok)
	require.Equal(t, latencySeries{[]latencySample{{5, 30}, {6, 15}}, 30}, s)
	for i := range int64(2 * maxLatencySamples) {
		m.add("command", 10_000+1000*i, 10*ms, 10)
	}
	s, _ = m.series("command")
	require.Len(t, s.samples, maxLatencySamples)
	require.Equal(t, int64(30), s.max)
	require.True(t, m.reset("command"))
	require.False(t, m.reset("command"))
	m.add("command", 1, 10*ms, 0)
	require.Empty(t, m.names(), "a threshold of 0 is none")
}

func TestLatencyGraphHasAColumnForEachSample(t *testing.T) {
	s := latencySeries{samples: []latencySample{{100, 10}, {130, 40}, {7000, 25}}, max: 50}
	require.Equal(t, "command - high 40 ms, low 10 ms (all time high 50 ms)\n"+
		"--------------------------------------------------------------------------------\n"+
		" # \n"+
		" |_\n"+
		" ||\n"+
		"_||\n"+
		"   \n"+
		"111\n"+
		"hhm\n", s.graph("command", 7100))
}

func TestCommandsThatMayBeSlowAreMeasuredAlone(t *testing.T) {
	table := command.NewTable()
	for name, want := range map[string]bool{"get": false, "set": false, "incr": false, "hset": false, "lpush": false,
		"zadd": false,
		"keys": true, "sort": true, "eval": true, "blpop": true, "debug": true, "lrange": true, "exec": true, "save": true} {
		require.Equal(t, want, table.ByName[name].Slow, name)
	}
}

func TestSlowCommandsAreLoggedWhateverTheyAre(t *testing.T) {
	srv := startTestServer(t, Options{}, "slowlog-log-slower-than", "0", "slowlog-max-len", "3")
	c := srv.connect()
	c.do("SET a b")
	c.do("EVAL return(redis.call('GET','a')) 0")
	c.do("PING")
	entries := srv.slowlog.latest(10)
	require.Len(t, entries, 3)
	require.Equal(t, []string{"PING"}, entries[0].args)
	require.Equal(t, []string{"EVAL", "return(redis.call('GET','a'))", "0"}, entries[1].args)
	require.Equal(t, []string{"GET", "a"}, entries[2].args)
	require.Less(t, entries[1].took, time.Hour)
}

// TestRunsOfShortCommandsAreSuspectedIfTheyAreSlow has a run of commands take as long as a slow one: the next ones
// are measured one by one.
func TestRunsOfShortCommandsAreSuspectedIfTheyAreSlow(t *testing.T) {
	srv := startTestServer(t, Options{}, "slowlog-log-slower-than", "10000", "latency-monitor-threshold", "10")
	s := srv.newSession(Peer{Addr: "@test:0"}, func() {})
	defer s.Close()
	get := srv.table.ByName["get"]
	args := [][]byte{[]byte("GET"), []byte("k")}
	s.examine(get, args, 16, int64(20*time.Millisecond))
	require.Zero(t, srv.slowlog.len(), "nobody knows which one it was")
	held, _ := srv.latency.series("fast-command")
	require.Equal(t, int64(20), held.max)
	s.flushTally()
	require.True(t, s.exact)
	s.examine(get, args, 1, int64(20*time.Millisecond))
	require.Equal(t, 1, srv.slowlog.len())
	s.suspicious = 0
	s.flushTally()
	require.False(t, s.exact)
}

func TestErrorsAreCountedByTheirCode(t *testing.T) {
	var srv Server
	srv.countError([]byte("WRONGTYPE no"))
	srv.countError([]byte("ERR no"))
	srv.countError([]byte("nospace"))
	for i := range 1000 {
		srv.countError([]byte("C" + string(rune('A'+i%26)) + string(rune('A'+i/26)) + " x"))
	}
	counts := map[string]int64{}
	srv.stats.errors.each(func(code string, n int64) { counts[code] = n })
	require.Equal(t, int64(1), counts["WRONGTYPE"])
	require.Equal(t, int64(2), counts["ERR"])
	require.LessOrEqual(t, len(counts), maxErrorCodes+1)
	require.Positive(t, counts[otherErrors])
	require.Equal(t, int64(1003), srv.stats.errors.total.Load())
}

func TestWhatHoldsClientsUpIsAnEvent(t *testing.T) {
	b := newHarness(t)
	b.held(engine.LockedForExpiry, time.Hour)
	require.Empty(t, b.latency.names(), "nobody monitors")
	require.NoError(t, b.config.Set("latency-monitor-threshold", "10", true))
	b.held(engine.LockedForExpiry, 9*time.Millisecond)
	require.Empty(t, b.latency.names())
	for _, by := range []engine.LockReason{engine.LockedForExpiry, engine.LockForCheckpoint, engine.LockForLoading} {
		b.held(by, 11*time.Millisecond)
	}
	for _, forWhat := range []journal.Wait{journal.WaitWrite, journal.WaitSync, journal.WaitLag} {
		b.waited(forWhat, 12*time.Millisecond)
	}
	names := b.latency.names()
	require.Equal(t, []string{"aof-fsync-always", "aof-write", "aof-write-pending-fsync", "checkpoint", "expire-cycle",
		"loading"}, names)
	for _, name := range names {
		require.NotEmpty(t, latencyAdvice[name], name)
	}
}
