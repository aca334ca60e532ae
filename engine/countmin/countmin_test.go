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

// TestEstimatesAreAsExactAsDocumented counts a million items, few of them often.
func TestEstimatesAreAsExactAsDocumented(t *testing.T) {
	const n, overestimation, probability = 1_000_000, 0.0005, 0.01
	width, depth := SizeFor(overestimation, probability)
	require.EqualValues(t, 4000, width)
	require.EqualValues(t, 7, depth)
	s := New(width, depth)
	rnd := rand.New(rand.NewPCG(1, 2))
	zipf := rand.NewZipf(rnd, 1.1, 10, 200_000)
	counts := map[int]uint64{}
	for range n {
		i := int(zipf.Uint64())
		counts[i]++
		s.Add(item(i), 1)
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

func TestCountersStop(t *testing.T) {
	s := New(100, 3)
	require.EqualValues(t, uint64(MaxCount-5), s.Add([]byte("a"), MaxCount-5))
	require.EqualValues(t, uint64(MaxCount), s.Add([]byte("a"), 100))
	require.EqualValues(t, uint64(MaxCount), s.Add([]byte("b"), math.MaxUint64))
	require.EqualValues(t, uint64(MaxCount), s.Count([]byte("a")))
	require.EqualValues(t, int64(math.MaxInt64), s.Total())
	require.ErrorIs(t, s.SetSum([]Weighted{{s, 2}}), ErrOverflow)
	require.ErrorIs(t, s.SetSum([]Weighted{{New(99, 3), 1}}), ErrSize)
	require.ErrorIs(t, s.SetSum([]Weighted{{s, math.MinInt64}}), ErrOverflow)
	require.EqualValues(t, uint64(MaxCount), s.Count([]byte("a")))
}

func TestHostileSizes(t *testing.T) {
	for _, c := range [][2]uint64{{0, 1}, {1, 0}, {math.MaxUint64, 2}, {1 << 32, 1 << 32}, {1 << 40, 1}, {1, 1 << 20}, {1 << 63, 1}} {
		_, ok := Bytes(c[0], c[1])
		require.False(t, ok, "%v", c)
		require.Nil(t, New(c[0], c[1]))
	}
	width, depth := SizeFor(1e-300, 1e-300)
	require.Nil(t, New(width, depth))
	s := New(1<<31, 7)
	require.Less(t, s.MemoryUsage(), 1<<20)
	require.EqualValues(t, 3, s.Add([]byte("a"), 3))
	require.EqualValues(t, 3, s.Count([]byte("a")))
}

// TestAgainstPlainCounters compares a sketch with counters in an array.
func TestAgainstPlainCounters(t *testing.T) {
	testseed.Check(t, func(t *rapid.T) {
		width, depth := uint64(rapid.SampledFrom([]int{1, 7, 1500}).Draw(t, "width")), uint64(rapid.IntRange(1, 6).Draw(t, "depth"))
		rnd := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
		sketches := [3]*Sketch{New(width, depth), New(width, depth), New(width, depth)}
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
				n := rnd.Int64N(100)
				s.Add(item(i), uint64(n))
				model[which][i] += n
			}
		}
		for which, s := range sketches {
			total := int64(0)
			for i, n := range model[which] {
				total += n
				if int64(s.Count(item(i))) < min(n, MaxCount) {
					t.Fatalf("%d: %d instead of %d", i, s.Count(item(i)), n)
				}
			}
			require.EqualValues(t, total, s.Total())
			if width == 1 { // all share the counters
				require.EqualValues(t, min(total, MaxCount), s.Count(item(0)))
			}
		}
	})
}

func FuzzStored(f *testing.F) {
	for _, width := range []uint64{1, 20, 2000} {
		s := New(width, 3)
		for i := range 100 {
			s.Add(item(i), uint64(i))
		}
		f.Add(s.AppendBlob(nil))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		s, err := DecodeBlob(b)
		if err != nil {
			return
		}
		if s.MemoryUsage() > 1<<22+4*len(b) {
			t.Fatalf("%d bytes make %d", len(b), s.MemoryUsage())
		}
		s.Add([]byte("a"), 1)
		if _, err := DecodeBlob(s.AppendBlob(nil)); err != nil {
			t.Fatal(err)
		}
	})
}

func BenchmarkAdd(b *testing.B) {
	s := New(2000, 7)
	var key [16]byte
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		binary.LittleEndian.PutUint64(key[:], uint64(i)%1_000_000)
		s.Add(key[:], 1)
	}
}
