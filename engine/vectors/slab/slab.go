// Package slab has arrays of records of the same width. Except for the first few records, they grow without moving
// existing ones.
//
// One goroutine may append to a slab, and change records that nobody else reads, while others read. Readers must learn
// a record's number by an atomic operation. Pop needs exclusive use of the slab.
package slab

import (
	"math/bits"
	"sync/atomic"
)

// Slab is an array of records. Create one with New.
type Slab[T any] struct {
	chunks atomic.Pointer[[][]T]
	n      atomic.Uint32 // records
	width  int           // elements in a record
	shift  uint          // a chunk has 1<<shift records
	room   int           // elements in all chunks
}

// chunkElements is about the number of elements of a chunk, and maxShift limits its records.
const (
	chunkElements = 1 << 17
	maxShift      = 10
)

// New returns a slab of records with width elements.
func New[T any](width int) *Slab[T] {
	s := &Slab[T]{width: width, shift: uint(min(maxShift, bits.Len(uint(max(chunkElements/width, 1)))-1))}
	s.chunks.Store(new([][]T))
	return s
}

// Len returns the number of records.
func (s *Slab[T]) Len() int { return int(s.n.Load()) }

// Width returns the number of elements of a record.
func (s *Slab[T]) Width() int { return s.width }

// Room returns the number of elements that the slab has memory for.
func (s *Slab[T]) Room() int { return s.room }

// At returns record i, which the caller may change.
func (s *Slab[T]) At(i uint32) []T {
	chunk := (*s.chunks.Load())[i>>(s.shift&31)]
	from := int(i&(1<<(s.shift&31)-1)) * s.width
	return chunk[from : from+s.width : from+s.width]
}

// View returns the present records.
func (s *Slab[T]) View() View[T] { return View[T]{*s.chunks.Load(), s.width, s.shift} }

// View has the records of a slab, valid until one is appended or removed. It is faster than the slab for many reads.
type View[T any] struct {
	chunks [][]T
	width  int
	shift  uint
}

// At returns record i.
func (v *View[T]) At(i uint32) []T {
	chunk := v.chunks[i>>(v.shift&31)]
	from := int(i&(1<<(v.shift&31)-1)) * v.width
	return chunk[from : from+v.width : from+v.width]
}

// Push appends a zero record.
func (s *Slab[T]) Push() []T {
	n := s.n.Load()
	r := s.Next()
	s.n.Store(n + 1)
	return r
}

// Next returns the zero record that Push would append, so that it can be filled before readers see it by Len.
func (s *Slab[T]) Next() []T {
	n := s.Len()
	chunks := *s.chunks.Load()
	chunk := n >> s.shift
	if at := n & (1<<s.shift - 1); chunk == len(chunks) || at*s.width == len(chunks[chunk]) {
		most := 1 << s.shift
		grown := append(make([][]T, 0, len(chunks)+1), chunks...)
		if chunk == 0 { // the first chunk doubles until it is full
			first := make([]T, min(most, max(2*at, 1))*s.width)
			if len(chunks) == 0 {
				grown = append(grown, nil)
			}
			copy(first, grown[0])
			grown[0] = first
			s.room = len(first)
		} else {
			grown = append(grown, make([]T, most*s.width))
			s.room += most * s.width
		}
		s.chunks.Store(&grown)
	}
	r := s.At(uint32(n))
	clear(r)
	return r
}

// Pop removes the last record. A chunk is freed when the previous one is not full either.
func (s *Slab[T]) Pop() {
	n := s.Len() - 1
	s.n.Store(uint32(n))
	clear(s.At(uint32(n)))
	chunks := *s.chunks.Load()
	if last := len(chunks) - 1; last > 0 && n+1<<s.shift>>1 <= last<<s.shift {
		s.room -= len(chunks[last])
		chunks = chunks[:last:last]
		s.chunks.Store(&chunks)
	}
}

// Clone returns a copy.
func (s *Slab[T]) Clone() *Slab[T] {
	c := &Slab[T]{width: s.width, shift: s.shift, room: s.room}
	c.n.Store(s.n.Load())
	var chunks [][]T
	for _, chunk := range *s.chunks.Load() {
		chunks = append(chunks, append([]T(nil), chunk...))
	}
	c.chunks.Store(&chunks)
	return c
}
