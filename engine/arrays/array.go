// Package arrays has sparse arrays: byte strings at indices from 0 to MaxIndex, any of which may be absent.
//
// The indices are divided into pages of pageSize; only pages with elements exist. A page packs its elements into one
// buffer in order of arrival, with their offsets in order of index; a bitmap says which indices have an element. A
// dense page thus costs about six bytes per element beside the data, a page with one element little more than its
// header, and both find an element by counting bits. Values of longValue bytes or more are kept and stored separately.
// Pages are grouped in order: a range is found by binary search and costs only the elements in it, however far apart
// its ends are.
//
// Arguments are copied. Slices that an Array returns are views: read-only, and valid until its next change.
package arrays

import (
	"math"
	"unsafe"
)

// MaxIndex is the largest index. MaxIndex+1 only marks the end of the cursor's range.
const MaxIndex = math.MaxUint64 - 1

// Array is a sparse array with a cursor. It has no lock. Make one with New.
type Array struct {
	groups []group
	count  int // elements
	pages  int
	slices int // slices that have elements
	memory int // bytes that the pages take

	// The cursor: the index that Insert or Ring wrote last, if inserted; else the one before the index given to Seek.
	last     uint64
	inserted bool

	track *tracking // nil unless changes are tracked
}

// New returns an array without elements.
func New() *Array { return new(Array) }

// Count returns the number of elements.
func (a *Array) Count() int { return a.count }

// Len returns the largest index of an element plus one, 0 if there is none.
func (a *Array) Len() uint64 {
	if len(a.groups) == 0 {
		return 0
	}
	pages := a.groups[len(a.groups)-1].pages
	p := pages[len(pages)-1]
	return p.number*pageSize + uint64(p.last()) + 1
}

// MemoryUsage returns how many bytes the array takes, in constant time.
func (a *Array) MemoryUsage() int {
	return int(unsafe.Sizeof(*a)) + a.memory + len(a.groups)*int(unsafe.Sizeof(group{})) + a.pages*pointerSize
}

// Get returns the element at an index; ok is false if there is none.
func (a *Array) Get(index uint64) (v []byte, ok bool) {
	if p := a.page(index / pageSize); p != nil {
		return p.get(int(index % pageSize))
	}
	return nil, false
}

// Set stores an element at an index, up to MaxIndex, and reports whether there was none.
func (a *Array) Set(index uint64, v []byte) (added bool) {
	number, at := index/pageSize, int(index%pageSize)
	p := a.page(number)
	epoch := a.noteSet(p, index, v)
	if p == nil {
		p = &page{number: number}
		a.insert(p)
	}
	a.memory -= p.memory()
	added = p.set(at, v)
	a.memory += p.memory()
	if added {
		a.count++
	}
	p.noted = epoch
	return added
}

// Delete removes the element at an index, and reports whether there was one.
func (a *Array) Delete(index uint64) bool { return a.DeleteRange(index, index) == 1 }

// DeleteRange removes the elements from index lo to index hi, and returns how many there were.
func (a *Array) DeleteRange(lo, hi uint64) int {
	if lo > hi {
		return 0
	}
	was := a.count
	var emptied []uint64 // the slices of pages that have become empty
	for c := a.seek(lo / pageSize); ; c.next() {
		p := a.at(c)
		if p == nil || p.number > hi/pageSize {
			break
		}
		from, to := p.within(lo, hi)
		if n := p.countIn(from, to); n > 0 {
			a.noteClear(p, from, to)
			a.memory -= p.memory()
			p.clear(from, to)
			a.memory += p.memory()
			a.count -= n
			if slice := p.number / slicePages; p.empty() && (len(emptied) == 0 || emptied[len(emptied)-1] != slice) {
				emptied = append(emptied, slice)
			}
		}
	}
	if len(emptied) > 0 {
		a.removeEmpty(lo/pageSize, hi/pageSize)
	}
	for _, slice := range emptied {
		if !a.hasSlice(slice) {
			a.slices--
		}
	}
	return was - a.count
}

// Each calls fn with the elements whose indices lie between from and to, both included, until fn returns false. The
// order is descending if from is larger.
func (a *Array) Each(from, to uint64, fn func(index uint64, v []byte) bool) {
	if from > to {
		a.eachDown(from, to, fn)
		return
	}
	for c := a.seek(from / pageSize); ; c.next() {
		p := a.at(c)
		if p == nil || p.number > to/pageSize {
			return
		}
		first, last := p.within(from, to)
		for at := p.from(first); at >= 0 && at <= last; at = p.from(at + 1) {
			if v, _ := p.get(at); !fn(p.number*pageSize+uint64(at), v) {
				return
			}
		}
	}
}

func (a *Array) eachDown(from, to uint64, fn func(index uint64, v []byte) bool) {
	c := a.seek(from / pageSize)
	if p := a.at(c); p == nil || p.number > from/pageSize {
		c.back()
	}
	for ; ; c.back() {
		p := a.at(c)
		if p == nil || p.number < to/pageSize {
			return
		}
		first, last := p.within(to, from)
		for at := p.upTo(last); at >= first; at = p.upTo(at - 1) {
			if v, _ := p.get(at); !fn(p.number*pageSize+uint64(at), v) {
				return
			}
		}
	}
}

// Clone returns a copy that does not track its changes.
func (a *Array) Clone() *Array {
	b := New()
	b.last, b.inserted = a.last, a.inserted
	for c := a.seek(0); a.at(c) != nil; c.next() {
		b.append(a.at(c).clone())
	}
	return b
}

// append adds a page with elements after the others.
func (a *Array) append(p *page) {
	a.insert(p)
	a.count += p.count()
}

// within returns the range of the page's positions between two indices. The page must overlap them.
func (p *page) within(lo, hi uint64) (from, to int) {
	from, to = 0, pageSize-1
	if lo/pageSize == p.number {
		from = int(lo % pageSize)
	}
	if hi/pageSize == p.number {
		to = int(hi % pageSize)
	}
	return from, to
}
