package streams

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/atomredis/atomredis/internal/testing/testseed"
)

// record is an entry in the model, which is a slice.
type record struct {
	id     ID
	fields []string
}

func view(e Entry) record {
	r := record{id: e.ID}
	for field, value := range e.Fields() {
		r.fields = append(r.fields, string(field), string(value))
	}
	if len(r.fields) != 2*e.Len() {
		panic("Len and Fields differ")
	}
	return r
}

func collect(s *Stream, start, end ID, reverse bool) []record {
	got := []record{}
	s.Range(start, end, reverse, func(e Entry) bool {
		got = append(got, view(e))
		return true
	})
	return got
}

func byteSlices(fields []string) [][]byte {
	var out [][]byte
	for _, f := range fields {
		out = append(out, []byte(f))
	}
	return out
}

// add appends an entry with one field and value.
func add(t require.TestingT, s *Stream, lim Limits, id ID) {
	require.NoError(t, s.Append(id, byteSlices([]string{"f", "v"}), lim))
}

// check compares the stream with the model, and checks the blocks.
func check(t require.TestingT, s *Stream, model []record) {
	require.Equal(t, len(model), s.Len())
	require.Equal(t, model, collect(s, MinID, MaxID, false))
	backwards := slices.Clone(model)
	slices.Reverse(backwards)
	require.Equal(t, backwards, collect(s, MinID, MaxID, true))
	first, ok := s.First()
	require.Equal(t, len(model) > 0, ok)
	last, ok := s.Last()
	require.Equal(t, len(model) > 0, ok)
	if ok {
		require.Equal(t, model[0], view(first))
		require.Equal(t, model[0].id, s.FirstID())
		require.Equal(t, model[len(model)-1], view(last))
	} else {
		require.True(t, s.FirstID().IsZero())
		require.Zero(t, s.blocks.len())
	}

	live, buffers := 0, 0
	s.blocks.ascend(MinID, MaxID, func(b *block) bool {
		require.Positive(t, b.live)
		require.False(t, b.first().deleted())
		found, dead := 0, 0
		for pos := int(b.body); pos < len(b.buf); {
			at := b.at(pos)
			if at.deleted() {
				dead += at.next - pos
			} else {
				require.GreaterOrEqual(t, pos, int(b.head))
				found++
			}
			pos = at.next
		}
		require.Equal(t, int(b.live), found)
		require.Equal(t, int(b.dead), dead)
		require.LessOrEqual(t, int(b.dead), len(b.buf)/2)
		live += found
		buffers += cap(b.buf)
		return true
	})
	require.Equal(t, s.length, live)
	require.Equal(t, buffers, s.buffers)
}

func TestStreamEqualsASlice(t *testing.T) {
	testseed.Check(t, func(t *rapid.T) {
		s, model := New(), []record{}
		lim := Limits{Entries: rapid.IntRange(0, 6).Draw(t, "entries"),
			Bytes: rapid.SampledFrom([]int{0, 40, 4096}).Draw(t, "bytes")}
		added, maxDeleted := int64(0), ID{}
		anyID := func() ID {
			return ID{rapid.Uint64Range(0, 60).Draw(t, "ms"), rapid.Uint64Range(0, 3).Draw(t, "seq")}
		}
		known := func() ID {
			if len(model) > 0 && rapid.IntRange(0, 9).Draw(t, "known") > 0 {
				return model[rapid.IntRange(0, len(model)-1).Draw(t, "index")].id
			}
			return anyID()
		}
		drop := func(n int) { model = slices.Delete(model, 0, n) }
		t.Repeat(map[string]func(*rapid.T){
			"append": func(t *rapid.T) {
				id := ID{s.LastID().Ms + rapid.Uint64Range(0, 1).Draw(t, "ms"), rapid.Uint64Range(0, 200).Draw(t, "seq")}
				names := rapid.SampledFrom([][]string{{"a"}, {"a", "b"}, {"b", "a"}, {"a", "a"}, {""}}).Draw(t, "names")
				var fields []string
				for _, name := range names {
					fields = append(fields, name, rapid.StringN(0, 150, 150).Draw(t, "value"))
				}
				err := s.Append(id, byteSlices(fields), lim)
				if id.Compare(s.LastID()) < 0 || err != nil {
					require.ErrorIs(t, err, ErrIDTooSmall)
					return
				}
				model = append(model, record{id, fields})
				added++
				require.Equal(t, id, s.LastID())
			},
			"delete": func(t *rapid.T) {
				id := known()
				i := slices.IndexFunc(model, func(r record) bool { return r.id == id })
				require.Equal(t, i >= 0, s.Has(id))
				require.Equal(t, i >= 0, s.Delete(id))
				if i >= 0 {
					model = slices.Delete(model, i, i+1)
					if maxDeleted.Less(id) {
						maxDeleted = id
					}
				}
			},
			"trim by length": func(t *rapid.T) {
				n := rapid.IntRange(0, len(model)+2).Draw(t, "maxlen")
				removed := s.TrimByLength(n, Trim{})
				require.Equal(t, max(0, len(model)-n), removed)
				drop(removed)
			},
			"trim by id": func(t *rapid.T) {
				id := known()
				removed := s.TrimByMinID(id, Trim{})
				i := slices.IndexFunc(model, func(r record) bool { return !r.id.Less(id) })
				if i < 0 {
					i = len(model)
				}
				require.Equal(t, i, removed)
				drop(removed)
			},
			"trim about": func(t *rapid.T) {
				limit := rapid.IntRange(0, 10).Draw(t, "limit")
				n, removed := rapid.IntRange(0, len(model)).Draw(t, "maxlen"), 0
				if rapid.Bool().Draw(t, "by id") {
					id := known()
					removed = s.TrimByMinID(id, Trim{Approx: true, Limit: limit})
					if removed > 0 {
						require.True(t, model[removed-1].id.Less(id))
					}
				} else {
					removed = s.TrimByLength(n, Trim{Approx: true, Limit: limit})
					require.LessOrEqual(t, removed, len(model)-n)
				}
				if limit > 0 {
					require.LessOrEqual(t, removed, limit)
				}
				drop(removed)
			},
			"range": func(t *rapid.T) {
				start, end := known(), known()
				want := []record{}
				for _, r := range model {
					if !r.id.Less(start) && !end.Less(r.id) {
						want = append(want, r)
					}
				}
				require.Equal(t, want, collect(s, start, end, false))
				slices.Reverse(want)
				require.Equal(t, want, collect(s, start, end, true))
			},
			"get": func(t *rapid.T) {
				id := known()
				e, ok := s.Get(id)
				i := slices.IndexFunc(model, func(r record) bool { return r.id == id })
				require.Equal(t, i >= 0, ok)
				if ok {
					require.Equal(t, model[i], view(e))
				}
			},
			"clone": func(t *rapid.T) {
				old := s
				s = s.Clone()
				old.TrimByLength(0, Trim{})
			},
			"": func(t *rapid.T) {
				require.Equal(t, added, s.EntriesAdded())
				require.Equal(t, maxDeleted, s.MaxDeletedID())
				check(t, s, model)
			},
		})
	})
}

func TestBlocksFillUpToTheirLimits(t *testing.T) {
	s := New()
	for i := range uint64(250) {
		add(t, s, Limits{Entries: 100, Bytes: 4096}, ID{i + 1, 0})
	}
	require.Equal(t, 3, s.NodeCount())
	s = New()
	for i := range uint64(250) {
		add(t, s, Limits{}, ID{i + 1, 0})
	}
	require.Equal(t, 1, s.NodeCount())
	s = New()
	for i := range uint64(10) {
		require.NoError(t, s.Append(ID{i + 1, 0}, [][]byte{[]byte("f"), make([]byte, 1000)}, Limits{Bytes: 4096}))
	}
	require.Equal(t, 3, s.NodeCount())
}

func TestDeletedEntriesStillCountTowardsTheBlockLimit(t *testing.T) {
	s, lim := New(), Limits{Entries: 3}
	for i := range uint64(3) {
		add(t, s, lim, ID{i + 1, 0})
	}
	s.Delete(ID{1, 0})
	s.Delete(ID{2, 0})
	add(t, s, lim, ID{4, 0})
	require.Equal(t, 2, s.NodeCount())
}

func TestApproximateTrimTakesWholeBlocksOnly(t *testing.T) {
	build := func() *Stream {
		s := New()
		for i := range uint64(10) {
			add(t, s, Limits{Entries: 3}, ID{i + 1, 0})
		}
		return s
	}
	for _, c := range []struct{ maxLen, limit, want int }{
		{10, 0, 0}, {8, 0, 0}, {7, 0, 3}, {5, 0, 3}, {4, 0, 6}, {0, 0, 10},
		{0, 2, 0}, {0, 3, 3}, {0, 8, 6}, {0, 9, 9}, {0, 10, 10},
	} {
		require.Equal(t, c.want, build().TrimByLength(c.maxLen, Trim{Approx: true, Limit: c.limit}), "%+v", c)
	}
	for _, c := range []struct {
		min         ID
		limit, want int
	}{
		{ID{3, 0}, 0, 0}, {ID{3, 1}, 0, 3}, {ID{7, 0}, 0, 6}, {MaxID, 0, 10}, {MaxID, 5, 3},
	} {
		require.Equal(t, c.want, build().TrimByMinID(c.min, Trim{Approx: true, Limit: c.limit}), "%+v", c)
	}
}

func TestApproximateTrimByIDGoesByTheLastEntryEverInABlock(t *testing.T) {
	s := New()
	for i := range uint64(4) {
		add(t, s, Limits{Entries: 3}, ID{i + 1, 0})
	}
	s.Delete(ID{3, 0})
	require.Equal(t, 0, s.TrimByMinID(ID{3, 0}, Trim{Approx: true}))
	require.Equal(t, 2, s.TrimByMinID(ID{4, 0}, Trim{Approx: true}))
}

func TestDefaultTrimLimitIsAHundredBlocks(t *testing.T) {
	require.Equal(t, 10_000, DefaultLimits.DefaultTrimLimit())
	require.Equal(t, 300, Limits{Entries: 3}.DefaultTrimLimit())
	require.Equal(t, 10_000, Limits{}.DefaultTrimLimit())
	require.Equal(t, 1_000_000, Limits{Entries: 1 << 30}.DefaultTrimLimit())
}

func TestNextIDsNeverGoBack(t *testing.T) {
	s := New()
	id, ok := s.NextID(5)
	require.True(t, ok)
	require.Equal(t, ID{5, 0}, id)
	add(t, s, DefaultLimits, ID{9, 3})
	id, _ = s.NextID(5)
	require.Equal(t, ID{9, 4}, id)
	id, _ = s.NextID(9)
	require.Equal(t, ID{9, 4}, id)
	id, _ = s.NextID(10)
	require.Equal(t, ID{10, 0}, id)

	id, ok = s.NextSeq(9)
	require.True(t, ok)
	require.Equal(t, ID{9, 4}, id)
	id, ok = s.NextSeq(8)
	require.True(t, ok)
	require.ErrorIs(t, s.Append(id, byteSlices([]string{"f", "v"}), DefaultLimits), ErrIDTooSmall)

	add(t, s, DefaultLimits, ID{9, maxU64})
	_, ok = s.NextSeq(9)
	require.False(t, ok)
	id, ok = s.NextID(9)
	require.True(t, ok)
	require.Equal(t, ID{10, 0}, id)
	add(t, s, DefaultLimits, MaxID)
	_, ok = s.NextID(9)
	require.False(t, ok)
}

func TestSetIDRefusesWhatContradictsTheEntries(t *testing.T) {
	s := New()
	add(t, s, DefaultLimits, ID{5, 0})
	add(t, s, DefaultLimits, ID{6, 0})
	require.ErrorIs(t, s.SetID(ID{5, 9}, -1, ID{}), ErrSetIDTooSmall)
	require.ErrorIs(t, s.SetID(ID{7, 0}, 1, ID{}), ErrEntriesAddedTooSmall)
	require.ErrorIs(t, s.SetID(ID{7, 0}, 2, ID{7, 1}), ErrSetIDBelowDeleted)
	require.NoError(t, s.SetID(ID{7, 0}, -1, ID{}))
	require.Equal(t, []any{ID{7, 0}, int64(2), ID{}}, []any{s.LastID(), s.EntriesAdded(), s.MaxDeletedID()})
	require.NoError(t, s.SetID(ID{8, 0}, 20, ID{1, 0}))
	require.Equal(t, []any{ID{8, 0}, int64(20), ID{1, 0}}, []any{s.LastID(), s.EntriesAdded(), s.MaxDeletedID()})
	s.TrimByLength(0, Trim{})
	require.NoError(t, s.SetID(ID{1, 0}, -1, ID{}), "an empty stream may go back")
}

func TestStoredEntriesDoNotAliasTheArguments(t *testing.T) {
	s, fields := New(), byteSlices([]string{"f", "v"})
	require.NoError(t, s.Append(ID{1, 0}, fields, DefaultLimits))
	fields[0][0], fields[1][0] = 'x', 'x'
	e, _ := s.First()
	require.Equal(t, []string{"f", "v"}, view(e).fields)
}

func TestRangeStopsWhenAskedTo(t *testing.T) {
	s := New()
	for i := range uint64(10) {
		add(t, s, Limits{Entries: 3}, ID{i + 1, 0})
	}
	for _, reverse := range []bool{false, true} {
		n := 0
		s.Range(MinID, MaxID, reverse, func(Entry) bool { n++; return n < 5 })
		require.Equal(t, 5, n)
	}
}

func TestReadingAtTheTailDoesNotAllocate(t *testing.T) {
	s := New()
	for i := range uint64(1000) {
		add(t, s, DefaultLimits, ID{i + 1, 0})
	}
	size := 0
	read := func(e Entry) bool {
		for field, value := range e.Fields() {
			size += len(field) + len(value)
		}
		return false
	}
	require.Zero(t, testing.AllocsPerRun(10, func() {
		s.Range(ID{999, 1}, MaxID, false, read)
		s.Range(MinID, MaxID, true, read)
	}))
}

func TestMemoryUsageFollowsTheEntries(t *testing.T) {
	s := New()
	require.Less(t, s.MemoryUsage(), 200)
	for i := range uint64(1000) {
		add(t, s, DefaultLimits, ID{i + 1, 0})
	}
	full := s.MemoryUsage()
	require.Greater(t, full, 5_000)
	g, _ := s.CreateGroup([]byte("g"), MinID, UnknownEntriesRead)
	c, _ := g.CreateConsumer([]byte("c"), 0)
	g.ReadNew(s, c, 100, false, 0, func(Entry) {})
	require.Greater(t, s.MemoryUsage(), full+100*nackOverhead)
	s.DestroyGroup([]byte("g"))
	require.Equal(t, full, s.MemoryUsage())
	s.TrimByLength(0, Trim{})
	require.Less(t, s.MemoryUsage(), 200)
}

func TestFullBlocksTakeWhatTheyHold(t *testing.T) {
	for _, size := range []int{1, 64, 300, 1000, 3000} {
		s, held, all := New(), 0, 0
		for i := range uint64(10_000) {
			require.NoError(t, s.Append(ID{i + 1, 0}, [][]byte{[]byte("f"), make([]byte, size)}, DefaultLimits))
		}
		s.blocks.ascend(MinID, MaxID, func(b *block) bool {
			if b != s.blocks.last() {
				held, all = held+len(b.buf), all+cap(b.buf)
			}
			require.LessOrEqual(t, len(b.buf), DefaultLimits.Bytes)
			return true
		})
		require.LessOrEqual(t, all, held+held/8, "%d", size)
	}
}

func TestLargeEntryLeavesNoRoomBehind(t *testing.T) {
	s := New()
	require.NoError(t, s.Append(ID{1, 0}, [][]byte{[]byte("f"), make([]byte, 50_000)}, DefaultLimits))
	for i := range uint64(300) {
		add(t, s, DefaultLimits, ID{i + 2, 0})
	}
	require.Less(t, s.MemoryUsage(), 70_000)
}

func TestTrimmedStreamInSteadyStateDoesNotAllocate(t *testing.T) {
	for _, approx := range []bool{false, true} {
		s, id, fields := New(), ID{1, 0}, byteSlices([]string{"field", "value"})
		work := func() {
			id.Ms++
			_ = s.Append(id, fields, DefaultLimits)
			s.TrimByLength(1000, Trim{Approx: approx})
		}
		for range 10_000 {
			work()
		}
		require.Zero(t, testing.AllocsPerRun(10_000, work), "approx=%v", approx)
	}
}

func million(b *testing.B) *Stream {
	s, fields := New(), byteSlices([]string{"sensor", "1234", "temperature", "19.8"})
	for i := range uint64(1_000_000) {
		require.NoError(b, s.Append(ID{1_700_000_000_000 + i, 0}, fields, DefaultLimits))
	}
	return s
}

func BenchmarkAppend(b *testing.B) {
	s, fields, id := New(), byteSlices([]string{"sensor", "1234", "temperature", "19.8"}), ID{1_700_000_000_000, 0}
	b.ReportAllocs()
	for b.Loop() {
		id.Ms++
		_ = s.Append(id, fields, DefaultLimits)
	}
}

func BenchmarkRangeOfTenFromTheMiddle(b *testing.B) {
	s := million(b)
	for _, reverse := range []bool{false, true} {
		b.Run(fmt.Sprintf("reverse=%v", reverse), func(b *testing.B) {
			b.ReportAllocs()
			start, end, id := MinID, MaxID, ID{1_700_000_500_050, 0}
			if reverse {
				end = id
			} else {
				start = id
			}
			size := 0
			for b.Loop() {
				n := 0
				s.Range(start, end, reverse, func(e Entry) bool {
					for field, value := range e.Fields() {
						size += len(field) + len(value)
					}
					n++
					return n < 10
				})
			}
			b.ReportMetric(float64(s.MemoryUsage())/float64(s.Len()), "B/entry")
		})
	}
}

func BenchmarkReadTheNewestEntry(b *testing.B) {
	s := million(b)
	size := 0
	b.ReportAllocs()
	for b.Loop() {
		s.Range(s.LastID(), MaxID, false, func(e Entry) bool { size += e.Len(); return true })
	}
}

func BenchmarkGet(b *testing.B) {
	s := million(b)
	b.ReportAllocs()
	i := uint64(0)
	for b.Loop() {
		i = (i + 7919) % 1_000_000
		s.Get(ID{1_700_000_000_000 + i, 0})
	}
}

func BenchmarkAppendTrimmedToAThousand(b *testing.B) {
	for _, size := range []int{1, 1500, 4096} {
		for _, approx := range []bool{false, true} {
			b.Run(fmt.Sprintf("size=%d/approx=%v", size, approx), func(b *testing.B) {
				s, fields, id := New(), [][]byte{[]byte("f"), make([]byte, size)}, ID{1, 0}
				b.ReportAllocs()
				for b.Loop() {
					id.Ms++
					_ = s.Append(id, fields, DefaultLimits)
					s.TrimByLength(1000, Trim{Approx: approx})
				}
			})
		}
	}
}
