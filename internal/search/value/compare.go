package value

import (
	"cmp"
	"strconv"

	"github.com/atomredis/atomredis/internal/search/query"
)

// Compare compares values as the operators < and > do. Null is lower than all others. If one side is a number the
// other is converted to a number, and it is an error if that fails.
func Compare(a, b Value) (int, error) {
	if a.kind == Number && b.kind != Number && !b.IsNull() {
		f, err := mustNumber(b)
		return cmp.Compare(a.number, f), err
	}
	if b.kind == Number && a.kind != Number && !a.IsNull() {
		f, err := mustNumber(a)
		return cmp.Compare(f, b.number), err
	}
	return Order(a, b), nil
}

// errNotNumber is the error of a comparison. It has no code, as in the reference.
var errNotNumber = &query.Error{Text: "Error converting string"}

func mustNumber(v Value) (float64, error) {
	f, ok := v.ToNumber()
	if ok {
		return f, nil
	}
	return 0, errNotNumber
}

// Order compares values as sorting does. It is Compare without errors: a text that is no number is compared with the text of the
// number. An array is compared by its first element. NaN is lower than all numbers.
func Order(a, b Value) int {
	switch {
	case a.IsNull() || b.IsNull():
		return cmp.Compare(notNull(a), notNull(b))
	case a.kind == b.kind:
		return orderSame(a, b)
	case a.kind == Number:
		if f, ok := b.ToNumber(); ok {
			return cmp.Compare(a.number, f)
		}
	case b.kind == Number:
		if f, ok := a.ToNumber(); ok {
			return cmp.Compare(f, b.number)
		}
	}
	return cmp.Compare(a.plain(), b.plain())
}

func orderSame(a, b Value) int {
	switch a.kind {
	case Number:
		return cmp.Compare(a.number, b.number)
	case String:
		return cmp.Compare(a.text, b.text)
	case Array:
		if len(a.more.items) > 0 && len(b.more.items) > 0 {
			return Order(a.more.items[0], b.more.items[0])
		}
		return cmp.Compare(len(a.more.items), len(b.more.items))
	}
	return 0
}

func notNull(v Value) int {
	if v.IsNull() {
		return 0
	}
	return 1
}

// plain is the text of a value where numbers are compared as text.
func (v Value) plain() string {
	if v.kind == Number {
		return strconv.FormatFloat(v.number, 'f', 6, 64)
	}
	return v.text
}

// Equal reports whether values are equal as == sees them. A number equals a text that is this number; null equals only null.
func Equal(a, b Value) bool {
	switch {
	case a.IsNull() || b.IsNull():
		return a.IsNull() && b.IsNull()
	case a.kind != b.kind && (a.kind == Number || b.kind == Number):
		f, ok := a.ToNumber()
		g, also := b.ToNumber()
		return ok && also && f == g
	case a.kind == Number:
		return a.number == b.number
	}
	return Order(a, b) == 0
}
