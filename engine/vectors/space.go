package vectors

import (
	"sync"
	"unsafe"

	"github.com/atomredis/atomredis/engine/prefetch"
	"github.com/atomredis/atomredis/engine/vectors/distance"
	"github.com/atomredis/atomredis/engine/vectors/graph"
	"github.com/atomredis/atomredis/engine/vectors/slab"
)

// queries keeps the memory of queries.
var queries = sync.Pool{New: func() any { return new(query) }}

// newQuery returns a query that must be released.
func newQuery() *query { return queries.Get().(*query) }

// Query implements graph.Space.
func (s *Set) Query(id uint32, reuse graph.Query) graph.Query {
	q, ok := reuse.(*query)
	if !ok {
		q = newQuery()
	}
	q.of(s, id)
	return q
}

// maxKept is the largest length of a part that a released query keeps.
const maxKept = 1 << 12

// Release implements graph.Query.
func (q *query) Release() {
	q.set, q.words, q.floats = nil, nil, nil
	if cap(q.high) <= maxKept {
		queries.Put(q)
	}
}

// of sets the query to the vector of a node, as a view.
func (q *query) of(s *Set, id uint32) {
	q.set = s
	switch s.quant {
	case Q8:
		q.words = s.words.At(id)
		q.prepare8()
	case Bin:
		q.words = s.words.At(id)
	case None:
		q.floats = s.floats.At(id)
	}
}

// take sets the query to a vector, which is normalised.
func (q *query) take(s *Set, v []float32) {
	q.set = s
	Normalise(v)
	switch words, _ := s.quant.code(s.dim); s.quant {
	case Q8:
		q.words = make([]uint64, words)
		encode8(q.words, v)
		q.prepare8()
	case Bin:
		q.words = make([]uint64, words)
		encodeBin(q.words, v)
	case None:
		q.floats = v
	}
}

// Distance implements graph.Query. It returns about the distance of a node: 1 minus the cosine of the angle between it
// and the query.
func (q *query) Distance(id uint32) float32 {
	if q.set.quant == Q8 {
		return 1 - q.rough8(q.set.words.At(id))
	}
	return q.set.distance(q, id)
}

// fetched is how many vectors are prefetched at once: the capacity of a list.
const fetched = prefetch.Len / fetchedLines

// fetchedLines is how many cache lines of a vector are prefetched; the processor itself fetches further lines.
const fetchedLines = 3

// Distances implements graph.Query.
func (q *query) Distances(ids []uint32, distances []float32) {
	s := q.set
	for len(ids) > 0 {
		some := ids[:min(fetched, len(ids))]
		switch s.quant {
		case Q8:
			all := s.words.View()
			fetch(q, &all, some, 8)
			for i, id := range some {
				distances[i] = 1 - q.rough8(all.At(id))
			}
		case Bin:
			all := s.words.View()
			fetch(q, &all, some, 8)
			for i, id := range some {
				distances[i] = q.bits(all.At(id))
			}
		case None:
			all := s.floats.View()
			fetch(q, &all, some, 4)
			for i, id := range some {
				distances[i] = 1 - distance.Dot(all.At(id), q.floats)
			}
		}
		ids, distances = ids[len(some):], distances[len(some):]
	}
}

// fetch prefetches the vectors of nodes, which takes longer than comparing them. size is the size of an element.
func fetch[T any](q *query, all *slab.View[T], ids []uint32, size int) {
	for _, id := range ids {
		v := all.At(id)
		p, size := uintptr(unsafe.Pointer(unsafe.SliceData(v))), size*len(v)
		q.fetches.Add(p, min(size, fetchedLines*prefetch.LineSize))
		if size > 2*prefetch.LineSize {
			q.fetches.Add(p+prefetch.LineSize, 1)
		}
	}
	q.fetches.Fetch()
}

// bits returns the distance of a query and a vector in Bin.
func (q *query) bits(words []uint64) float32 {
	return float32(2*differing(words, q.words)) / float32(q.set.dim)
}

// distance returns the distance of a query and a node.
func (s *Set) distance(q *query, id uint32) float32 {
	switch s.quant {
	case Q8:
		words := s.words.At(id)
		// Each product is rounded as in Redis, where a vector of the same direction often has a score of exactly 1.
		scale := float32(float32(range8(words)/127) * float32(q.unit/127))
		return 1 - float32(float32(q.dot8(words))*scale)
	case Bin:
		return q.bits(s.words.At(id))
	}
	return 1 - distance.Dot(s.floats.At(id), q.floats)
}
