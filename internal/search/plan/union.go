package plan

import "slices"

// union is the documents that match at least one of its children.
type union struct {
	cursor
	children []iterator
	docs     []uint64 // present match of each child
	// heap has the indexes of the children, the one with the lowest document and then the lowest index first. It is
	// nil for few children.
	heap   []int
	first  bool // only the first matching child scores, for expansions of a pattern
	weight float64
	kind   string // for PROFILE
	size   int

	hits   []int // the children that match the document hitsOf, by index
	hitsOf uint64
}

// few is how many children are compared one by one.
const few = 8

// newUnion returns the union of some iterators.
func newUnion(children []iterator, weight float64, kind string, first bool) *union {
	u := &union{children: children, docs: make([]uint64, len(children)), weight: weight, kind: kind, first: first}
	for _, c := range children {
		u.size += c.estimate()
	}
	if len(children) > few {
		u.heap = make([]int, len(children))
	}
	u.start()
	return u
}

// start puts the union before the first match, as its children are.
func (u *union) start() {
	u.at, u.hitsOf = 0, 0
	clear(u.docs)
	for i := range u.heap {
		u.heap[i] = i
	}
}

func (u *union) rewind() {
	u.start()
	for _, c := range u.children {
		c.rewind()
	}
}

func (u *union) estimate() int { return u.size }

func (u *union) seek(to uint64) uint64 {
	if u.at >= to {
		return u.at
	}
	if u.heap != nil {
		for i := u.heap[0]; u.docs[i] < to; i = u.heap[0] {
			u.docs[i] = u.children[i].seek(to)
			u.sink()
		}
		u.at = u.docs[u.heap[0]]
		return u.at
	}
	u.at = end
	for i, d := range u.docs {
		if d < to {
			d = u.children[i].seek(to)
			u.docs[i] = d
		}
		u.at = min(u.at, d)
	}
	return u.at
}

// before reports whether a child comes before another one in the heap.
func (u *union) before(a, b int) bool {
	return u.docs[a] < u.docs[b] || u.docs[a] == u.docs[b] && a < b
}

// sink moves the top of the heap to its place.
func (u *union) sink() {
	h := u.heap
	top, at := h[0], 0
	for {
		child := 2*at + 1
		if child >= len(h) {
			break
		}
		if child+1 < len(h) && u.before(h[child+1], h[child]) {
			child++
		}
		if !u.before(h[child], top) {
			break
		}
		h[at] = h[child]
		at = child
	}
	h[at] = top
}

// matching returns the indexes of the children that count for the present document, in ascending order.
func (u *union) matching() []int {
	if u.hitsOf == u.at {
		return u.hits
	}
	u.hits, u.hitsOf = u.hits[:0], u.at
	switch {
	case u.heap == nil:
		for i, d := range u.docs {
			if d == u.at {
				if u.hits = append(u.hits, i); u.first {
					break
				}
			}
		}
	case u.first:
		u.hits = append(u.hits, u.heap[0])
	default:
		u.collect(0)
		slices.Sort(u.hits)
	}
	return u.hits
}

// collect adds the children below a place of the heap that match the present document.
func (u *union) collect(at int) {
	if at >= len(u.heap) || u.docs[u.heap[at]] != u.at {
		return
	}
	u.hits = append(u.hits, u.heap[at])
	u.collect(2*at + 1)
	u.collect(2*at + 2)
}
