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

// Parse returns the value of a JSON text, of which it keeps nothing. Of members with the same name the last one counts,
// in the position of the first. The error says what is wrong and where.
func Parse(text []byte) (Value, error) {
	if !utf8.Valid(text) {
		return Value{}, ErrUTF8
	}
	p := parser{b: text}
	v, err := p.whole()
	if err == errMembers {
		p = parser{b: text, twice: true}
		v, err = p.whole()
	}
	return v, err
}

// errMembers says that an object has members with the same name, which the slower pass must read.
var errMembers = errors.New("a name is there twice")

// ParseNumber returns the value of a JSON text that must be a number.
func ParseNumber(text []byte) (Value, error) {
	v, err := Parse(text)
	if err == nil && !v.IsNumber() {
		return Value{}, errors.New("ERR invalid number")
	}
	return v, err
}

// parser reads a JSON text and encodes it with a builder. If an object repeats a name, the parser starts again and
// collects the content of objects in lists until they are complete.
type parser struct {
	builder
	b     []byte
	at    int
	twice bool
	keys  []string // of the objects that are open
	text  []byte   // of a string with escapes
}

// manyMembers is the number of members from which a map finds repeated names.
const manyMembers = 16

// whole reads the whole text.
func (p *parser) whole() (Value, error) {
	p.space()
	if err := p.value(0); err != nil {
		return Value{}, err
	}
	if p.space(); p.at < len(p.b) {
		return Value{}, p.fail("trailing characters", p.at+1)
	}
	c := p.chunk(1)
	return decode(c.enc, c.refs), nil
}

// fail returns an error at a position; the first one is 1.
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
func (p *parser) value(depth int) error {
	if p.at == len(p.b) {
		return p.eof("a value")
	}
	switch c := p.b[p.at]; {
	case c == '{' || c == '[':
		if depth == MaxDepth {
			return p.fail("recursion limit exceeded", p.at+1)
		}
		p.at++
		switch {
		case c == '[':
			return p.array(depth + 1)
		case p.twice:
			return p.members(depth + 1)
		}
		return p.object(depth + 1)
	case c == '"':
		p.at++
		b, err := p.string()
		if err == nil {
			p.buf = appendText(p.buf, view(b))
		}
		return err
	case c == '-' || '0' <= c && c <= '9':
		v, err := p.number()
		if err == nil {
			p.buf = appendScalar(p.buf, v)
		}
		return err
	case c == 't':
		p.buf = append(p.buf, tagTrue)
		return p.literal("true")
	case c == 'f':
		p.buf = append(p.buf, tagFalse)
		return p.literal("false")
	case c == 'n':
		p.buf = append(p.buf, tagNull)
		return p.literal("null")
	}
	return p.fail("expected value", p.at+1)
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

// more advances to the next element of a list or object that ends with closing, and reports whether there is one.
func (p *parser) more(first bool, in string, closing byte) (bool, error) {
	p.space()
	if p.at == len(p.b) {
		return false, p.eof(in)
	}
	if p.b[p.at] == closing {
		p.at++
		return false, nil
	}
	if !first {
		if p.b[p.at] != ',' {
			return false, p.fail("expected `,` or `"+string(closing)+"`", p.at+1)
		}
		p.at++
		if p.space(); p.at < len(p.b) && p.b[p.at] == closing {
			return false, p.fail("trailing comma", p.at+1)
		}
	}
	return true, nil
}

func (p *parser) array(depth int) error {
	p.begin(false)
	for first := true; ; first = false {
		more, err := p.more(first, "a list", ']')
		if err != nil {
			return err
		}
		if !more {
			p.end()
			return nil
		}
		p.element()
		if err := p.value(depth); err != nil {
			return err
		}
	}
}

func (p *parser) object(depth int) error {
	from := len(p.keys)
	var seen map[string]struct{} // the names, if there are many
	p.begin(true)
	for first := true; ; first = false {
		more, err := p.more(first, "an object", '}')
		if err != nil {
			return err
		}
		if !more {
			p.keys = p.keys[:from]
			p.end()
			return nil
		}
		name, err := p.name()
		if err != nil {
			return err
		}
		switch n := len(p.keys) - from; {
		case n < manyMembers:
			if indexOf(p.keys[from:], name) >= 0 {
				return errMembers
			}
			p.keys = append(p.keys, name)
		case seen == nil:
			seen = make(map[string]struct{}, 2*manyMembers)
			for _, key := range p.keys[from:] {
				seen[key] = struct{}{}
			}
			fallthrough
		default:
			if _, twice := seen[name]; twice {
				return errMembers
			}
			seen[name] = struct{}{}
		}
		p.element()
		p.buf = appendName(p.buf, name)
		if err := p.value(depth); err != nil {
			return err
		}
	}
}

// members is object for one that may repeat names.
func (p *parser) members(depth int) error {
	var names []string
	var vals []Value
	places := map[string]int{}
	outer := p.builder
	for first := true; ; first = false {
		more, err := p.more(first, "an object", '}')
		if err != nil {
			return err
		}
		if !more {
			p.builder = outer
			p.builder.value(NewObject(names, vals))
			return nil
		}
		name, err := p.name()
		if err != nil {
			return err
		}
		p.builder = builder{}
		if err := p.value(depth); err != nil {
			return err
		}
		c := p.chunk(1)
		v := decode(c.enc, c.refs)
		if i, twice := places[name]; twice {
			vals[i] = v
			continue
		}
		places[name] = len(vals)
		names, vals = append(names, name), append(vals, v)
	}
}

// name reads the name of a member and the colon after it.
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
	name := view(b)
	if len(p.text) > 0 {
		name = string(b) // the next string with escapes reuses the buffer
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

// string reads the rest of a string. The result is a view, valid until the next string is read.
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

// hex reads the next four hexadecimal digits, and stops at the last one.
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

// cut returns the error for an incomplete number.
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

// indexOf returns the index of a name, -1 if it is absent.
func indexOf(keys []string, name string) int {
	for i, key := range keys {
		if key == name {
			return i
		}
	}
	return -1
}
