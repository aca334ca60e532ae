package query

import (
	"slices"
	"strings"

	"github.com/atomredis/atomredis/internal/search/text"
)

// Expander is a name in EXPANDER; it says what is added to words. Unknown names add nothing.
type Expander string

// The expanders.
const (
	DefaultExpander  Expander = "DEFAULT" // all of the others
	StemExpander     Expander = "SBSTEM"
	SynonymExpander  Expander = "SYNONYM"
	PhoneticExpander Expander = "PHONETIC"
)

// Expansion has the options of Expand.
type Expansion struct {
	Expander Expander // "" is DefaultExpander
	Schema   Schema
	Stemmer  *text.Stemmer // of the query's language
	Synonyms *text.Synonyms
}

// Expand replaces each word of a tree by a Union of the word, its groups of synonyms, its phonetic code and its
// stem, as far as its fields have them. A word without additions stays. A tree must be expanded only once.
func (e *Expansion) Expand(n Node) (Node, error) {
	if n.Of().Verbatim || e.unstemmed(n) {
		return n, nil
	}
	switch n := n.(type) {
	case *Token:
		return e.word(n)
	case *Not:
		return n, e.in(&n.Child)
	case *Optional:
		return n, e.in(&n.Child)
	case *Intersect:
		return n, e.all(n.Children)
	case *Union:
		return n, e.all(n.Children)
	case *KNN:
		if n.Filter != nil {
			return n, e.in(&n.Filter)
		}
	}
	return n, nil // phrases and tags have no expansion, and neither have patterns
}

// in expands the node at a place of the tree.
func (e *Expansion) in(place *Node) (err error) {
	*place, err = e.Expand(*place)
	return err
}

// all expands all nodes of a list.
func (e *Expansion) all(list []Node) error {
	for i := range list {
		if err := e.in(&list[i]); err != nil {
			return err
		}
	}
	return nil
}

// unstemmed reports whether a node is limited to fields without stems: such a node is not expanded at all.
func (e *Expansion) unstemmed(n Node) bool {
	fields := n.Of().Fields
	return !fields.All() && !fields.with(e.Schema, func(f *Field) bool { return !f.NoStem })
}

// word expands one word.
func (e *Expansion) word(n *Token) (Node, error) {
	if n.Text == "" {
		return n, nil
	}
	expander := Expander(strings.ToUpper(string(e.Expander)))
	everything := expander == "" || expander == DefaultExpander
	union := &Union{Common: common()}
	union.Fields, union.Phonetic = n.Fields, n.Phonetic
	union.Children = []Node{n}
	add := func(term string, fields Fields) {
		union.Children = append(union.Children, &Token{Common: Common{Fields: fields, Weight: 1, Slop: -1}, Text: term, Expanded: true})
	}
	if everything || expander == SynonymExpander {
		for _, group := range e.Synonyms.Groups([]byte(n.Text)) {
			add(group, n.Fields)
		}
	}
	if everything || expander == PhoneticExpander {
		sounds := expander == PhoneticExpander
		if everything {
			phonetic := n.Fields.with(e.Schema, func(f *Field) bool { return f.Phonetic })
			if n.Phonetic != PhoneticAsIndexed && !phonetic {
				return nil, errorf(Invalid, "field does not support phonetics")
			}
			sounds = n.Phonetic == PhoneticOn || n.Phonetic == PhoneticAsIndexed && phonetic
		}
		if code := text.AppendMetaphone([]byte(text.Sound), []byte(n.Text)); sounds && len(code) > len(text.Sound) {
			add(string(code), n.Fields)
		}
	}
	if everything || expander == StemExpander {
		e.stem(n, add)
	}
	if len(union.Children) == 1 {
		return n, nil
	}
	return union, nil
}

// stem adds the stem of a word, as the term of stems and as a word.
func (e *Expansion) stem(n *Token, add func(string, Fields)) {
	if e.Stemmer == nil {
		return
	}
	stem, ok := e.Stemmer.Stem([]byte(n.Text))
	if !ok {
		return
	}
	fields := n.Fields
	if !fields.All() && slices.ContainsFunc(fields.list, func(f *Field) bool { return f.NoStem }) {
		fields = OnlyIn(slices.DeleteFunc(slices.Clone(fields.list), func(f *Field) bool { return f.NoStem })...)
	}
	add(text.Stem+stem, fields)
	if stem != n.Text {
		add(stem, fields)
	}
}
