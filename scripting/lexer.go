package scripting

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// lexer splits a source into the tokens of Lua 5.1.
type lexer struct {
	name   string // the source's name in messages
	source string
	at     int // the position up to which the source was read
	line   int // the line of at

	token token
	ahead token // the token after token, if ready
	ready bool  // ahead was read
	last  int   // the line in which the token before ended
}

// token is a token of a source.
type token struct {
	kind  tokenKind
	text  string // a name, the content of a string, a number in digits
	shown string // its form in messages
	line  int    // the line that it begins in
	ended int    // the line that it ends in
}

// tokenKind is a token's character if it consists of one, or one of the following.
type tokenKind int

const (
	tokEOF tokenKind = iota + 256
	tokName
	tokString
	tokNumber
	tokConcat
	tokDots
	tokEqual
	tokNotEqual
	tokLess
	tokGreater
	tokAnd
	tokBreak
	tokDo
	tokElse
	tokElseIf
	tokEnd
	tokFalse
	tokFor
	tokFunction
	tokIf
	tokIn
	tokLocal
	tokNil
	tokNot
	tokOr
	tokRepeat
	tokReturn
	tokThen
	tokTrue
	tokUntil
	tokWhile
)

// words are the tokens that are always spelled the same.
var words = map[tokenKind]string{
	tokEOF: "<eof>", tokName: "<name>", tokConcat: "..", tokDots: "...", tokEqual: "==", tokNotEqual: "~=",
	tokLess: "<=", tokGreater: ">=",
	tokAnd: "and", tokBreak: "break", tokDo: "do", tokElse: "else", tokElseIf: "elseif", tokEnd: "end",
	tokFalse: "false", tokFor: "for",
	tokFunction: "function", tokIf: "if", tokIn: "in", tokLocal: "local", tokNil: "nil", tokNot: "not", tokOr: "or",
	tokRepeat: "repeat",
	tokReturn: "return", tokThen: "then", tokTrue: "true", tokUntil: "until", tokWhile: "while",
}

// reserved are the names that are keywords.
var reserved = func() map[string]tokenKind {
	m := map[string]tokenKind{}
	for kind := tokAnd; kind <= tokWhile; kind++ {
		m[words[kind]] = kind
	}
	return m
}()

// String returns the name of the kind of token in messages.
func (k tokenKind) String() string {
	if word, ok := words[k]; ok {
		return word
	}
	if k < ' ' || k == 0x7f {
		return fmt.Sprintf("char(%d)", int(k))
	}
	return string([]byte{byte(k)})
}

// syntaxError is a mistake in a source, as a message of Lua.
type syntaxError string

// fail ends the parsing.
func (l *lexer) fail(message string) {
	panic(syntaxError(fmt.Sprintf("%s:%d: %s", l.name, l.line, message)))
}

// failNear ends the parsing because of a token. As in C, nothing is shown after a zero byte.
func (l *lexer) failNear(message, shown string) {
	shown, _, _ = strings.Cut(shown, "\x00")
	l.fail(message + " near '" + shown + "'")
}

// next goes to the next token.
func (l *lexer) next() {
	l.last = l.token.ended
	if l.ready {
		l.token, l.ready = l.ahead, false
		return
	}
	l.read(&l.token)
}

// peek returns the kind of the token after the present one.
func (l *lexer) peek() tokenKind {
	if !l.ready {
		l.read(&l.ahead)
		l.ready = true
	}
	return l.ahead.kind
}

// char returns the character n after the present one, -1 at the end.
func (l *lexer) char(n int) int {
	if l.at+n < len(l.source) {
		return int(l.source[l.at+n])
	}
	return -1
}

// newline goes past the end of a line, of one or two characters.
func (l *lexer) newline() {
	c := l.source[l.at]
	l.at++
	if d := l.char(0); (d == '\n' || d == '\r') && byte(d) != c {
		l.at++
	}
	l.line++
}

// read reads the next token.
func (l *lexer) read(t *token) {
	l.skip()
	start := l.at
	*t = token{line: l.line}
	c := l.char(0)
	switch {
	case c < 0:
		t.kind = tokEOF
	case isLetter(c):
		for l.at++; isLetter(l.char(0)) || isDecimal(l.char(0)); l.at++ {
		}
		t.text = l.source[start:l.at]
		if t.kind = reserved[t.text]; t.kind == 0 {
			t.kind, t.shown = tokName, t.text
		}
	case isDecimal(c) || c == '.' && isDecimal(l.char(1)):
		l.number(t)
	case c == '"' || c == '\'':
		l.quoted(t, byte(c))
	case c == '[' && (l.char(1) == '[' || l.char(1) == '='):
		if level, ok := l.bracket(); ok {
			t.kind, t.text = tokString, l.long(level, "string")
			t.shown = "[" + strings.Repeat("=", level) + "[" + l.source[start+level+2:l.at]
			break
		}
		l.failNear("invalid long string delimiter",
			l.source[start:start+1+len(l.source[start+1:])-len(strings.TrimLeft(l.source[start+1:], "="))])
	default:
		t.kind = l.symbol(c)
	}
	if t.shown == "" {
		t.shown = t.kind.String()
	}
	t.ended = l.line
}

// symbol reads a token of one to three characters, the first of which is c.
func (l *lexer) symbol(c int) tokenKind {
	two := tokenKind(0)
	switch {
	case c == '.' && l.char(1) == '.' && l.char(2) == '.':
		l.at += 3
		return tokDots
	case c == '.' && l.char(1) == '.':
		two = tokConcat
	case l.char(1) != '=':
	case c == '=':
		two = tokEqual
	case c == '~':
		two = tokNotEqual
	case c == '<':
		two = tokLess
	case c == '>':
		two = tokGreater
	}
	if two != 0 {
		l.at += 2
		return two
	}
	l.at++
	return tokenKind(c)
}

// skip goes to the beginning of the next token.
func (l *lexer) skip() {
	for {
		switch c := l.char(0); {
		case c == '\n' || c == '\r':
			l.newline()
		case c == ' ' || c == '\t' || c == '\v' || c == '\f':
			l.at++
		case c == '-' && l.char(1) == '-':
			l.at += 2
			if l.char(0) == '[' {
				if level, ok := l.bracket(); ok {
					l.long(level, "comment")
					continue
				}
			}
			if end := strings.IndexAny(l.source[l.at:], "\r\n"); end >= 0 {
				l.at += end
			} else {
				l.at = len(l.source)
			}
		default:
			return
		}
	}
}

// number reads a number.
func (l *lexer) number(t *token) {
	start := l.at
	for isDecimal(l.char(0)) || l.char(0) == '.' {
		l.at++
	}
	if c := l.char(0); c == 'e' || c == 'E' {
		if l.at++; l.char(0) == '+' || l.char(0) == '-' {
			l.at++
		}
	}
	for isLetter(l.char(0)) || isDecimal(l.char(0)) {
		l.at++
	}
	text := l.source[start:l.at]
	value, ok := parseNumber(text)
	if !ok {
		l.failNear("malformed number", text)
	}
	t.kind, t.shown, t.text = tokNumber, text, text
	if text[0] == '0' && len(text) > 1 || math.IsInf(value, 0) { // which the compiler may read differently
		t.text = strconv.FormatFloat(value, 'g', -1, 64)
	}
}

// quoted reads a string in quotes.
func (l *lexer) quoted(t *token, quote byte) {
	l.at++
	start := l.at
	var b []byte // the string's bytes if they differ from the source; nil otherwise
	text := func() string {
		if b != nil {
			return string(b)
		}
		return l.source[start:l.at]
	}
	for {
		c := l.char(0)
		switch {
		case c == int(quote):
			t.kind, t.text = tokString, text()
			l.at++
			t.shown = string(quote) + t.text + string(quote)
			return
		case c < 0:
			l.failNear("unfinished string", tokEOF.String())
		case c == '\n' || c == '\r':
			l.failNear("unfinished string", string(quote)+text())
		case c == '\\':
			if b == nil {
				b = append(make([]byte, 0, l.at-start+16), l.source[start:l.at]...)
			}
			b = l.escape(b, quote)
		default:
			if b != nil {
				b = append(b, byte(c))
			}
			l.at++
		}
	}
}

// escape reads an escape sequence that begins with a backslash and appends its value.
func (l *lexer) escape(b []byte, quote byte) []byte {
	l.at++
	c := l.char(0)
	if c < 0 {
		return b // the string is not finished
	}
	if i := strings.IndexByte("abfnrtv", byte(c)); i >= 0 {
		l.at++
		return append(b, "\a\b\f\n\r\t\v"[i])
	}
	switch {
	case c == '\n' || c == '\r':
		l.newline()
		return append(b, '\n')
	case !isDecimal(c):
		l.at++
		return append(b, byte(c))
	}
	value := 0
	for i := 0; i < 3 && isDecimal(l.char(0)); i++ {
		value = 10*value + l.char(0) - '0'
		l.at++
	}
	if value > 255 {
		l.failNear("escape sequence too large", string(quote)+string(b))
	}
	return append(b, byte(value))
}

// bracket goes past an opening long bracket, and returns its number of '='. ok is false if there is none; then nothing
// is read.
func (l *lexer) bracket() (level int, ok bool) {
	for l.char(1+level) == '=' {
		level++
	}
	if l.char(1+level) != '[' {
		return 0, false
	}
	l.at += level + 2
	return level, true
}

// long reads the content of a long string or comment after its opening bracket, and its end.
func (l *lexer) long(level int, what string) string {
	if c := l.char(0); c == '\n' || c == '\r' {
		l.newline()
	}
	var b strings.Builder
	start := l.at
	closing := "]" + strings.Repeat("=", level) + "]"
	for {
		switch c := l.char(0); {
		case c < 0:
			l.failNear("unfinished long "+what, tokEOF.String())
		case c == '\n' || c == '\r':
			b.WriteString(l.source[start:l.at])
			b.WriteByte('\n')
			l.newline()
			start = l.at
		case c == ']' && strings.HasPrefix(l.source[l.at:], closing):
			b.WriteString(l.source[start:l.at])
			l.at += len(closing)
			return b.String()
		default:
			l.at++
		}
	}
}

func isLetter(c int) bool { return c == '_' || c >= 'A' && c <= 'Z' || c >= 'a' && c <= 'z' }

func isDecimal(c int) bool { return c >= '0' && c <= '9' }
