package arrays

import "math/bits"

// Info describes how the elements of an array are spread. A slice is SliceSize indices, beginning at a multiple of
// that; it is dense if it has more than MaxSparse elements.
type Info struct {
	// Slices is the number of slices with elements, Groups that of the groups of pages, and Room the number of pages
	// that these groups have room for.
	Slices, Groups, Room int
	Dense, Sparse        int
	// DenseRoom is the room, in indices, of all dense slices: for each the smallest power of two that spans its first
	// to last element. DenseCount is the number of their elements, SparseCount that of the others.
	DenseRoom, DenseCount, SparseCount int
}

const (
	// SliceSize is the number of indices in a slice, as ARINFO reports it.
	SliceSize = pageSize * slicePages
	// MaxSparse is the largest number of elements of a slice that ARINFO calls sparse.
	MaxSparse = 10
	// minRoom is the least room of a dense slice.
	minRoom = 8
)

// Info describes how the elements are spread. Only with full does it visit all pages and fill in the fields about dense
// and sparse slices.
func (a *Array) Info(full bool) Info {
	info := Info{Slices: a.slices, Groups: len(a.groups), Room: len(a.groups) * groupPages}
	if !full {
		return info
	}
	for c := a.seek(0); a.at(c) != nil; {
		slice := a.at(c).number / slicePages
		first, last, n := -1, 0, 0
		for ; a.at(c) != nil && a.at(c).number/slicePages == slice; c.next() {
			p := a.at(c)
			base := int(p.number%slicePages) * pageSize
			if first < 0 {
				first = base + p.from(0)
			}
			last = base + p.last()
			n += p.count()
		}
		if n <= MaxSparse {
			info.Sparse++
			info.SparseCount += n
			continue
		}
		info.Dense++
		info.DenseCount += n
		info.DenseRoom += max(minRoom, 1<<bits.Len(uint(last-first)))
	}
	return info
}
