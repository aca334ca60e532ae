// Package distance computes products and distances of vectors, for vector sets and search indexes. Each function uses
// several sums, so that an addition need not wait for the previous one. Each product of floats is rounded, and the sums
// are added in a fixed order, so that results are the same on every machine. Both vectors must have the same length.
package distance

import "unsafe"

// Dot returns the inner product of two vectors.
func Dot[T float32 | float64](a, b []T) T {
	b = b[:len(a)]
	whole := len(a) &^ 7
	var s [4]T
	if unsafe.Sizeof(s[0]) == 4 {
		dotFloats(floats(a), floats(b), (*[4]float32)(unsafe.Pointer(&s)))
	} else {
		dotEights(a, b, &s)
	}
	for i, x := range a[whole:] {
		s[0] += T(x * b[whole+i])
	}
	return (s[0] + s[1]) + (s[2] + s[3])
}

// SquaredL2 returns the square of the Euclidean distance of two vectors.
func SquaredL2[T float32 | float64](a, b []T) T {
	b = b[:len(a)]
	whole := len(a) &^ 7
	var s [4]T
	if unsafe.Sizeof(s[0]) == 4 {
		squaredFloats(floats(a), floats(b), (*[4]float32)(unsafe.Pointer(&s)))
	} else {
		squaredEights(a, b, &s)
	}
	for i, x := range a[whole:] {
		d := x - b[whole+i]
		s[0] += T(d * d)
	}
	return (s[0] + s[1]) + (s[2] + s[3])
}

// floats returns a vector of float32 as one.
func floats[T float32 | float64](v []T) []float32 {
	return unsafe.Slice((*float32)(unsafe.Pointer(unsafe.SliceData(v))), len(v))
}

// dotEights adds the products of all whole eights of elements into eight sums, one for each place, and then the second
// four to the first.
func dotEights[T float32 | float64](a, b []T, sums *[4]T) {
	var s, t, u, v, w, x, y, z T
	for len(a) >= 8 && len(b) >= 8 {
		p, q := (*[8]T)(a), (*[8]T)(b)
		s += T(p[0] * q[0])
		t += T(p[1] * q[1])
		u += T(p[2] * q[2])
		v += T(p[3] * q[3])
		w += T(p[4] * q[4])
		x += T(p[5] * q[5])
		y += T(p[6] * q[6])
		z += T(p[7] * q[7])
		a, b = a[8:], b[8:]
	}
	*sums = [4]T{s + w, t + x, u + y, v + z}
}

// squaredEights is dotEights for squares of differences.
func squaredEights[T float32 | float64](a, b []T, sums *[4]T) {
	var s, t, u, v, w, x, y, z T
	for len(a) >= 8 && len(b) >= 8 {
		p, q := (*[8]T)(a), (*[8]T)(b)
		d := p[0] - q[0]
		s += T(d * d)
		d = p[1] - q[1]
		t += T(d * d)
		d = p[2] - q[2]
		u += T(d * d)
		d = p[3] - q[3]
		v += T(d * d)
		d = p[4] - q[4]
		w += T(d * d)
		d = p[5] - q[5]
		x += T(d * d)
		d = p[6] - q[6]
		y += T(d * d)
		d = p[7] - q[7]
		z += T(d * d)
		a, b = a[8:], b[8:]
	}
	*sums = [4]T{s + w, t + x, u + y, v + z}
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
