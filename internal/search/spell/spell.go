// Package spell suggests corrections for the words of a query, for FT.SPELLCHECK, and has the dictionaries of
// FT.DICTADD. It knows an index only as an interface.
package spell

import (
	"cmp"
	"iter"
	"slices"
	"strings"

	"github.com/atomredis/atomredis/internal/search/query"
	"github.com/atomredis/atomredis/internal/search/text"
)

// Index is a search index as the package sees it.
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
	Excluded    bool // a dictionary of Options.Exclude has it; only of Candidates
	Suggestions []Suggestion
}

// Suggestion is a suggested correction.
type Suggestion struct {
	Term  string
	Score float64 // the fraction of documents that have it; with Options.Full, and from Candidates, their number
}

// Check returns the words of a query that the index does not have, in the order of the tree, with the best
// suggestions first. The query must be parsed without stop-words, and must not be expanded. Dictionaries are found
// by name.
func Check(root query.Node, index Index, o Options, dict func(name string) *Dict) []Word {
	return Merge([][]Word{Candidates(root, index, o, dict)}, index.Len(), o)
}

// Candidates returns all words of a query with the knowledge of one shard, for Merge. Words that the shard has, or
// that are excluded, have no suggestions.
func Candidates(root query.Node, index Index, o Options, dict func(name string) *Dict) []Word {
	var words []Word
	for token := range tokens(root) {
		word := Word{Text: text.Fold(token.Text)}
		switch {
		case index.Has(word.Text):
			word.Known = true
		case slices.ContainsFunc(o.Exclude, func(name string) bool { return dict(name).Has(word.Text) }):
			word.Excluded = true
		default:
			word.Suggestions = suggest(word.Text, token.Fields, index, o, dict)
		}
		words = append(words, word)
	}
	return words
}

// Merge merges the Candidates of all shards, which together have docs documents.
func Merge(lists [][]Word, docs int, o Options) []Word {
	total := float64(max(1, docs))
	if o.Full {
		total = 1
	}
	var words []Word
	for i := range shortest(lists) {
		word := Word{Text: lists[0][i].Text}
		counts := map[string]float64{}
		for _, list := range lists {
			of := list[i]
			word.Known, word.Excluded = word.Known || of.Known, word.Excluded || of.Excluded
			for _, s := range of.Suggestions {
				counts[s.Term] += s.Score
			}
		}
		switch {
		case word.Known && o.Full:
			words = append(words, word)
		case word.Known, word.Excluded:
		default:
			for term, n := range counts {
				word.Suggestions = append(word.Suggestions, Suggestion{term, n / total})
			}
			slices.SortFunc(word.Suggestions, func(a, b Suggestion) int {
				return cmp.Or(cmp.Compare(b.Score, a.Score), strings.Compare(a.Term, b.Term))
			})
			words = append(words, word)
		}
	}
	return words
}

// shortest returns how many words all lists have.
func shortest(lists [][]Word) int {
	if len(lists) == 0 {
		return 0
	}
	n := len(lists[0])
	for _, list := range lists {
		n = min(n, len(list))
	}
	return n
}

// suggest returns the suggestions for a word in some fields, with how many documents have them.
func suggest(word string, fields query.Fields, index Index, o Options, dict func(string) *Dict) []Suggestion {
	var list []Suggestion
	known := map[string]bool{}
	add := func(term string, docs int) {
		if !known[term] {
			known[term] = true
			list = append(list, Suggestion{term, float64(docs)})
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
	return list
}

// internal reports whether a term is no word: a stem, a phonetic code, a group of synonyms, or an empty text.
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
