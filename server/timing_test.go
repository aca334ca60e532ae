package server

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/atomredis/atomredis/engine"
	"github.com/atomredis/atomredis/internal/command"
	"github.com/atomredis/atomredis/internal/stats"
	"github.com/atomredis/atomredis/persist/journal"
)

// TestHistogramHasThePercentilesOfHDR compares with all durations, seen through the buckets of an HDR histogram of
// two digits: a duration is kept in its 8 highest bits, and stands for the longest with the same.
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
	entries := srv.sessions.CommandLogs[stats.SlowCommands].Latest(10)
	require.Len(t, entries, 3)
	require.Equal(t, []string{"PING"}, entries[0].Args)
	require.Equal(t, []string{"EVAL", "return(redis.call('GET','a'))", "0"}, entries[1].Args)
	require.Equal(t, []string{"GET", "a"}, entries[2].Args)
	require.Less(t, entries[1].Value, time.Hour.Microseconds())
}

func TestWhatHoldsClientsUpIsAnEvent(t *testing.T) {
	b := newHarness(t)
	b.sessions.Held(engine.LockedForExpiry, time.Hour)
	require.Empty(t, b.sessions.Latency.Names(), "nobody monitors")
	require.NoError(t, b.config.Set("latency-monitor-threshold", "10", true))
	b.sessions.Held(engine.LockedForExpiry, 9*time.Millisecond)
	require.Empty(t, b.sessions.Latency.Names())
	for _, by := range []engine.LockReason{engine.LockedForExpiry, engine.LockForCheckpoint, engine.LockForLoading} {
		b.sessions.Held(by, 11*time.Millisecond)
	}
	for _, forWhat := range []journal.Wait{journal.WaitWrite, journal.WaitSync, journal.WaitLag} {
		b.sessions.Waited(forWhat, 12*time.Millisecond)
	}
	names := b.sessions.Latency.Names()
	require.Equal(t, []string{"aof-fsync-always", "aof-write", "aof-write-pending-fsync", "checkpoint", "expire-cycle",
		"loading"}, names)
	require.Equal(t, len(names), strings.Count(b.sessions.Latency.Report(0, true), "\n   "), "there is advice for each")
}
