package query

import (
	"math"
	"strconv"
	"strings"

	"github.com/atomredis/atomredis/internal/search/text"
)

// kind is the kind of a token of the query language.
type kind uint8

const (
	endToken kind = iota
	termToken
	stopwordToken // dialect 1 only
	numberToken
	sizeToken  // a number of digits only
	exactToken // a quoted text
	prefixToken
	suffixToken
	containsToken
	wildcardToken
	attributeToken // $name
	modifierToken  // @name
	asToken
	ismissingToken
	arrowToken // =>
	quoteToken // " without an end
	orToken
	leftParen
	rightParen
	leftBrace
	rightBrace
	leftBracket
	rightBracket
	colonToken
	semicolonToken
	minusToken
	tildeToken
	starToken
	percentToken
	notEqualToken
	equalToken
	greaterToken
	greaterEqualToken
	lessToken
	lessEqualToken
)

// token is a piece of a query.
type token struct {
	kind  kind
	pos   int    // its offset in bytes
	text  string // for punctuation the text of the token before, which errors name
	num   float64
	param bool // the text of an affix or a wildcard is the name of a parameter
	sign  int  // of a parameter after a comparison: 1 or -1
}

// charClass is the class of a byte.
type charClass uint8

const (
	wordChar charClass = iota // of words: letters, digits, _ and all from 0x80 on
	blankChar
	punctChar
	controlChar
)

// chars has the class of each byte.
var chars = func() (t [256]charClass) {
	for i := range t {
		switch {
		case i == ' ' || '\t' <= i && i <= '\r':
			t[i] = blankChar
		case i < ' ' || i == 0x7f:
			t[i] = controlChar
		case strings.IndexByte("!\"#$%&'()*+,-./:;<=>?@[\\]^`{|}~", byte(i)) >= 0:
			t[i] = punctChar
		}
	}
	return t
}()

// punctuation has the tokens of one byte.
var punctuation = [256]kind{
	'|': orToken, '(': leftParen, ')': rightParen, '{': leftBrace, '}': rightBrace, '[': leftBracket, ']': rightBracket, ':': colonToken,
	';': semicolonToken, '-': minusToken, '~': tildeToken, '*': starToken, '%': percentToken, '"': quoteToken,
}

// lexer splits a query into tokens. Each token is the longest possible one; bytes that begin none are skipped.
type lexer struct {
	src       string
	at        int
	old       bool // dialect 1
	stopwords *text.Stopwords
	last      token    // the last token; errors at the end of the query use its offset and text
	queue     [2]token // the rest of a comparison, which is three tokens
	queued    int
	before    token // the last token before a comparison, which still counts as the last one after it
}

// next returns the next token, and endToken at the end.
func (l *lexer) next() token {
	if l.queued > 0 {
		l.queued--
		if l.queued == 0 {
			l.last = l.before
		}
		return l.queue[l.queued]
	}
	for l.at < len(l.src) {
		start := l.at
		t := l.scan()
		if t.kind == endToken {
			l.at++
			continue
		}
		if t.kind != wildcardToken {
			t.pos = start
		}
		l.before, l.last = l.last, t
		return t
	}
	l.last.kind = endToken
	return l.last
}

// scan reads a token and moves behind it. If none begins here, it returns endToken and does not move.
func (l *lexer) scan() token {
	c := l.src[l.at]
	switch {
	case c == '@':
		if end := l.termEnd(l.at + 1); end > l.at+1 {
			return l.modifier(end)
		}
	case c == '$':
		if end := l.termEnd(l.at + 1); end > l.at+1 {
			name := l.src[l.at+1 : end]
			if !l.old && l.peek(end) == '*' {
				return l.take(prefixToken, end+1, name, true)
			}
			return l.take(attributeToken, end, name, false)
		}
	case c == '=' && l.peek(l.at+1) == '>':
		// Errors name the byte after the = and the next one.
		return l.take(arrowToken, l.at+2, l.src[l.at+1:min(l.at+3, len(l.src))], false)
	case c == '*':
		if t := l.affix(); t.kind != endToken {
			return t
		}
	case (c == '"' || c == '\'') && !l.old:
		if end := l.exactEnd(l.at); end > 0 {
			if l.peek(end) == '*' {
				return l.take(prefixToken, end+1, l.src[l.at+1:end-1], false)
			}
			return l.take(exactToken, end, l.src[l.at+1:end-1], false)
		}
		if l.peek(l.at+1) == c {
			return l.take(termToken, l.at+2, "", false)
		}
	case c == 'w' && !l.old:
		if end := l.wildcardEnd(l.at + 1); end > 0 {
			pattern := l.src[l.at+2 : end-1]
			name, param := strings.CutPrefix(pattern, "$")
			t := token{kind: wildcardToken, pos: l.at + 2, text: name, param: param}
			l.at = end
			return t
		}
	}
	if t := l.word(); t.kind != endToken {
		return t
	}
	if k := punctuation[c]; k != endToken {
		l.at++
		return token{kind: k, text: l.last.text}
	}
	return token{}
}

// take returns a token that ends at end, and moves there.
func (l *lexer) take(k kind, end int, s string, param bool) token {
	l.at = end
	return token{kind: k, text: s, param: param}
}

// peek returns a byte of the query, 0 beyond its end.
func (l *lexer) peek(i int) byte {
	if i < len(l.src) {
		return l.src[i]
	}
	return 0
}

// termEnd returns the end of the word that begins at i. Escaped punctuation and blanks belong to it.
func (l *lexer) termEnd(i int) int {
	for i < len(l.src) {
		switch {
		case chars[l.src[i]] == wordChar:
			i++
		case l.src[i] == '\\' && i+1 < len(l.src) && escapable(l.src[i+1]):
			i += 2
		default:
			return i
		}
	}
	return i
}

// digitsEnd returns the end of a run of digits.
func (l *lexer) digitsEnd(i int) int {
	for i < len(l.src) && '0' <= l.src[i] && l.src[i] <= '9' {
		i++
	}
	return i
}

// numberEnd returns the end of the number that begins at start, and whether it has only digits. Without a number end
// is 0.
func (l *lexer) numberEnd(start int) (end int, size bool) {
	i := start
	if c := l.peek(i); c == '-' || c == '+' && !l.old {
		i++
	}
	if word := l.infinityEnd(i); word > 0 {
		return word, false
	}
	whole := l.digitsEnd(i)
	end = whole
	if l.peek(whole) == '.' {
		fraction := l.digitsEnd(whole + 1)
		if fraction > whole+1 || whole > i && !l.old {
			end = fraction
		}
	}
	if end == i || l.old && whole == i {
		return 0, false
	}
	if c := l.peek(end); c == 'e' || c == 'E' {
		i := end + 1
		if c := l.peek(i); c == '-' || c == '+' && !l.old {
			i++
		}
		if power := l.digitsEnd(i); power > i {
			return power, false
		}
	}
	return end, end == whole && whole > start && l.src[start] != '-' && l.src[start] != '+'
}

// infinityEnd returns the end of inf, 0 if it is not at i.
func (l *lexer) infinityEnd(i int) int {
	if i+3 <= len(l.src) && (l.src[i:i+3] == "inf" || !l.old && strings.EqualFold(l.src[i:i+3], "inf")) {
		return i + 3
	}
	return 0
}

// exactEnd returns the end of the quoted text that begins at start, 0 if it does not end or is empty. An escaped
// quote ends it only if no other quote does.
func (l *lexer) exactEnd(start int) int {
	quote := l.src[start]
	if l.peek(start+1) == quote {
		return 0
	}
	escaped := 0
	for i := start + 1; ; {
		n := strings.IndexByte(l.src[i:], quote)
		if n < 0 {
			return escaped
		}
		if i += n + 1; l.src[i-2] != '\\' {
			return i
		}
		escaped = i
	}
}

// wildcardEnd returns the end of the pattern whose opening quote is at a place, 0 if it is not closed.
func (l *lexer) wildcardEnd(start int) int {
	quote := l.peek(start)
	if quote != '\'' && quote != '"' {
		return 0
	}
	for i := start + 1; i < len(l.src); i++ {
		switch l.src[i] {
		case '\\':
			i++
		case quote:
			if i == start+1 {
				return 0
			}
			return i + 1
		}
	}
	return 0
}

// affix reads a token that begins with a star.
func (l *lexer) affix() token {
	start := l.at + 1
	c := l.peek(start)
	if !l.old && (c == '"' || c == '\'') {
		if end := l.exactEnd(start); end > 0 {
			s := l.src[start+1 : end-1]
			if l.peek(end) == '*' {
				return l.take(containsToken, end+1, s, false)
			}
			return l.take(suffixToken, end, s, false)
		}
		return token{}
	}
	param := !l.old && c == '$'
	if param {
		start++
	}
	end := l.termEnd(start)
	if !param {
		number, _ := l.numberEnd(start)
		end = max(end, number)
	}
	switch {
	case end == start:
		return token{}
	case l.peek(end) == '*':
		return l.take(containsToken, end+1, l.src[start:end], param)
	}
	return l.take(suffixToken, end, l.src[start:end], param)
}

// word reads a number, a keyword, a word, or a prefix.
func (l *lexer) word() token {
	end := l.termEnd(l.at)
	number, size := l.numberEnd(l.at)
	if c := l.src[l.at]; (c == '-' || c == '+') && (chars[l.peek(number)] == wordChar && number < len(l.src) || l.old && l.peek(number) == '*') {
		number = 0 // a sign belongs only to a number that is a whole word or, except in dialect 1, a prefix
	}
	longest := max(end, number)
	if longest <= l.at {
		return token{}
	}
	s := l.src[l.at:longest]
	switch {
	case l.peek(longest) == '*':
		return l.take(prefixToken, longest+1, s, false)
	case number == longest:
		t := l.take(numberToken, longest, s, false)
		t.num = parseNumber(s)
		if size && !l.old {
			t.kind = sizeToken
		}
		return t
	case l.old:
		if l.stopwords.HasString(s) {
			return l.take(stopwordToken, longest, s, false)
		}
	case len(s) == 2 && strings.EqualFold(s, "as"):
		return l.take(asToken, longest, s, false)
	case len(s) == 9 && strings.EqualFold(s, "ismissing"):
		return l.take(ismissingToken, longest, s, false)
	}
	return l.take(termToken, longest, s, false)
}

// comparisons are the operators after a field, the long ones first.
var comparisons = []struct {
	text string
	kind kind
}{
	{"!=", notEqualToken}, {"==", equalToken}, {">=", greaterEqualToken}, {"<=", lessEqualToken}, {">", greaterToken}, {"<", lessToken},
}

// modifier reads a field whose name ends at end, with the comparison after it.
func (l *lexer) modifier(end int) token {
	start := l.at
	t := l.take(modifierToken, end, l.src[l.at+1:end], false)
	if l.old {
		return t
	}
	i := l.blanksEnd(end)
	for _, c := range comparisons {
		if !strings.HasPrefix(l.src[i:], c.text) {
			continue
		}
		i = l.blanksEnd(i + len(c.text))
		value := token{pos: start, sign: 1}
		if number, _ := l.numberEnd(i); number > 0 {
			value.kind, value.text, value.num = numberToken, l.src[i:number], parseNumber(l.src[i:number])
			l.at = number
		} else {
			switch l.peek(i) {
			case '-':
				value.sign = -1
				i++
			case '+':
				i++
			}
			name := l.termEnd(i + 1)
			if l.peek(i) != '$' || name == i+1 {
				return t
			}
			value.kind, value.text = attributeToken, l.src[i+1:name]
			l.at = name
		}
		l.queue, l.queued = [2]token{value, {kind: c.kind, pos: start, text: c.text}}, 2
		return t
	}
	return t
}

// fieldInParens reports whether a parenthesis and a field come next.
func (l *lexer) fieldInParens() bool {
	i := l.blanksEnd(l.at)
	return l.peek(i) == '(' && l.peek(l.blanksEnd(i+1)) == '@'
}

// blanksEnd returns the end of a run of blanks.
func (l *lexer) blanksEnd(i int) int {
	for i < len(l.src) && chars[l.src[i]] == blankChar {
		i++
	}
	return i
}

// parseNumber returns the value of a number that the lexer has found. A number that is too large becomes infinite.
func parseNumber(s string) float64 {
	f, err := strconv.ParseFloat(s, 64)
	if err != nil && !math.IsInf(f, 0) {
		return 0
	}
	return f
}

// escapable reports whether a backslash before a character is removed: before punctuation, blanks and the underline.
func escapable(c byte) bool { return chars[c] == punctChar || chars[c] == blankChar || c == '_' }

// unescape removes the backslashes before punctuation and blanks.
func unescape(s string) string {
	i := strings.IndexByte(s, '\\')
	if i < 0 {
		return s
	}
	b := make([]byte, 0, len(s))
	b = append(b, s[:i]...)
	for ; i < len(s); i++ {
		if s[i] == '\\' && i+1 < len(s) && escapable(s[i+1]) {
			i++
		}
		b = append(b, s[i])
	}
	return string(b)
}

// normalize returns a word in the form of the index.
func normalize(s string) string { return text.Fold(unescape(s)) }
