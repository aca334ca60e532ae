// Package transcript compares a server's replies with transcripts: commands with exact replies, recorded from a
// Redis and replayed against any server.
package transcript

import (
	"fmt"
	"strings"
)

// Value is one reply exactly as in the protocol: a bulk string and a simple string with the same text are different
// values, and so are the null bulk string, the null array and RESP3's null.
type Value struct {
	// Kind is the protocol's type byte, or Closed.
	Kind byte
	// Null marks the null bulk string and the null array of RESP2.
	Null bool
	// Text is the payload of everything that is not an aggregate. A verbatim string keeps its "txt:".
	Text string
	// Elems are the elements of an aggregate; in a map, keys and values alternate.
	Elems []Value
}

// The kinds of values: the protocol's type bytes, and one for the end of a connection.
const (
	Simple   byte = '+'
	Error    byte = '-'
	Integer  byte = ':'
	Bulk     byte = '$'
	Array    byte = '*'
	Null     byte = '_'
	Double   byte = ','
	Boolean  byte = '#'
	BigInt   byte = '('
	Verbatim byte = '='
	BulkErr  byte = '!'
	Map      byte = '%'
	Set      byte = '~'
	Push     byte = '>'
	// Closed replaces a reply if the server has closed the connection.
	Closed byte = 'c'
)

// aggregateWords are the words before the brackets of aggregates in the transcript notation.
var aggregateWords = map[byte]string{Array: "", Map: "map", Set: "set", Push: "push"}

// lineWidth is the longest one-line rendering of an aggregate; longer ones get a line per element.
const lineWidth = 110

// IsAggregate reports whether the value has elements rather than a text.
func (v Value) IsAggregate() bool {
	_, ok := aggregateWords[v.Kind]
	return ok && !v.Null
}

// Equal reports whether two values are the same to the byte.
func (v Value) Equal(w Value) bool {
	if v.Kind != w.Kind || v.Null != w.Null || v.Text != w.Text || len(v.Elems) != len(w.Elems) {
		return false
	}
	for i := range v.Elems {
		if !v.Elems[i].Equal(w.Elems[i]) {
			return false
		}
	}
	return true
}

// String renders the value on one line in the notation of transcripts.
func (v Value) String() string { return literal(v).inline(true) }

// literal is the pattern that only v matches.
func literal(v Value) Pattern {
	p := Pattern{Kind: v.Kind, Null: v.Null, Text: v.Text}
	for _, e := range v.Elems {
		p.Elems = append(p.Elems, literal(e))
	}
	return p
}

// Quote renders a string in double quotes, with escapes for all that is not printable ASCII. A long run of
// one byte becomes "x"*500.
func Quote(s string) string {
	if len(s) > 40 && strings.Count(s, s[:1]) == len(s) {
		return fmt.Sprintf("%s*%d", Quote(s[:1]), len(s))
	}
	var b strings.Builder
	b.WriteByte('"')
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c == '"' || c == '\\':
			b.WriteByte('\\')
			b.WriteByte(c)
		case c == '\n':
			b.WriteString(`\n`)
		case c == '\r':
			b.WriteString(`\r`)
		case c == '\t':
			b.WriteString(`\t`)
		case c < ' ' || c > '~':
			fmt.Fprintf(&b, `\x%02x`, c)
		default:
			b.WriteByte(c)
		}
	}
	b.WriteByte('"')
	return b.String()
}

// QuoteCommand renders a command line as a transcript holds it: words as they are, the rest in quotes.
func QuoteCommand(args []string) string {
	words := make([]string, len(args))
	for i, a := range args {
		words[i] = a
		if a == "" || strings.IndexFunc(a, needsQuotes) >= 0 || strings.Contains(a, "${") {
			words[i] = Quote(a)
		}
	}
	return strings.Join(words, " ")
}

func needsQuotes(r rune) bool { return r <= ' ' || r > '~' || r == '"' || r == '\'' || r == '\\' }
