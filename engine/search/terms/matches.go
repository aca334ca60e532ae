package terms

import (
	"iter"
	"strings"
	"unicode/utf8"
)

// pattern is a parsed pattern.
type pattern []piece

// piece is a byte, or one of the constants.
type piece int16

const (
	anyRune  piece = -1
	anyRunes piece = -2
)

// parsePattern parses a pattern. Consecutive anyRunes become one.
func parsePattern(text string) (p pattern) {
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c == '?':
			p = append(p, anyRune)
		case c == '*':
			if len(p) == 0 || p[len(p)-1] != anyRunes {
				p = append(p, anyRunes)
			}
		case c == '\\' && i+1 < len(text):
			i++
			p = append(p, piece(text[i]))
		default:
			p = append(p, piece(c))
		}
	}
	return p
}

// match reports whether a term matches. On a mismatch, the last anyRunes takes one more byte; earlier ones need no
// retry. So the time is at most proportional to the product of both lengths.
func (p pattern) match(term string) bool {
	i, t := 0, 0
	star, from := -1, 0 // the last anyRunes, and where the pieces after it were last tried
	for t < len(term) {
		switch {
		case i < len(p) && p[i] == anyRunes:
			star, from = i, t
			i++
		case i < len(p) && p[i] == anyRune:
			i++
			t += width(term[t:])
		case i < len(p) && p[i] == piece(term[t]):
			i++
			t++
		case star >= 0:
			from += width(term[from:])
			i, t = star+1, from
		default:
			return false
		}
	}
	for i < len(p) && p[i] == anyRunes {
		i++
	}
	return i == len(p)
}

// width returns the size in bytes of a text's first rune. A byte that is not UTF-8 counts as a rune.
func width(text string) int {
	_, n := utf8.DecodeRuneInString(text)
	return n
}

// shortest returns the length of the shortest matching terms.
func (p pattern) shortest() (n int) {
	for _, c := range p {
		if c != anyRunes {
			n++
		}
	}
	return n
}

// literals returns the bytes before the first anyRune or anyRunes, and the longest literal between two of them.
func (p pattern) literals() (prefix, longest string) {
	var b strings.Builder
	first := true
	end := func() {
		if first {
			prefix, first = b.String(), false
		}
		if b.Len() > len(longest) {
			longest = b.String()
		}
		b.Reset()
	}
	for _, c := range p {
		if c < 0 {
			end()
			continue
		}
		b.WriteByte(byte(c))
	}
	end()
	return prefix, longest
}

// Matches yields the terms that match a pattern: ? is one rune, * any number, a backslash escapes both.
func (d *Dict[V]) Matches(text string) iter.Seq2[string, V] {
	p := parsePattern(text)
	shortest := p.shortest()
	match := func(term string) bool { return len(term) >= shortest && p.match(term) }
	prefix, longest := p.literals()
	if prefix == "" && d.ends != nil && longest != "" {
		return d.filter(d.Contains(longest), match)
	}
	return d.filter(d.Prefix(prefix), match)
}
