package deadlines

import (
	"encoding/binary"
	"iter"
	"math"

	"github.com/atomredis/atomredis/engine/listpack"
)

// Small has the deadlines of a small collection: each of its elements takes Stride elements of List, first its name and
// last its deadline.
type Small struct {
	List   *listpack.Listpack
	Stride int
}

// deadline returns the deadline of the element at p, and the position after the element, or -1.
func (s Small) deadline(p listpack.Pos) (at int64, next listpack.Pos) {
	for range s.Stride - 1 {
		p = s.List.Next(p)
	}
	return Decode(s.List.At(p)), s.List.Next(p)
}

// All iterates over the elements that expire, with their deadlines. The collection must not change meanwhile.
func (s Small) All() iter.Seq2[[]byte, int64] {
	return func(yield func(name []byte, at int64) bool) {
		for p := s.List.First(); p != -1; {
			at, next := s.deadline(p)
			if at != 0 && !yield(s.List.At(p), at) {
				return
			}
			p = next
		}
	}
}

// Next returns the earliest deadline, 0 if no element expires.
func (s Small) Next() (earliest int64) {
	for _, at := range s.All() {
		if earliest == 0 || at < earliest {
			earliest = at
		}
	}
	return earliest
}

// AllBy reports whether every element has a deadline of now or earlier.
func (s Small) AllBy(now int64) bool {
	for p := s.List.First(); p != -1; {
		at, next := s.deadline(p)
		if at == 0 || at > now {
			return false
		}
		p = next
	}
	return true
}

// Expire removes up to max elements whose deadline is now or earlier, and returns how many. It first calls fn with each
// name, which fn must not keep.
func (s Small) Expire(now int64, max int, fn func(name []byte)) (n int) {
	for p := s.List.First(); p != -1 && n < max; {
		at, next := s.deadline(p)
		if at == 0 || at > now {
			p = next
			continue
		}
		fn(s.List.At(p))
		s.List.Delete(p, s.Stride)
		n++
		if int(p) == len(s.List.Bytes()) {
			break
		}
	}
	return n
}

// Append appends a deadline in the form of a small collection: big-endian, without leading zeros; nothing for 0.
func Append(dst []byte, at int64) []byte {
	var b [8]byte
	binary.BigEndian.PutUint64(b[:], uint64(at))
	i := 0
	for i < len(b) && b[i] == 0 {
		i++
	}
	return append(dst, b[i:]...)
}

// Decode reads the output of Append.
func Decode(b []byte) (at int64) {
	for _, c := range b {
		at = at<<8 | int64(c)
	}
	return at
}

// AppendStored appends a deadline in the form of a small collection that is stored: an unsigned varint.
func AppendStored(dst []byte, at int64) []byte { return binary.AppendUvarint(dst, uint64(at)) }

// CutStored removes the output of AppendStored from the front of b.
func CutStored(b []byte) (at int64, rest []byte, err error) {
	n, w := binary.Uvarint(b)
	if w <= 0 || n > math.MaxInt64 {
		return 0, nil, ErrDamaged
	}
	return int64(n), b[w:], nil
}
