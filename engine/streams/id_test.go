package streams

import (
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/atomredis/atomredis/internal/testing/testseed"
)

const maxU64 = math.MaxUint64

func TestIDsStepThroughTheWholeSpace(t *testing.T) {
	next, ok := ID{1, maxU64}.Next()
	require.True(t, ok)
	require.Equal(t, ID{2, 0}, next)
	prev, ok := ID{2, 0}.Prev()
	require.True(t, ok)
	require.Equal(t, ID{1, maxU64}, prev)
	_, ok = MaxID.Next()
	require.False(t, ok)
	_, ok = MinID.Prev()
	require.False(t, ok)
}

func TestIDsCompareByTimeThenNumber(t *testing.T) {
	require.Equal(t, -1, ID{1, 9}.Compare(ID{2, 0}))
	require.Equal(t, 1, ID{2, 1}.Compare(ID{2, 0}))
	require.Equal(t, 0, ID{2, 1}.Compare(ID{2, 1}))
}

// The expectations were checked against XADD, XDEL and XRANGE of a real Redis.
func TestParsingIsAsStrictAsRedis(t *testing.T) {
	for _, c := range []struct {
		text string
		want ID
		ok   bool
	}{
		{"5-6", ID{5, 6}, true},
		{"5", ID{5, 7}, true}, // the default below
		{"0-0", ID{}, true},
		{"18446744073709551615-18446744073709551615", MaxID, true},
		{"18446744073709551616-0", ID{}, false},
		{"1-18446744073709551616", ID{}, false},
		{"00018446744073709551615-01", ID{maxU64, 1}, true},
		{"+1-+2", ID{1, 2}, true},
		{" 1-\t2", ID{1, 2}, true},
		{"1 -2", ID{}, false},
		{"1-2 ", ID{}, false},
		{"", ID{}, false},
		{"-", ID{}, false},
		{"+", ID{}, false},
		{"5-", ID{}, false},
		{"-5", ID{}, false},
		{" -1", ID{}, false},
		{"1--1", ID{}, false},
		{"1--9223372036854775808", ID{}, false},
		{"1--9223372036854775809", ID{1, 9223372036854775807}, true},
		{"1--18446744073709551616", ID{}, false},
		{"1--0", ID{1, 0}, true},
		{"1--01", ID{1, maxU64}, true},
		{"1- -1", ID{1, maxU64}, true},
		{"1-+-1", ID{}, false},
		{"0x1-1", ID{}, false},
		{"1-2-3", ID{}, false},
		{"*", ID{}, false},
		{"5-*", ID{}, false},
		{"1-1\x00rest", ID{1, 1}, true},
		{"1\x00-5", ID{1, 7}, true},
		{strings.Repeat("0", 126) + "1", ID{1, 7}, true},
		{strings.Repeat("0", 127) + "1", ID{}, false},
	} {
		id, ok := ParseID([]byte(c.text), 7)
		require.Equal(t, c.ok, ok, "%q", c.text)
		require.Equal(t, c.want, id, "%q", c.text)
	}
}

func TestParseRangeIDKnowsTheEnds(t *testing.T) {
	for text, want := range map[string]ID{"-": MinID, "+": MaxID, "+\x00x": MaxID, "3": {3, maxU64}, "3-1": {3, 1}} {
		id, ok := ParseRangeID([]byte(text), maxU64)
		require.True(t, ok, "%q", text)
		require.Equal(t, want, id, "%q", text)
	}
	for _, text := range []string{"", "--", "++", "(1", "5-*"} {
		_, ok := ParseRangeID([]byte(text), 0)
		require.False(t, ok, "%q", text)
	}
}

func TestParseNewIDKnowsThePartialForm(t *testing.T) {
	id, auto, ok := ParseNewID([]byte("5-*"))
	require.True(t, ok && auto)
	require.Equal(t, ID{5, 0}, id)
	id, auto, ok = ParseNewID([]byte("5"))
	require.True(t, ok && !auto)
	require.Equal(t, ID{5, 0}, id)
	for _, text := range []string{"-", "+", "*-*", "5-**", "*-1", "-*"} {
		_, _, ok = ParseNewID([]byte(text))
		require.False(t, ok, "%q", text)
	}
}

func TestTheTextOfAnIDParsesBackToIt(t *testing.T) {
	testseed.Check(t, func(t *rapid.T) {
		id := ID{rapid.Uint64().Draw(t, "ms"), rapid.Uint64().Draw(t, "seq")}
		got, ok := ParseID(id.Append(nil), 0)
		require.True(t, ok)
		require.Equal(t, id, got)
	})
}

func FuzzParsingNeverPanics(f *testing.F) {
	f.Add([]byte("1--01"))
	f.Fuzz(func(t *testing.T, text []byte) {
		a, okA := ParseID(text, 3)
		b, okB := ParseRangeID(text, 3)
		if okA {
			require.True(t, okB)
			require.Equal(t, a, b)
		}
		ParseNewID(text)
	})
}
