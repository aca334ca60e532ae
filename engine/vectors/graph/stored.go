package graph

import (
	"encoding/binary"
	"errors"
	"hash/maphash"
	"math"
)

// Errors of stored links.
var (
	errLinks  = errors.New("vector graph: stored links are malformed")
	errOneWay = errors.New("vector graph: a stored link goes only one way")
	errEntry  = errors.New("vector graph: stored entry is not on the highest level")
)

// AppendLinks appends the stored form of a node's links to dst: for each level, from the lowest up, their number and
// the differences between successive links, as uvarints. number maps a node to its stored number, in the same order, or
// returns false if the node is not stored; nil keeps the numbers.
func (g *Graph) AppendLinks(dst []byte, id uint32, number func(id uint32) (uint32, bool)) []byte {
	var kept []uint32
	for l := range g.Level(id) + 1 {
		links := g.Links(id, l)
		if number != nil {
			kept = kept[:0]
			for _, n := range links {
				if n, ok := number(n); ok {
					kept = append(kept, n)
				}
			}
			links = kept
		}
		dst = binary.AppendUvarint(dst, uint64(len(links)))
		last := uint32(0)
		for _, n := range links {
			dst = binary.AppendUvarint(dst, uint64(n-last))
			last = n
		}
	}
	return dst
}

// Loader builds a graph from stored links.
type Loader struct {
	g *Graph
	n int // expected number of nodes
	// oneWay is 0 if every link has come in both directions. It is the exclusive or of the links' hashes, with a secret
	// seed.
	oneWay uint64
	hash   maphash.Seed
	top    int
}

// Load returns a Loader for an empty graph that is to have n nodes.
func (g *Graph) Load(n int) *Loader { return &Loader{g: g, n: n, hash: maphash.MakeSeed()} }

// Len returns the number of nodes added.
func (l *Loader) Len() int { return l.g.live }

// Add adds the links of the next node, from AppendLinks. After an error the graph is useless.
func (l *Loader) Add(data []byte) error {
	g := l.g
	id := uint32(g.live)
	if g.live >= l.n {
		return errLinks
	}
	bad := false
	next := func() uint64 {
		v, n := binary.Uvarint(data)
		if n <= 0 {
			bad = true
			return 0
		}
		data = data[n:]
		return v
	}
	r := record(g.bottom.Push())
	g.live++
	for level := 0; level == 0 || len(data) > 0; level++ {
		if level > MaxLevel {
			return errLinks
		}
		n := next()
		if bad || n > uint64(g.Room(level)) || n > uint64(len(data)) {
			return errLinks
		}
		if level > 0 {
			at, up := g.newUpper()
			*g.owner(up) = id
			g.record(id, level-1)[1] = at + 1
			r = up
		}
		r[0] = uint32(n) + 1
		links, last := r.links(int(n)), uint64(0)
		for i := range links {
			d := next()
			if last += d; bad || d > math.MaxUint32 || i > 0 && d == 0 || last >= uint64(l.n) || last == uint64(id) {
				return errLinks
			}
			links[i] = uint32(last)
			l.oneWay ^= maphash.Comparable(l.hash, [3]uint32{min(id, links[i]), max(id, links[i]), uint32(level)})
		}
		l.top = max(l.top, level)
	}
	return nil
}

// Finish ends loading. added is the number of nodes ever added, and entry a node on level top, the highest.
func (l *Loader) Finish(added uint64, entry uint32, top int) error {
	g := l.g
	switch {
	case g.live != l.n:
		return errLinks
	case l.oneWay != 0 && !g.Shared:
		return errOneWay
	case int64(entry) >= int64(l.n) || top != l.top || g.Level(entry) != top:
		return errEntry
	}
	g.added = added
	g.setEntry(entry, top)
	if g.Shared {
		return g.count()
	}
	return nil
}

// count counts the links that lead to each node, and links nodes that have none.
func (g *Graph) count() error {
	for id := range uint32(g.live) {
		for l := range g.Level(id) + 1 {
			for _, other := range g.Links(id, l) {
				r := g.record(other, l)
				if r == nil {
					return errLinks
				}
				*r.in()++
			}
		}
	}
	w := NewScratch()
	defer w.Release()
	for id := range uint32(g.live) {
		if g.reached(id, 0) == 0 {
			g.reconnect(w, id, 0)
		}
	}
	return nil
}
