package sets

import (
	"encoding/binary"
	"strconv"

	"github.com/atomredis/atomredis/engine/listpack"
)

// intset is a sorted sequence of different integers, little-endian, all in the width that the largest so far needed.
// Its Count is that width in bytes: 2, 4 or 8, or 0 before the first. The zero value is empty and ready.
type intset listpack.Buffer

func (s *intset) buffer() *listpack.Buffer { return (*listpack.Buffer)(s) }

func (s *intset) width() int { return int(s.Count) }

func (s *intset) len() int {
	if s.Count == 0 {
		return 0
	}
	return len(s.buffer().Bytes()) / s.width()
}

func (s *intset) at(i int) int64 {
	switch b := s.buffer().Bytes()[i*s.width():]; s.Count {
	case 2:
		return int64(int16(binary.LittleEndian.Uint16(b)))
	case 4:
		return int64(int32(binary.LittleEndian.Uint32(b)))
	default:
		return int64(binary.LittleEndian.Uint64(b))
	}
}

func (s *intset) put(i int, v int64) {
	switch b := s.buffer().Bytes()[i*s.width():]; s.Count {
	case 2:
		binary.LittleEndian.PutUint16(b, uint16(v))
	case 4:
		binary.LittleEndian.PutUint32(b, uint32(v))
	default:
		binary.LittleEndian.PutUint64(b, uint64(v))
	}
}

// fits reports whether there is room for one more integer.
func (s *intset) fits(v int64) bool {
	return (s.len()+1)*max(s.width(), widthOf(v)) <= listpack.MaxSize
}

// search returns the index of v, or where it would have to be inserted.
func (s *intset) search(v int64) (i int, found bool) {
	low, high := 0, s.len()
	for low < high {
		mid := int(uint(low+high) / 2)
		switch m := s.at(mid); {
		case m == v:
			return mid, true
		case m < v:
			low = mid + 1
		default:
			high = mid
		}
	}
	return low, false
}

func (s *intset) add(v int64) bool {
	if w := widthOf(v); w > s.width() {
		s.widen(w)
	}
	i, found := s.search(v)
	if found {
		return false
	}
	s.buffer().Splice(i*s.width(), 0, s.width())
	s.put(i, v)
	return true
}

func (s *intset) remove(v int64) bool {
	i, found := s.search(v)
	if found {
		s.removeAt(i)
	}
	return found
}

func (s *intset) removeAt(i int) { s.buffer().Splice(i*s.width(), s.width(), 0) }

// widen stores all members in more bytes.
func (s *intset) widen(width int) {
	wider := intset{Count: uint16(width)}
	wider.buffer().Splice(0, 0, s.len()*width)
	for i := range s.len() {
		wider.put(i, s.at(i))
	}
	s.buffer().Reset()
	*s = wider
}

// longest returns the number of digits of the longest member, which is the smallest or the largest.
func (s *intset) longest() int {
	n := s.len()
	if n == 0 {
		return 0
	}
	var scratch [maxDigits]byte
	return max(len(appendInt(scratch[:0], s.at(0))), len(appendInt(scratch[:0], s.at(n-1))))
}

func widthOf(v int64) int {
	switch {
	case v == int64(int16(v)):
		return 2
	case v == int64(int32(v)):
		return 4
	default:
		return 8
	}
}

// maxDigits is the length of the longest int64 in decimal notation, including its sign.
const maxDigits = 20

// parseInt returns the integer that b spells, if b is exactly its printed form: no spaces, plus sign or leading zeros.
func parseInt(b []byte) (int64, bool) {
	if len(b) == 0 || len(b) > maxDigits {
		return 0, false
	}
	digits := b
	negative := b[0] == '-'
	if negative {
		digits = b[1:]
	}
	if len(digits) == 1 && digits[0] == '0' {
		return 0, !negative
	}
	if len(digits) == 0 || digits[0] == '0' {
		return 0, false
	}
	limit := uint64(1<<63 - 1)
	if negative {
		limit++
	}
	var n uint64
	for _, c := range digits {
		// Multiplying first could overflow.
		if c < '0' || c > '9' || n > limit/10 {
			return 0, false
		}
		n = n*10 + uint64(c-'0')
	}
	if n > limit {
		return 0, false
	}
	if negative {
		return -int64(n), true
	}
	return int64(n), true
}

func appendInt(dst []byte, v int64) []byte { return strconv.AppendInt(dst, v, 10) }
