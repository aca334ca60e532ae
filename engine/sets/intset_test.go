package sets

import (
	"math"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/atomredis/atomredis/internal/testing/testseed"
)

func TestParseIntTakesOnlyCanonicalIntegers(t *testing.T) {
	for _, v := range []int64{0, 1, -1, 9, 10, -10, math.MaxInt64, math.MaxInt64 - 7, math.MinInt64, math.MinInt64 + 8} {
		got, ok := parseInt(appendInt(nil, v))
		require.True(t, ok, v)
		require.Equal(t, v, got)
	}
	for _, s := range []string{
		"", "-", "+1", "-0", "00", "01", "-01", " 1", "1 ", "1a", "a", "1.0", "--1", "0x1", "1\x00",
		"9223372036854775808", "-9223372036854775809", "18446744073709551616", "99999999999999999999",
		"10000000000000000000", "111111111111111111111",
	} {
		_, ok := parseInt([]byte(s))
		require.False(t, ok, "%q", s)
	}
}

func TestParseIntAgreesWithTheStandardLibrary(t *testing.T) {
	testseed.Check(t, func(t *rapid.T) {
		s := rapid.OneOf(
			rapid.StringMatching(`-?[0-9]{0,21}`),
			rapid.Map(rapid.Int64(), func(v int64) string { return strconv.FormatInt(v, 10) }),
		).Draw(t, "text")
		want, err := strconv.ParseInt(s, 10, 64)
		wantOK := err == nil && strconv.FormatInt(want, 10) == s
		got, ok := parseInt([]byte(s))
		require.Equal(t, wantOK, ok)
		if ok {
			require.Equal(t, want, got)
		}
	})
}

func TestIntsetIsSortedAndAsWideAsItsLargestMember(t *testing.T) {
	testseed.Check(t, func(t *rapid.T) {
		var s intset
		model := map[int64]bool{}
		width := 0
		member := rapid.Custom(func(t *rapid.T) int64 {
			bits := rapid.SampledFrom([]int{4, 16, 17, 32, 33, 64}).Draw(t, "bits")
			return rapid.Int64().Draw(t, "value") >> (64 - bits)
		})
		t.Repeat(map[string]func(*rapid.T){
			"add": func(t *rapid.T) {
				v := member.Draw(t, "member")
				require.Equal(t, !model[v], s.add(v))
				model[v] = true
				width = max(width, widthOf(v))
			},
			"remove": func(t *rapid.T) {
				v := member.Draw(t, "member")
				require.Equal(t, model[v], s.remove(v))
				delete(model, v)
			},
			"": func(t *rapid.T) {
				require.Equal(t, len(model), s.len())
				require.Equal(t, width, s.width())
				for i := range s.len() {
					require.True(t, model[s.at(i)])
					require.True(t, i == 0 || s.at(i-1) < s.at(i), "not sorted")
				}
			},
		})
	})
}
