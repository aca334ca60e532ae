package vectors

import (
	"math"
	"unsafe"

	"github.com/atomredis/atomredis/engine/prefetch"
	"github.com/atomredis/atomredis/engine/vectors/distance"
	"github.com/atomredis/atomredis/engine/vectors/graph"
	"github.com/atomredis/atomredis/engine/vectors/slab"
)

// space has the vectors of all nodes.
type space interface {
	graph.Space
	// put sets the vector of a node, which is an existing node or the next new one.
	put(node uint32, vector []byte)
	// holds reports whether a node has this vector.
	holds(node uint32, vector []byte) bool
	// measure returns a measure for a vector.
	measure(vector []byte) measure
	// append appends the stored form of a node's vector: kept bytes. restore adds it as the next node.
	append(dst []byte, node uint32) []byte
	kept() int
	restore(data []byte)
	// bytes returns the memory of the vectors.
	bytes() int
}

// measure is a vector to compare nodes with.
type measure interface {
	graph.Query
	// exact returns the distance of a node; a NaN becomes infinite.
	exact(node uint32) float64
}

// store is the space of vectors with components of type E, compared as Q. Vectors for Cosine have length 1, except
// integers.
type store[E, Q any] struct {
	codec[E]
	dim   int
	unit  bool                                             // vectors are normalised to length 1
	all   *slab.Slab[E]                                    // the vectors
	norms *slab.Slab[float32]                              // lengths of integer vectors for Cosine; else nil
	widen func(dst []Q, v []E)                             // nil if Q is E
	apart func(q *query[E, Q], node uint32, v []E) float64 // the distance between a query and a node with vector v
	view  func(v []E) []Q                                  // returns v itself; nil if Q is not E
}

// codec converts stored components.
type codec[E any] struct {
	size  int
	get   func(b []byte) E
	add   func(b []byte, e E) []byte
	float func(e E) float64
	from  func(f float64) E // nil for integers
}

var (
	codec32 = codec[float32]{4,
		func(b []byte) float32 { return math.Float32frombits(order.Uint32(b)) },
		func(b []byte, e float32) []byte { return order.AppendUint32(b, math.Float32bits(e)) },
		func(e float32) float64 { return float64(e) },
		func(f float64) float32 { return float32(f) }}
	codec64 = codec[float64]{8,
		func(b []byte) float64 { return math.Float64frombits(order.Uint64(b)) },
		func(b []byte, e float64) []byte { return order.AppendUint64(b, math.Float64bits(e)) },
		func(e float64) float64 { return e },
		func(f float64) float64 { return f }}
	codecHalf = codec[uint16]{2, order.Uint16, order.AppendUint16,
		func(e uint16) float64 { return float64(fromHalf(e)) },
		func(f float64) uint16 { return toHalf(float32(f)) }}
	codecBrain = codec[uint16]{2, order.Uint16, order.AppendUint16,
		func(e uint16) float64 { return float64(fromBrain(e)) },
		func(f float64) uint16 { return toBrain(float32(f)) }}
	codecInt8 = codec[int8]{1,
		func(b []byte) int8 { return int8(b[0]) },
		func(b []byte, e int8) []byte { return append(b, byte(e)) },
		func(e int8) float64 { return float64(e) }, nil}
	codecUint8 = codec[uint8]{1,
		func(b []byte) uint8 { return b[0] },
		func(b []byte, e uint8) []byte { return append(b, e) },
		func(e uint8) float64 { return float64(e) }, nil}
)

// newSpace returns the space of an empty index.
func newSpace(o Options) space {
	switch o.Type {
	case Float64:
		return newFloats(o, codec64)
	case Float16:
		return newHalves(o, codecHalf, widenHalves)
	case BFloat16:
		return newHalves(o, codecBrain, widenBrains)
	case Int8:
		return newInts(o, codecInt8)
	case Uint8:
		return newInts(o, codecUint8)
	}
	return newFloats(o, codec32)
}

func newStore[E, Q any](o Options, c codec[E]) *store[E, Q] {
	return &store[E, Q]{codec: c, dim: o.Dim, unit: o.Metric == Cosine && c.from != nil, all: slab.New[E](o.Dim)}
}

func itself[E any](v []E) []E { return v }

func newFloats[E float32 | float64](o Options, c codec[E]) space {
	s := newStore[E, E](o, c)
	s.view = itself[E]
	s.apart = func(q *query[E, E], _ uint32, v []E) float64 { return float64(1 - distance.Dot(v, q.v)) }
	if o.Metric == L2 {
		s.apart = func(q *query[E, E], _ uint32, v []E) float64 { return float64(distance.SquaredL2(v, q.v)) }
	}
	return s
}

func newHalves(o Options, c codec[uint16], widen func(dst []float32, v []uint16)) space {
	s := newStore[uint16, float32](o, c)
	s.widen = widen
	l2 := o.Metric == L2
	s.apart = func(q *query[uint16, float32], _ uint32, v []uint16) float64 {
		if len(q.other) < len(v) {
			q.other = make([]float32, len(v))
		}
		wide := q.other[:len(v)]
		widen(wide, v)
		if l2 {
			return float64(distance.SquaredL2(wide, q.v))
		}
		return float64(1 - distance.Dot(wide, q.v))
	}
	return s
}

func newInts[E int8 | uint8](o Options, c codec[E]) space {
	s := newStore[E, E](o, c)
	s.view = itself[E]
	switch o.Metric {
	case L2:
		s.apart = func(q *query[E, E], _ uint32, v []E) float64 { return float64(distance.SquaredL2Ints(v, q.v)) }
	case IP:
		s.apart = func(q *query[E, E], _ uint32, v []E) float64 { return float64(1 - distance.DotInts(v, q.v)) }
	case Cosine:
		s.norms = slab.New[float32](1)
		s.apart = func(q *query[E, E], node uint32, v []E) float64 {
			norms := q.norm * s.norms.At(node)[0]
			if norms == 0 {
				return 1
			}
			return float64(1 - distance.DotInts(v, q.v)/norms)
		}
	}
	return s
}

// read decodes a vector into its stored form, and returns its length if that is needed.
func (s *store[E, Q]) read(v []E, b []byte) (norm float32) {
	for i := range v {
		v[i] = s.get(b[i*s.size:])
	}
	if !s.unit && s.norms == nil {
		return 0
	}
	sum := 0.0
	for _, e := range v {
		sum += float64(s.float(e) * s.float(e))
	}
	length := math.Sqrt(sum)
	if s.size < 8 {
		length = float64(float32(length))
	}
	if s.unit && length > 0 {
		for i, e := range v {
			v[i] = s.from(s.float(e) / length)
		}
	}
	return float32(length)
}

func (s *store[E, Q]) push() []E {
	if s.norms != nil {
		s.norms.Push()
	}
	return s.all.Push()
}

func (s *store[E, Q]) put(node uint32, vector []byte) {
	if int(node) == s.all.Len() {
		s.push()
	}
	norm := s.read(s.all.At(node), vector)
	if s.norms != nil {
		s.norms.At(node)[0] = norm
	}
}

func (s *store[E, Q]) holds(node uint32, vector []byte) bool {
	v := make([]E, s.dim)
	s.read(v, vector)
	var a, b [8]byte
	for i, e := range s.all.At(node) {
		if string(s.add(a[:0], e)) != string(s.add(b[:0], v[i])) {
			return false
		}
	}
	return true
}

func (s *store[E, Q]) append(dst []byte, node uint32) []byte {
	for _, e := range s.all.At(node) {
		dst = s.add(dst, e)
	}
	if s.norms != nil {
		dst = order.AppendUint32(dst, math.Float32bits(s.norms.At(node)[0]))
	}
	return dst
}

func (s *store[E, Q]) kept() int {
	if s.norms != nil {
		return s.size*s.dim + 4
	}
	return s.size * s.dim
}

func (s *store[E, Q]) restore(data []byte) {
	v := s.push()
	for i := range v {
		v[i] = s.get(data[i*s.size:])
	}
	if s.norms != nil {
		s.norms.At(uint32(s.norms.Len() - 1))[0] = math.Float32frombits(order.Uint32(data[s.size*s.dim:]))
	}
}

func (s *store[E, Q]) bytes() int {
	n := s.size * s.all.Room()
	if s.norms != nil {
		n += 4 * s.norms.Room()
	}
	return n
}

// query is a vector to compare others with.
type query[E, Q any] struct {
	s    *store[E, Q]
	v    []Q
	norm float32

	mine, other []Q // buffers for v and for the vector compared with; nil if Q is E
	fetches     prefetch.List
}

// take sets the query to a vector; it may keep a view of it.
func (q *query[E, Q]) take(s *store[E, Q], v []E, norm float32) {
	q.s, q.norm = s, norm
	if s.view != nil {
		q.v = s.view(v)
		return
	}
	if len(q.mine) < len(v) {
		q.mine = make([]Q, len(v))
	}
	q.v = q.mine[:len(v)]
	s.widen(q.v, v)
}

func (s *store[E, Q]) measure(vector []byte) measure {
	v := make([]E, s.dim)
	norm := s.read(v, vector)
	q := new(query[E, Q])
	q.take(s, v, norm)
	return q
}

// Query implements graph.Space.
func (s *store[E, Q]) Query(node uint32, reuse graph.Query) graph.Query {
	q, ok := reuse.(*query[E, Q])
	if !ok {
		q = new(query[E, Q])
	}
	norm := float32(0)
	if s.norms != nil {
		norm = s.norms.At(node)[0]
	}
	q.take(s, s.all.At(node), norm)
	return q
}

// Release implements graph.Query.
func (q *query[E, Q]) Release() { q.s, q.v = nil, nil }

func (q *query[E, Q]) exact(node uint32) float64 {
	return number(q.s.apart(q, node, q.s.all.At(node)))
}

// number turns a NaN into an infinite distance.
func number(d float64) float64 {
	if d != d {
		return math.Inf(1)
	}
	return d
}

// Distance implements graph.Query.
func (q *query[E, Q]) Distance(node uint32) float32 { return float32(q.exact(node)) }

// How many vectors, and how many cache lines of each, are prefetched at once; the processor itself fetches further
// lines.
const (
	fetchedLines = 3
	fetched      = prefetch.Len / fetchedLines
)

// Distances implements graph.Query.
func (q *query[E, Q]) Distances(nodes []uint32, distances []float32) {
	all := q.s.all.View()
	size := q.s.size * q.s.dim
	for len(nodes) > 0 {
		some := nodes[:min(fetched, len(nodes))]
		for _, node := range some {
			p := uintptr(unsafe.Pointer(unsafe.SliceData(all.At(node))))
			q.fetches.Add(p, min(size, fetchedLines*prefetch.LineSize))
			if size > 2*prefetch.LineSize {
				q.fetches.Add(p+prefetch.LineSize, 1)
			}
		}
		q.fetches.Fetch()
		for i, node := range some {
			distances[i] = float32(number(q.s.apart(q, node, all.At(node))))
		}
		nodes, distances = nodes[len(some):], distances[len(some):]
	}
}
