// Package value has the values of rows: the fields of documents, and the results of expressions and reducers. Values
// are immutable, so rows, groups and cursors share them.
//
// A row without a value for a name is not the same as a row whose value is null: the first is Absent and is left out of
// replies, the second is printed as nil.
package value

import "iter"

// Kind is the kind of a value.
type Kind uint8

// The kinds. The zero Value is Absent.
const (
	Absent Kind = iota // there is no value
	Null
	Number
	String
	Array
	Map
)

// Value is a value.
type Value struct {
	kind   Kind
	number float64
	text   string
	more   *more // nil unless it is an array or a map, or has forms of its own for replies
}

// more has the parts that few values have.
type more struct {
	items           []Value // of an array; of a map its keys and values in turns
	shown, expanded Value   // see WithForms
}

// Nil is the null value.
var Nil = Value{kind: Null}

// Num returns a number.
func Num(f float64) Value { return Value{kind: Number, number: f} }

// Bool returns 1 or 0.
func Bool(b bool) Value {
	if b {
		return Num(1)
	}
	return Num(0)
}

// Str returns a string.
func Str(s string) Value { return Value{kind: String, text: s} }

// List returns an array. It keeps the slice.
func List(items []Value) Value { return Value{kind: Array, more: &more{items: items}} }

// Strings returns an array of strings.
func Strings(texts []string) Value {
	items := make([]Value, len(texts))
	for i, s := range texts {
		items[i] = Str(s)
	}
	return List(items)
}

// Dict returns a map of keys and values in turns. It keeps the slice.
func Dict(pairs []Value) Value { return Value{kind: Map, more: &more{items: pairs}} }

// WithForms returns v with other forms for replies: expressions and reducers see v, replies print shown, and those
// with FORMAT EXPAND print expanded. Values of JSON documents have such forms: v is the first match, shown the text
// of all matches, expanded the tree of all matches.
func (v Value) WithForms(shown, expanded Value) Value {
	m := more{shown: shown, expanded: expanded}
	if v.more != nil {
		m.items = v.more.items
	}
	v.more = &m
	return v
}

// Shown returns the form for replies.
func (v Value) Shown(expand bool) Value {
	switch {
	case v.more == nil:
	case expand && v.more.expanded.kind != Absent:
		return v.more.expanded
	case !expand && v.more.shown.kind != Absent:
		return v.more.shown
	}
	return v
}

// Kind returns the kind.
func (v Value) Kind() Kind { return v.kind }

// IsAbsent reports whether there is no value.
func (v Value) IsAbsent() bool { return v.kind == Absent }

// IsNull reports whether the value is null or absent.
func (v Value) IsNull() bool { return v.kind <= Null }

// Float returns a number; 0 for other kinds.
func (v Value) Float() float64 { return v.number }

// Text returns a string; "" for other kinds.
func (v Value) Text() string { return v.text }

// Len returns how many elements an array has, or how many keys a map.
func (v Value) Len() int {
	switch v.kind {
	case Array:
		return len(v.more.items)
	case Map:
		return len(v.more.items) / 2
	}
	return 0
}

// Items returns the elements of an array, nil for other kinds. The slice must not be changed.
func (v Value) Items() []Value {
	if v.kind != Array {
		return nil
	}
	return v.more.items
}

// Pairs yields the keys and values of a map in their order.
func (v Value) Pairs() iter.Seq2[Value, Value] {
	return func(yield func(Value, Value) bool) {
		if v.kind != Map {
			return
		}
		for i := 0; i+1 < len(v.more.items); i += 2 {
			if !yield(v.more.items[i], v.more.items[i+1]) {
				return
			}
		}
	}
}

// Truth reports whether a condition with this value holds: a number that is not 0, a string or array that is not empty.
func (v Value) Truth() bool {
	switch v.kind {
	case Number:
		return v.number != 0
	case String:
		return v.text != ""
	case Array:
		return len(v.more.items) > 0
	}
	return false
}

// Size returns about how many bytes of memory the value takes beside the Value itself.
func (v Value) Size() int {
	n := len(v.text)
	if v.more == nil {
		return n
	}
	const own = 40
	n += 4*own + v.more.shown.Size() + v.more.expanded.Size()
	for _, item := range v.more.items {
		n += own + item.Size()
	}
	return n
}
