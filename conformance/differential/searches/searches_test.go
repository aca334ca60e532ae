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
		{search, failed("No such parameter `p`"), failed("SEARCH_PARAM_NOT_FOUND Parameter not found `p`"), true},
		{search, failed("No such parameter `p`"), failed("SEARCH_PARAM_NOT_FOUND Parameter not found `q`"), false},
		{search, failed("Error parsing vector similarity parameters: Invalid option"),
			failed("SEARCH_OPTION_INVALID Invalid option (Error parsing vector similarity parameters)"), true},
	} {
		require.Equal(t, c.want, same(c.args, c.a, c.b), "%v: %s and %s", c.args, c.a, c.b)
	}
}
