package request

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/atomredis/atomredis/internal/search/aggregate"
	"github.com/atomredis/atomredis/internal/search/query"
)

// hybrid parses words that are separated by spaces.
func hybrid(text string) (*Hybrid, error) {
	return ParseHybrid(strings.Fields(text), Config{Dialect: 1, MaxSearch: 1000})
}

func TestArgumentsOfHybrid(t *testing.T) {
	h, err := hybrid("2 search red scorer TFIDF yield_score_as t vsim @v $q knn 6 k 30 ef_runtime 7 shard_k_ratio 0.5 filter 5 @g:{x} policy " +
		"adhoc batch_size 3 yield_score_as s combine linear 6 alpha 0.25 beta 1 window 25 yield_score_as all params 2 q blob timeout 9 " +
		"format expand explainscore sortby 3 @a desc @b limit 2 5 load 4 @a AS b $.c")
	require.NoError(t, err)
	require.Equal(t, VectorSearch{Field: "v", Param: "q", K: 25, Options: []query.Option{{Name: "EF_RUNTIME", Value: "7"},
		{Name: "SHARD_K_RATIO", Value: "0.5"}, {Name: "HYBRID_POLICY", Value: "ADHOC_BF"}, {Name: "BATCH_SIZE", Value: "3"}},
		Filter: "@g:{x}", Score: "s"}, h.Vector)
	require.Equal(t, Fusion{Linear: true, Constant: 60, Alpha: 0.25, Beta: 1, Window: 25, Score: "all"}, h.Fusion)
	require.Equal(t, []any{"red", "TFIDF", "t", map[string]string{"q": "blob"}, int64(9), ExpandFormat, true, 2, []string{"b"}},
		[]any{h.Query, h.Scorer, h.SearchScore, h.Params, *h.Timeout, h.Format, h.ExplainScore, h.Dialect, h.Loads[:1]})
	require.Equal(t, []aggregate.Step{&aggregate.Load{Fields: []aggregate.Loaded{{Path: "a", Name: "b"}, {Path: "$.c", Name: "$.c"}}},
		&aggregate.Arrange{Keys: []aggregate.Key{{Name: "a", Desc: true}, {Name: "b"}}, Sorted: true, Limited: true, Offset: 2, Num: 5}},
		h.Plan.Steps)
	require.True(t, h.Hides(KeyName))

	h, err = hybrid("SEARCH * VSIM @v $q RANGE 4 RADIUS 0.5 EPSILON 0.1 FILTER @n:[1] COMBINE RRF 2 WINDOW 3 YIELD_SCORE_AS all NOSORT")
	require.NoError(t, err)
	require.Equal(t, VectorSearch{Field: "v", Param: "q", Range: true, K: 3, Radius: 0.5,
		Options: []query.Option{{Name: "EPSILON", Value: "0.1"}}, Filter: "@n:[1]"}, h.Vector)
	require.Equal(t, Fusion{Constant: 60, Alpha: 0.3, Beta: 0.7, Window: 3, Score: "all"}, h.Fusion)
	require.Empty(t, h.Plan.Steps)

	h, err = hybrid("SEARCH * VSIM @v $q")
	require.NoError(t, err)
	require.Equal(t, []aggregate.Step{&aggregate.Arrange{Keys: []aggregate.Key{{Name: OrderName}}, Sorted: true, Limited: true, Num: 10}},
		h.Plan.Steps)
	require.False(t, h.Hides(KeyName))
}

func TestArgumentsThatHybridRefuses(t *testing.T) {
	const vsim, dialect = "SEARCH * VSIM @v $q ",
		"SEARCH_PARSE_ARGS DIALECT is not supported in FT.HYBRID or any of its subqueries. Please check the documentation on search-default-dialect configuration."
	for arguments, want := range map[string]string{
		"":                                   "SEARCH_PARSE_ARGS Missing subqueries count for FT.HYBRID",
		"3 SEARCH x":                         "SEARCH_PARSE_ARGS FT.HYBRID currently supports only two subqueries",
		"2 x":                                "SEARCH_SYNTAX SEARCH keyword is required",
		"x":                                  "SEARCH_SYNTAX Invalid subqueries count: expected an unsigned integer",
		"SEARCH":                             "SEARCH_PARSE_ARGS No query string provided for SEARCH",
		"SEARCH x":                           "SEARCH_SYNTAX VSIM argument is required",
		"SEARCH x LIMIT 0 1":                 "SEARCH_ARG_UNRECOGNIZED Unknown argument `LIMIT` in SEARCH",
		"SEARCH x SCORER":                    "SEARCH_PARSE_ARGS Bad arguments for SCORER: Expected an argument, but none provided",
		"SEARCH x DIALECT 2":                 dialect,
		"SEARCH x VSIM":                      "SEARCH_SYNTAX Missing vector field name",
		"SEARCH x VSIM v":                    "SEARCH_SYNTAX Missing @ prefix for vector field name",
		"SEARCH x VSIM @v":                   "SEARCH_SYNTAX Missing vector argument",
		"SEARCH x VSIM @v abcd":              "SEARCH_SYNTAX Invalid vector argument, expected a parameter name starting with $",
		vsim + "KNN":                         "SEARCH_PARSE_ARGS Missing argument count",
		vsim + "KNN x":                       "SEARCH_PARSE_ARGS Invalid argument count: expected an unsigned integer",
		vsim + "KNN 3 K 1":                   "SEARCH_SYNTAX Invalid argument count: 3 (must be a positive even number for key/value pairs)",
		vsim + "KNN 4 K 1":                   "SEARCH_SYNTAX Expected arguments 4, but 2 were provided",
		vsim + "KNN 2 K 0":                   "SEARCH_SYNTAX Invalid K value",
		vsim + "KNN 2 K":                     "SEARCH_PARSE_ARGS Missing argument value for K",
		vsim + "KNN 4 K 1 K 2":               "SEARCH_PARAM_DUP Duplicate K argument",
		vsim + "KNN 2 EF_RUNTIME 5":          "SEARCH_PARSE_ARGS Missing required argument K",
		vsim + "KNN 4 K 1 EF_RUNTIME x":      "SEARCH_SYNTAX Invalid EF_RUNTIME value",
		vsim + "KNN 4 K 1 YIELD_SCORE_AS d":  "SEARCH_ARG_UNRECOGNIZED Unknown argument `YIELD_SCORE_AS` in KNN",
		vsim + "RANGE 2 EPSILON 1":           "SEARCH_PARSE_ARGS Missing required argument RADIUS",
		vsim + "RANGE 2 RADIUS -1":           "SEARCH_SYNTAX Invalid RADIUS value",
		vsim + "RANGE 4 RADIUS 1 EPSILON 0":  "SEARCH_SYNTAX Invalid EPSILON value",
		vsim + "RANGE 2 DIALECT 2":           "SEARCH_ARG_UNRECOGNIZED Unknown argument `DIALECT` in RANGE",
		vsim + "FILTER":                      "SEARCH_PARSE_ARGS Missing argument count for FILTER",
		vsim + "FILTER 3 x":                  "SEARCH_SYNTAX Not enough arguments in FILTER, specified 3 but provided only 1",
		vsim + "FILTER 0":                    "SEARCH_PARSE_ARGS Missing filter-expression for FILTER",
		vsim + "FILTER 3 x POLICY ADHOC_BF":  "SEARCH_PARSE_ARGS POLICY: Invalid value for argument",
		vsim + "YIELD_SCORE_AS":              "SEARCH_PARSE_ARGS Missing argument value for YIELD_SCORE_AS",
		vsim + "YIELD_SCORE_AS a DIALECT 2":  dialect,
		vsim + "TIMEOUT 1 DIALECT 2":         dialect,
		vsim + "COMBINE x 0":                 "SEARCH_PARSE_ARGS COMBINE: Invalid value for argument",
		vsim + "COMBINE RRF":                 "SEARCH_PARSE_ARGS Missing RRF argument count",
		vsim + "COMBINE RRF 1 WINDOW":        "SEARCH_PARSE_ARGS RRF expects pairs of key value arguments, argument count must be an even number",
		vsim + "COMBINE RRF 2 WINDOW":        "SEARCH_SYNTAX Not enough arguments in RRF, specified 2 but provided only 1",
		vsim + "COMBINE RRF 2 WINDOW 0":      "SEARCH_PARSE_ARGS WINDOW: Value below minimum",
		vsim + "COMBINE LINEAR 2 ALPHA 1":    "SEARCH_SYNTAX Missing value for BETA",
		vsim + "COMBINE LINEAR 2 BETA 1":     "SEARCH_SYNTAX Missing value for ALPHA",
		vsim + "COMBINE LINEAR 2 CONSTANT 1": "SEARCH_PARSE_ARGS CONSTANT: Unknown argument",
		vsim + "NOSORT SORTBY 1 @a":          "SEARCH_PARSE_ARGS NOSORT is not allowed with SORTBY",
		vsim + "SORTBY 1 @a NOSORT":          "SEARCH_PARSE_ARGS NOSORT is not allowed with SORTBY",
		vsim + "SORTBY 1 a":                  "SEARCH_PARSE_ARGS Missing prefix: name requires '@' prefix, JSON path require '$' prefix, got: a in SORTBY",
		vsim + "SORTBY 2 @a":                 "SEARCH_PARSE_ARGS SORTBY: Not enough arguments were provided based on argument count",
		vsim + "LOAD 1 a":                    "SEARCH_PARSE_ARGS Missing prefix: name requires '@' prefix, JSON path require '$' prefix, got: a in LOAD",
		vsim + "LIMIT 0":                     "SEARCH_PARSE_ARGS LIMIT: Not enough arguments were provided",
		vsim + "LIMIT x 1":                   "SEARCH_PARSE_ARGS LIMIT offset must be a non-negative integer",
		vsim + "LIMIT 0 x":                   "SEARCH_PARSE_ARGS LIMIT count must be a non-negative integer",
		vsim + "LIMIT 1 0":                   "SEARCH_LIMIT_OVER The `offset` of the LIMIT must be 0 when `num` is 0",
		vsim + "LIMIT 0 1001":                "SEARCH_LIMIT_OVER LIMIT exceeds maximum of 1000",
		vsim + "LIMIT 0 1 LIMIT 0 1":         "SEARCH_PARSE_ARGS LIMIT: Argument specified multiple times",
		vsim + "FORMAT x":                    "SEARCH_PARSE_ARGS FORMAT: Invalid value for argument",
		vsim + "PARAMS 1 a":                  "SEARCH_ADD_ARGS Parameters must be specified in PARAM VALUE pairs",
		vsim + "TIMEOUT -1":                  "SEARCH_PARSE_ARGS TIMEOUT requires a non negative integer",
		vsim + "GROUPBY 1 a":                 "SEARCH_PARSE_ARGS Bad arguments for GROUPBY: Unknown property `a`. Did you mean `@a`?",
		vsim + "EXPLAINSCORE GROUPBY 1 @a":   "SEARCH_PARSE_ARGS EXPLAINSCORE is not supported with GROUPBY",
		vsim + "bar":                         "SEARCH_PARSE_ARGS bar: Unknown argument",
	} {
		_, err := hybrid(arguments)
		require.EqualError(t, err, want, arguments)
	}
}
