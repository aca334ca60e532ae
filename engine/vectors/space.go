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

// maxKept is how many elements of its parts a query keeps.
const maxKept = 1 << 12

// Release implements graph.Query.
func (q *query) Release() {
	q.set, q.words, q.floats = nil, nil, nil
	if cap(q.high) <= maxKept {
		queries.Put(q)
	}
}

// of sets a query to the vector of a node. It is a view of the vector.
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

// take sets a query to a vector, which is normalised.
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

// Distance implements graph.Query. It is about the distance of a node, which is 1 less the cosine of the angle between
// it and the query.
func (q *query) Distance(id uint32) float32 {
	if q.set.quant == Q8 {
		return 1 - q.rough8(q.set.words.At(id))
	}
	return q.set.distance(q, id)
}

// fetched is how many vectors are fetched at once: as many as a list takes.
const fetched = prefetch.Len / fetchedLines

// fetchedLines is how many lines of memory of a vector are fetched: what follows them the processor fetches itself.
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

// fetch begins to fetch the vectors of nodes from memory, which takes longer than to compare them. size is that of an
// element.
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
		// Each product is rounded as in Redis, where a vector in the same direction often has a score of just 1.
		scale := float32(float32(range8(words)/127) * float32(q.unit/127))
		return 1 - float32(float32(q.dot8(words))*scale)
	case Bin:
		return q.bits(s.words.At(id))
	}
	return 1 - distance.Dot(s.floats.At(id), q.floats)
}
