package expiry

import "unsafe"

// Numbered is an Index of things that have the numbers of a dense table, from 0 on. It takes 16 bytes for each thing
// that is in it: the deadline, the number, and the thing's place. Where few of many things are in it, those around them
// have places too. The zero value is empty and ready.
type Numbered struct {
	n      int
	at     pages[int64]  // the heap: the deadlines
	number pages[uint32] // and whose they are
	places pages[uint32] // by number: 1 more than the place in the heap; 0 for those that are not in it
}

// Len returns how many things are in the index.
func (x *Numbered) Len() int { return x.n }

// At returns the deadline of a thing, 0 if it is not in the index.
func (x *Numbered) At(number int) int64 {
	if i := x.place(number); i >= 0 {
		return *x.at.ref(i)
	}
	return 0
}

// place returns where in the heap a thing is, -1 if it is not in it.
func (x *Numbered) place(number int) int {
	if !x.places.has(number) {
		return -1
	}
	return int(*x.places.ref(number)) - 1
}

// Set gives a thing a deadline, which is not 0, adding the thing if it is not in the index.
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

// Remove takes a thing out of the index, if it is in it.
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

// Renumber gives the last thing of the table, if it is in the index, the number of one that has gone, which may be its
// own. The table has one less then.
func (x *Numbered) Renumber(from, to int) {
	if i := x.place(from); i >= 0 && from != to {
		x.places.make(to)
		*x.places.ref(from), *x.places.ref(to) = 0, uint32(i+1)
		*x.number.ref(i) = uint32(to)
	}
	x.places.release(from)
}

// Min returns the thing with the earliest deadline.
func (x *Numbered) Min() (number int, at int64, ok bool) {
	if x.n == 0 {
		return 0, 0, false
	}
	return int(*x.number.ref(0)), *x.at.ref(0), true
}

// AllBy reports whether everything's deadline is at or earlier, as Index.AllBy does.
func (x *Numbered) AllBy(at int64) bool {
	for i := x.n - 1; i >= 0 && i*arity+1 >= x.n; i-- {
		if *x.at.ref(i) > at {
			return false
		}
	}
	return true
}

// Each calls fn for everything in the index, in no order, until fn returns false. The index must not change meanwhile.
func (x *Numbered) Each(fn func(number int, at int64) bool) {
	for i := range x.n {
		if !fn(int(*x.number.ref(i)), *x.at.ref(i)) {
			return
		}
	}
}

// Clone returns a copy for things with the same numbers.
func (x *Numbered) Clone() Numbered {
	return Numbered{x.n, x.at.clone(), x.number.clone(), x.places.clone()}
}

// MemoryUsage returns how many bytes the index takes.
func (x *Numbered) MemoryUsage() int {
	return x.at.memoryUsage() + x.number.memoryUsage() + x.places.memoryUsage()
}

// settle puts what belongs near place i of the heap where it belongs.
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

// pages is an array of which only those pages are there that something is in, and the first no longer than it must be:
// it grows without being copied, and takes no room beyond its end.
type pages[E any] struct {
	all   [][]E // nil, or of pageLen elements; the first may be shorter
	taken int   // elements of all pages
}

const (
	pageLen  = 256
	leastLen = 8 // of the first page
)

// has reports whether element i is there.
func (p *pages[E]) has(i int) bool {
	page := i / pageLen
	return page < len(p.all) && i%pageLen < len(p.all[page])
}

// ref returns element i, which is there.
func (p *pages[E]) ref(i int) *E { return &p.all[uint(i)/pageLen][uint(i)%pageLen] }

// make has element i there, and those around it. New ones are zero.
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

// release gives back the pages behind the one in which element n would be, the first that is not needed any more. One
// stays, so that a number that swings around a boundary does not take a page each time.
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
