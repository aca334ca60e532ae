package streams

import (
	"slices"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/atomredis/atomredis/internal/testing/testseed"
)

// wide is a large value: a few fill a chunk.
type wide struct {
	id   ID
	text string
	_    [1000]byte
}

func (w *wide) key() ID { return w.id }

// checkSorted checks the invariants of a sorted set, and returns its values.
func checkSorted(t require.TestingT, s *sorted[wide, *wide]) []string {
	var got []string
	n := 0
	for i := range s.chunks {
		c := &s.chunks[i]
		n += int(c.hi - c.lo)
		if s.n == 0 {
			require.Len(t, s.chunks, 1)
			require.LessOrEqual(t, len(c.slots), keptSlots)
		} else {
			require.Less(t, c.lo, c.hi)
			require.Equal(t, c.first, c.slots[c.lo].id)
		}
		require.LessOrEqual(t, len(c.slots), s.maxSlots())
		for j := range c.slots {
			if j < int(c.lo) || j >= int(c.hi) {
				require.Zero(t, c.slots[j], "a free slot holds no memory")
			}
		}
	}
	require.Equal(t, s.n, n)
	for p := s.first(); s.valid(p); p = s.next(p) {
		got = append(got, s.at(p).text)
	}
	var back []string
	for p := s.floor(MaxID); s.valid(p); p = s.prev(p) {
		back = append(back, s.at(p).text)
	}
	slices.Reverse(back)
	require.Equal(t, got, back)
	return got
}

func TestSortedEqualsASlice(t *testing.T) {
	testseed.Check(t, func(t *rapid.T) {
		var s sorted[wide, *wide]
		require.Less(t, s.maxSlots(), 10)
		model := []ID{}
		anyID := func(t *rapid.T) ID { return ID{rapid.Uint64Range(0, 99).Draw(t, "id"), 0} }
		search := func(id ID) (int, bool) { return slices.BinarySearchFunc(model, id, ID.Compare) }
		add := func(id ID) {
			if i, found := search(id); !found {
				v := s.add(id)
				require.Zero(t, *v)
				v.id, v.text = id, id.String()
				model = slices.Insert(model, i, id)
			}
		}
		t.Repeat(map[string]func(*rapid.T){
			"add": func(t *rapid.T) { add(anyID(t)) },
			"add at the end": func(t *rapid.T) {
				for range rapid.IntRange(1, 30).Draw(t, "times") {
					last := ID{}
					if len(model) > 0 {
						last = model[len(model)-1]
					}
					add(ID{last.Ms + 1, 0})
				}
			},
			"delete": func(t *rapid.T) {
				id := anyID(t)
				s.delete(id)
				if i, found := search(id); found {
					model = slices.Delete(model, i, i+1)
				}
			},
			"remove some": func(t *rapid.T) {
				for range rapid.IntRange(1, 20).Draw(t, "times") {
					if len(model) > 0 {
						i := rapid.SampledFrom([]int{0, len(model) / 2, len(model) - 1}).Draw(t, "index")
						s.remove(s.ceil(model[i]))
						model = slices.Delete(model, i, i+1)
					}
				}
			},
			"find": func(t *rapid.T) {
				id := anyID(t)
				i, found := search(id)
				v := s.get(id)
				require.Equal(t, found, v != nil)
				if found {
					require.Equal(t, id, v.id)
				}
				p := s.ceil(id)
				require.Equal(t, i < len(model), s.valid(p))
				if i < len(model) {
					require.Equal(t, model[i], s.at(p).id)
				}
				if found {
					i++
				}
				p = s.floor(id)
				require.Equal(t, i > 0, s.valid(p))
				if i > 0 {
					require.Equal(t, model[i-1], s.at(p).id)
				}
			},
			"ascend": func(t *rapid.T) {
				start, end := anyID(t), anyID(t)
				want, got := []ID{}, []ID{}
				for _, id := range model {
					if !id.Less(start) && !end.Less(id) && len(want) < 5 {
						want = append(want, id)
					}
				}
				s.ascend(start, end, func(v *wide) bool {
					got = append(got, v.id)
					return len(got) < 5
				})
				require.Equal(t, want, got)
			},
			"": func(t *rapid.T) {
				var want []string
				for _, id := range model {
					want = append(want, id.String())
				}
				require.Equal(t, want, checkSorted(t, &s))
				require.Equal(t, len(model), s.len())
				require.Equal(t, len(model) == 0, s.last() == nil)
			},
		})
	})
}

func TestSortedQueueDoesNotAllocate(t *testing.T) {
	for _, length := range []int{0, 1, 20, 300, 1000} {
		var s sorted[ID, *ID]
		next, first := ID{}, ID{}
		push := func() {
			next.Ms++
			*s.add(next) = next
		}
		for range length {
			push()
		}
		work := func() {
			push()
			first.Ms++
			s.delete(first)
		}
		for range 10_000 {
			work()
		}
		require.Less(t, testing.AllocsPerRun(10_000, work), 0.02, "%d", length)
		slots := 0
		for i := range s.chunks {
			slots += len(s.chunks[i].slots)
		}
		require.LessOrEqual(t, slots, 4*length+2*s.maxSlots())
	}
}

func TestSortedGivesItsMemoryBack(t *testing.T) {
	var s sorted[ID, *ID]
	for i := range uint64(100_000) {
		*s.add(ID{i, 0}) = ID{i, 0}
	}
	for i := range uint64(100_000) {
		if i%50 > 0 {
			s.delete(ID{i, 0})
		}
	}
	bytes := 0
	for i := range s.chunks {
		bytes += int(unsafe.Sizeof(s.chunks[i])) + len(s.chunks[i].slots)*int(unsafe.Sizeof(ID{}))
	}
	require.Equal(t, 2000, s.len())
	require.Less(t, bytes, 2000*100)
}
