// Package filter has the expressions that select elements of vector sets: conditions on the fields of a JSON object.
// filter.go compiles and evaluates them, lex.go splits them into tokens, json.go finds fields.
//
// An operand is a number, a string, null, a list in brackets, or a field of the object (.name). true and false in the
// object are 1 and 0. If a named field is missing or is an object, the expression is false, whatever else it says.
// Operators by precedence, highest first:
//
//	not !              true for 0, "", null and an empty list
//	**                 right-associative
//	* / %
//	+ -
//	< <= > >= == != in
//	and &&
//	or ||
//
// == and != compare strings with each other; everywhere else a string counts as the number at its start, or 0. in looks
// for an equal element of a list, or for a substring.
package filter

import (
	"math"
	"strings"
)

// SyntaxError says that an expression is invalid.
type SyntaxError struct{ Near string }

func (e *SyntaxError) Error() string { return "syntax error in FILTER expression near: " + e.Near }

// Filter is a compiled expression, for use by one goroutine.
type Filter struct {
	code  []token // operators after their operands
	stack []value
}

// kind is the kind of a value.
type kind uint8

const (
	null kind = iota
	number
	text
	list
)

// value is the value of an operand.
type value struct {
	kind  kind
	num   float64
	text  string
	items []value
}

// operator is what an operator does.
type operator uint8

const (
	noOperator operator = iota
	opOpen              // only on the stack of operators
	opOr
	opAnd
	opLess
	opLessEqual
	opGreater
	opGreaterEqual
	opEqual
	opNotEqual
	opIn
	opAdd
	opSubtract
	opMultiply
	opDivide
	opModulo
	opPower
	opNot
)

// binding is the precedence of operators.
var binding = [...]int{opOr: 1, opAnd: 2, opLess: 3, opLessEqual: 3, opGreater: 3, opGreaterEqual: 3, opEqual: 3,
	opNotEqual: 3, opIn: 3, opAdd: 4, opSubtract: 4, opMultiply: 5, opDivide: 5, opModulo: 5, opPower: 6, opNot: 7}

// Parse compiles an expression. The error is a *SyntaxError.
func Parse(expr string) (*Filter, error) {
	tokens, err := lex(expr)
	if err != nil {
		return nil, err
	}
	wrong := &SyntaxError{expr}
	f := new(Filter)
	var waiting []operator
	wanted := true // an operand is expected
	for _, t := range tokens {
		// Where an operand is expected, only the start of one may follow.
		begins := t.is == operand || t.is == field || t.is == open || t.is == operation && t.op == opNot
		if t.is != end && begins != wanted {
			return nil, wrong
		}
		switch t.is {
		case operand, field:
			f.code = append(f.code, t)
			wanted = false
		case open:
			waiting = append(waiting, opOpen)
		case operation:
			for n := len(waiting); t.op != opNot && n > 0; n = len(waiting) {
				top := waiting[n-1]
				if top == opOpen || binding[top] < binding[t.op] || top == opPower && t.op == opPower {
					break
				}
				f.code = append(f.code, token{is: operation, op: top})
				waiting = waiting[:n-1]
			}
			waiting = append(waiting, t.op)
			wanted = true
		case closing, end:
			if wanted {
				return nil, wrong
			}
			for n := len(waiting); n > 0 && waiting[n-1] != opOpen; n = len(waiting) {
				f.code = append(f.code, token{is: operation, op: waiting[n-1]})
				waiting = waiting[:n-1]
			}
			if (len(waiting) > 0) != (t.is == closing) {
				return nil, wrong
			}
			if t.is == closing {
				waiting = waiting[:len(waiting)-1]
			}
		}
	}
	return f, nil
}

// Match reports whether a JSON object fulfils the expression. Anything else has no fields.
func (f *Filter) Match(object string) bool {
	s := f.stack[:0]
	for _, t := range f.code {
		switch {
		case t.is == field:
			v, ok := find(object, t.val.text)
			if !ok {
				return false
			}
			s = append(s, v)
		case t.is == operand:
			s = append(s, t.val)
		case t.op == opNot:
			s[len(s)-1] = truth(!s[len(s)-1].isTrue())
		default:
			n := len(s) - 2
			s[n] = t.op.apply(s[n], s[n+1])
			s = s[:n+1]
		}
	}
	f.stack = s
	return s[0].isTrue()
}

func truth(b bool) value {
	if b {
		return value{kind: number, num: 1}
	}
	return value{kind: number}
}

func (v value) isTrue() bool {
	switch v.kind {
	case number:
		return v.num != 0
	case text:
		return v.text != ""
	}
	return len(v.items) > 0
}

// number returns the number that a value counts as.
func (v value) number() float64 {
	if v.kind == text {
		return leadingNumber(v.text)
	}
	return v.num
}

func equal(a, b value) bool {
	switch {
	case a.kind == null || b.kind == null:
		return a.kind == b.kind
	case a.kind == list || b.kind == list:
		return false
	case a.kind == text && b.kind == text:
		return a.text == b.text
	}
	return a.number() == b.number()
}

// in reports whether a is an element of the list b, or a substring of b.
func in(a, b value) bool {
	if b.kind == text {
		return a.kind == text && strings.Contains(b.text, a.text)
	}
	for _, item := range b.items {
		if equal(a, item) {
			return true
		}
	}
	return false
}

// apply returns the result of an operator.
func (op operator) apply(a, b value) value {
	switch op {
	case opOr:
		return truth(a.isTrue() || b.isTrue())
	case opAnd:
		return truth(a.isTrue() && b.isTrue())
	case opEqual:
		return truth(equal(a, b))
	case opNotEqual:
		return truth(!equal(a, b))
	case opIn:
		return truth(in(a, b))
	}
	x, y := a.number(), b.number()
	switch op {
	case opLess:
		return truth(x < y)
	case opLessEqual:
		return truth(x <= y)
	case opGreater:
		return truth(x > y)
	case opGreaterEqual:
		return truth(x >= y)
	case opAdd:
		x += y
	case opSubtract:
		x -= y
	case opMultiply:
		x *= y
	case opDivide:
		x /= y
	case opModulo:
		x = math.Mod(x, y)
	case opPower:
		x = math.Pow(x, y)
	}
	return value{kind: number, num: x}
}
