package summary

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/atomredis/atomredis/internal/search/args"
	"github.com/atomredis/atomredis/internal/search/text"
	"github.com/atomredis/atomredis/internal/testing/testseed"
	"github.com/atomredis/atomredis/internal/testing/transcript"
)

// found is a Match of some words and of words with their stems.
func found(words []string, stems bool) Match {
	stemmer := text.NewStemmer(0)
	stem := func(word string) string {
		if s, ok := stemmer.Stem([]byte(word)); ok {
			return s
		}
		return word
	}
	return func(word []byte) (int, float64, bool) {
		for i, w := range words {
			if string(word) == w || stems && (stem(string(word)) == stem(w)) {
				return i, 1, true
			}
		}
		return 0, 0, false
	}
}

// Every field that HIGHLIGHT or SUMMARIZE has changed in the transcript is changed in the same way.
func TestTranscript(t *testing.T) {
	script, err := transcript.ParseFile("../../../conformance/testdata/search/search_highlight.txt")
	require.NoError(t, err)
	docs := map[string]map[string]string{}
	checked := 0
	for _, step := range script.Steps {
		var words []string
		for _, a := range step.Args {
			words = append(words, a.Text)
		}
		switch {
		case len(words) > 3 && words[0] == "HSET":
			docs[words[1]] = map[string]string{}
			for i := 2; i < len(words); i += 2 {
				docs[words[1]][words[i]] = words[i+1]
			}
		case len(words) > 3 && words[0] == "FT.SEARCH":
			var s Settings
			err := settings(&s, words[3:])
			if want := step.Newest()[0]; want.Kind == '-' {
				if strings.HasPrefix(want.Text, "SEARCH_PARSE_ARGS Bad arguments") {
					require.EqualError(t, err, want.Text, step.Source)
					checked++
				}
				continue
			}
			require.NoError(t, err)
			rows := step.Newest()[0].Elems
			for i := 1; i+1 < len(rows); i += 2 {
				for j := 0; j+1 < len(rows[i+1].Elems); j += 2 {
					name, want := rows[i+1].Elems[j].Text, rows[i+1].Elems[j+1].Text
					if name != "title" && name != "body" {
						continue
					}
					require.Equal(t, want, render(&s, docs[rows[i].Text], name, words), "%s\n%s", step.Source, rows[i].Text)
					checked++
				}
			}
		}
	}
	require.Equal(t, 233, checked)
}

// settings reads HIGHLIGHT and SUMMARIZE among the options of a query.
func settings(s *Settings, words []string) error {
	r := args.New(words...)
	for !r.Done() {
		switch {
		case r.Match("HIGHLIGHT"):
			if err := s.ParseHighlight(&r); err != nil {
				return err
			}
		case r.Match("SUMMARIZE"):
			if err := s.ParseSummarize(&r); err != nil {
				return err
			}
		default:
			_, _ = r.Next()
		}
	}
	return nil
}

// render renders a field of a document that was found by the query of a command.
func render(s *Settings, doc map[string]string, name string, command []string) string {
	query := command[2]
	stems := !slices.Contains(command, "VERBATIM") && !strings.ContainsAny(query, `"%`)
	if strings.HasPrefix(query, "-") || query == "*" {
		query = ""
	}
	if _, rest, ok := strings.Cut(query, ":"); ok && !strings.Contains(query, "[") {
		query = rest
	}
	if i := strings.IndexByte(query, ']'); i >= 0 {
		query = query[i+1:]
	}
	words := strings.FieldsFunc(query, func(r rune) bool { return strings.ContainsRune(`"% |`, r) })
	for i, w := range words {
		if w == "forst" {
			words[i] = "forest" // the match of %forst%
		}
	}
	return s.For(name).Render(doc[name], &text.Tokenizer{Stopwords: text.English}, found(words, stems))
}

func TestStyles(t *testing.T) {
	h, o := DefaultHighlight(), DefaultSummarize()
	both := Style{&h, &o}
	short := Summarize{Fragments: 1, Words: 2, Separator: "|"}
	for _, c := range []struct {
		style  Style
		stored string
		want   string
	}{
		{Style{}, "a hit", "a hit"},
		{Style{Highlight: &h}, "Hit, HIT\thit", "<b>Hit</b>, <b>HIT</b>\t<b>hit</b>"},
		{Style{Highlight: &h}, "none", "none"},
		{Style{Highlight: &h}, "", ""},
		{Style{Summarize: &o}, "none  of\nit can't", "none of it can't"},
		{Style{Summarize: &short}, "none of all that is long", "none of all that"},
		{Style{Summarize: &short}, strings.Repeat("x", 50), "x"},
		{Style{Summarize: &short}, "", ""},
		{both, "none  of", "none  of"},
		{both, "hit", "<b>hit</b>... "},
		{Style{Summarize: &short}, "one two hit three four", "two hit three|"},
		{Style{Summarize: &Summarize{Fragments: 0, Words: 5, Separator: "|"}}, "a hit", ""},
		{Style{Summarize: &Summarize{Fragments: 2, Words: 0, Separator: "|"}}, "a hit", "hit|"},
	} {
		require.Equal(t, c.want, c.style.Render(c.stored, &text.Tokenizer{}, found([]string{"hit"}, false)), c.stored)
	}
}

func TestBestFragmentsHaveTheRarestWords(t *testing.T) {
	far := strings.Repeat("x ", 12)
	stored := "common " + far + "common rare " + far + "common"
	match := func(word []byte) (int, float64, bool) {
		switch string(word) {
		case "common":
			return 0, 1, true
		case "rare":
			return 1, 5, true
		}
		return 0, 0, false
	}
	s := Style{Summarize: &Summarize{Fragments: 1, Separator: "|"}}
	require.Equal(t, "common rare|", s.Render(stored, &text.Tokenizer{}, match))
	s.Summarize.Fragments = 2
	require.Equal(t, "common|common rare|", s.Render(stored, &text.Tokenizer{}, match))
}

func TestChineseWordsAreMarkedOneByOne(t *testing.T) {
	h := DefaultHighlight()
	got := Style{Highlight: &h}.Render("我们的", &text.Tokenizer{Language: text.Chinese}, found([]string{"们"}, false))
	require.Equal(t, "我<b>们</b>的", got)
}

func TestSettings(t *testing.T) {
	for options, want := range map[string][2]bool{ // of the field a: highlighted, summarized
		"": {false, false}, "HIGHLIGHT": {true, false}, "SUMMARIZE": {false, true}, "HIGHLIGHT FIELDS 1 a": {true, false},
		"HIGHLIGHT FIELDS 1 b": {false, false}, "HIGHLIGHT FIELDS 1 b SUMMARIZE": {false, false}, "HIGHLIGHT FIELDS 1 a SUMMARIZE": {true, true},
		"HIGHLIGHT FIELDS 1 a SUMMARIZE FIELDS 2 b a": {true, true}, "HIGHLIGHT FIELDS 0": {true, false},
	} {
		var s Settings
		require.NoError(t, settings(&s, strings.Fields(options)))
		style := s.For("a")
		require.Equal(t, want, [2]bool{style.Highlight != nil, style.Summarize != nil}, options)
		require.Equal(t, options == "", s.Empty())
	}
}

// A highlighted text without its tags is the original text, and a summary consists of parts of it.
func TestNothingIsAddedToATextButTags(t *testing.T) {
	testseed.Check(t, func(t *rapid.T) {
		stored := rapid.StringOf(rapid.SampledFrom([]rune("hit ,.\n\\x'é"))).Draw(t, "text")
		h := DefaultHighlight()
		o := Summarize{Fragments: rapid.IntRange(0, 3).Draw(t, "fragments"), Words: rapid.IntRange(0, 9).Draw(t, "words")}
		match := found([]string{"hit", "t", "x"}, false)
		marked := Style{Highlight: &h}.Render(stored, &text.Tokenizer{}, match)
		require.Equal(t, stored, strings.NewReplacer("<b>", "", "</b>", "").Replace(marked))
		o.Separator = "\x00"
		for part := range strings.SplitSeq(Style{Summarize: &o}.Render(stored, &text.Tokenizer{}, match), "\x00") {
			require.Contains(t, collapse(stored), strings.Trim(part, " "))
		}
	})
}

func FuzzRender(f *testing.F) {
	f.Add("a hit  and\\ another hit, far away", 2, 3)
	f.Fuzz(func(t *testing.T, stored string, fragments, words int) {
		h := DefaultHighlight()
		o := Summarize{Fragments: max(0, fragments), Words: max(0, words) & 0xffffff, Separator: "|"}
		for _, s := range []Style{{Highlight: &h}, {Summarize: &o}, {&h, &o}} {
			s.Render(stored, &text.Tokenizer{}, found([]string{"hit", "a"}, false))
		}
	})
}
