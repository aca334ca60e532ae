// Package bitmap has operations on strings seen as sequences of bits. Bit 0 is the highest bit of the first byte, and a
// number of several bits begins with its highest bit.
package bitmap

import (
	"encoding/binary"
	"math/bits"
)

// Get returns the bit at an offset; bits past the end of b are 0.
func Get(b []byte, offset int) int {
	if i := offset >> 3; i < len(b) {
		return int(b[i] >> (7 - offset&7) & 1)
	}
	return 0
}

// Set sets the bit at an offset, which must be within b.
func Set(b []byte, offset, bit int) {
	mask := byte(1) << (7 - offset&7)
	if bit == 0 {
		b[offset>>3] &^= mask
	} else {
		b[offset>>3] |= mask
	}
}

// Count returns how many of the bits from (included) to to (excluded) are 1. They must be within b.
func Count(b []byte, from, to int) int {
	if from >= to {
		return 0
	}
	first, last := from>>3, (to-1)>>3
	n := countBytes(b[first : last+1])
	n -= bits.OnesCount8(b[first] &^ (0xff >> (from & 7)))
	n -= bits.OnesCount8(b[last] & (0x7f >> ((to - 1) & 7)))
	return n
}

func countBytes(b []byte) (n int) {
	for ; len(b) >= 32; b = b[32:] {
		n += bits.OnesCount64(binary.LittleEndian.Uint64(b)) + bits.OnesCount64(binary.LittleEndian.Uint64(b[8:])) +
			bits.OnesCount64(binary.LittleEndian.Uint64(b[16:])) + bits.OnesCount64(binary.LittleEndian.Uint64(b[24:]))
	}
	for ; len(b) >= 8; b = b[8:] {
		n += bits.OnesCount64(binary.LittleEndian.Uint64(b))
	}
	for _, c := range b {
		n += bits.OnesCount8(c)
	}
	return n
}

// Find returns the offset of the first bit with a value among those from (included) to to (excluded), which must be
// within b; -1 if there is none.
func Find(b []byte, bit, from, to int) int {
	if from >= to {
		return -1
	}
	flip := uint64(0) // turns the bits searched for into ones
	if bit == 0 {
		flip = ^uint64(0)
	}
	i, end := from>>3, (to-1)>>3+1
	found := -1
	switch c := (b[i] ^ byte(flip)) & (0xff >> (from & 7)); {
	case c != 0:
		found = i<<3 + bits.LeadingZeros8(c)
	default:
		i++
		for ; i+8 <= end && binary.LittleEndian.Uint64(b[i:]) == flip; i += 8 {
		}
		for ; i < end; i++ {
			if c := b[i] ^ byte(flip); c != 0 {
				found = i<<3 + bits.LeadingZeros8(c)
				break
			}
		}
	}
	if found >= to {
		return -1
	}
	return found
}

// Field returns the number in size bits, 1 to 64, at an offset; bits past the end of b are 0.
func Field(b []byte, offset, size int) uint64 {
	hi, lo := load(b, offset>>3)
	shift := offset & 7
	return (hi<<shift | uint64(lo)>>(8-shift)) >> (64 - size)
}

// SignedField is Field for a number in two's complement.
func SignedField(b []byte, offset, size int) int64 {
	unused := 64 - size
	return int64(Field(b, offset, size)<<unused) >> unused
}

// SetField writes the lowest size bits, 1 to 64, of a number at an offset. They must be within b.
func SetField(b []byte, offset, size int, v uint64) {
	hi, lo := load(b, offset>>3)
	shift, unused := offset&7, 64-size
	mask := ^uint64(0) >> unused << unused
	v <<= unused
	hi = hi&^(mask>>shift) | v>>shift
	lo = lo&^byte(mask<<(8-shift)) | byte(v<<(8-shift))
	var room [9]byte
	binary.BigEndian.PutUint64(room[:], hi)
	room[8] = lo
	copy(b[offset>>3:], room[:])
}

// load returns the nine bytes that begin at index i.
func load(b []byte, i int) (hi uint64, lo byte) {
	if i+9 <= len(b) {
		return binary.BigEndian.Uint64(b[i:]), b[i+8]
	}
	var room [9]byte
	copy(room[:], b[min(i, len(b)):])
	return binary.BigEndian.Uint64(room[:]), room[8]
}
