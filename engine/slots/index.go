// Package slots records which elements of a table belong to a cluster's hash slot: it counts them in constant time, and
// lists them without visiting others. It stores numbers of elements, as in a dict.Table, and follows their changes.
package slots

import (
	"iter"
	"unsafe"
)

const (
	// pageSize is the number of slots whose lists are created together, when the first of them is needed.
	pageSize = 64
	// chunkSize is the number of elements in a chunk of places: growth copies no chunk.
	chunkSize = 1024
	// minKept is the number of elements for which a list that is not empty always keeps room.
	minKept = 8
)

// Index has the elements of a table by slot. They are numbered densely from 0, as in a dict.Table. An element takes 4
// bytes in the list of its slot, plus about half of that as room to grow, and 4 for its position in the list.
type Index struct {
	n      int // elements
	pages  []*page
	places []*[chunkSize]uint32 // by element number: its position in the list of its slot
	listed int                  // elements that the lists have room for
	paged  int                  // pages created
}

// page has the lists of some slots: the numbers of their elements. The lengths are separate and close together, so that
// they tend to be in the processor's caches: elements that are added one after the other are in random slots.
type page struct {
	lens  [pageSize]uint32
	rooms [pageSize]uint8 // exponents: see room
	lists [pageSize]*uint32
}

// room returns the capacity of the list of a slot: 0, or a power of two from 2 on.
func (p *page) room(s int) int { return 1 << p.rooms[s] &^ 1 }

func (p *page) list(s int) []uint32 { return unsafe.Slice(p.lists[s], p.lens[s]) }

// New returns an empty index for slots 0 to n-1.
func New(n int) *Index { return &Index{pages: make([]*page, (n+pageSize-1)/pageSize)} }

// Len returns the number of elements of a slot.
func (x *Index) Len(slot int) int {
	if p := x.pages[slot/pageSize]; p != nil {
		return int(p.lens[slot%pageSize])
	}
	return 0
}

// Add adds the next element to a slot. Its number is the number of elements before.
func (x *Index) Add(slot int) {
	p := x.pages[slot/pageSize]
	if p == nil {
		p = new(page)
		x.pages[slot/pageSize] = p
		x.paged++
	}
	if x.n/chunkSize == len(x.places) {
		x.places = append(x.places, new([chunkSize]uint32))
	}
	s := slot % pageSize
	at := p.lens[s]
	*x.place(x.n) = at
	if int(at) == p.room(s) {
		x.resize(p, s, p.rooms[s]+1)
	}
	p.lens[s]++
	p.list(s)[at] = uint32(x.n)
	x.n++
}

// resize changes the capacity of the list of a slot.
func (x *Index) resize(p *page, s int, room uint8) {
	x.listed -= p.room(s)
	l := p.list(s)
	p.rooms[s], p.lists[s] = room, nil
	if n := p.room(s); n > 0 {
		x.listed += n
		to := make([]uint32, n)
		copy(to, l)
		p.lists[s] = unsafe.SliceData(to)
	}
}

// Remove removes element i, which belongs to slot. The last element, which belongs to lastSlot, takes its number.
func (x *Index) Remove(i, slot, lastSlot int) {
	x.n--
	x.unlist(i, slot)
	if last := x.n; i != last {
		at := *x.place(last)
		x.list(lastSlot)[at] = uint32(i)
		*x.place(i) = at
	}
	// One spare chunk stays, so that a table whose size swings around a boundary does not allocate each time.
	if k := len(x.places); k*chunkSize-x.n >= 2*chunkSize {
		x.places[k-1] = nil
		x.places = x.places[:k-1]
	}
}

// unlist removes an element from the list of its slot. The last one of the list takes its position.
func (x *Index) unlist(i, slot int) {
	p, s := x.pages[slot/pageSize], slot%pageSize
	l := p.list(s)
	end := len(l) - 1
	at, moved := *x.place(i), l[end]
	l[at] = moved
	*x.place(int(moved)) = at
	p.lens[s]--
	switch room := p.room(s); {
	case end == 0:
		x.resize(p, s, 0)
	case room > minKept && end < room/4:
		x.resize(p, s, p.rooms[s]-1)
	}
}

// Scan calls fn with the numbers of about count elements of a slot, at least one if any are left, and returns the next
// cursor. Cursors are as in dict.Table.Scan. For the same reason an element that is present throughout is visited: new
// ones come last in the list, and moved ones take a lower position.
func (x *Index) Scan(slot int, cursor uint64, count int, fn func(i int)) uint64 {
	l := x.list(slot)
	left := len(l)
	if cursor != 0 && cursor < uint64(left) {
		left = int(cursor)
	}
	for count = max(count, 1); left > 0 && count > 0; count-- {
		left--
		fn(int(l[left]))
	}
	return uint64(left)
}

// All iterates over the numbers of a slot's elements. None may be added or removed meanwhile.
func (x *Index) All(slot int) iter.Seq[int] {
	return func(yield func(i int) bool) {
		for _, i := range x.list(slot) {
			if !yield(int(i)) {
				return
			}
		}
	}
}

// MemoryUsage returns how many bytes the index takes.
func (x *Index) MemoryUsage() int {
	const pointer = int(unsafe.Sizeof(uintptr(0)))
	return int(unsafe.Sizeof(*x)) + len(x.pages)*pointer + x.paged*int(unsafe.Sizeof(page{})) +
		x.listed*int(unsafe.Sizeof(uint32(0))) + cap(x.places)*pointer + len(x.places)*int(unsafe.Sizeof([chunkSize]uint32{}))
}

func (x *Index) list(slot int) []uint32 {
	if p := x.pages[slot/pageSize]; p != nil {
		return p.list(slot % pageSize)
	}
	return nil
}

func (x *Index) place(i int) *uint32 { return &x.places[i/chunkSize][i%chunkSize] }
