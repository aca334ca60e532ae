package search_test

import (
	"context"
	"errors"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/atomredis/atomredis/atomredistest"
	"github.com/atomredis/atomredis/memory"
	"github.com/atomredis/atomredis/resp"
	"github.com/atomredis/atomredis/search"
)

type item struct {
	Title string        `search:"title,text,weight=2,sortable"`
	Body  string        `search:"body,text,nostem,omitempty"`
	Tags  []string      `search:"tags,tag"`
	Brand string        `search:"brand,tag,sortable"`
	Price float64       `search:"price,numeric,sortable"`
	Place *search.Point `search:"place,geo"`
	Made  time.Time     `search:"made,numeric,omitempty"`
	Look  []float32     `search:"look,vector,flat,dim=2,metric=l2"`
	Note  string        `search:"note,omitempty"`
	Local string        `search:"-"`
}

var items = map[string]item{
	"1": {Title: "red running shoes", Tags: []string{"sport", "shoes"}, Brand: "A, B & Sons", Price: 79.5, Place: &search.Point{Lon: 13.4, Lat: 52.5},
		Made: time.Unix(1_700_000_000, 123_456_789).UTC(), Look: []float32{1, 0}, Note: "left over"},
	"2": {Title: "blue shoe laces", Body: "laces for the running", Tags: []string{"shoes"}, Brand: "Ünïcode", Price: 4,
		Place: &search.Point{Lon: 2.35, Lat: 48.85}, Look: []float32{0, 1}},
	"3": {Title: "a book about running", Tags: []string{"book", "sport"}, Brand: "a, b & sons", Price: 20, Look: []float32{0.9, 0.1}},
}

// shop returns an index with items.
func shop(t *testing.T, o search.Options) (*atomredistest.Server, *search.Index[item]) {
	db := atomredistest.Run(t)
	x, err := search.Open[item](t.Context(), db, "shop", o)
	require.NoError(t, err)
	for id, v := range items {
		require.NoError(t, x.Put(t.Context(), id, v))
	}
	return db, x
}

// ids returns the IDs that a query finds.
func ids[T any](t *testing.T, x *search.Index[T], q search.Query, options ...search.Option) (found []string) {
	t.Helper()
	for hit, err := range x.Find(t.Context(), q, options...) {
		require.NoError(t, err)
		found = append(found, hit.ID)
	}
	return found
}

func both(t *testing.T, test func(t *testing.T, o search.Options)) {
	t.Run("hash", func(t *testing.T) { test(t, search.Options{}) })
	t.Run("json", func(t *testing.T) { test(t, search.Options{JSON: true}) })
}

func TestDocumentsComeBackAsTheyWere(t *testing.T) {
	both(t, func(t *testing.T, o search.Options) {
		_, x := shop(t, o)
		for id, want := range items {
			got, err := x.Get(t.Context(), id)
			require.NoError(t, err)
			hit, err := x.First(t.Context(), search.Text(want.Title))
			require.NoError(t, err)
			if o.JSON { // numbers of JSON are floats
				for _, at := range []*time.Time{&got.Made, &hit.Value.Made, &want.Made} {
					*at = at.Round(time.Microsecond)
				}
			}
			require.Equal(t, want, got)
			require.Equal(t, id, hit.ID)
			require.Equal(t, want, hit.Value)
			require.Positive(t, hit.Score)
		}
	})
}

func TestQueries(t *testing.T) {
	both(t, func(t *testing.T, o search.Options) {
		_, x := shop(t, o)
		berlin := search.Point{Lon: 13.39, Lat: 52.51}
		for name, c := range map[string]struct {
			q    search.Query
			want []string // in the order of prices
		}{
			"nothing":               {search.Query{}, nil},
			"all":                   {search.All(), []string{"2", "3", "1"}},
			"text":                  {search.Text("run"), []string{"3", "1"}},
			"text of a field":       {search.Text("running", "body"), []string{"2"}},
			"text of two fields":    {search.Text("running", "body", "title"), []string{"2", "3", "1"}},
			"all words":             {search.Text("running: red?"), []string{"1"}},
			"words not indexed":     {search.Text("about a the running"), []string{"3"}},
			"only words like these": {search.Text("the a"), nil},
			"no words":              {search.Text("?!"), nil},
			"no words beside":       {search.Text("?!").And(search.Tag("tags", "book")), []string{"3"}},
			"keywords":              {search.Text("ismissing as inf 1e5 w"), nil},
			"phrase":                {search.Phrase("running shoes"), []string{"1"}},
			"phrase, other order":   {search.Phrase("shoes running"), nil},
			"phrase with the":       {search.Phrase("laces for the running", "body"), []string{"2"}},
			"prefix":                {search.Prefix("blue sho"), []string{"2"}},
			"prefix that is a word": {search.Prefix("ab"), []string{"3"}},
			"prefix, nothing":       {search.Prefix(""), nil},
			"fuzzy":                 {search.Fuzzy("shoas", 1), []string{"1"}},
			"tag":                   {search.Tag("tags", "sport"), []string{"3", "1"}},
			"tags":                  {search.Tag("tags", "BOOK ", "shoes"), []string{"2", "3", "1"}},
			"tag with punctuation":  {search.Tag("brand", "A, B & Sons"), []string{"3", "1"}},
			"tag in unicode":        {search.Tag("brand", "ünïCODE"), []string{"2"}},
			"tag of another":        {search.Tag("tags", "*"), nil},
			"tag prefix":            {search.TagPrefix("tags", "sp"), []string{"3", "1"}},
			"range":                 {search.Range("price", 0, 20), []string{"2", "3"}},
			"equal":                 {search.Equal("price", 79.5), []string{"1"}},
			"at least":              {search.AtLeast("price", 20), []string{"3", "1"}},
			"above":                 {search.Above("price", 20), []string{"1"}},
			"at most":               {search.AtMost("price", float32(4)), []string{"2"}},
			"below":                 {search.Below("price", uint8(4)), nil},
			"infinite":              {search.Range("price", math.Inf(-1), math.Inf(1)), []string{"2", "3", "1"}},
			"between":               {search.Between("made", time.Unix(1_700_000_000, 0), time.Unix(1_700_000_001, 0)), []string{"1"}},
			"before":                {search.Between("made", time.Time{}, time.Unix(1_700_000_000, 0)), nil},
			"near":                  {search.Near("place", berlin, 5*search.Kilometer), []string{"1"}},
			"near in miles":         {search.Near("place", berlin, 1000*search.Mile), []string{"2", "1"}},
			"not":                   {search.Not(search.Tag("tags", "shoes")), []string{"3"}},
			"and":                   {search.Text("run").And(search.Range("price", 0, 50), search.Tag("tags", "sport")), []string{"3"}},
			"or":                    {search.Tag("tags", "book").Or(search.Tag("brand", "ünïcode")), []string{"2", "3"}},
			"or of text":            {search.Or(search.Text("red"), search.Text("blue"), search.Text("book")), []string{"2", "3", "1"}},
			"and not":               {search.Text("running", "title").And(search.Not(search.Text("book"))), []string{"1"}},
			"and of or":             {search.Text("blue").Or(search.Text("red")).And(search.Above("price", 5)), []string{"1"}},
			"all and":               {search.All().And(search.Text("red")), []string{"1"}},
			"all or":                {search.All().Or(search.Text("red")), []string{"2", "3", "1"}},
			"optional":              {search.Optional(search.Text("red")).And(search.Tag("tags", "sport")), []string{"3", "1"}},
			"boosted":               {search.Text("red").Boost(2).Or(search.Text("blue").Boost(0)), []string{"2", "1"}},
			"nearest":               {search.KNN("look", 2, []float32{1, 0}), []string{"3", "1"}},
			"nearest of some":       {search.KNN("look", 2, []float64{1, 0}, search.Tag("tags", "shoes")), []string{"2", "1"}},
			"nearest of text":       {search.KNN("look", 1, []float32{1, 0}, search.Text("the laces")), []string{"2"}},
			"similar":               {search.Similar("look", []float32{1, 0}, 0.5), []string{"3", "1"}},
			"similar and text":      {search.Similar("look", []float32{1, 0}, 0.5).And(search.Text("red")), []string{"1"}},
			"raw":                   {search.Raw("@title:(red|blue) @price:[0 $max]", search.Params{"max": 10}), []string{"2"}},
			"raw in another":        {search.Raw("red | blue", nil).And(search.Tag("tags", "sport")), []string{"1"}},
			"raw of vectors":        {search.Raw("*=>[KNN 1 @look $v AS d]", search.Params{"v": []float32{0, 1}}), []string{"2"}},
		} {
			require.Equal(t, c.want, ids(t, x, c.q, search.SortBy("price")), name)
			n, err := x.Count(t.Context(), c.q)
			require.NoError(t, err, name)
			require.Equal(t, len(c.want), n, name)
			_, err = x.Explain(t.Context(), c.q)
			require.NoError(t, err, name)
		}
	})
}

func TestQueriesThatCannotBe(t *testing.T) {
	_, x := shop(t, search.Options{})
	for text, q := range map[string]search.Query{
		`there is no field "nothing"`:         search.Text("a", "nothing"),
		`field "price" is not of type text`:   search.Phrase("a", "price"),
		`field "title" is not of type tag`:    search.Tag("title", "a"),
		`field "note" is not of type numeric`: search.Range("note", 1, 2),
		`has no tag`:                          search.Tag("tags"),
		`ends at NaN`:                         search.AtLeast("price", math.NaN()),
		`min > max`:                           search.Range("price", 2, 1),
		`cannot be near`:                      search.Near("place", search.Point{}, 0),
		`is 1, 2 or 3, not 4`:                 search.Fuzzy("word", 4),
		`the vector has 1 elements, not 2`:    search.KNN("look", 1, []float32{1}),
		`KNN of 0 documents`:                  search.KNN("look", 0, []float32{1, 2}),
		`KNN cannot be a part`:                search.All().And(search.KNN("look", 1, []float32{1, 2})),
		`All cannot be negated`:               search.Not(search.All()),
		`a weight of -1`:                      search.Text("a").Boost(-1),
		`two parameters "a"`:                  search.Raw("$a", search.Params{"a": 1}).And(search.Raw("$a", search.Params{"a": 2})),
		`parameter "a" is of type`:            search.Raw("$a", search.Params{"a": []string{"x"}}),
		`Syntax error at offset`:              search.Raw("@price:", nil),
		`requires defining the field`:         search.Missing("price"),
		`within -1`:                           search.Similar("look", []float32{1, 2}, -1),
		`"place" is not of type geoshape`:     search.Shapes("place", search.Within, "POINT (1 2)"),
		`there is no field "other"`:           search.Or(search.Text("a"), search.Not(search.Near("other", search.Point{}, 1))),
	} {
		_, err := x.Hits(t.Context(), q)
		require.ErrorContains(t, err, text)
	}
	_, err := x.Hits(t.Context(), search.All(), search.SortBy("nothing"))
	require.ErrorContains(t, err, `no field "nothing" to sort by`)
	_, err = x.Hits(t.Context(), search.All(), search.Highlight("price"))
	require.ErrorContains(t, err, `no field "price" of type text`)
}

func TestOptions(t *testing.T) {
	_, x := shop(t, search.Options{})
	ctx := t.Context()
	require.Equal(t, []string{"1", "3", "2"}, ids(t, x, search.All(), search.SortByDesc("price")))
	require.Equal(t, []string{"3"}, ids(t, x, search.All(), search.SortBy("price"), search.Offset(1), search.Limit(1)))
	require.Equal(t, []string{"1"}, ids(t, x, search.All(), search.SortBy("price"), search.Offset(2)))
	require.Empty(t, ids(t, x, search.All(), search.Limit(0)))
	require.Empty(t, ids(t, x, search.Text("run"), search.Verbatim()))
	require.Equal(t, []string{"1"}, ids(t, x, search.Text("shoes red"), search.Slop(1)))
	require.Empty(t, ids(t, x, search.Text("shoes red"), search.Slop(1), search.InOrder()))
	require.Equal(t, []string{"1"}, ids(t, x, search.Text("laufen red").Or(search.Text("red")), search.Language("german"), search.Timeout(time.Second)))

	hits, err := x.Hits(ctx, search.Text("shoes"), search.SortBy("price"), search.Highlight("title"))
	require.NoError(t, err)
	require.Equal(t, map[string]string{"title": "blue <b>shoe</b> laces"}, hits[0].Highlights)
	require.Equal(t, items["2"], hits[0].Value)
	require.Zero(t, hits[0].Score)
	hits, err = x.Hits(ctx, search.Text("laces", "body"), search.HighlightWith("[", "]"), search.Summarize(1, 2), search.WithScores())
	require.NoError(t, err)
	require.Contains(t, hits[0].Highlights["body"], "[laces]")
	require.Contains(t, hits[0].Highlights, "title")
	require.Positive(t, hits[0].Score)

	hits, err = x.Hits(ctx, search.KNN("look", 3, []float32{1, 0}))
	require.NoError(t, err)
	require.Equal(t, []string{"1", "3", "2"}, []string{hits[0].ID, hits[1].ID, hits[2].ID})
	require.InDelta(t, 0.02, hits[1].Distance, 1e-6)
	hits, err = x.Hits(ctx, search.Similar("look", []float32{1, 0}, 1), search.SortByDesc("price"), search.Highlight())
	require.NoError(t, err)
	require.InDelta(t, 0.02, hits[1].Distance, 1e-6)

	_, err = x.First(ctx, search.Text("nothing"))
	require.ErrorIs(t, err, search.ErrNotFound)
	for range x.Find(ctx, search.All()) {
		break // leave the loop early
	}
	plain, err := x.Hits(ctx, search.Text("red"), search.Scorer("DISMAX"))
	require.NoError(t, err)
	require.Equal(t, 2.0, plain[0].Score)
}

func TestAllPagesAreFound(t *testing.T) {
	type row struct {
		N int `search:"n,numeric,sortable"`
	}
	x, err := search.Open[row](t.Context(), atomredistest.Run(t), "rows", search.Options{})
	require.NoError(t, err)
	for n := range 7500 {
		require.NoError(t, x.Put(t.Context(), string(rune('a'+n%26))+time.Duration(n).String(), row{n}))
	}
	next := 0
	for hit, err := range x.Find(t.Context(), search.All(), search.SortBy("n")) {
		require.NoError(t, err)
		require.Equal(t, next, hit.Value.N)
		next++
	}
	require.Equal(t, 7500, next)
	require.Len(t, ids(t, x, search.All(), search.Limit(3500)), 3500)
}

func TestDocumentsLoseWhatTheyLack(t *testing.T) {
	both(t, func(t *testing.T, o search.Options) {
		db, x := shop(t, o)
		if !o.JSON {
			db.MustDo(t, "HSET", "shop:1", "other", "stays")
		}
		require.NoError(t, x.Put(t.Context(), "1", item{Title: "new"}))
		got, err := x.Get(t.Context(), "1")
		require.NoError(t, err)
		require.Equal(t, item{Title: "new"}, got)
		require.Empty(t, ids(t, x, search.Tag("tags", "sport").And(search.Text("red"))))
		if !o.JSON {
			require.Equal(t, `"stays"`, db.MustDo(t, "HGET", "shop:1", "other").String())
		}

		n, err := x.Delete(t.Context(), "1", "2", "none")
		require.NoError(t, err)
		require.Equal(t, 2, n)
		_, err = x.Get(t.Context(), "1")
		require.ErrorIs(t, err, search.ErrNotFound)
		require.Equal(t, []string{"3"}, ids(t, x, search.All()))
		n, err = x.Delete(t.Context())
		require.NoError(t, err)
		require.Zero(t, n)
	})
}

func TestDocumentsThatCannotBeIndexedAreRefused(t *testing.T) {
	both(t, func(t *testing.T, o search.Options) {
		_, x := shop(t, o)
		for text, v := range map[string]item{
			"the vector has 3 elements, not 2": {Look: []float32{1, 2, 3}},
			"cannot be indexed: longitudes":    {Place: &search.Point{Lon: 181}},
			"NaN cannot be indexed":            {Price: math.NaN()},
		} {
			require.ErrorContains(t, x.Put(t.Context(), "bad", v), text)
		}
		if o.JSON {
			require.ErrorContains(t, x.Put(t.Context(), "bad", item{Title: "\xff"}), "UTF-8")
			require.ErrorContains(t, x.Put(t.Context(), "bad", item{Price: math.Inf(1)}), "infinite")
		} else {
			require.ErrorContains(t, x.Put(t.Context(), "bad", item{Tags: []string{"a,b"}}), "separator")
			require.ErrorContains(t, x.Put(t.Context(), "bad", item{Brand: "a\x1fb"}), "separator")
		}
		_, err := x.Get(t.Context(), "bad")
		require.ErrorIs(t, err, search.ErrNotFound)
		info, err := x.Info(t.Context())
		require.NoError(t, err)
		require.Equal(t, int64(3), info.Documents)
		require.Zero(t, info.Failures)
		require.False(t, info.Indexing)
		require.Equal(t, 1.0, info.Progress)
		require.Positive(t, info.Bytes)
	})
}

// wide has all types of fields; the test uses their extreme values.
type wide struct {
	S     string        `search:"s,text,empty,missing,phonetic=dm:en,suffixes,sortable,unf"`
	I8    int8          `search:"i8,numeric"`
	I64   int64         `search:"i64,numeric"`
	U64   uint32        `search:"u,numeric"`
	F32   float32       `search:"f32,numeric,sortable,noindex"`
	F64   float64       `search:"f64,numeric"`
	D     time.Duration `search:"d,numeric"`
	P     *int          `search:"p,numeric,missing"`
	B     bool          `search:"b,tag"`
	N     uint16        `search:"n,tag,casesensitive,empty"`
	L     []kind        `search:"l,tag,separator=;"`
	Shape string        `search:"shape,geoshape,flat,omitempty,missing"`
	V64   []float64     `search:"v64,vector,dim=2,hnsw,metric=ip,m=8,efconstruction=100,efruntime=20,epsilon=0.02"`
	V8    []int8        `search:"v8,vector,flat,dim=2,missing"`
	VU    []uint8       `search:"vu,vector,flat,dim=2"`
	At    time.Time     `search:"at"`
	Raw   []byte        `search:"raw"`
	Any   *bool         `search:"a b"`
	inner
}

type kind string

type inner struct {
	Name string `search:",tag"`
}

func TestAllTypes(t *testing.T) {
	yes, five := true, 5
	both(t, func(t *testing.T, o search.Options) {
		db := atomredistest.Run(t)
		x, err := search.Open[wide](t.Context(), db, "wide", o)
		require.NoError(t, err)
		for id, want := range map[string]wide{
			"most": {S: "Smith", I8: -128, I64: math.MaxInt64, U64: math.MaxUint32, F32: math.MaxFloat32, F64: math.SmallestNonzeroFloat64, D: -time.Hour,
				P: &five, B: true, N: 65535, L: []kind{"x,y", "z"}, Shape: "POLYGON ((0 0, 0 2, 2 2, 2 0, 0 0))", V64: []float64{1.5, math.Pi},
				V8: []int8{-128, 127}, VU: []uint8{0, 255}, At: time.Unix(5, 6).UTC(), Raw: []byte("raw"), Any: &yes, inner: inner{"n"}},
			"least": {I64: math.MinInt64, F64: 0.1, F32: 0.1, V64: []float64{-1, 0}},
		} {
			require.NoError(t, x.Put(t.Context(), id, want))
			got, err := x.Get(t.Context(), id)
			require.NoError(t, err)
			require.Equal(t, want, got)
		}
		_, err = x.Count(t.Context(), search.Shapes("shape", "AROUND", "POINT (1 1)"))
		require.ErrorContains(t, err, `"AROUND" is not a relation of shapes`)
		for name, q := range map[string]search.Query{
			"sound": search.Text("smyth", "s"), "shape": search.Shapes("shape", search.Contains, "POINT (1 1)"), "bool": search.Tag("b", "true"),
			"tag": search.Tag("n", "65535"), "separator": search.Tag("l", "x,y"), "embedded": search.Tag("Name", "N"), "int": search.Equal("i64", int64(math.MaxInt64)),
			"duration": search.AtMost("d", -time.Minute), "vector": search.KNN("v8", 1, []int8{1, 1}), "unsigned": search.KNN("vu", 1, []uint8{1, 1}),
			"there": search.Not(search.Missing("p")), "float32": search.KNN("v64", 1, []float32{1, 1}),
			"smallest": search.Range("f64", math.SmallestNonzeroFloat64, math.SmallestNonzeroFloat64),
		} {
			require.Equal(t, []string{"most"}, ids(t, x, q), name)
		}
		require.Equal(t, []string{"least"}, ids(t, x, search.Missing("shape").And(search.Missing("v8"))))
		require.Equal(t, []string{"least"}, ids(t, x, search.Equal("f64", 0.1)))

		// The same struct finds its index again.
		_, err = search.Open[wide](t.Context(), db, "wide", o)
		require.NoError(t, err)
	})
}

func TestOpen(t *testing.T) {
	ctx := t.Context()
	db := atomredistest.Run(t)
	type first struct {
		Title string `search:"title,text"`
	}
	type grown struct {
		Title string   `search:"title,text"`
		Price float64  `search:"price,numeric,sortable"`
		Tags  []string `search:"tags,tag"`
	}
	type other struct {
		Title string   `search:"title,text,weight=3,sortable"`
		Price string   `search:"price,tag"`
		Tags  []string `search:"tags,tag,separator=;,casesensitive"`
	}
	x, err := search.Open[first](ctx, db, "x", search.Options{Prefix: "doc:", StopWords: []string{"foo", "bar"}, Filter: "@title != 'no'"})
	require.NoError(t, err)
	require.Equal(t, "x", x.Name())
	require.Equal(t, "doc:1", x.Key("1"))
	require.NoError(t, x.Put(ctx, "1", first{"the title"}))
	require.Equal(t, []string{"1"}, ids(t, x, search.Text("the foo")))
	require.NoError(t, x.Put(ctx, "2", first{"no"}))
	require.Empty(t, ids(t, x, search.Text("no")))

	o := search.Options{Prefix: "doc:", StopWords: []string{"bar", "foo"}, Filter: "@title != 'no'", Language: "English"}
	g, err := search.Open[grown](ctx, db, "x", o)
	require.NoError(t, err)
	require.NoError(t, g.Put(ctx, "1", grown{"the title", 5, []string{"a"}}))
	require.Equal(t, []string{"1"}, ids(t, g, search.Range("price", 5, 5).And(search.Tag("tags", "a"))))
	_, err = search.Open[first](ctx, db, "x", o)
	require.NoError(t, err, "an older program goes on")

	_, err = search.Open[other](ctx, db, "x", search.Options{JSON: true, Language: "german"})
	require.ErrorIs(t, err, search.ErrDifferent)
	var differs *search.DifferenceError
	require.ErrorAs(t, err, &differs)
	require.Equal(t, []string{
		`documents: HASH, not JSON`, `prefix: ["doc:"], not ["x:"]`, `language: english, not german`, `filter: @title != 'no', not none`,
		`words that are not indexed: ["bar" "foo"], not the usual ones`,
		`field title is at: title, not $["title"]`, `field title, weight: 1, not 3`, `field title, options: none, not sortable`,
		`field price: NUMERIC, not TAG`,
		`field tags is at: tags, not $["tags"]`, `field tags, separator: ",", not ";"`, `field tags, options: none, not casesensitive`,
	}, differs.Differences)

	require.NoError(t, g.Drop(ctx))
	require.ErrorIs(t, g.Drop(ctx), search.ErrNoIndex)
	_, err = g.Hits(ctx, search.All())
	require.ErrorIs(t, err, search.ErrNoIndex)
	reply := resp.Error("")
	require.ErrorAs(t, err, &reply)
	_, err = g.Info(ctx)
	require.ErrorIs(t, err, search.ErrNoIndex)
	_, err = g.Get(ctx, "1")
	require.NoError(t, err, "the document is still there")
	g, err = search.Open[grown](ctx, db, "x", o)
	require.NoError(t, err)
	require.Equal(t, []string{"1"}, ids(t, g, search.All()), "what exists is indexed")
	require.NoError(t, g.DropAll(ctx))
	_, err = g.Get(ctx, "1")
	require.ErrorIs(t, err, search.ErrNotFound)
}

func TestStructsThatCannotBeIndexed(t *testing.T) {
	db := atomredistest.Run(t)
	refused := func(err error, text string) {
		t.Helper()
		require.ErrorContains(t, err, text)
	}
	_, err := search.Open[int](t.Context(), db, "x", search.Options{})
	refused(err, "int is not a struct")
	_, err = search.Open[struct{ A string }](t.Context(), db, "x", search.Options{})
	refused(err, "has no field with a type")
	_, err = search.Open[struct {
		A string `search:"a,numeric"`
	}](t.Context(), db, "x", search.Options{})
	refused(err, "string cannot be stored as numeric")
	_, err = search.Open[struct {
		A []string `search:"a,text"`
	}](t.Context(), db, "x", search.Options{})
	refused(err, "[]string cannot be stored as text")
	_, err = search.Open[struct {
		A map[string]int `search:"a"`
	}](t.Context(), db, "x", search.Options{})
	refused(err, "cannot be stored as a field of a hash")
	_, err = search.Open[struct {
		A string `search:"a,text"`
		B string `search:"a,tag"`
	}](t.Context(), db, "x", search.Options{})
	refused(err, `two fields "a"`)
	_, err = search.Open[struct {
		A []float32 `search:"a,vector"`
	}](t.Context(), db, "x", search.Options{})
	refused(err, "dim=128")
	_, err = search.Open[struct {
		a string `search:"a,text"`
	}](t.Context(), db, "x", search.Options{})
	refused(err, "not exported")
	_, err = search.Open[struct {
		*inner
	}](t.Context(), db, "x", search.Options{})
	refused(err, "embedded with a pointer")
	_, err = search.Open[struct {
		A string `search:"a,tag,unf"`
	}](t.Context(), db, "x", search.Options{})
	refused(err, "unf needs the option sortable")
	_, err = search.Open[struct {
		A *[]string `search:"a,tag"`
	}](t.Context(), db, "x", search.Options{})
	refused(err, "pointers to slices")
	_, err = search.Open[struct {
		A string `search:"a\x00,tag"`
	}](t.Context(), db, "x", search.Options{})
	refused(err, "control characters")
	for _, tag := range []string{"text,weight=x", "text,casesensitive", "tag,separator=ab", "tag,nostem", "tag,sorted", "omit", "text,flat"} {
		require.ErrorContains(t, search.CheckTag(tag), "unknown option", tag)
	}
	_, err = search.Open[item](t.Context(), db, "x", search.Options{Language: "klingon"})
	refused(err, "SEARCH_ADD_ARGS Invalid language")
}

func TestTransactions(t *testing.T) {
	both(t, func(t *testing.T, o search.Options) {
		db, x := shop(t, o)
		ctx := t.Context()
		var found, few *search.Found[item]
		var got, none *search.Got[item]
		require.NoError(t, db.Tx(ctx, func(tx *memory.Tx) error {
			in := x.In(tx)
			in.Delete("1")
			require.NoError(t, in.Put("4", item{Title: "white running socks", Price: 7}))
			require.Error(t, in.Put("5", item{Price: math.NaN()}))
			got, none = in.Get("4"), in.Get("1")
			var err error
			found, err = in.Find(search.Text("running"), search.SortBy("price"))
			require.NoError(t, err)
			few, err = in.Find(search.All(), search.Limit(0), search.Offset(5))
			require.NoError(t, err)
			_, err = in.Find(search.Tag("nothing", "a"))
			require.Error(t, err)
			_, err = found.Total()
			require.ErrorIs(t, err, memory.ErrNoReply)
			return nil
		}))
		var titles []string
		for hit, err := range found.All() {
			require.NoError(t, err)
			titles = append(titles, hit.Value.Title)
		}
		require.Equal(t, []string{"blue shoe laces", "white running socks", "a book about running"}, titles)
		total, err := few.Total()
		require.NoError(t, err)
		require.Equal(t, 3, total)
		v, err := got.Value()
		require.NoError(t, err)
		require.Equal(t, "white running socks", v.Title)
		_, err = none.Value()
		require.ErrorIs(t, err, search.ErrNotFound)
	})
}

func TestHandlersUseTheirCalls(t *testing.T) {
	db, x := shop(t, search.Options{})
	require.NoError(t, db.Handle(memory.Command{Name: "cheapest", Arity: 1, Flags: memory.WholeKeyspace, Do: func(c *memory.Ctx) (any, error) {
		in := x.Within(c)
		hit, err := in.First(context.Background(), search.All(), search.SortBy("price"))
		if err != nil {
			return nil, err
		}
		hit.Value.Tags = nil
		return hit.Value.Title, in.Put(context.Background(), hit.ID, hit.Value)
	}}))
	require.Equal(t, `"blue shoe laces"`, db.MustDo(t, "cheapest").String())
	got, err := x.Get(t.Context(), "2")
	require.NoError(t, err)
	require.Nil(t, got.Tags)
	require.Equal(t, "blue shoe laces", got.Title)
}

func TestAggregate(t *testing.T) {
	both(t, func(t *testing.T, o search.Options) {
		_, x := shop(t, o)
		ctx := t.Context()
		type row struct {
			Brand  string   `search:"brand"`
			Items  int      `search:"items"`
			Mean   *float64 `search:"mean"`
			Double float64  `search:"double"`
			Titles []string `search:"titles"`
			None   *string  `search:"none"`
		}
		var got []row
		for r, err := range search.Aggregate[row](ctx, x, search.Tag("tags", "sport").Or(search.Text("laces")),
			search.Load("brand", "title"), search.Apply("lower(@brand)", "brand"),
			search.GroupBy("brand").Count("items").Avg("price", "mean").List("title", "titles"),
			search.Apply("@mean * 2", "double"), search.OrderBy(search.Desc("items"), search.Asc("brand"))) {
			require.NoError(t, err)
			require.NotEmpty(t, r.Titles)
			r.Titles = nil
			got = append(got, r)
		}
		mean := [2]float64{49.75, 4}
		require.Len(t, got, 2)
		require.Equal(t, row{"a, b & sons", 2, &mean[0], 99.5, nil, nil}, got[0])
		require.Equal(t, 1, got[1].Items)

		var maps []map[string]string
		for r, err := range search.Aggregate[map[string]string](ctx, x, search.All(),
			search.GroupBy().Sum("price", "sum").Min("price", "min").Max("price", "max").CountDistinct("brand", "brands").
				StdDev("price", "dev").Quantile("price", 0.5, "median").First("price", search.Desc("price"), "first"),
			search.Filter("@sum > 100 && "+search.Quote(`a"\`)+" != 'b'"), search.Page(0, 5)) {
			require.NoError(t, err)
			delete(r, "dev")
			maps = append(maps, r)
		}
		require.Len(t, maps, 1)
		delete(maps[0], "brands")
		require.Equal(t, map[string]string{"sum": "103.5", "min": "4", "max": "79.5", "median": "20", "first": "79.5"}, maps[0])

		for _, err := range search.Aggregate[map[string]string](ctx, x, search.All(), search.Apply("@nothing", "x")) {
			require.Error(t, err)
		}
		for _, err := range search.Aggregate[int](ctx, x, search.All()) {
			require.ErrorContains(t, err, "rows are structs")
		}
		n := 0
		for _, err := range search.Aggregate[map[string]string](ctx, x, search.All(), search.OrderBy(search.Asc("price"))) {
			require.NoError(t, err)
			n++
		}
		require.Equal(t, 3, n)
	})
}

func TestErrorsOfTheDoer(t *testing.T) {
	server := atomredistest.Run(t)
	var failure error
	calls := 0
	db := search.DoFunc(func(ctx context.Context, args ...any) (resp.Reply, error) {
		if calls++; failure != nil {
			return resp.Reply{}, failure
		}
		return server.Do(ctx, args...)
	})
	x, err := search.Open[item](t.Context(), db, "x", search.Options{})
	require.NoError(t, err)
	require.Equal(t, 1, calls)
	failure = resp.Error("SEARCH_TIMEOUT Timeout limit was reached")
	_, err = x.Count(t.Context(), search.All())
	require.ErrorIs(t, err, search.ErrTimeout)
	failure = errors.New("broken")
	_, err = search.Open[item](t.Context(), db, "x", search.Options{})
	require.ErrorIs(t, err, failure)
	_, err = x.Get(t.Context(), "1")
	require.ErrorIs(t, err, failure)
	require.ErrorIs(t, x.Put(t.Context(), "1", item{}), failure)
	for _, err := range x.Find(t.Context(), search.All()) {
		require.ErrorIs(t, err, failure)
	}
	for _, err := range search.Aggregate[map[string]string](t.Context(), x, search.All()) {
		require.ErrorIs(t, err, failure)
	}
	require.Equal(t, 7, calls)
}
