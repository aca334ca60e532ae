package command

import "math/big"

// The float increments of strings and hashes are computed as Redis computes them on x86: in the 80-bit extended
// format, whose mantissa has 64 bits, and printed with at most 17 decimals. Here such a number is a *big.Float of
// precision 64.

const (
	longDoublePrec     = 64
	longDoubleMaxExp   = 16384 // of the largest number, in big.Float's form with a mantissa below 1
	longDoubleDecimals = 17
	longDoubleMaxText  = 5*1024 - 1 // longer texts are not numbers
)

// longDoubleUnderflow is half of the smallest positive number. Numbers up to it are rounded to 0.
var longDoubleUnderflow = new(big.Float).SetMantExp(big.NewFloat(1), -16446)

// ParseLongDouble reads a number as C's strtold does, over the whole text: decimal or hexadecimal or an infinity,
// without spaces. It refuses NaN, and numbers that the format cannot hold.
func ParseLongDouble(text []byte) (x *big.Float, ok bool) {
	if len(text) > longDoubleMaxText {
		return nil, false
	}
	s := string(text)
	negative := len(s) > 0 && s[0] == '-'
	if negative || len(s) > 0 && s[0] == '+' {
		s = s[1:]
	}
	x = new(big.Float).SetPrec(longDoublePrec)
	if EqualFold([]byte(s), "inf") || EqualFold([]byte(s), "infinity") {
		return x.SetInf(negative), true
	}
	base, zero, ok := checkNumber(s)
	if !ok {
		return nil, false
	}
	if !zero {
		if _, _, err := x.Parse(s, base); err != nil || !fitsLongDouble(x) {
			return nil, false
		}
	}
	if negative {
		x.Neg(x)
	}
	return x, true
}

// checkNumber reports whether s, without a sign, is a number in C's notation, and its base; zero says that its value
// is 0, whatever its exponent.
func checkNumber(s string) (base int, zero, ok bool) {
	base, exponent := 10, byte('e')
	if len(s) > 2 && s[0] == '0' && s[1]|0x20 == 'x' {
		base, exponent, s = 0, 'p', s[2:] // big.Float finds the prefix itself if the base is 0
	}
	zero = true
	i, digits, points := 0, 0, 0
mantissa:
	for ; i < len(s); i++ {
		switch c := s[i]; {
		case c == '.':
			points++
		case c >= '0' && c <= '9', base == 0 && c|0x20 >= 'a' && c|0x20 <= 'f':
			digits++
			zero = zero && c == '0'
		default:
			break mantissa
		}
	}
	if digits == 0 || points > 1 {
		return 0, false, false
	}
	if i == len(s) {
		return base, zero, true
	}
	if s[i]|0x20 != exponent {
		return 0, false, false
	}
	i++
	if i < len(s) && (s[i] == '-' || s[i] == '+') {
		i++
	}
	if i == len(s) {
		return 0, false, false
	}
	for ; i < len(s); i++ {
		if s[i] < '0' || s[i] > '9' {
			return 0, false, false
		}
	}
	return base, zero, true
}

// fitsLongDouble reports whether the format can hold x, which is not negative and was not written as 0.
func fitsLongDouble(x *big.Float) bool {
	return !x.IsInf() && x.MantExp(nil) <= longDoubleMaxExp && x.Cmp(longDoubleUnderflow) > 0
}

// AddLongDouble returns x + y; ok is false if that is not a finite number.
func AddLongDouble(x, y *big.Float) (sum *big.Float, ok bool) {
	if x.IsInf() || y.IsInf() {
		return nil, false
	}
	sum = new(big.Float).SetPrec(longDoublePrec).Add(x, y)
	return sum, !sum.IsInf() && sum.MantExp(nil) <= longDoubleMaxExp
}

// AppendLongDouble appends a finite number in decimal notation, without exponent and without zeros at the end.
func AppendLongDouble(dst []byte, x *big.Float) []byte {
	start := len(dst)
	dst = trimDecimals(x.Append(dst, 'f', longDoubleDecimals))
	if string(dst[start:]) == "-0" {
		dst = append(dst[:start], '0')
	}
	return dst
}

// trimDecimals cuts off the zeros at the end of a number that has decimals.
func trimDecimals(text []byte) []byte {
	for text[len(text)-1] == '0' {
		text = text[:len(text)-1]
	}
	if text[len(text)-1] == '.' {
		text = text[:len(text)-1]
	}
	return text
}
