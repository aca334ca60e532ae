package documents

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
	"unsafe"
)

// ErrUTF8 is given for text that is not valid UTF-8.
var ErrUTF8 = errors.New("ERR Couldn't parse as UTF-8 string")

// Parse returns the value that a JSON text has. It keeps nothing of the text. Of members with the same name the last
// one counts, in the place of the first one. The error says what is wrong and where.
func Parse(text []byte) (Value, error) {
	if !utf8.Valid(text) {
		return Value{}, ErrUTF8
	}
	p := parser{b: text}
	p.space()
	v, err := p.value(0)
	if err != nil {
		return Value{}, err
	}
	if p.space(); p.at < len(p.b) {
		return Value{}, p.fail("trailing characters", p.at+1)
	}
	return v, nil
}

// ParseNumber returns the value of a JSON text that is a number.
func ParseNumber(text []byte) (Value, error) {
	v, err := Parse(text)
	if err == nil && !v.IsNumber() {
		return Value{}, errors.New("ERR invalid number")
	}
	return v, err
}

// parser reads a JSON text. Its stack of names and values is shared by the containers that are open, so that every
// container gets exactly the memory that it needs.
type parser struct {
	b     []byte
	at    int
	vals  []Value
	keys  []string
	known map[string]string // names that were seen, so that they are kept once
	text  []byte            // of a string with escapes
}

const (
	// maxKnown is how many names are kept to be used again, and maxKnownLen how long they may be.
	maxKnown    = 4096
	maxKnownLen = 64
	// manyMembers is the number of members from which on a map finds those that are there twice.
	manyMembers = 16
)

// fail returns an error at a place, the first one being 1.
func (p *parser) fail(what string, at int) error {
	line, column := 1, 0
	for _, c := range p.b[:min(at, len(p.b))] {
		if column++; c == '\n' {
			line, column = line+1, 0
		}
	}
	return fmt.Errorf("%s at line %d column %d", what, line, column)
}

// eof returns the error for a text that ends too early.
func (p *parser) eof(in string) error { return p.fail("EOF while parsing "+in, len(p.b)) }

func (p *parser) space() {
	for p.at < len(p.b) {
		switch p.b[p.at] {
		case ' ', '\t', '\n', '\r':
			p.at++
		default:
			return
		}
	}
}

// value reads a value at depth.
func (p *parser) value(depth int) (Value, error) {
	if p.at == len(p.b) {
		return Value{}, p.eof("a value")
	}
	switch c := p.b[p.at]; {
	case c == '{' || c == '[':
		if depth == MaxDepth {
			return Value{}, p.fail("recursion limit exceeded", p.at+1)
		}
		p.at++
		if c == '{' {
			return p.object(depth + 1)
		}
		return p.array(depth + 1)
	case c == '"':
		p.at++
		b, err := p.string()
		if err != nil {
			return Value{}, err
		}
		return Text(string(b)), nil
	case c == '-' || '0' <= c && c <= '9':
		return p.number()
	case c == 't':
		return Bool(true), p.literal("true")
	case c == 'f':
		return Bool(false), p.literal("false")
	case c == 'n':
		return Value{}, p.literal("null")
	}
	return Value{}, p.fail("expected value", p.at+1)
}

func (p *parser) literal(word string) error {
	for i := range len(word) {
		if p.at == len(p.b) {
			return p.eof("a value")
		}
		if p.b[p.at] != word[i] {
			return p.fail("expected ident", p.at+1)
		}
		p.at++
	}
	return nil
}

func (p *parser) array(depth int) (Value, error) {
	from := len(p.vals)
	for first := true; ; first = false {
		p.space()
		if p.at == len(p.b) {
			return Value{}, p.eof("a list")
		}
		if p.b[p.at] == ']' {
			p.at++
			break
		}
		if !first {
			if p.b[p.at] != ',' {
				return Value{}, p.fail("expected `,` or `]`", p.at+1)
			}
			p.at++
			if p.space(); p.at < len(p.b) && p.b[p.at] == ']' {
				return Value{}, p.fail("trailing comma", p.at+1)
			}
		}
		v, err := p.value(depth)
		if err != nil {
			return Value{}, err
		}
		p.vals = append(p.vals, v)
	}
	v := NewArray(append([]Value(nil), p.vals[from:]...)...)
	p.vals = p.vals[:from]
	return v, nil
}

func (p *parser) object(depth int) (Value, error) {
	from, fromKeys := len(p.vals), len(p.keys)
	var places map[string]int // of the members, if there are many
	for first := true; ; first = false {
		p.space()
		if p.at == len(p.b) {
			return Value{}, p.eof("an object")
		}
		if p.b[p.at] == '}' {
			p.at++
			break
		}
		if !first {
			if p.b[p.at] != ',' {
				return Value{}, p.fail("expected `,` or `}`", p.at+1)
			}
			p.at++
			if p.space(); p.at < len(p.b) && p.b[p.at] == '}' {
				return Value{}, p.fail("trailing comma", p.at+1)
			}
		}
		name, err := p.name()
		if err != nil {
			return Value{}, err
		}
		v, err := p.value(depth)
		if err != nil {
			return Value{}, err
		}
		keys := p.keys[fromKeys:]
		if len(keys) == manyMembers {
			places = make(map[string]int, 2*manyMembers)
			for i, key := range keys {
				places[key] = i
			}
		}
		i := -1
		if places == nil {
			i = indexOf(keys, name)
		} else if place, ok := places[name]; ok {
			i = place
		} else {
			places[name] = len(keys)
		}
		if i >= 0 {
			p.vals[from+i] = v
			continue
		}
		p.keys, p.vals = append(p.keys, name), append(p.vals, v)
	}
	v := NewObject(append([]string(nil), p.keys[fromKeys:]...), append([]Value(nil), p.vals[from:]...))
	p.keys, p.vals = p.keys[:fromKeys], p.vals[:from]
	return v, nil
}

// name reads the name of a member and the colon behind it.
func (p *parser) name() (string, error) {
	if p.at == len(p.b) {
		return "", p.eof("an object")
	}
	if p.b[p.at] != '"' {
		return "", p.fail("key must be a string", p.at+1)
	}
	p.at++
	b, err := p.string()
	if err != nil {
		return "", err
	}
	name, ok := p.known[unsafe.String(unsafe.SliceData(b), len(b))]
	if !ok {
		name = string(b)
		if len(name) <= maxKnownLen && len(p.known) < maxKnown {
			if p.known == nil {
				p.known = map[string]string{}
			}
			p.known[name] = name
		}
	}
	if p.space(); p.at == len(p.b) {
		return "", p.eof("an object")
	}
	if p.b[p.at] != ':' {
		return "", p.fail("expected `:`", p.at+1)
	}
	p.at++
	p.space()
	return name, nil
}

// string reads the rest of a string, and returns a view that is valid until the next one is read.
func (p *parser) string() ([]byte, error) {
	from, escaped := p.at, false
	p.text = p.text[:0]
	for ; p.at < len(p.b); p.at++ {
		switch c := p.b[p.at]; {
		case c == '"':
			p.at++
			if !escaped {
				return p.b[from : p.at-1], nil
			}
			p.text = append(p.text, p.b[from:p.at-1]...)
			return p.text, nil
		case c < ' ':
			return nil, p.fail("control character (\\u0000-\\u001F) found while parsing a string", p.at+1)
		case c == '\\':
			p.text = append(p.text, p.b[from:p.at]...)
			escaped = true
			if err := p.escape(); err != nil {
				return nil, err
			}
			from = p.at + 1
		}
	}
	return nil, p.eof("a string")
}

// escape reads an escape sequence, and stops at its last byte.
func (p *parser) escape() error {
	if p.at++; p.at == len(p.b) {
		return p.eof("a string")
	}
	const letters, controls = `"\/bfnrt`, "\"\\/\b\f\n\r\t"
	c := p.b[p.at]
	for i := range len(letters) {
		if letters[i] == c {
			p.text = append(p.text, controls[i])
			return nil
		}
	}
	if c != 'u' {
		return p.fail("invalid escape", p.at+1)
	}
	r, err := p.hex()
	if err != nil {
		return err
	}
	if !utf16.IsSurrogate(r) {
		p.text = utf8.AppendRune(p.text, r)
		return nil
	}
	if r >= 0xdc00 {
		return p.fail("lone leading surrogate in hex escape", p.at+1)
	}
	if p.at+2 >= len(p.b) || p.b[p.at+1] != '\\' || p.b[p.at+2] != 'u' {
		return p.fail("unexpected end of hex escape", p.at+2)
	}
	p.at += 2
	low, err := p.hex()
	if err != nil {
		return err
	}
	if r = utf16.DecodeRune(r, low); r == utf8.RuneError {
		return p.fail("lone leading surrogate in hex escape", p.at+1)
	}
	p.text = utf8.AppendRune(p.text, r)
	return nil
}

// hex reads four hexadecimal digits behind the place, and stops at the last one.
func (p *parser) hex() (r rune, err error) {
	for range 4 {
		if p.at++; p.at == len(p.b) {
			return 0, p.eof("a string")
		}
		digit, err := strconv.ParseUint(string(p.b[p.at]), 16, 8)
		if err != nil {
			return 0, p.fail("invalid escape", p.at+1)
		}
		r = r<<4 | rune(digit)
	}
	return r, nil
}

func (p *parser) number() (Value, error) {
	from := p.at
	if p.b[p.at] == '-' {
		p.at++
	}
	if p.at == len(p.b) {
		return Value{}, p.eof("a value")
	}
	first := p.at
	n := p.digits()
	if n == 0 || n > 1 && p.b[first] == '0' {
		return Value{}, p.fail("invalid number", first+1+min(n, 1))
	}
	whole := true
	if p.at < len(p.b) && p.b[p.at] == '.' {
		whole = false
		p.at++
		if p.digits() == 0 {
			return Value{}, p.cut("invalid number")
		}
	}
	if p.at < len(p.b) && p.b[p.at]|0x20 == 'e' {
		whole = false
		if p.at++; p.at < len(p.b) && (p.b[p.at] == '+' || p.b[p.at] == '-') {
			p.at++
		}
		if p.digits() == 0 {
			return Value{}, p.cut("invalid number")
		}
	}
	text := p.b[from:p.at]
	view := unsafe.String(unsafe.SliceData(text), len(text))
	if whole {
		if i, err := strconv.ParseInt(view, 10, 64); err == nil && (i != 0 || text[0] != '-') {
			return Int(i), nil
		}
		if u, err := strconv.ParseUint(view, 10, 64); err == nil {
			return Uint(u), nil
		}
	}
	f, err := strconv.ParseFloat(view, 64)
	if err != nil || math.IsInf(f, 0) {
		return Value{}, p.fail("number out of range", p.at)
	}
	return Double(f), nil
}

// cut returns the error for a number that is not complete.
func (p *parser) cut(what string) error {
	if p.at == len(p.b) {
		return p.eof("a value")
	}
	return p.fail(what, p.at+1)
}

func (p *parser) digits() (n int) {
	for p.at < len(p.b) && '0' <= p.b[p.at] && p.b[p.at] <= '9' {
		p.at++
		n++
	}
	return n
}

// indexOf returns the place of a name, -1 if it is not there.
func indexOf(keys []string, name string) int {
	for i, key := range keys {
		if key == name {
			return i
		}
	}
	return -1
}
