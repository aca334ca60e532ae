package expiry

import "unsafe"

// Numbered is an Index of the elements of a dense table, by their numbers from 0. An element in the index takes 16
// bytes: deadline, number and position. If few elements of many are indexed, their neighbours have positions too. The
// zero value is empty and ready.
type Numbered struct {
	n      int
	at     pages[int64]  // the heap: deadlines
	number pages[uint32] // the heap: numbers of the elements
	places pages[uint32] // by number: the position in the heap plus 1; 0 if not in the index
}

// Len returns the number of elements in the index.
func (x *Numbered) Len() int { return x.n }

// At returns the deadline of an element, 0 if it is not in the index.
func (x *Numbered) At(number int) int64 {
	if i := x.place(number); i >= 0 {
		return *x.at.ref(i)
	}
	return 0
}

// place returns the position of an element in the heap, -1 if it is not in the index.
func (x *Numbered) place(number int) int {
	if !x.places.has(number) {
		return -1
	}
	return int(*x.places.ref(number)) - 1
}

// Set sets the deadline of an element, which must not be 0, and adds the element if it is not in the index.
func (x *Numbered) Set(number int, at int64) {
	i := x.place(number)
	if i < 0 {
		i = x.n
		x.n++
		x.at.make(i)
		x.number.make(i)
		x.places.make(number)
		x.up(i, at, uint32(number))
		return
	}
	x.settle(i, at, uint32(number))
}

// Remove removes an element from the index, if it is there.
func (x *Numbered) Remove(number int) {
	i := x.place(number)
	if i < 0 {
		return
	}
	if x.n--; x.n == 0 {
		*x = Numbered{}
		return
	}
	*x.places.ref(number) = 0
	if i < x.n {
		x.settle(i, *x.at.ref(x.n), *x.number.ref(x.n))
	}
	x.at.release(x.n)
	x.number.release(x.n)
}

// Renumber gives from, the last element of the table, the number to of a removed one, which may be the same. Afterwards
// the table has one element less.
func (x *Numbered) Renumber(from, to int) {
	if i := x.place(from); i >= 0 && from != to {
		x.places.make(to)
		*x.places.ref(from), *x.places.ref(to) = 0, uint32(i+1)
		*x.number.ref(i) = uint32(to)
	}
	x.places.release(from)
}

// Min returns the element with the earliest deadline.
func (x *Numbered) Min() (number int, at int64, ok bool) {
	if x.n == 0 {
		return 0, 0, false
	}
	return int(*x.number.ref(0)), *x.at.ref(0), true
}

// AllBy reports whether every element's deadline is at or earlier, as Index.AllBy does.
func (x *Numbered) AllBy(at int64) bool {
	for i := x.n - 1; i >= 0 && i*arity+1 >= x.n; i-- {
		if *x.at.ref(i) > at {
			return false
		}
	}
	return true
}

// Each calls fn for every element in the index, in no order, until fn returns false. The index must not change
// meanwhile.
func (x *Numbered) Each(fn func(number int, at int64) bool) {
	for i := range x.n {
		if !fn(int(*x.number.ref(i)), *x.at.ref(i)) {
			return
		}
	}
}

// Clone returns a copy for a table with the same numbers.
func (x *Numbered) Clone() Numbered {
	return Numbered{x.n, x.at.clone(), x.number.clone(), x.places.clone()}
}

// MemoryUsage returns how many bytes the index takes.
func (x *Numbered) MemoryUsage() int {
	return x.at.memoryUsage() + x.number.memoryUsage() + x.places.memoryUsage()
}

// settle moves an element from position i of the heap to its right position.
func (x *Numbered) settle(i int, at int64, number uint32) {
	if i > 0 && at < *x.at.ref((i - 1) / arity) {
		x.up(i, at, number)
		return
	}
	for {
		first := i*arity + 1
		if first >= x.n {
			break
		}
		least, earliest := first, *x.at.ref(first)
		for c := first + 1; c < min(first+arity, x.n); c++ {
			if t := *x.at.ref(c); t < earliest {
				least, earliest = c, t
			}
		}
		if earliest >= at {
			break
		}
		x.put(i, earliest, *x.number.ref(least))
		i = least
	}
	x.put(i, at, number)
}

func (x *Numbered) up(i int, at int64, number uint32) {
	for i > 0 {
		parent := (i - 1) / arity
		if *x.at.ref(parent) <= at {
			break
		}
		x.put(i, *x.at.ref(parent), *x.number.ref(parent))
		i = parent
	}
	x.put(i, at, number)
}

func (x *Numbered) put(i int, at int64, number uint32) {
	*x.at.ref(i), *x.number.ref(i) = at, number
	*x.places.ref(int(number)) = uint32(i + 1)
}

// pages is a sparse array: only used pages exist, and the first is as short as possible. It grows without copying, and
// needs no memory past its end.
type pages[E any] struct {
	all   [][]E // nil, or pageLen elements; the first may be shorter
	taken int   // elements in all pages
}

const (
	pageLen  = 256
	leastLen = 8 // of the first page
)

// has reports whether element i exists.
func (p *pages[E]) has(i int) bool {
	page := i / pageLen
	return page < len(p.all) && i%pageLen < len(p.all[page])
}

// ref returns element i, which must exist.
func (p *pages[E]) ref(i int) *E { return &p.all[uint(i)/pageLen][uint(i)%pageLen] }

// make creates the part of the page that has element i. New elements are zero.
func (p *pages[E]) make(i int) {
	if p.has(i) {
		return
	}
	page := i / pageLen
	for len(p.all) <= page {
		p.all = append(p.all, nil)
	}
	n := pageLen
	if page == 0 {
		for n = leastLen; n <= i; n *= 2 {
		}
	}
	was := p.all[page]
	p.all[page] = append(make([]E, 0, n), was...)[:n]
	p.taken += n - len(was)
}

// release frees the pages that are not needed for elements up to n, except one, so that a size that swings around a
// boundary does not allocate a page each time.
func (p *pages[E]) release(n int) {
	keep := n/pageLen + 2
	for i := len(p.all) - 1; i >= keep; i-- {
		p.taken -= len(p.all[i])
		p.all[i] = nil
		p.all = p.all[:i]
	}
}

func (p *pages[E]) clone() pages[E] {
	c := pages[E]{make([][]E, len(p.all)), p.taken}
	for i, page := range p.all {
		if page != nil {
			c.all[i] = append(make([]E, 0, len(page)), page...)
		}
	}
	return c
}

// memoryUsage returns how many bytes the pages take.
func (p *pages[E]) memoryUsage() int {
	var e E
	return cap(p.all)*int(unsafe.Sizeof([]E(nil))) + p.taken*int(unsafe.Sizeof(e))
}
