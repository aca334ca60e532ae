package plan

import (
	"time"

	"github.com/atomredis/atomredis/engine/search/docs"
)

// timed is a measured iterator.
type timed struct {
	iterator
	plan  *Plan
	at    uint64 // the last match
	reads int    // number of moves to another document
	time  time.Duration
}

func (t *timed) seek(to uint64) uint64 {
	if t.plan.visiting {
		return t.iterator.seek(to)
	}
	start := time.Now()
	doc := t.iterator.seek(to)
	t.time += time.Since(start)
	if doc != t.at && doc != end {
		t.reads++
	}
	t.at = doc
	return doc
}

func (t *timed) rewind() {
	t.at = 0
	t.iterator.rewind()
}

// scored scores the present match, and measures the time if the query is profiled.
func (p *Plan) scored(d *docs.Doc, x *Explanation) float64 {
	if !p.options.Profile || p.visiting {
		return p.scorer.score(p.root, d, x)
	}
	start, read := time.Now(), p.reading()
	score := p.scorer.score(p.root, d, x)
	p.scoring += time.Since(start) - (p.reading() - read)
	return score
}

// reading returns the time spent in the iterators.
func (p *Plan) reading() time.Duration {
	if t, ok := p.root.(*timed); ok {
		return t.time
	}
	return 0
}

// Spent returns the time spent in the iterators and in the scorer, if the plan was made with Options.Profile.
func (p *Plan) Spent() (iterators, scorer time.Duration) { return p.reading(), p.scoring }

// bare returns an iterator without its measurement.
func bare(it iterator) iterator {
	if t, ok := it.(*timed); ok {
		return t.iterator
	}
	return it
}

// Profile is a node of the tree of iterators that PROFILE shows.
type Profile struct {
	Type     string        // TEXT, TAG, UNION, …
	Query    string        // of a UNION: its origin, with the pattern
	Term     string        // of TEXT, TAG, NUMERIC, GEO
	Field    string        // of MISSING
	Mode     string        // of vectors: the kind of search
	Reads    int           // number of matches
	Time     time.Duration // including the children
	Size     int           // of a list of the index: approximate number of documents
	List     bool          // it is a list of the index
	Children []Profile
}

// RangeByID and RangeByScore are the types of a range of vectors in the order of documents, and of distances.
const (
	RangeByID    = "METRIC SORTED BY ID - VECTOR DISTANCE"
	RangeByScore = "METRIC SORTED BY SCORE - VECTOR DISTANCE"
)

// Profile returns the iterators with their measurements, if the plan was made with Options.Profile.
func (p *Plan) Profile() Profile { return profile(p.root) }

// profile describes an iterator.
func profile(it iterator) Profile {
	var n Profile
	if t, ok := it.(*timed); ok {
		n.Reads, n.Time = t.reads, t.time
		it = t.iterator
	}
	n.Size = it.estimate()
	var children []iterator
	switch it := it.(type) {
	case *term:
		n.Type, n.Term, n.List = [...]string{ofText: "TEXT", ofTag: "TAG", ofMissing: "MISSING"}[it.source], it.name, true
		if it.source == ofMissing {
			n.Term, n.Field = "", it.name
		}
	case *ranges:
		n.Type, n.Term, n.List = it.kind, it.extent(), true
	case *listed:
		n.Type = it.kind
	case *nearest:
		n.Type, n.Mode = RangeByID, "RANGE_QUERY"
	case *knn:
		n.Type, n.Mode = "VECTOR", it.mode
		if it.filter != nil {
			children = []iterator{it.filter}
		}
	case *all:
		n.Type = "WILDCARD"
	case *not:
		n.Type, children = "NOT", []iterator{it.child}
	case *optional:
		n.Type, children = "OPTIONAL", []iterator{it.child}
	case *intersect:
		n.Type, children = "INTERSECT", it.children
	case *union:
		n.Type, n.Query, children = "UNION", it.kind, it.children
	default:
		n.Type = "EMPTY"
	}
	for _, c := range children {
		n.Children = append(n.Children, profile(c))
	}
	return n
}
