package args

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestWholeNumbers(t *testing.T) {
	for s, want := range map[string]int64{"5": 5, "3.0": 3, "1e2": 100, "-7": -7, "+4": 4, " 8": 8, "": 0} {
		r := New(s)
		n, problem := r.Int(math.MinInt64, math.MaxInt64)
		require.Equal(t, None, problem, s)
		require.Equal(t, want, n, s)
		require.True(t, r.Done())
	}
	for _, s := range []string{" ", "x", "1.5", "5x", "inf", "nan", "1e30", "9223372036854775807"} {
		r := New(s)
		_, problem := r.Int(0, 10)
		require.Equal(t, NotConvertible, problem, s)
		require.Equal(t, 0, r.At())
	}
	r := New("-1", "1.9")
	_, problem := r.Count()
	require.Equal(t, OutOfBounds, problem)
	_, _ = r.Next()
	n, problem := r.IntOf(0, 10)
	require.Equal(t, None, problem)
	require.Equal(t, int64(1), n)
	_, problem = r.Int(0, 1)
	require.Equal(t, Missing, problem)
}

func TestListsAreCounted(t *testing.T) {
	r := New("2", "a", "b", "c")
	list, problem := r.List()
	require.Equal(t, None, problem)
	require.Equal(t, []string{"a", "b"}, list.Rest())
	require.Equal(t, []string{"c"}, r.Rest())
	for _, words := range [][]string{{"3", "a"}, {}} {
		r = New(words...)
		_, problem = r.List()
		require.EqualError(t, problem.For("X"), "SEARCH_PARSE_ARGS Bad arguments for X: Expected an argument, but none provided")
	}
	r = New("a")
	_, problem = r.List()
	require.EqualError(t, problem.For("X"), "SEARCH_PARSE_ARGS Bad arguments for X: Could not convert argument to expected type")
	require.NoError(t, None.For("X"))
}

func TestKeywordsHaveAnyCase(t *testing.T) {
	r := New("limit", "foo")
	require.True(t, r.Match("LIMIT"))
	require.False(t, r.Match("LIMIT"))
	require.EqualError(t, r.Unknown("<main>"), "SEARCH_ARG_UNRECOGNIZED Unknown argument `foo` at position 1 for <main>")
}

func TestDoubles(t *testing.T) {
	r := New("0.5", "x")
	f, problem := r.Double()
	require.Equal(t, None, problem)
	require.Equal(t, 0.5, f)
	_, problem = r.Double()
	require.Equal(t, NotConvertible, problem)
}
