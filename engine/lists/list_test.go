package lists

import (
	"bytes"
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/atomredis/atomredis/internal/testing/testseed"
)

func contents(l *List) []string {
	out := []string{}
	l.Range(0, l.Len()-1, func(v []byte) bool {
		out = append(out, string(v))
		return true
	})
	return out
}

func from(limit Limit, elems ...string) *List {
	l := New(limit)
	for _, e := range elems {
		l.PushBack([]byte(e))
	}
	return l
}

// check verifies what must be true of every list at any time.
func check(t require.TestingT, l *List) {
	total, capacity := 0, 0
	for i := range l.nodes {
		nd := l.at(i)
		require.Positive(t, nd.n, "no node is empty")
		if i > 0 {
			before := l.at(i - 1)
			require.Equal(t, before.start+before.n, nd.start, "positions are contiguous")
		}
		n := 0
		for p := nd.head; p < len(nd.buf); n++ {
			_, p = nd.elem(p)
		}
		require.Equal(t, nd.n, n)
		total += n
		capacity += cap(nd.buf)
	}
	require.Equal(t, l.len, total)
	require.GreaterOrEqual(t, l.MemoryUsage(), capacity, "memory is accounted for")
	if l.extra != nil {
		require.Equal(t, capacity+cap(l.extra.spare), l.extra.buffers)
	}
	used := map[int]bool{}
	for i := range l.nodes {
		used[(l.first+i)&(len(l.ring)-1)] = true
	}
	for i := range l.ring {
		require.True(t, used[i] || l.ring[i].buf == nil, "free slots hold no memory")
	}
	if len(l.ring) > 1 {
		require.NotNil(t, l.extra, "MemoryUsage visits at most one node")
	}
	if l.nodes > 1 {
		require.Equal(t, "quicklist", l.Encoding())
	}
}

func TestListBehavesAsASlice(t *testing.T) {
	testseed.Check(t, func(t *rapid.T) {
		limit := rapid.SampledFrom([]Limit{-2, -1, 1, 2, 5, 100}).Draw(t, "limit")
		elem := rapid.Custom(func(t *rapid.T) []byte {
			size := rapid.SampledFrom([]int{0, 1, 2, 30, 127, 128, 700, 1500, 20000}).Draw(t, "size")
			return bytes.Repeat([]byte{byte('a' + rapid.IntRange(0, 2).Draw(t, "letter"))}, size)
		})
		l, model := New(limit), []string{}
		index := func(t *rapid.T) int { return rapid.IntRange(-1, len(model)).Draw(t, "index") }
		present := func(t *rapid.T) []byte {
			if len(model) == 0 {
				return elem.Draw(t, "v")
			}
			return []byte(rapid.SampledFrom(model).Draw(t, "present"))
		}
		t.Repeat(map[string]func(*rapid.T){
			"PushFront": func(t *rapid.T) {
				v := elem.Draw(t, "v")
				for range rapid.IntRange(1, 30).Draw(t, "times") {
					l.PushFront(v)
					model = slices.Insert(model, 0, string(v))
				}
			},
			"PushBack": func(t *rapid.T) {
				v := elem.Draw(t, "v")
				for range rapid.IntRange(1, 30).Draw(t, "times") {
					l.PushBack(v)
					model = append(model, string(v))
				}
			},
			"PopFront": func(t *rapid.T) {
				for range rapid.IntRange(1, 30).Draw(t, "times") {
					v, ok := l.Front()
					require.Equal(t, len(model) > 0, ok)
					if ok {
						require.Equal(t, model[0], string(v))
						model = model[1:]
					}
					l.DropFront()
				}
			},
			"PopBack": func(t *rapid.T) {
				for range rapid.IntRange(1, 30).Draw(t, "times") {
					v, ok := l.Back()
					require.Equal(t, len(model) > 0, ok)
					if ok {
						require.Equal(t, model[len(model)-1], string(v))
						model = model[:len(model)-1]
					}
					l.DropBack()
				}
			},
			"Index": func(t *rapid.T) {
				i := index(t)
				v, ok := l.Index(i)
				require.Equal(t, i >= 0 && i < len(model), ok)
				if ok {
					require.Equal(t, model[i], string(v))
				}
			},
			"Set": func(t *rapid.T) {
				i, v := index(t), elem.Draw(t, "v")
				ok := l.Set(i, v)
				require.Equal(t, i >= 0 && i < len(model), ok)
				if ok {
					model = slices.Clone(model)
					model[i] = string(v)
				}
			},
			"Insert": func(t *rapid.T) {
				pivot, v := present(t), elem.Draw(t, "v")
				i := slices.Index(model, string(pivot))
				if rapid.Bool().Draw(t, "after") {
					require.Equal(t, i >= 0, l.InsertAfter(pivot, v))
					i++
				} else {
					require.Equal(t, i >= 0, l.InsertBefore(pivot, v))
				}
				if slices.Contains(model, string(pivot)) {
					model = slices.Insert(slices.Clone(model), i, string(v))
				}
			},
			"Remove": func(t *rapid.T) {
				v := present(t)
				count := rapid.SampledFrom([]int{0, 1, 2, 10, -1, -2, -10, math.MinInt, math.MaxInt}).Draw(t, "count")
				kept, removed := []string{}, 0
				rest := slices.Clone(model)
				if count < 0 {
					slices.Reverse(rest)
				}
				for _, e := range rest {
					if e == string(v) && (count == 0 || count == math.MinInt || removed < max(count, -count)) {
						removed++
					} else {
						kept = append(kept, e)
					}
				}
				if count < 0 {
					slices.Reverse(kept)
				}
				require.Equal(t, removed, l.Remove(count, v))
				model = kept
			},
			"Trim": func(t *rapid.T) {
				start, stop := index(t), index(t)
				if rapid.Bool().Draw(t, "gentle") {
					start, stop = min(3, len(model)/4), len(model)-2
				}
				l.Trim(start, stop)
				start, stop = max(start, 0), min(stop, len(model)-1)
				if start > stop {
					model = []string{}
				} else {
					model = slices.Clone(model[start : stop+1])
				}
			},
			"Range": func(t *rapid.T) {
				start, stop := index(t), index(t)
				want := []string{}
				for i := max(start, 0); i <= min(stop, len(model)-1); i++ {
					want = append(want, model[i])
				}
				got := []string{}
				collect := func(v []byte) bool { got = append(got, string(v)); return true }
				l.Range(start, stop, collect)
				require.Equal(t, want, got)
				got = []string{}
				l.RangeReverse(start, stop, collect)
				slices.Reverse(want)
				require.Equal(t, want, got)
			},
			"Pos": func(t *rapid.T) {
				v := present(t)
				rank := rapid.SampledFrom([]int{1, 2, 5, -1, -2, -5, math.MinInt, math.MaxInt}).Draw(t, "rank")
				count, maxlen := rapid.IntRange(0, 3).Draw(t, "count"), rapid.IntRange(0, len(model)+1).Draw(t, "maxlen")
				var want, got []int
				matches, compared := 0, 0
				for i := range model {
					if rank < 0 {
						i = len(model) - 1 - i
					}
					if compared++; maxlen > 0 && compared > maxlen {
						break
					}
					if model[i] != string(v) {
						continue
					}
					matches++
					if (rank > 0 && matches >= rank || rank < 0 && -matches <= rank) && (count == 0 || len(want) < count) {
						want = append(want, i)
					}
				}
				l.Pos(v, rank, count, maxlen, func(i int) { got = append(got, i) })
				require.Equal(t, want, got)
			},
			"Clone": func(t *rapid.T) {
				c := l.Clone()
				l.PushBack([]byte("only in the old one"))
				l.Set(0, []byte("x"))
				l.Trim(1, 2)
				l = c
			},
			"SetLimit": func(t *rapid.T) {
				l.SetLimit(rapid.SampledFrom([]Limit{-2, -1, 3, 128}).Draw(t, "limit"))
			},
			"": func(t *rapid.T) {
				require.Equal(t, len(model), l.Len())
				require.Equal(t, model, contents(l))
				check(t, l)
			},
		})
	})
}

func TestLimitFollowsListMaxListpackSize(t *testing.T) {
	for _, c := range []struct {
		limit          Limit
		bytes, entries int
	}{
		{-1, 4096, math.MaxInt}, {-2, 8192, math.MaxInt}, {-3, 16384, math.MaxInt}, {-4, 32768, math.MaxInt},
		{-5, 65536, math.MaxInt}, {-6, 65536, math.MaxInt}, {math.MinInt, 65536, math.MaxInt},
		{0, 8192, 1}, {1, 8192, 1}, {128, 8192, 128}, {1 << 20, 8192, 32767},
	} {
		maxBytes, maxEntries := c.limit.Bounds()
		require.Equal(t, c.bytes, maxBytes, "%d", c.limit)
		require.Equal(t, c.entries, maxEntries, "%d", c.limit)
	}
}

func TestEncodingIsQuicklistBeyondOneNodeAndListpackAgainAtHalfOfIt(t *testing.T) {
	l := New(4)
	for i := range 4 {
		l.PushBack([]byte{byte(i)})
		require.Equal(t, "listpack", l.Encoding())
	}
	l.PushBack([]byte("fifth"))
	require.Equal(t, "quicklist", l.Encoding())
	l.DropBack()
	l.DropBack()
	require.Equal(t, "quicklist", l.Encoding(), "three of four is more than half")
	l.DropBack()
	require.Equal(t, "listpack", l.Encoding())

	l = from(DefaultLimit, "small")
	l.Set(0, make([]byte, 9000))
	require.Equal(t, "quicklist", l.Encoding())
	l.Set(0, make([]byte, 100))
	require.Equal(t, "listpack", l.Encoding())
}

func TestMixedPushesStayAListpackWithinTheLimit(t *testing.T) {
	l := New(DefaultLimit)
	v := make([]byte, 62)
	for i := range 8192 / 64 {
		if i%3 == 0 {
			l.PushFront(v)
		} else {
			l.PushBack(v)
		}
		require.Equal(t, "listpack", l.Encoding())
	}
	check(t, l)
	l.PushFront(v)
	require.Equal(t, "quicklist", l.Encoding())
}

func TestFullNodesTakeWhatTheyHold(t *testing.T) {
	for _, size := range []int{1, 64, 300, 1000, 1500, 3000, 5000, 10000} {
		for _, vary := range []int{1, 3} {
			for _, push := range []func(*List, []byte){(*List).PushFront, (*List).PushBack} {
				l, content, v := New(DefaultLimit), 0, make([]byte, size)
				for i := range 10000 {
					e := v[:size-size*(i%vary)/4]
					push(l, e)
					content += encodedLen(len(e))
				}
				require.Less(t, l.MemoryUsage(), content*9/8+2*entryLimitBytes, "%d %d", size, vary)
				check(t, l)
			}
		}
	}
}

func TestNodesOfLargeElementsAreAllocatedOnce(t *testing.T) {
	l, v := New(DefaultLimit), make([]byte, 2000)
	for range 100 {
		l.PushBack(v)
	}
	require.Less(t, testing.AllocsPerRun(1000, func() { l.PushBack(v) }), 0.5, "four elements have a node")
}

func TestMiddleEditsKeepMemoryCompact(t *testing.T) {
	l := New(DefaultLimit)
	for i := range 20000 {
		l.PushBack(fmt.Appendf(nil, "element-%012d", i))
	}
	content := 20000 * encodedLen(20)
	require.Less(t, l.MemoryUsage(), content*11/10)
	for i := range 20000 {
		if i%10 != 0 {
			require.Equal(t, 1, l.Remove(1, fmt.Appendf(nil, "element-%012d", i)))
		}
	}
	check(t, l)
	require.Equal(t, 2000, l.Len())
	require.Less(t, l.MemoryUsage(), content/10*2)
	for i := range 2000 {
		require.True(t, l.InsertAfter(fmt.Appendf(nil, "element-%012d", i*10), []byte("another element here")))
	}
	check(t, l)
	require.Less(t, l.MemoryUsage(), content/5*2)
}

func TestQueueGivesItsMemoryBack(t *testing.T) {
	l := New(DefaultLimit)
	for range 100000 {
		l.PushFront([]byte("a job to be done"))
	}
	for l.Len() > 3 {
		l.DropBack()
	}
	check(t, l)
	require.Less(t, l.MemoryUsage(), 2048)
}

func TestRemovingAlmostEverythingGivesTheMemoryBack(t *testing.T) {
	l := from(DefaultLimit, "first")
	for range 1000 {
		l.PushBack([]byte("many of the same"))
	}
	l.PushBack([]byte("last"))
	require.Equal(t, 1000, l.Remove(0, []byte("many of the same")))
	check(t, l)
	require.Equal(t, []string{"first", "last"}, contents(l))
	require.Less(t, l.MemoryUsage(), 1024)
}

func TestQueueInSteadyStateHardlyAllocates(t *testing.T) {
	l := New(DefaultLimit)
	v := make([]byte, 64)
	for range 1000 {
		l.PushFront(v)
	}
	require.Less(t, testing.AllocsPerRun(10000, func() {
		l.PushFront(v)
		l.DropBack()
	}), 0.5)
}

func TestRangeStopsWhenToldTo(t *testing.T) {
	l := from(2, "a", "b", "c", "d", "e")
	var got string
	until := func(v []byte) bool { got += string(v); return len(got) < 3 }
	l.Range(0, 4, until)
	require.Equal(t, "abc", got)
	got = ""
	l.RangeReverse(0, 4, until)
	require.Equal(t, "edc", got)
}

func TestEmptyListAnswersEverything(t *testing.T) {
	l := New(DefaultLimit)
	l.DropFront()
	l.DropBack()
	l.Trim(0, 10)
	require.False(t, l.Set(0, nil))
	require.False(t, l.InsertBefore(nil, nil))
	require.False(t, l.InsertAfter(nil, nil))
	require.Zero(t, l.Remove(0, nil))
	require.Zero(t, l.Clone().Len())
	l.Pos(nil, 1, 0, 0, func(int) { t.Fatal("found something") })
	require.Equal(t, "listpack", l.Encoding())
	require.Empty(t, contents(l))
}

func BenchmarkQueue(b *testing.B) {
	for _, n := range []int{0, 100, 10000, 1000000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			l, v := New(DefaultLimit), make([]byte, 64)
			for range n {
				l.PushFront(v)
			}
			b.ReportAllocs()
			for b.Loop() {
				l.PushFront(v)
				l.Back()
				l.DropBack()
			}
		})
	}
}

func BenchmarkPush(b *testing.B) {
	v := make([]byte, 64)
	b.Run("front", func(b *testing.B) {
		l := New(DefaultLimit)
		b.ReportAllocs()
		for b.Loop() {
			l.PushFront(v)
		}
	})
	b.Run("back", func(b *testing.B) {
		l := New(DefaultLimit)
		b.ReportAllocs()
		for b.Loop() {
			l.PushBack(v)
		}
	})
	b.Run("back, then pop all from the front", func(b *testing.B) {
		l, n := New(DefaultLimit), 0
		b.ReportAllocs()
		for b.Loop() {
			if n++; n&(1<<16) == 0 {
				l.PushBack(v)
			} else {
				l.Front()
				l.DropFront()
			}
		}
	})
	b.Run("back, large", func(b *testing.B) {
		l, v := New(DefaultLimit), make([]byte, 2000)
		b.ReportAllocs()
		for b.Loop() {
			if l.PushBack(v); l.Len() > 10000 {
				l.DropFront()
			}
		}
	})
	b.Run("new list", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			New(DefaultLimit).PushBack(v)
		}
	})
}

func BenchmarkRead(b *testing.B) {
	l, v := New(DefaultLimit), make([]byte, 64)
	for range 1000000 {
		l.PushBack(v)
	}
	b.Run("index in the middle", func(b *testing.B) {
		b.ReportAllocs()
		i := 0
		for b.Loop() {
			i = (i + 7919) % 500000
			l.Index(250000 + i)
		}
	})
	b.Run("set of another size", func(b *testing.B) {
		b.ReportAllocs()
		i := 0
		for b.Loop() {
			i = (i + 7919) % 1000000
			l.Set(i, v[:60+i%5])
		}
	})
	b.Run("range of 100", func(b *testing.B) {
		b.ReportAllocs()
		total := 0
		for b.Loop() {
			l.Range(500000, 500099, func(v []byte) bool { total += len(v); return true })
		}
	})
	b.Run("remove near the front", func(b *testing.B) {
		b.ReportAllocs()
		w := []byte("job")
		for b.Loop() {
			l.PushFront(w)
			l.Remove(1, w)
		}
	})
}
