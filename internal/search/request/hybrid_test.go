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
		"DIALECT is not supported in FT.HYBRID or any of its subqueries. Please check the documentation on search-default-dialect configuration."
	for arguments, want := range map[string]string{
		"":                                   "Missing subqueries count for FT.HYBRID",
		"3 SEARCH x":                         "FT.HYBRID currently supports only two subqueries",
		"2 x":                                "SEARCH keyword is required",
		"x":                                  "Invalid subqueries count: expected an unsigned integer",
		"SEARCH":                             "No query string provided for SEARCH",
		"SEARCH x":                           "VSIM argument is required",
		"SEARCH x LIMIT 0 1":                 "Unknown argument `LIMIT` in SEARCH",
		"SEARCH x SCORER":                    "Bad arguments for SCORER: Expected an argument, but none provided",
		"SEARCH x DIALECT 2":                 dialect,
		"SEARCH x VSIM":                      "Missing vector field name",
		"SEARCH x VSIM v":                    "Missing @ prefix for vector field name",
		"SEARCH x VSIM @v":                   "Missing vector argument",
		"SEARCH x VSIM @v abcd":              "Invalid vector argument, expected a parameter name starting with $",
		vsim + "KNN":                         "Missing argument count",
		vsim + "KNN x":                       "Invalid argument count: expected an unsigned integer",
		vsim + "KNN 3 K 1":                   "Invalid argument count: 3 (must be a positive even number for key/value pairs)",
		vsim + "KNN 4 K 1":                   "Expected arguments 4, but 2 were provided",
		vsim + "KNN 2 K 0":                   "Invalid K value",
		vsim + "KNN 2 K":                     "Missing argument value for K",
		vsim + "KNN 4 K 1 K 2":               "Duplicate K argument",
		vsim + "KNN 2 EF_RUNTIME 5":          "Missing required argument K",
		vsim + "KNN 4 K 1 EF_RUNTIME x":      "Invalid EF_RUNTIME value",
		vsim + "KNN 4 K 1 YIELD_SCORE_AS d":  "Unknown argument `YIELD_SCORE_AS` in KNN",
		vsim + "RANGE 2 EPSILON 1":           "Missing required argument RADIUS",
		vsim + "RANGE 2 RADIUS -1":           "Invalid RADIUS value",
		vsim + "RANGE 4 RADIUS 1 EPSILON 0":  "Invalid EPSILON value",
		vsim + "RANGE 2 DIALECT 2":           "Unknown argument `DIALECT` in RANGE",
		vsim + "FILTER":                      "Missing argument count for FILTER",
		vsim + "FILTER 3 x":                  "Not enough arguments in FILTER, specified 3 but provided only 1",
		vsim + "FILTER 0":                    "Missing filter-expression for FILTER",
		vsim + "FILTER 3 x POLICY ADHOC_BF":  "POLICY: Invalid value for argument",
		vsim + "YIELD_SCORE_AS":              "Missing argument value for YIELD_SCORE_AS",
		vsim + "YIELD_SCORE_AS a DIALECT 2":  dialect,
		vsim + "TIMEOUT 1 DIALECT 2":         dialect,
		vsim + "COMBINE x 0":                 "COMBINE: Invalid value for argument",
		vsim + "COMBINE RRF":                 "Missing RRF argument count",
		vsim + "COMBINE RRF 1 WINDOW":        "RRF expects pairs of key value arguments, argument count must be an even number",
		vsim + "COMBINE RRF 2 WINDOW":        "Not enough arguments in RRF, specified 2 but provided only 1",
		vsim + "COMBINE RRF 2 WINDOW 0":      "WINDOW: Value below minimum",
		vsim + "COMBINE LINEAR 2 ALPHA 1":    "Missing value for BETA",
		vsim + "COMBINE LINEAR 2 BETA 1":     "Missing value for ALPHA",
		vsim + "COMBINE LINEAR 2 CONSTANT 1": "CONSTANT: Unknown argument",
		vsim + "NOSORT SORTBY 1 @a":          "NOSORT is not allowed with SORTBY",
		vsim + "SORTBY 1 @a NOSORT":          "NOSORT is not allowed with SORTBY",
		vsim + "SORTBY 1 a":                  "Missing prefix: name requires '@' prefix, JSON path require '$' prefix, got: a in SORTBY",
		vsim + "SORTBY 2 @a":                 "SORTBY: Not enough arguments were provided based on argument count",
		vsim + "LOAD 1 a":                    "Missing prefix: name requires '@' prefix, JSON path require '$' prefix, got: a in LOAD",
		vsim + "LIMIT 0":                     "LIMIT: Not enough arguments were provided",
		vsim + "LIMIT x 1":                   "LIMIT offset must be a non-negative integer",
		vsim + "LIMIT 0 x":                   "LIMIT count must be a non-negative integer",
		vsim + "LIMIT 1 0":                   "The `offset` of the LIMIT must be 0 when `num` is 0",
		vsim + "LIMIT 0 1001":                "LIMIT exceeds maximum of 1000",
		vsim + "LIMIT 0 1 LIMIT 0 1":         "LIMIT: Argument specified multiple times",
		vsim + "FORMAT x":                    "FORMAT: Invalid value for argument",
		vsim + "PARAMS 1 a":                  "Parameters must be specified in PARAM VALUE pairs",
		vsim + "TIMEOUT -1":                  "TIMEOUT requires a non negative integer",
		vsim + "GROUPBY 1 a":                 "Bad arguments for GROUPBY: Unknown property `a`. Did you mean `@a`?",
		vsim + "EXPLAINSCORE GROUPBY 1 @a":   "EXPLAINSCORE is not supported with GROUPBY",
		vsim + "bar":                         "bar: Unknown argument",
	} {
		_, err := hybrid(arguments)
		require.EqualError(t, err, want, arguments)
	}
}
