// Package distance computes products and distances of vectors, for vector sets and search indexes. Each function uses
// several sums, so that an addition need not wait for the previous one. Each product of floats is rounded, so that
// results are the same on every machine. Both vectors must have the same length.
package distance

// Dot returns the inner product of two vectors.
func Dot[T float32 | float64](a, b []T) T {
	var s, t, u, v T
	for len(a) >= 8 && len(b) >= 8 {
		x, y := (*[8]T)(a), (*[8]T)(b)
		s += T(x[0] * y[0])
		t += T(x[1] * y[1])
		u += T(x[2] * y[2])
		v += T(x[3] * y[3])
		s += T(x[4] * y[4])
		t += T(x[5] * y[5])
		u += T(x[6] * y[6])
		v += T(x[7] * y[7])
		a, b = a[8:], b[8:]
	}
	b = b[:len(a)]
	for i, x := range a {
		s += T(x * b[i])
	}
	return (s + t) + (u + v)
}

// SquaredL2 returns the square of the Euclidean distance of two vectors.
func SquaredL2[T float32 | float64](a, b []T) T {
	var s, t, u, v T
	for len(a) >= 8 && len(b) >= 8 {
		x, y := (*[8]T)(a), (*[8]T)(b)
		d, e, f, g := x[0]-y[0], x[1]-y[1], x[2]-y[2], x[3]-y[3]
		s += T(d * d)
		t += T(e * e)
		u += T(f * f)
		v += T(g * g)
		d, e, f, g = x[4]-y[4], x[5]-y[5], x[6]-y[6], x[7]-y[7]
		s += T(d * d)
		t += T(e * e)
		u += T(f * f)
		v += T(g * g)
		a, b = a[8:], b[8:]
	}
	b = b[:len(a)]
	for i, x := range a {
		d := x - b[i]
		s += T(d * d)
	}
	return (s + t) + (u + v)
}

// DotInts is Dot for integers. The sum is exact before it is rounded to a float.
func DotInts[T int8 | uint8](a, b []T) float32 {
	var s, t, u, v int
	for len(a) >= 8 && len(b) >= 8 {
		x, y := (*[8]T)(a), (*[8]T)(b)
		s += int(x[0])*int(y[0]) + int(x[4])*int(y[4])
		t += int(x[1])*int(y[1]) + int(x[5])*int(y[5])
		u += int(x[2])*int(y[2]) + int(x[6])*int(y[6])
		v += int(x[3])*int(y[3]) + int(x[7])*int(y[7])
		a, b = a[8:], b[8:]
	}
	b = b[:len(a)]
	for i, x := range a {
		s += int(x) * int(b[i])
	}
	return float32(s + t + u + v)
}

// SquaredL2Ints is SquaredL2 for integers. The sum is exact before it is rounded to a float.
func SquaredL2Ints[T int8 | uint8](a, b []T) float32 {
	var s, t, u, v int
	for len(a) >= 4 && len(b) >= 4 {
		x, y := (*[4]T)(a), (*[4]T)(b)
		d, e, f, g := int(x[0])-int(y[0]), int(x[1])-int(y[1]), int(x[2])-int(y[2]), int(x[3])-int(y[3])
		s += d * d
		t += e * e
		u += f * f
		v += g * g
		a, b = a[4:], b[4:]
	}
	b = b[:len(a)]
	for i, x := range a {
		d := int(x) - int(b[i])
		s += d * d
	}
	return float32(s + t + u + v)
}
