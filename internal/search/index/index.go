package index

import (
	"slices"
	"sync"
	"sync/atomic"

	"github.com/atomredis/atomredis/engine/search/docs"
	"github.com/atomredis/atomredis/engine/search/numbers"
	"github.com/atomredis/atomredis/engine/search/postings"
	"github.com/atomredis/atomredis/engine/search/terms"
	"github.com/atomredis/atomredis/internal/search/plan"
	"github.com/atomredis/atomredis/internal/search/query"
	"github.com/atomredis/atomredis/internal/search/schema"
	"github.com/atomredis/atomredis/internal/search/text"
)

// Index is a search index. Its methods may be called from several goroutines.
type Index struct {
	writing sync.Mutex   // held during changes of the index; taken before mu
	mu      sync.RWMutex // protects all below; holders of writing may read without it

	def          *schema.Definition
	synonyms     *text.Synonyms // does not change; UpdateSynonyms replaces it
	docs         *docs.Table
	text         *dictionary
	keep         postings.Keep     // in lists of words
	fields       map[string]*field // by name
	vectorFields []*field
	records      int64         // living entries in all lists of terms
	removals     atomic.Uint64 // how often documents were removed; may be read without a lock
	failures     Failures
	spent        atomic.Int64 // ns in Put
}

// field has the structures of a field beside its text.
type field struct {
	*schema.Field
	tags     *dictionary
	numbers  *numbers.Tree
	missing  *postings.List
	shapes   *shapeField
	vectors  vectorField
	several  bool // a document has had more than one number
	failures Failures
}

// dictionary has the terms of all TEXT fields, or the tags of one field, each with its documents.
type dictionary = terms.Dict[*postings.List]

// New returns an empty index.
func New(def *schema.Definition) *Index {
	keep := postings.Freqs | postings.Masks | postings.Offsets
	if def.NoFreqs {
		keep &^= postings.Freqs
	}
	if def.NoFields {
		keep &^= postings.Masks
	}
	if def.NoOffsets {
		keep &^= postings.Offsets
	}
	suffixes := false
	for _, f := range def.Fields {
		suffixes = suffixes || f.Kind == query.TextKind && f.Suffixes
	}
	x := &Index{synonyms: &text.Synonyms{}, docs: docs.New(), text: terms.New[*postings.List](suffixes), keep: keep, fields: map[string]*field{}}
	x.define(def)
	return x
}

// define installs a definition, and makes the structures of its new fields.
func (x *Index) define(def *schema.Definition) {
	x.def = def
	for _, f := range def.Fields {
		if x.fields[f.Name] == nil {
			n := newField(f)
			x.fields[f.Name] = n
			if n.vectors != nil {
				x.vectorFields = append(x.vectorFields, n)
			}
		}
	}
}

func newField(f *schema.Field) *field {
	n := &field{Field: f}
	if f.NoIndex {
		return n
	}
	if f.IndexMissing {
		n.missing = postings.New(0)
	}
	switch f.Kind {
	case query.TagKind:
		n.tags = terms.New[*postings.List](f.Suffixes)
	case query.NumericKind, query.GeoKind:
		n.numbers = numbers.New()
	case query.GeoShapeKind:
		n.shapes = newShapeField(f)
	case query.VectorKind:
		n.vectors = newVectorField(f)
	}
	return n
}

// Definition returns the present definition, which does not change.
func (x *Index) Definition() *schema.Definition {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return x.def
}

// Synonyms returns the present groups of synonyms, which do not change.
func (x *Index) Synonyms() *text.Synonyms {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return x.synonyms
}

// Extend installs a definition with further fields. Documents have these fields once they are put again.
func (x *Index) Extend(def *schema.Definition) {
	x.writing.Lock()
	defer x.writing.Unlock()
	x.mu.Lock()
	defer x.mu.Unlock()
	x.define(def)
}

// UpdateSynonyms adds words to a group of synonyms. If a limit would be exceeded, it changes nothing and returns the
// error. Documents have the group once they are put again.
func (x *Index) UpdateSynonyms(group string, words []string) (refused string) {
	x.writing.Lock()
	defer x.writing.Unlock()
	x.mu.Lock()
	defer x.mu.Unlock()
	changed := x.synonyms.Clone()
	if refused = changed.Update(group, words...); refused == "" {
		x.synonyms = changed
	}
	return refused
}

// Clear removes all documents.
func (x *Index) Clear() {
	x.writing.Lock()
	defer x.writing.Unlock()
	x.mu.Lock()
	defer x.mu.Unlock()
	x.removals.Add(1)
	empty := New(x.def)
	x.docs, x.text, x.fields, x.vectorFields, x.records = empty.docs, empty.text, empty.fields, empty.vectorFields, 0
}

// View calls do with the index as plans read it. The index is locked for reading meanwhile.
func (x *Index) View(do func(View)) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	do(View{x})
}

// View is a plan.Index. It is valid only while the index is locked.
type View struct{ x *Index }

var _ plan.Index = View{}

// Definition returns the index's definition.
func (v View) Definition() *schema.Definition { return v.x.def }

// Lookup returns the numbers of the documents of keys, ascending. Keys without one are left out.
func (v View) Lookup(keys []string) []uint64 {
	var ids []uint64
	for _, key := range keys {
		if id := v.x.docs.Lookup(key); id != 0 {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return slices.Compact(ids)
}

// Field implements plan.Index.
func (v View) Field(name string) (*query.Field, bool) { return v.x.def.Field(name) }

// TextFields implements plan.Index.
func (v View) TextFields() []*query.Field { return v.x.def.TextFields() }

// Docs implements plan.Index.
func (v View) Docs() docs.View { return v.x.docs.View() }

// Text implements plan.Index.
func (v View) Text() *terms.Dict[*postings.List] { return v.x.text }

// Tags implements plan.Index.
func (v View) Tags(f *query.Field) (tags *terms.Dict[*postings.List], caseSensitive bool) {
	n := v.x.fields[f.Name]
	return n.tags, n.CaseSensitive
}

// Numbers implements plan.Index.
func (v View) Numbers(f *query.Field) *numbers.Tree { return v.x.fields[f.Name].numbers }

// Single implements plan.Index.
func (v View) Single(f *query.Field) (place int, ok bool) {
	n := v.x.fields[f.Name]
	return n.SortIndex, n.Kind == query.NumericKind && n.Sortable && !n.several
}

// Missing implements plan.Index.
func (v View) Missing(f *query.Field) *postings.List { return v.x.fields[f.Name].missing }

// Shapes implements plan.Index.
func (v View) Shapes(f *query.Field) plan.Shapes { return v.x.fields[f.Name].shapes }

// Vectors implements plan.Index.
func (v View) Vectors(f *query.Field) plan.Vectors { return v.x.fields[f.Name].vectors }
