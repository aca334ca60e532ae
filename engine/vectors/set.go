// Package vectors has vector sets: elements with names, vectors and attributes, and a graph (HNSW) that finds those
// near a vector without visiting all.
//
// The nodes of the graph are numbered from 0 without gaps; the data of a node is in arrays under its number. When a
// node is removed, the last one takes its number. All links go both ways, so a node knows which others link to it.
// Links are sorted by number. The level of a node follows from the number of nodes added before, and a projection from
// a stored seed: repeating the same changes makes the same set, bit for bit on any machine.
//
// set.go has the elements, quant.go the vectors, space.go their distances for package graph, order.go finds elements by
// name, project.go reduces dimensions, stored.go has the stored forms, adopt.go takes over sets of another server.
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

// Limits of a set.
const (
	MaxDim = 1 << 16 // dimensions of a vector
	MinM   = 4
	MaxM   = 4096
	MaxEF  = 1_000_000 // for additions
)

// Defaults.
const (
	DefaultM       = 16
	DefaultBuildEF = 200
)

// Settings are the parameters of a set.
type Settings struct {
	Dim   int // of the stored vectors, from 1 to MaxDim
	Quant Quantisation
	M     int // links of a node on each level, twice as many on the lowest one; from MinM to MaxM
	Input int // dimensions before projection to Dim; 0 is no projection
}

// Set is a vector set. There is no zero Set.
type Set struct {
	dim   int
	quant Quantisation
	m     int
	proj  Projection // Input is 0 if there is none
	seed  uint64

	words  *slab.Slab[uint64]  // nil for None
	floats *slab.Slab[float32] // nil except for None
	norms  *slab.Slab[float32]
	texts  *slab.Slab[string] // see text
	graph  *graph.Graph
	order  order

	withAttributes int
	textBytes      int // size of texts

	large bool // stored in parts
	log   *delta.Log
}

// seed is the seed for the levels and projections of new sets.
const seed = 0x2545f4914f6cdd1d

// New returns an empty set.
func New(c Settings) *Set {
	s := &Set{dim: c.Dim, quant: c.Quant, m: c.M, proj: Projection{c.Input, c.Dim, seed, nil}, seed: seed}
	s.prepare()
	return s
}

// prepare creates the arrays of an empty set.
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

// Dim returns the number of dimensions of the stored vectors.
func (s *Set) Dim() int { return s.dim }

// M returns the maximum number of links of a node on a level, except the lowest.
func (s *Set) M() int { return s.m }

// Quant returns how vectors are stored.
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

// Level returns the highest level of node id; it has links there and below.
func (s *Set) Level(id uint32) int { return s.graph.Level(id) }

// Links returns the nodes that node id links to on a level. They are a view until the set changes.
func (s *Set) Links(id uint32, level int) []uint32 { return s.graph.Links(id, level) }

// Room returns how many links a node can have on a level.
func (s *Set) Room(level int) int { return s.graph.Room(level) }

// Added returns how many vectors were ever added.
func (s *Set) Added() uint64 { return s.graph.Added() }

// A text is the length of a name (unsigned varint), the name and the attributes. If the attributes exist but are empty,
// the length takes one byte more than necessary.

// makeText returns a text; attributes is nil if there are none.
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

// text returns the name and the attributes of a node.
func (s *Set) text(id uint32) (name, attributes string) {
	t := s.texts.At(id)[0]
	if t[0] < 0x80 {
		n := 1 + int(t[0])
		return t[1:n], t[n:]
	}
	n, w := binary.Uvarint(unsafe.Slice(unsafe.StringData(t), min(len(t), 1+binary.MaxVarintLen32)))
	return t[w : w+int(n)], t[w+int(n):]
}

// Name returns the name of node id: a view, valid as long as the element exists.
func (s *Set) Name(id uint32) string {
	name, _ := s.text(id)
	return name
}

// Attributes returns the attributes of node id, which may be empty; ok is false if it has none. They are a view, valid
// until they change.
func (s *Set) Attributes(id uint32) (attributes string, ok bool) {
	name, attributes := s.text(id)
	return attributes, attributes != "" || len(s.texts.At(id)[0])-len(name) > uvarintLen(uint64(len(name)))
}

// view returns a string that shares the memory of b.
func view(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }

// Find returns the node of an element. Numbers of nodes are valid until the set changes.
func (s *Set) Find(name []byte) (id uint32, ok bool) { return s.order.get(view(name)) }

// Range calls fn with the nodes whose names are at least name, in the byte order of their names, until fn returns
// false.
func (s *Set) Range(name []byte, fn func(id uint32) bool) { s.order.from(view(name), fn) }

// SetAttributes sets the attributes of node id; empty ones remove them.
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

// AppendRaw appends the stored components of node id to dst: a byte each for Q8, 64-bit words for Bin, 32-bit floats
// otherwise, little-endian. norm is the vector's original length, unit the largest component in Q8.
func (s *Set) AppendRaw(dst []byte, id uint32) (out []byte, norm, unit float32) {
	if s.quant == Q8 {
		unit = range8(s.words.At(id))
	}
	return s.appendRaw(dst, id), s.norms.At(id)[0], unit
}

// AppendVector appends the approximate original vector of node id to dst. For Bin it has 1 and -1.
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

// appendUnit appends the stored vector of node id, normalised except for the effects of quantisation.
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

// Project returns a vector in the dimensions of the set: v itself, or its projection if it has the dimensions of the
// projection's input. If v fits neither, the result does not have Dim dimensions.
func (s *Set) Project(v []float32) []float32 {
	if s.proj.Input == len(v) && len(v) > 0 {
		return s.proj.project(v)
	}
	return v
}

// Add adds an element with a new name. v has Dim components without NaN; it is normalised. attributes is nil if there
// are none. ef, from 1 to MaxEF, is the number of candidates for links.
func (s *Set) Add(name []byte, v []float32, attributes []byte, ef int) {
	s.noteMeta()
	id := uint32(s.Len())
	s.note(nodePart, id) // the new node's parts
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

// move gives the last node the number of a removed one.
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

// Clone returns a copy that does not track its changes.
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
	n := int(unsafe.Sizeof(*s)) + 4*len(s.proj.matrix) + 4*s.norms.Room() + int(unsafe.Sizeof(""))*s.texts.Room() + s.textBytes +
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

// score returns the similarity for a distance.
func score(distance float32) float64 { return min(max(1-float64(distance)/2, 0), 1) } // distances are rounded

// Query is the vector that a search compares with.
type Query struct {
	node   uint32
	vector []float32 // nil if node is set
}

// QueryNode returns a query with the vector of node id.
func QueryNode(id uint32) Query { return Query{node: id} }

// QueryVector returns a query for a vector with the set's dimensions, without NaN; it is normalised.
func QueryVector(v []float32) Query { return Query{vector: v} }

// Dim returns the number of dimensions of a query's vector.
func (q Query) Dim() int { return len(q.vector) }

// Search has the parameters of a search.
type Search struct {
	Count int // number of results, at least 1
	EF    int // number of candidates, if more than Count; 0 chooses it by the size of the set
	// Accept says which nodes to return; nil for all.
	Accept func(id uint32) bool
	// Effort ends the search for accepted nodes after visiting the neighbours of this many nodes; 0 is no limit.
	Effort int
	All    bool // visit all nodes
}

// Found is a result of a search.
type Found struct {
	ID    uint32
	Score float64 // from 1 (same direction) to 0
}

// The default EF of searches grows with the square root of the number of elements, so that even with random vectors at
// least 95 of the 100 nearest are found among 100,000.
const (
	efByRoot     = 3.5
	minDefaultEF = 100
	maxDefaultEF = 1200
)

// defaultEF returns the default number of candidates of a search.
func (s *Set) defaultEF() int {
	return min(max(int(efByRoot*math.Sqrt(float64(s.Len()))), minDefaultEF), maxDefaultEF)
}

// Work returns the approximate amount of work of a search: the number of visited nodes. The default number of
// candidates counts as none, so that no set is copied for it.
func (s *Set) Work(c Search) int {
	n := s.Len()
	if !c.All {
		looked := min(n, max(c.EF, c.Count))
		if c.Accept != nil {
			looked = max(looked, min(n/s.m, c.Effort)*s.m) // Accept is called for these
		}
		n = looked
	}
	return n * (1 + s.dim/dimsAsOne)
}

// dimsAsOne is how many dimensions take as long as all other work for a node.
const dimsAsOne = 128

// Similar returns the nodes most similar to a query, most similar first.
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

// scan visits all nodes and returns the count nearest.
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
