package index

import (
	"strings"
	"time"
)

// Stats is what FT.INFO tells of an index.
type Stats struct {
	Docs     int
	MaxDoc   uint64 // the highest number of a document
	Terms    int
	Records  int64 // entries of documents under terms, tags and numbers
	Failures Failures
	Spent    time.Duration // in entering documents

	// Memory in bytes.
	Inverted, Offsets, DocTable, SortValues, KeyTable, Tags, Text, Vectors, Shapes int64

	Fields []FieldStats // in the order of the definition
}

// Bytes returns all memory.
func (s *Stats) Bytes() int64 {
	return s.Inverted + s.Offsets + s.DocTable + s.SortValues + s.KeyTable + s.Tags + s.Text + s.Vectors + s.Shapes
}

// FieldStats is what FT.INFO tells of a field.
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
		DocTable: int64(x.docs.Bytes() - x.docs.KeyBytes()), KeyTable: int64(x.docs.KeyBytes()), Text: int64(x.text.Bytes()),
		Inverted: listBytes(x.text)}
	for _, f := range x.def.Fields {
		n := x.fields[f.Name]
		fs := FieldStats{Failures: n.failures}
		if n.tags != nil {
			s.Tags += int64(n.tags.Bytes()) + listBytes(n.tags)
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

// listBytes returns the memory of the lists of a dictionary.
func listBytes(d *dictionary) (sum int64) {
	for _, list := range d.All() {
		sum += int64(list.Bytes())
	}
	return sum
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

// Tags returns the tags of a TAG field in the order of their bytes.
func (x *Index) Tags(field string) []string {
	x.mu.RLock()
	defer x.mu.RUnlock()
	var list []string
	if d := x.fields[field].tags; d != nil {
		for tag := range d.All() {
			list = append(list, strings.Clone(tag))
		}
	}
	return list
}
