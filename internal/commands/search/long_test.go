package search_test

import (
	"fmt"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/atomredis/atomredis/engine"
	"github.com/atomredis/atomredis/internal/testing/servertest"
	"github.com/atomredis/atomredis/server"
)

// queryClock is a clock that tells a test when a query checks its timeout.
type queryClock struct {
	*engine.ManualClock
	asked atomic.Pointer[func()]
}

func newQueryClock() *queryClock {
	return &queryClock{ManualClock: engine.NewManualClock(time.UnixMilli(1e12))}
}

func (c *queryClock) Now() time.Time {
	if asked := c.asked.Load(); asked != nil && inQuery() {
		(*asked)()
	}
	return c.ManualClock.Now()
}

// inQuery reports whether a query reads the clock.
func inQuery() bool {
	var callers [8]uintptr
	frames := runtime.CallersFrames(callers[:runtime.Callers(2, callers[:])])
	for {
		f, more := frames.Next()
		if strings.HasSuffix(f.Function, "search.(*run).stop") {
			return true
		}
		if !more {
			return false
		}
	}
}

// manyDocs are enough for a query of all of them to be offloaded.
const manyDocs = 10_000

// longHarness is a server with one event loop and an index over many documents.
type longHarness struct {
	t     *testing.T
	s     *servertest.Server
	clock *queryClock
}

func newLongHarness(t *testing.T, settings ...string) *longHarness {
	clock := newQueryClock()
	h := newLongHarnessAt(t, clock, settings...)
	h.clock = clock
	return h
}

func newLongHarnessAt(t *testing.T, clock engine.Clock, settings ...string) *longHarness {
	h := &longHarness{t: t}
	h.s = servertest.Start(t, server.Options{Clock: clock}, append([]string{"io-threads", "1"}, settings...)...)
	c := h.s.Connect()
	require.Equal(t, "+OK", c.Line("FT.CREATE x PREFIX 1 d: SCHEMA t TEXT WITHSUFFIXTRIE w TEXT g TAG n NUMERIC SORTABLE u NUMERIC v VECTOR FLAT 6 "+
		"TYPE FLOAT32 DIM 2 DISTANCE_METRIC L2"))
	for i := range manyDocs {
		c.Send("HSET", "d:"+strconv.Itoa(i), "t", "common word"+strconv.Itoa(i), "w", "a"+strconv.Itoa(i*7919%manyDocs), "g", "tag"+strconv.Itoa(i%100),
			"n", strconv.Itoa(i), "u", strconv.Itoa(i%17), "v", "\x00\x00\x80?\x00\x00\x00"+string(rune('A'+i%26)))
		if i%500 == 499 {
			for range 500 {
				require.Equal(t, "6", c.Next())
			}
		}
	}
	return h
}

// hold makes the next query wait at its first reading of the clock. It returns a channel that reports the wait, and
// a function that ends it.
func (h *longHarness) hold() (waits <-chan struct{}, goOn func()) {
	reached, open := make(chan struct{}), make(chan struct{})
	var once atomic.Bool
	asked := func() {
		if once.CompareAndSwap(false, true) {
			close(reached)
			<-open
		}
	}
	h.clock.asked.Store(&asked)
	return reached, func() { close(open) }
}

// await waits until a query is held.
func (h *longHarness) await(waits <-chan struct{}, line string) {
	select {
	case <-waits:
	case <-time.After(time.Minute):
		require.Fail(h.t, "the query does not run", line)
	}
}

// longQueries are offloaded, and take long enough to read the clock more than once.
var longQueries = []string{
	"FT.SEARCH x common NOCONTENT LIMIT 0 2 TIMEOUT 100000",
	"FT.SEARCH x common SORTBY u RETURN 1 n LIMIT 0 2 TIMEOUT 100000",
	"FT.AGGREGATE x * GROUPBY 1 @g REDUCE COUNT 0 AS c SORTBY 2 @c DESC LIMIT 0 2 TIMEOUT 100000",
	"FT.AGGREGATE x common LOAD 1 @u APPLY @u*2 AS y FILTER @y>1000 WITHCURSOR COUNT 2 TIMEOUT 100000",
	"FT.HYBRID x SEARCH common VSIM @v $q PARAMS 2 q AAAAAAAA TIMEOUT 100000",
	"FT.PROFILE x SEARCH QUERY common LIMIT 0 2 TIMEOUT 100000",
	"FT.PROFILE x AGGREGATE QUERY common LOAD 1 @u TIMEOUT 100000",
	"FT.SEARCH x *=>[KNN~2~@v~$q] PARAMS 2 q AAAAAAAA NOCONTENT DIALECT 2 TIMEOUT 100000",
}

// queryWords splits a query into words; ~ stands for a space within a word.
func queryWords(line string) []string {
	words := strings.Fields(line)
	for i := range words {
		words[i] = strings.ReplaceAll(words[i], "~", " ")
	}
	return words
}

// While a query runs, other clients of the same event loop continue. The query sees its client's earlier writes.
func TestQueriesDoNotHoldUpOthers(t *testing.T) {
	h := newLongHarness(t)
	c, other := h.s.Connect(), h.s.Connect()
	for proto := 2; proto <= 3; proto++ {
		c.Call("HELLO", strconv.Itoa(proto))
		for _, line := range longQueries {
			waits, goOn := h.hold()
			c.Send(queryWords(line)...)
			h.await(waits, line)
			require.Equal(t, "+PONG", other.Line("PING"), line)
			require.Equal(t, "7", other.Line("HSET other a 1 b 2 c 3 d 4 e 5 f 6 g " + strconv.Itoa(proto))[:1], line)
			require.Equal(t, "1", other.Line("DEL other"))
			goOn()
			got := c.Next()
			require.NotContains(t, got, "-ERR", line)
			require.NotContains(t, got, "Timeout", line)
		}
	}
	waits, goOn := h.hold()
	c.Send("HSET", "d:new", "t", "common brandnew", "n", "-1")
	require.Equal(t, "2", c.Next())
	c.Send(queryWords("FT.SEARCH x common|none SORTBY n NOCONTENT LIMIT 0 1 DIALECT 2")...)
	<-waits
	goOn()
	require.Contains(t, c.Next(), "d:new")
	h.clock.asked.Store(nil)
}

// The reply of an offloaded query equals that of the same query in a transaction, which is executed in place.
func TestOffloadedQueriesReplyAsOthers(t *testing.T) {
	h := newLongHarness(t)
	c := h.s.Connect()
	for proto := 2; proto <= 3; proto++ {
		c.Call("HELLO", strconv.Itoa(proto))
		for _, line := range append([]string{"FT.SPELLCHECK x wordd77~cmmon~comon~wrd5"}, longQueries...) {
			if strings.Contains(line, "PROFILE") || strings.Contains(line, "CURSOR") || strings.Contains(line, "HYBRID") {
				continue // their replies have times or cursor numbers
			}
			got := c.Call(queryWords(line)...)
			c.Line("MULTI")
			c.Call(queryWords(line)...)
			require.Equal(t, c.Line("EXEC"), "["+got+"]", line)
		}
	}
}

// An offloaded command may read a cursor, and the next read continues where it ended.
func TestOffloadedReadsOfCursors(t *testing.T) {
	h := newLongHarness(t)
	c := h.s.Connect()
	rows := 0
	got := c.Line("FT.AGGREGATE x common LOAD 1 @n APPLY @n AS y WITHCURSOR COUNT 3000")
	for {
		rows += strings.Count(got, `"y"`)
		id := got[strings.LastIndex(got, " ")+1 : len(got)-1]
		if id == "0" {
			break
		}
		got = c.Line("FT.CURSOR READ x " + id)
	}
	require.Equal(t, manyDocs, rows)
}

// CLIENT KILL ends a query, and frees its place for the next.
func TestKillingClientsEndsTheirQueries(t *testing.T) {
	h := newLongHarness(t)
	other := h.s.Connect()
	for _, line := range longQueries {
		victim := h.s.Connect()
		id := victim.Line("CLIENT ID")
		waits, goOn := h.hold()
		victim.Send(queryWords(line)...)
		h.await(waits, line)
		require.Equal(t, "1", other.Line("CLIENT KILL ID "+id))
		goOn()
		require.NotContains(t, other.Line("CLIENT LIST"), "id="+id+" ")
		var asked atomic.Int64
		count := func() { asked.Add(1) }
		h.clock.asked.Store(&count)
		require.NotContains(t, other.Call(queryWords(line)...), "-ERR", line) // two processors have a place for one more
		require.NotZero(t, asked.Load())
	}
	h.clock.asked.Store(nil)
}

// limitQueries spend their time in different places.
var limitQueries = append([]string{
	"FT.SEARCH x common LIMIT 0 1000000 TIMEOUT 100000",
	"FT.SEARCH x common SORTBY u LIMIT 0 1000000 TIMEOUT 100000",
	"FT.SEARCH x @n:[-inf~inf] LIMIT 0 1000000 SORTBY n TIMEOUT 100000",
	"FT.SEARCH x common HIGHLIGHT LIMIT 0 1000000 TIMEOUT 100000",
	"FT.SEARCH x *a1* NOCONTENT TIMEOUT 100000",
	"FT.SEARCH x w'*9?9*' NOCONTENT DIALECT 2 TIMEOUT 100000",
	"FT.SEARCH x %%%wordx%%% NOCONTENT DIALECT 2 TIMEOUT 100000",
	"FT.SEARCH x -nothing NOCONTENT DIALECT 2 TIMEOUT 100000",
	"FT.SEARCH x (@n:[-inf~inf]~@u:[-inf~inf]~common) NOCONTENT TIMEOUT 100000",
	"FT.SEARCH x *=>[KNN~1000000~@v~$q] PARAMS 2 q AAAAAAAA NOCONTENT DIALECT 2 TIMEOUT 100000",
	"FT.SEARCH x common=>[KNN~1000000~@v~$q] PARAMS 2 q AAAAAAAA NOCONTENT DIALECT 2 TIMEOUT 100000",
	"FT.SEARCH x @v:[VECTOR_RANGE~1e30~$q] PARAMS 2 q AAAAAAAA NOCONTENT DIALECT 2 TIMEOUT 100000",
	"FT.AGGREGATE x common SORTBY 1 @n MAX 1000000 LOAD 1 @u LIMIT 0 1000000 TIMEOUT 100000",
	"FT.AGGREGATE x common LOAD * TIMEOUT 100000",
	"FT.AGGREGATE x common LOAD 1 @u GROUPBY 1 @u REDUCE QUANTILE 2 @n 0.5 AS q TIMEOUT 100000",
}, longQueries...)

// The time limit of a query holds wherever it spends its time: each query may read the clock a few times until the
// limit.
func TestTimeLimitHoldsEverywhere(t *testing.T) {
	h := newLongHarness(t, "search-on-timeout", "fail")
	c := h.s.Connect()
	for _, policy := range []string{"fail", "return"} {
		require.Equal(t, "+OK", c.Line("CONFIG SET search-on-timeout "+policy))
		for _, line := range limitQueries {
			line = strings.ReplaceAll(line, "TIMEOUT 100000", "TIMEOUT 3")
			var asked atomic.Int64
			count := func() {
				asked.Add(1)
				h.clock.Advance(time.Millisecond)
			}
			h.clock.asked.Store(&count)
			got := c.Call(queryWords(line)...)
			h.clock.asked.Store(nil)
			require.LessOrEqual(t, asked.Load(), int64(8), line)
			require.Greater(t, asked.Load(), int64(3), line)
			switch {
			case policy == "fail" && strings.HasPrefix(line, "FT.PROFILE"):
				require.Contains(t, got, `[+"Timeout limit was reached"]`, line)
			case policy == "fail":
				require.Equal(t, "-SEARCH_TIMEOUT Timeout limit was reached", got, line)
			default:
				require.NotEqual(t, "-", got[:1], line)
				require.Less(t, strings.Count(got, "d:"), manyDocs/2, line)
			}
		}
	}
}

// Queries designed to take long or to need much memory are limited or refused.
func TestHostileQueries(t *testing.T) {
	h := newLongHarnessAt(t, engine.SystemClock{}, "search-timeout", "100")
	c := h.s.Connect()
	deep := strings.Repeat("(", 10_000) + "common" + strings.Repeat(")", 10_000)
	signs := strings.Repeat("-", 10_000) + "common"
	path := "$" + strings.Repeat("..a", 10_000)
	for _, args := range [][]string{
		{"FT.SEARCH", "x", deep, "DIALECT", "2"}, {"FT.SEARCH", "x", deep, "DIALECT", "1"}, {"FT.EXPLAIN", "x", deep, "DIALECT", "4"},
		{"FT.SEARCH", "x", signs, "DIALECT", "2"}, {"FT.SEARCH", "x", signs},
		{"FT.AGGREGATE", "x", "*", "APPLY", strings.Repeat("(", 10_000) + "1" + strings.Repeat(")", 10_000), "AS", "y"},
		{"FT.AGGREGATE", "x", "*", "APPLY", strings.Repeat("!", 100_000) + "1", "AS", "y"},
		{"FT.AGGREGATE", "x", "*", "FILTER", strings.Repeat("1+", 100_000) + "1"},
	} {
		got := c.Call(args...)
		require.Equal(t, "-", got[:1], "%.60s", fmt.Sprint(args))
		require.NotContains(t, got, "internal error", "%.60s", fmt.Sprint(args))
	}
	for _, args := range [][]string{
		{"FT.SEARCH", "x", strings.Repeat("common|", 20_000) + "common", "NOCONTENT", "DIALECT", "2"},
		{"FT.SEARCH", "x", strings.Repeat("common ", 2_000), "NOCONTENT", "DIALECT", "2"},
		{"FT.SEARCH", "x", "@g:{" + strings.Repeat("tag1|", 20_000) + "*a*}", "NOCONTENT", "DIALECT", "2"},
		{"FT.SEARCH", "x", "*", "LIMIT", "1000000", "1000000", "SORTBY", "u"},
		{"FT.SEARCH", "x", "common", "RETURN", "1", path, "LIMIT", "0", "2"},
		{"FT.AGGREGATE", "x", "*", "LOAD", "1", path, "LIMIT", "0", "2"},
	} {
		got := c.Call(args...)
		require.NotContains(t, got, "internal error", "%.60s", fmt.Sprint(args))
	}
	require.Equal(t, "+PONG", c.Line("PING"))
}
