package load

import (
	"math/rand/v2"
)

// Keys chooses among n keys, with a given distribution.
type Keys struct {
	n     int
	drawn []uint32 // for Zipf: numbers drawn beforehand, because drawing one takes longer than sending it
}

// Uniform chooses all keys with the same probability.
func Uniform(n int) Keys { return Keys{n: n} }

// zipfDrawn is the number of numbers that Zipf draws.
const zipfDrawn = 1 << 20

// Zipf chooses the k-th most popular key in proportion to k to the power of -skew, which must be above 1. A key's
// popularity is unrelated to its number.
func Zipf(n int, skew float64) Keys {
	k := Keys{n: n, drawn: make([]uint32, zipfDrawn)}
	r := rand.New(rand.NewPCG(1, 2))
	numbers := r.Perm(n)
	z := rand.NewZipf(r, skew, 1, uint64(n-1))
	for i := range k.drawn {
		k.drawn[i] = uint32(numbers[z.Uint64()])
	}
	return k
}

// Source returns a function that returns the number of the next key, from 0 to n-1. Sources with different seeds
// differ.
func (k Keys) Source(seed int) func() int {
	r := rand.New(rand.NewPCG(3, uint64(seed)))
	if k.drawn == nil {
		return func() int { return r.IntN(k.n) }
	}
	i := r.IntN(len(k.drawn))
	return func() int {
		i = (i + 1) % len(k.drawn)
		return int(k.drawn[i])
	}
}
