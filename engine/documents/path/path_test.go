package path

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/atomredis/atomredis/engine/documents"
)

func parse(t require.TestingT, text string) documents.Value {
	v, err := documents.Parse([]byte(text))
	require.NoError(t, err)
	return documents.New(v).Root()
}

// valuesOf returns the result of a path in a document, as a JSON array.
func valuesOf(t require.TestingT, root documents.Value, text string) string {
	p, err := Parse(text)
	require.NoError(t, err, text)
	vals, err := p.Values(root, nil)
	require.NoError(t, err, text)
	return string(documents.NewArray(vals...).AppendJSON(nil, documents.Layout{}))
}

const store = `{"store":{"book":[{"category":"reference","price":8.95,"title":"Sayings"},` +
	`{"category":"fiction","price":12.99,"title":"Sword"},{"category":"fiction","isbn":"0-553","price":8,"title":"Moby"}],` +
	`"bicycle":{"color":"red","price":19.95}},"max":10,"pat":"^S","a b":1,"ä":2}`

func TestPathsSelectAndCompute(t *testing.T) {
	for _, c := range []struct{ doc, path, want string }{
		{`[1,2,3]`, "$", `[[1,2,3]]`},
		{`[1,2,3]`, "$[0]", `[1]`},
		{`[1,2,3]`, "$[-1]", `[3]`},
		{`[1,2,3]`, "$[3]", `[]`},
		{`[1,2,3]`, "$[0,2,0]", `[1,3,1]`},
		{`[0,1,2,3,4,5]`, "$[1:4]", `[1,2,3]`},
		{`[0,1,2,3,4,5]`, "$[::2]", `[0,2,4]`},
		{`[0,1,2,3,4,5]`, "$[:-2]", `[0,1,2,3]`},
		{`[0,1,2,3,4,5]`, "$[-2:]", `[4,5]`},
		{`[0,1,2,3,4,5]`, "$[::-2]", `[5,3,1]`},
		{`[0,1,2,3,4,5]`, "$[4:1:-1]", `[4,3,2]`},
		{`[0,1,2,3,4,5]`, "$[-9:99:9223372036854775807]", `[0]`},
		{`[0,1,2,3,4,5]`, "$[::-9223372036854775808]", `[5]`},
		{`[0,1,2]`, "$[::0]", `[]`},
		{`[0,1,2,3,4,5]`, "$[0, 2:4 ,-1]", `[0,2,3,5]`},
		{`[0,1,2]`, "$[:]", `[0,1,2]`},
		{store, "$.store.book[*].title", `["Sayings","Sword","Moby"]`},
		{store, `$["store"]['book'][0]["title"]`, `["Sayings"]`},
		{store, `$['a b','ä']`, `[1,2]`},
		{store, "$.ä", `[2]`},
		{store, "$..price", `[8.95,12.99,8,19.95]`},
		{store, "$..book[0,1].price", `[8.95,12.99]`},
		{store, "$.store.*.color", `["red"]`},
		{store, "$..['color','isbn']", `["0-553","red"]`},
		{store, "$..book[?(@.isbn)].title", `["Moby"]`},
		{store, "$..book[?(@.price < $.max)].title", `["Sayings","Moby"]`},
		{store, "$..book[?@.title=~$.pat].price", `[8.95,12.99]`},
		{store, `$..book[?(@.title =~ "(?i)M.B")].title`, `["Moby"]`},
		{store, `$..book[?(@.title =~ '^\w{4}$')].title`, `["Moby"]`},
		{store, `$..book[?(@.category == "fiction" && (@.price > 10 || @.isbn))].title`, `["Sword","Moby"]`},
		{store, `$.store.book[?(@.price != 8)].title`, `["Sayings","Sword"]`},
		{store, "$.*[0]", `[]`},
		{store, "max", `[10]`},
		{store, ".max", `[10]`},
		{store, `["max"]`, `[10]`},
		{store, "store.book[1].title", `["Sword"]`},
		{store, "..price", `[8.95,12.99,8,19.95]`},
		{`{"$a":1,"a":2}`, "$a", `[1]`},
		{`[{"a":10},{"b":null},{"c":30}]`, "$[?(@.*==null)]", `[{"b":null}]`},
		{`{"a":true,"b":false}`, "$[?(@==false)]", `[false]`},
		{`[{"n":[1,2]},{"n":[9,8]}]`, "$[?@.n[0]==1].n[1]", `[2]`},
		{`[1,"1",1.0,2]`, `$[?@ == 1]`, `[1,1.0]`},
		{`[1,"1",null]`, `$[?@ != 1]`, `["1",null]`},
		{`[{"a":1},{}]`, `$[?@.a != 2]`, `[{"a":1}]`},
		{`["a","b","c"]`, `$[?@ >= "b"]`, `["b","c"]`},
		{`[[1],[2]]`, `$[?@ < [3]]`, `[]`},
		{`{"a":{"b":[1]},"c":[{"b":2}]}`, "$..b..*", `[1]`},
		{`[[1,[2]],3]`, "$..[*]", `[[1,[2]],3,1,[2],2]`},
		{`[[1,[2]],3]`, "$..*", `[[1,[2]],3,1,[2],2]`},
		// Results of Redis 8.10.
		{`[{"a":1,"b":1},{"b":2},{"a":1},{"c":3}]`, `$[?!@.a]`, `[{"b":2},{"c":3}]`},
		{`[{"a":1,"b":1},{"b":2},{"a":1},{"c":3}]`, `$[?!(@.a==1)]`, `[{"b":2},{"c":3}]`},
		{`[{"a":1,"b":1},{"b":2},{"a":1},{"c":3}]`, `$[?!@.a && @.b]`, `[{"b":2}]`},
		{`[{"a":false},{"b":2}]`, `$[?!!@.a]`, `[{"a":false}]`},
		{`{"arrs":[[1],[2],[1,2],[1,[2]]],"objs":[{"x":1},{"x":2},{"y":1}]}`, `$.arrs[?(@ == [1,[2]])]`, `[[1,[2]]]`},
		{`{"arrs":[[1],[2],[1,2],[1,[2]]],"objs":[{"x":1},{"x":2},{"y":1}]}`, `$.objs[?(@ == {"x":1})]`, `[{"x":1}]`},
		{`[{"a":2,"b":3},{"a":5,"b":2}]`, `$[?@.a + 1 == 3]`, `[{"a":2,"b":3}]`},
		{`[{"a":2,"b":3},{"a":5,"b":2}]`, `$[?@.a + @.b * 2 == 8]`, `[{"a":2,"b":3}]`},
		{`[{"a":2,"b":3},{"a":5,"b":2}]`, `$[?(@.a + @.b) * 2 == 10]`, `[{"a":2,"b":3}]`},
		{`{"a":[1,2,3,4],"allow":[2,3]}`, `$.a[?@ in [2,4]]`, `[2,4]`},
		{`{"a":[1,2,3,4],"allow":[2,3]}`, `$.a[?@ nin [2,4]]`, `[1,3]`},
		{`{"a":[1,2,3,4],"allow":[2,3]}`, `$.a[?@ in $.allow]`, `[2,3]`},
		{`{"a":[1,2],"allow":7}`, `$.a[?@ nin $.allow]`, `[1,2]`},
		{`{"a":[[1,2],[1,5],[]]}`, `$.a[?@ subsetof [1,2,3]]`, `[[1,2],[]]`},
		{`{"a":[[1,9],[8,9],[]]}`, `$.a[?@ anyof [1,2,3]]`, `[[1,9]]`},
		{`{"a":[[4,5],[1,9],[]]}`, `$.a[?@ noneof [1,2,3]]`, `[[4,5],[]]`},
		{`{"a":[[4,5],[1],[7,8,9]]}`, `$.a[?@ sizeof 2]`, `[[4,5]]`},
		{`{"a":[[4,5],[1],[7,8,9],"äö"]}`, `$.a[?@ size 2.9]`, `[[4,5],"äö"]`},
		{`{"a":[[],[1],"",[2,3],{},{"k":1}]}`, `$.a[?@ empty true]`, `[[],"",{}]`},
		{`{"a":[[],[1],"",[2,3],{},{"k":1}]}`, `$.a[?@ empty false]`, `[[1],[2,3],{"k":1}]`},
		{`{"obj":{"x":1,"y":2},"books":[{"t":"a"},{"t":"b"}]}`, `$.obj~`, `["x","y"]`},
		{`{"obj":{"x":1,"y":2},"books":[{"t":"a"},{"t":"b"}]}`, `$~`, `["obj","books"]`},
		{`{"obj":{"x":1,"y":2},"books":[{"t":"a"},{"t":"b"}]}`, `$.books~`, `[]`},
		{`{"obj":{"x":1,"y":2},"books":[{"t":"a"},{"t":"b"}]}`, `$.books[*]~`, `["t","t"]`},
		{`{"a":[[1,2,3],[1],"abcd","x"]}`, `$.a[?length(@) > 2]`, `[[1,2,3],"abcd"]`},
		{`[{"a":1,"b":2,"c":3},{"a":1}]`, `$[?count(@.*) == 3]`, `[{"a":1,"b":2,"c":3}]`},
		{`[{"a":1},{"a":2}]`, `$[?value(@.a) == 1]`, `[{"a":1}]`},
		{`{"obj":{"x":1,"y":2}}`, `$.obj.keys()`, `["x","y"]`},
		{`{"obj":{"x":1,"y":2}}`, `$.obj.keys().count()`, `[2]`},
		{`{"a":["abc","xabc","a","b"]}`, `$.a[?match(@, "a.*")]`, `["abc","a"]`},
		{`{"a":["abc","xyz","b"]}`, `$.a[?search(@, "b")]`, `["abc","b"]`},
		{`{"a":["abc"]}`, `$.a[?search(@, "(")]`, `[]`},
		{`{"a":[{"x":"a","y":"b"},{"x":"a","y":"c"}]}`, `$.a[?concat(@.x, @.y) == "ab"]`, `[{"x":"a","y":"b"}]`},
		{`{"a":[2.1,3.9,1.0]}`, `$.a[?ceiling(@) == 3]`, `[2.1]`},
		{`{"a":[2.1,2.9,3.5]}`, `$.a[?floor(@) == 2]`, `[2.1,2.9]`},
		{`{"a":[{"n":-5},{"n":5},{"n":-3}]}`, `$.a[?abs(@.n) == 5]`, `[{"n":-5},{"n":5}]`},
		{`{"a":[{"n":[1,2]},{"n":[9,8]}]}`, `$.a[?first(@.n) == 1]`, `[{"n":[1,2]}]`},
		{`{"a":[{"n":[1,2]},{"n":[9,8]}]}`, `$.a[?last(@.n) == 8]`, `[{"n":[9,8]}]`},
		{`{"a":[{"n":[1,2]},{"n":[9,8]}]}`, `$.a[?index(@.n, -1) == 2]`, `[{"n":[1,2]}]`},
		{`{"a":[{"n":[1,2]}]}`, `$.a[?index(@.n, 2)]`, `[]`},
		{`{"a":[{"n":[3,1,2]},{"n":[5,6]}]}`, `$.a[?sum(@.n) == 6]`, `[{"n":[3,1,2]}]`},
		{`{"a":[{"n":[3,1,2]},{"n":[5,6]}]}`, `$.a[?avg(@.n) == 2]`, `[{"n":[3,1,2]}]`},
		{`[2,4,4,4,5,5,7,9]`, `stddev($)`, `[2.0]`},
		{`[2,"a"]`, `max($)`, `[]`},
		{`[2,-3.5]`, `min($)`, `[-3.5]`},
		{`{"arr":[1,2,3]}`, `$.arr.append(9)`, `[1,2,3,9]`},
		{`{"arr":[1,2,3]}`, `$.arr.append($.x)`, `[]`},
		{`{"arr":[1,2,3]}`, `$.x.append(9)`, `[9]`},
		{`{"arr":[1,2,3]}`, `$.arr.append(9, 8)`, `[]`},
		{`{"arr":[1,2,3]}`, `$.arr.nosuch()`, `[]`},
		{`{"arr":[1,2,3]}`, `length ( $.arr )`, `[3]`},
		{`{"arr":[3,1,2]}`, `$.arr.min()`, `[1.0]`},
		{`{"arr":[3,1,2]}`, `$.arr.max()`, `[3.0]`},
		{`{"arr":[3,1,2]}`, `$.arr.sum()`, `[6.0]`},
		{`{"a":2.5}`, `$.a.ceiling()`, `[3]`},
		{`{"a":{"x":1}}`, `$.a.keys().length()`, `[1]`},
		{`{"a":{"x":1}}`, `$.a.keys().first()`, `["x"]`},
		{`{"a":{"x":1,"y":2}}`, `$.a~`, `["x","y"]`},
		{`{"a":{"x":1,"y":2}}`, `$.a.keys().count()`, `[2]`},
		{`{"a":{"x":1},"b":[0]}`, `$.b.append($.a.keys())`, `[0,["x"]]`},
		{`{"arr":[1],"b":[2,3]}`, `$.arr.append($.b[*])`, `[1,[2,3]]`},
		{`{"books":[{"t":"a","price":30},{"t":"b","price":5}]}`, `$.books[?(@.price >= 10)].append({"t":"X"})`,
			`[{"t":"a","price":30},{"t":"X"}]`},
		{`{"a":2,"b":4,"arr":[1,2,3]}`, `$.a + 1`, `[3]`},
		{`{"a":2,"b":4,"arr":[1,2,3]}`, `$.a * $.b`, `[8]`},
		{`{"a":2,"b":4,"arr":[1,2,3]}`, `($.a + $.b) / 2`, `[3.0]`},
		{`{"a":2,"b":4,"arr":[1,2,3]}`, `$.arr.length()`, `[3]`},
		{`{"a":2,"b":4,"arr":[1,2,3]}`, `length($.arr)`, `[3]`},
		{`{"a":2,"b":4,"arr":[1,2,3]}`, `$.a / 0`, `[]`},
		{`{"a":2,"b":4,"arr":[1,2,3]}`, `$.a % 0`, `[]`},
		{`{"a":2,"b":4,"arr":[1,2,3]}`, `-$.a`, `[-2]`},
		{`{"a":2,"b":4,"arr":[1,2,3]}`, `($.a)`, `[2]`},
		{`{"a":2,"b":4,"arr":[1,2,3]}`, `$.b - $.a - 1`, `[1]`},
		{`{"a+1":7}`, `$.a+1`, `[7]`},
		{`{"a":{"length":7}}`, `$.a.length`, `[7]`},
		{`{"a":9223372036854775807}`, `$.a + 1`, `[9.223372036854776e18]`},
		{`{"a":[1]}`, `length($.a, 1)`, `[]`},
		{`{"a~b":[1],"size":2}`, `$["a~b"]`, `[[1]]`},
		{`{"a~b":[1],"size":2}`, `$.size`, `[2]`},
	} {
		got := valuesOf(t, parse(t, c.doc), c.path)
		require.Equal(t, c.want, got, "%s of %s", c.path, c.doc)
	}
}

func TestPathsThatAreNone(t *testing.T) {
	for _, text := range []string{"$.", "$..", "$[", "$[]", "$['a]", "$[1", "$.a b", "$.a~b", "$.obj~.x", "$.obj~~",
		"$.obj.keys()~", "", " ", "$[?(]", "$[?(@.a", "$[?@.a ==]", "$[1.5]", "$[99999999999999999999]", "$[?@ == {]",
		"length(", "(", "a.", "\xff", "$[?@==[1,]]", "$x.y..", "$.a + ", "$[1:2:3:4]", "[?", "{}"} {
		_, err := Parse(text)
		require.Error(t, err, text)
	}
	deep := strings.Repeat("(", 100_000)
	_, err := Parse(deep + "$")
	require.ErrorContains(t, err, "nesting too deep")
	_, err = Parse("$" + strings.Repeat(".a", 100_000))
	require.Error(t, err)
	_, err = Parse("$[?" + strings.Repeat("!", 100_000) + "@]")
	require.NoError(t, err)
	_, err = Parse("$[?@" + strings.Repeat(" + 1", 100_000) + "]")
	require.Error(t, err)
	_, err = Parse(strings.Repeat("- ", 100_000) + "$")
	require.Error(t, err)
}

func TestPlacesAreWhereTheValuesAre(t *testing.T) {
	d := documents.New(parse(t, store))
	for _, text := range []string{"$", "$..*", "$..book[?(@.price<10)]", "$.store.book[::-1].price", `$["a b"]`} {
		p, err := Parse(text)
		require.NoError(t, err)
		matches, err := p.Matches(d.Root(), nil)
		require.NoError(t, err)
		require.NotEmpty(t, matches)
		for _, m := range matches {
			v, ok := d.Find(m.Place)
			require.True(t, ok)
			require.Equal(t, m.Value, v)
			again, err := Parse(string(AppendPlace(nil, m.Place)))
			require.NoError(t, err)
			require.True(t, again.Static())
			v, ok, err = again.First(d.Root(), nil)
			require.NoError(t, err)
			require.True(t, ok)
			require.Equal(t, m.Value, v)
		}
	}
}

func TestPathsThatCostTooMuchAreRefused(t *testing.T) {
	deep := parse(t, strings.Repeat("[", 120)+strings.Repeat("]", 120))
	wide := parse(t, "["+strings.Repeat("[1,2,3,4,5,6,7,8,9],", 3000)+"1]")
	for _, c := range []struct {
		root documents.Value
		path string
	}{
		{deep, "$" + strings.Repeat("..*", 20)},
		{wide, "$..[?count($..[?count(@..*) > 3]) > count($..[?@ in $..*])]"},
		{wide, "$[?$[?@ != $[?@ == 1]] == 7]"},
	} {
		p, err := Parse(c.path)
		require.NoError(t, err)
		_, err = p.Values(c.root, nil)
		require.ErrorContains(t, err, "too many", c.path)
	}
	p, err := Parse("$" + strings.Repeat("..*", 20))
	require.NoError(t, err)
	_, err = p.Matches(deep, nil)
	require.Error(t, err)
}

func FuzzParse(f *testing.F) {
	for _, text := range []string{"$", "$.a[0]", "$..[?(@.a==1 && !@.b)]", "length($.a) + 1", "a.b", `$["\u00e4",'b']`,
		"$[1:2:-3,*]", "$.x.keys().count()", `$[?@ =~ "a"]`, `$[?@ in [1,{"a":2}]]`, "$a", "$.a~"} {
		f.Add(text)
	}
	root := parse(f, store)
	f.Fuzz(func(t *testing.T, text string) {
		p, err := Parse(text)
		if err != nil {
			return
		}
		vals, err := p.Values(root, nil)
		if p.IsProjection() || err != nil {
			return
		}
		matches, err := p.Matches(root, nil)
		require.NoError(t, err)
		require.Len(t, matches, len(vals))
	})
}

// FuzzValues evaluates paths in documents.
func FuzzValues(f *testing.F) {
	f.Add(store, "$..[?(@.price)]")
	f.Add(`[[1,[2]],{"a":[]}]`, "$..*..[::-1]")
	f.Add(`{"a":[3,1]}`, "sum($.a) / $.a.length()")
	f.Fuzz(func(t *testing.T, doc, text string) {
		v, err := documents.Parse([]byte(doc))
		if err != nil || len(doc) > 1000 {
			return
		}
		p, err := Parse(text)
		if err != nil {
			return
		}
		vals, err := p.Values(documents.New(v).Root(), nil)
		first, ok, firstErr := p.First(v, nil)
		if err == nil && firstErr == nil && len(vals) > 0 {
			require.True(t, ok)
			require.True(t, documents.Equal(first, vals[0]))
		}
	})
}
