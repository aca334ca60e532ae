package search

import (
	"bytes"
	"math"

	"github.com/atomredis/atomredis/engine"
	"github.com/atomredis/atomredis/engine/documents"
	"github.com/atomredis/atomredis/engine/search/docs"
	"github.com/atomredis/atomredis/internal/search/index"
	"github.com/atomredis/atomredis/internal/search/query"
	"github.com/atomredis/atomredis/internal/search/schema"
	"github.com/atomredis/atomredis/internal/search/value"
)

// loader reads fields of documents for replies and pipelines. It belongs to one command, whose guard holds the shards of the keys.
type loader struct {
	g       *engine.Guard
	def     *schema.Definition
	dialect int
	expand  bool // JSON values become values of RESP3
	paths   index.Paths
	forward *index.Forward // of the plan; nil if all values are read from documents
}

// column is a part of a document in replies.
type column struct {
	name  string
	path  string
	field *schema.Field // nil if the path is no name of the schema
}

// keyPath is the path of a document's key.
const keyPath = "__key"

// column returns the column of a path or of the name of a field.
func (l *loader) column(path, name string) column {
	if f, ok := l.def.Lookup(path); ok {
		return column{name, f.Path, f}
	}
	return column{name, path, nil}
}

// document returns the entry of a document; nil if it is gone or has become another type.
func (l *loader) document(key string) *engine.Entry {
	e := l.g.PeekString(0, key)
	want := engine.Hash
	if l.def.Source == schema.JSON {
		want = engine.JSON
	}
	if e == nil || e.Type() != want {
		return nil
	}
	return e
}

// value returns a column of a document; Absent if the document lacks it.
func (l *loader) value(e *engine.Entry, d *docs.Doc, c column) value.Value {
	if c.path == keyPath {
		return value.Str(d.Key())
	}
	if f := c.field; f != nil && f.Sortable && l.def.Source == schema.Hash && (f.Unfolded || f.Kind == query.NumericKind) {
		if v := sortValue(d.Sort(f.SortIndex)); !v.IsAbsent() {
			return v
		}
	}
	v := l.raw(e, c.path)
	if c.field != nil && c.field.Kind == query.NumericKind && l.def.Source == schema.Hash && v.Kind() == value.String {
		return number(v.Text())
	}
	return v
}

// raw returns the value of a document under a path; Absent if there is none.
func (l *loader) raw(e *engine.Entry, path string) value.Value {
	if l.def.Source == schema.Hash {
		if v, ok := e.Hash().Get([]byte(path)); ok {
			return value.Str(string(v))
		}
		return value.Value{}
	}
	return l.json(l.paths.Find(e.JSON().Root(), path))
}

// json returns the values under a path. Expressions and orders see only the first value, and so do replies up to
// dialect 2; from dialect 3 on replies have all values as an array.
func (l *loader) json(found []documents.Value) value.Value {
	if len(found) == 0 {
		return value.Value{}
	}
	first := found[0]
	if l.dialect < 3 && !l.expand {
		return scalar(first)
	}
	text := []byte{'['}
	items := make([]value.Value, len(found))
	for i, v := range found {
		if i > 0 {
			text = append(text, ',')
		}
		text = v.AppendJSON(text, documents.Layout{})
		if l.expand {
			items[i] = expanded(v)
		}
	}
	if first.Kind() == documents.Array {
		if first.Len() == 0 {
			return value.Nil.WithForms(value.Str(string(append(text, ']'))), value.List(items))
		}
		first = first.At(0)
	}
	return scalar(first).WithForms(value.Str(string(append(text, ']'))), value.List(items))
}

// scalar returns a JSON value as expressions see it: arrays and objects are texts.
func scalar(v documents.Value) value.Value {
	switch v.Kind() {
	case documents.Null:
		return value.Nil
	case documents.String:
		return value.Str(v.Text())
	case documents.Boolean:
		return value.Bool(v.Bool())
	case documents.Array, documents.Object:
		return value.Str(string(v.AppendJSON(nil, documents.Layout{})))
	}
	n := value.Num(v.Float())
	if v.Kind() == documents.Integer && math.Abs(v.Float()) >= 1<<53 {
		return n.WithForms(value.Str(string(v.AppendJSON(nil, documents.Layout{}))), value.Value{}) // a float64 would lose digits
	}
	return n
}

// expanded returns a JSON value as in replies with FORMAT EXPAND.
func expanded(v documents.Value) value.Value {
	if v.Kind() != documents.Array && v.Kind() != documents.Object {
		return scalar(v)
	}
	var items []value.Value
	v.Elements(func(_ int, name string, e documents.Value) bool {
		if v.Kind() == documents.Object {
			items = append(items, value.Str(name))
		}
		items = append(items, expanded(e))
		return true
	})
	if v.Kind() == documents.Object {
		return value.Dict(items)
	}
	return value.List(items)
}

// all calls put for all fields that a reply without RETURN has, in their order.
func (l *loader) all(e *engine.Entry, put func(name string, v value.Value)) {
	if l.def.Source == schema.JSON {
		put("$", l.json([]documents.Value{e.JSON().Root()}))
		return
	}
	hidden := [][]byte{[]byte(l.def.ScoreField), []byte(l.def.LanguageField), []byte(l.def.PayloadField)}
	for name, v := range e.Hash().All() {
		if !bytes.Equal(name, hidden[0]) && !bytes.Equal(name, hidden[1]) && !bytes.Equal(name, hidden[2]) {
			put(string(name), value.Str(string(v)))
		}
	}
}

// sortValue returns the value by which a document is sorted; Absent if it has none.
func sortValue(v docs.Value) value.Value {
	switch v.Kind {
	case docs.Number:
		return value.Num(v.Number)
	case docs.Text:
		return value.Str(v.Text)
	}
	return value.Value{}
}

// stored is value for LOAD, which returns stored values, converted to the field's type.
func (l *loader) stored(e *engine.Entry, d *docs.Doc, c column) value.Value {
	if c.field != nil && c.field.Kind == query.NumericKind && l.def.Source == schema.Hash {
		if v, ok := e.Hash().Get([]byte(c.path)); ok {
			return number(string(v))
		}
		return value.Value{}
	}
	return l.value(e, d, c)
}

// known returns the value of a column of the plan's document id, as stored returns it; ok is false if the document must
// be read: also if it is gone or has changed, so that its row is as if all values were read.
func (l *loader) known(id uint64, d *docs.Doc, c column) (v value.Value, ok bool) {
	f := c.field
	if l.forward == nil || f == nil || !l.forward.Has(f) || !l.forward.Current(id) {
		return v, false
	}
	if f.Kind == query.NumericKind {
		n, ok := l.forward.Number(d, f)
		return value.Num(n), ok
	}
	text, ok := l.forward.Tag(id, d, f)
	return value.Str(text), ok
}

// typed converts a field of LOAD * to its type in the schema.
func (l *loader) typed(name string, v value.Value) value.Value {
	f, ok := l.def.Lookup(name)
	if !ok || f.Path != name || f.Kind != query.NumericKind || v.Kind() != value.String {
		return v
	}
	if n, ok := value.ParseNumber(v.Text()); ok {
		return value.Num(n).WithForms(v, v)
	}
	return v
}

// number returns a text as a number, if it is one.
func number(text string) value.Value {
	if n, ok := value.ParseNumber(text); ok {
		return value.Num(n)
	}
	return value.Str(text)
}
