package graph

import (
	"cmp"
	"slices"
)

// repairPairs is how many other neighbours of a removed node each neighbour may be linked with.
const repairPairs = 64

// Unlink removes a node from the graph. Its neighbours are linked with each other, nearest first. In a Shared graph its
// own links remain until Clear, and links to it until Sweep finds them.
func (g *Graph) Unlink(id uint32) {
	w := NewScratch()
	defer w.Release()
	g.going[id] = true
	for l := g.Level(id); l >= 0; l-- {
		nodes := slices.Clone(g.Links(id, l))
		nodes = slices.DeleteFunc(nodes, func(n uint32) bool { return g.going[n] })
		for _, n := range nodes {
			g.drop(n, id, l)
		}
		g.repair(w, nodes, l)
	}
	if entry, _, _ := g.Entry(); entry == id {
		g.replaceEntry()
	}
	g.live--
}

// letGo removes the links of a removed node, and reconnects nodes that have no other incoming link.
func (g *Graph) letGo(id uint32) {
	w := NewScratch()
	defer w.Release()
	for l := range g.Level(id) + 1 {
		for _, n := range slices.Clone(g.Links(id, l)) {
			g.drop(id, n, l)
			if g.reached(n, l) == 0 && !g.going[n] {
				g.reconnect(w, n, l)
			}
		}
	}
}

// Sweep removes links to removed nodes from the next n nodes of a Shared graph.
func (g *Graph) Sweep(n int) {
	w := NewScratch()
	defer w.Release()
	for range min(n, g.bottom.Len()) {
		id := g.swept
		if g.swept++; int(g.swept) >= g.bottom.Len() {
			g.swept = 0
		}
		if g.bottom.At(id)[0] == 0 {
			continue
		}
		for l := range g.Level(id) + 1 {
			before := g.record(id, l).len()
			for _, other := range slices.Clone(g.Links(id, l)) {
				if g.going[other] {
					g.drop(id, other, l)
				}
			}
			if after := g.record(id, l).len(); after < before && after < g.Room(l)/fewShare && !g.going[id] {
				g.reconnect(w, id, l)
			}
		}
	}
}

// fewShare: a node needs at least this fraction (1/fewShare) of its possible links.
const fewShare = 4

// repair links nodes that have lost a link on a level to a removed node: first so that each can still be reached from
// the others, then as far as they have room.
func (g *Graph) repair(w *Scratch, nodes []uint32, level int) {
	type pair struct {
		distance Key
		a, b     int
	}
	var pairs []pair
	groups := make([]int, len(nodes)) // nodes with the same root are connected
	root := func(i int) int {
		for groups[i] != i {
			groups[i] = groups[groups[i]]
			i = groups[i]
		}
		return i
	}
	for i := range groups {
		groups[i] = i
	}
	for i, a := range nodes {
		q := w.otherOf(g, a)
		have := g.Links(a, level)
		for k := i + 1; k < min(len(nodes), i+1+repairPairs); k++ {
			if _, ok := slices.BinarySearch(have, nodes[k]); ok {
				groups[root(i)] = root(k)
			} else {
				pairs = append(pairs, pair{MakeKey(q.Distance(nodes[k]), 0), i, k})
			}
		}
	}
	slices.SortFunc(pairs, func(x, y pair) int {
		return cmp.Or(cmp.Compare(x.distance, y.distance), cmp.Compare(x.a, y.a), cmp.Compare(x.b, y.b))
	})
	given := make([]bool, len(nodes))
	for _, joining := range [...]bool{true, false} {
		for _, p := range pairs {
			a, b := nodes[p.a], nodes[p.b]
			if joining && (root(p.a) == root(p.b) || !g.room(w, a, level) || !g.room(w, b, level)) ||
				!joining && (given[p.a] || given[p.b] || g.full(a, level) || g.full(b, level)) {
				continue
			}
			if _, ok := slices.BinarySearch(g.Links(a, level), b); ok {
				continue // linked since the last round
			}
			g.add(a, b, level)
			g.add(b, a, level)
			groups[root(p.a)] = root(p.b)
			given[p.a], given[p.b] = true, true
		}
	}
	for _, n := range nodes {
		if g.record(n, level).len() == 0 || g.reached(n, level) == 0 {
			g.reconnect(w, n, level)
		}
	}
}

// room makes room for a link of a node by removing an unneeded one, and reports whether there is room.
func (g *Graph) room(w *Scratch, id uint32, level int) bool {
	return !g.full(id, level) || g.giveUp(w, w.otherOf(g, id), id, level, 0)
}

// reconnectEF is the number of candidates when a node has lost all links.
const reconnectEF = 200

// reconnect finds links for a node with none or few on a level.
func (g *Graph) reconnect(w *Scratch, id uint32, level int) {
	if g.live <= 2 {
		return
	}
	q := w.queryOf(g, id)
	accept := func(other uint32) bool { return other != id && !g.going[other] }
	start, top, _ := g.Entry()
	if start == id || g.going[start] { // these lead nowhere
		if level > 0 {
			return // higher levels are not essential
		}
		for start = 0; !accept(start) || !g.has(start); start++ {
		}
	} else {
		start = g.descend(w, q, start, top, level)
	}
	g.search(w, q, start, min(reconnectEF, g.live), level, accept, 0)
	w.found.Sort()
	for _, other := range g.choose(w, slices.Clone(w.found), g.Room(level)/2) {
		g.connect(w, id, other, level, true)
	}
	if g.Shared && len(w.found) > 0 && g.reached(id, level) == 0 {
		g.makeWay(w, id, w.found[0].ID(), level)
	}
}

// replaceEntry chooses another node as the start of searches.
func (g *Graph) replaceEntry() {
	best, top := ^uint32(0), 0
	for i := range uint32(g.upper.Len()) {
		r := g.upper.At(i)
		if id := *g.owner(r); r[0] > 0 && g.has(id) {
			if level := g.Level(id); level > top || level == top && id < best {
				best, top = id, level
			}
		}
	}
	for id := uint32(0); best == ^uint32(0) && int(id) < g.bottom.Len(); id++ {
		if g.has(id) {
			best = id
		}
	}
	if best == ^uint32(0) {
		g.entry.Store(0)
	} else {
		g.setEntry(best, top)
	}
}
