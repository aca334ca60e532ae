package cli

import (
	"bytes"
	"io"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTop(t *testing.T) {
	addr := start(t, nil)
	play(t, addr, []step{{line: "pressure put frames --create --bound 10 a b c"}})
	var out bytes.Buffer
	require.Zero(t, Run(t.Context(), append([]string{"top", "--count", "2", "--interval", "1ms"}, at(addr)...), nil, &out, io.Discard))
	require.Regexp(t, `(?s)^atomredis \S+  `+addr+`  master  up \S+
commands  \d+/s  p50 \S+  p99 \S+  p99.9 \S+  in \S+/s  out \S+/s
clients   \d+  blocked 0  new \d+/s
memory    \S+  resident \S+  keys \d+.*  expired 0/s  evicted 0/s
.*
COMMAND +CALLS/S +BUSY +P50 +P99 +P99.9
.*
QUEUE +LENGTH +BOUND +IN/S +OUT/S +WAIT
frames +3 +10 +- +- +0
atomredis .*
frames +3 +10 +0.0 +0.0 +0
$`, out.String())
	require.NotContains(t, out.String(), "\x1b")
	out.Reset()
	require.Zero(t, Run(t.Context(), append([]string{"top", "--once"}, at(addr)...), nil, &out, io.Discard))
	require.Contains(t, out.String(), "\ncommands ")
	require.Equal(t, ExitUsage, Run(t.Context(), []string{"top", "--interval", "0s"}, nil, io.Discard, io.Discard))
}

func TestPercentilesOfAnInterval(t *testing.T) {
	calls := since(map[int64]int64{1: 10, 2: 100, 1024: 101}, map[int64]int64{1: 10, 2: 20})
	require.Equal(t, map[int64]int64{1: 0, 2: 80, 1024: 1}, calls)
	require.Equal(t, [3]string{"2µs", "1.024ms", "1.024ms"}, percentiles(map[int64]int64{2: 98, 1024: 2}))
	require.Equal(t, [3]string{"-", "-", "-"}, percentiles(nil))
}
