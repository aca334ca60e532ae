package aggregate_test

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/atomredis/atomredis/internal/search/aggregate"
	"github.com/atomredis/atomredis/internal/search/args"
	"github.com/atomredis/atomredis/internal/search/request"
	"github.com/atomredis/atomredis/internal/search/value"
	"github.com/atomredis/atomredis/internal/testing/testseed"
)

func random() *rand.Rand { return rand.New(rand.NewPCG(1, 2)) }

// table is an index whose documents are rows of values: n, m and s are sortable, u is not; s is normalized, so it is not exact.
type table struct {
	rows   []map[string]value.Value
	gone   map[int]bool // documents that are no longer there
	loads  int
	inputs []aggregate.Column
	at     int
}

func (x *table) Field(name string) (aggregate.Field, bool) {
	switch name {
	case "n", "m":
		return aggregate.Field{Path: name, Sortable: true, Exact: true}, true
	case "s":
		return aggregate.Field{Path: "s", Sortable: true}, true
	case "u":
		return aggregate.Field{Path: "u"}, true
	case "renamed":
		return aggregate.Field{Path: "path"}, true
	}
	return aggregate.Field{}, false
}

func (x *table) Next(r *aggregate.Row) (bool, error) {
	if x.at == len(x.rows) {
		return false, nil
	}
	r.Doc, r.Ref = uint64(x.at+1), x.at
	for _, c := range x.inputs {
		v := x.rows[x.at][c.Field]
		if c.Field == "s" && v.Kind() == value.String {
			v = value.Str(strings.ToLower(v.Text()))
		}
		r.Set(c.Slot, v)
	}
	x.at++
	return true, nil
}

func (x *table) Load(r *aggregate.Row, fields []aggregate.Column) (bool, error) {
	x.loads++
	for _, c := range fields {
		if c.Path == "__key" {
			r.Set(c.Slot, value.Str("k"+strconv.Itoa(r.Ref.(int))))
		} else if v := x.rows[r.Ref.(int)][c.Path]; !v.IsAbsent() {
			r.Set(c.Slot, v)
		}
	}
	return !x.gone[r.Ref.(int)], nil
}

func (x *table) LoadAll(r *aggregate.Row, put func(string, value.Value)) (bool, error) {
	for _, name := range []string{"n", "m", "s", "u", "path"} {
		if v, ok := x.rows[r.Ref.(int)][name]; ok {
			put(name, v)
		}
	}
	return !x.gone[r.Ref.(int)], nil
}

// plan reads steps.
func plan(t require.TestingT, steps string) *aggregate.Plan {
	q, err := request.Aggregate(append([]string{"*"}, strings.Fields(steps)...), request.Config{MaxSearch: 1e6, MaxAggregate: math.MaxInt32})
	require.NoError(t, err)
	return &q.Plan
}

// run prints the rows of a pipeline over a table.
func run(x *table, p *aggregate.Pipeline) (rows []string, err error) {
	x.at, x.inputs = 0, p.Inputs()
	p.Start(x, x, nil)
	return rest(p)
}

// rest prints the rows that are left.
func rest(p *aggregate.Pipeline) (rows []string, err error) {
	for {
		r, err := p.Next()
		if err != nil || r == nil {
			return rows, err
		}
		var b strings.Builder
		for _, c := range p.Columns() {
			if v := r.Get(c.Slot); !v.IsAbsent() {
				fmt.Fprintf(&b, " %s=%s", c.Name, printed(v))
			}
		}
		rows = append(rows, strings.TrimSpace(b.String()))
	}
}

func printed(v value.Value) string {
	switch v.Kind() {
	case value.Null:
		return "nil"
	case value.Array:
		var items []string
		for _, item := range v.Items() {
			items = append(items, printed(item))
		}
		return "[" + strings.Join(items, " ") + "]"
	case value.Map:
		var items []string
		for key, item := range v.Pairs() {
			items = append(items, key.Text()+":"+printed(item))
		}
		return "{" + strings.Join(items, " ") + "}"
	}
	return v.ToText()
}

func num(f float64) value.Value { return value.Num(f) }
func str(s string) value.Value  { return value.Str(s) }

// sample is a table of five rows.
func sample() *table {
	return &table{rows: []map[string]value.Value{
		{"n": num(1), "m": num(10), "s": str("Red"), "u": str("x"), "path": str("p0")},
		{"n": num(2), "m": num(20), "s": str("Blue"), "u": str("y")},
		{"n": num(3), "s": str("red"), "u": str("x")},
		{"n": num(4), "m": num(40), "u": str("z")},
		{"n": num(5), "m": num(20), "s": str("Blue")},
	}}
}

func TestSteps(t *testing.T) {
	for _, c := range []struct {
		steps string
		want  []string
	}{
		// Names: normalized sort values until a LOAD, which replaces them in their place.
		{"SORTBY 1 @s LIMIT 0 2", []string{"s=blue", "s=blue"}},
		{"LOAD 1 @s SORTBY 1 @n LIMIT 0 2", []string{"s=Red n=1", "s=Blue n=2"}},
		{"FILTER @n<2 APPLY upper(@s) AS v LOAD 1 s", []string{"n=1 s=Red v=RED"}},
		{"FILTER @n==1 APPLY @s AS before LOAD 2 s u", []string{"n=1 s=Red before=red u=x"}},
		{"FILTER @n==1 LOAD 3 @s AS t LOAD 1 @t", []string{"n=1 t=Red"}},
		{"FILTER @n==1 LOAD 3 @n AS t", []string{"n=1 t=1"}},
		{"FILTER @n==1 APPLY @n AS s LOAD 1 s", []string{"n=1 s=1"}},
		{"FILTER @n==1 APPLY 5 AS n APPLY @n AS k", []string{"n=5 k=5"}},
		{"FILTER @n==1 LOAD * APPLY @renamed AS v APPLY @u AS w", []string{"n=1 renamed=p0 v=p0 u=x w=x m=10 s=Red path=p0"}},
		{"LOAD 1 @__key SORTBY 2 @n DESC MAX 1", []string{"__key=k4 n=5"}},
		{"LOAD 1 renamed LIMIT 0 1", []string{"renamed=p0"}},
		// Order: absent values last in both directions, equal rows by document.
		{"SORTBY 1 @m LOAD 1 @__key", []string{"m=10 __key=k0", "m=20 __key=k1", "m=20 __key=k4", "m=40 __key=k3", "__key=k2"}},
		{"SORTBY 2 @m DESC LOAD 1 @__key", []string{"m=40 __key=k3", "m=20 __key=k4", "m=20 __key=k1", "m=10 __key=k0", "__key=k2"}},
		{"SORTBY 3 @m @n DESC MAX 3", []string{"m=10 n=1", "m=20 n=5", "m=20 n=2"}},
		{"SORTBY 1 @n LIMIT 1 2", []string{"n=2", "n=3"}},
		{"SORTBY 1 @n MAX 2 APPLY @n*-1 AS k SORTBY 1 @k", []string{"n=2 k=-2", "n=1 k=-1"}},
		{"LIMIT 1 2 LOAD 1 n", []string{"n=2", "n=3"}},
		{"LIMIT 0 0", nil},
		{"FILTER @n<0", nil},
		{"GROUPBY 0 REDUCE COUNT 0 AS c FILTER @c<0", nil},
		{"SORTBY 1 @n APPLY 1 AS one LIMIT 3 9", []string{"n=4 one=1", "n=5 one=1"}},
		// Groups.
		{"GROUPBY 1 @s REDUCE COUNT 0 AS c", []string{"s=red c=2", "s=blue c=2", "s=nil c=1"}},
		{"GROUPBY 2 @s @u REDUCE COUNT 0 AS c", []string{"s=red u=x c=2", "s=blue u=y c=1", "s=nil u=z c=1", "s=blue u=nil c=1"}},
		{"GROUPBY 1 @m", []string{"m=10", "m=20", "m=nil", "m=40"}},
		{"LOAD 1 s GROUPBY 1 @s", []string{"s=Red", "s=Blue", "s=red", "s=nil"}},
		{"GROUPBY 1 @s REDUCE TOLIST 1 @m AS l REDUCE FIRST_VALUE 3 @n BY @m AS f", []string{"s=red l=[10] f=1", "s=blue l=[20] f=2", "s=nil l=[40] f=4"}},
		{"GROUPBY 0 REDUCE SUM 1 @u REDUCE MIN 1 @m REDUCE MAX 1 m REDUCE AVG 1 @m AS a", []string{
			"__generated_aliassumu=nan __generated_aliasminm=10 __generated_aliasmaxm=40 a=22.5"}},
		{"GROUPBY 0 REDUCE COUNT_DISTINCT 1 @s AS d REDUCE COUNT_DISTINCTISH 1 @s AS e REDUCE STDDEV 1 @m AS v REDUCE QUANTILE 3 @n 0.5 1 AS q", []string{
			"d=2 e=2 v=12.5830573921 q=3"}},
		{"GROUPBY 1 @s REDUCE HLL 1 @n AS h GROUPBY 0 REDUCE HLL_SUM 1 @h AS sum REDUCE HLL_SUM 1 @s AS none", []string{"sum=5 none=0"}},
		{"GROUPBY 1 @s REDUCE COUNT 0 AS c GROUPBY 1 @c REDUCE COUNT 0 AS k REDUCE TOLIST 1 @s AS l SORTBY 1 @c", []string{
			"c=1 k=1 l=[nil]", "c=2 k=2 l=[red blue]"}},
		{"GROUPBY 0 REDUCE RANDOM_SAMPLE 2 @n 0 AS r", []string{"r=[]"}},
		// COLLECT.
		{"GROUPBY 1 @s REDUCE COLLECT 4 FIELDS 2 @n @m AS l", []string{"s=red l=[{n:1 m:10} {n:3}]", "s=blue l=[{n:2 m:20} {n:5 m:20}]", "s=nil l=[{n:4 m:40}]"}},
		{"GROUPBY 0 REDUCE COLLECT 10 FIELDS 1 @n SORTBY 2 @n DESC LIMIT 1 2 AS l", []string{"l=[{n:4} {n:3}]"}},
		{"GROUPBY 0 REDUCE COLLECT 4 FIELDS 1 @u DISTINCT AS l", []string{"l=[{u:x} {u:y} {u:z} {}]"}},
		{"GROUPBY 0 REDUCE COLLECT 8 FIELDS 1 @s SORTBY 2 @n DESC DISTINCT AS l", []string{"l=[{s:blue} {} {s:red}]"}},
		{"GROUPBY 0 REDUCE COLLECT 5 FIELDS * SORTBY 1 @m AS l", []string{"l=[{m:10} {m:20} {m:20} {m:40} {}]"}},
		{"GROUPBY 0 REDUCE COLLECT 6 FIELDS 1 @u LIMIT 1 2 AS l", []string{"l=[{u:y} {u:x}]"}},
	} {
		p, err := aggregate.Build(plan(t, c.steps), aggregate.Options{Schema: sample(), Rand: random()})
		require.NoError(t, err, c.steps)
		got, err := run(sample(), p)
		require.NoError(t, err, c.steps)
		require.Equal(t, c.want, got, c.steps)
	}
}

func TestErrorsOfBuilding(t *testing.T) {
	for steps, want := range map[string]string{
		"APPLY @u AS x":                                         "SEARCH_PROP_NOT_FOUND Property not loaded nor in pipeline: `u`",
		"FILTER @nope":                                          "SEARCH_PROP_NOT_FOUND Property not loaded nor in pipeline: `nope`",
		"LOAD 1 u GROUPBY 1 @u APPLY @n":                        "SEARCH_PROP_NOT_FOUND Property not loaded nor in pipeline: `n`",
		"SORTBY 1 @nope":                                        "SEARCH_PROP_NOT_FOUND Property `nope` not loaded nor in schema",
		"GROUPBY 1 @s SORTBY 1 @n":                              "SEARCH_PROP_NOT_FOUND Property `n` not loaded nor in schema",
		"GROUPBY 1 @nope":                                       "SEARCH_PROP_NOT_FOUND No such property `nope`",
		"GROUPBY 2 @s @s":                                       "SEARCH_FIELD_DUP Property `s` specified more than once",
		"GROUPBY 1 @s REDUCE COUNT 0 AS s":                      "SEARCH_FIELD_DUP Property `s` specified more than once",
		"GROUPBY 0 REDUCE foo 1 @s":                             "SEARCH_REDUCER_NOT_FOUND No such reducer: foo",
		"GROUPBY 0 REDUCE sum 1 @nope":                          "SEARCH_PROP_NOT_FOUND Property not loaded nor in pipeline: `nope`",
		"GROUPBY 0 REDUCE sum 0":                                "SEARCH_PARSE_ARGS Missing arguments for sum",
		"GROUPBY 0 REDUCE COUNT 1 @s":                           "SEARCH_ATTR_BAD Count accepts 0 values only",
		"GROUPBY 0 REDUCE QUANTILE 1 @n":                        "SEARCH_PARSE_ARGS Bad arguments for QUANTILE: Expected an argument, but none provided",
		"GROUPBY 0 REDUCE QUANTILE 2 @n -0.1":                   "SEARCH_PARSE_ARGS Percentage must be between 0.0 and 1.0",
		"GROUPBY 0 REDUCE QUANTILE 3 @n 0.1 0":                  "SEARCH_PARSE_ARGS Invalid resolution",
		"GROUPBY 0 REDUCE QUANTILE 3 @n 0.1 x":                  "SEARCH_PARSE_ARGS Bad arguments for <resolution>: Could not convert argument to expected type",
		"GROUPBY 0 REDUCE QUANTILE 4 @n 0.1 9 x":                "SEARCH_ARG_UNRECOGNIZED Unknown argument `x` at position 3 for QUANTILE",
		"GROUPBY 0 REDUCE RANDOM_SAMPLE 1 @n":                   "SEARCH_PARSE_ARGS Bad arguments for <sample size>: Expected an argument, but none provided",
		"GROUPBY 0 REDUCE RANDOM_SAMPLE 2 @n 1001":              "SEARCH_PARSE_ARGS Sample size too large",
		"GROUPBY 0 REDUCE FIRST_VALUE 2 @n BY":                  "SEARCH_PARSE_ARGS Missing arguments for FIRST_VALUE",
		"GROUPBY 0 REDUCE FIRST_VALUE 4 @n BY @m UP":            "SEARCH_ARG_UNRECOGNIZED Unknown argument `UP` at position 3 for FIRST_VALUE",
		"GROUPBY 1 @s LOAD 1 n":                                 "SEARCH_QUERY_BAD LOAD cannot be applied after projectors or reducers",
		"GROUPBY 0 REDUCE COLLECT 0":                            "SEARCH_PARSE_ARGS Bad arguments for COLLECT: FIELDS: Required positional argument missing or out of order",
		"GROUPBY 0 REDUCE COLLECT 1 FIELDS":                     "SEARCH_PARSE_ARGS Bad arguments for COLLECT: FIELDS: Expected an argument, but none provided",
		"GROUPBY 0 REDUCE COLLECT 2 FIELDS x":                   "SEARCH_PARSE_ARGS Expected number of fields or `*` after FIELDS",
		"GROUPBY 0 REDUCE COLLECT 2 FIELDS 0":                   "SEARCH_LIMIT_OVER FIELDS count must be in [1, 1025]",
		"GROUPBY 0 REDUCE COLLECT 3 FIELDS 2 @n":                "SEARCH_PARSE_ARGS Not enough arguments were provided based on argument count for FIELDS",
		"GROUPBY 0 REDUCE COLLECT 3 FIELDS 1 n":                 "SEARCH_PARSE_ARGS Missing prefix: name requires '@' prefix (n)",
		"GROUPBY 0 REDUCE COLLECT 3 FIELDS 1 @nope":             "SEARCH_PROP_NOT_FOUND Property not loaded nor in pipeline: `nope`",
		"GROUPBY 0 REDUCE COLLECT 4 FIELDS * SORTBY 0":          "SEARCH_PARSE_ARGS Bad arguments for COLLECT: SORTBY: Invalid argument count",
		"GROUPBY 0 REDUCE COLLECT 5 FIELDS * LIMIT 1 0":         "SEARCH_PARSE_ARGS LIMIT count must be a positive integer",
		"GROUPBY 0 REDUCE COLLECT 4 FIELDS * LIMIT 1":           "SEARCH_PARSE_ARGS Bad arguments for COLLECT: LIMIT: Not enough arguments were provided",
		"GROUPBY 0 REDUCE COLLECT 4 FIELDS * DISTINCT DISTINCT": "SEARCH_PARSE_ARGS Bad arguments for COLLECT: DISTINCT: Argument specified multiple times",
		"GROUPBY 0 REDUCE COLLECT 3 FIELDS * foo":               "SEARCH_PARSE_ARGS Bad arguments for COLLECT: foo: Unknown argument",
	} {
		_, err := aggregate.Build(plan(t, steps), aggregate.Options{Schema: sample()})
		require.EqualError(t, err, want, steps)
	}
	_, err := aggregate.Build(plan(t, "GROUPBY 0 REDUCE COUNT 0 REDUCE Sum 1 n"), aggregate.Options{Schema: sample(), Prefixed: true})
	require.EqualError(t, err, "SEARCH_PARSE_ARGS Missing prefix: name requires '@' prefix, JSON path require '$' prefix, got: n in Sum")
	_, err = aggregate.Build(&aggregate.Plan{}, aggregate.Options{Schema: sample(), Yields: []string{"d", "d"}})
	require.EqualError(t, err, "SEARCH_FIELD_DUP Property `d` specified more than once")
}

func TestArraysAreAGroupForEachElement(t *testing.T) {
	x := &table{rows: []map[string]value.Value{
		{"n": value.Strings([]string{"a", "b"}), "m": value.Strings([]string{"1", "2"})}, {"n": value.List(nil), "m": str("1")}, {"n": str("a"), "m": str("1")},
	}}
	p, err := aggregate.Build(plan(t, "GROUPBY 2 @n @m REDUCE COUNT 0 AS c REDUCE TOLIST 1 @n AS l"), aggregate.Options{Schema: x})
	require.NoError(t, err)
	got, err := run(x, p)
	require.NoError(t, err)
	require.Equal(t, []string{"n=a m=1 c=2 l=[a b]", "n=a m=2 c=1 l=[a b]", "n=b m=1 c=1 l=[a b]", "n=b m=2 c=1 l=[a b]", "n=nil m=1 c=1 l=[]"}, got)
}

func TestOnlyRowsOfTheResultAreLoaded(t *testing.T) {
	for steps, loads := range map[string]int{
		"LOAD 1 u SORTBY 1 @n LIMIT 0 2": 2, "LOAD 1 u LIMIT 1 2": 2, "LOAD 1 u SORTBY 1 @u LIMIT 0 2": 5, "LOAD 1 n SORTBY 1 @n": 0,
		"LOAD 1 u LIMIT 0 0": 0, "SORTBY 1 @u": 5, "GROUPBY 1 @u": 5, "GROUPBY 1 @s": 0,
	} {
		x := sample()
		p, err := aggregate.Build(plan(t, steps), aggregate.Options{Schema: x})
		require.NoError(t, err)
		_, err = run(x, p)
		require.NoError(t, err)
		require.Equal(t, loads, x.loads, steps)
		require.Equal(t, loads > 0, p.Loads(), steps)
	}
}

func TestDocumentsOfJSONAreLoadedAlthoughTheIndexHasValues(t *testing.T) {
	x := sample()
	p, err := aggregate.Build(plan(t, "LOAD 1 n LIMIT 0 1"), aggregate.Options{Schema: x, ForceLoad: true})
	require.NoError(t, err)
	got, err := run(x, p)
	require.NoError(t, err)
	require.Equal(t, []string{"n=1"}, got)
	require.Equal(t, 1, x.loads)
}

func TestRowsWithoutDocumentAreLeftOut(t *testing.T) {
	x := sample()
	x.gone = map[int]bool{0: true, 3: true}
	p, err := aggregate.Build(plan(t, "LOAD 1 @__key LOAD * APPLY @n AS k SORTBY 1 @k"), aggregate.Options{Schema: x})
	require.NoError(t, err)
	got, err := run(x, p)
	require.NoError(t, err)
	require.Len(t, got, 3)
	require.Equal(t, 3, p.Total())
}

func TestTotals(t *testing.T) {
	for steps, want := range map[string]int{
		"LIMIT 0 0": 5, "SORTBY 1 @n MAX 2": 5, "GROUPBY 1 @s": 3, "GROUPBY 1 @s FILTER exists(@s)": 2, "FILTER @n>2 SORTBY 1 @n MAX 1": 3,
		"GROUPBY 1 @s SORTBY 1 @s LIMIT 0 1": 3, "FILTER @n>2": 3, "FILTER @n>9": 0, "GROUPBY 1 @s LIMIT 0 0": 3, "SORTBY 1 @n GROUPBY 0": 1,
	} {
		p, err := aggregate.Build(plan(t, steps), aggregate.Options{Schema: sample()})
		require.NoError(t, err)
		_, err = run(sample(), p)
		require.NoError(t, err)
		require.Equal(t, want, p.Total(), steps)
	}
}

// Without WITHCOUNT the total counts the rows so far; with it all rows.
func TestTotalsOfLimits(t *testing.T) {
	for steps, want := range map[string][2]int{"": {5, 5}, "LIMIT 1 2": {3, 5}, "LIMIT 9 1": {5, 5}, "FILTER @n>2 LIMIT 0 1": {1, 3}, "LIMIT 0 1 APPLY 1 AS x LIMIT 0 1": {1, 5}, "SORTBY 0": {5, 5},
		"SORTBY 0 MAX 2": {2, 5}, "GROUPBY 1 @s LIMIT 0 1": {3, 3}} {
		for i, countAll := range []bool{false, true} {
			x := plan(t, steps)
			x.CountAll = countAll
			p, err := aggregate.Build(x, aggregate.Options{Schema: sample()})
			require.NoError(t, err)
			_, err = run(sample(), p)
			require.NoError(t, err)
			require.Equal(t, want[i], p.Total(), steps)
			p.Recount()
			require.Zero(t, p.Total())
		}
	}
}

// A cursor with WITHCOUNT has the total of the result from the first row on.
func TestTheWholeTotalComesWithTheFirstRow(t *testing.T) {
	for steps, want := range map[string]int{
		"": 5, "FILTER @n>2": 3, "LIMIT 1 2": 5, "SORTBY 1 @n": 5, "SORTBY 1 @n FILTER @n>2": 3, "GROUPBY 1 @s": 3,
	} {
		x := plan(t, steps)
		x.CountAll = true
		whole, err := aggregate.Build(x, aggregate.Options{Schema: sample()})
		require.NoError(t, err)
		rows, err := run(sample(), whole)
		require.NoError(t, err)

		x.Whole = true
		p, err := aggregate.Build(x, aggregate.Options{Schema: sample()})
		require.NoError(t, err)
		source := sample()
		source.inputs = p.Inputs()
		p.Start(source, source, nil)
		_, err = p.Next()
		require.NoError(t, err)
		require.Equal(t, want, p.Total(), steps)
		p, err = aggregate.Build(x, aggregate.Options{Schema: sample()})
		require.NoError(t, err)
		again, err := run(sample(), p)
		require.NoError(t, err)
		require.Equal(t, rows, again, steps)
	}
}

func TestLimits(t *testing.T) {
	for _, c := range []struct {
		steps string
		o     aggregate.Options
		want  string
	}{
		{"GROUPBY 1 @n", aggregate.Options{MaxGroups: 4}, "SEARCH_LIMIT_OVER Aggregate GROUPBY exceeded MAX_AGGREGATE_GROUPS limit of 4 groups"},
		{"GROUPBY 1 @n", aggregate.Options{MaxMemory: 300}, "SEARCH_LIMIT_OVER Aggregate GROUPBY exceeded the memory limit of 300 bytes"},
		{"GROUPBY 0 REDUCE TOLIST 1 @n", aggregate.Options{MaxMemory: 300}, "SEARCH_LIMIT_OVER Aggregate GROUPBY exceeded the memory limit of 300 bytes"},
		{"WITHCOUNT WITHCURSOR LOAD 1 @n", aggregate.Options{MaxMemory: 300}, "SEARCH_LIMIT_OVER Aggregate WITHCOUNT exceeded the memory limit of 300 bytes"},
		{"SORTBY 1 @n", aggregate.Options{MaxMemory: 300}, "SEARCH_LIMIT_OVER Aggregate SORTBY exceeded the memory limit of 300 bytes"},
	} {
		c.o.Schema = sample()
		p, err := aggregate.Build(plan(t, c.steps), c.o)
		require.NoError(t, err)
		_, err = run(sample(), p)
		require.EqualError(t, err, c.want)
	}
	p, err := aggregate.Build(plan(t, ""), aggregate.Options{Schema: sample(), MaxRows: 2})
	require.NoError(t, err)
	got, err := run(sample(), p)
	require.NoError(t, err)
	require.Len(t, got, 2)
}

// endless is a source without end.
type endless struct{ *table }

func (e endless) Next(r *aggregate.Row) (bool, error) {
	e.at = 0
	return e.table.Next(r)
}

func TestInterruptStopsOrFailsAPipeline(t *testing.T) {
	for _, steps := range []string{"", "FILTER 0", "SORTBY 1 @n", "GROUPBY 1 @n REDUCE COUNT 0 AS c", "LIMIT 0 0", "LOAD 1 u FILTER 0"} {
		p, err := aggregate.Build(plan(t, steps), aggregate.Options{Schema: sample()})
		require.NoError(t, err)
		calls := 0
		e := endless{sample()}
		p.Start(e, e, func() (bool, error) { calls++; return calls == 3, nil })
		_, err = rest(p)
		require.NoError(t, err)
		require.True(t, p.Stopped())

		p, err = aggregate.Build(plan(t, steps), aggregate.Options{Schema: sample()})
		require.NoError(t, err)
		late := errors.New("late")
		p.Start(e, e, func() (bool, error) { return false, late })
		_, err = rest(p)
		require.ErrorIs(t, err, late)
	}
}

func TestProfilesTimeEachStep(t *testing.T) {
	p, err := aggregate.Build(plan(t, "APPLY upper(@s) AS v"), aggregate.Options{Schema: sample()})
	require.NoError(t, err)
	x := sample()
	x.rows = x.rows[:2]
	now := time.Time{}
	p.Profile(func() time.Time { now = now.Add(time.Second); return now })
	x.inputs = p.Inputs()
	p.Start(x, x, nil)
	_, err = rest(p)
	require.NoError(t, err)
	require.Equal(t, []aggregate.Stage{{"Index", 3 * time.Second, 2}, {"Projector - Function upper", 6 * time.Second, 2}}, p.Stages())
}

func TestErrorsOfExpressionsEndAPipeline(t *testing.T) {
	p, err := aggregate.Build(plan(t, "APPLY @m*2"), aggregate.Options{Schema: sample()})
	require.NoError(t, err)
	got, err := run(sample(), p)
	require.EqualError(t, err, "SEARCH_VALUE_NOT_FOUND Could not find the value for a parameter name, consider using EXISTS if applicable for m")
	require.Len(t, got, 2)
}

// The result of shards is that of one server, for random rows and steps.
func TestShardsAgreeWithOneServer(t *testing.T) {
	steps := []string{
		"GROUPBY 1 @s REDUCE COUNT 0 AS c REDUCE SUM 1 @n AS sum REDUCE AVG 1 @n AS avg REDUCE MIN 1 @n AS lo REDUCE MAX 1 @n AS hi SORTBY 1 @s MAX 99",
		"GROUPBY 2 @s @m REDUCE COUNT_DISTINCT 1 @n AS d REDUCE COUNT_DISTINCTISH 1 @n AS e REDUCE HLL 1 @n AS h SORTBY 2 @s @m MAX 99",
		"GROUPBY 1 @m REDUCE TOLIST 1 @n AS l REDUCE FIRST_VALUE 4 @n BY @n DESC AS f REDUCE FIRST_VALUE 1 @s AS g",
		"GROUPBY 1 @m REDUCE COLLECT 4 FIELDS 2 @n @s AS l REDUCE COLLECT 7 FIELDS 1 @n SORTBY 1 @n DISTINCT AS k",
		"GROUPBY 1 @m REDUCE COLLECT 4 FIELDS 1 @n DISTINCT AS l REDUCE RANDOM_SAMPLE 2 @n 1000 AS r",
		"SORTBY 4 @n ASC @m ASC LIMIT 2 5 LOAD 1 u APPLY 1 AS one",
		"FILTER @n>0 LOAD 2 @u @s SORTBY 2 @m @n MAX 7", "LIMIT 2 7", "LOAD * FILTER exists(@s)", "LIMIT 0 0", "SORTBY 1 @n LIMIT 0 0",
		"SORTBY 1 @n MAX 6 GROUPBY 1 @s REDUCE COUNT 0 AS c", "APPLY @n AS k GROUPBY 1 @k SORTBY 1 @k MAX 99",
	}
	testseed.Check(t, func(t *rapid.T) {
		x := &table{}
		for range rapid.IntRange(0, 30).Draw(t, "rows") {
			row := map[string]value.Value{"n": num(float64(rapid.IntRange(-3, 3).Draw(t, "n"))), "u": str("u")}
			if s := rapid.SampledFrom([]string{"", "a", "B", "c"}).Draw(t, "s"); s != "" {
				row["s"] = str(s)
			}
			if m := rapid.IntRange(0, 3).Draw(t, "m"); m > 0 {
				row["m"] = num(float64(m))
			}
			x.rows = append(x.rows, row)
		}
		text := rapid.SampledFrom(steps).Draw(t, "steps")
		build := func() *aggregate.Pipeline {
			p, err := aggregate.Build(plan(t, text), aggregate.Options{Schema: x, Rand: random()})
			require.NoError(t, err)
			return p
		}
		p := build()
		want, err := run(x, p)
		require.NoError(t, err)

		var parts [][]byte
		for rows := range chunks(x.rows, rapid.IntRange(1, 4).Draw(t, "shards")) {
			shard := &table{rows: rows}
			s := build()
			shard.inputs = s.Inputs()
			s.StartShard(shard, shard, nil)
			for more := true; more; {
				var part []byte
				part, more, err = s.Part(nil, 3)
				require.NoError(t, err)
				parts = append(parts, part)
			}
		}
		merged := build()
		merged.StartMerge(func() ([]byte, error) {
			if len(parts) == 0 {
				return nil, nil
			}
			part := parts[0]
			parts = parts[1:]
			return part, nil
		}, nil)
		got, err := rest(merged)
		require.NoError(t, err)
		require.Equal(t, ordered(want), ordered(got))
		require.Equal(t, p.Total(), merged.Total())
	})
}

// ordered sorts the fields of each row: LOAD * has them in the order in which the first rows have them.
func ordered(rows []string) []string {
	for i, row := range rows {
		fields := strings.Fields(row)
		slices.Sort(fields)
		rows[i] = strings.Join(fields, " ")
	}
	return rows
}

// chunks yields n parts of a list.
func chunks[T any](list []T, n int) func(func([]T) bool) {
	return func(yield func([]T) bool) {
		for i := range n {
			if !yield(list[i*len(list)/n : (i+1)*len(list)/n]) {
				return
			}
		}
	}
}

func TestQuantilesAreWithinTheirError(t *testing.T) {
	r := testseed.Rand(t)
	x := &table{}
	var sorted []float64
	for range 20_000 {
		f := r.NormFloat64()
		sorted = append(sorted, f)
		x.rows = append(x.rows, map[string]value.Value{"n": num(f)})
	}
	slices.Sort(sorted)
	for _, part := range []float64{0.1, 0.5, 0.9, 0.99} {
		text := fmt.Sprintf("GROUPBY 0 REDUCE QUANTILE 2 @n %g AS q", part)
		p, err := aggregate.Build(plan(t, text), aggregate.Options{Schema: x})
		require.NoError(t, err)
		got, err := run(x, p)
		require.NoError(t, err)
		f, _ := strconv.ParseFloat(strings.TrimPrefix(got[0], "q="), 64)
		at, _ := slices.BinarySearch(sorted, f)
		require.InDelta(t, part, float64(at)/float64(len(sorted)), 0.03)
	}
}

func TestSamplesAreRandom(t *testing.T) {
	x := &table{}
	for i := range 100 {
		x.rows = append(x.rows, map[string]value.Value{"n": num(float64(i))})
	}
	seen := map[string]bool{}
	for seed := range uint64(50) {
		p, err := aggregate.Build(plan(t, "GROUPBY 0 REDUCE RANDOM_SAMPLE 2 @n 10 AS r"),
			aggregate.Options{Schema: x, Rand: rand.New(rand.NewPCG(seed, 1))})
		require.NoError(t, err)
		got, err := run(x, p)
		require.NoError(t, err)
		list := strings.Fields(strings.Trim(got[0], "r=[]"))
		require.Len(t, list, 10)
		require.Len(t, slices.Compact(slices.Sorted(slices.Values(list))), 10)
		for _, s := range list {
			seen[s] = true
		}
	}
	require.Greater(t, len(seen), 95)
}

func TestSketches(t *testing.T) {
	x := &table{}
	for i := range 3000 {
		x.rows = append(x.rows, map[string]value.Value{"n": num(float64(i % 1000)), "s": str(strconv.Itoa(i % 500))})
	}
	p, err := aggregate.Build(plan(t, "GROUPBY 0 REDUCE COUNT_DISTINCTISH 1 @n AS e REDUCE COUNT_DISTINCTISH 1 @s AS f"), aggregate.Options{Schema: x})
	require.NoError(t, err)
	x.inputs = p.Inputs()
	p.Start(x, x, nil)
	r, err := p.Next()
	require.NoError(t, err)
	require.InEpsilon(t, 1000, r.Get(0).Float(), 0.15)
	require.InEpsilon(t, 500, r.Get(1).Float(), 0.15)

	x = sample()
	p, err = aggregate.Build(plan(t, "GROUPBY 0 REDUCE HLL 1 @n AS h"), aggregate.Options{Schema: x})
	require.NoError(t, err)
	x.inputs = p.Inputs()
	p.Start(x, x, nil)
	r, err = p.Next()
	require.NoError(t, err)
	text := r.Get(0).Text()
	require.Equal(t, "\x00\x00\x00\x00\x08", text[:5])
	require.Len(t, text, 5+256)
}

func FuzzMerge(f *testing.F) {
	texts := []string{"GROUPBY 1 @s REDUCE COUNT 0 REDUCE STDDEV 1 @n REDUCE QUANTILE 2 @n 0.5 REDUCE COLLECT 3 FIELDS 1 @n", "SORTBY 1 @n", "LIMIT 1 2",
		"GROUPBY 0 REDUCE TOLIST 1 @n REDUCE FIRST_VALUE 3 @n BY @m REDUCE RANDOM_SAMPLE 2 @n 2 REDUCE COUNT_DISTINCT 1 @n REDUCE HLL 1 @n", ""}
	for i, text := range texts {
		x := sample()
		p, err := aggregate.Build(plan(f, text), aggregate.Options{Schema: x, Rand: random()})
		require.NoError(f, err)
		x.inputs = p.Inputs()
		p.StartShard(x, x, nil)
		part, _, err := p.Part(nil, 9)
		require.NoError(f, err)
		f.Add(i, part)
	}
	f.Fuzz(func(t *testing.T, i int, part []byte) {
		p, err := aggregate.Build(plan(t, texts[uint(i)%uint(len(texts))]), aggregate.Options{Schema: sample(), Rand: random()})
		require.NoError(t, err)
		given := false
		p.StartMerge(func() ([]byte, error) {
			if given {
				return nil, nil
			}
			given = true
			return part, nil
		}, nil)
		_, _ = rest(p)
	})
}

func FuzzBuild(f *testing.F) {
	f.Add("LOAD 2 @u @s APPLY upper(@s) AS v GROUPBY 1 @v REDUCE COUNT 0 AS c SORTBY 2 @c DESC LIMIT 0 3")
	f.Add("FILTER exists(@s) SORTBY 1 @n MAX 3 GROUPBY 0 REDUCE COLLECT 7 FIELDS 1 @n SORTBY 1 @n DISTINCT")
	f.Fuzz(func(t *testing.T, text string) {
		r := args.New(strings.Fields(text)...)
		var p aggregate.Plan
		for !r.Done() {
			found, err := p.ParseArrange(&r, false, aggregate.Max{Offset: 100, Num: 100})
			if err == nil && !found {
				found, err = p.ParseStep(&r)
			}
			if err != nil || !found {
				return
			}
		}
		x := sample()
		built, err := aggregate.Build(&p, aggregate.Options{Schema: x, Rand: random(), MaxGroups: 1000})
		if err == nil {
			_, _ = run(x, built)
		}
	})
}

// BenchmarkGroupTags is the row "GROUPBY of 500 tags over 5,400 documents" of the goals for speed.
func BenchmarkGroupTags(b *testing.B) {
	x := &table{}
	for i := range 5400 {
		x.rows = append(x.rows, map[string]value.Value{"s": str("tag" + strconv.Itoa(i%500)), "n": num(float64(i))})
	}
	for _, text := range []string{"GROUPBY 1 @s REDUCE COUNT 0 AS c", "GROUPBY 1 @s REDUCE COUNT 0 AS c REDUCE AVG 1 @n AS a SORTBY 2 @c DESC LIMIT 0 10"} {
		steps := plan(b, text)
		b.Run(text, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				p, err := aggregate.Build(steps, aggregate.Options{Schema: x})
				require.NoError(b, err)
				s := &quick{table: x}
				x.inputs = p.Inputs()
				p.Start(s, x, nil)
				for {
					r, err := p.Next()
					require.NoError(b, err)
					if r == nil {
						break
					}
				}
			}
		})
	}
}

// quick is a source without work of its own.
type quick struct {
	*table
	at int
}

func (q *quick) Next(r *aggregate.Row) (bool, error) {
	if q.at == len(q.rows) {
		return false, nil
	}
	for _, c := range q.inputs {
		r.Values[c.Slot] = q.rows[q.at][c.Field]
	}
	q.at++
	return true, nil
}
