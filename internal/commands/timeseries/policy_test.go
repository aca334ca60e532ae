package timeseries_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/atomredis/atomredis/engine"
	"github.com/atomredis/atomredis/engine/timeseries"
	"github.com/atomredis/atomredis/internal/testing/servertest"
	"github.com/atomredis/atomredis/persist/rdb"
)

// unset returns the payload of a series without a duplicate policy, as RedisTimeSeries 1 makes them.
func unset(t *testing.T) string {
	var g engine.Guard
	g.Lock(engine.New(engine.Options{}), engine.AllShards, 1000)
	defer g.Unlock()
	payload, err := rdb.Dump(g.Create(0, []byte("s"), timeseries.New(timeseries.Settings{ChunkSize: 128, Policy: timeseries.Unset})))
	require.NoError(t, err)
	return string(payload)
}

func TestSeriesWithoutAPolicyActByTheDirective(t *testing.T) {
	b := servertest.NewStepped(t).Journalled()
	require.Equal(t, "+OK\r\n", b.Send("a", "RESTORE", "s", "0", unset(t)))
	require.Equal(t, ":10\r\n", b.Send("a", "TS.ADD", "s", "10", "1"))
	require.Contains(t, b.Send("a", "TS.ADD", "s", "10", "2"), "DUPLICATE_POLICY is set to BLOCK")
	require.Equal(t, "+OK\r\n", b.Send("a", "CONFIG", "SET", "ts-duplicate-policy", "sum"))
	require.Equal(t, ":10\r\n", b.Send("a", "TS.ADD", "s", "10", "2"))
	require.Equal(t, "*2\r\n:10\r\n:20\r\n", b.Send("a", "TS.MADD", "s", "10", "4", "s", "20", "1"))
	require.Equal(t, ":10\r\n", b.Send("a", "TS.ADD", "s", "10", "100", "ON_DUPLICATE", "min"))
	require.Equal(t, "*2\r\n*2\r\n:10\r\n+7\r\n*2\r\n:20\r\n+1\r\n", b.Send("a", "TS.RANGE", "s", "-", "+"))
	require.Contains(t, b.Send("a", "TS.INFO", "s"), "+duplicatePolicy\r\n$-1\r\n")
	b.Finish()
}

func TestInfiniteSumsAreRepeated(t *testing.T) {
	b := servertest.NewStepped(t).Journalled()
	for range 2 {
		require.Equal(t, ":5\r\n", b.Send("a", "TS.INCRBY", "up", "1e308", "TIMESTAMP", "5"))
		require.Equal(t, ":5\r\n", b.Send("a", "TS.DECRBY", "down", "1e308", "TIMESTAMP", "5"))
	}
	require.NotContains(t, b.Send("a", "TS.GET", "up"), "1e")
	require.Equal(t, ":1\r\n", b.Send("a", "COPY", "down", "copy"))
	b.Finish()
}

func TestSamplesThatAreKeptRepairRules(t *testing.T) {
	b := servertest.NewStepped(t).Journalled()
	for _, key := range []string{"s", "sums"} {
		require.Equal(t, "+OK\r\n", b.Send("a", "TS.CREATE", key, "DUPLICATE_POLICY", "first"))
	}
	require.Equal(t, "*2\r\n:10\r\n:20\r\n", b.Send("a", "TS.MADD", "s", "10", "1", "s", "20", "2"))
	require.Equal(t, "+OK\r\n", b.Send("a", "TS.CREATERULE", "s", "sums", "AGGREGATION", "sum", "10"))
	require.Equal(t, ":21\r\n", b.Send("a", "TS.ADD", "s", "21", "3"))
	require.Equal(t, "*2\r\n:10\r\n:20\r\n", b.Send("a", "TS.MADD", "s", "10", "100", "s", "20", "200"))
	require.Equal(t, "*2\r\n*2\r\n:10\r\n+1\r\n*2\r\n:20\r\n+5\r\n", b.Send("a", "TS.RANGE", "sums", "-", "+", "LATEST"))
	b.Finish()
}
