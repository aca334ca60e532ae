package naturallog

import (
	"math"
	"math/big"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/atomredis/atomredis/internal/testing/testseed"
)

// exact returns the logarithm in 200 bits.
func exact(x float64) *big.Float {
	number := func(x float64) *big.Float { return new(big.Float).SetPrec(200).SetFloat64(x) }
	// log((1+s)/(1-s)) is twice the sum of s^i/i for odd i.
	series := func(s *big.Float) *big.Float {
		sum, power := number(0), new(big.Float).Copy(s)
		square := number(0).Mul(s, s)
		for i := 1; i < 160; i += 2 {
			sum.Add(sum, number(0).Quo(power, number(float64(i))))
			power.Mul(power, square)
		}
		return sum.Mul(sum, number(2))
	}
	fraction, power := math.Frexp(x)
	n := number(fraction)
	y := series(number(0).Quo(number(0).Sub(n, number(1)), number(0).Add(n, number(1))))
	ln2 := series(number(0).Quo(number(1), number(3)))
	return y.Add(y, ln2.Mul(ln2, number(float64(power))))
}

func TestTheNearestNumberIsReturned(t *testing.T) {
	r := testseed.Rand(t)
	wrong := 0
	const tests = 2000
	for range tests {
		x := math.Exp(r.Float64()*80 - 40)
		if r.IntN(4) == 0 {
			x = float64(2 + r.IntN(1000))
		}
		if x > 0.5 && x < 2 {
			continue
		}
		want, _ := exact(x).Float64()
		if got := Of(x); got != want {
			wrong++
			require.InEpsilon(t, want, got, 3e-16, "%v", x)
		}
	}
	require.Less(t, wrong, tests/50)
}

func TestOfAllSizes(t *testing.T) {
	require.Zero(t, Of(1))
	for _, x := range []float64{math.SmallestNonzeroFloat64, 1e-300, 0.25, 0.5, 0.7, 0.8, 1 - 1e-10, 1 + 1e-10, 1.4, 1.42, 2, 4, 1 << 62,
		math.MaxFloat64} {
		want, _ := exact(x).Float64()
		require.InDelta(t, want, Of(x), 1e-18+3e-16*math.Abs(want), "%v", x)
	}
}
