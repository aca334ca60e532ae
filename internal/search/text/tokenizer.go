package text

import (
	"unicode"
	"unicode/utf8"
)

// class is what a byte does in a text.
type class uint8

const (
	ordinary  class = iota // is part of a word, as it is
	fold                   // is part of a word, in another form: capitals, bytes from 0x80 on
	escape                 // takes its meaning from the byte behind it
	control                // is dropped and does not end a word
	separator              // ends a word
	end                    // ends the text
)

// classes has the class of each byte.
var classes = func() (t [256]class) {
	for i := range t {
		switch {
		case i == 0:
			t[i] = end
		case i == '\t':
			t[i] = separator
		case i < ' ' || i == 0x7f:
			t[i] = control
		case i >= utf8.RuneSelf || 'A' <= i && i <= 'Z':
			t[i] = fold
		}
	}
	for _, c := range ` ,./(){}[]:;~!@#$%^&*-=+|'` + "`" + `"<>?` {
		t[c] = separator
	}
	t['\\'] = escape
	return t
}()

// IsSeparator reports whether a byte ends a word unless it is escaped.
func IsSeparator(c byte) bool { return classes[c] == separator }

// Token is a word of a text.
type Token struct {
	Text     []byte // folded and without escapes; valid until the next call of Next
	Position int    // the first word of a text has position 1
	Start    int    // where the word begins in the text, in bytes
	End      int    // where it ends
}

// Tokenizer cuts texts into words, one after the other:
//
//	t := Tokenizer{Stopwords: English}
//	for t.Start(value, 0); t.Next(); {
//		use(t.Token)
//	}
//
// It allocates a buffer once, for words whose indexed form differs from the text. It is not safe for concurrent use.
type Tokenizer struct {
	Stopwords *Stopwords // are skipped and have no positions
	Language  Language   // matters where it has rules of its own: Chinese
	Token     Token      // the word that Next has found

	rest []byte
	at   int // where rest begins in the text
	buf  []byte
}

// Start begins a text. Its first word has the position after the given one, which is 0 for the first value of a field. The
// tokenizer reads the text until Next returns false.
func (t *Tokenizer) Start(value []byte, position int) {
	t.rest, t.at = value, 0
	t.Token = Token{Position: position}
}

// Next finds the next word and reports whether there is one.
func (t *Tokenizer) Next() bool {
	for t.word() {
		if !t.Stopwords.Has(t.Token.Text) {
			t.Token.Position++
			return true
		}
	}
	return false
}

// word finds the next word that is not empty.
func (t *Tokenizer) word() bool {
	text := t.rest
	i := 0
	for i < len(text) && classes[text[i]] == separator {
		i++
	}
	start := i
	for i < len(text) && classes[text[i]] == ordinary {
		i++
	}
	if i == len(text) || classes[text[i]] == separator || classes[text[i]] == end {
		if i == start {
			t.rest = nil
			return false
		}
		t.found(text[start:i], start, i)
		return true
	}
	return t.rewritten(start, i)
}

// rewritten finds a word whose indexed form differs from the text. The word begins at start, and all bytes up to i
// are ordinary.
func (t *Tokenizer) rewritten(start, i int) bool {
	text := t.rest
	chinese := t.Language == Chinese
	t.buf = append(t.buf[:0], text[start:i]...)
	escaped := false
loop:
	for i < len(text) {
		c := text[i]
		switch kind := classes[c]; {
		case kind == end:
			break loop
		case kind == control:
			escaped = false
			i++
		case kind == escape && !escaped:
			escaped = true
			i++
		case kind == separator && !escaped:
			if len(t.buf) > 0 {
				break loop
			}
			i++ // all of the word has been dropped
			start = i
		case kind == separator && c == '\t':
			escaped = false // an escaped tab is a control character
			i++
		case c < utf8.RuneSelf:
			escaped = false
			t.buf = append(t.buf, lower[c])
			i++
		default:
			escaped = false
			var n int
			if chinese {
				var r rune
				r, n = utf8.DecodeRune(text[i:])
				han := unicode.Is(unicode.Han, r)
				if (han || unicode.IsPunct(r)) && len(t.buf) > 0 {
					break loop
				}
				if !han && unicode.IsPunct(r) {
					i += n
					start = i
					continue
				}
				if han {
					t.buf = append(t.buf, text[i:i+n]...)
					i += n
					break loop
				}
			}
			t.buf, n = appendFoldRune(t.buf, string(text[i:min(i+utf8.UTFMax, len(text))]))
			i += n
		}
	}
	if len(t.buf) == 0 {
		t.rest = nil
		return false
	}
	t.found(t.buf, start, i)
	return true
}

// SplitChinese returns the words that a tokenizer for Chinese finds in a folded word without escapes.
func SplitChinese(word string) (words []string) {
	start := 0
	flush := func(end int) {
		if end > start {
			words = append(words, word[start:end])
		}
	}
	for i, r := range word {
		if n := utf8.RuneLen(r); r >= utf8.RuneSelf && (unicode.Is(unicode.Han, r) || unicode.IsPunct(r)) {
			flush(i)
			start = i + n
			if !unicode.IsPunct(r) {
				words = append(words, word[i:start])
			}
		}
	}
	flush(len(word))
	return words
}

// found stores a word, and the position from which the next one is searched.
func (t *Tokenizer) found(word []byte, start, end int) {
	t.Token.Text, t.Token.Start, t.Token.End = word, t.at+start, t.at+end
	t.rest = t.rest[end:]
	t.at += end
}
