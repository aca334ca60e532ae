// Package runs sorts the parts of a value, of which there may be very many, without moving much memory at a time.
package runs

import (
	"cmp"
	"iter"
	"slices"
)

// Part is a part of a value in its stored form.
type Part struct{ Name, Data string }

// Runs are parts in pieces, each sorted by name. One large slice would have to be moved as it grows, and the garbage
// collector stops the world until such a move is done.
type Runs [][]Part

// length is about how many parts a run has.
const length = 4096

// Add adds parts, in any order.
func (r *Runs) Add(parts []Part) {
	last := len(*r) - 1
	if last < 0 || len((*r)[last]) >= length {
		r.Sort()
		*r = append(*r, make([]Part, 0, length+len(parts)))
		last++
	}
	(*r)[last] = append((*r)[last], parts...)
}

// Sort puts the last run in order, as must be done before All.
func (r Runs) Sort() {
	if len(r) > 0 {
		slices.SortFunc(r[len(r)-1], func(a, b Part) int { return cmp.Compare(a.Name, b.Name) })
	}
}

// All iterates over the parts in the order of their names. A part that changed after it was visited has two entries and
// comes once.
func (r Runs) All() iter.Seq[Part] {
	return func(yield func(Part) bool) {
		heap := slices.Clone(r) // the rest of each run, ordered by its first part
		for i := len(heap)/2 - 1; i >= 0; i-- {
			heap.sink(i)
		}
		last, begun := "", false
		for len(heap) > 0 {
			p := heap[0][0]
			if (!begun || p.Name != last) && !yield(p) {
				return
			}
			last, begun = p.Name, true
			if heap[0] = heap[0][1:]; len(heap[0]) == 0 {
				end := len(heap) - 1
				heap[0] = heap[end]
				heap = heap[:end]
			}
			heap.sink(0)
		}
	}
}

// sink moves a run down to its place in a heap.
func (r Runs) sink(i int) {
	for {
		least := 2*i + 1
		if least >= len(r) {
			return
		}
		if other := least + 1; other < len(r) && r[other][0].Name < r[least][0].Name {
			least = other
		}
		if r[i][0].Name <= r[least][0].Name {
			return
		}
		r[i], r[least] = r[least], r[i]
		i = least
	}
}
