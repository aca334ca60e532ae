// Package numbers has the sorted numbers of a NUMERIC field, each with its document. A GEO field uses it too: its
// numbers are the scores of package geo.
//
// A tree belongs to its index, whose lock protects it. A View is the tree at one instant and is read without the lock.
// A number takes 16 bytes plus an eighth.
package numbers

import (
	"cmp"
	"math"

	"github.com/atomredis/atomredis/engine/search/sorted"
)

// Range is a range of numbers. Infinite bounds are inclusive.
type Range struct {
	Min, Max                   float64
	MinExclusive, MaxExclusive bool
}

// Has reports whether a number is in the range.
func (r Range) Has(v float64) bool { return !r.below(Item{Value: v}) && r.upTo(Item{Value: v}) }

// below reports whether an item comes before the range.
func (r Range) below(i Item) bool { return i.Value < r.Min || i.Value == r.Min && r.MinExclusive }

// upTo reports whether an item comes before the end of the range.
func (r Range) upTo(i Item) bool { return i.Value < r.Max || i.Value == r.Max && !r.MaxExclusive }

// All is the range of all numbers.
var All = Range{Min: math.Inf(-1), Max: math.Inf(1)}

// Item is a number, not NaN, of a document. A document may have several.
type Item struct {
	Value float64
	Doc   uint64
}

func compare(a, b Item) int {
	switch {
	case a.Value < b.Value:
		return -1
	case a.Value > b.Value:
		return 1
	}
	return cmp.Compare(a.Doc, b.Doc)
}

// Tree has the numbers of a field.
type Tree struct{ t *sorted.Tree[Item] }

// New returns an empty tree.
func New() *Tree { return &Tree{sorted.New(compare)} }

// Add adds a number. Equal numbers of one document count once.
func (t *Tree) Add(i Item) { t.t.Set(i) }

// Remove removes a number.
func (t *Tree) Remove(i Item) { t.t.Delete(i) }

// Len returns the number of items.
func (t *Tree) Len() int { return t.t.Len() }

// Bytes returns the memory that the tree takes.
func (t *Tree) Bytes() int { return t.t.Bytes() }

// Count returns how many numbers are in a range, in logarithmic time.
func (t *Tree) Count(r Range) int { return View{t.t.View}.Count(r) }

// View returns the present tree, in constant time. A later change copies up to 3 KB of nodes that views share.
func (t *Tree) View() View { return View{t.t.Freeze()} }

// View is a tree at one instant.
type View struct{ v sorted.View[Item] }

// Len returns the number of items.
func (v View) Len() int { return v.v.Len() }

// Count returns how many numbers are in a range, in logarithmic time.
func (v View) Count(r Range) int { return max(0, v.v.Rank(r.upTo)-v.v.Rank(r.below)) }

// Ascend calls do for the numbers of a range in ascending order, and for equal numbers by document, until it returns
// false.
func (v View) Ascend(r Range, do func(Item) bool) {
	v.v.Ascend(r.below, func(i Item) bool { return r.upTo(i) && do(i) })
}

// Descend is Ascend in descending order, of documents too.
func (v View) Descend(r Range, do func(Item) bool) {
	v.v.Descend(r.upTo, func(i Item) bool { return !r.below(i) && do(i) })
}
