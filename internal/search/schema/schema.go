// Package schema has the definitions of search indexes. It reads the arguments of FT.CREATE and FT.ALTER, and knows
// neither documents nor an index.
package schema

import (
	"slices"

	"github.com/atomredis/atomredis/internal/search/query"
	"github.com/atomredis/atomredis/internal/search/text"
)

// Source is the type of keys that an index is over.
type Source uint8

// The types of keys.
const (
	Hash Source = iota
	JSON
)

// String returns the word of FT.CREATE.
func (s Source) String() string {
	if s == JSON {
		return "JSON"
	}
	return "HASH"
}

// Definition is the definition of an index. It is immutable once in use: With makes a new one.
type Definition struct {
	Name     string
	Source   Source
	Prefixes []string // of the keys that are indexed; empty if FT.CREATE had none, which means all
	Filter   string   // an expression that documents must fulfil; "" is none

	Language      text.Language
	LanguageField string
	Score         float64
	ScoreField    string
	PayloadField  string

	IndexAll      bool
	MaxTextFields bool
	NoOffsets     bool
	NoHighlight   bool
	NoFields      bool
	NoFreqs       bool
	Temporary     int64 // seconds without use after which the index is dropped; 0 is never
	SkipScan      bool  // keys that exist at its creation are not indexed

	Stopwords       *text.Stopwords
	CustomStopwords bool

	Fields []*Field

	byName map[string]*Field
	texts  []*query.Field
	skips  []int // number of arguments after each SKIPINITIALSCAN
}

// Field is a field of an index.
type Field struct {
	query.Field
	Path string // of the value: a hash's field, or a JSONPath

	Weight       float64 // TEXT: how often each occurrence counts, truncated
	PhoneticCode string  // TEXT: dm:en and the like; "" is none

	Separator     byte // TAG: between the tags of a value; 0 is none
	CaseSensitive bool // TAG

	Flat bool // GEOSHAPE: places are on a plane, not on the earth

	Vector *Vector // VECTOR: how it is indexed

	Sortable  bool
	Unfolded  bool // SORTABLE: values stay as they are
	SortIndex int  // SORTABLE: the place of its value in a document's sort values; -1 for others
	NoIndex   bool // it can be sorted by, not searched
}

// finish computes derived fields.
func (d *Definition) finish() {
	d.byName = make(map[string]*Field, len(d.Fields))
	d.texts = nil
	sortable := 0
	for _, f := range d.Fields {
		d.byName[f.Name] = f
		if f.Kind == query.TextKind {
			f.Number = len(d.texts)
			d.texts = append(d.texts, &f.Field)
		}
		if f.SortIndex = -1; f.Sortable {
			f.SortIndex = sortable
			sortable++
		}
	}
}

// With returns the definition with further fields, as FT.ALTER adds them.
func (d *Definition) With(fields []*Field) *Definition {
	n := *d
	n.Fields = append(slices.Clip(d.Fields), fields...)
	n.finish()
	return &n
}

// Lookup returns the field of a name.
func (d *Definition) Lookup(name string) (*Field, bool) {
	f, ok := d.byName[name]
	return f, ok
}

// Field implements query.Schema.
func (d *Definition) Field(name string) (*query.Field, bool) {
	if f, ok := d.byName[name]; ok {
		return &f.Field, true
	}
	return nil, false
}

// TextFields implements query.Schema.
func (d *Definition) TextFields() []*query.Field { return d.texts }

// Sortables returns how many fields have sort values.
func (d *Definition) Sortables() int {
	n := 0
	for _, f := range d.Fields {
		if f.Sortable {
			n++
		}
	}
	return n
}

// Covers reports whether a key is indexed by its name, if it has the right type.
func (d *Definition) Covers(key string) bool {
	if len(d.Prefixes) == 0 {
		return true
	}
	for _, p := range d.Prefixes {
		if len(key) >= len(p) && key[:len(p)] == p {
			return true
		}
	}
	return false
}
