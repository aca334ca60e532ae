// Package vectors has vector sets: elements with names, vectors and attributes, and a graph (HNSW) by which those that
// are near a vector are found without looking at all.
//
// The nodes of the graph are numbered from 0 without gaps: what belongs to a node lies in arrays under its number. When
// one is removed the last one takes its number. All links go both ways, so that a node knows who has to forget it.
// Links are kept in the order of their numbers. The level of a node follows from how many were added before, and a
// projection from a seed that is kept: the same changes, repeated, make the same set, bit for bit on any machine.
//
// set.go has the elements, quant.go the vectors, space.go their distances for the graph of package graph, order.go finds
// elements by their names, project.go reduces dimensions, stored.go has the stored forms.
package vectors

import (
	"encoding/binary"
	"math"
	"strings"
	"unsafe"

	"github.com/atomredis/atomredis/engine/delta"
	"github.com/atomredis/atomredis/engine/listpack"
	"github.com/atomredis/atomredis/engine/vectors/graph"
	"github.com/atomredis/atomredis/engine/vectors/slab"
)

// Limits of what a set can be.
const (
	MaxDim = 1 << 16 // dimensions of a vector
	MinM   = 4
	MaxM   = 4096
	MaxEF  = 1_000_000 // of additions
)

// Defaults.
const (
	DefaultM       = 16
	DefaultBuildEF = 200
)

// Settings are what a set is made with.
type Settings struct {
	Dim   int // of the vectors that are kept, from 1 to MaxDim
	Quant Quantisation
	M     int // links of a node on each level, twice as many on the lowest one; from MinM to MaxM
	Input int // dimensions of what is projected to Dim ones; 0 is no projection
}

// Set is a vector set. There is no zero Set.
type Set struct {
	dim   int
	quant Quantisation
	m     int
	proj  Projection // Input is 0 if there is none
	seed  uint64

	words  *slab.Slab[uint64]  // nil in None
	floats *slab.Slab[float32] // nil but in None
	norms  *slab.Slab[float32]
	texts  *slab.Slab[string] // see text
	graph  *graph.Graph
	order  order

	withAttributes int
	textBytes      int // that texts take

	large bool // stored in parts
	log   *delta.Log
}

// seed is what the levels and projections of new sets are made from.
const seed = 0x2545f4914f6cdd1d

// New returns an empty set.
func New(c Settings) *Set {
	s := &Set{dim: c.Dim, quant: c.Quant, m: c.M, proj: Projection{c.Input, c.Dim, seed}, seed: seed}
	s.prepare()
	return s
}

// prepare makes the arrays of an empty set.
func (s *Set) prepare() {
	words, floats := s.quant.code(s.dim)
	if words > 0 {
		s.words = slab.New[uint64](words)
	} else {
		s.floats = slab.New[float32](floats)
	}
	s.norms, s.texts = slab.New[float32](1), slab.New[string](1)
	s.graph = graph.New(s, graph.Settings{M: s.m, Seed: s.seed, Before: s.noteLinks})
	s.order.names = s.Name
}

// Len returns the number of elements.
func (s *Set) Len() int { return s.norms.Len() }

// Dim returns the number of dimensions of the vectors that are kept.
func (s *Set) Dim() int { return s.dim }

// M returns how many links a node has at most on a level, but for the lowest one.
func (s *Set) M() int { return s.m }

// Quant returns how vectors are kept.
func (s *Set) Quant() Quantisation { return s.quant }

// Projection returns the projection of the set, nil if it has none.
func (s *Set) Projection() *Projection {
	if s.proj.Input == 0 {
		return nil
	}
	return &s.proj
}

// WithAttributes returns the number of elements that have attributes.
func (s *Set) WithAttributes() int { return s.withAttributes }

// TopLevel returns the highest level of the graph; the lowest is 0.
func (s *Set) TopLevel() int {
	_, top, _ := s.graph.Entry()
	return top
}

// Level returns the level of node id, on which and below it has links.
func (s *Set) Level(id uint32) int { return s.graph.Level(id) }

// Links returns the nodes that node id is linked with on a level. They are a view until the set changes.
func (s *Set) Links(id uint32, level int) []uint32 { return s.graph.Links(id, level) }

// Added returns how many vectors were ever added.
func (s *Set) Added() uint64 { return s.graph.Added() }

// A text is the length of a name (unsigned varint), the name and the attributes. That there are attributes although they
// are empty is said by the length, which is a byte longer than it need be.

// makeText returns a text; attributes are nil if there are none.
func makeText(name, attributes []byte) string {
	b := make([]byte, 0, 1+binary.MaxVarintLen32+len(name)+len(attributes))
	b = binary.AppendUvarint(b, uint64(len(name)))
	if attributes != nil && len(attributes) == 0 {
		b[len(b)-1] |= 0x80
		b = append(b, 0)
	}
	b = append(b, name...)
	b = append(b, attributes...)
	return strings.Clone(unsafe.String(unsafe.SliceData(b), len(b)))
}

// text returns name and attributes of a node.
func (s *Set) text(id uint32) (name, attributes string) {
	t := s.texts.At(id)[0]
	if t[0] < 0x80 {
		n := 1 + int(t[0])
		return t[1:n], t[n:]
	}
	n, w := binary.Uvarint(unsafe.Slice(unsafe.StringData(t), min(len(t), 1+binary.MaxVarintLen32)))
	return t[w : w+int(n)], t[w+int(n):]
}

// Name returns the name of node id. It is a view, which lasts as long as the element.
func (s *Set) Name(id uint32) string {
	name, _ := s.text(id)
	return name
}

// Attributes returns the attributes of node id, which may be empty; ok is false if it has none. They are a view, which
// lasts until they change.
func (s *Set) Attributes(id uint32) (attributes string, ok bool) {
	name, attributes := s.text(id)
	return attributes, attributes != "" || len(s.texts.At(id)[0])-len(name) > uvarintLen(uint64(len(name)))
}

// view returns a string that shares the memory of b.
func view(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }

// Find returns the node of an element. Nodes keep their numbers until the set changes.
func (s *Set) Find(name []byte) (id uint32, ok bool) { return s.order.get(view(name)) }

// Range calls fn with the nodes whose names are not below name, in the byte order of their names, until it returns
// false.
func (s *Set) Range(name []byte, fn func(id uint32) bool) { s.order.from(view(name), fn) }

// SetAttributes gives node id other attributes; none if they are empty.
func (s *Set) SetAttributes(id uint32, attributes []byte) {
	name, _ := s.text(id)
	was, had := s.Attributes(id)
	if len(attributes) == 0 {
		attributes = nil
	}
	if has := attributes != nil; has == had && was == string(attributes) {
		return
	}
	s.noteNode(id)
	if had {
		s.withAttributes--
	}
	if attributes != nil {
		s.withAttributes++
	}
	s.setText(id, makeText(unsafe.Slice(unsafe.StringData(name), len(name)), attributes))
	s.noteMeta()
}

func (s *Set) setText(id uint32, text string) {
	t := s.texts.At(id)
	s.textBytes += listpack.Allocated(len(text)) - listpack.Allocated(len(t[0]))
	t[0] = text
}

// AppendRaw appends the components of node id to dst as they are kept: a byte for each in Q8, words of 64 bits in Bin,
// floats of 32 bits otherwise, little-endian. norm is what the vector's length was, unit the largest component in Q8.
func (s *Set) AppendRaw(dst []byte, id uint32) (out []byte, norm, unit float32) {
	if s.quant == Q8 {
		unit = range8(s.words.At(id))
	}
	return s.appendRaw(dst, id), s.norms.At(id)[0], unit
}

// AppendVector appends the vector of node id, about as it was added, to dst. In Bin it has 1 and -1.
func (s *Set) AppendVector(dst []float32, id uint32) []float32 {
	from := len(dst)
	dst = s.appendUnit(dst, id)
	if s.quant != Bin {
		norm := s.norms.At(id)[0]
		for i := range dst[from:] {
			dst[from+i] *= norm
		}
	}
	return dst
}

// appendUnit appends the vector of node id as it is kept, normalised but for what quantisation has changed.
func (s *Set) appendUnit(dst []float32, id uint32) []float32 {
	switch s.quant {
	case Q8:
		words := s.words.At(id)
		largest := range8(words)
		for i := range s.dim {
			dst = append(dst, float32(float32(component8(words, i))*largest)/127)
		}
	case Bin:
		words := s.words.At(id)
		for i := range s.dim {
			dst = append(dst, float32(int(words[i/64]>>(i%64)&1)*2-1))
		}
	case None:
		dst = append(dst, s.floats.At(id)...)
	}
	return dst
}

// Project returns a vector in the dimensions of the set: the same one, or its projection if it has the dimensions that
// are projected. The result may have any number of dimensions if v has.
func (s *Set) Project(v []float32) []float32 {
	if s.proj.Input == len(v) && len(v) > 0 {
		return s.proj.project(v)
	}
	return v
}

// Add adds an element whose name the set does not have. v has Dim components, none of which is a NaN; it is normalised.
// attributes are nil if it has none. ef, from 1 to MaxEF, is how many nodes are candidates for links.
func (s *Set) Add(name []byte, v []float32, attributes []byte, ef int) {
	s.noteMeta()
	id := uint32(s.Len())
	s.note(nodePart, id) // which are not there yet
	s.note(linksPart, id)
	norm := Normalise(v)
	switch s.quant {
	case Q8:
		encode8(s.words.Push(), v)
	case Bin:
		encodeBin(s.words.Push(), v)
	case None:
		copy(s.floats.Push(), v)
	}
	s.norms.Push()[0] = norm
	s.texts.Push()
	s.setText(id, makeText(name, attributes))
	if attributes != nil {
		s.withAttributes++
	}
	s.order.insert(s.Name(id), id)
	s.graph.Add(id, ef)
	s.large = s.large || s.isLarge()
}

// Remove removes node id. The last node gets its number.
func (s *Set) Remove(id uint32) {
	s.noteMeta()
	last := uint32(s.Len() - 1)
	for _, id := range [...]uint32{id, last} {
		s.note(nodePart, id)
		s.note(linksPart, id)
	}
	s.graph.Unlink(id)
	s.graph.Clear(id)
	if _, has := s.Attributes(id); has {
		s.withAttributes--
	}
	s.order.remove(s.Name(id))
	s.setText(id, "")
	if id != last {
		s.move(last, id)
	}
	if s.quant == None {
		s.floats.Pop()
	} else {
		s.words.Pop()
	}
	s.norms.Pop()
	s.texts.Pop()
	s.graph.Pop()
}

// move gives the last node the number of one that is gone.
func (s *Set) move(last, id uint32) {
	if s.quant == None {
		copy(s.floats.At(id), s.floats.At(last))
	} else {
		copy(s.words.At(id), s.words.At(last))
	}
	s.norms.At(id)[0] = s.norms.At(last)[0]
	s.order.renumber(s.Name(last), id)
	s.texts.At(id)[0] = s.texts.At(last)[0]
	s.graph.Renumber(last, id)
}

// Clone returns a copy of the set that notes no changes.
func (s *Set) Clone() *Set {
	c := *s
	c.log = nil
	if s.quant == None {
		c.floats = s.floats.Clone()
	} else {
		c.words = s.words.Clone()
	}
	c.norms, c.texts = s.norms.Clone(), s.texts.Clone()
	c.graph = s.graph.Clone(&c, c.noteLinks)
	c.order = order{make([][]uint32, len(s.order.blocks)), c.Name}
	for i, b := range s.order.blocks {
		c.order.blocks[i] = append(make([]uint32, 0, cap(b)), b...)
	}
	return &c
}

// MemoryUsage returns how many bytes the set takes.
func (s *Set) MemoryUsage() int {
	n := int(unsafe.Sizeof(*s)) + 4*s.norms.Room() + int(unsafe.Sizeof(""))*s.texts.Room() + s.textBytes +
		s.graph.Bytes() + len(s.order.blocks)*(4*blockSize+int(unsafe.Sizeof([]uint32{})))
	if s.quant == None {
		return n + 4*s.floats.Room()
	}
	return n + 8*s.words.Room()
}

// Score returns the similarity of two nodes: 1 is the same direction, 0 the opposite one.
func (s *Set) Score(a, b uint32) float64 {
	q := newQuery()
	defer q.Release()
	q.of(s, a)
	return score(s.distance(q, b))
}

// score is the similarity for a distance.
func score(distance float32) float64 { return min(max(1-float64(distance)/2, 0), 1) } // distances are rounded

// Query is a vector that a search begins with.
type Query struct {
	node   uint32
	vector []float32 // nil if node is meant
}

// QueryNode returns a query with the vector of node id.
func QueryNode(id uint32) Query { return Query{node: id} }

// QueryVector returns a query with a vector of the dimensions of the set, without NaNs, which is normalised.
func QueryVector(v []float32) Query { return Query{vector: v} }

// Dim returns the number of dimensions of the vector of a query.
func (q Query) Dim() int { return len(q.vector) }

// Search is how similar elements are looked for.
type Search struct {
	Count int // how many are wanted, at least 1
	EF    int // how many candidates there are, if more than Count; 0 is as many as the size of the set asks for
	// Accept says which nodes are wanted; nil for all.
	Accept func(id uint32) bool
	// Effort is the number of nodes after whose neighbours the search for nodes that are accepted ends; 0 is no end.
	Effort int
	All    bool // look at all nodes
}

// Found is a node that was found.
type Found struct {
	ID    uint32
	Score float64 // from 1, the same direction, to 0
}

// The default EF of searches grows with the root of the number of elements, so that even for random vectors at least 95
// of the 100 nearest are found among 100,000.
const (
	efByRoot     = 3.5
	minDefaultEF = 100
	maxDefaultEF = 1200
)

// defaultEF returns how many candidates a search has if nothing is said.
func (s *Set) defaultEF() int {
	return min(max(int(efByRoot*math.Sqrt(float64(s.Len()))), minDefaultEF), maxDefaultEF)
}

// Work returns about how much work a search is: nodes that are gone through. The usual number of candidates counts as
// none, so that no set is copied for it.
func (s *Set) Work(c Search) int {
	n := s.Len()
	if !c.All {
		looked := min(n, max(c.EF, c.Count))
		if c.Accept != nil {
			looked = max(looked, min(n/s.m, c.Effort)*s.m) // which Accept is asked about
		}
		n = looked
	}
	return n * (1 + s.dim/dimsAsOne)
}

// dimsAsOne is how many dimensions take as long as all else that is done for a node.
const dimsAsOne = 128

// Similar returns the nodes that are most similar to a query, the most similar first.
func (s *Set) Similar(from Query, c Search) []Found {
	if s.Len() == 0 {
		return nil
	}
	w, q := graph.NewScratch(), newQuery()
	defer w.Release()
	defer q.Release()
	if from.vector == nil {
		from.vector = s.appendUnit(nil, from.node)
	}
	q.take(s, from.vector)
	if c.EF == 0 {
		c.EF = s.defaultEF()
	}
	c.Count = min(c.Count, s.Len())
	var nodes graph.Farthest
	if c.All {
		nodes = s.scan(q, c.Count, c.Accept)
	} else {
		nodes, _ = s.graph.Search(w, q, min(max(c.EF, c.Count), s.Len()), c.Accept, c.Effort)
		for i, k := range nodes {
			nodes[i] = graph.MakeKey(s.distance(q, k.ID()), k.ID())
		}
	}
	nodes.Sort()
	found := make([]Found, min(c.Count, len(nodes)))
	for i := range found {
		found[i] = Found{nodes[i].ID(), score(nodes[i].Distance())}
	}
	return found
}

// scan looks at all nodes and returns the count nearest.
func (s *Set) scan(q *query, count int, accept func(id uint32) bool) (found graph.Farthest) {
	for id := range uint32(s.Len()) {
		k := graph.MakeKey(s.distance(q, id), id)
		switch {
		case len(found) == count && k >= found[0] || accept != nil && !accept(id):
		case len(found) < count:
			found.Push(k)
		default:
			found.Replace(k)
		}
	}
	return found
}
