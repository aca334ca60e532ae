package zsets

import (
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/atomredis/atomredis/engine"
	"github.com/atomredis/atomredis/engine/sets"
	"github.com/atomredis/atomredis/engine/zsets"
	"github.com/atomredis/atomredis/internal/testing/commandtest"
	"github.com/atomredis/atomredis/internal/testing/testseed"
)

func TestHotSortedSetCommandsDoNotAllocate(t *testing.T) {
	for _, size := range []int{10, 1000} {
		b := commandtest.New(t)
		for i := range size {
			b.Call(commandtest.Named(t, "zadd"), "zadd", "key", fmt.Sprint(i), fmt.Sprint("member", i))
		}
		for _, words := range [][]string{
			{"zadd", "key", "1", "member1"},
			{"zadd", "key", "GT", "CH", "1", "member1"},
			{"zincrby", "key", "0", "member1"},
			{"zscore", "key", "member3"},
			{"zrank", "key", "member3"},
			{"zcard", "key"},
			{"zcount", "key", "(1", "+inf"},
			{"zrange", "key", "0", "5", "WITHSCORES"},
			{"zrange", "key", "0", "100", "BYSCORE", "LIMIT", "0", "5"},
		} {
			cmd := commandtest.Named(t, words[0])
			require.NotContains(t, b.Call(cmd, words...), "-ERR")
			require.Zero(t, testing.AllocsPerRun(100, func() {
				b.Out.Buf = b.Out.Buf[:0]
				cmd.Do(&b.Ctx)
			}), "%d members: %q", size, words)
		}
		pop := commandtest.Named(t, "zpopmin")
		b.Call(pop, "zpopmin", "key")
		require.Zero(t, testing.AllocsPerRun(5, func() {
			b.Out.Buf = b.Out.Buf[:0]
			pop.Do(&b.Ctx)
		}), "%d members: zpopmin", size)
	}
}

func TestScoreBoundsAreReadAsStrtodReadsThem(t *testing.T) {
	for _, c := range []struct {
		text      string
		bound     float64
		exclusive bool
		ok        bool
	}{
		{"1", 1, false, true},
		{"(1", 1, true, true},
		{"", 0, false, true},
		{"(", 0, true, true},
		{" 1", 1, false, true},
		{"(  -1", -1, true, true},
		{"1\x00abc", 1, false, true},
		{"\x00", 0, false, true},
		{"0x10", 16, false, true},
		{" +0x1", 1, false, true},
		{"0x1p-1", 0.5, false, true},
		{"-infinity", math.Inf(-1), false, true},
		{"1e400", math.Inf(1), false, true},
		{"(-1e400", math.Inf(-1), true, true},
		{"1e-400", 0, false, true},
		{" ", 0, false, false},
		{"((1", 0, true, false},
		{"1 ", 0, false, false},
		{"0x", 0, false, false},
		{"1_0", 0, false, false},
		{" 1_0", 0, false, false},
		{"nan", 0, false, false},
		{" nan", 0, false, false},
		{"--1", 0, false, false},
	} {
		bound, exclusive, ok := parseScoreBound([]byte(c.text))
		require.Equal(t, c.ok, ok, "%q", c.text)
		require.Equal(t, c.exclusive, exclusive, "%q", c.text)
		if ok {
			require.Equal(t, c.bound, bound, "%q", c.text)
		}
	}
}

func TestRanksOutsideTheSetAreCutOff(t *testing.T) {
	testseed.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(0, 8).Draw(t, "n")
		edge := rapid.SampledFrom([]int64{math.MinInt64, math.MinInt64 + 1, math.MaxInt64, -9, -8, -3, -1, 0, 1, 3, 8, 9})
		r := zrange{start: edge.Draw(t, "start"), stop: edge.Draw(t, "stop")}
		var want []int
		for i := range int64(n) {
			from := r.start <= i && r.start >= 0 || r.start < 0 && r.start+int64(n) <= i
			to := r.stop >= i && r.stop >= 0 || r.stop < 0 && r.stop+int64(n) >= i
			if from && to {
				want = append(want, int(i))
			}
		}
		var got []int
		for first, last := r.ranks(n); first <= last; first++ {
			got = append(got, first)
		}
		require.Equal(t, want, got)
	})
}

func TestRankWithScoreRepliesWithBoth(t *testing.T) {
	b := commandtest.New(t)
	b.Call(commandtest.Named(t, "zadd"), "zadd", "key", "1", "a", "2.5", "b")
	require.Equal(t, "*2\r\n:1\r\n$3\r\n2.5\r\n", b.Call(commandtest.Named(t, "zrank"), "zrank", "key", "b", "WITHSCORE"))
	require.Equal(t, "*2\r\n:1\r\n$1\r\n1\r\n", b.Call(commandtest.Named(t, "zrevrank"), "zrevrank", "key", "a",
		"withscore"))
	require.Equal(t, "*-1\r\n", b.Call(commandtest.Named(t, "zrank"), "zrank", "key", "c", "WITHSCORE"))
	require.Equal(t, "*-1\r\n", b.Call(commandtest.Named(t, "zrank"), "zrank", "none", "c", "WITHSCORE"))
	require.Equal(t, "$-1\r\n", b.Call(commandtest.Named(t, "zrank"), "zrank", "none", "c"))
	require.Equal(t, "-ERR syntax error\r\n", b.Call(commandtest.Named(t, "zrank"), "zrank", "key", "b", "SCORE"))
	require.Equal(t, "-ERR wrong number of arguments for 'zrank' command\r\n", b.Call(commandtest.Named(t, "zrank"),
		"zrank", "key", "b", "WITHSCORE", "x"))
	b.Out.Proto = 3
	require.Equal(t, "*2\r\n:1\r\n,2.5\r\n", b.Call(commandtest.Named(t, "zrank"), "zrank", "key", "b", "WITHSCORE"))
	require.Equal(t, "_\r\n", b.Call(commandtest.Named(t, "zrank"), "zrank", "key", "c", "WITHSCORE"))
}

func TestFailedSortedSetCommandsChangeNothing(t *testing.T) {
	b := commandtest.New(t)
	b.Call(commandtest.Named(t, "zadd"), "zadd", "key", "inf", "a", "2", "b")
	before := b.Call(commandtest.Named(t, "zrange"), "zrange", "key", "0", "-1", "WITHSCORES")
	for _, words := range [][]string{
		{"zadd", "key", "5", "b", "nan", "c"},
		{"zadd", "key", "5", "b", "6"},
		{"zadd", "key", "INCR", "-inf", "a"},
		{"zincrby", "key", "-inf", "a"},
		{"zadd", "none", "5", "b", "x", "c"},
		{"zremrangebyscore", "key", "-inf", "x"},
		{"zpopmin", "key", "-1"},
		{"zmpop", "1", "key", "MIN", "COUNT", "0"},
		{"zrangestore", "key", "none", "0", "x"},
		{"zunionstore", "key", "1", "none", "WEIGHTS", "x"},
		{"bzmpop", "x", "1", "key", "MIN"},
	} {
		require.Regexp(t, "^-ERR ", b.Call(commandtest.Named(t, words[0]), words...), words)
		require.Equal(t, before, b.Call(commandtest.Named(t, "zrange"), "zrange", "key", "0", "-1", "WITHSCORES"), words)
		require.Nil(t, b.G.Peek(0, []byte("none")), words)
	}
}

func TestStoringNothingRemovesTheDestination(t *testing.T) {
	for _, words := range [][]string{
		{"zunionstore", "key", "1", "none"},
		{"zinterstore", "key", "2", "key", "none"},
		{"zdiffstore", "key", "2", "key", "key"},
		{"zrangestore", "key", "key", "7", "9"},
	} {
		b := commandtest.New(t)
		b.Call(commandtest.Named(t, "zadd"), "zadd", "key", "1", "a")
		require.Equal(t, ":0\r\n", b.Call(commandtest.Named(t, words[0]), words...), words)
		require.Nil(t, b.G.Peek(0, []byte("key")), words)
	}
}

// TestCombinationsAgreeWithAModel compares both ways to find a difference, and the order of aggregation, with maps.
func TestCombinationsAgreeWithAModel(t *testing.T) {
	testseed.Check(t, func(t *rapid.T) {
		member := rapid.StringMatching("[a-f]|1[0-9]")
		score := rapid.SampledFrom([]float64{0, 1, -2, 3.5, 7, math.Inf(1)})
		var z zcombination
		var models []map[string]float64
		for range rapid.IntRange(1, 4).Draw(t, "operands") {
			model := map[string]float64{}
			o := zoperand{weight: rapid.SampledFrom([]float64{1, 2, 0.5}).Draw(t, "weight")}
			if rapid.Bool().Draw(t, "plain") {
				o.set = new(sets.Set)
				for _, m := range rapid.SliceOf(member).Draw(t, "members") {
					o.set.Add([]byte(m), sets.Limits{IntsetEntries: 4, ListpackEntries: 4, ListpackValue: 64})
					model[m] = 1
				}
			} else {
				o.zset = zsets.New()
				for _, m := range rapid.SliceOf(member).Draw(t, "members") {
					model[m] = score.Draw(t, "score")
					o.zset.Set([]byte(m), model[m], zsets.Limits{Entries: 4, Value: 64})
				}
			}
			z.operands = append(z.operands, o)
			models = append(models, model)
		}
		z.aggregate = maxScore
		union, inter, diff := map[string]float64{}, map[string]float64{}, map[string]float64{}
		for i, model := range models {
			for m, s := range model {
				s = z.operands[i].weigh(s)
				if old, ok := union[m]; !ok || s > old {
					union[m] = s
				}
			}
		}
		for m, s := range models[0] {
			common, only := true, true
			for _, other := range models[1:] {
				_, ok := other[m]
				common, only = common && ok, only && !ok
			}
			if common {
				inter[m] = union[m]
			}
			if only {
				diff[m] = s
			}
		}
		contents := func(s *zsets.ZSet) map[string]float64 {
			got := map[string]float64{}
			s.RangeByRank(0, s.Len()-1, false, func(m []byte, score float64) bool {
				got[string(m)] = score
				return true
			})
			return got
		}
		require.Equal(t, diff, contents(zdiff.of(&z))) // before the others, which sort the operands
		require.Equal(t, union, contents(zunion.of(&z)))
		require.Equal(t, inter, contents(zinter.of(&z)))
	})
}

func TestSmallResultsAreStoredInTheSmallForm(t *testing.T) {
	b := commandtest.New(t)
	for i := range 200 {
		b.Call(commandtest.Named(t, "zadd"), "zadd", "large", fmt.Sprint(i), fmt.Sprint(i))
	}
	b.Call(commandtest.Named(t, "zadd"), "zadd", "small", "1", "5")
	b.Call(commandtest.Named(t, "zinterstore"), "zinterstore", "dst", "2", "large", "small")
	require.Equal(t, "listpack", b.G.Peek(0, []byte("dst")).ZSet().Encoding())
	b.Call(commandtest.Named(t, "zrangestore"), "zrangestore", "dst", "large", "0", "127")
	require.Equal(t, "listpack", b.G.Peek(0, []byte("dst")).ZSet().Encoding())
	b.Call(commandtest.Named(t, "zrangestore"), "zrangestore", "dst", "large", "0", "128")
	require.Equal(t, "skiplist", b.G.Peek(0, []byte("dst")).ZSet().Encoding())
	require.Equal(t, engine.ZSet, b.G.Peek(0, []byte("dst")).Type())
}
