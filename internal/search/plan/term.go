package plan

import (
	"math"

	"github.com/atomredis/atomredis/engine/search/postings"
)

// source is the origin of an iterator's term.
type source uint8

const (
	ofText source = iota
	ofTag
	ofMissing // a list of documents without a field, which is no term
)

// term is the documents that have a term.
type term struct {
	cursor
	view    postings.View
	reader  *postings.Reader
	fields  postings.Mask // one of them must have the term, if limited is set
	limited bool
	name    string
	source  source
	weight  float64
	idf     float64 // of BM25STD
	log2    float64 // that of the older scorers
}

// newTerm returns the iterator of a list in an index of n documents.
func newTerm(name string, list *postings.List, from source, weight float64, n int) *term {
	t := &term{view: list.View(), name: name, source: from, weight: weight}
	has := t.view.Len()
	t.idf = idf(max(n, has), has)
	t.log2 = math.Logb(1 + float64(n+1)/float64(max(has, 1)))
	t.rewind()
	return t
}

// idf returns the inverse document frequency for BM25STD of a term in some of n documents.
func idf(n, some int) float64 { return math.Log(1 + (float64(n-some)+0.5)/(float64(some)+0.5)) }

func (t *term) rewind() { t.at, t.reader = 0, t.view.Reader() }

func (t *term) estimate() int { return t.view.Len() }

func (t *term) seek(to uint64) uint64 {
	if t.at >= to {
		return t.at
	}
	var ok bool
	if to == t.at+1 {
		ok = t.reader.Next()
	} else {
		ok = t.reader.Seek(to)
	}
	for ok && t.limited && !t.reader.Mask().Meets(t.fields) {
		ok = t.reader.Next()
	}
	if t.at = end; ok {
		t.at = t.reader.Doc()
	}
	return t.at
}
