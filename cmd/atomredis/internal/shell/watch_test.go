package shell

import (
	"bytes"
	"context"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/atomredis/atomredis/persist/rdb"
)

// steps is a clock on which each command takes the next duration of took, and which ends a context after some sleeps.
type steps struct {
	t      time.Time
	took   []time.Duration
	calls  int
	sleeps int
	end    context.CancelFunc
	slept  []time.Duration
}

// Now is called once at the beginning, and then in turn before and after each command.
func (c *steps) Now() time.Time {
	if c.calls > 0 && c.calls%2 == 0 {
		c.t = c.t.Add(c.took[(c.calls/2-1)%len(c.took)])
	}
	c.calls++
	return c.t
}

func (c *steps) Sleep(ctx context.Context, d time.Duration) error {
	c.t = c.t.Add(d)
	c.slept = append(c.slept, d)
	if c.sleeps--; c.sleeps == 0 {
		c.end()
	}
	return ctx.Err()
}

const ms = time.Millisecond

func TestLatency(t *testing.T) {
	const line = "\x1b[0G\x1b[2K"
	for name, c := range map[string]struct {
		format   Format
		interval time.Duration
		history  bool
		took     []time.Duration
		sleeps   int
		want     string
	}{
		"in place": {Plain, 0, false, []time.Duration{ms, 4 * ms, 500 * time.Microsecond}, 3,
			line + "min: 1, max: 1, avg: 1.00 (1 samples)" + line + "min: 1, max: 4, avg: 2.50 (2 samples)" +
				line + "min: 0, max: 4, avg: 1.83 (3 samples)\n"},
		"a history in place": {Plain, 25 * ms, true, []time.Duration{10 * ms}, 3,
			line + "min: 10, max: 10, avg: 10.00 (1 samples)" + line + "min: 10, max: 10, avg: 10.00 (2 samples)" +
				" -- 0.03 seconds range\n" + line + "min: 10, max: 10, avg: 10.00 (1 samples)\n"},
		"one line":                   {Raw, 0, false, []time.Duration{ms, 2 * ms}, 1000, "1 2 1.50 88\n"},
		"one line of CSV":            {CSV, 30 * ms, false, []time.Duration{ms, 3 * ms}, 1000, "1,3,2.00,4\n"},
		"one line of JSON":           {JSON, 30 * ms, false, []time.Duration{2 * ms}, 1000, `{"min":2,"max":2,"avg":2.00,"count":4}` + "\n"},
		"a history, a line for each": {Raw, 20 * ms, true, []time.Duration{5 * ms}, 6, "5 5 5.00 2\n5 5 5.00 2\n5 5 5.00 2\n"},
	} {
		s, out := start(t)
		ctx, cancel := context.WithCancel(t.Context())
		s.Format, s.Clock = c.format, &steps{took: c.took, sleeps: c.sleeps, end: cancel}
		require.NoError(t, s.Latency(ctx, c.interval, c.history), name)
		require.Equal(t, c.want, out.String(), name)
		cancel()
	}
	s, _ := start(t)
	require.NoError(t, s.Do(t.Context(), []string{"CONFIG", "SET", "requirepass", "x"}))
	s.Close()
	require.EqualError(t, s.Latency(t.Context(), 0, false), "PING: NOAUTH Authentication required.")
}

func TestStat(t *testing.T) {
	s, out := start(t)
	require.NoError(t, s.Run(t.Context(), strings.NewReader("SET a 1\nSELECT 1\nSET b 1\nSELECT 0\n")))
	out.Reset()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	clock := &steps{sleeps: headEvery + 1, end: cancel}
	s.Clock = clock
	require.NoError(t, s.Stat(ctx, 250*ms))
	lines := strings.Split(out.String(), "\n")
	require.Len(t, lines, 2+headEvery+2+1+1)
	require.Equal(t, []string{lines[0], lines[1]}, lines[2+headEvery:][:2], "the columns are named again")
	require.True(t, strings.HasPrefix(lines[1], "keys "), lines[1])
	for i, line := range append(lines[2:2+headEvery], lines[4+headEvery]) {
		delta := "1" // that of INFO itself
		if i == 0 {
			delta = "0"
		}
		require.Regexp(t, regexp.MustCompile(`^2          \d+\.\d\d[KM] +1       0       \d+ \(\+`+delta+`\) +1           $`), line)
	}
	require.Equal(t, 250*ms, clock.slept[0])
}

func TestFiguresOfInfo(t *testing.T) {
	f := readFigures("# Memory\r\nused_memory:1536\r\nrdb_bgsave_in_progress:1\r\naof_rewrite_in_progress:1\r\nloading:0\r\n" +
		"connected_clients:3\r\nblocked_clients:2\r\n# Keyspace\r\ndb0:keys=5,expires=1\r\ndb12:keys=7,expires=0\r\n")
	require.Equal(t, figures{keys: 12, memory: 1536, clients: 3, blocked: 2, children: "SAVE + AOF"}, f)
	for n, want := range map[int64]string{0: "0B", 1023: "1023B", 1536: "1.50K", 1 << 20: "1.00M", 5 << 30: "5.00G", 3 << 40: "3.00T",
		1 << 52: "4096.00T"} {
		require.Equal(t, want, human(n))
	}
}

const someKeys = `SET str "hello world"
SET "quoted \" key" x
RPUSH list a b c d
RPUSH list2 a b
SADD set a b c
ZADD zset 1 a 2 b
HSET hash f 1
XADD stream * f 1
JSON.SET json $ {}
VADD vectors VALUES 2 1 2 a
`

func TestBigKeys(t *testing.T) {
	s, out := start(t)
	require.NoError(t, s.Run(t.Context(), strings.NewReader(someKeys)))
	out.Reset()
	require.NoError(t, s.BigKeys(t.Context(), Sampling{}))
	found, summary, ok := strings.Cut(out.String(), "\n-------- summary -------\n")
	require.True(t, ok, out)
	require.Regexp(t, `(?m)^\[\d\d\.\d\d%\] Biggest list   found so far '"list"' with 4 items$`, found)
	require.Equal(t, `
Sampled 10 keys of 10
Length of their names in bytes: 52 (avg len 5.20)

Biggest string found '"str"' has 11 bytes
Biggest   list found '"list"' has 4 items
Biggest    set found '"set"' has 3 members
Biggest   zset found '"zset"' has 2 members
Biggest   hash found '"hash"' has 1 fields
Biggest stream found '"stream"' has 1 entries
Biggest vectorset found '"vectors"' has 1 elements

2 strings with 12 bytes (20.00% of keys, avg size 6.00)
2 lists with 6 items (20.00% of keys, avg size 3.00)
1 sets with 3 members (10.00% of keys, avg size 3.00)
1 zsets with 2 members (10.00% of keys, avg size 2.00)
1 hashes with 1 fields (10.00% of keys, avg size 1.00)
1 streams with 1 entries (10.00% of keys, avg size 1.00)
`, summary[:strings.Index(summary, "1 streams with")]+"1 streams with 1 entries (10.00% of keys, avg size 1.00)\n")
	require.Contains(t, summary, "1 ReJSON-RLs with 0 ? (10.00% of keys, avg size 0.00)\n")
	require.Contains(t, summary, "1 vectorsets with 1 elements (10.00% of keys, avg size 1.00)\n")

	out.Reset()
	require.NoError(t, s.BigKeys(t.Context(), Sampling{Pattern: "quoted*", Count: 1}))
	require.Contains(t, out.String(), `Biggest string found '"quoted \" key"' has 1 bytes`)
	require.Contains(t, out.String(), "Sampled 1 keys of 10\n")
	require.Contains(t, out.String(), "0 lists with 0 items (00.00% of keys, avg size 0.00)\n")
}

func TestMemKeys(t *testing.T) {
	s, out := start(t)
	require.NoError(t, s.Run(t.Context(), strings.NewReader(someKeys)))
	memory := func(args ...string) int {
		n, err := s.number(t.Context(), append([]string{"MEMORY", "USAGE"}, args...)...)
		require.NoError(t, err)
		return n
	}
	for _, samples := range []int{-1, 0, 3} {
		out.Reset()
		require.NoError(t, s.MemKeys(t.Context(), Sampling{}, samples))
		require.Regexp(t, `Biggest   hash found '"hash"' has `+strconv.Itoa(memory("hash"))+` bytes\n`, out.String())
		require.Regexp(t, `1 ReJSON-RLs with `+strconv.Itoa(memory("json"))+` bytes \(10.00% of keys`, out.String())
	}
}

func TestHotKeys(t *testing.T) {
	s, out := start(t)
	require.NoError(t, s.Run(t.Context(), strings.NewReader("SET before 1\n")))
	require.ErrorContains(t, s.HotKeys(t.Context(), Sampling{}), "LFU maxmemory policy")
	// The counter of a new key is 5, and the first use always increments it.
	require.NoError(t, s.Run(t.Context(), strings.NewReader("FLUSHALL\nCONFIG SET maxmemory-policy allkeys-lfu\n")))
	for i := range 2 * hottest {
		require.NoError(t, s.Do(t.Context(), []string{"SET", "key:" + strconv.Itoa(i), "x"}))
	}
	require.NoError(t, s.Do(t.Context(), []string{"GET", "key:20"}))
	require.NoError(t, s.Do(t.Context(), []string{"GET", "key:7"}))
	out.Reset()
	require.NoError(t, s.HotKeys(t.Context(), Sampling{}))
	found, summary, ok := strings.Cut(out.String(), "\n-------- summary -------\n\nSampled 32 keys of 32\n")
	require.True(t, ok, out)
	require.Regexp(t, `(?m)^\[\d\d\.\d\d%\] Hot key '"key:7"' found so far with counter 6$`, found)
	lines := strings.Split(strings.TrimSpace(summary), "\n")
	require.Len(t, lines, hottest)
	first := lines[:2]
	slices.Sort(first)
	require.Equal(t, []string{"hot key found with counter: 6\tkeyname: \"key:20\"",
		"hot key found with counter: 6\tkeyname: \"key:7\""}, first)
	require.Contains(t, lines[2], "counter: 5\t")
}

// A sample pauses after each hundred commands. After an interrupt it reports the results so far.
func TestAnInterruptEndsASample(t *testing.T) {
	s, out := start(t)
	var lines strings.Builder
	for i := range 3000 {
		lines.WriteString("SET key:" + strconv.Itoa(i) + " x\n")
	}
	require.NoError(t, s.Run(t.Context(), strings.NewReader(lines.String())))
	out.Reset()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	clock := &steps{sleeps: 2, end: cancel}
	s.Clock = clock
	require.NoError(t, s.BigKeys(ctx, Sampling{Pause: 7 * ms, Count: 10}))
	require.Equal(t, []time.Duration{7 * ms, 7 * ms}, clock.slept)
	match := regexp.MustCompile(`Sampled (\d+) keys of 3000`).FindStringSubmatch(out.String())
	require.NotNil(t, match, out)
	require.NotEqual(t, "3000", match[1])
	require.Contains(t, out.String(), "Biggest string found")
}

func TestDump(t *testing.T) {
	s, _ := start(t)
	require.NoError(t, s.Run(t.Context(), strings.NewReader(someKeys)))
	var file bytes.Buffer
	var shown int64
	n, err := s.Dump(t.Context(), &file, func(written, _ int64) { shown = written })
	require.NoError(t, err)
	require.Equal(t, int64(file.Len()), n)
	require.Equal(t, n, shown)
	r := rdb.NewReader(&file, rdb.Limits{})
	keys := 0
	for item, err := r.Next(); err != io.EOF; item, err = r.Next() {
		require.NoError(t, err)
		if _, ok := item.(*rdb.Key); ok {
			keys++
		}
	}
	require.Equal(t, 10, keys)

	require.NoError(t, s.Do(t.Context(), []string{"CONFIG", "SET", "requirepass", "x"}))
	_, err = s.Dump(t.Context(), &file, func(_, _ int64) {})
	require.ErrorContains(t, err, "NOAUTH")
	s.Address.Password = "x"
	_, err = s.Dump(t.Context(), &file, func(_, _ int64) {})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = s.Dump(ctx, &file, func(_, _ int64) {})
	require.ErrorIs(t, err, context.Canceled)
}
