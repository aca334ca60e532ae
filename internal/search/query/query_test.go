package query

import (
	"math"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/atomredis/atomredis/internal/search/text"
)

// indexed has a field of each kind.
func indexed() *fields {
	return schemaOf("t TEXT u TEXT m TEXT INDEXMISSING ph TEXT PHONETIC dm:en ns TEXT NOSTEM e TEXT INDEXEMPTY " +
		"n NUMERIC g TAG l GEO s GEOSHAPE v VECTOR FLAT 0 a-b TEXT ge TAG INDEXEMPTY f TEXT")
}

// flat is Explain on one line.
func flat(s string) string {
	s = strings.Join(strings.Fields(s), " ")
	return strings.NewReplacer("{ ", "{", " }", "}").Replace(s)
}

// asked explains a query without expansion, on one line. Options follow the query after a slash.
func asked(f *fields, query string, dialect int, params map[string]string) string {
	n, err := Parse(query, Options{Dialect: dialect, Schema: f, Stopwords: f.stopwords, Params: params, Slop: -1})
	if err != nil {
		return "-" + err.Error()
	}
	return flat(Explain(n))
}

// nearest is the end of EXPLAIN's text for [KNN 1 @v $p].
const nearest = "K=1 nearest vectors to `$p` in vector index associated with field @v, yields distance as `__v_score`}"

// Examples of the syntax in dialect 2.
func TestSyntax(t *testing.T) {
	f := indexed()
	for query, want := range map[string]string{
		"foo|":                   "-SEARCH_SYNTAX Syntax error at offset 3 near foo",
		"|foo":                   "-SEARCH_SYNTAX Syntax error at offset 0 near ",
		"foo||bar":               "-SEARCH_SYNTAX Syntax error at offset 4 near foo",
		"(":                      "-SEARCH_SYNTAX Syntax error at offset 0 near ",
		`"`:                      "-SEARCH_SYNTAX Syntax error at offset 0 near ",
		"~":                      "-SEARCH_SYNTAX Syntax error at offset 0 near ",
		"-":                      "-SEARCH_SYNTAX Syntax error at offset 0 near ",
		"(hello":                 "-SEARCH_SYNTAX Syntax error at offset 1 near hello",
		"a:b":                    "-SEARCH_SYNTAX Syntax error at offset 1 near a",
		"@u":                     "-SEARCH_SYNTAX Syntax error at offset 0 near u",
		"@u:":                    "-SEARCH_SYNTAX Syntax error at offset 2 near u",
		"%foo":                   "-SEARCH_SYNTAX Syntax error at offset 1 near foo",
		"-*":                     "-SEARCH_SYNTAX Syntax error at offset 1 near ",
		"foo *":                  "-SEARCH_SYNTAX Syntax error at offset 4 near foo",
		"@u:*":                   "-SEARCH_SYNTAX Syntax error at offset 3 near u",
		"@":                      "<empty>",
		"$":                      "<empty>",
		"":                       "<empty>",
		" \t\n!":                 "<empty>",
		"the":                    "<empty>",
		"-the":                   "<empty>",
		"@t:the":                 "<empty>",
		"(the)=>{$weight:-1}":    "<empty>",
		"@n:[abc 1]":             "-SEARCH_SYNTAX Syntax error at offset 9 near 1",
		"@g:{}":                  "-SEARCH_SYNTAX Syntax error at offset 4 near g",
		"@g:{a-b}":               "-SEARCH_SYNTAX Syntax error at offset 5 near a",
		`@g:{"a-b"}`:             "TAG:@g {a-b}",
		`@g:{'c d'}`:             "TAG:@g {c d}",
		`@g:{"x|y"}`:             "TAG:@g {x|y}",
		`@g:{x\|y}`:              `TAG:@g {x\|y}`,
		"@g:{$p}":                "TAG:@g {Va|l ue}",
		"@g:{$p|X Y|as|the}":     "TAG:@g {Va|l ue INTERSECT {x y} as the}",
		"@g:{*-b}":               "-SEARCH_SYNTAX Syntax error at offset 4 near g",
		"@g:{''}":                "-" + emptyText.Error(),
		"@ge:{''}":               `TAG:@ge {""}`,
		"@t:''":                  "-" + emptyText.Error(),
		"@e:''":                  `@e:""`,
		"''":                     `""`,
		"@n:[1,2]":               "NUMERIC {1.000000 <= @n <= 2.000000}",
		"@n:[1]":                 "NUMERIC {1.000000 <= @n <= 1.000000}",
		"@n:[-inf,(2]":           "NUMERIC {-inf <= @n < 2.000000}",
		"@n:[(-$five +INF]":      "NUMERIC {-5.000000 < @n <= inf}",
		"@n:[-$five]":            "NUMERIC {-5.000000 <= @n <= -5.000000}",
		"@n>=-$five":             "NUMERIC {-5.000000 <= @n <= inf}",
		"@n  !=  .5":             "NOT{NUMERIC {0.500000 <= @n <= 0.500000}}",
		"@n<=1e3":                "NUMERIC {-inf <= @n <= 1000.000000}",
		"@n:[3 1]":               "-SEARCH_SYNTAX Invalid numeric range (min > max): @n:[3.000000 1.000000]",
		"@n:[$p 2]":              "-SEARCH_PARSE_ARGS Bad lower range: Va|l ue",
		"@n:[1 $p]":              "-SEARCH_PARSE_ARGS Bad upper range: Va|l ue",
		"@n:[$empty 2]":          "-SEARCH_NUMERIC_VALUE_INVALID Invalid numeric value () for parameter `empty`",
		"@n>$p":                  "-SEARCH_NUMERIC_VALUE_INVALID Invalid numeric value (Va|l ue) for parameter `p`",
		"@n>$none":               "-SEARCH_PARAM_NOT_FOUND Parameter not found `none`",
		"(*)":                    "<WILDCARD>",
		"((*))":                  "<WILDCARD>",
		"(* foo)":                "-SEARCH_SYNTAX Syntax error at offset 3 near foo",
		"(*) foo":                "-SEARCH_SYNTAX Syntax error at offset 4 near foo",
		"foo (*)":                "-SEARCH_SYNTAX Syntax error at offset 5 near foo",
		"*=>{$weight:2}":         "-SEARCH_SYNTAX Syntax error at offset 3 near >{",
		`"fo"*`:                  "PREFIX{fo*}",
		`*"f o"`:                 "SUFFIX{*f o}",
		`*'f o'*`:                "INFIX{*f o*}",
		"*$five*":                "INFIX{*5*}",
		`foo\`:                   "foo",
		`C\+\+`:                  "c++",
		"quick AS brown":         "INTERSECT {quick brown}",
		"foo=>{$weight:-1}":      "-SEARCH_SYNTAX Invalid value (-1) for `weight`",
		"foo=>{$weight:''}":      "-SEARCH_SYNTAX Invalid value () for `weight`",
		"foo=>{$slop:1.5}":       "-SEARCH_SYNTAX Invalid value (1.5) for `slop`",
		"foo=>{$inorder:maybe}":  "-SEARCH_SYNTAX Invalid value (maybe) for `inorder`",
		"foo=>{$phonetic:2}":     "-SEARCH_SYNTAX Invalid value (2) for `phonetic`",
		"foo=>{$bar:1}":          "-SEARCH_OPTION_INVALID Invalid attribute bar",
		"foo=>{$epsilon:1}":      "-SEARCH_OPTION_INVALID Invalid attribute epsilon",
		"foo=>{$weight:$none}":   "-SEARCH_PARAM_NOT_FOUND Parameter not found `none`",
		"foo=>{;$WEIGHT:2;;}":    "foo => {$weight: 2;}",
		"(a|b c)=>{$slop:-1}":    "INTERSECT {b c}", // a is a stop-word
		"@foo:x":                 "-SEARCH_SYNTAX Unknown field at offset 0 near foo",
		"@t|foo:x":               "-SEARCH_SYNTAX Unknown field at offset 3 near foo",
		"@n|t:x":                 "-SEARCH_SYNTAX Expected a TEXT field at offset 0 near n",
		"@t|n:x":                 "-SEARCH_SYNTAX Expected a TEXT field at offset 3 near n",
		`@a\-b:x`:                "@a-b:x",
		"@f|u|t:x":               "@t|u|f:x",
		"@n:bar":                 "-SEARCH_SYNTAX Expected a TEXT field at offset 0 near n",
		"@t:{x}":                 "-SEARCH_SYNTAX Expected a TAG field at offset 0 near t",
		"@t>1":                   "-SEARCH_SYNTAX Expected a NUMERIC field at offset 0 near t",
		"ismissing(@m)":          "ISMISSING{m}",
		"ismissing(@t)":          "-SEARCH_SYNTAX 'ismissing' requires defining the field with 'INDEXMISSING' at offset 10 near t",
		"@t:ismissing":           "@t:ismissing",
		"@l:[1 2 3 KM]":          "GEO l:{1.000000,2.000000 --> 3.000000 km}",
		"@l:[1 2 3 5]":           "-SEARCH_SYNTAX Invalid GeoFilter unit",
		"@n:[1 2 3 5]":           "-SEARCH_SYNTAX Invalid GeoFilter unit",
		"@n:[1 2 3 foo]":         "-SEARCH_SYNTAX Expected a GEO field at offset 0 near n",
		"@l:[181 2 3 m]":         "-SEARCH_SYNTAX Invalid GeoFilter lat/lon",
		"@l:[1 2 0 m]":           "-SEARCH_SYNTAX Invalid GeoFilter radius",
		"@l:[1 2 $p m]":          "-SEARCH_NUMERIC_VALUE_INVALID Invalid numeric value (Va|l ue) for parameter `p`",
		"@l:[1 2 3 $unit]":       "GEO l:{1.000000,2.000000 --> 3.000000 mi}",
		"@s:[within $p]":         "GEOSHAPE{2 Va|l ue}",
		"@s:[near $p]":           "-SEARCH_SYNTAX Syntax error: Expecting a geoshape predicate at offset 9",
		"@v:[VECTOR_RANGE 2 $p]": "VECTOR {Vectors that are within 2 distance radius from `$p` in vector index associated with field @v}",
		"@v:[FOO 2 $p]":          "-SEARCH_SYNTAX Syntax error: expecting vector similarity range command at offset 4 near FOO",
		"@v:[VECTOR_RANGE $five $p]=>{$yield_distance_as:d; $epsilon:0.5}": "VECTOR {Vectors that are within 5 distance radius from `$p` " +
			"in vector index associated with field @v, epsilon = 0.5, yields distance as `d`}",
		"*=>[KNN 3 @v $p]": "VECTOR {K=3 nearest vectors to `$p` in vector index associated with field @v, yields distance as `__v_score`}",
		"(@t:x @n>5)=>[knn $five @v $p EF_RUNTIME $five AS d]=>{$HYBRID_POLICY: BATCHES}": "VECTOR {INTERSECT {@t:x " +
			"NUMERIC {5.000000 < @n <= inf}}} => {K=5 nearest vectors to `$p` in vector index associated with field @v, " +
			"EF_RUNTIME = 5, HYBRID_POLICY = BATCHES, yields distance as `d`}",
		"x=>[KNN 3 @v $p AS d]=>{$yield_distance_as:e}": "-SEARCH_FIELD_DUP Distance field was specified twice for vector query: d and e",
		"x=>[KNN 3 @v $p]=>{$yield_distance_as:e}": "VECTOR {x} => {K=3 nearest vectors to `$p` in vector index associated with field @v, " +
			"yields distance as `e`}",
		"x y=>[KNN 3 @v $p]":       "-SEARCH_SYNTAX Syntax error at offset 5 near >[",
		"*=>[FOO 3 @v $p]":         "-SEARCH_SYNTAX Syntax error: Expecting Vector Similarity command at offset 4 near FOO",
		"*=>[KNN 3 @t $p]":         "-SEARCH_SYNTAX Expected a VECTOR field at offset 10 near t",
		"*=>[KNN $p @v $p]":        "-SEARCH_NUMERIC_VALUE_INVALID Invalid numeric value (Va|l ue) for parameter `p`",
		"the=>[KNN 1 @v $p]":       "VECTOR {" + nearest,
		"-information":             "NOT{information}", // Redis takes -inf for a number there
		"-5":                       "-5",
		"b|c|@n>5":                 "UNION {b c NUMERIC {5.000000 < @n <= inf}}", // a syntax error in Redis
		"--b":                      "b",
		"---b":                     "NOT{b}",
		"$word":                    "running fast",
		"%$five%":                  "FUZZY{5}",
		"%%the%%":                  "FUZZY{the}",
		"w'$five'":                 "WILDCARD{5}",
		`w'a\'b'`:                  `WILDCARD{a'b}`,
		`"it\'s" "say \"hi\" now"`: `INTERSECT {EXACT {it's} EXACT {say "hi" now}}`,
		`"cost $5, the_price!"`:    "EXACT {cost $5 the_price}",
		`"!"`:                      "EXACT {}",
	} {
		params := map[string]string{"p": "Va|l ue", "five": "5", "empty": "", "unit": "MI", "word": "Running fast"}
		require.Equal(t, want, asked(f, query, 2, params), "%q", query)
	}
}

// Queries that dialect 1 reads differently from the later ones.
func TestDialects(t *testing.T) {
	f := indexed()
	for _, row := range []struct{ query, one, two string }{
		{"@t:hello world", "@t:INTERSECT {@t:hello @t:world}", "INTERSECT {@t:hello world}"},
		{"@t:(b c)|d", "@t:UNION {@t:INTERSECT {@t:b @t:c} @t:d}", "UNION {@t:INTERSECT {@t:b @t:c} d}"},
		{"-hello world", "NOT{INTERSECT {hello world}}", "INTERSECT {NOT{hello} world}"},
		{"x -(b c) | d", "INTERSECT {x NOT{UNION {INTERSECT {b c} d}}}", "UNION {INTERSECT {x NOT{INTERSECT {b c}}} d}"},
		{"hello world|foo", "UNION {INTERSECT {hello world} foo}", "UNION {INTERSECT {hello world} foo}"},
		{"@foo:x", "@NULL:x", "-SEARCH_SYNTAX Unknown field at offset 0 near foo"},
		{"@n:bar", "@NULL:bar", "-SEARCH_SYNTAX Expected a TEXT field at offset 0 near n"},
		{"@foo:{x}", "<empty>", "-SEARCH_SYNTAX Unknown field at offset 0 near foo"},
		{"@foo:[1 2]", "<empty>", "-SEARCH_SYNTAX Unknown field at offset 0 near foo"},
		{"@t|foo|u:x", "@t|u:x", "-SEARCH_SYNTAX Unknown field at offset 3 near foo"},
		{"@n:[1]", "-SEARCH_SYNTAX Syntax error at offset 5 near 1", "NUMERIC {1.000000 <= @n <= 1.000000}"},
		{"@n>=1", "-SEARCH_SYNTAX Syntax error at offset 4 near 1", "NUMERIC {1.000000 <= @n <= inf}"},
		{"@n==1", "-SEARCH_SYNTAX Syntax error at offset 4 near 1", "NUMERIC {1.000000 <= @n <= 1.000000}"},
		{"@n!=1", "-SEARCH_SYNTAX Syntax error at offset 4 near 1", "NOT{NUMERIC {1.000000 <= @n <= 1.000000}}"},
		{"@n:[(1 -(2]", "-SEARCH_SYNTAX Invalid numeric range (min > max): @n:[1.000000 -2.000000]", "-SEARCH_SYNTAX Syntax error at offset 8 near 1"},
		{`"hello the world"`, "-SEARCH_SYNTAX Syntax error at offset 7 near the", "EXACT {hello the world}"},
		{`"hello world the"`, "EXACT {hello world}", "EXACT {hello world the}"},
		{`"hello"`, "hello", "EXACT {hello}"},
		{"$p", "-SEARCH_SYNTAX Syntax error at offset 0 near p", "v"},
		{"'b c'", "INTERSECT {b c}", "EXACT {b c}"},
		{"w'b*'", "INTERSECT {w PREFIX{b*}}", "WILDCARD{b*}"},
		{"*=>[KNN 1 @v $p]", "-SEARCH_SYNTAX Syntax error at offset 1 near >[", "VECTOR {" + nearest},
		{"ismissing(@m)", "-SEARCH_SYNTAX Syntax error at offset 12 near m", "ISMISSING{m}"},
		{"@g:{the}", "TAG:@g {the}", "TAG:@g {the}"},
		{"@g:{b the}", "-SEARCH_SYNTAX Syntax error at offset 9 near the", "TAG:@g {INTERSECT {b the}}"},
		{"@g:{b c the|d}", "TAG:@g {INTERSECT {b c} d}", "TAG:@g {INTERSECT {b c the} d}"},
		{"@g:{b", "TAG:@g {b}", "-SEARCH_SYNTAX Syntax error at offset 4 near b"},
		{"@l:[1 2 3 foo]", "-SEARCH_SYNTAX Invalid GeoFilter unit", "-SEARCH_SYNTAX Invalid GeoFilter unit"},
		{"b* *c", "INTERSECT {PREFIX{b*} SUFFIX{*c}}", "INTERSECT {PREFIX{b*} SUFFIX{*c}}"},
		{"-b* *c", "NOT{INTERSECT {PREFIX{b*} SUFFIX{*c}}}", "NOT{INTERSECT {PREFIX{b*} SUFFIX{*c}}}"},
		{"--b", "NOT{NOT{b}}", "b"},
		{"(*)", "-SEARCH_SYNTAX Syntax error at offset 1 near ", "<WILDCARD>"},
		{"%%%b%%% 5", "INTERSECT {FUZZY{b} 5}", "INTERSECT {FUZZY{b} 5}"},
		{"b (c d)", "INTERSECT {b INTERSECT {c d}}", "INTERSECT {c d b}"},
	} {
		params := map[string]string{"p": "v"}
		require.Equal(t, row.one, asked(f, row.query, 1, params), "%q in dialect 1", row.query)
		for dialect := 2; dialect <= 4; dialect++ {
			require.Equal(t, row.two, asked(f, row.query, dialect, params), "%q in dialect %d", row.query, dialect)
		}
	}
}

// The file has the results of Redis's own parser for random queries.
func TestGrammar(t *testing.T) {
	content, err := os.ReadFile("testdata/grammar.golden")
	require.NoError(t, err)
	f := schemaOf("t TEXT INDEXEMPTY u TEXT INDEXEMPTY m TEXT INDEXEMPTY INDEXMISSING n NUMERIC " +
		"g TAG INDEXEMPTY l GEO s GEOSHAPE v VECTOR FLAT 0")
	n := 0
	for entry := range strings.SplitSeq(strings.TrimSuffix(string(content), "\n"), "\n\n") {
		head, want, _ := strings.Cut(entry, "\n")
		query, err := strconv.Unquote(head[2:])
		require.NoError(t, err, head)
		o := Options{Dialect: int(head[0] - '0'), Schema: f, Stopwords: text.NewStopwords("a", "the"), Slop: -1}
		o.Params = map[string]string{"p": "5", "q": "5"}
		root, err := Parse(query, o)
		got := ""
		if err != nil {
			got = "-" + err.(*Error).Text // the file has no codes
		} else {
			got = strings.TrimSuffix(Explain(root), "\n")
		}
		require.Equal(t, strings.TrimSuffix(want, "\n"), got, head)
		n++
	}
	require.Equal(t, 353, n)
}

func TestExpansion(t *testing.T) {
	f := indexed()
	require.Empty(t, f.synonyms.Update("g1", "running", "going"))
	for _, row := range []struct{ query, words, want string }{
		{"running", "", "UNION {running ~g1(expanded) <RNNK(expanded) +run(expanded) run(expanded)}"},
		{"running", "EXPANDER sbstem", "UNION {running +run(expanded) run(expanded)}"},
		{"running", "EXPANDER SYNONYM", "UNION {running ~g1(expanded)}"},
		{"running", "EXPANDER PHONETIC", "UNION {running <RNNK(expanded)}"},
		{"running", "EXPANDER none", "running"},
		{"running", "VERBATIM", "running"},
		{"running", "LANGUAGE yiddish", "UNION {running ~g1(expanded) <RNNK(expanded)}"},
		{"@t:running", "", "@t:UNION {@t:running @t:~g1(expanded) @t:+run(expanded) @t:run(expanded)}"},
		{"@ph:jon", "", "@ph:UNION {@ph:jon @ph:<JN(expanded) @ph:+jon(expanded)}"},
		{"@ph:(jon)=>{$phonetic:false}", "", "@ph:UNION {@ph:jon @ph:+jon(expanded)}"},
		{"@t:(jon)=>{$phonetic:true}", "", "-SEARCH_QUERY_BAD field does not support phonetics"},
		{"@ns:running", "", "@ns:running"},
		{"@t|ns:runs", "", "@t|ns:UNION {@t|ns:runs @t:+run(expanded) @t:run(expanded)}"},
		{`"runs fast"`, "", "EXACT {runs fast}"},
		{"@g:{runs}", "", "TAG:@g {runs}"},
		{"runs* %runs% *runs", "", "INTERSECT {FUZZY{runs} SUFFIX{*runs} PREFIX{runs*}}"},
		{"5", "", "5"},
		{"$p", "PARAMS 2 p 5", "5"},
		{"@t:5", "DIALECT 1", "@t:UNION {@t:5 @t:+5(expanded)}"},
		{"-@t:runs ~@t:runs|@t:runs", "", "UNION {INTERSECT {NOT{@t:UNION {@t:runs @t:+run(expanded) @t:run(expanded)}} " +
			"OPTIONAL{@t:UNION {@t:runs @t:+run(expanded) @t:run(expanded)}}} @t:UNION {@t:runs @t:+run(expanded) @t:run(expanded)}}"},
		{"@t:runs=>[KNN 1 @v $p]", "PARAMS 2 p x", "VECTOR {@t:UNION {@t:runs @t:+run(expanded) @t:run(expanded)}} => {" + nearest},
	} {
		got, err := f.explain(row.query, append([]string{"DIALECT", "2"}, strings.Fields(row.words)...)...)
		if err != nil {
			got = "-" + err.Error()
		}
		require.Equal(t, row.want, flat(got), "%s %s", row.query, row.words)
	}
}

// The index has a word per Chinese character, so a word of a query is a phrase.
func TestChinese(t *testing.T) {
	f := indexed()
	for query, want := range map[string]string{
		"数据库": "EXACT {数 据 库}", "Redis数": "EXACT {redis 数}", "数": "数", `"redis 数据 b"`: "EXACT {redis 数 据 b}",
	} {
		for dialect := 1; dialect <= 2; dialect++ {
			n, err := Parse(query, Options{Dialect: dialect, Schema: f, Language: text.Chinese, Slop: -1})
			require.NoError(t, err)
			require.Equal(t, want, flat(Explain(n)), query)
		}
	}
	require.Equal(t, "数据库", asked(f, "数据库", 2, nil))
}

// Fields narrow the fields inside, and an empty set of them finds nothing.
func TestFieldsNarrow(t *testing.T) {
	f := indexed()
	require.Equal(t, "@t:INTERSECT {@t:x @NULL:y}", asked(f, "@t:((x) (@u:y))", 1, nil))
	n, err := Parse("x @t:y", Options{Dialect: 2, Schema: f, Slop: -1})
	require.NoError(t, err)
	Narrow(n, OnlyIn(f.byName["u"], f.byName["f"]))
	require.Equal(t, "@u|f:INTERSECT {@u|f:x @NULL:y}", flat(Explain(n)))
	require.Equal(t, `@u:EXACT {@u:x @u:y}`, asked(f, `@u|t:(@u:"x y")`, 1, nil))
}

func TestFilters(t *testing.T) {
	f := indexed()
	number := NewNumeric(f.byName["n"], 1, math.Inf(1), true, false)
	circle := NewGeo(f.byName["l"], 1, 2, 3, "km")
	for query, want := range map[string]string{
		"x":                "INTERSECT {GEO l:{1.000000,2.000000 --> 3.000000 km} NUMERIC {1.000000 < @n <= inf} x}",
		"x y":              "INTERSECT {GEO l:{1.000000,2.000000 --> 3.000000 km} NUMERIC {1.000000 < @n <= inf} x y}",
		"*=>[KNN 1 @v $p]": "VECTOR {INTERSECT {GEO l:{1.000000,2.000000 --> 3.000000 km} NUMERIC {1.000000 < @n <= inf}}} => {" + nearest,
	} {
		n, err := Parse(query, Options{Dialect: 2, Schema: f, Params: map[string]string{"p": ""}, Slop: -1})
		require.NoError(t, err)
		require.Equal(t, want, flat(Explain(Filter(Filter(n, number), circle))), query)
	}
	require.Equal(t, "IDS {1,2,}", flat(Explain(NewIDs(1, 2))))
	require.Equal(t, "<WILDCARD>", flat(Explain(NewAll())))
}

// Text from places without order refuses SLOP and INORDER.
func TestOrder(t *testing.T) {
	f := indexed()
	f.byName["u"].Unordered = true
	const refused = "SEARCH_ORDER_OPTION_BAD slop/inorder are not supported for field with undefined ordering `u`"
	for query, want := range map[string]string{"x y": refused, "@t:(x y)": "", "@u:(x y)": refused, "x": "", `@u:"x y"`: refused} {
		for _, o := range []Options{{Slop: 1}, {Slop: -1, InOrder: true}} {
			o.Dialect, o.Schema = 2, f
			_, err := Parse(query, o)
			if want == "" {
				require.NoError(t, err, query)
			} else {
				require.EqualError(t, err, want, query)
			}
		}
	}
	require.Equal(t, "-"+refused, asked(f, "(x y)=>{$slop:1}", 2, nil))
	require.Equal(t, "-"+refused, asked(f, "(x y)=>{$inorder:false}", 2, nil))
	require.Equal(t, "INTERSECT {x y}", asked(f, "x y", 2, nil))
}

func TestShortNumbers(t *testing.T) {
	for f, want := range map[float64]string{0: "0", 2: "2", 0.5: "0.5", -1.25: "-1.25", 1e6: "1e+06", 123456: "123456", 1234567: "1.23457e+06",
		0.0001: "0.0001", 0.00001: "1e-05", 999999.5: "1e+06", 1.0 / 3: "0.333333", math.Inf(1): "inf", 100: "100"} {
		require.Equal(t, want, short(f))
	}
}

// Deep nesting of any kind ends in an error, not in a growing stack.
func TestDepthIsLimited(t *testing.T) {
	f := indexed()
	const tooDeep = "-SEARCH_SYNTAX Parser stack overflow. Try moving nested parentheses more to the left"
	for _, open := range []string{"(", "-", "~", "-(", "x (", "x|(", "@t:(", "5 ", "@n>1|x|", "(x "} {
		for dialect := 1; dialect <= 2; dialect++ {
			got := asked(f, strings.Repeat(open, 100_000)+"x", dialect, nil)
			if dialect == 1 && strings.HasPrefix(open, "5") {
				require.True(t, strings.HasPrefix(got, "INTERSECT {"), open)
			} else if !strings.HasPrefix(got, "-SEARCH_SYNTAX Syntax error at offset") {
				require.Equal(t, tooDeep, got, "%s in dialect %d", open, dialect)
			}
		}
	}
	deep := func(n int) string { return strings.Repeat("(", n) + "x" + strings.Repeat(")", n) }
	require.Equal(t, "x", asked(f, deep(254), 2, nil))
	require.Equal(t, tooDeep, asked(f, deep(255), 2, nil))
}

// hostile are queries of some length that are expensive for a careless parser.
func hostile(n int) map[string]string {
	r := strings.Repeat
	return map[string]string{
		"parens":               r("(", n),
		"words":                r("x ", n/2),
		"or":                   r("x|", n/2) + "x",
		"fields":               r("@t:x ", n/5),
		"quotes":               r(`"`, n),
		"escaped quotes":       r(`\"`, n/2),
		"quoted escapes":       `"` + r(`\"`, n/2),
		"single quotes":        r("'", n) + "x",
		"wildcards":            r("w'", n/2),
		"open wildcards":       r(`w'\`, n/3),
		"stars":                r("*", n),
		"starred quotes":       r(`*"`, n/2),
		"backslashes":          r(`\`, n),
		"blanks":               r(" ", n),
		"digits":               r("1", n),
		"minus":                r("-1", n/2),
		"dots":                 r(".", n),
		"exponents":            r("1e", n/2),
		"signs":                "5" + r("e+", n/2),
		"tags":                 "@g:{" + r("x|", n/2) + "x}",
		"words in tags":        "@g:{" + r("x ", n/2) + "}",
		"attributes":           "x=>{" + r("$weight:1;", n/10) + "}",
		"arrows":               "x" + r("=>{}", n/4),
		"exact":                `"` + r("x ", n/2) + `"`,
		"comparisons":          r("@n>1 ", n/5),
		"spaces behind fields": r("@n  ", n/4),
		"field list":           "@t" + r("|t", n/2) + ":x",
		"ismissing":            "x|y|" + r("ismissing ", n/10),
		"unions":               r("@n>1|", n/5) + "x",
		"infinities":           r("-inf", n/4),
		"params":               r("$p ", n/3),
		"nested fields":        r("@t:(", 100) + r("x ", n/2) + r(")", 100),
		"semicolons":           "x=>{" + r(";", n) + "}",
		"field and blanks":     "@n" + r(" ", n),
		"missing and blanks":   r("x|y|ismissing"+r(" ", 50), n/60),
	}
}

// Time is linear in the length of a query: with quadratic time each of these would take minutes.
func TestHostileQueriesEnd(t *testing.T) {
	f := indexed()
	for name, query := range hostile(1 << 17) {
		for dialect := 1; dialect <= 2; dialect++ {
			start := time.Now()
			_, _ = f.explain(query, "DIALECT", strconv.Itoa(dialect), "PARAMS", "2", "p", "x")
			require.Less(t, time.Since(start), 10*time.Second, "%s in dialect %d", name, dialect)
		}
	}
}

// No query may crash the server. A valid query can be explained and expanded.
func FuzzParse(f *testing.F) {
	schema := indexed()
	for _, query := range []string{"hello -@t:(world|5) ~x=>{$weight:2}", `"a b"* w'x?' %%y%% *z*`, "@n:[(1 $p] @g:{a b|c*} @l:[1 2 3 km]",
		"(*)=>[KNN 3 @v $p AS d]=>{$ef_runtime:5}", "b|c|ismissing(@m) | @v:[VECTOR_RANGE 2 $p]", "@n != -$p @s:[WITHIN $p]", `\x"\"'$`} {
		for dialect := range uint8(4) {
			f.Add(query, dialect)
		}
	}
	f.Fuzz(func(t *testing.T, query string, dialect uint8) {
		o := Options{Dialect: 1 + int(dialect%4), Schema: schema, Stopwords: text.English, Params: map[string]string{"p": "5"}, Slop: -1}
		n, err := Parse(query, o)
		if err != nil {
			var failure *Error
			require.ErrorAs(t, err, &failure)
			require.NotEmpty(t, failure.Code)
			return
		}
		require.NotEmpty(t, Explain(n))
		e := Expansion{Schema: schema, Stemmer: text.NewStemmer(0)}
		if n, err = e.Expand(n); err == nil {
			require.True(t, strings.HasSuffix(Explain(n), "\n"))
		}
	})
}

func BenchmarkParse(b *testing.B) {
	f := indexed()
	for _, query := range []string{"hello", "@t:(hello world) @n:[1 10] @g:{red|blue}", "*=>[KNN 10 @v $p AS d]"} {
		b.Run(query, func(b *testing.B) {
			b.ReportAllocs()
			o := Options{Dialect: 2, Schema: f, Stopwords: text.English, Params: map[string]string{"p": "x"}, Slop: -1}
			for b.Loop() {
				if _, err := Parse(query, o); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
