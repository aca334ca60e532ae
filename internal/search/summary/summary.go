// Package summary marks the matched words of a text (HIGHLIGHT), and shortens long texts (SUMMARIZE). It is pure:
// the caller says which words were matched.
//
// Matched words near each other form a fragment. A summary has the best fragments in the order of the text, each
// with some words around it.
package summary

import (
	"slices"
	"strings"

	"github.com/atomredis/atomredis/internal/search/text"
)

// Style is the style of a field. The zero value leaves it unchanged.
type Style struct {
	Highlight *Highlight
	Summarize *Summarize
}

// Highlight has the texts before and after a matched word.
type Highlight struct{ Open, Close string }

// Summarize has the options of a summary.
type Summarize struct {
	Fragments int
	Words     int // of a fragment, about
	Separator string
}

// DefaultHighlight returns the default settings of HIGHLIGHT.
func DefaultHighlight() Highlight { return Highlight{"<b>", "</b>"} }

// DefaultSummarize returns the default settings of SUMMARIZE.
func DefaultSummarize() Summarize { return Summarize{Fragments: 3, Words: 20, Separator: "... "} }

// Match reports whether a word of the text, as a tokenizer returns it, was matched; it returns the term and the
// term's inverse document frequency.
type Match func(word []byte) (term int, idf float64, ok bool)

const (
	maxDistance = 8 // between found words of a fragment
	wordSize    = 6 // bytes of a word with its blank, about
)

// fragment is a range of the text from one matched word to another.
type fragment struct {
	start, end int
	hits       []hit
	last       int // the position of the last hit
	words      int // from the first hit to the last
	score      float32
}

// hit is a matched word.
type hit struct{ term, start, end int }

// Render returns a stored text in a style. The tokenizer is the one with which the text was indexed.
func (s Style) Render(stored string, t *text.Tokenizer, match Match) string {
	if s.Highlight == nil && s.Summarize == nil {
		return stored
	}
	fragments := find(stored, t, match)
	switch {
	case len(fragments) == 0:
		return s.WithoutHits(stored)
	case s.Summarize == nil:
		return s.whole(stored, fragments)
	}
	return s.summary(stored, fragments)
}

// WithoutHits is Render for a text without hits.
func (s Style) WithoutHits(stored string) string {
	if s.Summarize == nil || s.Highlight != nil {
		return stored
	}
	return s.Summarize.head(stored)
}

// find returns the fragments of a text.
func find(stored string, t *text.Tokenizer, match Match) []*fragment {
	if stored == "" { // INDEXEMPTY indexes the empty text as a word
		if term, _, ok := match(nil); ok {
			return []*fragment{{words: 1, hits: []hit{{term: term}}}}
		}
		return nil
	}
	var fragments []*fragment
	end := 0
	for t.Start([]byte(stored), 0); t.Next(); {
		term, idf, ok := match(t.Token.Text)
		if !ok || t.Token.Start < end {
			continue
		}
		h := hit{term: term, start: t.Token.Start, end: t.Token.End}
		if t.Language != text.Chinese {
			h.end = h.start
			for h.end < len(stored) && !text.IsSeparator(stored[h.end]) {
				h.end++
			}
		}
		end = h.end
		var f *fragment
		if n := len(fragments); n > 0 && t.Token.Position-fragments[n-1].last <= maxDistance {
			f = fragments[n-1]
			f.words += t.Token.Position - f.last
		} else {
			f = &fragment{start: h.start, words: 1}
			fragments = append(fragments, f)
		}
		if !slices.ContainsFunc(f.hits, func(o hit) bool { return o.term == term }) {
			f.score += float32(idf)
		}
		f.hits = append(f.hits, h)
		f.end, f.last = h.end, t.Token.Position
	}
	return fragments
}

// whole returns all of the text with the hits marked.
func (s Style) whole(stored string, fragments []*fragment) string {
	var b strings.Builder
	at := 0
	for _, f := range fragments {
		at = s.mark(&b, stored, f, at)
	}
	b.WriteString(stored[at:])
	return b.String()
}

// mark writes the text from a place to the end of a fragment, and returns that end.
func (s Style) mark(b *strings.Builder, stored string, f *fragment, at int) int {
	for _, h := range f.hits {
		b.WriteString(stored[at:h.start])
		if s.Highlight != nil {
			b.WriteString(s.Highlight.Open)
		}
		b.WriteString(stored[h.start:h.end])
		if s.Highlight != nil {
			b.WriteString(s.Highlight.Close)
		}
		at = h.end
	}
	return at
}

// summary returns the best fragments in the order of the text.
func (s Style) summary(stored string, fragments []*fragment) string {
	best := slices.Clone(fragments)
	slices.SortStableFunc(best, func(a, b *fragment) int {
		switch {
		case a.score > b.score:
			return -1
		case a.score < b.score:
			return 1
		}
		return 0
	})
	best = best[:min(len(best), s.Summarize.Fragments)]
	slices.SortFunc(best, func(a, b *fragment) int { return a.start - b.start })
	var b strings.Builder
	for i, f := range best {
		least, most := 0, len(stored)-1
		if i > 0 {
			least = best[i-1].end
		}
		if i+1 < len(best) {
			most = best[i+1].start
		}
		from, to := s.Summarize.around(stored, f, least, most)
		var part strings.Builder
		part.WriteString(stored[from:f.start])
		s.mark(&part, stored, f, f.start)
		part.WriteString(stored[f.end:to])
		b.WriteString(collapse(part.String()))
		b.WriteString(s.Summarize.Separator)
	}
	return b.String()
}

// around returns the range of the text around a fragment to show, within limits. Other words in the fragment count
// for its length. The text is cut between words; a word that would be cut is dropped, also at the ends of the text.
func (s *Summarize) around(stored string, f *fragment, least, most int) (from, to int) {
	words := s.Words - (f.words - len(f.hits))
	if words <= 0 {
		return f.start, f.end
	}
	bytes := words / 2 * wordSize
	from = max(f.start-bytes, least)
	for from < f.start && !text.IsSeparator(stored[from]) {
		from++
	}
	for from < f.start && text.IsSeparator(stored[from]) {
		from++
	}
	to = min(f.end+bytes, most)
	for to > f.end && !text.IsSeparator(stored[to]) {
		to--
	}
	for to > f.end && text.IsSeparator(stored[to]) {
		to--
	}
	return from, max(to+1, f.end)
}

// head returns the beginning of a text without a matched word.
func (s *Summarize) head(stored string) string {
	n := wordSize
	if room := len(stored) / wordSize; s.Words > 0 && s.Fragments > room/s.Words {
		n = len(stored)
	} else {
		n += wordSize * s.Words * s.Fragments
	}
	if n >= len(stored) {
		return strings.TrimRight(collapse(stored), blanks)
	}
	short := collapse(stored[:n])
	for len(short) > 1 && !text.IsSeparator(short[len(short)-1]) {
		short = short[:len(short)-1]
	}
	return strings.TrimRight(short, blanks)
}

const blanks = " \t\n\v\f\r"

// collapse makes each run of blanks one blank.
func collapse(s string) string {
	b := make([]byte, 0, len(s))
	blank := false
	for i := range len(s) {
		if strings.IndexByte(blanks, s[i]) >= 0 {
			if !blank {
				b = append(b, ' ')
			}
			blank = true
			continue
		}
		blank = false
		b = append(b, s[i])
	}
	return string(b)
}
