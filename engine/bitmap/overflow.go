package bitmap

import "math"

// Overflow says how to treat a number that does not fit its field.
type Overflow uint8

// The ways to treat an overflow.
const (
	Wrap     Overflow = iota // keep the lowest bits
	Saturate                 // take the nearest number that fits
	Fail                     // refuse
)

// AddSigned returns value + by as a signed number of size bits, 1 to 64. If that does not fit, overflow decides, and
// fits is false. The conditions are Redis's, including limits that wrap around: a value far outside the range makes
// them visible.
func AddSigned(value, by int64, size int, overflow Overflow) (sum int64, fits bool) {
	top := int64(math.MaxInt64) >> (64 - size)
	bottom := -top - 1
	up, down := top-value, bottom-value
	switch {
	case value > top, size != 64 && by > up, value >= 0 && by > 0 && by > up:
		if overflow == Saturate {
			return top, false
		}
	case value < bottom, size != 64 && by < down, value < 0 && by < 0 && by < down:
		if overflow == Saturate {
			return bottom, false
		}
	default:
		return value + by, true
	}
	unused := 64 - size
	return (value + by) << unused >> unused, false
}

// AddUnsigned is AddSigned for an unsigned number of size bits, 1 to 63.
func AddUnsigned(value uint64, by int64, size int, overflow Overflow) (sum uint64, fits bool) {
	top := uint64(1)<<size - 1
	switch {
	case value > top, by > 0 && by > int64(top-value):
		if overflow == Saturate {
			return top, false
		}
	case by < 0 && by < -int64(value):
		if overflow == Saturate {
			return 0, false
		}
	default:
		return value + uint64(by), true
	}
	return (value + uint64(by)) & top, false
}
