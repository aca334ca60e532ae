package arrays

import "math/bits"

// Info says how the elements of an array lie. A slice is SliceSize indices, at a multiple of that; one is dense that has
// more than MaxSparse elements.
type Info struct {
	// Slices is the number of slices that have elements, Groups of the groups of pages that they lie in, and Room how
	// many pages find room in those.
	Slices, Groups, Room int
	Dense, Sparse        int
	// DenseRoom is the room, in indices, of all dense slices together: of each the smallest power of two that reaches from
	// the first to the last element. DenseCount is how many elements they have, and SparseCount those of the others.
	DenseRoom, DenseCount, SparseCount int
}

const (
	// SliceSize is the number of indices in a slice, which ARINFO describes as one.
	SliceSize = pageSize * slicePages
	// MaxSparse is the largest number of elements of a slice that ARINFO calls sparse.
	MaxSparse = 10
	// minRoom is the least room of a dense slice.
	minRoom = 8
)

// Info returns how the elements lie. Only full makes it look at all pages, and fills in what tells dense slices from
// sparse ones.
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
