package vectors

import "math/bits"

// slab is an array of records of the same width that grows without moving what it has, but for the first few records.
type slab[T any] struct {
	chunks [][]T
	width  int  // elements in a record
	shift  uint // a chunk has 1<<shift records
	n      int  // records
	room   int  // elements in all chunks
}

// chunkElements is about how many elements a chunk has, and maxShift limits its records.
const (
	chunkElements = 1 << 17
	maxShift      = 10
)

func newSlab[T any](width int) slab[T] {
	return slab[T]{width: width, shift: uint(min(maxShift, bits.Len(uint(max(chunkElements/width, 1)))-1))}
}

// at returns record i, which the caller may change.
func (s *slab[T]) at(i uint32) []T {
	chunk := s.chunks[i>>s.shift]
	from := int(i&(1<<s.shift-1)) * s.width
	return chunk[from : from+s.width : from+s.width]
}

// push appends a record of zeros.
func (s *slab[T]) push() []T {
	chunk := s.n >> s.shift
	if at := s.n & (1<<s.shift - 1); chunk == len(s.chunks) || at*s.width == len(s.chunks[chunk]) {
		most := 1 << s.shift
		switch {
		case chunk > 0:
			s.chunks = append(s.chunks, make([]T, most*s.width))
			s.room += most * s.width
		default: // the first chunk doubles until it is whole
			var old []T
			if len(s.chunks) == 0 {
				s.chunks = append(s.chunks, nil)
			} else {
				old = s.chunks[0]
			}
			grown := make([]T, min(most, max(2*at, 1))*s.width)
			copy(grown, old)
			s.chunks[0] = grown
			s.room = len(grown)
		}
	}
	s.n++
	r := s.at(uint32(s.n - 1))
	clear(r)
	return r
}

// pop removes the last record. A chunk goes when the one before it is not full either.
func (s *slab[T]) pop() {
	s.n--
	clear(s.at(uint32(s.n)))
	if last := len(s.chunks) - 1; last > 0 && s.n+1<<s.shift>>1 <= last<<s.shift {
		s.room -= len(s.chunks[last])
		s.chunks[last] = nil
		s.chunks = s.chunks[:last]
	}
}

// clone returns a copy.
func (s *slab[T]) clone() slab[T] {
	c := *s
	c.chunks = make([][]T, len(s.chunks))
	for i, chunk := range s.chunks {
		c.chunks[i] = append([]T(nil), chunk...)
	}
	c.room = 0
	for _, chunk := range c.chunks {
		c.room += len(chunk)
	}
	return c
}
