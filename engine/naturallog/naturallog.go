// Package naturallog computes logarithms that are the same on all processors, so that servers which repeat each other's
// commands agree. For about 99 of 100 numbers that are not close to 1, the result is correctly rounded.
package naturallog

import (
	"math"
	"math/bits"
)

const (
	// ln2 is the integer part of 2^64 times the logarithm of 2, and ln2Rest 2^64 times the fraction.
	ln2     = 0xb17217f7d1cf79ab
	ln2Rest = 0xc9e3b39803f2f6af
	// sqrtHalf is 2^64 times the square root of 1/2.
	sqrtHalf = 0xb504f333f9de6484
)

// Of returns the natural logarithm of a finite number above 0.
func Of(x float64) float64 {
	fraction, power := math.Frexp(x)
	m := uint64(fraction*(1<<53)) << 11 // 2^64 times the fraction
	// x is n times a power of 2, where n is between the square roots of 1/2 and 2: it is the fraction, or twice the
	// fraction. s is 2^64 times |n-1|/(n+1).
	var s uint64
	below := m >= sqrtHalf // n is below 1
	if below {
		s, _ = bits.Div64(-m>>1, 0, 1<<63+m>>1)
	} else {
		s, _ = bits.Div64(m<<1>>2, 0, 1<<62+m>>1)
		power--
	}
	// The logarithm of n is twice the sum of s^i/i for odd i.
	square, _ := bits.Mul64(s, s)
	sum, term := s, s
	for i := uint64(3); term > 0; i += 2 {
		term, _ = bits.Mul64(term, square)
		sum += term / i
	}
	// hi has the integer part, lo 2^64 times the fraction.
	hi, lo := bits.Mul64(uint64(max(power, -power)), ln2)
	rest, _ := bits.Mul64(uint64(max(power, -power)), ln2Rest)
	lo, carry := bits.Add64(lo, rest, 0)
	hi += carry
	negative := power < 0
	if negative == below || power == 0 {
		negative = below
		lo, carry = bits.Add64(lo, 2*sum, 0)
		hi += carry
	} else {
		lo, carry = bits.Sub64(lo, 2*sum, 0)
		hi -= carry
	}
	// The sum of both is rounded once.
	y := float64(0)
	if zeros := bits.LeadingZeros64(hi); hi > 0 {
		top := hi<<zeros | lo>>(64-zeros)
		if lo<<zeros != 0 {
			top |= 1
		}
		y = math.Ldexp(float64(top), -zeros)
	} else {
		y = math.Ldexp(float64(lo), -64)
	}
	if negative {
		return -y
	}
	return y
}
