package query

import (
	"slices"
	"strings"
)

// Kind is a set of kinds of fields. A field of an index has one kind; two fields may have the same path.
type Kind uint8

// The kinds.
const (
	TextKind Kind = 1 << iota
	TagKind
	NumericKind
	GeoKind
	GeoShapeKind
	VectorKind
)

// Field is a field as queries see it. The tree points to it, so an index keeps it as long as queries run.
type Field struct {
	Name string // its name in queries
	Kind Kind

	// Number is the place of a text field among the text fields. EXPLAIN writes several fields in this order.
	Number int

	NoStem       bool // text that is indexed without stems
	Phonetic     bool // text that is indexed with phonetic codes
	IndexEmpty   bool // text and tags: empty values can be found
	IndexMissing bool // documents without the field can be found
	Unordered    bool // text from several places of a document, which has no order: no SLOP, no INORDER
	Suffixes     bool // text and tags with WITHSUFFIXTRIE: suffixes and infixes are found quickly
}

// Schema has the fields of an index.
type Schema interface {
	// Field returns the field of a name.
	Field(name string) (f *Field, ok bool)
	// TextFields returns all text fields by their Number. The slice is not changed.
	TextFields() []*Field
}

// Fields is the set of text fields that a node searches. The zero value means all of them.
type Fields struct {
	limited bool
	list    []*Field // by Number; without duplicates
}

// OnlyIn returns the set of some text fields. Without fields it is the empty set.
func OnlyIn(fields ...*Field) Fields {
	list := slices.Clone(fields)
	slices.SortFunc(list, func(a, b *Field) int { return a.Number - b.Number })
	return Fields{limited: true, list: slices.Compact(list)}
}

// All reports whether the set has all text fields of the index.
func (f Fields) All() bool { return !f.limited }

// None reports whether the set is empty: the node matches nothing.
func (f Fields) None() bool { return f.limited && len(f.list) == 0 }

// List returns the fields of a set that does not have all. The slice must not be changed.
func (f Fields) List() []*Field { return f.list }

// and returns the fields that are in both sets.
func (f Fields) and(g Fields) Fields {
	switch {
	case !f.limited:
		return g
	case !g.limited || slices.Equal(f.list, g.list):
		return f
	}
	return Fields{limited: true, list: slices.DeleteFunc(slices.Clone(f.list), func(x *Field) bool { return !slices.Contains(g.list, x) })}
}

// in returns the fields of the set, those of the schema if it has all.
func (f Fields) in(s Schema) []*Field {
	if f.limited {
		return f.list
	}
	return s.TextFields()
}

// with reports whether a field of the set has a property.
func (f Fields) with(s Schema, has func(*Field) bool) bool { return slices.ContainsFunc(f.in(s), has) }

// String returns the names in the form of a query, "" for all.
func (f Fields) String() string {
	if !f.limited {
		return ""
	}
	names := make([]string, len(f.list))
	for i, field := range f.list {
		names[i] = field.Name
	}
	return "@" + strings.Join(names, "|")
}
