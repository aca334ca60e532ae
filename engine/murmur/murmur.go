// Package murmur has MurmurHash 2 with 32 and 64 bits, the hash functions of Redis's sketches.
package murmur

import "encoding/binary"

const (
	mix32   = 0x5bd1e995
	shift32 = 24

	mix64   = 0xc6a4a7935bd1e995
	shift64 = 47
)

// Sum32 returns the hash of b in 32 bits.
func Sum32(b []byte, seed uint32) uint32 {
	sums := [1]uint32{seed}
	sum32(sums[:], b)
	return sums[0]
}

// Sums32 sets each sums[i] to the hash of b whose seed is first+i.
func Sums32(sums []uint32, b []byte, first uint32) {
	for i := range sums {
		sums[i] = first + uint32(i)
	}
	sum32(sums, b)
}

// sum32 replaces the seeds in sums by the hashes of b. The mixing of a word of b is shared by all.
func sum32(sums []uint32, b []byte) {
	for i := range sums {
		sums[i] ^= uint32(len(b))
	}
	for ; len(b) >= 4; b = b[4:] {
		k := binary.LittleEndian.Uint32(b) * mix32
		k = (k ^ k>>shift32) * mix32
		for i, h := range sums {
			sums[i] = h*mix32 ^ k
		}
	}
	if len(b) > 0 {
		k := uint32(rest(b))
		for i, h := range sums {
			sums[i] = (h ^ k) * mix32
		}
	}
	for i, h := range sums {
		h = (h ^ h>>13) * mix32
		sums[i] = h ^ h>>15
	}
}

// rest returns fewer than eight bytes as a little-endian number.
func rest(b []byte) (k uint64) {
	for i, c := range b {
		k |= uint64(c) << (8 * i)
	}
	return k
}

// Sum64 returns the hash of b in 64 bits.
func Sum64(b []byte, seed uint64) uint64 {
	h := seed ^ uint64(len(b))*mix64
	for ; len(b) >= 8; b = b[8:] {
		k := binary.LittleEndian.Uint64(b) * mix64
		h = (h ^ (k^k>>shift64)*mix64) * mix64
	}
	if len(b) > 0 {
		h = (h ^ rest(b)) * mix64
	}
	h = (h ^ h>>shift64) * mix64
	return h ^ h>>shift64
}

// Pair64 returns the 64-bit hash of b, and the hash of b with the first hash as its seed.
func Pair64(b []byte, seed uint64) (first, second uint64) {
	first = Sum64(b, seed)
	return first, Sum64(b, first)
}
