// The properties of a query that decide which tolerances apply to it.

package searches

import (
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/atomredis/atomredis/internal/search/query"
	"github.com/atomredis/atomredis/internal/search/text"
)

// question is a command whose query has been read.
type question struct {
	args []string
	tree query.Node // nil if the query cannot be read
	bare query.Node // the same without stop words
	near bool       // SLOP or INORDER beside the query
}

// ask reads the query of a command.
func ask(args []string) *question {
	q := &question{args: args}
	if len(args) < 3 || args[0] != "FT.SEARCH" && args[0] != "FT.AGGREGATE" {
		return q
	}
	o := query.Options{Dialect: 1, Schema: everyField{}, Params: map[string]string{}, Slop: -1}
	for i, word := range args[3:] {
		switch rest := args[i+4:]; {
		case word == "SLOP" || word == "INORDER":
			q.near = true
		case word == "DIALECT" && len(rest) > 0:
			o.Dialect, _ = strconv.Atoi(rest[0])
		case word == "PARAMS" && len(rest) > 0:
			for pair := range slices.Chunk(rest[1:], 2) {
				o.Params[pair[0]] = pair[len(pair)-1]
			}
		}
	}
	q.tree, _ = query.Parse(args[2], o)
	o.Stopwords = text.English
	q.bare, _ = query.Parse(args[2], o)
	return q
}

// has reports whether the tree has a node with a property.
func (q *question) has(property func(query.Node) bool) bool {
	return q.tree != nil && within(q.tree, property) || q.bare != nil && within(q.bare, property)
}

// within reports whether a node, or one below it, has a property.
func within(n query.Node, property func(query.Node) bool) bool {
	if property(n) {
		return true
	}
	return slices.ContainsFunc(below(n), func(child query.Node) bool { return within(child, property) })
}

// below returns the children of a node.
func below(n query.Node) []query.Node {
	switch n := n.(type) {
	case *query.Not:
		return []query.Node{n.Child}
	case *query.Optional:
		return []query.Node{n.Child}
	case *query.Intersect:
		return n.Children
	case *query.Union:
		return n.Children
	case *query.KNN:
		if n.Filter != nil {
			return []query.Node{n.Filter}
		}
	}
	return nil
}

// isText reports whether a node looks for words.
func isText(n query.Node) bool {
	switch n.(type) {
	case *query.Token, *query.Phrase, *query.Affix, *query.Fuzzy, *query.Wildcard:
		return true
	}
	return false
}

// everyField is a schema with all fields that the generator may make, with all their options.
type everyField struct{}

func (everyField) Field(name string) (*query.Field, bool) {
	i := slices.IndexFunc(fieldsOfAll, func(f *query.Field) bool { return f.Name == name })
	if i < 0 {
		return nil, false
	}
	return fieldsOfAll[i], true
}

func (everyField) TextFields() []*query.Field { return fieldsOfAll[:3] }

var fieldsOfAll = func() (all []*query.Field) {
	kinds := map[byte]query.Kind{'t': query.TextKind, 'g': query.TagKind, 'n': query.NumericKind, 'p': query.GeoKind, 'v': query.VectorKind}
	for i, name := range []string{"t1", "t2", "t3", "g1", "g2", "n1", "n2", "p1", "v1"} {
		all = append(all, &query.Field{Name: name, Kind: kinds[name[0]], Number: i, IndexEmpty: true, IndexMissing: true, Phonetic: true})
	}
	return all
}()

// languages are the languages of documents and queries.
var languages = []text.Language{0, language("german"), language("french"), language("spanish")}

func language(name string) text.Language {
	l, ok := text.ParseLanguage(name)
	if !ok {
		panic("searches: no language " + name)
	}
	return l
}

// added returns the further terms that an index may have for a word: its stems and its sound.
func added(word string) (terms []string) {
	for _, l := range languages {
		if stem, ok := text.NewQueryStemmer(l).Stem([]byte(word)); ok {
			terms = append(terms, text.Stem+stem)
		}
	}
	return append(terms, string(text.AppendMetaphone([]byte(text.Sound), []byte(word))))
}

// allTerms are all terms that an index may have.
var allTerms = sync.OnceValue(func() (terms []string) {
	for _, value := range words {
		tokens := text.Tokenizer{}
		for tokens.Start([]byte(value), 0); tokens.Next(); {
			word := string(tokens.Token.Text)
			terms = append(append(terms, word), added(word)...)
		}
	}
	return append(terms, text.Group+"s1", text.Group+"s2")
})

// reachesFarther reports whether the reference may find a term beyond the distance from a word. It accepts a term if
// the term without its last character is within the distance. It also compares sounds, whose capitals it treats as
// small letters.
func reachesFarther(word string, distance int) bool {
	return slices.ContainsFunc(allTerms(), func(term string) bool {
		runes := []rune(term)
		far := changes(word, term) > distance
		return strings.HasPrefix(term, text.Sound) && !far || far && distance > 1 && changes(word, string(runes[:len(runes)-1])) <= distance
	})
}

// changes returns the edit distance between two words, ignoring case.
func changes(a, b string) int {
	from, to := []rune(text.Fold(a)), []rune(text.Fold(b))
	row := make([]int, len(to)+1)
	for j := range row {
		row[j] = j
	}
	for i, x := range from {
		diagonal := row[0]
		row[0] = i + 1
		for j, y := range to {
			cost := diagonal
			if x != y {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(cost, row[j]+1, diagonal+1)
		}
	}
	return row[len(to)]
}

// unplaced reports whether a part of a query that depends on the order or distance of words has fewer than two words,
// or a group without word positions (of tags, numbers or their negations). The reference needs two positions, and lets
// such a part match nothing.
func (q *question) unplaced() bool {
	if slices.Contains(q.args, "INKEYS") && q.near {
		return true
	}
	if slices.Contains(q.args, "FILTER") || slices.Contains(q.args, "GEOFILTER") {
		// A filter becomes a sibling of the root's children.
		for _, root := range []query.Node{q.tree, q.bare} {
			_, phrase := root.(*query.Phrase)
			and, ok := root.(*query.Intersect)
			if phrase || q.near || ok && (and.Slop >= 0 || and.InOrder) {
				return true
			}
		}
	}
	return q.has(func(n query.Node) bool {
		and, ok := n.(*query.Intersect)
		return ok && (q.near || and.Slop >= 0 || and.InOrder) && (slices.ContainsFunc(and.Children, unplacedGroup) || fewerThanTwoPlaces(and.Children))
	})
}

// fewerThanTwoPlaces reports whether at most one of some nodes certainly has positions.
func fewerThanTwoPlaces(nodes []query.Node) bool {
	n := 0
	for _, node := range nodes {
		if isText(node) {
			n++
		}
	}
	return n < 2
}

// unplacedGroup reports whether a node is a group with a part that has no positions.
func unplacedGroup(n query.Node) bool {
	switch n := n.(type) {
	case *query.Tag:
		return len(n.Values) > 1 || !isPlainTag(n.Values[0])
	case *query.Numeric, *query.Geo: // may become several nodes
		return true
	case *query.Optional:
		return unplacedGroup(n.Child)
	case *query.Intersect, *query.Union:
		return slices.ContainsFunc(below(n), func(child query.Node) bool { return !isText(child) })
	}
	return false
}

func isPlainTag(n query.Node) bool {
	_, plain := n.(*query.Token)
	return plain
}

// samePlace reports whether ordered words may have the same position: the same word twice, or words with the same stem
// or sound. The reference accepts one position for both; here each word needs its own.
func (q *question) samePlace() bool {
	return q.has(func(n query.Node) bool {
		switch n := n.(type) {
		case *query.Phrase:
			var parts []query.Node
			for _, word := range n.Words {
				parts = append(parts, word)
			}
			return overlap(parts)
		case *query.Intersect:
			return (n.InOrder || slices.Contains(q.args, "INORDER")) && overlap(n.Children)
		}
		return false
	})
}

// overlap reports whether two of some parts may match at the same position.
func overlap(parts []query.Node) bool {
	seen := map[string]bool{}
	for _, part := range parts {
		own := map[string]bool{}
		open := within(part, func(n query.Node) bool {
			switch n := n.(type) {
			case *query.Token:
				for _, term := range append(added(n.Text), n.Text) {
					own[term] = true
				}
			case *query.Phrase:
				for _, word := range n.Words {
					own[word.Text] = true
				}
			}
			_, token := n.(*query.Token)
			return isText(n) && !token
		})
		if open && len(parts) > 1 {
			return true
		}
		for term := range own {
			if seen[term] {
				return true
			}
		}
		for term := range own {
			seen[term] = true
		}
	}
	return false
}

// expressions returns the expressions of APPLY and FILTER in an aggregation.
func (q *question) expressions() (list []string) {
	for i, word := range q.args {
		if q.args[0] == "FT.AGGREGATE" && i > 2 && (word == "APPLY" || word == "FILTER") && i+1 < len(q.args) {
			list = append(list, q.args[i+1])
		}
	}
	return list
}

// mayCompareNaN reports whether expressions have comparisons and computations that may result in NaN.
func (q *question) mayCompareNaN() bool {
	all := strings.Join(q.expressions(), " ")
	return (strings.ContainsAny(all, "/%^") || strings.Contains(all, "sqrt(") || strings.Contains(all, "log")) && strings.ContainsAny(all, "<>=")
}

// hasRange reports whether the command has a range of numbers or places.
func (q *question) hasRange() bool {
	return slices.Contains(q.args, "FILTER") || slices.Contains(q.args, "GEOFILTER") || q.has(func(n query.Node) bool {
		switch n.(type) {
		case *query.Numeric, *query.Geo:
			return true
		}
		return false
	})
}

// marks reports whether the command marks words or cuts texts.
func (q *question) marks() bool {
	return slices.Contains(q.args, "HIGHLIGHT") || slices.Contains(q.args, "SUMMARIZE")
}

// inUnknownFields reports whether INFIELDS has no text field, or text fields that may differ from those of the query.
func (q *question) inUnknownFields() bool {
	i := slices.Index(q.args, "INFIELDS")
	if i < 0 || i+1 >= len(q.args) {
		return false
	}
	n, err := strconv.Atoi(q.args[i+1])
	if err != nil || n < 1 || i+2+n > len(q.args) {
		return false
	}
	return strings.Contains(q.args[2], "@t") || !slices.ContainsFunc(q.args[i+2:i+2+n], func(name string) bool { return strings.HasPrefix(name, "t") })
}

// skips reports whether a query has a union that the reference moves by skipping: a union beside another part, or in
// the filter of a vector search. Not all parts of such a union count for the score. A word without VERBATIM is a union
// with its stems.
func (q *question) skips() bool {
	verbatim := slices.Contains(q.args, "VERBATIM")
	union := func(n query.Node) bool {
		switch n := n.(type) {
		case *query.Union:
			return true
		case *query.Token:
			return !verbatim
		case *query.Tag:
			return len(n.Values) > 1
		}
		return false
	}
	if filtered := []string{"FILTER", "GEOFILTER", "INKEYS"}; q.args[0] == "FT.SEARCH" && q.has(union) &&
		slices.ContainsFunc(q.args, func(word string) bool { return slices.Contains(filtered, word) }) {
		return true // the filter is beside the query
	}
	return q.has(func(n query.Node) bool {
		switch n.(type) {
		case *query.Intersect, *query.KNN:
			return slices.ContainsFunc(below(n), func(child query.Node) bool { return within(child, union) })
		}
		return false
	})
}

// nests reports whether an intersection has another one as a part.
func (q *question) nests() bool {
	and := func(n query.Node) bool {
		switch n.(type) {
		case *query.Intersect, *query.Phrase:
			return true
		}
		return false
	}
	return q.has(func(n query.Node) bool {
		_, ok := n.(*query.Intersect)
		return ok && slices.ContainsFunc(below(n), and)
	})
}

// hasTerms reports whether a match may have the scores of several terms.
func (q *question) hasTerms() bool {
	return q.has(func(n query.Node) bool { return isText(n) || mayBeUnion(n) })
}

// mayBeUnion reports whether a node becomes a union of the terms that have documents.
func mayBeUnion(n query.Node) bool {
	switch n.(type) {
	case *query.Affix, *query.Fuzzy, *query.Wildcard, *query.Tag, *query.Union:
		return true
	}
	return false
}

// nearest reports whether the query looks for the nearest vectors.
func (q *question) nearest() bool {
	return q.has(func(n query.Node) bool { _, ok := n.(*query.KNN); return ok })
}

// ordered reports whether words must be in order or near to each other, in all of the query or in a part.
func (q *question) ordered() bool {
	return q.near || q.has(func(n query.Node) bool {
		and, ok := n.(*query.Intersect)
		return ok && (and.Slop >= 0 || and.InOrder)
	})
}

// meetsAll reports whether all documents are a part of an intersection.
func (q *question) meetsAll() bool {
	all := func(n query.Node) bool { _, ok := n.(*query.All); return ok }
	filters := func() bool {
		return slices.ContainsFunc([]string{"FILTER", "GEOFILTER", "INKEYS"}, func(option string) bool {
			return slices.Contains(q.args, option)
		})
	}
	if q.args[0] == "FT.SEARCH" && q.tree != nil && all(q.tree) && filters() {
		return true
	}
	return q.has(func(n query.Node) bool {
		_, and := n.(*query.Intersect)
		return and && slices.ContainsFunc(below(n), all)
	})
}

// sortsByAlias reports whether rows are sorted by a name that APPLY has given to a property.
func (q *question) sortsByAlias() bool {
	at := slices.Index(q.args, "SORTBY")
	for i := 3; i+3 < len(q.args) && i < at; i++ {
		if q.args[i] == "APPLY" && strings.HasPrefix(q.args[i+1], "@") && slices.Contains(q.args[at:], "@"+q.args[i+3]) {
			return true
		}
	}
	return false
}
