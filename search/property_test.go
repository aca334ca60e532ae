package search_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/atomredis/atomredis/atomredistest"
	"github.com/atomredis/atomredis/internal/search/text"
	"github.com/atomredis/atomredis/internal/testing/testseed"
	"github.com/atomredis/atomredis/search"
)

// note is a document that only its owner may find.
type note struct {
	Owner string `search:"owner,tag"`
	Text  string `search:"text,text"`
	Label string `search:"la-bel: x,tag,empty"`
}

// notes returns an index with a document of another owner.
func notes(t testing.TB, o search.Options) *search.Index[note] {
	x, err := search.Open[note](t.Context(), atomredistest.Run(t), "notes", o)
	require.NoError(t, err)
	require.NoError(t, x.Put(t.Context(), "\x00secret", note{"other", "secret words of a user who is another", "secret words"}))
	return x
}

// try stores a document with the text s in every field, and searches for it with every query.
func try(t require.TestingT, x *search.Index[note], s string) {
	ctx := context.Background()
	v := note{"me", s, s}
	if err := x.Put(ctx, s, v); err != nil {
		require.True(t, strings.Contains(s, "\x1f") || !utf8.ValidString(s), "%q: %v", s, err)
		return
	}
	defer func() {
		n, err := x.Delete(ctx, s)
		require.NoError(t, err)
		require.Equal(t, 1, n)
	}()
	got, err := x.Get(ctx, s)
	require.NoError(t, err)
	require.Equal(t, v, got)

	mine := func(q search.Query) []string {
		var ids []string
		for hit, err := range x.Find(ctx, q.And(search.Tag("owner", "me"))) {
			require.NoError(t, err, "%q", s)
			require.Equal(t, v, hit.Value)
			ids = append(ids, hit.ID)
		}
		return ids
	}
	one := []string{s}
	require.Equal(t, one, mine(search.Tag("la-bel: x", s)), "%q", s)
	require.Equal(t, one, mine(search.Tag("la-bel: x", "\x01", s)), "%q", s)
	require.Empty(t, mine(search.Not(search.Tag("la-bel: x", s))), "%q", s)
	mine(search.TagPrefix("la-bel: x", s))

	words := text.Tokenizer{Stopwords: text.English}
	words.Start([]byte(s), 0)
	switch has := words.Next(); {
	case has && !utf8.ValidString(s):
		// A dropped control character may leave a letter that the query folds and the document does not.
		for _, q := range []search.Query{search.Text(s), search.Phrase(s), search.Fuzzy(s, 1), search.Not(search.Text(s))} {
			mine(q)
		}
	case has:
		require.Equal(t, one, mine(search.Text(s)), "%q", s)
		require.Equal(t, one, mine(search.Text(s, "text")), "%q", s)
		require.Equal(t, one, mine(search.Phrase(s)), "%q", s)
		require.Equal(t, one, mine(search.Fuzzy(s, 1)), "%q", s)
		require.Empty(t, mine(search.Not(search.Text(s))), "%q", s)
	default:
		for _, q := range []search.Query{search.Text(s), search.Phrase(s), search.Not(search.Text(s)), search.Fuzzy(s, 2)} {
			n, err := x.Count(ctx, q)
			require.NoError(t, err)
			require.Zero(t, n, "%q", s)
			require.Equal(t, one, mine(q), "%q", s) // the text has no effect
		}
	}
	mine(search.Prefix(s))
	mine(search.Or(search.Text(s), search.Phrase(s), search.Prefix(s), search.Tag("owner", "me")))

	for row, err := range search.Aggregate[map[string]string](ctx, x, search.Tag("la-bel: x", s), search.Apply(search.Quote(s), "s"), search.Page(0, 1)) {
		require.NoError(t, err, "%q", s)
		require.Equal(t, s, row["s"])
	}
}

// hostile draws texts with special meanings in queries, expressions, tokenizers or documents.
var hostile = rapid.OneOf(rapid.String(), rapid.Map(rapid.SliceOf(rapid.SampledFrom([]string{
	"a", "b", "run", "the", "as", "AS", "ismissing", "ISMISSING(@owner)", "inf", "1", "-1e5", "w'*'", "w", "'", `"`, `\`, "*", "(", ")",
	"|", "-", "~", "@", "@owner:{other}", "$", "$_0", "$_1", "%", "%%", "{", "}", "[", "]", ":", ";", "=>", "=>[KNN 1 @v $v]",
	"=>{$weight: 1}", "!", "<", ">", ",", ".", "/", "#", "^", "&", "+", "`", "?", " ", "\t", "\r\n", "\x00", "\x1f", "\x7f", "\xff", "é", "ß", "İ",
	"日本", "\u2028", "secret", "other", "_"})),
	func(parts []string) string { return strings.Join(parts, "") }))

// Any text is stored unchanged and found, and no text changes the rest of a query.
func TestTextsCannotChangeQueries(t *testing.T) {
	both(t, func(t *testing.T, o search.Options) {
		x := notes(t, o)
		testseed.Check(t, func(t *rapid.T) { try(t, x, hostile.Draw(t, "text")) })
	})
}

func FuzzTexts(f *testing.F) {
	for _, s := range []string{"", "a", "the", "a@b|c", `a\`, `"`, "w'*'", "ismissing(@text)", "\x00a", "\xff", "$_0"} {
		f.Add(s)
	}
	x := notes(f, search.Options{})
	f.Fuzz(func(t *testing.T, s string) { try(t, x, s) })
}

// Any number is stored exactly, and a range of this number alone finds it.
func TestNumbersAreExact(t *testing.T) {
	type row struct {
		F float64 `search:"f,numeric"`
		S float32 `search:"s,numeric,sortable"`
		I int32   `search:"i,numeric"`
	}
	both(t, func(t *testing.T, o search.Options) {
		x, err := search.Open[row](t.Context(), atomredistest.Run(t), "rows", o)
		require.NoError(t, err)
		testseed.Check(t, func(t *rapid.T) {
			ctx := context.Background()
			v := row{rapid.Float64().Draw(t, "f"), rapid.Float32().Draw(t, "s"), rapid.Int32().Draw(t, "i")}
			require.NoError(t, x.Put(ctx, "1", v))
			hits, err := x.Hits(ctx, search.Equal("f", v.F).And(search.Equal("s", v.S), search.Equal("i", v.I)))
			require.NoError(t, err)
			require.Equal(t, []search.Hit[row]{{ID: "1", Score: hits[0].Score, Value: v}}, hits)
			hits, err = x.Hits(ctx, search.Above("f", v.F).Or(search.Below("s", v.S), search.Above("i", v.I)))
			require.NoError(t, err)
			require.Empty(t, hits)
		})
	})
}

// Queries of any shape are valid, and find the right documents.
func TestQueriesOfAnyShape(t *testing.T) {
	type row struct {
		Bits []string `search:"bits,tag"`
		Text string   `search:"text,text"`
		N    int      `search:"n,numeric,sortable"`
	}
	x, err := search.Open[row](t.Context(), atomredistest.Run(t), "rows", search.Options{})
	require.NoError(t, err)
	names := []string{"zero", "one", "two", "three"}
	for n := range 16 {
		v := row{N: n}
		for i, name := range names {
			if n>>i&1 == 1 {
				v.Bits = append(v.Bits, name)
			}
		}
		v.Text = strings.Join(v.Bits, " ")
		require.NoError(t, x.Put(t.Context(), v.Text, v))
	}
	// shape returns a query and a bit set of the documents that it finds.
	var shape func(t *rapid.T, depth int) (search.Query, uint16)
	leaf := func(has func(n int) bool) (found uint16) {
		for n := range 16 {
			if has(n) {
				found |= 1 << n
			}
		}
		return found
	}
	shape = func(t *rapid.T, depth int) (search.Query, uint16) {
		kind := rapid.IntRange(0, 6).Draw(t, "kind")
		if depth == 0 {
			kind %= 3
		}
		i := rapid.IntRange(0, 3).Draw(t, "i")
		bit := func(n int) bool { return n>>i&1 == 1 }
		switch kind {
		case 0:
			return search.Tag("bits", names[i]), leaf(bit)
		case 1:
			return search.Text(names[i]), leaf(bit)
		case 2:
			return search.AtLeast("n", 4*i), leaf(func(n int) bool { return n >= 4*i })
		case 3:
			q, found := shape(t, depth-1)
			return search.Not(q), ^found
		}
		var parts []search.Query
		found := uint16(0xffff)
		if kind != 4 {
			found = 0
		}
		for range rapid.IntRange(1, 4).Draw(t, "parts") {
			q, of := shape(t, depth-1)
			parts = append(parts, q)
			if kind == 4 {
				found &= of
			} else {
				found |= of
			}
		}
		switch kind {
		case 4:
			return search.And(parts...), found
		case 5:
			return parts[0].Or(parts[1:]...), found
		}
		return search.Or(parts...).Boost(2), found
	}
	testseed.Check(t, func(t *rapid.T) {
		q, want := shape(t, 4)
		var found uint16
		for hit, err := range x.Find(context.Background(), q, search.SortBy("n")) {
			require.NoError(t, err)
			found |= 1 << hit.Value.N
		}
		require.Equal(t, want, found)
	})

	deep := search.Text("one")
	for i := range 1000 {
		deep = deep.And(search.Tag("bits", names[i%2+1]))
	}
	hits, err := x.Hits(t.Context(), deep, search.SortBy("n"))
	require.NoError(t, err)
	require.Equal(t, []int{6, 7, 14, 15}, slices.Collect(func(yield func(int) bool) {
		for _, hit := range hits {
			if !yield(hit.Value.N) {
				return
			}
		}
	}))
}
