package aggregate

import (
	"math"
	"math/bits"
)

// registers is a HyperLogLog of 8 bits with hashes of 32: the estimate is off by 6.5 percent or so. It has the
// format of the reference, but other hashes, because the upper bits of the reference's hashes hardly differ for
// numbers.
type registers [1 << 8]byte

// sketchHeader is the beginning of a sketch's string form: no flags, 8 bits.
const sketchHeader = "\x00\x00\x00\x00\x08"

// add adds a hash. The upper bits choose the register, which keeps the largest number of zeros at the lower end.
func (h *registers) add(hash uint32) {
	const most = 32 - 8
	rank := byte(min(bits.TrailingZeros32(hash), most) + 1)
	i := hash >> most
	h[i] = max(h[i], rank)
}

// union adds the registers of another sketch. It ignores impossible values.
func (h *registers) union(o []byte) {
	for i, rank := range o {
		if rank <= 32-8+1 {
			h[i] = max(h[i], rank)
		}
	}
}

// count returns the estimate.
func (h *registers) count() int {
	const m = float64(len(h))
	sum, empty := 0.0, 0
	for _, rank := range h {
		sum += 1 / float64(uint32(1)<<rank)
		if rank == 0 {
			empty++
		}
	}
	estimate := 0.7213 / (1 + 1.079/m) * m * m / sum
	switch {
	case estimate <= 2.5*m && empty > 0:
		estimate = m * math.Log(m/float64(empty))
	case estimate > float64(1<<32)/30:
		estimate = -float64(1<<32) * math.Log(1-estimate/(1<<32))
	}
	return int(estimate)
}

// hash32 is a hash of 64 bits folded to 32.
func hash32(h uint64) uint32 { return uint32(h) ^ uint32(h>>32) }
