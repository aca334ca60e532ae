package plan

import "time"

// timed is a measured iterator.
type timed struct {
	iterator
	reads int
	time  time.Duration
}

func (t *timed) seek(to uint64) uint64 {
	start := time.Now()
	doc := t.iterator.seek(to)
	t.time += time.Since(start)
	t.reads++
	return doc
}

// bare returns an iterator without its measurement.
func bare(it iterator) iterator {
	if t, ok := it.(*timed); ok {
		return t.iterator
	}
	return it
}

// Profile is a node of the tree of iterators that PROFILE shows.
type Profile struct {
	Type     string // TEXT, TAG, UNION, …
	Query    string // the origin of a UNION
	Term     string // of TEXT, TAG, NUMERIC, GEO, MISSING
	Mode     string // of VECTOR: how it was searched
	Reads    int
	Time     time.Duration // including the iterators below
	Size     int           // estimated number of documents
	Leaf     bool          // it cannot have children
	Children []Profile
}

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
		n.Type, n.Term, n.Leaf = [...]string{ofText: "TEXT", ofTag: "TAG", ofMissing: "MISSING"}[it.source], it.name, true
	case *ranges:
		n.Type, n.Term, n.Leaf = it.kind, it.term, true
	case *listed:
		n.Type, n.Leaf = it.kind, true
	case *nearest:
		n.Type, n.Mode, n.Leaf = "METRIC", "RANGE_QUERY", true
	case *knn:
		n.Type, n.Mode = "VECTOR", it.mode
		if it.filter != nil {
			children = []iterator{it.filter}
		}
	case *all:
		n.Type, n.Leaf = "WILDCARD", true
	case *not:
		n.Type, children = "NOT", []iterator{it.child}
	case *optional:
		n.Type, children = "OPTIONAL", []iterator{it.child}
	case *intersect:
		n.Type, children = "INTERSECT", it.children
	case *union:
		n.Type, n.Query, children = "UNION", it.kind, it.children
	default:
		n.Type, n.Leaf = "EMPTY", true
	}
	for _, c := range children {
		n.Children = append(n.Children, profile(c))
	}
	return n
}
