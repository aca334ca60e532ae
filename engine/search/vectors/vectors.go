// Package vectors has the vectors of a field of a search index, and finds the documents whose vectors are near a given
// one.
//
// Each vector is a node with a number. A document has one or more vectors, and its distance is that of the nearest one.
// Without a graph (FLAT) all vectors are compared. HNSW and SVS-VAMANA have the graph of engine/vectors/graph; SVS
// compression is accepted but not applied: vectors are stored whole, in the field's type. Vectors for COSINE are stored
// with length 1, except integers, which are stored unchanged with their length beside them.
//
// A vector takes its components, 17 to 23 bytes for its document and that document's entry in the table, and in a graph
// 8 bytes for each M and about 13 more: with 128 floats and M 16, 670 to 690 bytes.
//
// # Concurrency
//
// An index has one writer at a time. Any number of goroutines search at the same time, without locks: data that a
// search could read is written atomically, or does not change while such a search runs. So the slot of a removed vector
// is reused only after all searches that began before have ended (epochs.go).
//
// A search sees each change of the writer or not. It may find documents added after it began, or removed meanwhile. A
// document that is moved or replaced during a search is found under its old or its new number, or not at all if the
// caller only allows the other one.
package vectors

import (
	"encoding/binary"
	"math"
	"sync/atomic"

	"github.com/atomredis/atomredis/engine/vectors/graph"
	"github.com/atomredis/atomredis/engine/vectors/slab"
)

// Type is the type of a vector's components. Vectors are little-endian bytes.
type Type uint8

// The types. Their numbers are stored.
const (
	Float32 Type = iota
	Float64
	Float16
	BFloat16
	Int8
	Uint8
)

// Size returns the number of bytes of a component.
func (t Type) Size() int { return [...]int{4, 8, 2, 2, 1, 1}[t] }

// Metric says how distances are measured.
type Metric uint8

// The metrics. L2 is the squared distance, IP is 1 minus the inner product, Cosine 1 minus the cosine. Numbers are
// stored.
const (
	L2 Metric = iota
	IP
	Cosine
)

// Options are the parameters of an index.
type Options struct {
	Type   Type
	Metric Metric
	Dim    int // components of a vector, at least 1

	Graph   bool    // false is FLAT
	M       int     // links of a vector, twice as many on the lowest level: half of SVS's GRAPH_MAX_DEGREE
	BuildEF int     // number of candidates for the links of an added vector
	EF      int     // default number of candidates of a search
	Epsilon float64 // default of how far beyond a radius a search goes, as a fraction of it
}

// The limits of M and BuildEF; values outside are replaced by the nearest limit.
const (
	minM, maxM = 4, 1024
	minBuildEF = 4
)

// Index has the vectors of a field. Use New or Decode to make one.
type Index struct {
	options Options
	space   space
	graph   *graph.Graph // nil for FLAT

	docs  *slab.Slab[uint64] // the document of each node, 0 if none; accessed atomically
	more  *slab.Slab[uint32] // the document's next node plus 1; accessed atomically
	table atomic.Pointer[table]

	epochs
	free           []uint32 // nodes without a document, for reuse
	leaving        []uint32 // removed nodes that still have incoming links
	dying, waiting []uint32 // removed nodes without incoming links: since this epoch, and since before it

	documents atomic.Int64
	nodes     atomic.Int64 // vectors
	removed   atomic.Int64 // nodes in leaving, dying and waiting
}

// New returns an empty index.
func New(o Options) *Index {
	x := &Index{options: o, space: newSpace(o), docs: slab.New[uint64](1), more: slab.New[uint32](1)}
	x.table.Store(newTable(0))
	if o.Graph {
		m := min(max(o.M, minM), maxM)
		x.graph = graph.New(x.space, graph.Settings{M: m, Seed: seed, Shared: true})
	}
	return x
}

// seed is the seed for the levels of nodes.
const seed = 0x2545f4914f6cdd1d

// Options returns the parameters of the index.
func (x *Index) Options() Options { return x.options }

// Len returns the number of documents with vectors.
func (x *Index) Len() int { return int(x.documents.Load()) }

// Vectors returns the number of vectors.
func (x *Index) Vectors() int { return int(x.nodes.Load()) }

// VectorBytes returns the length of a vector.
func (x *Index) VectorBytes() int { return x.options.Dim * x.options.Type.Size() }

// Bytes returns the memory of the index. No writer may run meanwhile.
func (x *Index) Bytes() int {
	n := x.space.bytes() + 8*x.docs.Room() + 4*x.more.Room() + 4*len(x.table.Load().slots) +
		4*(cap(x.free)+cap(x.leaving)+cap(x.dying)+cap(x.waiting))
	if x.graph != nil {
		n += x.graph.Bytes()
	}
	return n
}

// Going returns how many vectors were removed whose memory cannot be reused yet.
func (x *Index) Going() int { return int(x.removed.Load()) }

// doc returns the document of a node, 0 if it has none.
func (x *Index) doc(node uint32) uint64 { return atomic.LoadUint64(&x.docs.At(node)[0]) }

// nextOf returns the next node of the same document.
func (x *Index) nextOf(node uint32) (uint32, bool) {
	n := atomic.LoadUint32(&x.more.At(node)[0])
	return n - 1, n > 0
}

// Add adds one or more vectors of VectorBytes for a document without vectors. Its number must not be 0. The index
// copies the vectors.
func (x *Index) Add(doc uint64, vectors ...[]byte) {
	if len(vectors) == 0 {
		return
	}
	x.reclaim()
	next := uint32(0)
	first := uint32(0)
	for i := len(vectors) - 1; i >= 0; i-- {
		first = x.take()
		x.space.put(first, vectors[i])
		atomic.StoreUint32(&x.more.At(first)[0], next)
		atomic.StoreUint64(&x.docs.At(first)[0], doc)
		next = first + 1
		x.nodes.Add(1)
		if x.graph != nil {
			x.graph.Add(first, max(x.options.BuildEF, minBuildEF))
		}
	}
	x.enter(doc, first)
	x.documents.Add(1)
}

// take returns a node without a document.
func (x *Index) take() uint32 {
	if n := len(x.free); n > 0 {
		node := x.free[n-1]
		x.free = x.free[:n-1]
		return node
	}
	if uint64(x.docs.Len()) == math.MaxUint32-1 {
		panic("vectors: more than 2^32 vectors in a field") // more than fits in memory
	}
	x.more.Push()
	x.docs.Push()
	return uint32(x.docs.Len() - 1)
}

// Remove removes the vectors of a document, and reports whether it had any.
func (x *Index) Remove(doc uint64) bool {
	x.reclaim()
	t := x.table.Load()
	slot, node, ok := x.slotOf(t, doc)
	if !ok {
		return false
	}
	t.leave(slot)
	x.documents.Add(-1)
	for ok {
		next, more := x.nextOf(node)
		atomic.StoreUint64(&x.docs.At(node)[0], 0)
		x.nodes.Add(-1)
		x.removed.Add(1)
		if x.graph != nil {
			x.graph.Unlink(node)
			x.leaving = append(x.leaving, node)
		} else {
			x.dying = append(x.dying, node)
		}
		node, ok = next, more
	}
	return true
}

// Holds reports whether a document has exactly these vectors, so that Move suffices for a changed document. For Cosine,
// vectors of the same direction count as equal.
func (x *Index) Holds(doc uint64, vectors ...[]byte) bool {
	node, ok := x.find(doc)
	for _, v := range vectors {
		if !ok || !x.space.holds(node, v) {
			return false
		}
		node, ok = x.nextOf(node)
	}
	return !ok
}

// Move gives a document a number without vectors, and reports whether the document had any.
func (x *Index) Move(from, to uint64) bool {
	t := x.table.Load()
	slot, first, ok := x.slotOf(t, from)
	if !ok {
		return false
	}
	for node, ok := first, true; ok; node, ok = x.nextOf(node) {
		atomic.StoreUint64(&x.docs.At(node)[0], to)
	}
	t.leave(slot)
	x.enter(to, first)
	return true
}

// sweepStep is how many nodes drop their links to removed ones with each change. It limits the fraction of removed
// nodes.
const sweepStep = 16

// reclaim frees nodes that no search can see any more.
func (x *Index) reclaim() {
	if len(x.leaving) > 0 {
		x.graph.Sweep(sweepStep)
		for range min(sweepStep, len(x.leaving)) { // the oldest ones
			node := x.leaving[0]
			x.leaving = x.leaving[1:]
			if x.graph.In(node) == 0 {
				x.dying = append(x.dying, node)
			} else {
				x.leaving = append(x.leaving, node)
			}
		}
	}
	for range 2 {
		if len(x.dying)+len(x.waiting) == 0 || !x.advance() {
			return
		}
		x.removed.Add(-int64(len(x.waiting)))
		for _, node := range x.waiting {
			if x.graph != nil {
				x.graph.Clear(node)
			}
			x.free = append(x.free, node)
		}
		x.waiting, x.dying = x.dying, x.waiting[:0]
	}
}

var order = binary.LittleEndian
