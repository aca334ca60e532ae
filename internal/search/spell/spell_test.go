package spell

import (
	"fmt"
	"iter"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/atomredis/atomredis/internal/search/query"
	"github.com/atomredis/atomredis/internal/search/text"
	"github.com/atomredis/atomredis/internal/search/value"
	"github.com/atomredis/atomredis/internal/testing/testseed"
	"github.com/atomredis/atomredis/internal/testing/transcript"
)

// documents is an Index and the Schema of its queries: the fields t and u are TEXT, g is a TAG.
type documents struct {
	fields map[string]*query.Field
	docs   []map[string]string
}

func newDocuments() *documents {
	return &documents{fields: map[string]*query.Field{
		"t": {Name: "t", Kind: query.TextKind}, "u": {Name: "u", Kind: query.TextKind, Number: 1}, "g": {Name: "g", Kind: query.TagKind},
	}}
}

func (d *documents) Field(name string) (*query.Field, bool) { f, ok := d.fields[name]; return f, ok }
func (d *documents) TextFields() []*query.Field             { return []*query.Field{d.fields["t"], d.fields["u"]} }
func (d *documents) Len() int                               { return len(d.docs) }

func (d *documents) terms() iter.Seq[string] {
	seen := map[string]bool{}
	return func(yield func(string) bool) {
		stemmer := text.NewStemmer(0)
		for _, doc := range d.docs {
			for _, word := range strings.Fields(doc["t"] + " " + doc["u"]) {
				stem, _ := stemmer.Stem([]byte(word))
				for _, term := range []string{word, text.Stem + stem} {
					if !seen[term] && !yield(term) {
						return
					}
					seen[term] = true
				}
			}
		}
	}
}

func (d *documents) Has(term string) bool {
	for t := range d.terms() {
		if t == term {
			return true
		}
	}
	return false
}

func (d *documents) Near(word string, distance int) iter.Seq[string] {
	return func(yield func(string) bool) {
		for t := range d.terms() {
			if within([]rune(word), []rune(t), distance) && !yield(t) {
				return
			}
		}
	}
}

func (d *documents) Docs(term string, fields query.Fields) (n int) {
	in := fields.List()
	if fields.All() {
		in = d.TextFields()
	}
	here := false
	for _, doc := range d.docs {
		has := false
		for name, words := range doc {
			if name != "g" && slices.Contains(strings.Fields(words), strings.TrimPrefix(term, text.Stem)) {
				has = true
				here = here || slices.ContainsFunc(in, func(f *query.Field) bool { return f.Name == name })
			}
		}
		if has {
			n++
		}
	}
	if !here {
		return 0
	}
	return n
}

func TestTranscript(t *testing.T) {
	script, err := transcript.ParseFile("../../../conformance/testdata/search/search_spellcheck.txt")
	require.NoError(t, err)
	d := newDocuments()
	dicts := map[string]*Dict{}
	answered, resp3 := 0, false
	for _, step := range script.Steps {
		var words []string
		for _, a := range step.Args {
			words = append(words, a.Text)
		}
		if len(words) < 3 || len(step.Newest()) == 0 || strings.Contains(step.Newest()[0].Text, "Index not found") ||
			step.Newest()[0].Match != nil && step.Newest()[0].Kind == '-' && !strings.Contains(step.Source, "FOO") {
			resp3 = resp3 || len(words) == 2 && words[0] == "HELLO"
			continue
		}
		var got transcript.Value
		switch words[0] {
		case "HSET":
			doc := map[string]string{}
			for i := 2; i < len(words); i += 2 {
				doc[words[i]] = words[i+1]
			}
			d.docs = append(d.docs, doc)
			continue
		case "FT.DICTADD", "FT.DICTDEL":
			if dicts[words[1]] == nil {
				dicts[words[1]] = &Dict{}
			}
			change, n := dicts[words[1]].Add, 0
			if words[0] == "FT.DICTDEL" {
				change = dicts[words[1]].Delete
			}
			for _, word := range words[2:] {
				if change(word) {
					n++
				}
			}
			got = transcript.Value{Kind: transcript.Integer, Text: fmt.Sprint(n)}
		case "FT.SPELLCHECK":
			got, err = check(d, words[2:], dicts, resp3)
			if err != nil {
				got = transcript.Value{Kind: transcript.Error, Text: err.Error()}
			}
		default:
			continue
		}
		answered++
		require.True(t, step.Newest()[0].Matches(got, nil), "%s\nwant %s\ngot %s", step.Source, step.Newest()[0], got)
	}
	require.Equal(t, 71, answered)
}

// check answers an FT.SPELLCHECK.
func check(d *documents, words []string, dicts map[string]*Dict, resp3 bool) (transcript.Value, error) {
	o, err := ParseOptions(words[1:])
	if err != nil {
		return transcript.Value{}, err
	}
	if err := o.Missing(func(name string) bool { return dicts[name].Len() > 0 }); err != nil {
		return transcript.Value{}, err
	}
	root, err := query.Parse(words[0], query.Options{Dialect: max(1, o.Dialect), Schema: d, Slop: -1})
	if err != nil {
		return transcript.Value{}, err
	}
	bulk := func(s string) transcript.Value { return transcript.Value{Kind: transcript.Bulk, Text: s} }
	array := func(elems ...transcript.Value) transcript.Value {
		return transcript.Value{Kind: transcript.Array, Elems: elems}
	}
	found := Check(root, d, o, func(name string) *Dict { return dicts[name] })
	total := transcript.Value{Kind: transcript.Integer, Text: fmt.Sprint(d.Len())}
	var list []transcript.Value
	for _, w := range found {
		suggestions := array()
		for _, s := range w.Suggestions {
			score := value.Num(s.Score).ToText()
			if resp3 {
				suggestions.Elems = append(suggestions.Elems, transcript.Value{
					Kind: transcript.Map, Elems: []transcript.Value{bulk(s.Term), {Kind: transcript.Double, Text: fmt.Sprint(s.Score)}},
				})
			} else {
				suggestions.Elems = append(suggestions.Elems, array(bulk(score), bulk(s.Term)))
			}
		}
		if w.Known {
			suggestions = transcript.Value{Kind: transcript.Simple, Text: "term exists in index"}
		}
		if resp3 {
			list = append(list, bulk(w.Text), suggestions)
		} else {
			list = append(list, array(transcript.Value{Kind: transcript.Simple, Text: "TERM"}, bulk(w.Text), suggestions))
		}
	}
	if !resp3 {
		if o.Full {
			list = append([]transcript.Value{total}, list...)
		}
		return array(list...), nil
	}
	reply := transcript.Value{Kind: transcript.Map, Elems: []transcript.Value{
		{Kind: transcript.Simple, Text: "results"}, {Kind: transcript.Map, Elems: list},
	}}
	if o.Full {
		reply.Elems = append([]transcript.Value{{Kind: transcript.Simple, Text: "total_docs"}, total}, reply.Elems...)
	}
	return reply, nil
}

func TestDictionariesFindWordsInAnyCase(t *testing.T) {
	var d Dict
	require.True(t, d.Add("Größe") && d.Add("größer") && !d.Add("Größe") && !d.Add(""))
	require.True(t, d.Has("GRÖßE") && !d.Has("große"))
	near := func(word string, distance int) []string { return slices.Sorted(d.Near(word, distance)) }
	require.Equal(t, []string{"Größe"}, near("große", 1))
	require.Equal(t, []string{"Größe", "größer"}, near("große", 2))
	require.Empty(t, near("g", 1))
	require.Equal(t, []string{"Größe", "größer"}, d.Words())
	require.True(t, d.Delete("Größe") && !d.Delete("Größe"))
	require.Equal(t, 1, d.Len())
	var none *Dict
	require.False(t, none.Has("x"))
	require.Empty(t, none.Words())
}

// distanceOf is the distance of two words by its definition.
func distanceOf(a, b string) int {
	switch {
	case a == "":
		return len(b)
	case b == "":
		return len(a)
	case a[0] == b[0]:
		return distanceOf(a[1:], b[1:])
	}
	return 1 + min(distanceOf(a[1:], b), distanceOf(a, b[1:]), distanceOf(a[1:], b[1:]))
}

func TestDistances(t *testing.T) {
	testseed.Check(t, func(t *rapid.T) {
		words := rapid.StringOfN(rapid.SampledFrom([]rune("ab")), 0, 6, -1)
		a, b := words.Draw(t, "a"), words.Draw(t, "b")
		for distance := range 5 {
			require.Equal(t, distanceOf(a, b) <= distance, within([]rune(a), []rune(b), distance))
		}
	})
}
