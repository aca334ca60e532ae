package documents

import (
	"bytes"
	"math"
	"strconv"
)

// Layout says how JSON is printed; the zero value prints no white space.
type Layout struct {
	Indent  string // per level
	Newline string // after each element and member
	Space   string // between a name's colon and its value
	// Limit is the length in bytes after which no further elements are printed; 0 is no limit. A text that exceeds it
	// is incomplete.
	Limit int
}

// Full reports whether a text has become longer than Limit.
func (l *Layout) Full(text []byte) bool { return l.Limit > 0 && len(text) > l.Limit }

// AppendJSON appends the value as JSON.
func (v Value) AppendJSON(dst []byte, l Layout) []byte { return v.AppendNested(dst, l, 0) }

// AppendNested is AppendJSON for a value nested level levels deep in a larger text.
func (v Value) AppendNested(dst []byte, l Layout, level int) []byte { return v.append(dst, &l, level) }

func (v Value) append(dst []byte, l *Layout, level int) []byte {
	kind := v.Kind()
	switch kind {
	case Null:
		return append(dst, "null"...)
	case Boolean:
		return strconv.AppendBool(dst, v.Bool())
	case Integer:
		if i, ok := v.Int(); ok {
			return strconv.AppendInt(dst, i, 10)
		}
		return strconv.AppendUint(dst, v.n, 10)
	case Number:
		return AppendDouble(dst, v.Float())
	case String:
		return AppendQuoted(dst, v.text())
	}
	plain, encoded := l.Newline == "" && l.Indent == "", v.form() != formList
	dst = append(dst, "[{"[btoi(kind == Object)])
	it := v.iterate(0)
	for i := 0; !l.Full(dst); i++ {
		name, element, ok := it.next()
		if !ok {
			if i > 0 && !plain {
				dst = l.AppendBreak(dst, level)
			}
			break
		}
		if i > 0 {
			dst = append(dst, ',')
		}
		if !plain {
			dst = l.AppendBreak(dst, level+1)
		}
		if kind == Object {
			dst = append(append(AppendQuoted(dst, name), ':'), l.Space...)
		}
		if t := element.FloatType(); t != Float64 && encoded {
			dst = appendNumber(dst, element.Float(), t) // the type matters only within its array
		} else {
			dst = element.append(dst, l, level+1)
		}
	}
	return append(dst, "]}"[btoi(kind == Object)])
}

// AppendBreak appends the white space before an element at a level: a new line and its indentation.
func (l *Layout) AppendBreak(dst []byte, level int) []byte {
	dst = append(dst, l.Newline...)
	for range level {
		dst = append(dst, l.Indent...)
	}
	return dst
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

const hexDigits = "0123456789abcdef"

// AppendQuoted appends a string as JSON, with only the required escapes.
func AppendQuoted(dst []byte, s string) []byte {
	dst = append(dst, '"')
	from := 0
	for i := range len(s) {
		c := s[i]
		if c >= ' ' && c != '"' && c != '\\' {
			continue
		}
		dst = append(dst, s[from:i]...)
		from = i + 1
		switch c {
		case '"', '\\':
			dst = append(dst, '\\', c)
		case '\b':
			dst = append(dst, `\b`...)
		case '\f':
			dst = append(dst, `\f`...)
		case '\n':
			dst = append(dst, `\n`...)
		case '\r':
			dst = append(dst, `\r`...)
		case '\t':
			dst = append(dst, `\t`...)
		default:
			dst = append(dst, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&15])
		}
	}
	return append(append(dst, s[from:]...), '"')
}

// Numbers are printed without an exponent from 10^minPoint to below 10^maxPoint.
const (
	minPoint = -5
	maxPoint = 16
)

// AppendDouble appends the shortest decimal that reads back as f, which is finite. It always has a fraction or an
// exponent.
func AppendDouble(dst []byte, f float64) []byte { return appendNumber(dst, f, Float64) }

// appendNumber is AppendDouble for a number of a type: reading rounds to that type.
func appendNumber(dst []byte, f float64, t FloatType) []byte {
	if f == 0 {
		if math.Signbit(f) {
			dst = append(dst, '-')
		}
		return append(dst, "0.0"...)
	}
	var buf [32]byte
	b := appendDigits(buf[:0], f, t)
	if b[0] == '-' {
		dst, b = append(dst, '-'), b[1:]
	}
	e := bytes.IndexByte(b, 'e')
	exponent, _ := strconv.Atoi(string(b[e+1:]))
	digits := append([]byte(nil), b[0])
	if e > 2 {
		digits = append(digits, b[2:e]...)
	}
	switch point := exponent + 1; {
	case exponent < minPoint || exponent >= maxPoint:
		dst = append(dst, digits[0])
		if len(digits) > 1 {
			dst = append(append(dst, '.'), digits[1:]...)
		}
		return strconv.AppendInt(append(dst, 'e'), int64(exponent), 10)
	case point <= 0:
		dst = append(dst, "0."...)
		for range -point {
			dst = append(dst, '0')
		}
		return append(dst, digits...)
	case point >= len(digits):
		dst = append(dst, digits...)
		for range point - len(digits) {
			dst = append(dst, '0')
		}
		return append(dst, ".0"...)
	default:
		return append(append(append(dst, digits[:point]...), '.'), digits[point:]...)
	}
}
