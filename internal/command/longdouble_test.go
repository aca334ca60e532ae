package command

import (
	"math/big"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/atomredis/atomredis/internal/testing/testseed"
)

func TestLongDoublesAreReadAndPrintedAsOnX86(t *testing.T) {
	for text, want := range map[string]string{
		"1": "1", "+1": "1", "1.": "1", ".5": "0.5", "-0": "0", "3.0e3": "3000", "0x10": "16", "0x1.8": "1.5",
		"0X1P-2": "0.25",
		"0x1e5":  "485", "1e-5": "0.00001", "0.1": "0.1",
		"12345678901234567890.5":  "12345678901234567890", // half way between two numbers, rounded to even
		"0.00000000000000001":     "0.00000000000000001",
		"-0.000000000000000001":   "0",
		"1e30":                    "1000000000000000000024696061952",
		"0e99999999999999999999":  "0",
		"2e-4951":                 "0", // rounded to the smallest number, not to 0
		strings.Repeat("0", 5119): "0",
	} {
		x, ok := ParseLongDouble([]byte(text))
		require.True(t, ok, text)
		require.Equal(t, want, string(AppendLongDouble(nil, x)), text)
	}
}

func TestOtherTextsAreNoLongDoubles(t *testing.T) {
	for _, text := range []string{"", " ", " 1", "1 ", "nan", "NAN", "nan(1)", "1e5000", "-1e5000", "1e-5000",
		"1.5e-4951", "1.2e4932",
		"1.1897314953572317652e4932", "1e99999999999999999999", ".", "-", "+-1", "1e", "1e+", "1_0", "0b1", "0o7", "0x",
		"0x.", "0x.p1", "0x1p",
		"1p3", "1d", "1.2.3", "1\x00", "infinit", "infinityy", strings.Repeat("0", 5120)} {
		_, ok := ParseLongDouble([]byte(text))
		require.False(t, ok, "%.40q", text)
	}
}

func TestSumsThatAreNotFiniteAreRefused(t *testing.T) {
	parse := func(text string) *big.Float {
		x, ok := ParseLongDouble([]byte(text))
		require.True(t, ok)
		return x
	}
	for _, terms := range [][2]string{{"inf", "1"}, {"1", "-INF"}, {"inf", "-infinity"}, {"+inf", "inf"},
		{"1e4932", "1e4932"}} {
		_, ok := AddLongDouble(parse(terms[0]), parse(terms[1]))
		require.False(t, ok, terms)
	}
	sum, ok := AddLongDouble(parse("1e4932"), parse("-1e4932"))
	require.True(t, ok)
	require.Equal(t, "0", string(AppendLongDouble(nil, sum)))
}

func TestDoublesAreLongDoublesAndPrintedToTheNearestDecimal(t *testing.T) {
	halfOfLastDecimal := big.NewRat(1, 2e17)
	testseed.Check(t, func(t *rapid.T) {
		f := rapid.Float64Range(-1e300, 1e300).Draw(t, "f")
		x, ok := ParseLongDouble([]byte(strconv.FormatFloat(f, 'x', -1, 64)))
		require.True(t, ok)
		got, _ := x.Float64()
		require.Equal(t, f, got)
		printed, ok := new(big.Rat).SetString(string(AppendLongDouble(nil, x)))
		require.True(t, ok)
		exact, _ := x.Rat(nil)
		off := printed.Sub(printed, exact)
		require.LessOrEqual(t, off.Abs(off).Cmp(halfOfLastDecimal), 0)
	})
}

func TestNoTextMakesTheParserPanic(t *testing.T) {
	testseed.Check(t, func(t *rapid.T) {
		text := rapid.StringMatching(`[-+]?(0[xX])?[0-9a-f.]{0,30}([eEpP][-+]?[0-9]{0,20})?`).Draw(t, "text")
		if x, ok := ParseLongDouble([]byte(text)); ok {
			require.NotEmpty(t, AppendLongDouble(nil, x))
		}
	})
}
