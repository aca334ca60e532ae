package strings

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/atomredis/atomredis/internal/testing/commandtest"
	"github.com/atomredis/atomredis/resp"
)

func TestHotStringCommandsDoNotAllocate(t *testing.T) {
	b := commandtest.New(t)
	for _, words := range [][]string{
		{"set", "key", "value"},
		{"get", "key"},
		{"set", "key", "other", "XX", "PX", "5000"},
		{"set", "key", "41"},
		{"incr", "key"},
		{"incrby", "key", "-1000"},
		{"setrange", "key", "0", ""},
		{"strlen", "key"},
		{"mget", "key", "key"},
		{"mset", "key", "1", "key", "2"},
	} {
		cmd := commandtest.Named(t, words[0])
		require.NotContains(t, b.Call(cmd, words...), "-ERR")
		require.Zero(t, testing.AllocsPerRun(100, func() {
			b.Out.Buf = b.Out.Buf[:0]
			cmd.Do(&b.Ctx)
		}), words)
	}
}

func TestFailedStringCommandsChangeNothing(t *testing.T) {
	b := commandtest.New(t)
	set := commandtest.Named(t, "set")
	require.Equal(t, "+OK\r\n", b.Call(set, "set", "key", "value", "px", "500"))
	for _, words := range [][]string{
		{"set", "key", "v", "nx"}, {"set", "key", "v", "ex", "0"}, {"set", "key", "v", "nx", "xx"},
		{"set", "key", "v", "ex", "1", "keepttl"},
		{"set", "key", "v", "persist"}, {"set", "key", "v", "px"}, {"set", "none", "v", "xx"},
		{"set", "key", "v", "ex", "1", "px", "1"},
		{"setex", "key", "9223372036854775807", "v"}, {"psetex", "key", "-1", "v"}, {"setnx", "key", "v"}, {"incr", "key"},
		{"incrbyfloat", "key", "1"}, {"decrby", "none", "-9223372036854775808"}, {"incrbyfloat", "none", "inf"},
		{"mset", "key", "v", "w"},
		{"msetnx", "none", "v", "key", "w"}, {"setrange", "key", "-1", "v"}, {"setrange", "none", "5", ""},
		{"getex", "key", "ex", "x"},
		{"getex", "key", "nx"},
	} {
		b.Call(commandtest.Named(t, words[0]), words...)
		e := b.G.Peek(0, []byte("key"))
		require.Equal(t, "value", string(e.Bytes()), words)
		require.Equal(t, int64(1_000_500), e.Deadline(), words)
		require.Equal(t, 1, b.G.Len(0), words)
	}
}

func TestGetrangeIsASliceOfTheValue(t *testing.T) {
	b := commandtest.New(t)
	cmd := commandtest.Named(t, "getrange")
	const value = "0123456789"
	b.G.CreateString(0, []byte("key"), []byte(value))
	edges := []int64{math.MinInt64, math.MinInt64 + 1, -12, -11, -10, -9, -5, -1, 0, 1, 5, 9, 10, 11, math.MaxInt64}
	for _, start := range edges {
		for _, end := range edges {
			from, to := start, end
			if from < 0 {
				from += 10
			}
			if to < 0 {
				to += 10
			}
			want := ""
			// As in Redis, a range that ends before the first byte is that byte, unless both ends are negative and
			// crossed.
			crossed := start < 0 && end < 0 && start > end
			if from, to = max(from, 0), max(to, 0); !crossed && from <= to && from < 10 {
				want = value[from : min(to, 9)+1]
			}
			var w resp.Writer
			w.BulkString(want)
			var words resp.Writer
			require.Equal(t, string(w.Buf), b.Call(cmd, "getrange", "key", decimal(&words, start), decimal(&words, end)),
				"%d %d", start, end)
		}
	}
}

// decimal returns n in decimal notation.
func decimal(w *resp.Writer, n int64) string {
	w.Buf = w.Buf[:0]
	w.Int(n)
	return string(w.Buf[1 : len(w.Buf)-2])
}

func TestTokensComeBackOneByOne(t *testing.T) {
	args := [][]byte{[]byte("2"), []byte("3"), []byte("10"), []byte("1")} // 3 at once, then 3 in 10 s
	limit, ok := readThrottle(args)
	require.True(t, ok)
	const start = 1_000_000 * nsPerMs
	full := int64(start)
	for _, step := range []struct {
		at, left, wait int64 // in ms since the start
		limited        bool
	}{
		{at: 0, left: 2, wait: -1}, {at: 0, left: 1, wait: -1}, {at: 1000, left: 0, wait: -1},
		{at: 1000, left: 0, wait: 2333, limited: true}, {at: 3333, left: 0, wait: 0, limited: true},
		{at: 3334, left: 0, wait: -1}, {at: 3334, left: 0, wait: 3332, limited: true}, {at: 13_300, left: 1, wait: -1},
		{at: 90_000, left: 2, wait: -1},
	} {
		now := start + step.at*nsPerMs
		then, wait, limited := limit.take(now, max(full, now))
		if wait >= 0 {
			wait /= nsPerMs
		}
		require.Equal(t, step.limited, limited, step)
		require.Equal(t, step.left, limit.left(then-now), step)
		require.Equal(t, step.wait, wait, step)
		full = then
	}
}
