package session

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/atomredis/atomredis/internal/stats"
)

// TestRunsOfShortCommandsAreSuspectedIfTheyAreSlow makes a run of commands take as long as a slow one: the next
// commands are measured one by one.
func TestRunsOfShortCommandsAreSuspectedIfTheyAreSlow(t *testing.T) {
	b := newHarnessWith(t, "slowlog-log-slower-than", "10000", "latency-monitor-threshold", "10")
	s := b.session()
	defer b.finish(t, s)
	get := b.Table.ByName["get"]
	args := [][]byte{[]byte("GET"), []byte("k")}
	s.examine(get, args, 16, int64(20*time.Millisecond))
	require.Zero(t, b.CommandLogs[stats.SlowCommands].Len(), "nobody knows which one it was")
	held, _ := b.Latency.Series("fast-command")
	require.Equal(t, int64(20), held.Max)
	s.flushCalls()
	require.True(t, s.exact)
	s.examine(get, args, 1, int64(20*time.Millisecond))
	require.Equal(t, 1, b.CommandLogs[stats.SlowCommands].Len())
	s.exactCalls = 0
	s.flushCalls()
	require.False(t, s.exact)
}
