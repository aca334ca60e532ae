package vectors

import (
	"cmp"
	"math"
	"slices"

	"github.com/atomredis/atomredis/engine/vectors/graph"
)

// Near is a document with its distance.
type Near struct {
	Doc      uint64
	Distance float64
}

func (a Near) compare(b Near) int {
	return cmp.Or(cmp.Compare(a.Distance, b.Distance), cmp.Compare(a.Doc, b.Doc))
}

// Search has the parameters of a search.
type Search struct {
	EF      int                   // number of candidates, if more than the results; 0 is the index's default
	Epsilon float64               // how far beyond a radius to search; 0 is the index's default
	Allowed func(doc uint64) bool // which documents to return; nil for all. It may be called repeatedly for a document
	Exact   bool                  // compare with all vectors
	Stop    func() bool           // called before each vector in a full scan; true ends the search; may be nil
}

// Query is a vector to compare documents with. One goroutine at a time may use it, also beside the writer.
type Query struct {
	x *Index
	m measure
}

// Query returns a query for a vector of VectorBytes.
func (x *Index) Query(vector []byte) *Query { return &Query{x, x.space.measure(vector)} }

// Distance returns the distance of a document; ok is false if it has no vector.
func (q *Query) Distance(doc uint64) (distance float64, ok bool) {
	defer q.x.end(q.x.begin())
	node, ok := q.x.find(doc)
	if !ok {
		return 0, false
	}
	return q.distance(node), true
}

// distance returns the distance of the document whose first node is given.
func (q *Query) distance(node uint32) float64 {
	d := q.m.exact(node)
	for next, more := q.x.nextOf(node); more; next, more = q.x.nextOf(next) {
		d = min(d, q.m.exact(next))
	}
	return d
}

// Nearest returns the k nearest documents, nearest first, or all if there are fewer. Equally distant ones are ordered
// by number. Without a graph, and with Exact, no document is missed.
func (q *Query) Nearest(k int, s Search) []Near {
	x := q.x
	if k = min(k, x.Len()); k <= 0 {
		return nil
	}
	defer x.end(x.begin())
	if x.graph != nil && !s.Exact {
		if found, ok := q.byGraph(k, s); ok {
			return found
		}
	}
	return q.byScan(k, s)
}

// moreCandidates: a graph search uses one candidate more for this many that EF requests. That makes up for the faster
// choice of links in the graph.
const moreCandidates = 8

// scanShare is about how many nodes a graph search visits per candidate: with fewer nodes in all, a full scan is
// faster.
const scanShare = 16

// effort is the number of visited nodes after which a graph search that may visit many is abandoned, because a full
// scan is faster.
func (x *Index) effort() int { return max(x.Vectors()/x.graph.M/4, 1) }

// byGraph is Nearest with the graph; ok is false if a full scan is better.
func (q *Query) byGraph(k int, s Search) (found []Near, ok bool) {
	x := q.x
	nodes := x.Vectors()
	want := k
	if documents := x.Len(); nodes > documents {
		want += k * (nodes - documents) / max(documents, 1)
	}
	var accept func(node uint32) bool
	effort := 0
	switch {
	case s.Allowed != nil:
		accept = func(node uint32) bool {
			doc := x.doc(node)
			return doc != 0 && s.Allowed(doc)
		}
		effort = x.effort()
	case x.Going() > 0:
		accept = func(node uint32) bool { return x.doc(node) != 0 }
	}
	w := graph.NewScratch()
	defer w.Release()
	for {
		ef := max(x.ef(s), want)
		ef += ef / moreCandidates
		if ef*scanShare > nodes {
			return nil, false
		}
		keys, done := x.graph.Search(w, q.m, ef, accept, effort)
		if !done {
			return nil, false
		}
		found = q.results(keys)
		if len(found) >= k {
			return found[:k:k], true
		}
		want *= 2 // several vectors of one document were among them, or some were removed
	}
}

// Effort returns about how many vectors Nearest compares.
func (x *Index) Effort(k int, s Search) int {
	nodes := x.Vectors()
	if x.graph == nil || s.Exact {
		return nodes
	}
	return min(nodes, scanShare*max(x.ef(s), k))
}

func (x *Index) ef(s Search) int {
	if s.EF > 0 {
		return s.EF
	}
	return max(x.options.EF, 1)
}

// results returns the documents of nodes with their distances, nearest first.
func (q *Query) results(keys []graph.Key) []Near {
	found := make([]Near, 0, len(keys))
	for _, k := range keys {
		if doc := q.x.doc(k.ID()); doc != 0 {
			found = append(found, Near{doc, q.m.exact(k.ID())})
		}
	}
	slices.SortFunc(found, Near.compare)
	return q.once(found)
}

// once returns sorted results without repeated documents.
func (q *Query) once(found []Near) []Near {
	if q.x.Vectors() == q.x.Len() {
		return found
	}
	seen := make(map[uint64]struct{}, len(found))
	return slices.DeleteFunc(found, func(n Near) bool {
		_, twice := seen[n.Doc]
		seen[n.Doc] = struct{}{}
		return twice
	})
}

// scan calls fn with the documents within a distance bound, in no order. fn returns the new bound.
func (q *Query) scan(bound float64, s Search, fn func(n Near) float64) {
	x := q.x
	for node := range uint32(x.docs.Len()) {
		doc := x.doc(node)
		if doc == 0 || s.Allowed != nil && !s.Allowed(doc) {
			continue
		}
		if s.Stop != nil && s.Stop() {
			return
		}
		if x.Vectors() > x.Len() {
			if first, ok := x.find(doc); !ok || first != node {
				continue // the document's first node stands for all
			}
		}
		if d := q.distance(node); d <= bound {
			bound = fn(Near{doc, d})
		}
	}
}

// byScan is Nearest without the graph.
func (q *Query) byScan(k int, s Search) []Near {
	var best farthest
	q.scan(math.Inf(1), s, func(n Near) float64 {
		best.add(n, k)
		if len(best) < k {
			return math.Inf(1)
		}
		return best[0].Distance
	})
	slices.SortFunc(best, Near.compare)
	return best
}

// farthest is a heap with the farthest result first.
type farthest []Near

// add adds a result, replacing the farthest one if there are k.
func (h *farthest) add(n Near, k int) {
	s := *h
	if len(s) < k {
		s = append(s, n)
		i := len(s) - 1
		for up := (i - 1) / 2; i > 0 && s[up].compare(n) < 0; up = (i - 1) / 2 {
			s[i] = s[up]
			i = up
		}
		s[i] = n
		*h = s
		return
	}
	if s[0].compare(n) <= 0 {
		return
	}
	i := 0
	for kid := 1; kid < len(s); kid = 2*i + 1 {
		if kid+1 < len(s) && s[kid+1].compare(s[kid]) > 0 {
			kid++
		}
		if s[kid].compare(n) <= 0 {
			break
		}
		s[i] = s[kid]
		i = kid
	}
	s[i] = n
}

// Within returns the documents within a radius, ordered by number. Without a graph, and with Exact, none is missed.
func (q *Query) Within(radius float64, s Search) []Near {
	x := q.x
	if x.options.Type != Float64 {
		radius = float64(float32(radius)) // single precision, like distances
	}
	defer x.end(x.begin())
	found, ok := []Near(nil), false
	if x.graph != nil && !s.Exact {
		found, ok = q.withinByGraph(radius, s)
	}
	if !ok {
		q.scan(radius, s, func(n Near) float64 {
			found = append(found, n)
			return radius
		})
	}
	slices.SortFunc(found, func(a, b Near) int { return cmp.Compare(a.Doc, b.Doc) })
	return found
}

// withinByGraph is Within with the graph; ok is false if a full scan is better.
func (q *Query) withinByGraph(radius float64, s Search) (found []Near, ok bool) {
	x := q.x
	nodes, ef := x.Vectors(), x.ef(s)
	if ef*scanShare > nodes {
		return nil, false
	}
	epsilon := x.options.Epsilon
	if s.Epsilon > 0 {
		epsilon = s.Epsilon
	}
	r := float32(radius)
	if float64(r) < radius {
		r = math.Nextafter32(r, float32(math.Inf(1)))
	}
	limit := r
	if epsilon > 0 {
		limit = max(r, float32(radius+math.Abs(radius)*epsilon))
	}
	w := graph.NewScratch()
	defer w.Release()
	keys, done := x.graph.Within(w, q.m, r, limit, ef, x.effort())
	if !done {
		return nil, false
	}
	found = slices.DeleteFunc(q.results(keys), func(n Near) bool {
		return n.Distance > radius || s.Allowed != nil && !s.Allowed(n.Doc)
	})
	return found, true
}

// Batches returns the documents near a vector in steps, nearer ones first with approximation. The writer may change the
// index between the steps.
type Batches struct {
	q     *Query
	s     Search
	k     int                 // how many the last step searched for
	all   bool                // all remaining ones are in ready
	ready []Near              // sorted
	given map[uint64]struct{} // documents already returned
}

// Batches returns the documents near the query's vector in steps.
func (q *Query) Batches(s Search) *Batches { return &Batches{q: q, s: s, given: map[uint64]struct{}{}} }

// Next returns the next n documents, nearest first. There are fewer only if none are left.
func (b *Batches) Next(n int) []Near {
	for len(b.ready) < n && !b.all {
		b.k = max(2*b.k, len(b.given)+n)
		found := b.q.Nearest(b.k, b.s)
		b.all = len(found) < b.k || b.k >= b.q.x.Len()
		b.merge(found)
	}
	n = min(n, len(b.ready))
	out := b.ready[:n:n]
	b.ready = b.ready[n:]
	for _, near := range out {
		b.given[near.Doc] = struct{}{}
	}
	return out
}

// merge adds new results to ready.
func (b *Batches) merge(found []Near) {
	known := make(map[uint64]struct{}, len(b.ready))
	ready := slices.Clone(b.ready)
	for _, n := range ready {
		known[n.Doc] = struct{}{}
	}
	for _, n := range found {
		_, given := b.given[n.Doc]
		if _, ok := known[n.Doc]; !ok && !given {
			ready = append(ready, n)
		}
	}
	slices.SortFunc(ready, Near.compare)
	b.ready = ready
}
