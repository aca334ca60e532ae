package tdigest

import (
	"math"
	"math/rand/v2"
	"slices"
	"sort"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/atomredis/atomredis/internal/testing/testseed"
)

// TestAMillionNumbers compares with all numbers in order. A rank is wrong by a tenth of q(1-q) at most.
func TestAMillionNumbers(t *testing.T) {
	const n = 1_000_000
	rnd := rand.New(rand.NewPCG(1, 2))
	for name, next := range map[string]func(i int) float64{
		"uniform":     func(int) float64 { return rnd.Float64() },
		"normal":      func(int) float64 { return rnd.NormFloat64() },
		"exponential": func(int) float64 { return rnd.ExpFloat64() },
		"ascending":   func(i int) float64 { return float64(i) },
		"descending":  func(i int) float64 { return float64(-i) },
	} {
		t.Run(name, func(t *testing.T) {
			d, all := New(100), make([]float64, n)
			for i := range all {
				all[i] = next(i)
				d.Add(all[i])
			}
			slices.Sort(all)
			require.EqualValues(t, n, d.Weight())
			require.Equal(t, all[0], d.Min())
			require.Equal(t, all[n-1], d.Max())
			require.LessOrEqual(t, d.MemoryUsage(), 11*9768/10)
			require.LessOrEqual(t, len(d.sorted()), d.Capacity()/2)
			for _, q := range []float64{0, 0.0001, 0.001, 0.01, 0.1, 0.25, 0.5, 0.75, 0.9, 0.99, 0.999, 0.9999, 1} {
				tolerance := 0.1*q*(1-q) + 10.0/n
				got := float64(sort.SearchFloat64s(all, d.Quantile(q))) / n
				require.InDelta(t, q, got, tolerance, "quantile %g", q)
				x := all[min(int(q*n), n-1)]
				require.InDelta(t, q, d.CDF(x), tolerance, "cdf of quantile %g", q)
				require.InDelta(t, q*n, float64(d.Rank(x)), tolerance*n+1)
				require.InDelta(t, n, float64(d.Rank(x)+d.ReverseRank(x)), 1)
			}
		})
	}
}

// TestFewNumbersAreExact compares with the numbers themselves: up to 20 of them have a node each.
func TestFewNumbersAreExact(t *testing.T) {
	testseed.Check(t, func(t *rapid.T) {
		all := rapid.SliceOfN(rapid.Float64Range(-1e6, 1e6), 1, 20).Draw(t, "numbers")
		d := New(100)
		for i, x := range all {
			d.Add(x)
			if i%7 == 3 {
				d.Quantile(0.5) // changes nothing
			}
		}
		slices.Sort(all)
		for i, x := range all {
			// Ranks are converted to a fraction and back, which rounds.
			place := float64(i) / float64(len(all)) * float64(len(all))
			require.Equal(t, all[int(place)], d.ByRank(int64(i)))
			if i == len(all)-1 {
				place = float64(i)
			}
			require.Equal(t, all[int(place)], d.ByReverseRank(int64(len(all)-1-i)))
			less, equal := 0, 0
			for _, y := range all {
				if y < x {
					less++
				} else if y == x {
					equal++
				}
			}
			require.Equal(t, (float64(less)+float64(equal)/2)/float64(len(all)), d.CDF(x))
		}
		require.True(t, math.IsInf(d.ByRank(int64(len(all))), 1))
		require.True(t, math.IsInf(d.ByReverseRank(int64(len(all))), -1))
	})
}

// TestRandomOperations adds, merges, resets and stores digests, and checks invariants.
func TestRandomOperations(t *testing.T) {
	testseed.Check(t, func(t *rapid.T) {
		rnd := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
		compression := rapid.SampledFrom([]int{1, 2, 10, 100, 400}).Draw(t, "compression")
		extreme := rapid.Bool().Draw(t, "extreme")
		d, n, least, most := New(compression), int64(0), math.Inf(1), math.Inf(-1)
		for range rapid.IntRange(1, 3000).Draw(t, "operations") {
			switch k := rnd.IntN(200); {
			case k == 0:
				d.Reset()
				n, least, most = 0, math.Inf(1), math.Inf(-1)
			case k < 5:
				g, err := DecodeBlob(d.AppendBlob(nil))
				require.NoError(t, err)
				require.Equal(t, d.AppendBlob(nil), g.AppendBlob(nil))
				d = g.Clone()
			case k < 8 && d.HasRoom(d.Weight()):
				g := New(compression)
				g.Merge(d)
				g.Merge(d)
				d, n = g, 2*n
			default:
				x := rnd.NormFloat64()
				if extreme {
					x = (rnd.Float64() - 0.5) * math.MaxFloat64 * 2
				}
				d.Add(x)
				n, least, most = n+1, min(least, x), max(most, x)
			}
		}
		require.Equal(t, n, d.Weight())
		if n == 0 {
			require.True(t, math.IsNaN(d.Quantile(0.5)) && math.IsNaN(d.Min()) && math.IsNaN(d.TrimmedMean(0, 1)))
			require.EqualValues(t, -2, d.Rank(0))
			return
		}
		require.Equal(t, least, d.Min())
		require.Equal(t, most, d.Max())
		last, lastBelow := least, 0.0
		for i := range 101 {
			x := d.Quantile(float64(i) / 100)
			require.True(t, x >= last && x <= most, "quantile %d: %v after %v", i, x, last)
			last = x
			at := least + (most/100-least/100)*float64(i)
			below := d.CDF(min(max(at, least), most))
			require.True(t, below >= lastBelow-1e-9 && below <= 1, "below %v: %v after %v", at, below, lastBelow)
			lastBelow = below
		}
		mean := d.TrimmedMean(0, 1)
		require.True(t, mean >= least && mean <= most || n < 3, "%v", mean)
	})
}

func FuzzStored(f *testing.F) {
	for _, n := range []int{0, 1, 50, 1000} {
		d := New(20)
		for i := range n {
			d.Add(float64(i * i % 101))
		}
		f.Add(d.AppendBlob(nil))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		d, err := DecodeBlob(b)
		if err != nil {
			return
		}
		if d.MemoryUsage() > 1<<20+4*len(b) {
			t.Fatalf("%d bytes make %d", len(b), d.MemoryUsage())
		}
		d.Quantile(0.3)
		d.CDF(1)
		d.TrimmedMean(0.1, 0.9)
		if d.HasRoom(1) {
			d.Add(1)
		}
		if _, err := DecodeBlob(d.AppendBlob(nil)); err != nil {
			t.Fatal(err)
		}
	})
}

func BenchmarkAdd(b *testing.B) {
	d, rnd := New(100), rand.New(rand.NewPCG(1, 2))
	b.ReportAllocs()
	for b.Loop() {
		d.Add(rnd.Float64())
	}
}
