package slots

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/atomredis/atomredis/internal/testing/testseed"
)

const testSlots = 200

// requireSound compares an index with the slots of all elements.
func requireSound(t require.TestingT, x *Index, model []int) {
	require.Equal(t, len(model), x.n)
	listed := 0
	var bySlot [testSlots][]int
	for i, slot := range model {
		bySlot[slot] = append(bySlot[slot], i)
	}
	for slot, want := range bySlot {
		got := slices.Collect(x.All(slot))
		for at, i := range got {
			if int(*x.place(i)) != at {
				require.FailNow(t, "an element is not where the index has it")
			}
		}
		if p := x.pages[slot/pageSize]; p != nil {
			listed += p.room(slot % pageSize)
			require.LessOrEqual(t, x.Len(slot), p.room(slot%pageSize))
			require.Equal(t, x.Len(slot) == 0, p.lists[slot%pageSize] == nil)
		}
		require.Equal(t, len(want), x.Len(slot))
		slices.Sort(got)
		require.Equal(t, want, got)
	}
	require.Equal(t, listed, x.listed)
	require.Less(t, len(x.places)*chunkSize, x.n+2*chunkSize)
}

func TestIndexIsWhatALookAtAllElementsFinds(t *testing.T) {
	testseed.Check(t, func(t *rapid.T) {
		x := New(testSlots)
		var model []int // the slot of each element, by number
		slot := rapid.IntRange(0, testSlots-1)
		remove := func(i int) {
			last := len(model) - 1
			x.Remove(i, model[i], model[last])
			model[i] = model[last]
			model = model[:last]
		}
		t.Repeat(map[string]func(*rapid.T){
			"add": func(t *rapid.T) {
				s := slot.Draw(t, "slot")
				x.Add(s)
				model = append(model, s)
			},
			"add many": func(t *rapid.T) {
				first, step := slot.Draw(t, "slot"), rapid.IntRange(0, 3).Draw(t, "step")
				for i := range rapid.IntRange(1, 1500).Draw(t, "n") {
					s := (first + i*step) % testSlots
					x.Add(s)
					model = append(model, s)
				}
			},
			"remove": func(t *rapid.T) {
				if len(model) > 0 {
					remove(rapid.IntRange(0, len(model)-1).Draw(t, "i"))
				}
			},
			"remove many": func(t *rapid.T) {
				for range rapid.IntRange(0, len(model)).Draw(t, "n") {
					remove(len(model) / 2)
				}
			},
			"": func(t *rapid.T) { requireSound(t, x, model) },
		})
	})
}

func TestScanVisitsWhatStaysInASlot(t *testing.T) {
	testseed.Check(t, func(t *rapid.T) {
		x := New(testSlots)
		type element struct{ slot, name int }
		var elements []element
		add := func(slot, name int) {
			x.Add(slot)
			elements = append(elements, element{slot, name})
		}
		const goes = -1
		stay := map[int]bool{}
		for name := range rapid.IntRange(0, 50).Draw(t, "stay") {
			stay[name] = true
			add(7, name)
			add(rapid.IntRange(6, 7).Draw(t, "slot"), goes)
		}
		for cursor := uint64(0); ; {
			cursor = x.Scan(7, cursor, rapid.IntRange(0, 5).Draw(t, "count"), func(i int) {
				require.Equal(t, 7, elements[i].slot)
				delete(stay, elements[i].name)
			})
			if cursor == 0 {
				break
			}
			for range rapid.IntRange(0, 3).Draw(t, "changes") {
				if rapid.IntRange(0, 3).Draw(t, "add") == 0 {
					add(rapid.IntRange(6, 7).Draw(t, "slot"), goes)
				} else if i := rapid.IntRange(0, len(elements)-1).Draw(t, "removed"); elements[i].name == goes {
					last := len(elements) - 1
					x.Remove(i, elements[i].slot, elements[last].slot)
					elements[i] = elements[last]
					elements = elements[:last]
				}
			}
		}
		require.Empty(t, stay)
	})
}

func BenchmarkAddRemove(b *testing.B) {
	const n, slots = 1 << 20, 1 << 14
	x := New(slots)
	slot := func(i int) int { return i * 40503 >> 3 % slots }
	of := make([]int, n)
	for i := range of {
		of[i] = slot(i)
		x.Add(of[i])
	}
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		at := i * 7919 % n
		x.Remove(at, of[at], of[n-1])
		of[at] = of[n-1]
		of[n-1] = slot(i)
		x.Add(of[n-1])
	}
	b.ReportMetric(float64(x.MemoryUsage())/n, "B/element")
}
