package vectors

import "math"

// fromHalf returns the value of a float of 16 bits (IEEE 754 binary16).
func fromHalf(h uint16) float32 {
	sign, rest := uint32(h&0x8000)<<16, uint32(h&0x7fff)<<13
	if rest >= 0x7c00<<13 { // infinity or NaN
		return math.Float32frombits(sign | 0x7f800000 | rest)
	}
	return math.Float32frombits(sign | math.Float32bits(math.Float32frombits(rest)*0x1p112))
}

// toHalf returns the nearest 16-bit float, rounding half to even.
func toHalf(f float32) uint16 {
	b := math.Float32bits(f)
	sign, rest := uint16(b>>16&0x8000), b&0x7fffffff
	switch {
	case rest > 0x7f800000:
		return sign | 0x7e00
	case rest >= 0x477ff000: // rounds to 2^16 or more
		return sign | 0x7c00
	case rest < 0x38800000: // below 2^-14: a multiple of 2^-24
		return sign | uint16(math.RoundToEven(float64(math.Float32frombits(rest))*0x1p24))
	}
	rest += 0xfff + rest>>13&1
	return sign | uint16((rest-112<<23)>>13)
}

// widenHalves converts v to dst, which has the same length.
func widenHalves(dst []float32, v []uint16) {
	dst = dst[:len(v)]
	for i, h := range v {
		dst[i] = fromHalf(h)
	}
}

// widenBrains is widenHalves for bfloat16.
func widenBrains(dst []float32, v []uint16) {
	dst = dst[:len(v)]
	for i, h := range v {
		dst[i] = fromBrain(h)
	}
}

// fromBrain returns the value of a bfloat16, the upper half of a 32-bit float.
func fromBrain(h uint16) float32 { return math.Float32frombits(uint32(h) << 16) }

// toBrain returns the nearest bfloat16, rounding half to even.
func toBrain(f float32) uint16 {
	b := math.Float32bits(f)
	if b&0x7fffffff > 0x7f800000 {
		return uint16(b>>16) | 0x40
	}
	return uint16((b + 0x7fff + b>>16&1) >> 16)
}
