package plan

import (
	"math"
	"slices"
)

// intersect has the documents that match all children, optionally with their words near each other.
type intersect struct {
	cursor
	children []iterator // in the required order of words, otherwise the cheapest first
	steps    []iterator // those that are advanced, the cheapest first
	filters  []*ranges  // ranges that are only checked for each document
	weight   float64
	watch    *watch

	near    bool // the words must be near to each other
	slop    int  // how many words may stand between them
	inOrder bool
	places  []places // of the children that have positions; memory for within
}

// anySlop is the slop of words of which only the order matters.
const anySlop = math.MaxInt

// newIntersect returns the intersection of at least two iterators. Without slop and order, slop is -1.
func newIntersect(children []iterator, weight float64, slop int, inOrder bool, p *Plan) *intersect {
	n := &intersect{children: children, weight: weight, watch: &p.watch, near: slop >= 0 || inOrder, slop: slop, inOrder: inOrder}
	if inOrder && slop < 0 {
		n.slop = anySlop
	}
	cheapest := slices.Clone(children)
	slices.SortStableFunc(cheapest, func(a, b iterator) int { return int(cost(a, p) - cost(b, p)) })
	if !inOrder {
		n.children = cheapest
	}
	for i, c := range cheapest {
		if r, ok := bare(c).(*ranges); ok && i > 0 && r.canFilter(cheapest[0].estimate()) {
			n.filters = append(n.filters, r)
			continue
		}
		n.steps = append(n.steps, c)
	}
	return n
}

// cost orders the parts of an intersection. As in Redis, costs that differ by less than one are equal, which shows in
// explanations.
func cost(it iterator, p *Plan) float64 {
	n := float64(it.estimate())
	switch it := bare(it).(type) {
	case *union:
		if p.options.UnionsLast {
			n *= float64(len(it.children))
		}
	case *intersect:
		n /= float64(len(it.children))
	}
	return n
}

func (n *intersect) estimate() int { return n.steps[0].estimate() }

func (n *intersect) rewind() {
	n.at = 0
	for _, c := range n.children {
		c.rewind()
	}
}

func (n *intersect) seek(to uint64) uint64 {
	for n.at < to {
		doc := n.agree(to)
		if doc == end || n.watch.tick() {
			n.at = end
			break
		}
		if n.filtered(doc) && (!n.near || n.within()) {
			n.at = doc
			break
		}
		to = doc + 1
	}
	return n.at
}

// agree returns the first document from a number on that all steps match.
func (n *intersect) agree(to uint64) uint64 {
	doc := n.steps[0].seek(to)
	for i := 1; i < len(n.steps) && doc != end; i++ {
		if d := n.steps[i].seek(doc); d != doc {
			if doc = n.steps[0].seek(d); n.watch.tick() {
				return end
			}
			i = 0
		}
	}
	return doc
}

// filtered reports whether all filters have a document.
func (n *intersect) filtered(doc uint64) bool {
	for _, f := range n.filters {
		if !f.has(doc) {
			return false
		}
	}
	return true
}
