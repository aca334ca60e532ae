package vectors

// The kernels below have several sums at once, so that an addition need not wait for the one before. Each product is
// rounded, so that results are the same on every machine.

// ip returns 1 less the product of two vectors of the same length.
func ip[T float32 | float64](a, b []T) float64 {
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
	return float64(1 - ((s + t) + (u + v)))
}

// l2 returns the square of the distance of two vectors of the same length.
func l2[T float32 | float64](a, b []T) float64 {
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
	return float64((s + t) + (u + v))
}

// dotInts returns the product of two vectors of integers of the same length.
func dotInts[T int8 | uint8](a, b []T) float32 {
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

// l2Ints is l2 for integers.
func l2Ints[T int8 | uint8](a, b []T) float64 {
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
	return float64(float32(s + t + u + v))
}
