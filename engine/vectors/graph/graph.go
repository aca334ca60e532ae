// Package graph has a graph (HNSW) that finds the nodes near a vector without visiting all. It knows only the numbers
// of nodes; a Space measures their distances.
//
// Links are sorted by number. The level of a node follows from the number of nodes added before: the same changes make
// the same graph on any machine.
//
// There are two kinds of graphs. In the first all links go both ways, so a node knows which others link to it, and
// removal is immediate. A Shared graph has one-way links. It finds more, above all if some nodes are near very many
// others and could not link back to all. A removed node is still visited until the others have dropped their links to
// it, which Sweep does step by step.
//
// A Shared graph can be searched by many goroutines while one changes it. Links are read and written atomically, in an
// order in which every reachable node leads on: a new node gets its links from the lowest level up, and its own before
// those back to it; a removed node keeps its own links until Clear. A search that reads a list of links during a change
// may miss one of them. A node may only be cleared after all searches have ended that began before In was 0; the owner
// ensures that.
package graph

import (
	"slices"
	"sort"
	"sync/atomic"
)

// Space measures the distances of nodes.
type Space interface {
	// Query returns a query for the vector of a node. It may reuse a query that is no longer needed, if not nil.
	Query(id uint32, reuse Query) Query
}

// Query is a vector to compare nodes with. No distance is a NaN.
type Query interface {
	// Distance returns the approximate distance of a node.
	Distance(id uint32) float32
	// Distances sets the distances of the nodes in ids; both slices have the same length.
	Distances(ids []uint32, distances []float32)
	// Release ends the query's views of the space; then the query may be reused.
	Release()
}

// Settings are the parameters of a graph.
type Settings struct {
	M      int    // links of a node on each level, twice as many on the lowest one
	Seed   uint64 // of the levels
	Shared bool   // links go one way, and searches run while the graph changes
	// Before is called before links of a node change, appear or go; it may be nil.
	Before func(id uint32)
}

// Graph is a graph. Use New to make one.
type Graph struct {
	Settings
	space Space
	state

	entry atomic.Uint64 // a node on the highest level, and above 32 bits that level plus 1; 0 without nodes
}

// New returns an empty graph.
func New(space Space, c Settings) *Graph {
	return &Graph{Settings: c, space: space, state: newState(c)}
}

// Clone returns a copy with another space that has the same vectors.
func (g *Graph) Clone(space Space, before func(id uint32)) *Graph {
	c := &Graph{Settings: g.Settings, space: space, state: g.state.clone()}
	c.Before = before
	c.entry.Store(g.entry.Load())
	return c
}

// Live returns the number of nodes.
func (g *Graph) Live() int { return g.live }

// Added returns how many nodes were ever added.
func (g *Graph) Added() uint64 { return g.added }

// Entry returns a node on the highest level, and that level; zeros and false if there are no nodes.
func (g *Graph) Entry() (id uint32, top int, ok bool) {
	e := g.entry.Load()
	return uint32(e), max(int(e>>32)-1, 0), e > 0
}

func (g *Graph) setEntry(id uint32, top int) { g.entry.Store(uint64(top+1)<<32 | uint64(id)) }

// Mix returns a pseudo-random number that is a function of x.
func Mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// MaxLevel is the highest possible level.
const MaxLevel = 16

// nextLevel returns the level of the next added node. One in M nodes is also on the next level.
func (g *Graph) nextLevel() (level int) {
	h := Mix(g.Seed + g.added)
	for level < MaxLevel && h%uint64(g.M) == 0 {
		h /= uint64(g.M)
		level++
	}
	return level
}

func (g *Graph) before(id uint32) {
	if g.Before != nil {
		g.Before(id)
	}
}

// add adds a one-way link from a to b unless it exists. There must be room.
func (g *Graph) add(a, b uint32, level int) {
	g.before(a)
	r := g.record(a, level)
	n := r.len()
	links := r.links(n + 1)
	i := sort.Search(n, func(i int) bool { return links[i] >= b })
	if i < n && links[i] == b {
		return
	}
	if !g.Shared {
		copy(links[i+1:], links[i:n])
		links[i] = b
		r[0]++
		return
	}
	for k := n; k > i; k-- {
		atomic.StoreUint32(&links[k], links[k-1])
	}
	atomic.StoreUint32(&links[i], b)
	atomic.AddUint32(&r[0], 1)
	*g.record(b, level).in()++
}

// drop removes the one-way link from a to b, if it exists.
func (g *Graph) drop(a, b uint32, level int) {
	g.before(a)
	r := g.record(a, level)
	n := r.len()
	links := r.links(n)
	i, ok := slices.BinarySearch(links, b)
	if !ok {
		return
	}
	if !g.Shared {
		copy(links[i:], links[i+1:])
		links[n-1] = 0
		r[0]--
		return
	}
	for ; i < n-1; i++ {
		atomic.StoreUint32(&links[i], links[i+1])
	}
	atomic.StoreUint32(&r[0], uint32(n)) // one link less: the stored number is one higher
	*g.record(b, level).in()--
}

// full reports whether a node has no room for more links on a level.
func (g *Graph) full(id uint32, level int) bool {
	return g.record(id, level).len() == g.Room(level)
}

// Add adds a node to the graph. ef is the number of candidates for its links. Its number is that of a cleared node, or
// the lowest that was never used.
func (g *Graph) Add(id uint32, ef int) {
	g.before(id)
	level := g.nextLevel()
	g.added++
	g.appear(id, level)
	others := g.live - 1
	entry, top, ok := g.Entry()
	if !ok {
		g.setEntry(id, level)
		return
	}
	w := NewScratch()
	defer w.Release()
	q := w.queryOf(g, id)
	low := min(level, top)
	at := g.descend(w, q, entry, top, low)
	for len(w.candidates) <= low {
		w.candidates = append(w.candidates, nil)
	}
	for l := low; l >= 0; l-- {
		g.search(w, q, at, min(ef, others), l, g.staying(), 0)
		if len(w.found) == 0 { // nodes being removed lead to no other
			w.found.Push(MakeKey(q.Distance(entry), entry))
		}
		w.found.Sort()
		w.candidates[l] = append(w.candidates[l][:0], w.found...)
		at = w.found[0].ID()
	}
	for l := range low + 1 {
		chosen := g.choose(w, w.candidates[l], g.M)
		for i, other := range chosen {
			g.connect(w, id, other, l, i < minForced)
		}
		if g.reached(id, l) == 0 { // all others need their links
			g.makeWay(w, id, chosen[0], l)
		}
	}
	if level > top {
		g.setEntry(id, level)
	}
}

// choose returns those candidates, which are sorted by distance to a node, to which the node should link: first the
// ones that are nearer to the node than to any chosen before, so that links lead in all directions; then the nearest
// others. It overwrites the candidates.
func (g *Graph) choose(w *Scratch, candidates []Key, most int) []uint32 {
	chosen := w.nodes[:0]
	rest := candidates[:0]
	for _, k := range candidates {
		if len(chosen) == most/2 {
			rest = append(rest, k)
			continue
		}
		if g.nearer(w, k, chosen) {
			rest = append(rest, k)
		} else {
			chosen = append(chosen, k.ID())
		}
	}
	for _, k := range rest {
		if len(chosen) == most {
			break
		}
		chosen = append(chosen, k.ID())
	}
	w.nodes = chosen
	return chosen
}

// nearer reports whether a node is nearer to one of others than its key says.
func (g *Graph) nearer(w *Scratch, k Key, others []uint32) bool {
	if len(others) == 0 {
		return false
	}
	q := w.otherOf(g, k.ID())
	for _, other := range others {
		if q.Distance(other) < k.Distance() {
			return true
		}
	}
	return false
}

// staying returns a filter that accepts nodes that are not being removed; nil if there are no others.
func (g *Graph) staying() func(id uint32) bool {
	if len(g.going) == 0 {
		return nil
	}
	return func(id uint32) bool { return !g.going[id] }
}

// makeWay links a node with another one. If that is full, it gives up its farthest link, preferably to a node that has
// other incoming links.
func (g *Graph) makeWay(w *Scratch, id, other uint32, level int) {
	far, alone := Key(0), Key(0)
	if g.full(other, level) {
		q := w.otherOf(g, other)
		for _, l := range g.Links(other, level) {
			if k := MakeKey(q.Distance(l), l); g.Shared && g.reached(l, level) > 1 || !g.Shared {
				far = max(far, k)
			} else {
				alone = max(alone, k)
			}
		}
		if far == 0 {
			far = alone
		}
		g.part(other, far.ID(), level)
	}
	for _, n := range [...]uint32{other, far.ID()} {
		if n == other || far > 0 && g.reached(n, level) == 0 {
			if !g.full(id, level) {
				g.add(id, n, level)
			}
			if n == other || !g.full(n, level) {
				g.add(n, id, level)
			}
		}
	}
}

// part removes a link, both ways unless links are one-way.
func (g *Graph) part(a, b uint32, level int) {
	g.drop(a, b, level)
	if !g.Shared {
		g.drop(b, a, level)
	}
}

// minForced is how many links a new node gets even if the other nodes have nearer neighbours.
const minForced = 2

// connect links a node with another one. If that is full, it gives up a link: a farther one, or any if forced. If it
// does not, there is no link, or a one-way link.
func (g *Graph) connect(w *Scratch, id, other uint32, level int, forced bool) {
	if g.full(id, level) {
		return
	}
	if g.full(other, level) {
		q := w.otherOf(g, other)
		beyond := Key(0)
		if !forced {
			beyond = MakeKey(q.Distance(id), id)
		}
		if !g.giveUp(w, q, other, level, beyond) {
			if g.Shared {
				g.add(id, other, level)
			}
			return
		}
	}
	g.add(id, other, level)
	g.add(other, id, level)
}

// reached returns the number of links that lead to a node.
func (g *Graph) reached(id uint32, level int) int {
	r := g.record(id, level)
	if g.Shared {
		return int(*r.in())
	}
	return r.len() // all links go both ways
}

// giveUp removes a node's farthest unneeded link, if there is one beyond a distance. A link is needed if its target has
// no more than half of its possible links (a quarter if links are one-way). It is also needed if the target has few
// links and no common neighbour with the node. So no node is cut off. q is the query of the node.
func (g *Graph) giveUp(w *Scratch, q Query, id uint32, level int, beyond Key) bool {
	least := g.Room(level) / 2
	if g.Shared {
		least /= 2
	}
	w.fresh = w.fresh[:0]
	for _, l := range g.Links(id, level) {
		if len(g.going) > 0 && g.going[l] { // being removed
			g.drop(id, l, level)
			return true
		}
		if g.reached(l, level) > least {
			w.fresh = append(w.fresh, l)
		}
	}
	w.mine = w.mine[:0]
	for i, d := range w.measure(q, w.fresh) {
		if k := MakeKey(d, w.fresh[i]); k > beyond {
			w.mine = append(w.mine, k)
		}
	}
	slices.Sort(w.mine)
	for _, k := range slices.Backward(w.mine) {
		if g.reached(k.ID(), level) > fewLinks || g.meet(id, k.ID(), level) {
			g.part(id, k.ID(), level)
			return true
		}
	}
	return false
}

// fewLinks is the largest number of links at which one more or less decides whether a node can be reached.
const fewLinks = 12

// meet reports whether two nodes have a common neighbour on a level.
func (g *Graph) meet(a, b uint32, level int) bool {
	x, y := g.Links(a, level), g.Links(b, level)
	for len(x) > 0 && len(y) > 0 {
		switch {
		case x[0] == y[0]:
			return true
		case x[0] < y[0]:
			x = x[1:]
		default:
			y = y[1:]
		}
	}
	return false
}
