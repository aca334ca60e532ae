package plan

import (
	"cmp"
	"slices"
	"time"

	"github.com/atomredis/atomredis/engine/search/docs"
	"github.com/atomredis/atomredis/internal/search/query"
)

// Options are the options of a plan. Only Slop has no useful zero value.
type Options struct {
	Scorer     Scorer
	TanhFactor int    // of BM25STD_TANH_FACTOR; 0 is 4
	Payload    string // of PAYLOAD, for HAMMING

	Slop    int  // of SLOP, -1 without it
	InOrder bool // of INORDER

	// SortBy is the field by which TopBy will sort, or nil. If it is NUMERIC and SORTABLE, TopBy may not need to
	// visit all matches.
	SortBy *query.Field

	MinPrefix     int // bytes of the shortest affix; 0 means 2
	MaxExpansions int // largest number of terms of a pattern; 0 means 200
	MaxMemory     int // approximate limit of the iterators' memory in bytes; 0 means 256 MB

	// Hidden reports whether the document of a key must be ignored although it is in the index; nil if none is.
	Hidden func(key string) bool

	Stop    func() bool // called every hundred steps, ends the query if true; may be nil
	Long    func(n int) // called before New has worked on about n documents in all, and may panic to end it; may be nil
	Profile bool        // the iterators are measured

	// UnionsLast multiplies the estimated documents of a union by the number of its parts when an intersection orders
	// its children.
	UnionsLast bool
}

// withDefaults returns the options with the defaults set.
func (o Options) withDefaults() Options {
	def := func(n *int, value int) {
		if *n == 0 {
			*n = value
		}
	}
	def(&o.TanhFactor, 4)
	def(&o.MinPrefix, 2)
	def(&o.MaxExpansions, 200)
	def(&o.MaxMemory, 256<<20)
	return o
}

// Plan is a query that is ready to run. It visits the matches once, by Next or by one of Top, TopBy, First and
// Count. It is not safe for concurrent use.
type Plan struct {
	options  Options
	docs     docs.View
	root     iterator
	sorted   *ranges // the matches as a range of Options.SortBy, if they are one
	watch    watch
	scorer   scorer
	yields   []string
	warnings []string

	nearest []uint64 // the matches of KNN by distance; Next has visited the first step of them
	step    int

	id     uint64
	doc    *docs.Doc
	total  int
	most   float64 // the highest score, for BM25STD.NORM
	normed bool    // most is known

	// Measurements for PROFILE.
	scoring  time.Duration // time spent in the scorer
	visiting bool          // the iterators visit matches again, which is not measured
}

// New makes the plan of a query. The index is locked for reading while it runs, and need not be afterwards. Errors
// have the reference's texts.
func New(root query.Node, ix Index, o Options) (*Plan, error) {
	o = o.withDefaults()
	p := &Plan{options: o, docs: ix.Docs(), watch: watch{stop: o.Stop}}
	b := &builder{plan: p, index: ix, names: ix.Text().Until(p.watch.tick), time: o.Profile}
	it, err := b.node(root)
	if err != nil {
		return nil, err
	}
	if b.full() {
		return nil, errTooLarge
	}
	p.root = orNone(it)
	p.watch.width = width(p.root) / between
	p.sorted = b.inOrder(o.SortBy)
	p.scorer = newScorer(o, p.docs)
	return p, nil
}

// warn adds a warning, once.
func (p *Plan) warn(text string) {
	if !slices.Contains(p.warnings, text) {
		p.warnings = append(p.warnings, text)
	}
}

// Next moves to the next match, in the order in which documents were indexed, or by distance if the query is KNN. It
// returns false at the end or when the query was stopped.
func (p *Plan) Next() bool {
	if k, ok := bare(p.root).(*knn); ok {
		return p.nextNearest(k)
	}
	for p.id != end {
		p.id = p.root.seek(p.id + 1)
		if p.watch.tick() {
			p.id = end
		}
		if p.doc = p.docs.Get(p.id); p.doc != nil && !p.hides(p.doc) {
			return true
		}
	}
	return false
}

// nextNearest is Next for KNN. The iterators only move forward, so they start again for each match.
func (p *Plan) nextNearest(k *knn) bool {
	if p.nearest == nil {
		near := slices.Clone(k.near)
		slices.SortStableFunc(near, func(a, b Near) int { return cmp.Compare(a.Distance, b.Distance) })
		p.nearest = make([]uint64, len(near))
		for i, n := range near {
			p.nearest[i] = n.Doc
		}
	}
	for p.step < len(p.nearest) && !p.watch.tick() {
		p.id = p.nearest[p.step]
		p.step++
		if p.doc = p.docs.Get(p.id); p.doc != nil && !p.hides(p.doc) {
			p.root.rewind()
			p.root.seek(p.id)
			return true
		}
	}
	p.id, p.doc = end, nil
	return false
}

// hides reports whether a document must be ignored.
func (p *Plan) hides(d *docs.Doc) bool { return p.options.Hidden != nil && p.options.Hidden(d.Key()) }

// counts reports whether a document is alive and not hidden.
func (p *Plan) counts(id uint64) bool {
	if p.options.Hidden == nil {
		return p.docs.Alive(id)
	}
	d := p.docs.Get(id)
	return d != nil && !p.hides(d)
}

// ID returns the number of the present match.
func (p *Plan) ID() uint64 { return p.id }

// Doc returns the present match.
func (p *Plan) Doc() *docs.Doc { return p.doc }

// Yields returns the names of the distances that matches may have, in the order of the query.
func (p *Plan) Yields() []string { return p.yields }

// Distance returns a distance of the present match by its name; false if it has none.
func (p *Plan) Distance(name string) (float64, bool) { return p.distance(p.root, name) }

// distance looks for a distance below an iterator.
func (p *Plan) distance(it iterator, name string) (float64, bool) {
	if len(p.yields) == 0 || it.doc() != p.id {
		return 0, false
	}
	var children []iterator
	switch it := bare(it).(type) {
	case *nearest:
		if it.yield == name {
			return it.near[it.i].Distance, true
		}
	case *knn:
		if it.yield == name {
			return it.near[it.i].Distance, true
		}
		if it.matches() {
			return p.distance(it.filter, name)
		}
	case *optional:
		if it.matches() {
			return p.distance(it.child, name)
		}
	case *union:
		children = it.children
	case *intersect:
		children = it.children
	}
	for _, c := range children {
		if d, ok := p.distance(c, name); ok {
			return d, true
		}
	}
	return 0, false
}

// Score returns the score of the present match.
func (p *Plan) Score() float64 { return p.score(nil) }

// Explain explains the score of the present match.
func (p *Plan) Explain() Explanation {
	var x Explanation
	p.score(&x)
	return x
}

// score scores the present match.
func (p *Plan) score(x *Explanation) float64 {
	if p.options.Scorer == BM25STDNorm {
		p.normalize()
	}
	score := p.scored(p.doc, x)
	if p.options.Scorer != BM25STDNorm {
		return score
	}
	normed := score
	if p.most != 0 {
		normed /= p.most
	}
	if x != nil {
		x.setf("Final BM25STD.NORM: %.2f = Original Score: %.2f / Max Score: %.2f", normed, score, p.most)
	}
	return normed
}

// normalize finds the highest score of all matches, unless it is known.
func (p *Plan) normalize() {
	if p.normed {
		return
	}
	p.normed = true
	p.again(func() {
		for p.Next() {
			p.most = max(p.most, p.scored(p.doc, nil))
		}
	})
}

// again calls do with rewound iterators, and then returns to the present match.
func (p *Plan) again(do func()) {
	id, doc, step := p.id, p.doc, p.step
	p.root.rewind()
	p.id, p.doc, p.step = 0, nil, 0
	do()
	p.root.rewind()
	p.step = step
	if p.id, p.doc = id, doc; id != 0 && id != end {
		p.root.seek(id)
	}
}

// Result returns a plan that has run without what it took to run, to be kept long: it has no more matches, and the same
// Total, Warnings and Stopped.
func (p *Plan) Result() *Plan {
	return &Plan{root: new(none), id: end, total: p.total, warnings: p.warnings, watch: watch{stopped: p.watch.stopped}}
}

// Stopped reports whether the query was stopped before its end.
func (p *Plan) Stopped() bool { return p.watch.stopped }

// Warnings returns the warnings of the result, except that the query was stopped.
func (p *Plan) Warnings() []string { return p.warnings }
