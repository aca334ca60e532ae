package filter

import (
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// find returns the value of a field of an object; ok is false if there is none, if it is an object, or if the text
// before it is not JSON. It reads no further than the field.
func find(object, name string) (v value, ok bool) {
	r := reader{object}
	if !r.skip('{') {
		return v, false
	}
	for {
		key, ok := r.string()
		if !ok || !r.skip(':') {
			return v, false
		}
		if key == name {
			return r.value(true)
		}
		if !r.pass() || !r.skip(',') {
			return v, false
		}
	}
}

// reader consumes JSON from s.
type reader struct{ s string }

func (r *reader) space() {
	i := 0
	for i < len(r.s) && (r.s[i] == ' ' || r.s[i] == '\t' || r.s[i] == '\n' || r.s[i] == '\r') {
		i++
	}
	r.s = r.s[i:]
}

// skip consumes the byte c if it comes next, and reports whether it did.
func (r *reader) skip(c byte) bool {
	if r.space(); r.s == "" || r.s[0] != c {
		return false
	}
	r.s = r.s[1:]
	return true
}

// raw consumes a string and returns its content between the quotes.
func (r *reader) raw() (s string, escaped, ok bool) {
	if !r.skip('"') {
		return "", false, false
	}
	for i := 0; i < len(r.s); i++ {
		switch r.s[i] {
		case '\\':
			escaped = true
			i++
		case '"':
			s, r.s = r.s[:i], r.s[i+1:]
			return s, escaped, true
		}
	}
	return "", false, false
}

func (r *reader) string() (string, bool) {
	s, escaped, ok := r.raw()
	if escaped {
		return decode(s)
	}
	return s, ok
}

// decode returns a string with its escapes resolved.
func decode(s string) (string, bool) {
	b := make([]byte, 0, len(s))
	for i := 0; i < len(s); i++ {
		if s[i] != '\\' {
			b = append(b, s[i])
			continue
		}
		if i++; i == len(s) {
			return "", false
		}
		if at := strings.IndexByte(`bfnrt"\/`, s[i]); at >= 0 {
			b = append(b, "\b\f\n\r\t\"\\/"[at])
			continue
		}
		unit, ok := hex4(s[i:])
		if !ok {
			return "", false
		}
		i += 4
		if utf16.IsSurrogate(unit) && strings.HasPrefix(s[i+1:], `\u`) {
			if low, ok := hex4(s[i+2:]); ok {
				if whole := utf16.DecodeRune(unit, low); whole != utf8.RuneError {
					unit = whole
					i += 6
				}
			}
		}
		b = utf8.AppendRune(b, unit)
	}
	return string(b), true
}

// hex4 returns the code at the start of s: u and four hexadecimal digits.
func hex4(s string) (rune, bool) {
	if len(s) < 5 || s[0] != 'u' {
		return 0, false
	}
	n, err := strconv.ParseUint(s[1:5], 16, 16)
	return rune(n), err == nil
}

// value consumes a value. Elements of a list that are lists or objects are dropped.
func (r *reader) value(listed bool) (v value, ok bool) {
	r.space()
	if r.s == "" {
		return v, false
	}
	switch c := r.s[0]; {
	case c == '"':
		v.kind = text
		v.text, ok = r.string()
		return v, ok
	case c == '[' && listed:
		r.s = r.s[1:]
		v.kind = list
		if r.skip(']') {
			return v, true
		}
		for {
			if item, ok := r.value(false); ok {
				v.items = append(v.items, item)
			} else if !r.pass() {
				return v, false
			}
			if r.skip(']') {
				return v, true
			}
			if !r.skip(',') {
				return v, false
			}
		}
	case isDigit(c) || c == '-':
		n := numberLen(r.s)
		v = number64(r.s[:n])
		r.s = r.s[n:]
		return v, n > 0
	}
	switch {
	case r.word("true"):
		return truth(true), true
	case r.word("false"):
		return truth(false), true
	case r.word("null"):
		return v, true
	}
	return v, false
}

// word consumes the word w if it comes next, and reports whether it did.
func (r *reader) word(w string) bool {
	if !strings.HasPrefix(r.s, w) {
		return false
	}
	r.s = r.s[len(w):]
	return true
}

// pass consumes any value, checking only brackets and strings.
func (r *reader) pass() bool {
	depth := 0
	for {
		r.space()
		if r.s == "" {
			return false
		}
		switch c := r.s[0]; c {
		case '"':
			if _, _, ok := r.raw(); !ok {
				return false
			}
		case '{', '[':
			depth++
			r.s = r.s[1:]
			continue
		case '}', ']':
			if depth--; depth < 0 {
				return false
			}
			r.s = r.s[1:]
		case ',', ':':
			if depth == 0 {
				return false
			}
			r.s = r.s[1:]
			continue
		default:
			n := strings.IndexAny(r.s, ",:{}[]\" \t\r\n")
			if n < 0 {
				return false
			}
			r.s = r.s[n:]
		}
		if depth == 0 {
			return true
		}
	}
}
