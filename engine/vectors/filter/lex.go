package filter

import (
	"strconv"
	"strings"
)

// class is the kind of a token.
type class uint8

const (
	operand class = iota
	field
	operation
	open
	closing
	end
)

// token is a token of an expression.
type token struct {
	is  class
	op  operator
	val value // of an operand; its text is a field's name
}

var operators = map[string]operator{"or": opOr, "||": opOr, "and": opAnd, "&&": opAnd, "<": opLess, "<=": opLessEqual,
	">": opGreater, ">=": opGreaterEqual, "==": opEqual, "!=": opNotEqual, "in": opIn, "+": opAdd, "-": opSubtract,
	"*": opMultiply, "/": opDivide, "%": opModulo, "**": opPower, "not": opNot, "!": opNot}

const signs = "+-*%/!<>=|&"

func isDigit(c byte) bool  { return c-'0' < 10 }
func isLetter(c byte) bool { return c|0x20-'a' < 26 }
func isSpace(c byte) bool  { return c == ' ' || c-'\t' < 5 }

// inName reports whether a byte may occur in a field's name.
func inName(c byte) bool { return isLetter(c) || isDigit(c) || c == '_' || c == '-' || c >= 0x80 }

// lex returns the tokens of an expression, followed by an end.
func lex(expr string) (tokens []token, err error) {
	wrong := func(at int) ([]token, error) { return nil, &SyntaxError{expr[at:]} }
	value := false // the last token ends an operand
	for i := 0; i < len(expr); {
		c := expr[i]
		t := token{}
		switch {
		case isSpace(c):
			i++
			continue
		case c == '.' && (i+1 == len(expr) || !isDigit(expr[i+1])):
			start := i + 1
			for i++; i < len(expr) && inName(expr[i]); i++ {
			}
			t.is, t.val.text = field, expr[start:i]
		case c == '(':
			t.is = open
			i++
		case c == ')':
			t.is = closing
			i++
		case isDigit(c) || (c == '.' || c == '-' && !value) && i+1 < len(expr) && (isDigit(expr[i+1]) || expr[i+1] == '.'):
			n := numberLen(expr[i:])
			if n == 0 {
				return wrong(i)
			}
			t.val = number64(expr[i : i+n])
			i += n
		case c == '"' || c == '\'':
			s, n := quoted(expr[i:])
			if n == 0 {
				return wrong(0)
			}
			t.val.kind, t.val.text = text, s
			i += n
		case c == '[':
			items, n := bracketed(expr[i:])
			if n == 0 {
				return wrong(0)
			}
			t.val.kind, t.val.items = list, items
			i += n
		case isLetter(c):
			start := i
			for ; i < len(expr) && isLetter(expr[i]); i++ {
			}
			switch word := strings.ToLower(expr[start:i]); word {
			case "null":
			case "true", "false": // only valid in the object
				return wrong(0)
			default:
				if t.is, t.op = operation, operators[word]; t.op == noOperator {
					return wrong(i)
				}
			}
		case strings.IndexByte(signs, c) >= 0:
			start := i
			for ; i < len(expr) && strings.IndexByte(signs, expr[i]) >= 0; i++ {
				// An operator may be followed by a number's sign or by a negation.
				if i > start && (expr[i] == '-' || expr[i] == '!') && operators[expr[start:i]] != noOperator {
					break
				}
			}
			if t.is, t.op = operation, operators[expr[start:i]]; t.op == noOperator {
				return wrong(i)
			}
		default:
			return wrong(i)
		}
		value = t.is == operand || t.is == field || t.is == closing
		tokens = append(tokens, t)
	}
	return append(tokens, token{is: end}), nil
}

// numberLen returns the length of the number at the start of s, 0 if there is none.
func numberLen(s string) int {
	i := 0
	if i < len(s) && (s[i] == '-' || s[i] == '+') {
		i++
	}
	digits := 0
	for ; i < len(s) && isDigit(s[i]); i++ {
		digits++
	}
	if i < len(s) && s[i] == '.' {
		for i++; i < len(s) && isDigit(s[i]); i++ {
			digits++
		}
	}
	if digits == 0 {
		return 0
	}
	if i < len(s) && s[i]|0x20 == 'e' {
		j := i + 1
		if j < len(s) && (s[j] == '-' || s[j] == '+') {
			j++
		}
		if j < len(s) && isDigit(s[j]) {
			for i = j; i < len(s) && isDigit(s[i]); i++ {
			}
		}
	}
	return i
}

// number64 returns the value of a number found by numberLen; it is infinite if too large.
func number64(s string) value {
	f, _ := strconv.ParseFloat(s, 64)
	return value{kind: number, num: f}
}

// leadingNumber returns the number at the start of a string, 0 if there is none.
func leadingNumber(s string) float64 {
	s = strings.TrimLeft(s, " \t\n\v\f\r")
	return number64(s[:numberLen(s)]).num
}

// quoted returns the string at the start of s, and its length with the quotes; 0 if it does not end. A backslash makes
// the next byte literal.
func quoted(s string) (content string, n int) {
	quote, escaped := s[0], false
	for i := 1; i < len(s); i++ {
		switch {
		case s[i] == '\\' && i+1 < len(s):
			escaped = true
			i++
		case s[i] == quote:
			content = s[1:i]
			if escaped {
				content = unescape(content)
			}
			return content, i + 1
		}
	}
	return "", 0
}

func unescape(s string) string {
	b := make([]byte, 0, len(s))
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+1 < len(s) {
			i++
		}
		b = append(b, s[i])
	}
	return string(b)
}

// bracketed returns the list at the start of s, and its length with the brackets; 0 if it is malformed.
func bracketed(s string) (items []value, n int) {
	i := 1
	space := func() {
		for i < len(s) && isSpace(s[i]) {
			i++
		}
	}
	for {
		space()
		if i == len(s) {
			return nil, 0
		}
		switch c := s[i]; {
		case c == ']' && len(items) == 0:
			return nil, i + 1
		case c == '"' || c == '\'':
			content, w := quoted(s[i:])
			if w == 0 {
				return nil, 0
			}
			items = append(items, value{kind: text, text: content})
			i += w
		case strings.HasPrefix(s[i:], "null"):
			items = append(items, value{})
			i += len("null")
		default:
			w := numberLen(s[i:])
			if w == 0 {
				return nil, 0
			}
			items = append(items, number64(s[i:i+w]))
			i += w
		}
		space()
		switch {
		case i == len(s):
			return nil, 0
		case s[i] == ']':
			return items, i + 1
		case s[i] != ',':
			return nil, 0
		}
		i++
	}
}
