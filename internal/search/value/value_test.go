package value

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/atomredis/atomredis/internal/testing/testseed"
)

func TestNumbersPrintWithTwelveDigits(t *testing.T) {
	for _, c := range []struct {
		f    float64
		want string
	}{
		{1.0 / 3, "0.333333333333"}, {1e20, "1e+20"}, {1e-7, "1e-07"}, {123456789012345678, "123456789012345680"},
		{0.1 + 0.2, "0.3"}, {6, "6"}, {-6, "-6"}, {1e18, "1000000000000000000"}, {math.Inf(1), "inf"}, {math.Inf(-1), "-inf"},
		{math.NaN(), "nan"}, {22.495, "22.495"}, {1e300, "1e+300"}, {math.Copysign(0, -1), "0"}, {9223372036854775808, "9.22337203685e+18"},
		{-9223372036854775808, "-9223372036854775808"}, {100000.5, "100000.5"}, {123456789012.25, "123456789012"}, {1234567890123.25, "1.23456789012e+12"},
		{0.00001234, "1.234e-05"}, {0.0001234, "0.0001234"},
	} {
		require.Equal(t, c.want, Num(c.f).ToText())
	}
}

func TestTextsThatAreNumbers(t *testing.T) {
	for s, want := range map[string]float64{
		"1": 1, "-1.5": -1.5, "+2": 2, ".5": .5, "5.": 5, "1e3": 1000, "inf": math.Inf(1), "-INF": math.Inf(-1), " 7": 7, "1e-400": 0,
	} {
		f, ok := ParseNumber(s)
		require.True(t, ok, s)
		require.Equal(t, want, f, s)
	}
	for _, s := range []string{"", " ", "x", "1 ", "1x", "0x10", "1_000", "1e400", "1,5", "--1"} {
		_, ok := ParseNumber(s)
		require.False(t, ok, s)
	}
	f, ok := ParseNumber("nan")
	require.True(t, ok && math.IsNaN(f))
}

func TestComparison(t *testing.T) {
	list := List([]Value{Num(1), Num(2)})
	for _, c := range []struct {
		a, b  Value
		order int
		equal bool
	}{
		{Num(1), Num(2), -1, false}, {Num(2), Num(2), 0, true}, {Str("a"), Str("b"), -1, false}, {Str("10"), Str("9"), -1, false},
		{Str("10"), Num(9), 1, false}, {Str("10"), Num(10), 0, true}, {Nil, Num(-5), -1, false}, {Nil, Nil, 0, true}, {Nil, Value{}, 0, true},
		{Str(""), Nil, 1, false}, {Num(math.NaN()), Num(math.Inf(-1)), -1, false}, {list, List([]Value{Num(1)}), 0, true},
		{List(nil), list, -1, false}, {list, Str("x"), -1, false}, {Str("ab"), Str("a"), 1, false},
	} {
		require.Equal(t, c.order, Order(c.a, c.b))
		require.Equal(t, -c.order, Order(c.b, c.a))
		require.Equal(t, c.equal, Equal(c.a, c.b))
		require.Equal(t, c.equal, Equal(c.b, c.a))
		got, err := Compare(c.a, c.b)
		require.NoError(t, err)
		require.Equal(t, c.order, got)
	}
	_, err := Compare(Str("a"), Num(1))
	require.EqualError(t, err, "Error converting string")
	_, err = Compare(Num(1), list)
	require.EqualError(t, err, "Error converting string")
	require.False(t, Equal(Str("a"), Num(1)))
	require.False(t, Equal(Num(math.NaN()), Num(math.NaN())))
}

func TestTruth(t *testing.T) {
	for _, v := range []Value{Num(1), Num(-1), Str("0"), List([]Value{Nil})} {
		require.True(t, v.Truth())
	}
	for _, v := range []Value{{}, Nil, Num(0), Str(""), List(nil), Dict(nil)} {
		require.False(t, v.Truth())
	}
}

func TestRepliesPrintTheFormsOfAValue(t *testing.T) {
	v := Num(1).WithForms(Str("[1,2]"), List([]Value{Num(1), Num(2)}))
	require.Equal(t, Str("[1,2]"), v.Shown(false))
	require.Equal(t, 2, v.Shown(true).Len())
	require.True(t, Equal(v, Num(1)))
	require.Equal(t, Num(1).AppendKey(nil), v.AppendKey(nil))
	require.Equal(t, Num(2), Num(2).Shown(true))
}

// values are random values.
func values(depth int) *rapid.Generator[Value] {
	return rapid.Custom(func(t *rapid.T) Value {
		kinds := 4
		if depth > 0 {
			kinds = 7
		}
		switch rapid.IntRange(0, kinds-1).Draw(t, "kind") {
		case 0:
			return Value{}
		case 1:
			return Nil
		case 2:
			return Num(float64(rapid.IntRange(-9, 9).Draw(t, "number")) / 2)
		case 3:
			return Str(rapid.StringN(0, 5, -1).Draw(t, "text"))
		case 4:
			return List(rapid.SliceOfN(values(depth-1), 1, 3).Draw(t, "items"))
		case 5:
			return Dict(rapid.SliceOfN(values(depth-1), 2, 2).Draw(t, "pairs"))
		}
		return values(0).Draw(t, "value").WithForms(values(depth-1).Draw(t, "shown"), values(depth-1).Draw(t, "expanded"))
	})
}

func TestDecodeReturnsWhatWasEncoded(t *testing.T) {
	testseed.Check(t, func(t *rapid.T) {
		v := values(3).Draw(t, "value")
		got, rest, err := Decode(append(v.Append(nil), "rest"...))
		require.NoError(t, err)
		require.Equal(t, "rest", string(rest))
		require.Equal(t, v.Append(nil), got.Append(nil))
		require.Equal(t, v.AppendKey(nil), got.AppendKey(nil))
	})
}

func TestKeysAreThoseOfEqualValues(t *testing.T) {
	testseed.Check(t, func(t *rapid.T) {
		a, b := values(2).Draw(t, "a"), values(2).Draw(t, "b")
		if string(a.AppendKey(nil)) == string(b.AppendKey(nil)) {
			require.Equal(t, 0, Order(a, b))
			require.Equal(t, a.Kind(), b.Kind())
		}
	})
	require.Equal(t, Num(0).AppendKey(nil), Num(math.Copysign(0, -1)).AppendKey(nil))
}

func FuzzDecode(f *testing.F) {
	f.Add(List([]Value{Num(1), Str("a"), Dict([]Value{Str("k"), Nil})}).Append(nil))
	f.Fuzz(func(t *testing.T, b []byte) {
		v, _, err := Decode(b)
		if err == nil {
			_ = v.Append(nil)
		}
	})
}
