package resp

import (
	"bytes"
	"math"
	"strconv"
	"unsafe"
)

// ParseInt reads a signed 64-bit decimal number as strictly as Redis does: the only sign is a leading '-', and there
// are no leading zeros, spaces or overflows.
func ParseInt(b []byte) (int64, bool) {
	if len(b) == 0 || len(b) > 20 {
		return 0, false
	}
	if len(b) == 1 && b[0] == '0' {
		return 0, true
	}
	neg := b[0] == '-'
	if neg {
		b = b[1:]
	}
	if len(b) == 0 || b[0] < '1' || b[0] > '9' {
		return 0, false
	}
	var v uint64
	for _, c := range b {
		d := c - '0'
		if d > 9 || v > (math.MaxUint64-uint64(d))/10 {
			return 0, false
		}
		v = v*10 + uint64(d)
	}
	if neg {
		if v > 1<<63 {
			return 0, false
		}
		return -int64(v), true
	}
	return int64(v), v <= math.MaxInt64
}

// ParseFloat reads a double the way Redis's commands do: C's strtod over the whole text, with infinities and
// hexadecimal numbers, but without leading spaces and without NaN.
func ParseFloat(b []byte) (float64, bool) {
	if len(b) == 0 || isSpace(b[0]) {
		return 0, false
	}
	for _, c := range b {
		if c == '_' {
			return 0, false
		}
	}
	s := unsafe.String(&b[0], len(b))
	if hexPrefix(b) && !hasExponent(b) {
		// Go requires an exponent in hexadecimal numbers, C does not.
		s += "p0"
	}
	f, err := strconv.ParseFloat(s, 64)
	if err != nil || math.IsNaN(f) || f == 0 && hasNonZeroDigit(b) {
		return 0, false // not a number, or too large or too small for a double
	}
	return f, true
}

// hasNonZeroDigit looks at the mantissa of a number that was parsed as zero.
func hasNonZeroDigit(b []byte) bool {
	hex := hexPrefix(b)
	for _, c := range b {
		if c|0x20 == 'p' || c|0x20 == 'e' && !hex {
			return false
		}
		if c >= '1' && c <= '9' || hex && c|0x20 >= 'a' && c|0x20 <= 'f' {
			return true
		}
	}
	return false
}

func hexPrefix(b []byte) bool {
	if len(b) > 0 && (b[0] == '-' || b[0] == '+') {
		b = b[1:]
	}
	return len(b) > 2 && b[0] == '0' && b[1]|0x20 == 'x'
}

func hasExponent(b []byte) bool {
	for _, c := range b {
		if c|0x20 == 'p' {
			return true
		}
	}
	return false
}

// AppendFloat appends f in the shortest form that reads back as f, laid out as Redis does since 7.2: integers of up to
// 62 bits with all digits, other numbers with a small number of zeros or decimals, or otherwise with an exponent.
func AppendFloat(dst []byte, f float64) []byte {
	switch {
	case math.IsNaN(f):
		return append(dst, "nan"...)
	case math.IsInf(f, 1):
		return append(dst, "inf"...)
	case math.IsInf(f, -1):
		return append(dst, "-inf"...)
	case f == 0 && math.Signbit(f):
		return append(dst, "-0"...)
	case math.Abs(f) <= 1<<62 && f == math.Trunc(f):
		return strconv.AppendInt(dst, int64(f), 10)
	}
	// d.ddde-dd: the digits are between the sign and the exponent.
	var scratch [32]byte
	b := strconv.AppendFloat(scratch[:0], math.Abs(f), 'e', -1, 64)
	e := bytes.IndexByte(b, 'e')
	exponent, _ := strconv.Atoi(string(b[e+1:]))
	digits := max(e-1, 1)
	last := exponent - digits + 1 // the exponent of the last digit
	switch {
	case last >= 0 && exponent < digits+7, last < 0 && (last > -7 || max(exponent, -exponent) < 4):
		return strconv.AppendFloat(dst, f, 'f', -1, 64)
	}
	if f < 0 {
		dst = append(dst, '-')
	}
	dst = append(append(dst, b[:e+1]...), b[e+1]) // with its sign
	return strconv.AppendInt(dst, int64(max(exponent, -exponent)), 10)
}
