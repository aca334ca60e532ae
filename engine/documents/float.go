package documents

import (
	"math"
	"strconv"
)

// FloatType is the type of an array's numbers: the general one, or a smaller one.
type FloatType uint8

// The types. In its array, a number of a smaller type is printed with just enough digits to identify it within the
// type.
const (
	Float64 FloatType = iota
	Float32
	Float16
	BFloat16
)

// Typed returns the number of a type nearest to f; ok is false if f is out of the type's range.
func Typed(f float64, t FloatType) (v Value, ok bool) {
	f = t.rounded(f)
	if math.IsInf(f, 0) {
		return Value{}, false
	}
	v = Double(f)
	switch t {
	case Float32:
		v.p = isFloat32
	case Float16:
		v.p = isFloat16
	case BFloat16:
		v.p = isBFloat16
	}
	return v, true
}

// FloatType returns the type of a Number.
func (v Value) FloatType() FloatType {
	switch v.p {
	case isFloat32:
		return Float32
	case isFloat16:
		return Float16
	case isBFloat16:
		return BFloat16
	}
	return Float64
}

// rounded returns the nearest number of the type, infinite if f is out of range.
func (t FloatType) rounded(f float64) float64 {
	switch t {
	case Float32:
		return float64(float32(f))
	case Float16:
		return roundFloat(f, 11, 15)
	case BFloat16:
		return roundFloat(f, 8, 127)
	}
	return f
}

// roundFloat rounds, half to even, to a type with so many bits of mantissa and the largest exponent maxExponent.
func roundFloat(f float64, bits, maxExponent int) float64 {
	if f == 0 {
		return f
	}
	_, exponent := math.Frexp(f) // |f| < 2^exponent
	last := max(exponent, 2-maxExponent) - bits
	f = math.Ldexp(math.RoundToEven(math.Ldexp(f, -last)), last)
	if math.Abs(f) >= math.Ldexp(1, maxExponent+1) {
		return math.Inf(int(math.Copysign(1, f)))
	}
	return f
}

// halfOf returns the bits of a Float16 number.
func halfOf(f float64) uint16 {
	sign := uint16(math.Float64bits(f) >> 48 & 0x8000)
	f = math.Abs(f)
	if f < 0x1p-14 {
		return sign | uint16(math.Ldexp(f, 24))
	}
	mantissa, exponent := math.Frexp(f)
	return sign | uint16(exponent+14)<<10 | uint16(math.Ldexp(mantissa, 11))&0x3ff
}

// fromHalf returns the number with the given bits of a Float16.
func fromHalf(h uint16) float64 {
	f := math.Ldexp(float64(h&0x3ff), -24)
	if exponent := int(h >> 10 & 0x1f); exponent > 0 {
		f = math.Ldexp(float64(h&0x3ff|0x400), exponent-25)
	}
	if h&0x8000 != 0 {
		f = -f
	}
	return f
}

// maxHalfDigits is how many digits distinguish all numbers of the two-byte types.
const maxHalfDigits = 5

// appendDigits appends a number as d.ddde±dd, with the fewest digits that read back as the same number of its type.
// Integers have all digits.
func appendDigits(dst []byte, f float64, t FloatType) []byte {
	switch t {
	case Float16, BFloat16:
		if f == math.Trunc(f) {
			break
		}
		for digits := range maxHalfDigits {
			b := strconv.AppendFloat(dst, f, 'e', digits, 64)
			if read, err := strconv.ParseFloat(string(b[len(dst):]), 64); err == nil && t.rounded(read) == f {
				return b
			}
		}
	case Float32:
		return strconv.AppendFloat(dst, f, 'e', -1, 32)
	}
	return strconv.AppendFloat(dst, f, 'e', -1, 64)
}
