package index

import (
	"strings"
	"time"

	"github.com/atomredis/atomredis/engine/search/postings"
)

// Stats has the figures of an index for FT.INFO.
type Stats struct {
	Docs     int
	MaxDoc   uint64 // the highest number of a document
	Terms    int
	Records  int64 // entries of documents under terms, tags and numbers
	Failures Failures
	Spent    time.Duration // time spent entering documents

	// Memory in bytes.
	Inverted, Offsets, DocTable, SortValues, KeyTable, Tags, Text, Vectors, Shapes int64

	Fields []FieldStats // in the order of the definition
}

// Bytes returns all memory.
func (s *Stats) Bytes() int64 {
	return s.Inverted + s.Offsets + s.DocTable + s.SortValues + s.KeyTable + s.Tags + s.Text + s.Vectors + s.Shapes
}

// FieldStats has the figures of a field for FT.INFO.
type FieldStats struct {
	Failures Failures
	Vectors  int64 // bytes
	Removed  int64 // vectors that were removed and still take memory
}

// Stats returns the present figures.
func (x *Index) Stats() Stats {
	x.mu.RLock()
	defer x.mu.RUnlock()
	s := Stats{Docs: x.docs.Len(), MaxDoc: x.docs.Last(), Terms: x.text.Len(), Records: x.records, Failures: x.failures, Spent: time.Duration(x.spent.Load()),
		DocTable: int64(x.docs.Bytes() - x.docs.KeyBytes() - x.docs.SortBytes()), KeyTable: int64(x.docs.KeyBytes()),
		SortValues: int64(x.docs.SortBytes()), Text: int64(x.text.Bytes())}
	s.Inverted, s.Offsets = listBytes(x.text)
	for _, f := range x.def.Fields {
		n := x.fields[f.Name]
		fs := FieldStats{Failures: n.failures}
		if n.tags != nil {
			lists, _ := listBytes(n.tags)
			s.Tags += int64(n.tags.Bytes()) + lists
		}
		if n.numbers != nil {
			s.Inverted += int64(n.numbers.Bytes())
		}
		if n.shapes != nil {
			s.Shapes += int64(n.shapes.Bytes())
		}
		if n.vectors != nil {
			fs.Vectors, fs.Removed = int64(n.vectors.bytes()), int64(n.vectors.x.Going())
			s.Vectors += fs.Vectors
		}
		s.Fields = append(s.Fields, fs)
	}
	return s
}

// listBytes returns the memory of a dictionary's lists without offsets, and the memory of the offsets.
func listBytes(d *dictionary) (lists, offsets int64) {
	for _, list := range d.All() {
		lists += int64(list.Bytes() - list.OffsetBytes())
		offsets += int64(list.OffsetBytes())
	}
	return lists, offsets
}

// Keys returns the keys of all documents.
func (x *Index) Keys() []string {
	x.mu.RLock()
	defer x.mu.RUnlock()
	var keys []string
	docs := x.docs.View()
	for id := uint64(1); id <= docs.Last(); id++ {
		if d := docs.Get(id); d != nil {
			keys = append(keys, d.Key())
		}
	}
	return keys
}

// Current returns the number of a key's document; 0 if it has none.
func (x *Index) Current(key string) uint64 {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return x.docs.Lookup(key)
}

// Hidden returns the number of documents with hidden keys.
func (x *Index) Hidden(hidden func(key string) bool) (n int) {
	for _, key := range x.Keys() {
		if hidden(key) {
			n++
		}
	}
	return n
}

// Tags returns the tags of a TAG field in the order of their bytes. It leaves out tags that only hidden documents
// have; hidden may be nil.
func (x *Index) Tags(field string, hidden func(key string) bool) []string {
	x.mu.RLock()
	defer x.mu.RUnlock()
	var list []string
	if d := x.fields[field].tags; d != nil {
		for tag, docs := range d.All() {
			if hidden == nil || x.shown(docs, hidden) {
				list = append(list, strings.Clone(tag))
			}
		}
	}
	return list
}

// shown reports whether a document of a list lives and is not hidden. mu is held.
func (x *Index) shown(list *postings.List, hidden func(key string) bool) bool {
	for r := list.View().Reader(); r.Next(); {
		if d := x.docs.Get(r.Doc()); d != nil && !hidden(d.Key()) {
			return true
		}
	}
	return false
}

// Add adds the figures of another shard's part of the index.
func (s *Stats) Add(o *Stats) {
	s.Docs += o.Docs
	s.MaxDoc = max(s.MaxDoc, o.MaxDoc)
	s.Terms += o.Terms
	s.Records += o.Records
	s.Failures.merge(o.Failures)
	s.Spent += o.Spent
	for _, n := range []struct{ to, from *int64 }{{&s.Inverted, &o.Inverted}, {&s.Offsets, &o.Offsets}, {&s.DocTable, &o.DocTable},
		{&s.SortValues, &o.SortValues}, {&s.KeyTable, &o.KeyTable}, {&s.Tags, &o.Tags}, {&s.Text, &o.Text}, {&s.Vectors, &o.Vectors},
		{&s.Shapes, &o.Shapes}} {
		*n.to += *n.from
	}
	for i := range min(len(s.Fields), len(o.Fields)) {
		s.Fields[i].Failures.merge(o.Fields[i].Failures)
		s.Fields[i].Vectors += o.Fields[i].Vectors
		s.Fields[i].Removed += o.Fields[i].Removed
	}
}
