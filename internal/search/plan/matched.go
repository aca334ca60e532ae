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

// Matched returns the terms of the query that the present match has, in no order and each once. For a pattern it returns
// only the first one. The positions are a copy.
func (p *Plan) Matched() (list []Matched) {
	present(p.root, func(t *term) {
		tag := t.source == ofTag
		if slices.ContainsFunc(list, func(m Matched) bool { return m.Term == t.name && m.Tag == tag }) {
			return
		}
		m := Matched{Term: t.name, IDF: t.log2, Tag: tag}
		if !tag {
			m.Fields, m.Positions = t.reader.Mask(), slices.Clone(t.reader.Offsets())
		}
		list = append(list, m)
	})
	return list
}

// Terms returns the texts of the terms that the present match has, in the order of the query. A term that several parts
// of the query have is repeated, as in Redis.
func (p *Plan) Terms() (list []string) {
	present(p.root, func(t *term) { list = append(list, t.name) })
	return list
}

// present calls do with the terms below an iterator that the present match has.
func present(it iterator, do func(t *term)) {
	switch it := bare(it).(type) {
	case *term:
		if it.source != ofMissing {
			do(it)
		}
	case *optional:
		if it.matches() {
			present(it.child, do)
		}
	case *knn:
		if it.matches() {
			present(it.filter, do)
		}
	case *union:
		for _, i := range it.matching() {
			present(it.children[i], do)
		}
	case *intersect:
		for _, c := range it.children {
			present(c, do)
		}
	}
}
