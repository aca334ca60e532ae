// Package hyperloglog estimates the number of different elements added to a set, in a string of limited size. The
// strings are those of Redis, byte for byte.
//
// An element's hash chooses one of 16384 registers and gives it a rank, the number of trailing zeros of the rest plus
// one; the register keeps the highest rank. A string has a header of 16 bytes (the magic, the encoding, three unused
// bytes, the last estimate), followed by the registers in six bits each (dense) or as runs of equal ones (sparse; see
// sparse.go).
//
// PFCOUNT stores its estimate in the header, and journals that as SETRANGE.
package hyperloglog

import (
	"encoding/binary"
	"errors"
	"math/bits"
)

const (
	indexBits = 14
	registers = 1 << indexBits
	rankBits  = 6
	// maxRank is the rank of an element whose hash has only zeros beside the bits that choose the register.
	maxRank = 64 - indexBits + 1

	magic        = "HYLL"
	encodingByte = 4
	estimateAt   = 8 // eight bytes, little-endian; the highest bit marks the estimate as out of date
	headerSize   = 16
	denseSize    = headerSize + registers*rankBits/8

	dense, sparse = 0, 1
)

// ErrCorrupted says that the registers of a string cannot be read.
var ErrCorrupted = errors.New("hyperloglog: the string is corrupted")

// Is reports whether a string has the header of a HyperLogLog, and the right length if it is dense. The other functions
// accept only such strings.
func Is(b []byte) bool {
	return len(b) >= headerSize && string(b[:len(magic)]) == magic && b[encodingByte] <= sparse &&
		(b[encodingByte] == sparse || len(b) == denseSize)
}

// IsDense reports whether the string has the dense encoding.
func IsDense(b []byte) bool { return b[encodingByte] == dense }

// Encoding returns the name of the encoding.
func Encoding(b []byte) string {
	if IsDense(b) {
		return "dense"
	}
	return "sparse"
}

// Append appends an empty HyperLogLog, which is sparse.
func Append(dst []byte) []byte {
	dst = append(dst, magic...)
	dst = append(dst, sparse, 0, 0, 0)
	dst = append(dst, make([]byte, headerSize-estimateAt)...)
	return appendZeros(dst, registers)
}

// Estimate returns the stored estimate; ok is false if it is out of date.
func Estimate(b []byte) (n uint64, ok bool) {
	n = binary.LittleEndian.Uint64(b[estimateAt:])
	return n, n>>63 == 0
}

// SetEstimate stores an estimate.
func SetEstimate(b []byte, n uint64) { binary.LittleEndian.PutUint64(b[estimateAt:], n) }

// EstimateBytes returns the offset and the bytes of the stored estimate.
func EstimateBytes(b []byte) (at int, estimate []byte) { return estimateAt, b[estimateAt:headerSize] }

// Outdate marks the stored estimate as out of date.
func Outdate(b []byte) { b[headerSize-1] |= 1 << 7 }

// locate returns the register of an element, and its rank.
func locate(element []byte) (index int, rank byte) {
	h := hash(element)
	rest := h>>indexBits | 1<<(maxRank-1)
	return int(h & (registers - 1)), byte(bits.TrailingZeros64(rest) + 1)
}

// hash is MurmurHash64A with the seed that Redis uses.
func hash(b []byte) uint64 {
	const m, r, seed = 0xc6a4a7935bd1e995, 47, 0xadc83b19
	h := uint64(len(b))*m ^ seed
	for ; len(b) >= 8; b = b[8:] {
		k := binary.LittleEndian.Uint64(b) * m
		h = (h ^ (k^k>>r)*m) * m
	}
	if len(b) > 0 {
		for i, c := range b {
			h ^= uint64(c) << (8 * i)
		}
		h *= m
	}
	h = (h ^ h>>r) * m
	return h ^ h>>r
}

// register returns register i of dense ones.
func register(dense []byte, i int) byte {
	at, shift := i*rankBits/8, i*rankBits%8
	v := dense[at] >> shift
	if shift > 8-rankBits {
		v |= dense[at+1] << (8 - shift)
	}
	return v & (1<<rankBits - 1)
}

// setRegister sets register i of dense ones.
func setRegister(dense []byte, i int, rank byte) {
	const mask = 1<<rankBits - 1
	at, shift := i*rankBits/8, i*rankBits%8
	dense[at] = dense[at]&^(mask<<shift) | rank<<shift
	if shift > 8-rankBits {
		dense[at+1] = dense[at+1]&^(mask>>(8-shift)) | rank>>(8-shift)
	}
}

// eight returns the first eight dense registers in b, one per byte.
func eight(b []byte) uint64 {
	v := uint64(binary.LittleEndian.Uint32(b)) | uint64(binary.LittleEndian.Uint16(b[4:]))<<32
	// Halves, quarters and eighths of the 48 bits move to the start of their part of the 64 bits.
	v = v&0xffffff | v>>24<<32
	v = v&0x00000fff00000fff | v<<4&0x0fff00000fff0000
	return v&0x003f003f003f003f | v<<2&0x3f003f003f003f00
}

// Editor adds elements to a HyperLogLog.
type Editor struct {
	b []byte
	// maxSparse is the length up to which a string stays sparse.
	maxSparse int
	changed   bool
	// at is where the search for a register in a sparse string starts.
	at cursor
}

// Edit returns an editor that changes b in place; more room is appended or allocated. maxSparse is the length of a
// string up to which it stays sparse.
func Edit(b []byte, maxSparse int) Editor {
	return Editor{b: b, maxSparse: maxSparse, at: startCursor}
}

// Bytes returns the present string.
func (e *Editor) Bytes() []byte { return e.b }

// Changed reports whether a register has changed.
func (e *Editor) Changed() bool { return e.changed }

// Add adds an element.
func (e *Editor) Add(element []byte) error {
	i, rank := locate(element)
	e.at = startCursor
	return e.raise(i, rank)
}

// Raise raises every register to at least its value in r.
func (e *Editor) Raise(r *Registers) error {
	e.at = startCursor
	for i, rank := range r {
		if rank > 0 {
			if err := e.raise(i, rank); err != nil {
				return err
			}
		}
	}
	return nil
}

// raise raises a register to at least rank. Registers must come in ascending order unless the search is restarted.
func (e *Editor) raise(i int, rank byte) error {
	if !IsDense(e.b) {
		return e.raiseSparse(i, rank)
	}
	e.raiseDense(i, rank)
	return nil
}

// raiseDense is raise for a dense string.
func (e *Editor) raiseDense(i int, rank byte) {
	if register(e.b[headerSize:], i) < rank {
		setRegister(e.b[headerSize:], i, rank)
		e.changed = true
	}
}

// Densify converts the string to the dense encoding.
func (e *Editor) Densify() error {
	if IsDense(e.b) {
		return nil
	}
	var all Registers
	if err := all.Merge(e.b); err != nil {
		return err
	}
	b := make([]byte, denseSize)
	copy(b, e.b[:headerSize])
	b[encodingByte] = dense
	for i, rank := range all {
		if rank > 0 {
			setRegister(b[headerSize:], i, rank)
		}
	}
	e.b = b
	return nil
}
