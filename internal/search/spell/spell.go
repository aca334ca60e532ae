// Package spell finds what the words of a query may have meant, for FT.SPELLCHECK, and has the dictionaries of FT.DICTADD. It knows
// an index only as an interface.
package spell

import (
	"cmp"
	"iter"
	"slices"
	"strings"

	"github.com/atomredis/atomredis/internal/search/query"
	"github.com/atomredis/atomredis/internal/search/text"
)

// Index is what must be known of an index.
type Index interface {
	// Len returns how many documents there are.
	Len() int
	// Has reports whether a term is in any TEXT field.
	Has(term string) bool
	// Near yields the terms within a distance of a word.
	Near(word string, distance int) iter.Seq[string]
	// Docs returns how many documents have a term, 0 if none has it in one of the fields.
	Docs(term string, fields query.Fields) int
}

// Word is a word of a query.
type Word struct {
	Text        string
	Known       bool // the index has it; only with Options.Full
	Suggestions []Suggestion
}

// Suggestion is what a word may have meant.
type Suggestion struct {
	Term  string
	Score float64 // which part of the documents has it; with Options.Full how many
}

// Check returns the words of a query that the index does not have, in the order of the tree, with the best suggestions first. The query
// must be parsed without stop-words and not be expanded. Dictionaries are found by name.
func Check(root query.Node, index Index, o Options, dict func(name string) *Dict) []Word {
	var words []Word
	for token := range tokens(root) {
		word := text.Fold(token.Text)
		switch {
		case index.Has(word):
			if o.Full {
				words = append(words, Word{Text: word, Known: true})
			}
		case slices.ContainsFunc(o.Exclude, func(name string) bool { return dict(name).Has(word) }):
		default:
			words = append(words, Word{Text: word, Suggestions: suggest(word, token.Fields, index, o, dict)})
		}
	}
	return words
}

// suggest returns the suggestions for a word in some fields.
func suggest(word string, fields query.Fields, index Index, o Options, dict func(string) *Dict) []Suggestion {
	total := float64(max(1, index.Len()))
	if o.Full {
		total = 1
	}
	var list []Suggestion
	known := map[string]bool{}
	add := func(term string, docs int) {
		if !known[term] {
			known[term] = true
			list = append(list, Suggestion{term, float64(docs) / total})
		}
	}
	for term := range index.Near(word, o.Distance) {
		if docs := index.Docs(term, fields); docs > 0 && !internal(term) {
			add(term, docs)
		}
	}
	for _, name := range o.Include {
		for term := range dict(name).Near(word, o.Distance) {
			if docs := index.Docs(term, fields); docs > 0 || !index.Has(term) {
				add(term, docs)
			}
		}
	}
	slices.SortFunc(list, func(a, b Suggestion) int {
		return cmp.Or(cmp.Compare(b.Score, a.Score), strings.Compare(a.Term, b.Term))
	})
	return list
}

// internal reports whether a term is no word: a stem, a sound, a group of synonyms, or an empty text.
func internal(term string) bool { return term == "" || text.IsAdded(term) }

// tokens yields the words of a tree.
func tokens(root query.Node) iter.Seq[*query.Token] {
	return func(yield func(*query.Token) bool) { walk(root, yield) }
}

func walk(n query.Node, yield func(*query.Token) bool) bool {
	each := func(nodes []query.Node) bool {
		return !slices.ContainsFunc(nodes, func(child query.Node) bool { return !walk(child, yield) })
	}
	switch n := n.(type) {
	case *query.Token:
		return n.Expanded || yield(n)
	case *query.Phrase:
		return !slices.ContainsFunc(n.Words, func(t *query.Token) bool { return !yield(t) })
	case *query.Not:
		return walk(n.Child, yield)
	case *query.Optional:
		return walk(n.Child, yield)
	case *query.Intersect:
		return each(n.Children)
	case *query.Union:
		return each(n.Children)
	case *query.Tag:
		return each(n.Values)
	case *query.KNN:
		return n.Filter == nil || walk(n.Filter, yield)
	}
	return true
}
