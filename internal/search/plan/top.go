package plan

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/atomredis/atomredis/engine/search/docs"
	"github.com/atomredis/atomredis/engine/search/numbers"
)

// Hit is a selected match.
type Hit struct {
	ID    uint64
	Doc   *docs.Doc
	Score float64    // of Top
	Key   docs.Value // of TopBy
}

// Total returns the number of matches after one of Top, TopBy, First and Count. For a stopped query it is the number
// found so far.
func (p *Plan) Total() int { return p.total }

// alive reports whether all document numbers belong to living, visible documents, so that matches need no check.
func (p *Plan) alive() bool { return uint64(p.docs.Len()) == p.docs.Last() && p.options.Hidden == nil }

// Count visits all matches and returns their number.
func (p *Plan) Count() int {
	if n, ok := p.known(); ok {
		p.total = n
		return n
	}
	p.First(0)
	return p.total
}

// known returns the number of matches, if it is known without visiting them.
func (p *Plan) known() (n int, ok bool) {
	if p.options.Hidden != nil {
		return 0, false
	}
	switch it := bare(p.root).(type) {
	case *none:
		return 0, true
	case *all:
		return p.docs.Len(), true
	case *term:
		return it.view.Len(), !it.limited
	case *ranges:
		return it.count, it.single && it.keep == nil
	}
	return 0, false
}

// First returns the first k matches in the order in which documents were indexed, and counts all matches.
func (p *Plan) First(k int) (hits []Hit) {
	known, ok := p.known()
	p.each(ok && k == 0, func(id uint64) bool {
		if len(hits) < k {
			hits = append(hits, Hit{ID: id, Doc: p.docs.Get(id)})
		}
		return len(hits) < k || !ok
	})
	if ok && !p.Stopped() {
		p.total = known
	}
	return hits
}

// each goes through the matches until do returns false, and counts them.
func (p *Plan) each(skip bool, do func(id uint64) bool) {
	p.total = 0
	alive := p.alive()
	for id := p.root.seek(1); id != end && !skip && !p.watch.tick(); id = p.root.seek(id + 1) {
		if !alive && !p.counts(id) {
			continue
		}
		if p.total++; !do(id) {
			return
		}
	}
}

// higher orders hits by score, equal ones by number.
func higher(a, b *Hit) bool { return a.Score > b.Score || a.Score == b.Score && a.ID < b.ID }

// Top returns the k matches with the highest scores in this order, equal ones in the order in which documents were indexed. All
// matches are counted, but not all are scored.
func (p *Plan) Top(k int) []Hit {
	if k <= 0 {
		p.Count()
		return nil
	}
	top := best[Hit]{k: k, less: higher}
	bounded := p.scorer.bounded()
	p.each(false, func(id uint64) bool {
		if bounded && top.full() && p.scorer.most(p.root) <= top.items[0].Score {
			return true // later documents with equal scores come after
		}
		d := p.docs.Get(id)
		if bounded && top.full() && p.scorer.words(p.root, d) <= top.items[0].Score {
			return true
		}
		top.offer(Hit{ID: id, Doc: d, Score: p.scored(d, nil)})
		return true
	})
	p.id = end
	hits := top.sorted()
	if p.options.Scorer == BM25STDNorm && len(hits) > 0 {
		if p.most, p.normed = hits[0].Score, true; p.most != 0 {
			for i := range hits {
				hits[i].Score /= p.most
			}
		}
	}
	return hits
}

// Order is the order of TopBy.
type Order struct {
	// Key returns the sort value of a plan's present match.
	Key  func(p *Plan) docs.Value
	Desc bool
}

// before reports whether a hit comes before another one.
func (o *Order) before(a, b *Hit) bool {
	if c := o.Compare(&a.Key, &b.Key); c != 0 {
		return c < 0
	}
	return a.ID < b.ID != o.Desc
}

// Compare compares the sort values of two hits. Hits without a value come last in both directions.
func (o *Order) Compare(a, b *docs.Value) int {
	switch c := compare(a, b); {
	case a.Kind == b.Kind && a.Kind == docs.None:
		return 0
	case a.Kind == docs.None:
		return 1
	case b.Kind == docs.None:
		return -1
	case o.Desc:
		return -c
	default:
		return c
	}
}

// compare compares two values. A text that is a number is compared with numbers as one.
func compare(a, b *docs.Value) int {
	switch {
	case a.Kind == docs.Number && b.Kind == docs.Number:
		return cmp.Compare(a.Number, b.Number)
	case a.Kind == docs.Text && b.Kind == docs.Text:
		return strings.Compare(a.Text, b.Text)
	case a.Kind == docs.Number && b.Kind == docs.Text:
		if f, err := strconv.ParseFloat(b.Text, 64); err == nil {
			return cmp.Compare(a.Number, f)
		}
		return strings.Compare(short(a.Number), b.Text)
	case a.Kind == docs.Text && b.Kind == docs.Number:
		return -compare(b, a)
	}
	return cmp.Compare(a.Kind, b.Kind)
}

// TopBy returns the first k matches in an order, equal ones in the order in which documents were indexed, or in the opposite one
// if the order descends. All matches are counted.
func (p *Plan) TopBy(k int, o Order) []Hit {
	if k <= 0 {
		p.Count()
		return nil
	}
	if hits, ok := p.walk(k, o); ok {
		return hits
	}
	top := best[Hit]{k: k, less: o.before}
	p.each(false, func(id uint64) bool {
		p.id, p.doc = id, p.docs.Get(id)
		top.offer(Hit{ID: id, Doc: p.doc, Key: o.Key(p)})
		return true
	})
	p.id = end
	return top.sorted()
}

// walk is TopBy for matches that are a range of their sort field: it visits the numbers in order and stops after k.
func (p *Plan) walk(k int, o Order) (hits []Hit, ok bool) {
	total, known := p.known()
	if p.sorted == nil || !known {
		return nil, false
	}
	take := func(i numbers.Item) bool {
		if p.watch.tick() {
			return false
		}
		if d := p.docs.Get(i.Doc); d != nil {
			hits = append(hits, Hit{ID: i.Doc, Doc: d, Key: docs.Value{Kind: docs.Number, Number: i.Value}})
		}
		return len(hits) < k
	}
	if o.Desc {
		p.sorted.numbers.Descend(p.sorted.within[0], take)
	} else {
		p.sorted.numbers.Ascend(p.sorted.within[0], take)
	}
	if len(hits) < min(k, total) && !p.Stopped() {
		return nil, false // documents without a number are missing
	}
	p.total, p.id = total, end
	return hits, true
}

// Visit moves the plan to each hit and calls do, so that Score, Explain, Distance and Matched describe it. It visits
// hits in the order in which they were indexed, even if the query was stopped.
func (p *Plan) Visit(hits []Hit, do func(h *Hit)) {
	order := make([]*Hit, len(hits))
	for i := range hits {
		order[i] = &hits[i]
	}
	slices.SortFunc(order, func(a, b *Hit) int { return cmp.Compare(a.ID, b.ID) })
	if p.options.Scorer == BM25STDNorm {
		p.normalize()
	}
	before := p.watch
	p.watch, p.visiting = watch{}, true
	p.again(func() {
		for _, h := range order {
			if p.root.seek(h.ID) == h.ID {
				p.id, p.doc = h.ID, h.Doc
				do(h)
			}
		}
	})
	p.watch, p.visiting = before, false
}

// short writes a number as %g does in C.
func short(f float64) string {
	if math.IsInf(f, 0) {
		return strings.ToLower(strings.TrimPrefix(strconv.FormatFloat(f, 'g', -1, 64), "+"))
	}
	return strconv.FormatFloat(f, 'g', 6, 64)
}
