// Package shapes has the shapes of a GEOSHAPE field, points and polygons, and finds those with a relation to a given
// shape.
//
// Coordinates are flat, or degrees on a spherical earth, where sides are arcs of great circles. A tree of boxes finds
// the candidates; an exact test (relate.go) checks them, with operations that both kinds of coordinates have
// (space.go).
//
// An index belongs to a search index, whose lock protects it. Concurrent lookups of its documents are allowed.
package shapes

import (
	"cmp"
	"slices"
	"unsafe"

	"github.com/tidwall/rtree"
)

// Coordinates are a kind of coordinates.
type Coordinates uint8

const (
	Spherical Coordinates = iota // longitude and latitude, in degrees
	Flat
)

// Point is a place: x and y, or longitude and latitude.
type Point struct{ X, Y float64 }

// Shape is an immutable point or polygon.
type Shape struct {
	// points has the point, or the polygon's vertices, ring after ring: the outer one first, then its holes. A ring
	// does not repeat its first vertex.
	points []Point
	ends   []int32 // ends of the rings; nil for a point
}

// Bytes returns the memory that a shape takes.
func (s *Shape) Bytes() int {
	return int(unsafe.Sizeof(*s)) + cap(s.points)*int(unsafe.Sizeof(Point{})) + cap(s.ends)*4
}

// Relation is a relation of a document's shape to the query's.
type Relation uint8

const (
	Contains   Relation = iota + 1 // the query's shape is within it
	Within                         // it is within the query's shape, and not only on its border
	Disjoint                       // they have no common point
	Intersects                     // they have a common point, perhaps on the borders
)

// Index has the shapes of a field.
type Index struct {
	space space
	tree  rtree.RTreeG[*document]
	docs  map[uint64]*document
	bytes int
}

// document is a document and its shape.
type document struct {
	doc   uint64
	shape Shape
}

// New returns an empty index.
func New(c Coordinates) *Index { return &Index{space: spaceOf(c), docs: map[uint64]*document{}} }

// perDocument is about the memory of a shape in the tree and the map.
const perDocument = 100

// Add adds the shape of a document, which must have none.
func (x *Index) Add(doc uint64, s Shape) {
	d := &document{doc, s}
	x.docs[doc] = d
	x.bytes += s.Bytes() + perDocument
	for _, b := range x.space.boxes(newBody(x.space, &s)) {
		x.tree.Insert(b[0], b[1], d)
	}
}

// Remove removes the shape of a document, if it has one.
func (x *Index) Remove(doc uint64) {
	d := x.docs[doc]
	if d == nil {
		return
	}
	delete(x.docs, doc)
	x.bytes -= d.shape.Bytes() + perDocument
	for _, b := range x.space.boxes(newBody(x.space, &d.shape)) {
		x.tree.Delete(b[0], b[1], d)
	}
}

// Len returns the number of documents with a shape.
func (x *Index) Len() int { return len(x.docs) }

// Bytes returns about how much memory the index takes.
func (x *Index) Bytes() int { return x.bytes }

// Search is a search in an index. It starts while the index is locked, and continues without the lock.
type Search struct {
	space    space
	relation Relation
	other    *body
	near     []*document // candidates
	sure     []uint64    // documents that certainly match
}

// Search starts a search for the documents whose shapes have a relation to s.
func (x *Index) Search(r Relation, s Shape) *Search {
	f := &Search{space: x.space, relation: r, other: newBody(x.space, &s)}
	near := map[*document]bool{}
	for _, b := range x.space.boxes(f.other) {
		x.tree.Search(b[0], b[1], func(_, _ [2]float64, d *document) bool {
			if !near[d] {
				near[d] = true
				f.near = append(f.near, d)
			}
			return true
		})
	}
	if r == Disjoint {
		for doc, d := range x.docs {
			if !near[d] {
				f.sure = append(f.sure, doc)
			}
		}
	}
	return f
}

// Find returns, in ascending order, the matching documents as of the search's start. If stop is not nil, it is called
// for each candidate; once it returns true, Find returns the documents found so far.
func (f *Search) Find(stop func() bool) []uint64 {
	found := f.sure
	for _, d := range f.near {
		if stop != nil && stop() {
			break
		}
		if has(f.space, newBody(f.space, &d.shape), f.relation, f.other) {
			found = append(found, d.doc)
		}
	}
	f.near, f.sure = nil, nil
	slices.SortFunc(found, cmp.Compare[uint64])
	return found
}

// Find returns the documents whose shapes have a relation to s, in ascending order.
func (x *Index) Find(r Relation, s Shape) []uint64 { return x.Search(r, s).Find(nil) }
