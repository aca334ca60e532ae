package distance

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/atomredis/atomredis/internal/testing/testseed"
)

// Whole numbers have exact sums in floats, so every length must give exactly the result of a plain loop.
func TestDistancesAreThoseOfAPlainLoop(t *testing.T) {
	r := testseed.Rand(t)
	for n := range 70 {
		a, b := make([]int8, n), make([]int8, n)
		floats, others := make([]float32, n), make([]float32, n)
		doubles, more := make([]float64, n), make([]float64, n)
		dot, squared := 0, 0
		for i := range n {
			x, y := r.IntN(256)-128, r.IntN(256)-128
			a[i], b[i] = int8(x), int8(y)
			floats[i], others[i] = float32(x), float32(y)
			doubles[i], more[i] = float64(x), float64(y)
			dot += x * y
			squared += (x - y) * (x - y)
		}
		require.EqualValues(t, dot, DotInts(a, b), n)
		require.EqualValues(t, dot, Dot(floats, others), n)
		require.EqualValues(t, dot, Dot(doubles, more), n)
		require.EqualValues(t, squared, SquaredL2Ints(a, b), n)
		require.EqualValues(t, squared, SquaredL2(floats, others), n)
		require.EqualValues(t, squared, SquaredL2(doubles, more), n)
	}
}

// Results must not depend on the machine, so both forms have every bit in common.
func TestFloatsInAssemblyAreThoseInGo(t *testing.T) {
	r := testseed.Rand(t)
	for n := range 400 {
		a, b := make([]float32, n+1)[1:], make([]float32, n+3)[3:]
		for i := range a {
			a[i], b[i] = float32(r.NormFloat64()), float32(r.NormFloat64()*100)
		}
		var want, got [4]float32
		dotEights(a, b, &want)
		dotFloats(a, b, &got)
		require.Equal(t, want, got)
		squaredEights(a, b, &want)
		squaredFloats(a, b, &got)
		require.Equal(t, want, got)
	}
}

func BenchmarkSquaredL2(b *testing.B) {
	x, y := make([]float32, 128), make([]float32, 128)
	for i := range x {
		x[i] = float32(i)
	}
	for b.Loop() {
		SquaredL2(x, y)
	}
}
