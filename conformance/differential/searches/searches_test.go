package searches

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/atomredis/atomredis/internal/testing/transcript"
)

func TestASeedAlwaysGivesTheSameSearches(t *testing.T) {
	require.Equal(t, Generate(7, 300), Generate(7, 300))
	require.NotEqual(t, Generate(7, 300), Generate(8, 300))
}

func TestAllRulesAreUsed(t *testing.T) {
	words := map[string]bool{}
	for seed := range uint64(50) {
		for _, op := range Generate(seed, 200) {
			for _, cmd := range op.Cmds {
				for _, w := range cmd {
					words[w] = true
					require.NotContains(t, w, "<<")
				}
			}
		}
	}
	for name, text := range grammar {
		if name != strings.ToUpper(name) {
			continue // its words are within an argument
		}
		for word := range strings.FieldsSeq(text) {
			if len(word) > 3 && word == strings.ToUpper(word) && strings.Trim(word, "ABCDEFGHIJKLMNOPQRSTUVWXYZ._") == "" {
				require.True(t, words[word], "%s of %s is never sent", word, name)
			}
		}
	}
}

func bulk(text string) value { return value{Kind: transcript.Bulk, Text: text} }

func simple(text string) value { return value{Kind: transcript.Simple, Text: text} }

func failed(text string) value { return value{Kind: transcript.Error, Text: text} }

func list(elems ...value) value { return value{Kind: transcript.Array, Elems: elems} }

func TestRepliesAreComparedByWhatTheyMean(t *testing.T) {
	row := func(words ...string) value {
		v := list()
		for _, w := range words {
			v.Elems = append(v.Elems, bulk(w))
		}
		return v
	}
	search, aggregate := []string{"FT.SEARCH", "idx", "a"}, []string{"FT.AGGREGATE", "idx", "a"}
	groups := append(aggregate, "GROUPBY", "1", "@t")
	for _, c := range []struct {
		args []string
		a, b value
		want bool
	}{
		{search, list(bulk("k"), bulk("0.1234567890123")), list(bulk("k"), bulk("0.1234567890124")), true},
		{search, list(bulk("k"), bulk("0.12345678")), list(bulk("k"), bulk("0.12345679")), false},
		{search, list(bulk("k"), row("a", "1", "b", "2")), list(bulk("k"), row("b", "2", "a", "1")), true},
		{search, list(bulk("k"), row("a", "1", "b", "2")), list(bulk("k"), row("a", "2", "b", "1")), false},
		{search, list(bulk("k"), bulk("l")), list(bulk("l"), bulk("k")), false},
		{aggregate, list(bulk("1"), row("t", "x"), row("t", "y")), list(bulk("2"), row("t", "x"), row("t", "y")), true},
		{aggregate, list(bulk("1"), row("t", "x"), row("t", "y")), list(bulk("1"), row("t", "y"), row("t", "x")), false},
		{groups, list(bulk("1"), row("t", "x"), row("t", "y")), list(bulk("1"), row("t", "y"), row("t", "x")), true},
		{groups, list(bulk("1"), row("t", "x")), list(bulk("1"), row("t", "x"), row("t", "x")), false},
		{aggregate, list(bulk("1"), row("t", "nan")), list(bulk("1"), row("t", "-nan")), true},
		{aggregate, list(bulk("1"), row("t", "nan %")), list(bulk("1"), row("t", "-nan %")), true},
		{search, failed("No such parameter `p`"), failed("SEARCH_PARAM_NOT_FOUND Parameter not found `p`"), true},
		{search, failed("No such parameter `p`"), failed("SEARCH_PARAM_NOT_FOUND Parameter not found `q`"), false},
		{search, failed("Error parsing vector similarity parameters: Invalid option"),
			failed("SEARCH_OPTION_INVALID Invalid option (Error parsing vector similarity parameters)"), true},
		{search, failed("No such index idx"), failed("SEARCH_INDEX_NOT_FOUND Index not found: idx"), true},
		{search, failed("idx: no such index"), failed("SEARCH_INDEX_NOT_FOUND Index not found: idx"), true},
		{append(search, "WITHSCORES"), list(bulk("k"), bulk("0.2876821")), list(bulk("k"), bulk("0.2876820")), true},
		{append(search, "WITHSCORES"), list(bulk("k"), bulk("0.28769")), list(bulk("k"), bulk("0.28768")), false},
		{append(search, "EXPLAINSCORE"), list(simple("Final"), list(list(simple("(Weight 1.00 * children BM25 0.29)"), list(simple("fox"))))),
			list(simple("Final"), list(simple("fox"))), true},
		{append(groups, "REDUCE", "TOLIST", "1", "@n", "AS", "all"), list(bulk("1"), list(bulk("all"), row("1", "2"))),
			list(bulk("1"), list(bulk("all"), row("2", "1"))), true},
	} {
		require.Equal(t, c.want, same(c.args, c.a, c.b), "%v: %s and %s", c.args, c.a, c.b)
	}
}

func TestDifferencesHaveReasons(t *testing.T) {
	const one = "a union of one part"
	page := func(keys ...string) value {
		v := list(value{Kind: transcript.Integer, Text: "9"})
		for _, key := range keys {
			v.Elems = append(v.Elems, bulk(key))
		}
		return v
	}
	search := func(words ...string) []string { return append([]string{"FT.SEARCH", "idx"}, words...) }
	aggregate := func(words ...string) []string { return append([]string{"FT.AGGREGATE", "idx"}, words...) }
	for _, c := range []struct {
		args   []string
		a, b   value
		reason string // how it begins, "" for none
	}{
		{search("fox|(*ld)=>{$weight: 2}", "DIALECT", "2"), page("d:1", "d:2"), page("d:2", "d:1"), one},
		{search("fox|*ld", "DIALECT", "2"), page("d:1", "d:2", "d:3", "d:4"), page("d:4", "d:2", "d:3", "d:1"), ""},
		{search("(@t3:(*ld*) run)=>{$slop: 1}", "VERBATIM", "DIALECT", "2"), page(), page("d:1"), one},
		{search(`@g2\:{run}`), failed("Syntax error at offset 5 near g2::"), failed(`Syntax error at offset 5 near g2\:`), "the word that an error names"},
		{search("@g2:{run"), failed("Syntax error at offset 5 near g2"), failed("Syntax error at offset 6 near run"), ""},
		{aggregate("fox", "APPLY", "split(@t1)", "AS", "a", "SORTBY", "1", "@a"), page("d:1", "d:2"), page("d:2", "d:1"), "lists that are computed"},
		{aggregate("fox ~run", "APPLY", "matched_terms()", "AS", "a"), page("d:1", "d:2"), page("d:2", "d:1"), "only one part of a union"},
		{[]string{"FT.CREATE", "idx"}, simple("OK"),
			failed("SEARCH_PARSE_ARGS Bad arguments for vector similarity FLAT index `DIM`: Value is outside acceptable bounds"), "DIM has a limit"},
		{aggregate("*", "APPLY", "to_str(@g1)", "AS", "a", "GROUPBY", "1", "@a"), list(bulk("1"), list(bulk("a"), bulk("\x00\xf8"))),
			list(bulk("1"), list(bulk("a"), bulk("red"))), "to_str of a property"},
		{aggregate("(@g1:{red} @n1:[1 2])=>{$slop: 1}", "FILTER", "format('%d', @n1)", "DIALECT", "2"), list(bulk("0")),
			failed("SEARCH_PARSE_ARGS Unknown format specifier passed"), "an error in a later row"},
		{aggregate("fox", "APPLY", "@n1 ^ 14 % 14", "AS", "a"), page("d:1"), page("d:2"), "the remainder of a power"},
		{aggregate("fox", "SORTBY", "1", "@n1", "MAX"), failed("Bad arguments for MAX: Could not convert argument to expected type"),
			failed("SEARCH_PARSE_ARGS Bad arguments for MAX: Expected an argument, but none provided"), "MAX has one error"},
		{search("runs"), page("d:1", "d:2", "d:3"), page("d:1", "d:3", "d:2"), "the order of a few matches"},
		{search("runs"), page("d:1", "d:2", "d:3", "d:4"), page("d:4", "d:2", "d:3", "d:1"), ""},
		{aggregate("*=>[KNN 2 @v1 $vec]", "PARAMS", "2", "vec", "abcd", "DIALECT", "2"), list(bulk("2"), list(bulk("x"))), list(bulk("2"), list(bulk("y"))),
			"which of two equally near vectors"},
		{search("runs"), page("d:1", "d:2"), page("d:2", "d:3"), ""},
		{search("runs", "SORTBY", "n1"), page("d:1", "d:2"), page("d:2", "d:1"), ""},
		{search("*", "BM25STD_TANH_FACTOR", "1000001"), page(), failed("BM25STD_TANH_FACTOR must be between 1 and 10000 inclusive"), "the reference does not apply"},
		{search("*", "WITHSCORES"), list(bulk("d:1"), bulk("nan")), list(bulk("d:1"), bulk("1")), "no document has words"},
		{search("*", "WITHSCORES"), list(bulk("d:1"), bulk("2")), list(bulk("d:1"), bulk("1")), ""},
	} {
		reason := knownReason(c.args, c.a, c.b)
		require.True(t, reason == c.reason || c.reason != "" && strings.HasPrefix(reason, c.reason), "%q: %s", c.args, reason)
	}
}
