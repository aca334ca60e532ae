package graph

import (
	"slices"
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/atomredis/atomredis/engine/prefetch"
)

// Scratch is the working memory of a search.
type Scratch struct {
	next    nearest  // nodes whose neighbours have not been visited
	found   Farthest // sorted after a search
	within  []Key    // result of a search by radius
	seen    []uint64 // a bit for each node
	fresh   []uint32 // unvisited neighbours of a node
	fetches prefetch.List

	distances []float32

	query, other Query // for the added node, and for comparisons between nodes; nil or released
	candidates   [][]Key
	mine         []Key
	nodes        []uint32
}

var scratches = sync.Pool{New: func() any { return new(Scratch) }}

// NewScratch returns memory for searches.
func NewScratch() *Scratch { return scratches.Get().(*Scratch) }

// maxKept is the largest length of a part that a released scratch keeps.
const maxKept = 1 << 16

// Release returns the scratch, including all results in it.
func (w *Scratch) Release() {
	for _, q := range [...]Query{w.query, w.other} {
		if q != nil {
			q.Release()
		}
	}
	if cap(w.next)+cap(w.found)+cap(w.within)+cap(w.seen)+cap(w.distances) > maxKept {
		return
	}
	scratches.Put(w)
}

func (w *Scratch) queryOf(g *Graph, id uint32) Query {
	w.query = g.space.Query(id, w.query)
	return w.query
}

func (w *Scratch) otherOf(g *Graph, id uint32) Query {
	w.other = g.space.Query(id, w.other)
	return w.other
}

// measure returns the distances of nodes.
func (w *Scratch) measure(q Query, ids []uint32) []float32 {
	if cap(w.distances) < len(ids) {
		w.distances = make([]float32, max(len(ids), 64))
	}
	out := w.distances[:len(ids)]
	q.Distances(ids, out)
	return out
}

// reset prepares the scratch for a search among n nodes.
func (w *Scratch) reset(n int) {
	w.next, w.found, w.within = w.next[:0], w.found[:0], w.within[:0]
	words := (n + 63) / 64
	if cap(w.seen) < words {
		w.seen = make([]uint64, words+words/8)
	}
	w.seen = w.seen[:words]
	clear(w.seen)
}

// see marks a node, and reports whether it was unmarked. Nodes with higher numbers than the scratch covers count as
// marked: they are newer than the search.
func (w *Scratch) see(id uint32) bool {
	bit := uint64(1) << (id % 64)
	if int(id/64) >= len(w.seen) || w.seen[id/64]&bit != 0 {
		return false
	}
	w.seen[id/64] |= bit
	return true
}

// unseen sets w.fresh to the unmarked neighbours of a node, and marks them.
func (g *Graph) unseen(w *Scratch, id uint32, level int) []uint32 {
	w.fresh = w.fresh[:0]
	r := g.record(id, level)
	if r == nil {
		return nil
	}
	links := r.links(max(int(atomic.LoadUint32(&r[0]))-1, 0))
	fresh := slices.Grow(w.fresh, len(links))[:len(links)]
	n := 0
	for i := range links {
		if other := atomic.LoadUint32(&links[i]); w.see(other) {
			fresh[n] = other
			n++
		}
	}
	w.fresh = fresh[:n]
	return w.fresh
}

// fetchNext prefetches the links that are probably needed next.
func (g *Graph) fetchNext(w *Scratch) {
	if len(w.next) > 0 {
		r := g.bottom.At(w.next[0].ID())
		w.fetches.Add(uintptr(unsafe.Pointer(unsafe.SliceData(r))), min(4*len(r), 2*prefetch.LineSize))
		w.fetches.Fetch()
	}
}

// search finds the ef nodes on a level that are nearest to a query, starting at a node, and leaves them in w.found, in
// no order. It returns false if effort ended it.
func (g *Graph) search(w *Scratch, q Query, start uint32, ef, level int, accept func(id uint32) bool, effort int) bool {
	w.reset(g.bottom.Len())
	w.see(start)
	first := MakeKey(q.Distance(start), start)
	w.next.push(first)
	if accept == nil || accept(start) {
		w.found.Push(first)
	}
	worst := ^Key(0)
	if len(w.found) == ef {
		worst = w.found[0]
	}
	for n := 0; len(w.next) > 0; n++ {
		k := w.next.pop()
		if k > worst {
			break
		}
		if n == effort && accept != nil && effort > 0 {
			return false
		}
		fresh := g.unseen(w, k.ID(), level)
		if level == 0 {
			g.fetchNext(w)
		}
		for i, d := range w.measure(q, fresh) {
			id := fresh[i]
			k := MakeKey(d, id)
			if k >= worst {
				continue
			}
			w.next.push(k)
			if accept != nil && !accept(id) {
				continue
			}
			if len(w.found) < ef {
				w.found.Push(k)
			} else {
				w.found.Replace(k)
			}
			if len(w.found) == ef {
				worst = w.found[0]
			}
		}
	}
	return true
}

// descend goes from a node on level top down to the level above the given one, always to the node nearest to the query,
// and returns where it arrives.
func (g *Graph) descend(w *Scratch, q Query, start uint32, top, level int) uint32 {
	best := MakeKey(q.Distance(start), start)
	for l := top; l > level; l-- {
		for moved := true; moved; {
			moved = false
			r := g.record(best.ID(), l)
			if r == nil {
				break
			}
			w.fresh = w.fresh[:0]
			for i := range max(int(atomic.LoadUint32(&r[0]))-1, 0) {
				w.fresh = append(w.fresh, atomic.LoadUint32(&r[recordHead+i]))
			}
			for i, d := range w.measure(q, w.fresh) {
				if k := MakeKey(d, w.fresh[i]); k < best {
					best, moved = k, true
				}
			}
		}
	}
	return best.ID()
}

// Search finds the ef nodes nearest to a query among the accepted ones; a nil accept accepts all. It returns them in no
// order; they are in the scratch. After visiting the neighbours of effort nodes it stops, and returns what it has and
// false; 0 is no limit.
func (g *Graph) Search(w *Scratch, q Query, ef int, accept func(id uint32) bool, effort int) (found Farthest, done bool) {
	entry, top, ok := g.Entry()
	if !ok {
		return nil, true
	}
	done = g.search(w, q, g.descend(w, q, entry, top, 0), ef, 0, accept, effort)
	return w.found, done
}

// Within finds the nodes within a radius of a query. It continues from nodes up to a distance limit, and always from
// the ef nearest ones. It returns the nodes in no order; they are in the scratch. After visiting the neighbours of
// effort nodes it stops, and returns what it has and false.
func (g *Graph) Within(w *Scratch, q Query, radius, limit float32, ef, effort int) (within []Key, done bool) {
	entry, top, ok := g.Entry()
	if !ok {
		return nil, true
	}
	start := g.descend(w, q, entry, top, 0)
	w.reset(g.bottom.Len())
	w.see(start)
	farthest, beyond := MakeKey(radius, ^uint32(0)), MakeKey(limit, ^uint32(0))
	look := func(k Key) {
		if k <= farthest {
			w.within = append(w.within, k)
		}
		switch {
		case len(w.found) < ef:
			w.found.Push(k)
		case k < w.found[0]:
			w.found.Replace(k)
		case k > beyond:
			return
		}
		w.next.push(k)
	}
	look(MakeKey(q.Distance(start), start))
	for n := 0; len(w.next) > 0; n++ {
		k := w.next.pop()
		if len(w.found) == ef && k > max(beyond, w.found[0]) {
			break
		}
		if n == effort {
			return w.within, false
		}
		fresh := g.unseen(w, k.ID(), 0)
		g.fetchNext(w)
		for i, d := range w.measure(q, fresh) {
			look(MakeKey(d, fresh[i]))
		}
	}
	return w.within, true
}
