package plan

import (
	"slices"

	"github.com/atomredis/atomredis/engine/search/postings"
)

// Matched is a term of the query that a document has.
type Matched struct {
	Term      string
	IDF       float64       // its inverse document frequency, as in TFIDF
	Tag       bool          // it is a tag; tags have no positions
	Fields    postings.Mask // the document's fields with the term
	Positions []uint32      // ascending
}

// Matched returns the terms of the query that the present match has, in no order. For a pattern it returns only the
// first one. The positions are a copy.
func (p *Plan) Matched() []Matched { return matched(nil, p.root) }

// matched appends the terms below an iterator.
func matched(to []Matched, it iterator) []Matched {
	switch it := bare(it).(type) {
	case *term:
		if it.source == ofMissing || slices.ContainsFunc(to, func(m Matched) bool { return m.Term == it.name && m.Tag == (it.source == ofTag) }) {
			return to
		}
		m := Matched{Term: it.name, IDF: it.log2, Tag: it.source == ofTag}
		if !m.Tag {
			m.Fields, m.Positions = it.reader.Mask(), slices.Clone(it.reader.Offsets())
		}
		return append(to, m)
	case *optional:
		if it.matches() {
			return matched(to, it.child)
		}
	case *knn:
		if it.matches() {
			return matched(to, it.filter)
		}
	case *union:
		for _, i := range it.matching() {
			to = matched(to, it.children[i])
		}
	case *intersect:
		for _, c := range it.children {
			to = matched(to, c)
		}
	}
	return to
}
