package search_test

import (
	"encoding/binary"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/atomredis/atomredis/internal/testing/servertest"
)

// vector encodes numbers as a vector of FLOAT32.
func vector(numbers ...float32) string {
	var b []byte
	for _, n := range numbers {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(n))
	}
	return string(b)
}

// hybridIndex is a server with four documents on the corners of a square. Seen from (1.25, 0.25) their distances are 1.625, 0.125, 2.125 and
// 0.625, so the vectors have the order 2 4 1 3. Of "red" the text has the order 1 2, since 1 is shorter.
func hybridIndex(t *testing.T) (send func(words string, more ...string) string) {
	s := servertest.NewStepped(t)
	t.Cleanup(s.Finish)
	s.Step("FT.CREATE x SCHEMA t TEXT g TAG n NUMERIC SORTABLE v VECTOR FLAT 6 TYPE FLOAT32 DIM 2 DISTANCE_METRIC L2")
	for i, d := range []struct {
		text, tag string
		x, y      float32
	}{{"red shoes", "shoes", 0, 0}, {"red running shoes", "shoes", 1, 0}, {"running gear", "gear", 0, 1}, {"blue shoes", "shoes", 1, 1}} {
		s.Send("0", "HSET", fmt.Sprint("d:", i+1), "t", d.text, "g", d.tag, "n", fmt.Sprint(10*i), "v", vector(d.x, d.y))
	}
	elapsed := regexp.MustCompile(`(execution_time|time|Time) ,?[-+0-9.e]+`)
	return func(words string, more ...string) string {
		reply := s.Send("0", slices.Concat(strings.Fields(words), more)...)
		return elapsed.ReplaceAllString(servertest.OnOneLine(reply), "$1 …")
	}
}

// number formats a number as in rows.
func number(f float64) string { return strconv.FormatFloat(f, 'g', 12, 64) }

func TestHybridFusesTwoSearches(t *testing.T) {
	send := hybridIndex(t)
	reply := func(total int, rows ...string) string {
		return strings.TrimSpace(fmt.Sprintf("*8 +total_results :%d +results *%d %s", total, len(rows), strings.Join(rows, " "))) +
			" +warnings *0 +execution_time …"
	}
	row := func(key string, score float64) string {
		return fmt.Sprintf("*4 __key %s __score %s", key, number(score))
	}
	rank := func(constant float64, ranks ...float64) (sum float64) {
		for _, r := range ranks {
			sum += 1 / (constant + r)
		}
		return sum
	}
	near := map[string]float64{"d:1": 1 / 2.625, "d:2": 1 / 1.125, "d:3": 1 / 3.125, "d:4": 1 / 1.625}
	for words, want := range map[string]string{
		"SEARCH red VSIM @v $q":                                   reply(4, row("d:2", rank(60, 2, 1)), row("d:1", rank(60, 1, 3)), row("d:4", rank(60, 2)), row("d:3", rank(60, 4))),
		"SEARCH red VSIM @v $q COMBINE RRF 4 CONSTANT 1 WINDOW 2": reply(3, row("d:2", rank(1, 2, 1)), row("d:1", rank(1, 1)), row("d:4", rank(1, 2))),
		"SEARCH red VSIM @v $q KNN 2 K 1":                         reply(2, row("d:2", rank(60, 2, 1)), row("d:1", rank(60, 1))),
		"SEARCH blue VSIM @v $q RANGE 2 RADIUS 0.625":             reply(2, row("d:4", rank(60, 1, 2)), row("d:2", rank(60, 1))),
		"SEARCH blue VSIM @v $q RANGE 2 RADIUS 1.7 FILTER @n:[0,20]": reply(3, row("d:2", rank(60, 1)), row("d:4", rank(60, 1)),
			row("d:1", rank(60, 2))),
		"SEARCH nothing VSIM @v $q FILTER 1 @g:{gear}": reply(1, row("d:3", rank(60, 1))),
		"SEARCH red VSIM @v $q LIMIT 1 2":              reply(4, row("d:1", rank(60, 1, 3)), row("d:4", rank(60, 2))),
		"SEARCH red VSIM @v $q LIMIT 0 0":              reply(4),
		"SEARCH red VSIM @v $q FILTER @n:[0,0] NOSORT": reply(2, row("d:1", rank(60, 1, 1)), row("d:2", rank(60, 2))),
		"SEARCH red SCORER DOCSCORE VSIM @v $q COMBINE LINEAR 4 ALPHA 0.5 BETA 0.25": reply(4, row("d:2", 0.5+0.25*near["d:2"]),
			row("d:1", 0.5+0.25*near["d:1"]), row("d:4", 0.25*near["d:4"]), row("d:3", 0.25*near["d:3"])),
		"SEARCH red SCORER DOCSCORE YIELD_SCORE_AS text VSIM @v $q KNN 2 K 1 YIELD_SCORE_AS near COMBINE LINEAR 0 YIELD_SCORE_AS all": reply(2,
			"*8 __key d:2 all "+number(0.3+0.7*near["d:2"])+" text 1 near "+number(near["d:2"]), "*6 __key d:1 all 0.3 text 1"),
		"SEARCH red VSIM @v $q LOAD 2 @t @n SORTBY 2 @n DESC LIMIT 0 2":                       reply(4, "*4 t blue shoes n 30", "*4 t running gear n 20"),
		"SEARCH red VSIM @v $q APPLY @n*2 AS m SORTBY 2 @m DESC LIMIT 0 1 LOAD 3 @__key AS k": reply(4, "*6 k d:4 n 30 m 60"),
		"SEARCH red VSIM @v $q LOAD 2 @g @__score GROUPBY 1 @g REDUCE COUNT 0 AS c REDUCE MAX 1 @__score AS best SORTBY 1 @g": reply(2,
			"*6 g gear c 1 best "+number(rank(60, 4)), "*6 g shoes c 3 best "+number(rank(60, 2, 1))),
		"SEARCH red VSIM @v $q LOAD 1 @n FILTER @n>5 SORTBY 1 @n": reply(3, "*2 n 10", "*2 n 20", "*2 n 30"),
	} {
		require.Equal(t, want, send("FT.HYBRID x "+words+" PARAMS 2 q", vector(1.25, 0.25)), words)
	}
	send("HELLO 3")
	require.Equal(t, "%4 +total_results :1 +results *1 %2 __key d:3 __score "+number(rank(60, 1))+" +warnings *0 +execution_time …",
		send("FT.HYBRID x SEARCH nothing VSIM @v $q KNN 2 K 1 PARAMS 2 q", vector(0, 1)))
}

func TestSimilaritiesOfVectors(t *testing.T) {
	for _, test := range []struct {
		metric string
		x, y   float32
		score  float64
	}{
		{"L2", 1, 1, 1 / 1.25}, {"IP", 1, 1, (1 + 1.5) / 2}, {"IP", -1, 0, 0}, {"COSINE", 2, 1, 1}, {"COSINE", -2, -1, 0},
	} {
		s := servertest.NewStepped(t)
		s.Step("FT.CREATE x SCHEMA v VECTOR FLAT 6 TYPE FLOAT32 DIM 2 DISTANCE_METRIC " + test.metric)
		s.Send("0", "HSET", "d", "v", vector(test.x, test.y))
		reply := servertest.OnOneLine(s.Send("0", "FT.HYBRID", "x", "SEARCH", "none", "VSIM", "@v", "$q", "YIELD_SCORE_AS", "near", "PARAMS", "2", "q",
			vector(1, 0.5)))
		require.Contains(t, reply, "near ", reply)
		after := strings.Fields(reply[strings.Index(reply, "near ")+len("near "):])
		got, err := strconv.ParseFloat(after[0], 64)
		require.NoError(t, err)
		require.InDelta(t, test.score, got, 1e-6, test)
		s.Finish()
	}
}

// Rows of the vector search alone have no terms.
func TestHybridTellsTermsToItsPipeline(t *testing.T) {
	send := hybridIndex(t)
	reply := send("FT.HYBRID x SEARCH red VSIM @v $q KNN 2 K 2 LOAD 1 @__key APPLY matched_terms() AS m PARAMS 2 q", vector(1, 1))
	require.Contains(t, reply, "+results *3 *4 __key d:2 m *1 red *4 __key d:1 m *1 red *4 __key d:4 m $-1 ", reply)
}

func TestHybridExplainsScores(t *testing.T) {
	send := hybridIndex(t)
	const first = "*2 +score *2 0.03252247488101534 *2 +final score: 1 / (constant 60.00 + rank 2) + 1 / (constant 60.00 + rank 1) = " +
		"0.03252247488101534 *1 *2 +Hybrid score (RRF: window=20, constant=60.00) *2 *2 +text rank = 2 *1 *2 +Text scorer: DOCSCORE *1 " +
		"+Document's score is 1.00 *2 +vector branch (KNN) *1 +vector rank = 1"
	reply := send("FT.HYBRID x SEARCH red SCORER DOCSCORE VSIM @v $q EXPLAINSCORE LIMIT 0 1 LOAD 1 @none PARAMS 2 q", vector(1.25, 0.25))
	require.Equal(t, "*8 +total_results :4 +results *1 "+first+" +warnings *0 +execution_time …", reply)
	reply = send("FT.HYBRID x SEARCH blue SCORER DOCSCORE VSIM @v $q RANGE 2 RADIUS 0.5 COMBINE LINEAR 4 ALPHA 0.5 BETA 0.25 EXPLAINSCORE "+
		"LOAD 1 @__key PARAMS 2 q", vector(1.25, 0.25))
	for _, line := range []string{
		"+final score: 0.5000 * 1.0000 + 0 [vector: no match] = 0.5 ", "+Hybrid score (LINEAR: alpha=0.5000, beta=0.2500, window=20) ",
		"+text contribution = 0.5000 * 1.0000 = 0.5000 *1 *2 +Text scorer: DOCSCORE *2 +normalized text score = 1.0000 +Document's score is 1.00 ",
		"+vector branch (RANGE: radius=0.5000) *2 +matched within radius = false +vector contribution = <no match> ",
		"+final score: 0 [text: no match] + 0.2500 * 0.8889 = ", "+text contribution = <no match> ",
		"*3 +matched within radius = true +vector contribution = 0.2500 * 0.8889 = 0.2222 +normalized vector score = 0.8889 ",
	} {
		require.Contains(t, reply, line)
	}
}

func TestHybridRefusesWhatTheIndexLacks(t *testing.T) {
	send := hybridIndex(t)
	const parameters = " (Error parsing vector similarity parameters)"
	for words, want := range map[string]string{
		"nope SEARCH red VSIM @v $q":                                     "-SEARCH_INDEX_NOT_FOUND Index not found: nope",
		"x SEARCH red VSIM @none $q":                                     "-SEARCH_SYNTAX Unknown field `none`",
		"x SEARCH red VSIM @n $q":                                        "-SEARCH_SYNTAX Expected a VECTOR field `n`",
		"x SEARCH red VSIM @v $p":                                        "-SEARCH_PARAM_NOT_FOUND Parameter not found `p`",
		"x SEARCH @none:red VSIM @v $q":                                  "-SEARCH_SYNTAX Unknown field at offset 0 near none",
		"x SEARCH red SCORER none VSIM @v $q":                            "-SEARCH_QUERY_BAD No such scorer none",
		"x SEARCH red VSIM @v $q FILTER red=>{$weight:2}":                "-SEARCH_WEIGHT_NOT_ALLOWED Weight attributes are not allowed in FT.HYBRID VSIM FILTER",
		"x SEARCH red VSIM @v $q LOAD 1 @t GROUPBY 1 @none":              "-SEARCH_PROP_NOT_FOUND No such property `none`",
		"x SEARCH red VSIM @v $q KNN 2 K 1 YIELD_SCORE_AS n":             "-SEARCH_INDEX_EXISTS Property `n` already exists in schema",
		"x SEARCH red YIELD_SCORE_AS a VSIM @v $q YIELD_SCORE_AS a":      "-SEARCH_FIELD_DUP Property `a` specified more than once",
		"x SEARCH red VSIM @v $q FORMAT EXPAND":                          "-SEARCH_VALUE_BAD EXPAND format is only supported with RESP3",
		"x SEARCH red VSIM @v $q FILTER 5 red POLICY ADHOC BATCH_SIZE 4": "-SEARCH_ADHOC_BATCH_SIZE_IRRELEVANT 'batch size' is irrelevant for the selected policy" + parameters,
		"x SEARCH red VSIM @v $q KNN 4 K 1 EF_RUNTIME 5":                 "-SEARCH_OPTION_INVALID Invalid option" + parameters,
	} {
		require.Equal(t, want, send("FT.HYBRID "+words+" PARAMS 2 q", vector(1, 1)), words)
	}
	vectorQuery := strings.Fields("FT.HYBRID x SEARCH red VSIM @v $q PARAMS 2 q")
	vectorQuery[3] = "@v:[VECTOR_RANGE 1 $q]"
	require.Equal(t, "-SEARCH_VECTOR_NOT_ALLOWED Vector expressions are not allowed in FT.HYBRID SEARCH", send("", append(vectorQuery, vector(1, 1))...))
	require.Contains(t, send("FT.HYBRID x SEARCH red VSIM @v $q PARAMS 2 q", "short"), "query vector blob size (5) does not match")
}

func TestProfileOfHybrid(t *testing.T) {
	send := hybridIndex(t)
	reply := send("FT.PROFILE x HYBRID QUERY SEARCH red VERBATIM")
	require.Equal(t, "-SEARCH_ARG_UNRECOGNIZED Unknown argument `VERBATIM` in SEARCH", reply)
	reply = send("FT.PROFILE x HYBRID QUERY SEARCH red VSIM @v $q KNN 2 K 1 PARAMS 2 q", vector(1.25, 0.25))
	for _, part := range []string{
		"*9 +total_results :2 +results *2 *4 __key d:2 ", "+execution_time … *4 +Shards *1 *4 +SEARCH *14 +Total profile time … ",
		"+Warning *1 +None +Iterators profile ",
		"+Type +Loader +Time … +Results processed :2 *6 +Type +Depleter +Time … +Results processed :2 +VSIM *14 ",
		"+Type +Vector Normalizer +Time … +Results processed :1 *6 +Type +Loader +Time … +Results processed :1 *6 +Type +Depleter ",
		"+Vector search mode +STANDARD_KNN ",
		"+Coordinator *4 +Warning *1 +None +Result processors profile *2 *6 +Type +Hybrid Merger +Time … +Results processed :2 *6 +Type +Sorter ",
	} {
		require.Contains(t, reply, part)
	}
	reply = send("FT.PROFILE x HYBRID QUERY SEARCH red VSIM @v $q RANGE 2 RADIUS 5 PARAMS 2 q", vector(1, 1))
	require.Contains(t, reply, "+Type +METRIC SORTED BY SCORE - VECTOR DISTANCE ")
	send("HELLO 3")
	require.Contains(t, send("FT.PROFILE x HYBRID QUERY SEARCH red VSIM @v $q PARAMS 2 q", vector(1.25, 0.25)), "%5 +total_results :4 ")
}

// WITHCURSOR does not fuse the searches: each gets a cursor.
func TestCursorsOfHybrid(t *testing.T) {
	send := hybridIndex(t)
	reply := send("FT.HYBRID x SEARCH red VSIM @v $q WITHCURSOR COUNT 1 PARAMS 2 q", vector(1.25, 0.25))
	ids := regexp.MustCompile(`^\*6 \+SEARCH :(\d+) \+VSIM :(\d+) \+warnings \*0 ?$`).FindStringSubmatch(reply)
	require.Len(t, ids, 3, reply)
	for _, id := range ids[1:] {
		page := send("FT.CURSOR READ x " + id)
		require.Regexp(t, `^\*2 \*2 :1 \*4 __key d:\d __score [0-9.]+ :`+id+" ?$", page)
		require.Equal(t, "+OK", strings.TrimSpace(send("FT.CURSOR DEL x "+id)))
	}
	// The rest of a pipeline does not count, whatever it would cost.
	reply = send("FT.HYBRID x SEARCH red VSIM @v $q LOAD 1 @__key FILTER 1==1 WITHCURSOR COUNT 1 PARAMS 2 q", vector(1.25, 0.25))
	ids = regexp.MustCompile(`^\*6 \+SEARCH :(\d+) `).FindStringSubmatch(reply)
	require.Len(t, ids, 2, reply)
	require.Regexp(t, `^\*2 \*2 :1 \*4 __key d:\d __score [0-9.]+ :`+ids[1]+" ?$", send("FT.CURSOR READ x "+ids[1]))
	require.Contains(t, send("FT.PROFILE x HYBRID QUERY SEARCH red VSIM @v $q WITHCURSOR PARAMS 2 q", vector(1, 1)), "-FT.PROFILE does not support cursor")
}
