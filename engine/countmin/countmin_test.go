package countmin

import (
	"encoding/binary"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/atomredis/atomredis/internal/testing/testseed"
)

func item(i int) []byte { return binary.AppendUvarint([]byte("item:"), uint64(i)) }

// TestEstimatesAreAsExactAsDocumented counts a million items, a few of them often.
func TestEstimatesAreAsExactAsDocumented(t *testing.T) {
	const n, overestimation, probability = 1_000_000, 0.0005, 0.01
	width, depth := SizeFor(overestimation, probability)
	require.EqualValues(t, 4000, width)
	require.EqualValues(t, 7, depth)
	s := New(width, depth, 4)
	rnd := rand.New(rand.NewPCG(1, 2))
	zipf := rand.NewZipf(rnd, 1.1, 10, 200_000)
	counts := map[int]uint64{}
	for range n {
		i := int(zipf.Uint64())
		counts[i]++
		_, err := s.Add(item(i), 1)
		require.NoError(t, err)
	}
	require.EqualValues(t, n, s.Total())
	require.LessOrEqual(t, s.MemoryUsage(), 11*4*4000*7/10)
	high := 0
	for i, count := range counts {
		estimate := s.Count(item(i))
		if estimate < count {
			t.Fatalf("%d: %d instead of %d", i, estimate, count)
		}
		if float64(estimate-count) > overestimation*n {
			high++
		}
	}
	t.Logf("%d of %d are too high by more than %g", high, len(counts), overestimation*n)
	require.LessOrEqual(t, float64(high), probability*float64(len(counts)))
}

func TestCountsThatDoNotFitChangeNothing(t *testing.T) {
	for cell, most := range map[uint64]int64{1: math.MaxUint8, 2: math.MaxUint16, 4: math.MaxUint32, 8: math.MaxInt64} {
		s := New(100, 3, cell)
		add := func(item string, n int64, estimate uint64, want error) {
			got, err := s.Add([]byte(item), n)
			require.Equal(t, want, err, "%d bytes: %d", cell, n)
			require.Equal(t, estimate, got, "%d bytes: %d", cell, n)
		}
		add("a", most-5, uint64(most-5), nil)
		add("a", 6, 0, ErrOverflow)
		add("a", math.MaxInt64, 0, ErrOverflow)
		add("a", 5, uint64(most), nil)
		require.EqualValues(t, most, s.Total())
		require.Equal(t, ErrOverflow, s.SetSum([]Weighted{{s, 2}}))
		require.Equal(t, ErrOverflow, s.SetSum([]Weighted{{s, math.MinInt64}}))
		require.Equal(t, ErrSize, s.SetSum([]Weighted{{New(99, 3, cell), 1}}))
		require.Equal(t, ErrCells, s.SetSum([]Weighted{{New(100, 3, map[uint64]uint64{1: 2, 2: 4, 4: 8, 8: 1}[cell]), 1}}))
		add("a", 0, uint64(most), nil)
		add("a", math.MinInt64, 0, ErrUnderflow)
		add("b", -1, 0, ErrUnderflow)
		add("a", -most, 0, nil)
		add("a", -1, 0, ErrUnderflow)
		require.Zero(t, s.Total())
	}
	s := New(1, 1, 4)
	_, err := s.Add([]byte("a"), math.MaxUint32)
	require.NoError(t, err)
	require.NoError(t, s.SetSum([]Weighted{{s, 1}}))
	// The sum of all is limited too.
	s = New(1000, 1, 8)
	_, err = s.Add(item(1), math.MaxInt64-1)
	require.NoError(t, err)
	_, err = s.Add(item(2), 2)
	require.Equal(t, ErrOverflow, err)
}

func TestHostileSizes(t *testing.T) {
	for _, c := range [][2]uint64{{0, 1}, {1, 0}, {math.MaxUint64, 2}, {1 << 32, 1 << 32}, {1 << 40, 1}, {1, 1 << 20}, {1 << 63, 1}} {
		_, ok := Bytes(c[0], c[1], 4)
		require.False(t, ok, "%v", c)
		require.Nil(t, New(c[0], c[1], 4))
	}
	for _, cell := range []uint64{0, 3, 5, 9, 16, math.MaxUint64} {
		require.Nil(t, New(10, 10, cell))
	}
	width, depth := SizeFor(1e-300, 1e-300)
	require.Nil(t, New(width, depth, 4))
	s := New(1<<31, 7, 4)
	require.Less(t, s.MemoryUsage(), 1<<20)
	_, err := s.Add([]byte("a"), 3)
	require.NoError(t, err)
	require.EqualValues(t, 3, s.Count([]byte("a")))
}

// TestAgainstPlainCounters compares a sketch with counters in an array.
func TestAgainstPlainCounters(t *testing.T) {
	testseed.Check(t, func(t *rapid.T) {
		width, depth := uint64(rapid.SampledFrom([]int{1, 7, 1500}).Draw(t, "width")), uint64(rapid.IntRange(1, 6).Draw(t, "depth"))
		rnd := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
		cell := rapid.SampledFrom([]uint64{2, 4, 8}).Draw(t, "cell")
		sketches := [3]*Sketch{New(width, depth, cell), New(width, depth, cell), New(width, depth, cell)}
		var model [3]map[int]int64
		for i := range model {
			model[i] = map[int]int64{}
		}
		for range 1000 {
			which, i := rnd.IntN(3), rnd.IntN(100)
			s := sketches[which]
			switch rnd.IntN(20) {
			case 0:
				of := []Weighted{{sketches[0], rnd.Int64N(3)}, {sketches[1], rnd.Int64N(3)}}
				if s.SetSum(of) == nil {
					sum := map[int]int64{}
					for i := range 100 {
						sum[i] = model[0][i]*of[0].Weight + model[1][i]*of[1].Weight
					}
					model[which] = sum
				}
			case 1:
				blob, err := DecodeBlob(s.AppendBlob(nil))
				require.NoError(t, err)
				require.Equal(t, s.AppendBlob(nil), blob.Clone().AppendBlob(nil))
				sketches[which] = blob.Clone()
			default:
				n := rnd.Int64N(100) - 20
				if n < 0 && model[which][i] < -n {
					continue // the counters may allow it although it was not counted
				}
				if _, err := s.Add(item(i), n); err == nil {
					model[which][i] += n
				} else {
					require.Equal(t, ErrOverflow, err)
				}
			}
		}
		for which, s := range sketches {
			total := int64(0)
			for i, n := range model[which] {
				total += n
				if int64(s.Count(item(i))) < n {
					t.Fatalf("%d: %d instead of %d", i, s.Count(item(i)), n)
				}
			}
			require.EqualValues(t, total, s.Total())
			if width == 1 { // all items share the counters
				require.EqualValues(t, total, s.Count(item(0)))
			}
		}
	})
}

// TestSketchesOfAnOlderVersion sums sketches of the old layout into sketches of both layouts.
func TestSketchesOfAnOlderVersion(t *testing.T) {
	former, present, sum := newSketch(1500, 2, 4, true), New(1500, 2, 4), New(1500, 2, 4)
	for i := range 100 {
		_, _ = former.Add(item(i), int64(i))
		_, _ = present.Add(item(i), int64(i))
	}
	require.Equal(t, ErrLayout, sum.SetSum([]Weighted{{former, 1}, {present, 1}}))
	for _, from := range []*Sketch{former, present, former} {
		require.NoError(t, sum.SetSum([]Weighted{{from, 2}, {from, 1}}))
		require.Equal(t, from.Former(), sum.Former())
		blob, err := DecodeBlob(sum.AppendBlob(nil))
		require.NoError(t, err)
		require.Equal(t, sum.AppendBlob(nil), blob.AppendBlob(nil))
		for i := range 100 {
			require.Equal(t, 3*from.Count(item(i)), blob.Count(item(i)))
		}
	}
}

func FuzzStored(f *testing.F) {
	for _, width := range []uint64{1, 20, 2000} {
		for _, cell := range []uint64{1, 4, 8} {
			s := New(width, 3, cell)
			for i := range 100 {
				_, _ = s.Add(item(i), int64(i))
			}
			f.Add(s.AppendBlob(nil))
		}
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		s, err := DecodeBlob(b)
		if err != nil {
			return
		}
		if s.MemoryUsage() > 1<<22+4*len(b) {
			t.Fatalf("%d bytes make %d", len(b), s.MemoryUsage())
		}
		_, _ = s.Add([]byte("a"), 1)
		if _, err := DecodeBlob(s.AppendBlob(nil)); err != nil {
			t.Fatal(err)
		}
	})
}

func BenchmarkAdd(b *testing.B) {
	s := New(2000, 7, 4)
	var key [16]byte
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		binary.LittleEndian.PutUint64(key[:], uint64(i)%1_000_000)
		_, _ = s.Add(key[:], 1)
	}
}
