package geo

import "math"

// This file has sine, cosine and arc sine as accurate as good C libraries: barely more than half a unit in the last
// place off. Those of package math are sometimes off by one unit, which shows in stored distances. Sums and products of
// two doubles are pairs: the rounded result and the rounding error.

type pair struct{ hi, lo float64 }

func twoSum(a, b float64) pair {
	s := a + b
	t := s - a
	return pair{s, (a - (s - t)) + (b - t)}
}

// quickSum is twoSum for |a| >= |b|.
func quickSum(a, b float64) pair {
	s := a + b
	return pair{s, b - (s - a)}
}

func twoProduct(a, b float64) pair {
	p := a * b
	return pair{p, math.FMA(a, b, -p)}
}

func (x pair) times(y pair) pair {
	p := twoProduct(x.hi, y.hi)
	return quickSum(p.hi, p.lo+(x.hi*y.lo+x.lo*y.hi))
}

func (x pair) plus(y pair) pair {
	s := twoSum(x.hi, y.hi)
	return quickSum(s.hi, s.lo+(x.lo+y.lo))
}

// Pi/2 in three parts.
const (
	halfPi1 = 0x1.921fb54442d18p+00
	halfPi2 = 0x1.1a62633145c07p-54
	halfPi3 = -0x1.f1976b7ed8fbcp-110
)

// Coefficients of the sine and cosine series that need more precision than a double: 1/3!, 1/4! and so on.
var (
	inverse3 = reciprocal(6)
	inverse4 = reciprocal(24)
	inverse5 = reciprocal(120)
	inverse6 = reciprocal(720)
	inverse7 = reciprocal(5040)
	inverse8 = reciprocal(40320)
)

func reciprocal(n float64) pair {
	q := 1 / n
	return pair{q, math.FMA(-q, n, 1) / n}
}

// sinSeries returns the sine of a number up to slightly more than pi/4.
func sinSeries(r pair) pair {
	z := r.times(r)
	x := z.hi
	// 1/9! - x/11! + …, then the preceding terms with increasing precision.
	tail := 1.0/362880 - x*(1.0/39916800-x*(1.0/6227020800-x*(1.0/1307674368000-x*(1.0/355687428096000-x*(1.0/121645100408832000)))))
	p := z.times(pair{tail, 0})
	p = z.times(inverse7.plus(pair{-p.hi, -p.lo}))
	p = z.times(inverse5.plus(pair{-p.hi, -p.lo}))
	p = z.times(inverse3.plus(pair{-p.hi, -p.lo}))
	p = r.times(p)
	return r.plus(pair{-p.hi, -p.lo})
}

// cosSeries returns the cosine of a number up to slightly more than pi/4.
func cosSeries(r pair) pair {
	z := r.times(r)
	x := z.hi
	tail := 1.0/3628800 - x*(1.0/479001600-x*(1.0/87178291200-x*(1.0/20922789888000-x*(1.0/6402373705728000-x*(1.0/2432902008176640000)))))
	p := z.times(pair{tail, 0})
	p = z.times(inverse8.plus(pair{-p.hi, -p.lo}))
	p = z.times(inverse6.plus(pair{-p.hi, -p.lo}))
	p = z.times(inverse4.plus(pair{-p.hi, -p.lo}))
	p = z.times(pair{0.5, 0}.plus(pair{-p.hi, -p.lo}))
	return pair{1, 0}.plus(pair{-p.hi, -p.lo})
}

// sinPair returns the sine, or with shift 1 the cosine, of a number between -4 and 4.
func sinPair(x float64, shift int) pair {
	k := math.RoundToEven(x * (2 / math.Pi))
	r := twoSum(x-k*halfPi1, -k*halfPi2) // the difference is exact
	r = quickSum(r.hi, r.lo-k*halfPi3)
	var s pair
	switch q := int(k) + shift; q & 3 {
	case 0:
		s = sinSeries(r)
	case 1:
		s = cosSeries(r)
	case 2:
		s = sinSeries(pair{-r.hi, -r.lo})
	default:
		s = cosSeries(r)
		s = pair{-s.hi, -s.lo}
	}
	return s
}

func sin(x float64) float64 { return sinPair(x, 0).hi }

func cos(x float64) float64 { return sinPair(x, 1).hi }

// asin returns the arc sine of a number from 0 to 1: one step of Newton's method from the approximation of package
// math.
func asin(x float64) float64 {
	y := math.Asin(x)
	s := sinPair(y, 0)
	slope := math.Sqrt((1 - x) * (1 + x))
	if slope == 0 {
		return y
	}
	return y + ((x-s.hi)-s.lo)/slope
}
