package numbers

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/atomredis/atomredis/internal/testing/testseed"
)

// ranges returns ranges with all kinds of bounds among a few numbers.
func ranges() (all []Range) {
	bounds := []float64{math.Inf(-1), -1, 0, 1, 1.5, 2, 9, math.Inf(1)}
	for _, lo := range bounds {
		for _, hi := range bounds {
			for _, x := range [][2]bool{{}, {true, false}, {false, true}, {true, true}} {
				all = append(all, Range{lo, hi, x[0], x[1]})
			}
		}
	}
	return all
}

func TestRangesHaveTheNumbersBetweenTheirBounds(t *testing.T) {
	r := testseed.Rand(t)
	tree := New()
	var items []Item
	for doc := range uint64(1000) {
		i := Item{[]float64{math.Inf(-1), -1, math.Copysign(0, -1), 0, 1, 1.25, 2, 3, math.Inf(1)}[r.IntN(9)], 1 + doc/2}
		tree.Add(i)
		tree.Add(i)
		if !slices.ContainsFunc(items, func(o Item) bool { return compare(i, o) == 0 }) {
			items = append(items, i)
		}
	}
	slices.SortFunc(items, compare)
	require.Equal(t, len(items), tree.Len())
	v := tree.View()
	for _, rg := range ranges() {
		var want, up, down []Item
		for _, i := range items {
			above := i.Value > rg.Min || i.Value == rg.Min && !rg.MinExclusive
			below := i.Value < rg.Max || i.Value == rg.Max && !rg.MaxExclusive
			require.Equal(t, above && below, rg.Has(i.Value))
			if above && below {
				want = append(want, i)
			}
		}
		v.Ascend(rg, func(i Item) bool { up = append(up, i); return true })
		v.Descend(rg, func(i Item) bool { down = append(down, i); return true })
		slices.Reverse(down)
		require.True(t, slices.EqualFunc(want, up, func(a, b Item) bool { return compare(a, b) == 0 }), "%+v", rg)
		require.Equal(t, up, down)
		require.Equal(t, len(want), tree.Count(rg), "%+v", rg)
	}
	tree.Remove(items[0])
	require.Equal(t, len(items)-1, tree.Len())
	require.Equal(t, len(items), v.Len())
}

func million() *Tree {
	r := rand.New(rand.NewPCG(1, 2))
	t := New()
	for doc := range uint64(1_000_000) {
		t.Add(Item{float64(r.IntN(100_000)), doc + 1})
	}
	return t
}

func BenchmarkAddMillion(b *testing.B) {
	for b.Loop() {
		t := million()
		b.ReportMetric(float64(t.Bytes())/float64(t.Len()), "B/number")
	}
}

func BenchmarkCount(b *testing.B) {
	t := million()
	for b.Loop() {
		t.Count(Range{Min: 2000, Max: 70_000, MinExclusive: true})
	}
}

func BenchmarkAscend(b *testing.B) {
	t := million()
	n := 0
	for b.Loop() {
		t.View().Ascend(Range{Min: 2000, Max: 4000}, func(Item) bool { n++; return true })
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(n), "ns/number")
}
