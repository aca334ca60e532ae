package sets

import (
	"encoding/binary"
	"slices"
	"strconv"
)

// intset is a sorted sequence of different integers, all stored in the width that the largest of
// them has needed. The zero value is empty and ready.
type intset struct {
	data  []byte // little-endian
	width int    // bytes per member: 2, 4 or 8; 0 before there is any
}

func (s *intset) len() int {
	if s.width == 0 {
		return 0
	}
	return len(s.data) / s.width
}

func (s *intset) at(i int) int64 {
	switch b := s.data[i*s.width:]; s.width {
	case 2:
		return int64(int16(binary.LittleEndian.Uint16(b)))
	case 4:
		return int64(int32(binary.LittleEndian.Uint32(b)))
	default:
		return int64(binary.LittleEndian.Uint64(b))
	}
}

func (s *intset) put(i int, v int64) {
	switch b := s.data[i*s.width:]; s.width {
	case 2:
		binary.LittleEndian.PutUint16(b, uint16(v))
	case 4:
		binary.LittleEndian.PutUint32(b, uint32(v))
	default:
		binary.LittleEndian.PutUint64(b, uint64(v))
	}
}

// search returns where v is, or where it would have to be inserted.
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
	if w := widthOf(v); w > s.width {
		s.widen(w)
	}
	i, found := s.search(v)
	if found {
		return false
	}
	var room [8]byte
	s.data = slices.Insert(s.data, i*s.width, room[:s.width]...)
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

func (s *intset) removeAt(i int) {
	s.data = slices.Delete(s.data, i*s.width, (i+1)*s.width)
}

// widen stores all members in more bytes.
func (s *intset) widen(width int) {
	old := *s
	*s = intset{data: make([]byte, old.len()*width), width: width}
	for i := range old.len() {
		s.put(i, old.at(i))
	}
}

func (s *intset) clone() intset {
	return intset{data: slices.Clone(s.data), width: s.width}
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

// maxDigits is the length of the longest int64 in decimal notation, its sign included.
const maxDigits = 20

// parseInt returns the integer that b spells, if b is exactly how that integer is printed: no
// spaces, plus sign or leading zeros.
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
