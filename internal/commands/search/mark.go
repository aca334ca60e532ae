package search

import (
	"github.com/atomredis/atomredis/engine/search/postings"
	"github.com/atomredis/atomredis/internal/search/args"
	"github.com/atomredis/atomredis/internal/search/plan"
	"github.com/atomredis/atomredis/internal/search/query"
	"github.com/atomredis/atomredis/internal/search/request"
	"github.com/atomredis/atomredis/internal/search/schema"
	"github.com/atomredis/atomredis/internal/search/summary"
	"github.com/atomredis/atomredis/internal/search/text"
	"github.com/atomredis/atomredis/internal/search/value"
)

// HIGHLIGHT and SUMMARIZE. The stored text is split into words again. A word is marked if the word, its stem, its
// phonetic code or one of its synonym groups is a term that the plan has matched.

// checkSummary returns an error if the index does not support them.
func checkSummary(q *request.Request, def *schema.Definition) error {
	switch {
	case q.Summary.Empty():
		return nil
	case def.Source == schema.JSON:
		return args.Errorf(query.Invalid, "HIGHLIGHT/SUMMARIZE is not supported with JSON indexes")
	case def.NoHighlight || def.NoOffsets:
		return args.Errorf(query.Invalid, "Cannot use HIGHLIGHT/SUMMARIZE because NOOFSETS was specified at index level")
	}
	return nil
}

// checkMarked refuses fields to mark that the index does not have.
func checkMarked(q *request.Request, def *schema.Definition) error {
	if page := q.Arrange(); q.Summary.Empty() || q.NoContent || page.Limited && page.Num == 0 {
		return nil // no text is returned
	}
	if !q.HasReturn {
		for _, name := range q.Summary.Names() {
			if _, ok := def.Lookup(name); !ok {
				return args.Errorf(query.NoProperty, "No such property `%s`", name)
			}
		}
		return nil
	}
	for _, f := range q.Return {
		if _, ok := def.Lookup(f.Path); !ok && q.Summary.For(f.Name) != (summary.Style{}) {
			return args.Errorf(query.Invalid, "Property `%s` is not in schema", f.Name)
		}
	}
	return nil
}

// mark highlights and summarizes the texts of a row. A text that is no text field of the index has no hits.
func (r *run) mark(o *row) {
	var m *marker
	for i := range o.fields {
		f := &o.fields[i]
		style := r.q.Summary.For(f.name)
		if style == (summary.Style{}) || f.value.Kind() != value.String {
			continue
		}
		known, ok := r.def.Lookup(f.name)
		if !ok || known.Kind != query.TextKind {
			f.value = value.Str(style.WithoutHits(f.value.Text()))
			continue
		}
		if m == nil {
			m = r.newMarker(o.matched)
		}
		m.field, m.stems, m.sounds = postings.Bit(known.Number), !known.NoStem, known.Phonetic
		f.value = value.Str(style.Render(f.value.Text(), &m.tokens, m.match))
	}
}

// marker finds the matched words in the texts of a document.
type marker struct {
	tokens   text.Tokenizer
	terms    map[string]int // index in matched
	matched  []plan.Matched
	stemmer  *text.Stemmer
	synonyms *text.Synonyms
	scratch  []byte
	field    postings.Mask // the field of the text
	stems    bool          // the field has stems
	sounds   bool          // the field has sounds
}

func (r *run) newMarker(matched []plan.Matched) *marker {
	l, err := language(r.q, r.def)
	if err != nil {
		l = r.def.Language
	}
	m := &marker{tokens: text.Tokenizer{Stopwords: r.def.Stopwords, Language: l}, terms: map[string]int{}, matched: matched,
		stemmer: text.NewStemmer(l), synonyms: r.x.Synonyms()}
	for i, t := range matched {
		if !t.Tag {
			m.terms[t.Term] = i
		}
	}
	return m
}

// match implements summary.Match.
func (m *marker) match(word []byte) (term int, idf float64, ok bool) {
	found := func(t []byte) bool {
		term, ok = m.terms[string(t)]
		return ok && m.matched[term].Fields.Meets(m.field)
	}
	hit := found(word)
	if len(word) == 0 {
		return term, 0, hit
	}
	if stem, has := m.stemmer.Stem(word); !hit && m.stems && has && stem != string(word) { // a stem equal to its word is no term
		m.scratch = append(append(m.scratch[:0], text.Stem...), stem...)
		hit = found(m.scratch)
	}
	if !hit && m.sounds {
		hit = found(text.AppendMetaphone(append(m.scratch[:0], text.Sound...), word))
	}
	for _, group := range m.synonyms.Groups(word) {
		hit = hit || found([]byte(group))
	}
	if !hit {
		return 0, 0, false
	}
	return term, m.matched[term].IDF, true
}
