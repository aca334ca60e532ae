package graph

import (
	"maps"
	"slices"
	"sync/atomic"

	"github.com/atomredis/atomredis/engine/vectors/slab"
)

// record has the links of a node on a level: their number plus 1, or 0 if there is no such node; the position of the
// next level's record plus 1; the links, with room for the maximum. A record above the lowest level then has the number
// of its node, and one of a Shared graph the number of links that lead to the node.
type record []uint32

const recordHead = 2

func (r record) len() int { return int(r[0]) - 1 }

// links returns the first n links.
func (r record) links(n int) []uint32 { return r[recordHead : recordHead+n] }

// in returns the number of links that lead to the node, in a Shared graph.
func (r record) in() *uint32 { return &r[len(r)-1] }

// state has all records of a graph.
type state struct {
	bottom *slab.Slab[uint32] // records of the lowest level, by node
	upper  *slab.Slab[uint32] // records of the levels above
	free   []uint32           // unused records of upper
	live   int                // number of nodes
	going  map[uint32]bool    // nodes that were unlinked and not cleared; others have no entry
	swept  uint32             // where Sweep continues
	added  uint64             // nodes ever added
}

func newState(c Settings) state {
	ins := 0
	if c.Shared {
		ins = 1
	}
	return state{
		bottom: slab.New[uint32](recordHead + 2*c.M + ins),
		upper:  slab.New[uint32](recordHead + c.M + 1 + ins),
		going:  map[uint32]bool{},
	}
}

// owner returns the node of a record above the lowest level.
func (g *Graph) owner(r record) *uint32 { return &r[recordHead+g.M] }

func (s state) clone() state {
	s.bottom, s.upper = s.bottom.Clone(), s.upper.Clone()
	s.free, s.going = slices.Clone(s.free), maps.Clone(s.going)
	return s
}

// Bytes returns the memory that the links take.
func (s *state) Bytes() int { return 4 * (s.bottom.Room() + s.upper.Room() + cap(s.free)) }

// Room returns the maximum number of links of a node on a level.
func (g *Graph) Room(level int) int {
	if level == 0 {
		return 2 * g.M
	}
	return g.M
}

// record returns the record of a node on a level, nil if the node is not on that level.
func (g *Graph) record(id uint32, level int) record {
	r := g.bottom.At(id)
	for ; level > 0; level-- {
		up := atomic.LoadUint32(&r[1])
		if up == 0 {
			return nil
		}
		r = g.upper.At(up - 1)
	}
	return r
}

// has reports whether a number that was used before belongs to a node now.
func (g *Graph) has(id uint32) bool { return g.bottom.At(id)[0] > 0 && !g.going[id] }

// Level returns the highest level of a node; it has links there and below.
func (g *Graph) Level(id uint32) (level int) {
	for r := g.bottom.At(id); r[1] > 0; level++ {
		r = g.upper.At(r[1] - 1)
	}
	return level
}

// Links returns the nodes that a node links to on one of its levels. They are a view until the graph changes.
func (g *Graph) Links(id uint32, level int) []uint32 {
	r := g.record(id, level)
	return r.links(r.len())
}

// appear creates the records of a new node.
func (g *Graph) appear(id uint32, level int) {
	g.live++
	if int(id) == g.bottom.Len() {
		g.bottom.Push()
	}
	up := uint32(0)
	for range level { // from the highest level down
		at, r := g.newUpper()
		r[1], *g.owner(r) = up, id
		atomic.StoreUint32(&r[0], 1)
		up = at + 1
	}
	r := g.bottom.At(id)
	atomic.StoreUint32(&r[1], up)
	atomic.StoreUint32(&r[0], 1)
}

func (g *Graph) newUpper() (at uint32, r record) {
	if n := len(g.free); n > 0 {
		at, g.free = g.free[n-1], g.free[:n-1]
		return at, g.upper.At(at)
	}
	at = uint32(g.upper.Len())
	return at, g.upper.Push()
}

// In returns how many links still lead to a node of a Shared graph.
func (g *Graph) In(id uint32) (n int) {
	for l := range g.Level(id) + 1 {
		n += int(*g.record(id, l).in())
	}
	return n
}

// Clear frees the records of an unlinked node to which no link leads: its number may be reused.
func (g *Graph) Clear(id uint32) {
	g.before(id)
	if g.Shared {
		g.letGo(id)
	}
	delete(g.going, id)
	for r := record(g.bottom.At(id)); ; {
		up := r[1]
		clear(r)
		if up == 0 {
			break
		}
		g.free = append(g.free, up-1)
		r = g.upper.At(up - 1)
	}
	if len(g.free) == g.upper.Len() && !g.Shared {
		g.upper, g.free = slab.New[uint32](g.upper.Width()), nil
	}
}

// Pop removes the highest number, which must be unused.
func (g *Graph) Pop() { g.bottom.Pop() }

// Renumber gives a node another number, which must be cleared. The graph must not be Shared.
func (g *Graph) Renumber(from, to uint32) {
	for l := range g.Level(from) + 1 {
		for _, n := range g.Links(from, l) {
			g.drop(n, from, l)
			g.add(n, to, l)
		}
	}
	g.before(from)
	g.before(to)
	copy(g.bottom.At(to), g.bottom.At(from))
	clear(g.bottom.At(from))
	for up := g.bottom.At(to)[1]; up > 0; {
		r := g.upper.At(up - 1)
		*g.owner(r) = to
		up = r[1]
	}
	if entry, top, _ := g.Entry(); entry == from {
		g.setEntry(to, top)
	}
}
