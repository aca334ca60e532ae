package search_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/atomredis/atomredis/internal/testing/servertest"
)

// fieldOf are the words of FT.CREATE for a field of each kind over $.v, and path for one over $.v[*].
func fieldOf(kind, path string) []string {
	words := []string{path, "AS", "v", kind}
	if kind == "VECTOR" {
		words = append(words, "FLAT", "6", "TYPE", "FLOAT32", "DIM", "2", "DISTANCE_METRIC", "L2")
	}
	return words
}

// failureOf indexes {"v": value} and returns the error of FT.INFO, "" if the document is indexed.
func failureOf(t *testing.T, field []string, json string) string {
	s := servertest.NewStepped(t)
	defer s.Finish()
	require.Equal(t, "+OK\r\n", s.Send("0", slices.Concat([]string{"FT.CREATE", "x", "ON", "JSON", "SCHEMA"}, field)...))
	require.Equal(t, "+OK\r\n", s.Send("0", "JSON.SET", "d", "$", `{"v":`+json+`}`))
	reply, _ := parseReply(s.Send("0", "FT.INFO", "x"))
	info := reply.([]any)
	errors := info[slices.Index(info, any("+Index Errors"))+1].([]any)
	docs := info[slices.Index(info, any("+num_docs"))+1]
	if errors[1] == ":0" {
		require.Equal(t, ":1", docs)
		return ""
	}
	require.Equal(t, []any{":1", ":0", "d"}, []any{errors[1], docs, errors[5]})
	return strings.TrimPrefix(errors[3].(string), "+")
}

func TestJSONValuesThatDoNotFitTheirField(t *testing.T) {
	const (
		text     = "SEARCH_VALUE_BAD TEXT/TAG fields can only contain strings or nulls"
		numbers  = "SEARCH_VALUE_BAD NUMERIC fields can only contain numeric or nulls"
		isText   = "SEARCH_JSON_TYPE_INVALID Invalid JSON type: String type can represent only TEXT, TAG, GEO or GEOMETRY field"
		isNumber = "SEARCH_JSON_TYPE_INVALID Invalid JSON type: Numeric type can represent only NUMERIC field"
		isBool   = "SEARCH_JSON_TYPE_INVALID Invalid JSON type: Boolean type can be represent only TAG field"
		isObject = "SEARCH_JSON_TYPE_INVALID Invalid JSON type: Object type can represent only GEOMETRY fields"
	)
	for _, test := range []struct{ kind, path, json, failure string }{
		{"TEXT", "$.v", `"a b"`, ""}, {"TEXT", "$.v", `["a",null,"b"]`, ""}, {"TEXT", "$.v", "null", ""}, {"TEXT", "$.v", "[]", ""},
		{"TEXT", "$.v", "1", isNumber}, {"TEXT", "$.v", "true", isBool}, {"TEXT", "$.v", "{}", isObject}, {"TEXT", "$.v", `["a",1]`, text},
		{"TEXT", "$.v", `[["a"]]`, text}, {"TEXT", "$.v[*]", `["a",["b"]]`, text}, {"TEXT", "$.v[*]", `[["a","b"]]`, ""},
		{"TAG", "$.v", `"a"`, ""}, {"TAG", "$.v", "true", ""}, {"TAG", "$.v", "[true]", text}, {"TAG", "$.v[*]", "[true]", ""},
		{"TAG", "$.v[*]", `["a",{"b":1}]`, text}, {"TAG", "$.v", "2.5", isNumber}, {"TAG", "$.v", "{}", isObject},
		{"NUMERIC", "$.v", "-1.5e3", ""}, {"NUMERIC", "$.v", "[1,null,2.5]", ""}, {"NUMERIC", "$.v[*]", "[1,2]", ""}, {"NUMERIC", "$.v", `"1"`, isText},
		{"NUMERIC", "$.v", "false", isBool}, {"NUMERIC", "$.v", `[1,"2"]`, numbers}, {"NUMERIC", "$.v[*]", "[[1],[2]]", numbers},
		{"GEO", "$.v", `"1,2"`, ""}, {"GEO", "$.v", `["1,2","3,4"]`, ""}, {"GEO", "$.v", `"x"`, "SEARCH_PARSE_ARGS Invalid geo string: missing separator"}, {"GEO", "$.v", "1", isNumber},
		{"GEO", "$.v", "[1,2]", text}, {"GEO", "$.v", "[]", ""},
		{"GEOSHAPE", "$.v", "[1]", "SEARCH_JSON_TYPE_INVALID Invalid JSON type: Array type cannot represent GEOMETRY field"}, {"GEOSHAPE", "$.v", "1", isNumber},
		{"GEOSHAPE", "$.v", "{}", "SEARCH_GENERIC Object type is not supported"}, {"GEOSHAPE", "$.v", "null", ""},
		{"VECTOR", "$.v", `"ab"`, isText}, {"VECTOR", "$.v", "7", isNumber}, {"VECTOR", "$.v", "true", isBool}, {"VECTOR", "$.v", "{}", isObject},
		{"VECTOR", "$.v", "[]", "SEARCH_VALUE_BAD Empty array for vector field on JSON document"}, {"VECTOR", "$.v", "[1]", "SEARCH_VECTOR_LEN_BAD Invalid vector length. Expected 2, got 1"},
		{"VECTOR", "$.v", `[1,"2"]`, "SEARCH_GENERIC Invalid vector element at index 1"}, {"VECTOR", "$.v", "null", ""},
		{"VECTOR", "$.v[*]", "[[1,2],3]", "SEARCH_VALUE_BAD VECTOR fields can only contain arrays or nulls"},
		{"VECTOR", "$.v", "[[1,2],[3]]", "SEARCH_VECTOR_LEN_BAD Invalid vector length. Expected 2, got 1"},
	} {
		require.Equal(t, test.failure, failureOf(t, fieldOf(test.kind, test.path), test.json), "%v", test)
	}
}

// The first word of a value is search-multi-text-slop positions after the last word of the value before.
func TestJSONValuesStandApart(t *testing.T) {
	s := servertest.NewStepped(t)
	defer s.Finish()
	send := func(args ...string) string { return servertest.OnOneLine(s.Send("0", args...)) }
	s.Step("FT.CREATE x ON JSON SCHEMA $.t AS t TEXT")
	s.Step("FT.CREATE y ON JSON NOOFFSETS SCHEMA $.t[*] AS t TEXT")
	require.Equal(t, "+OK", send("JSON.SET", "d", "$", `{"t":["a1 and a2 a3","b1","c1"]}`))
	for _, test := range []struct{ query, slop, reply string }{
		{"a3 b1", "98", "*1 :0"}, {"a3 b1", "99", "*2 :1 d"}, {"b1 a3", "98", "*1 :0"}, {"b1 a3", "99", "*2 :1 d"},
		{"a1 c1", "200", "*1 :0"}, {"a1 c1", "201", "*2 :1 d"},
	} {
		require.Equal(t, test.reply, send("FT.SEARCH", "x", test.query, "NOCONTENT", "SLOP", test.slop), test.query)
	}
	// Without word positions, INORDER and SLOP have no effect.
	require.Equal(t, "*1 :0", send("FT.SEARCH", "y", "a1 nosuch", "SLOP", "1", "INORDER"))
}

// Up to dialect 2 replies have the first value of a path, from dialect 3 on an array of all; expressions and orders see the first.
func TestJSONDocumentsInReplies(t *testing.T) {
	s := servertest.NewStepped(t)
	defer s.Finish()
	send := func(args ...string) string { return servertest.OnOneLine(s.Send("0", args...)) }
	s.Step("FT.CREATE x ON JSON SCHEMA $.n AS n NUMERIC SORTABLE $.t AS t TEXT $.list[*] AS list NUMERIC $.b AS b TAG")
	const one, two = `{"n":10,"t":"a \"b\"","list":[2.5,1],"b":true,"o":{"k":[1,null]}}`, `{"n":9,"t":["x","y"],"list":[],"b":false,"o":null}`
	require.Equal(t, "+OK", send("JSON.SET", "d:1", "$", one))
	require.Equal(t, "+OK", send("JSON.SET", "d:2", "$", two))
	for _, test := range []struct {
		dialect string
		command []string
		reply   string
	}{
		{"1", []string{"FT.SEARCH", "x", "@n:[9 9]"}, "*3 :1 d:2 *2 $ " + two},
		{"2", []string{"FT.SEARCH", "x", "*", "SORTBY", "n", "LIMIT", "1", "1"}, "*3 :2 d:1 *4 n 10 $ " + one},
		{"3", []string{"FT.SEARCH", "x", "@n:[9 9]"}, "*3 :1 d:2 *2 $ [" + two + "]"},
		{"3", []string{"FT.SEARCH", "x", "*", "SORTBY", "n", "LIMIT", "1", "1"}, "*3 :2 d:1 *4 n [10] $ [" + one + "]"},
		{"2", []string{"FT.SEARCH", "x", "@n:[10 10]", "RETURN", "6", "n", "t", "list", "b", "$.o", "$.none"},
			`*3 :1 d:1 *10 n 10 t a "b" list 2.5 b 1 $.o {"k":[1,null]}`},
		{"2", []string{"FT.SEARCH", "x", "@n:[9 9]", "RETURN", "5", "t", "list", "b", "$.o", "__key"},
			`*3 :1 d:2 *8 t ["x","y"] b 0 $.o $-1 __key d:2`},
		{"3", []string{"FT.SEARCH", "x", "@n:[10 10]", "RETURN", "8", "n", "t", "list", "b", "$.o.k", "AS", "k", "$.none"},
			`*3 :1 d:1 *10 n [10] t ["a \"b\""] list [2.5,1] b [true] k [[1,null]]`},
		{"3", []string{"FT.SEARCH", "x", "@n:[9 9]", "RETURN", "3", "t", "$.list", "$.o"}, `*3 :1 d:2 *6 t [["x","y"]] $.list [[]] $.o [null]`},
		{"2", []string{"FT.AGGREGATE", "x", "*", "LOAD", "3", "$.n", "AS", "m", "APPLY", "@m + 1", "AS", "next", "SORTBY", "2", "@m", "ASC"},
			"*3 :2 *4 m 9 next 10 *4 m 10 next 11"},
		{"3", []string{"FT.AGGREGATE", "x", "*", "LOAD", "3", "$.n", "AS", "m", "APPLY", "@m + 1", "AS", "next", "SORTBY", "2", "@m", "ASC"},
			"*3 :2 *4 m [9] next 10 *4 m [10] next 11"},
		{"3", []string{"FT.AGGREGATE", "x", "@n:[9 9]", "LOAD", "1", "@t", "APPLY", "upper(@t)", "AS", "first"}, `*2 :1 *4 t [["x","y"]] first X`},
		{"2", []string{"FT.AGGREGATE", "x", "*", "GROUPBY", "1", "@b", "REDUCE", "SUM", "1", "@n", "AS", "n", "SORTBY", "1", "@b"},
			"*3 :2 *4 b 0 n 9 *4 b 1 n 10"},
	} {
		require.Equal(t, test.reply, send(append(test.command, "DIALECT", test.dialect)...), "%v", test)
	}
	const head = "%5 +attributes *0 +format +EXPAND +results *1 %3 +id d:1 +extra_attributes "
	const tail = " +values *0 +total_results :1 +warning *0"
	s.Step("HELLO 3")
	require.Equal(t, head+"%1 $ *1 %5 n ,10 t a \"b\" list *2 ,2.5 ,1 b ,1 o %1 k *2 ,1 _"+tail,
		send("FT.SEARCH", "x", "@n:[10 10]", "FORMAT", "EXPAND", "DIALECT", "3"))
	require.Equal(t, head+"%2 list *2 ,2.5 ,1 n *1 ,10"+tail,
		send("FT.SEARCH", "x", "@n:[10 10]", "RETURN", "2", "list", "n", "FORMAT", "EXPAND", "DIALECT", "3"))
	require.Equal(t, "-SEARCH_LIMIT_OVER EXPAND format requires dialect 3 or greater", send("FT.SEARCH", "x", "*", "FORMAT", "EXPAND", "DIALECT", "2"))
	s.Step("FT.CREATE y SCHEMA n NUMERIC")
	require.Equal(t, "-SEARCH_VALUE_BAD EXPAND format is only supported with JSON", send("FT.SEARCH", "y", "*", "FORMAT", "EXPAND", "DIALECT", "3"))
	s.Step("HELLO 2")
	require.Equal(t, "-SEARCH_VALUE_BAD EXPAND format is only supported with RESP3", send("FT.SEARCH", "x", "*", "FORMAT", "EXPAND", "DIALECT", "3"))

	require.Equal(t, "+OK", send("JSON.SET", "d:3", "$", `{"n":9007199254740993}`))
	require.Equal(t, "*3 :1 d:3 *2 $.n 9007199254740993", send("FT.SEARCH", "x", "@n:[100 inf]", "RETURN", "1", "$.n"))
}
