package bitmap

import "encoding/binary"

// Op is a way to combine strings bit by bit. X is the first string, Y the others.
type Op uint8

// The operations, named as by BITOP.
const (
	And   Op = iota
	Or       // in any string
	Xor      // in an odd number of strings
	Not      // of a single string
	Diff     // in X and in no Y
	Diff1    // not in X, and in some Y
	AndOr    // in X and in some Y
	One      // in exactly one string
)

// blockSize is how many bytes are combined at a time, so that the result stays in the processor's first-level cache.
const blockSize = 4 << 10

// Combine fills result, which is as long as the longest string, with the combination of the strings. There is at least
// one; shorter ones count as padded with zeros.
func Combine(result []byte, op Op, strings [][]byte) {
	n := len(result)
	var twice [blockSize]byte
	for at := 0; at < n; at += blockSize {
		dst := result[at:min(at+blockSize, n)]
		x, others := block(strings[0], at), strings[1:]
		switch op {
		case Not:
			fill(dst, x)
			invert(dst)
		case And:
			fill(dst, x)
			for _, y := range others {
				and(dst, block(y, at))
			}
		case Or:
			fill(dst, x)
			for _, y := range others {
				or(dst, block(y, at))
			}
		case Xor:
			fill(dst, x)
			for _, y := range others {
				xor(dst, block(y, at))
			}
		case Diff:
			fill(dst, x)
			for _, y := range others {
				andNot(dst, block(y, at))
			}
		case Diff1, AndOr:
			clear(dst)
			for _, y := range others {
				or(dst, block(y, at))
			}
			if op == Diff1 {
				andNot(dst, x)
			} else {
				and(dst, x)
			}
		case One:
			fill(dst, x)
			clear(twice[:len(dst)])
			for _, y := range others {
				orCommon(twice[:len(dst)], dst, block(y, at))
				or(dst, block(y, at))
			}
			andNot(dst, twice[:len(dst)])
		}
	}
}

// block returns the part of a string in the block at an offset.
func block(s []byte, at int) []byte { return s[min(at, len(s)):min(at+blockSize, len(s))] }

// fill copies src to dst and zeroes the rest.
func fill(dst, src []byte) { clear(dst[copy(dst, src):]) }

// unit is how many bytes the loops below process at a time, as four words.
const unit = 32

var word = binary.NativeEndian

// The functions below combine src into dst. src may be shorter and then counts as padded with zeros.

func and(dst, src []byte) {
	clear(dst[len(src):])
	dst = dst[:len(src)]
	for ; len(dst) >= unit && len(src) >= unit; dst, src = dst[unit:], src[unit:] {
		d, s := dst[:unit], src[:unit]
		word.PutUint64(d[0:], word.Uint64(d[0:])&word.Uint64(s[0:]))
		word.PutUint64(d[8:], word.Uint64(d[8:])&word.Uint64(s[8:]))
		word.PutUint64(d[16:], word.Uint64(d[16:])&word.Uint64(s[16:]))
		word.PutUint64(d[24:], word.Uint64(d[24:])&word.Uint64(s[24:]))
	}
	for i := range dst {
		dst[i] &= src[i]
	}
}

func or(dst, src []byte) {
	dst = dst[:len(src)]
	for ; len(dst) >= unit && len(src) >= unit; dst, src = dst[unit:], src[unit:] {
		d, s := dst[:unit], src[:unit]
		word.PutUint64(d[0:], word.Uint64(d[0:])|word.Uint64(s[0:]))
		word.PutUint64(d[8:], word.Uint64(d[8:])|word.Uint64(s[8:]))
		word.PutUint64(d[16:], word.Uint64(d[16:])|word.Uint64(s[16:]))
		word.PutUint64(d[24:], word.Uint64(d[24:])|word.Uint64(s[24:]))
	}
	for i := range dst {
		dst[i] |= src[i]
	}
}

func xor(dst, src []byte) {
	dst = dst[:len(src)]
	for ; len(dst) >= unit && len(src) >= unit; dst, src = dst[unit:], src[unit:] {
		d, s := dst[:unit], src[:unit]
		word.PutUint64(d[0:], word.Uint64(d[0:])^word.Uint64(s[0:]))
		word.PutUint64(d[8:], word.Uint64(d[8:])^word.Uint64(s[8:]))
		word.PutUint64(d[16:], word.Uint64(d[16:])^word.Uint64(s[16:]))
		word.PutUint64(d[24:], word.Uint64(d[24:])^word.Uint64(s[24:]))
	}
	for i := range dst {
		dst[i] ^= src[i]
	}
}

func andNot(dst, src []byte) {
	dst = dst[:len(src)]
	for ; len(dst) >= unit && len(src) >= unit; dst, src = dst[unit:], src[unit:] {
		d, s := dst[:unit], src[:unit]
		word.PutUint64(d[0:], word.Uint64(d[0:])&^word.Uint64(s[0:]))
		word.PutUint64(d[8:], word.Uint64(d[8:])&^word.Uint64(s[8:]))
		word.PutUint64(d[16:], word.Uint64(d[16:])&^word.Uint64(s[16:]))
		word.PutUint64(d[24:], word.Uint64(d[24:])&^word.Uint64(s[24:]))
	}
	for i := range dst {
		dst[i] &^= src[i]
	}
}

// orCommon sets in dst the bits that are in both a and b, which may be shorter.
func orCommon(dst, a, b []byte) {
	dst, a = dst[:len(b)], a[:len(b)]
	for ; len(dst) >= 8; dst, a, b = dst[8:], a[8:], b[8:] {
		word.PutUint64(dst, word.Uint64(dst)|word.Uint64(a)&word.Uint64(b))
	}
	for i := range dst {
		dst[i] |= a[i] & b[i]
	}
}

func invert(dst []byte) {
	for ; len(dst) >= unit; dst = dst[unit:] {
		d := dst[:unit]
		word.PutUint64(d[0:], ^word.Uint64(d[0:]))
		word.PutUint64(d[8:], ^word.Uint64(d[8:]))
		word.PutUint64(d[16:], ^word.Uint64(d[16:]))
		word.PutUint64(d[24:], ^word.Uint64(d[24:]))
	}
	for i := range dst {
		dst[i] = ^dst[i]
	}
}
