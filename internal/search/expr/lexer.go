package expr

import (
	"strings"

	"github.com/atomredis/atomredis/internal/search/value"
)

// kind is the kind of a token.
type kind uint8

const (
	end kind = iota
	number
	name
	symbol
	text
	operator // also ( ) and ,
	foreign  // a byte that begins no token
)

// token is a token.
type token struct {
	kind   kind
	text   string // the text of the token; for a property without @
	number float64
	pos    int
}

// Classes of bytes. Bytes from 0x80 on are parts of names and have none of them.
func isDigit(c byte) bool { return '0' <= c && c <= '9' }
func isAlpha(c byte) bool { return 'a' <= c|0x20 && c|0x20 <= 'z' }
func isSpace(c byte) bool { return c == ' ' || '\t' <= c && c <= '\r' }
func isPunct(c byte) bool { return '!' <= c && c <= '~' && !isDigit(c) && !isAlpha(c) }
func isCntrl(c byte) bool { return c < ' ' || c == 0x7f }

// operators are the tokens that are signs, the longer ones first.
var operators = []string{"==", "!=", "<=", ">=", "&&", "||", "<", ">", "!", "+", "-", "*", "/", "%", "^", "(", ")", ","}

// lexer splits a text into tokens. A sign before a digit belongs to the number, so 1+2 is the two tokens 1 and +2.
// Other punctuation is skipped like blanks.
type lexer struct {
	s  string
	at int
}

// next returns the next token.
func (l *lexer) next() token {
	for l.at < len(l.s) {
		if t, n := l.token(); n > 0 {
			t.pos = l.at
			l.at += n
			return t
		}
		if c := l.s[l.at]; !isSpace(c) && !isPunct(c) && !isCntrl(c) {
			return token{kind: foreign, pos: l.at}
		}
		l.at++
	}
	return token{kind: end, pos: l.at}
}

// token returns the token that begins here and its length, 0 if there is none.
func (l *lexer) token() (token, int) {
	s := l.s[l.at:]
	if n := numberLen(s); n > 0 {
		f, _ := value.ParseNumber(s[:n])
		return token{kind: number, text: s[:n], number: f}, n
	}
	switch c := s[0]; {
	case isAlpha(c):
		n := 1
		for n < len(s) && (isAlpha(s[n]) || isDigit(s[n]) || s[n] == '_') {
			n++
		}
		return token{kind: symbol, text: s[:n]}, n
	case c == '@':
		if n := propertyLen(s); n > 1 {
			return token{kind: name, text: s[1:n]}, n
		}
	case c == '"' || c == '\'':
		if n := stringLen(s); n > 0 {
			return token{kind: text, text: s[:n]}, n
		}
	}
	for _, op := range operators {
		if strings.HasPrefix(s, op) {
			return token{kind: operator, text: op}, len(op)
		}
	}
	return token{}, 0
}

// numberLen returns the length of the number that s begins with. Infinity is a number with a sign only.
func numberLen(s string) int {
	n := 0
	if s[0] == '+' || s[0] == '-' {
		n = 1
		if strings.HasPrefix(s[1:], "inf") {
			return len("+inf")
		}
	}
	digits := func(at int) int {
		for at < len(s) && isDigit(s[at]) {
			at++
		}
		return at
	}
	whole := digits(n)
	if whole == n {
		return 0
	}
	n = whole
	if n < len(s) && s[n] == '.' {
		if fraction := digits(n + 1); fraction > n+1 {
			n = fraction
		}
	}
	if n < len(s) && s[n]|0x20 == 'e' {
		start := n + 1
		if start < len(s) && (s[start] == '+' || s[start] == '-') {
			start++
		}
		if exponent := digits(start); exponent > start {
			n = exponent
		}
	}
	return n
}

// escaped reports whether a byte loses its meaning behind a backslash.
func escaped(c byte) bool { return isPunct(c) || isSpace(c) }

// propertyLen returns the length of the name that s begins with, with its @.
func propertyLen(s string) int {
	n := 1
	for n < len(s) {
		switch c := s[n]; {
		case c == '\\' && n+1 < len(s) && escaped(s[n+1]):
			n += 2
		case c == '_' || !isPunct(c) && !isCntrl(c) && !isSpace(c):
			n++
		default:
			return n
		}
	}
	return n
}

// stringLen returns the length of the string that s begins with, with its quotes; 0 if it does not end. A quote
// after a backslash ends it only if no other quote does.
func stringLen(s string) int {
	last := 0
	for n := 1; n < len(s) && s[n] != '\n'; n++ {
		switch c := s[n]; {
		case c == s[0]:
			return n + 1
		case c == '\\' && n+1 < len(s) && escaped(s[n+1]):
			n++
			if s[n] == s[0] {
				last = n + 1
			}
		}
	}
	return last
}

// unescape removes the backslashes before punctuation and blanks.
func unescape(s string) string {
	if strings.IndexByte(s, '\\') < 0 {
		return s
	}
	b := make([]byte, 0, len(s))
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+1 < len(s) && escaped(s[i+1]) {
			i++
		}
		b = append(b, s[i])
	}
	return string(b)
}
