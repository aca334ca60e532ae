package vectors

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// sources are generators of test vectors.
var sources = map[string]func(rnd *rand.Rand) func(v []float32){
	// uniform prefers no direction: the hard case.
	"uniform": func(rnd *rand.Rand) func(v []float32) {
		return func(v []float32) {
			for i := range v {
				v[i] = rnd.Float32()*2 - 1
			}
		}
	},
	"clusters": func(rnd *rand.Rand) func(v []float32) {
		centres := make([][128]float32, 200)
		for i := range centres {
			for k := range centres[i] {
				centres[i][k] = float32(rnd.NormFloat64())
			}
		}
		return func(v []float32) {
			centre := centres[rnd.IntN(len(centres))][:]
			for i := range v {
				v[i] = centre[i] + float32(rnd.NormFloat64())*0.4
			}
		}
	},
}

// filled returns a set of n vectors of 128 dimensions.
func filled(n int, c Settings, source func(v []float32)) *Set {
	c.Dim = 128
	s := New(c)
	v := make([]float32, c.Dim)
	for i := range n {
		source(v)
		s.Add(fmt.Append(nil, "element:", i), v, nil, DefaultBuildEF)
	}
	return s
}

// TestRecall counts how many of the 10 nearest are found with the default EF.
func TestRecall(t *testing.T) {
	n := 2_000
	switch {
	case full():
		n = 100_000
	case testing.Short():
		n = 500
	}
	for name, source := range sources {
		for _, quant := range []Quantisation{Q8, None} {
			if quant != Q8 && n > 2_000 {
				continue
			}
			t.Run(fmt.Sprint(name, " ", quant), func(t *testing.T) {
				next := source(rand.New(rand.NewPCG(1, 2)))
				s := filled(n, Settings{M: DefaultM, Quant: quant}, next)
				const queries, count = 300, 10
				hits := 0
				for range queries {
					v := make([]float32, s.Dim())
					next(v)
					nearest := map[uint32]bool{}
					for _, f := range s.Similar(QueryVector(v), Search{Count: count, All: true}) {
						nearest[f.ID] = true
					}
					for _, f := range s.Similar(QueryVector(v), Search{Count: count}) {
						if nearest[f.ID] {
							hits++
						}
					}
				}
				recall := float64(hits) / queries / count
				t.Logf("%d vectors, recall %.3f, %d bytes for each", n, recall, s.MemoryUsage()/n)
				require.GreaterOrEqual(t, recall, 0.95)
			})
		}
	}
}

// TestMemory compares the memory of an element with the figures in Redis's guide: the components, and pointers of 8
// bytes for 2.33 times M links.
func TestMemory(t *testing.T) {
	const n = 3000
	for quant, components := range map[Quantisation]int{Q8: 128, None: 512, Bin: 16} {
		s := New(Settings{Dim: 128, M: DefaultM, Quant: quant})
		rnd := rand.New(rand.NewPCG(1, 2))
		next := sources["uniform"](rnd)
		v := make([]float32, 128)
		for i := range n {
			next(v)
			s.Add(fmt.Append(nil, "element:", i), v, nil, 1)
		}
		documented := float64(components) + 2.33*DefaultM*8
		require.Less(t, float64(s.MemoryUsage())/n, 1.1*documented, quant)
	}
}

// BenchmarkSimilar finds 10 of 100,000 vectors of 128 dimensions.
func BenchmarkSimilar(b *testing.B) {
	for _, quant := range []Quantisation{Q8, None, Bin} {
		b.Run(quant.String(), func(b *testing.B) {
			next := sources["clusters"](rand.New(rand.NewPCG(1, 2)))
			s := filled(benchmarked(), Settings{M: DefaultM, Quant: quant}, next)
			v := make([]float32, s.Dim())
			b.ReportAllocs()
			for b.Loop() {
				next(v)
				s.Similar(QueryVector(v), Search{Count: 10})
			}
		})
	}
}

// benchmarked is the number of vectors in the benchmarks: adding as many as the full tests do takes minutes.
func benchmarked() int {
	if full() {
		return 100_000
	}
	return 10_000
}

func BenchmarkAdd(b *testing.B) {
	next := sources["clusters"](rand.New(rand.NewPCG(1, 2)))
	s := filled(10_000, Settings{M: DefaultM}, next)
	v := make([]float32, s.Dim())
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		next(v)
		s.Add(fmt.Append(nil, "more:", i), v, nil, DefaultBuildEF)
	}
}

func BenchmarkRemove(b *testing.B) {
	next := sources["clusters"](rand.New(rand.NewPCG(1, 2)))
	s := filled(10_000, Settings{M: DefaultM}, next)
	v := make([]float32, s.Dim())
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		b.StopTimer()
		next(v)
		s.Add(fmt.Append(nil, "more:", i), v, nil, 20)
		b.StartTimer()
		s.Remove(uint32(i*7919) % uint32(s.Len()))
	}
}

func BenchmarkProducts(b *testing.B) {
	s := filled(2, Settings{M: DefaultM}, sources["uniform"](rand.New(rand.NewPCG(1, 2))))
	var q query
	q.of(s, 0)
	for b.Loop() {
		q.rough8(s.words.At(1))
	}
}
