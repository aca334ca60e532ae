package request

import (
	"errors"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/atomredis/atomredis/internal/search/aggregate"
	"github.com/atomredis/atomredis/internal/search/query"
	"github.com/atomredis/atomredis/internal/testing/transcript"
)

var config = Config{Dialect: 1, MaxSearch: 1000000, MaxAggregate: 2147483648 - 1}

// ours are the errors of arguments.
var ours = regexp.MustCompile("^(Bad arguments|Unknown argument|LIMIT |OFFSET |The `offset`|DIALECT |TIMEOUT |Need a|Parameters |Multiple |Duplicate |" +
	"SORTBY |MISSING |Bad SORTBY|Cannot sort|RETURN |Alias |[A-Z]+ is not supported|FORMAT |EXPLAINSCORE|ADDSCORES|FILTER requires|GEOFILTER requires|BM25STD_TANH|" +
	"Bad (lower|upper) range|AS needs|Unknown distance|option )")

// later are errors that look like those of arguments but come from steps as they are built.
var later = regexp.MustCompile("Bad arguments for QUANTILE|for FIRST_VALUE")

// Every FT.SEARCH and FT.AGGREGATE of the transcripts is read, or refused with the error of the reference.
func TestTranscripts(t *testing.T) {
	files, err := filepath.Glob("../../../conformance/testdata/search/*.txt")
	require.NoError(t, err)
	read, refused := 0, 0
	for _, file := range files {
		script, err := transcript.ParseFile(file)
		require.NoError(t, err)
		config := config
		for _, step := range script.Steps {
			var words []string
			for _, a := range step.Args {
				words = append(words, a.Text)
			}
			if len(words) > 3 && strings.EqualFold(words[1], "SET") {
				if n, err := strconv.Atoi(words[3]); err == nil && n > 0 {
					switch strings.ToLower(words[2]) {
					case "search-max-search-results", "maxsearchresults":
						config.MaxSearch = n
					case "search-max-aggregate-results", "maxaggregateresults":
						config.MaxAggregate = n
					}
				}
			}
			if len(words) < 3 || len(step.Newest()) == 0 {
				continue
			}
			parse := Search
			switch strings.ToUpper(words[0]) {
			case "FT.SEARCH":
			case "FT.AGGREGATE":
				parse = Aggregate
			default:
				continue
			}
			_, err := parse(words[2:], config)
			want := step.Newest()[0]
			message := filepath.Base(file) + " " + step.Source
			switch {
			case want.Any:
			case want.Kind != '-' || !ours.MatchString(errorText(want)) || later.MatchString(errorText(want)),
				strings.Contains(want.Text, " range: ") && strings.HasPrefix(words[2], "@"): // an error of the query
				require.NoError(t, err, message)
				read++
			case want.Match != nil:
				require.Error(t, err, message)
				require.Regexp(t, want.Match, err.Error(), message)
				refused++
			default:
				require.EqualError(t, err, want.Text, message)
				require.True(t, errors.As(err, new(*query.Error)))
				refused++
			}
		}
	}
	t.Logf("%d read, %d refused", read, refused)
	require.Equal(t, []int{1683, 98}, []int{read, refused})
}

// errorText is the text of an error without its code, and without the caret if it is a pattern.
func errorText(p transcript.Pattern) string {
	text := p.Text
	if p.Match != nil {
		text = strings.TrimLeft(p.Match.String(), "^(")
	}
	return code.ReplaceAllString(text, "")
}

var code = regexp.MustCompile(`^SEARCH_[A-Z_]+ `)

func TestOptions(t *testing.T) {
	q, err := Search(strings.Fields("q VERBATIM slop 2 INORDER LANGUAGE german EXPANDER e SCORER s PAYLOAD p INFIELDS 2 a b INKEYS 1 k WITHCOUNT "+
		"RETURN 4 a AS x b FILTER n (1 +inf GEOFILTER g 1 2 3 KM SORTBY x DESC LIMIT 5 6 TIMEOUT 7 PARAMS 2 n v DIALECT 3 FORMAT expand "+
		"BM25STD_TANH_FACTOR 9 HIGHLIGHT FIELDS 1 t TAGS < >"), config)
	require.NoError(t, err)
	require.Equal(t, "q", q.Query)
	require.Equal(t, 2, q.Slop)
	require.True(t, q.Verbatim && q.InOrder && q.HasReturn && !q.NoContent && q.HasInKeys)
	require.Equal(t, []string{"german", "e", "s", "p"}, []string{*q.Language, q.Expander, q.Scorer, q.Payload})
	require.Equal(t, []string{"a", "b"}, q.InFields)
	require.Equal(t, []string{"k"}, q.InKeys)
	require.Equal(t, []Returned{{"a", "x"}, {"b", "b"}}, q.Return)
	require.Equal(t, 1.0, q.Filters[0].Min)
	require.True(t, q.Filters[0].MinExclusive && !q.Filters[0].MaxExclusive)
	require.Equal(t, []GeoFilter{{"g", 1, 2, 3, "km"}}, q.GeoFilters)
	require.Equal(t, aggregate.Arrange{Keys: []aggregate.Key{{Name: "x", Desc: true}}, Sorted: true, Limited: true, Offset: 5, Num: 6}, q.Arrange())
	require.Equal(t, int64(7), *q.Timeout)
	require.Equal(t, map[string]string{"n": "v"}, q.Params)
	require.Equal(t, []int{3, 9}, []int{q.Dialect, q.TanhFactor})
	require.Equal(t, CountAll, q.Counting)
	require.Equal(t, ExpandFormat, q.Format)
	require.Equal(t, "<", q.Summary.For("t").Highlight.Open)

	q, err = Aggregate(strings.Fields("* ADDSCORES LOAD 1 @a WITHCURSOR MAXIDLE 5 COUNT 6 LIMIT 0 0"), config)
	require.NoError(t, err)
	require.True(t, q.AddScores && q.Plan.CountOnly)
	require.Equal(t, Cursor{6, 5}, *q.Cursor)
	require.Len(t, q.Plan.Steps, 2)
	require.False(t, q.Plan.CountAll)

	q, err = Aggregate(strings.Fields("* WITHOUTCOUNT WITHCOUNT"), config)
	require.NoError(t, err)
	require.True(t, q.Plan.CountAll)
	require.False(t, q.Plan.Whole)
	for _, text := range []string{"* WITHCOUNT WITHCURSOR COUNT 10", "* WITHCURSOR WITHCOUNT"} {
		q, err = Aggregate(strings.Fields(text), config)
		require.NoError(t, err)
		require.True(t, q.Plan.Whole)
	}
}

func TestErrors(t *testing.T) {
	for command, want := range map[string]string{
		"S q GROUPBY 1 @a":                "SEARCH_QUERY_BAD option `GROUPBY` is mutually exclusive with simple (i.e. search) options",
		"S q APPLY 1":                     "SEARCH_ARG_UNRECOGNIZED Unknown argument `APPLY` at position 1 for <main>",
		"S q ADDSCORES":                   "SEARCH_PARSE_ARGS ADDSCORES is not supported on FT.SEARCH",
		"S q EXPLAINSCORE":                "SEARCH_PARSE_ARGS EXPLAINSCORE must be accompanied with WITHSCORES",
		"S q PARAMS 1 a":                  "SEARCH_ADD_ARGS Parameters must be specified in PARAM VALUE pairs",
		"S q PARAMS 2 a b PARAMS 2 a b":   "SEARCH_ADD_ARGS Multiple PARAMS are not allowed. Parameters can be defined only once",
		"S q PARAMS 4 a b a c":            "SEARCH_ADD_ARGS Duplicate parameter `a`",
		"S q DIALECT":                     "SEARCH_PARSE_ARGS Need an argument for DIALECT",
		"S q DIALECT 5":                   "SEARCH_PARSE_ARGS DIALECT requires a non negative integer >=1 and <= 4",
		"S q TIMEOUT":                     "SEARCH_PARSE_ARGS Need argument for TIMEOUT",
		"S q FORMAT EXPAND DIALECT 2":     "SEARCH_LIMIT_OVER EXPAND format requires dialect 3 or greater",
		"S q BM25STD_TANH_FACTOR 0":       "SEARCH_PARSE_ARGS BM25STD_TANH_FACTOR must be between 1 and 10000 inclusive",
		"S q FILTER n  5 DIALECT 2":       "SEARCH_PARSE_ARGS Numeric/Geo filter value/s cannot be empty",
		"S q FILTER n inf 5":              "SEARCH_PARSE_ARGS Bad lower range: inf",
		"S q FILTER n 1":                  "SEARCH_PARSE_ARGS FILTER requires 3 arguments",
		"S q GEOFILTER g x 1 1 m":         "SEARCH_PARSE_ARGS Bad arguments for <lon>: Could not convert argument to expected type",
		"S q GEOFILTER g 1 1 1 parsec":    "SEARCH_PARSE_ARGS Unknown distance unit parsec",
		"S q RETURN 2 a AS":               "SEARCH_PARSE_ARGS RETURN path AS name - must be accompanied with NAME",
		"S q SORTBY a SORTBY b":           "SEARCH_PARSE_ARGS Multiple SORTBY steps are not allowed",
		"A q SORTBY 1 @a SORTBY 1 @b":     "SEARCH_PARSE_ARGS Multiple SORTBY steps are not allowed. Sort multiple fields in a single step",
		"A q SORTBY 1 ASC":                "SEARCH_PARSE_ARGS MISSING ASC or DESC after sort field (ASC)",
		"A q LOAD 2 @a AS":                "SEARCH_PARSE_ARGS LOAD path AS name - must be accompanied with NAME",
		"A q GROUPBY 0 REDUCE COUNT 0 AS": "SEARCH_PARSE_ARGS Bad arguments for AS: Expected an argument, but none provided",
		"A q LIMIT 0 2147483648":          "SEARCH_LIMIT_OVER LIMIT exceeds maximum of 2147483647",
		"A q LIMIT 1000001 1":             "SEARCH_LIMIT_OVER OFFSET exceeds maximum of 1000000",
		"A q SUMMARIZE":                   "SEARCH_PARSE_ARGS SUMMARIZE is not supported on FT.AGGREGATE",
		"A q FILTER":                      "SEARCH_PARSE_ARGS Bad arguments for APPLY/FILTER: Expected an argument, but none provided",
		"A":                               "SEARCH_PARSE_ARGS No query string provided",
	} {
		words := strings.Split(command, " ")
		parse := Search
		if words[0] == "A" {
			parse = Aggregate
		}
		_, err := parse(words[1:], config)
		require.EqualError(t, err, want, command)
	}
}

func FuzzParse(f *testing.F) {
	f.Add("* LOAD 2 @a @b GROUPBY 1 @a REDUCE COUNT 0 AS c SORTBY 2 @c DESC MAX 5 LIMIT 0 3")
	f.Add("q HIGHLIGHT FIELDS 1 a SUMMARIZE LEN 3 RETURN 3 a AS b FILTER n (1 2 PARAMS 2 a b DIALECT 2")
	f.Fuzz(func(t *testing.T, text string) {
		words := strings.Split(text, " ")
		_, _ = Search(words, config)
		_, _ = Aggregate(words, config)
	})
}
