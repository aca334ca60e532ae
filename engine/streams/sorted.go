// A set of values sorted by ID: the blocks of a stream, the pending entries of a group.

package streams

import (
	"slices"
	"unsafe"
)

// sorted holds values in the order of their IDs, which are distinct. The zero value is empty.
//
// The values are in chunks of a few kilobytes instead of a tree, because they are added at the end and mostly removed
// from the start: then chunks are full, and a queue of values neither moves nor allocates anything. A value added or
// removed in the middle moves the nearer part of its chunk.
//
// Places and pointers to values are valid until a value is added or removed.
type sorted[T any, P keyed[T]] struct {
	chunks []chunk[T] // none is empty, but an empty set may keep one
	n      int
}

// keyed is a pointer to a value with an ID.
type keyed[T any] interface {
	*T
	key() ID
}

// chunk has its values in slots[lo:hi]; the other slots are zero.
type chunk[T any] struct {
	first  ID // of slots[lo]
	slots  []T
	lo, hi int32
}

// place is the location of a value.
type place struct{ chunk, slot int }

const (
	// chunkBytes is the size of a chunk's slots, unless it is the only chunk.
	chunkBytes = 8 << 10
	// keptSlots is the number of slots that an emptied set keeps, and below which shrinking is not worthwhile.
	keptSlots = 32
)

// maxSlots is the number of slots of a full chunk.
func (s *sorted[T, P]) maxSlots() int {
	var v T
	return max(4, chunkBytes/int(unsafe.Sizeof(v)))
}

// len returns the number of values.
func (s *sorted[T, P]) len() int { return s.n }

// valid reports whether there is a value at p; past either end there is none.
func (s *sorted[T, P]) valid(p place) bool { return uint(p.chunk) < uint(len(s.chunks)) && s.n > 0 }

// at returns the value at p, which must be valid.
func (s *sorted[T, P]) at(p place) *T { return &s.chunks[p.chunk].slots[p.slot] }

// first returns the place of the first value.
func (s *sorted[T, P]) first() place {
	if s.n == 0 {
		return place{}
	}
	return place{0, int(s.chunks[0].lo)}
}

// last returns the last value, nil if there is none.
func (s *sorted[T, P]) last() *T {
	if s.n == 0 {
		return nil
	}
	c := &s.chunks[len(s.chunks)-1]
	return &c.slots[c.hi-1]
}

// next returns the place after p.
func (s *sorted[T, P]) next(p place) place {
	if p.slot++; p.slot == int(s.chunks[p.chunk].hi) {
		if p.chunk++; p.chunk < len(s.chunks) {
			p.slot = int(s.chunks[p.chunk].lo)
		}
	}
	return p
}

// prev returns the place before p.
func (s *sorted[T, P]) prev(p place) place {
	if p.slot--; p.slot < int(s.chunks[p.chunk].lo) {
		if p.chunk--; p.chunk >= 0 {
			p.slot = int(s.chunks[p.chunk].hi) - 1
		}
	}
	return p
}

// find returns the place where the value with the given ID is or would be; there must be a chunk.
func (s *sorted[T, P]) find(id ID) place {
	lo, hi := 0, len(s.chunks)-1
	if hi > 0 && s.chunks[hi].first.Less(id) { // the most common case
		lo = hi
	}
	for lo < hi { // find the last chunk that does not begin after id, or the first one
		mid := int(uint(lo+hi+1) / 2)
		if id.Less(s.chunks[mid].first) {
			hi = mid - 1
		} else {
			lo = mid
		}
	}
	c := &s.chunks[lo]
	from, to := int(c.lo), int(c.hi)
	if from < to && P(&c.slots[to-1]).key().Less(id) {
		return place{lo, to}
	}
	for from < to {
		mid := int(uint(from+to) / 2)
		if P(&c.slots[mid]).key().Less(id) {
			from = mid + 1
		} else {
			to = mid
		}
	}
	return place{lo, from}
}

// ceil returns the place of the first value whose ID is at least id. It is invalid if there is none.
func (s *sorted[T, P]) ceil(id ID) place {
	if s.n == 0 {
		return place{}
	}
	p := s.find(id)
	if p.slot == int(s.chunks[p.chunk].hi) {
		p.slot--
		return s.next(p)
	}
	return p
}

// floor returns the place of the last value whose ID is at most id. It is invalid if there is none.
func (s *sorted[T, P]) floor(id ID) place {
	if s.n == 0 {
		return place{}
	}
	p := s.find(id)
	if p.slot < int(s.chunks[p.chunk].hi) && P(s.at(p)).key() == id {
		return p
	}
	return s.prev(p)
}

// get returns the value with the given ID, nil if there is none.
func (s *sorted[T, P]) get(id ID) *T {
	if p := s.ceil(id); s.valid(p) {
		if v := s.at(p); P(v).key() == id {
			return v
		}
	}
	return nil
}

// ascend calls fn with the values from start to end until fn returns false. fn must not change the set.
func (s *sorted[T, P]) ascend(start, end ID, fn func(*T) bool) {
	for p := s.ceil(start); s.valid(p); p = s.next(p) {
		if v := s.at(p); end.Less(P(v).key()) || !fn(v) {
			return
		}
	}
}

// add makes room for a value with the given ID, which must be new, and returns the zero value for the caller to set.
func (s *sorted[T, P]) add(id ID) *T {
	if len(s.chunks) == 0 {
		s.chunks = append(s.chunks, chunk[T]{slots: make([]T, 1)})
	}
	p := s.find(id)
	c := &s.chunks[p.chunk]
	if p.slot == int(c.hi) && p.chunk == len(s.chunks)-1 {
		c = s.openEnd(c)
		p = place{len(s.chunks) - 1, int(c.hi)}
		c.hi++
	} else {
		if int(c.hi-c.lo) == s.maxSlots() {
			p = s.split(p)
			c = &s.chunks[p.chunk]
		}
		p.slot = c.open(p.slot, s.maxSlots())
	}
	if p.slot == int(c.lo) {
		c.first = id
	}
	s.n++
	return &c.slots[p.slot]
}

// openEnd ensures a free slot at the end of c, the last chunk, or adds a chunk. It returns the last chunk.
func (s *sorted[T, P]) openEnd(c *chunk[T]) *chunk[T] {
	full := s.maxSlots()
	switch {
	case int(c.hi) < len(c.slots):
	case c.lo > 0 && int(c.lo) >= len(c.slots)/2:
		n := copy(c.slots, c.slots[c.lo:])
		clear(c.slots[n:])
		c.lo, c.hi = 0, int32(n)
	case len(c.slots) < full:
		c.resize(min(2*len(c.slots), full))
	default:
		s.chunks = append(s.chunks, chunk[T]{slots: make([]T, full)})
		c = &s.chunks[len(s.chunks)-1]
	}
	return c
}

// split divides the full chunk of p, and returns the new place of p.
func (s *sorted[T, P]) split(p place) place {
	c := &s.chunks[p.chunk]
	half := int(c.lo+c.hi) / 2
	right := chunk[T]{first: P(&c.slots[half]).key(), slots: make([]T, len(c.slots))}
	right.hi = int32(copy(right.slots, c.slots[half:c.hi]))
	clear(c.slots[half:c.hi])
	c.hi = int32(half)
	s.chunks = slices.Insert(s.chunks, p.chunk+1, right)
	if p.slot > half {
		return place{p.chunk + 1, p.slot - half}
	}
	return p
}

// open opens a free slot before slot i of a chunk with fewer than full values, and returns its index.
func (c *chunk[T]) open(i, full int) int {
	if c.lo == 0 && int(c.hi) == len(c.slots) {
		c.resize(min(2*len(c.slots), full))
	}
	lo, hi := int(c.lo), int(c.hi)
	if lo > 0 && (i-lo < hi-i || hi == len(c.slots)) {
		copy(c.slots[lo-1:], c.slots[lo:i])
		c.lo--
		i--
	} else {
		copy(c.slots[i+1:], c.slots[i:hi])
		c.hi++
	}
	var zero T
	c.slots[i] = zero
	return i
}

// resize gives a chunk n slots, and moves its values to the start.
func (c *chunk[T]) resize(n int) {
	slots := make([]T, n)
	c.lo, c.hi = 0, int32(copy(slots, c.slots[c.lo:c.hi]))
	c.slots = slots
}

// remove removes the value at p.
func (s *sorted[T, P]) remove(p place) {
	var zero T
	c := &s.chunks[p.chunk]
	if lo, hi := int(c.lo), int(c.hi); p.slot-lo < hi-p.slot {
		copy(c.slots[lo+1:], c.slots[lo:p.slot])
		c.slots[lo] = zero
		c.lo++
	} else {
		copy(c.slots[p.slot:], c.slots[p.slot+1:hi])
		c.slots[hi-1] = zero
		c.hi--
	}
	s.n--
	n := int(c.hi - c.lo)
	switch {
	case n > 0:
		if len(c.slots) > keptSlots && n <= len(c.slots)/8 {
			c.resize(2 * n)
		}
		c.first = P(&c.slots[c.lo]).key()
	case s.n == 0 && len(c.slots) <= keptSlots:
		c.lo, c.hi = 0, 0
	case p.chunk == 0:
		s.chunks[0] = chunk[T]{}
		s.chunks = s.chunks[1:]
	default:
		s.chunks = slices.Delete(s.chunks, p.chunk, p.chunk+1)
	}
}

// delete removes the value with the given ID, if it exists.
func (s *sorted[T, P]) delete(id ID) {
	if p := s.ceil(id); s.valid(p) && P(s.at(p)).key() == id {
		s.remove(p)
	}
}
