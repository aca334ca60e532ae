package filter

import (
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const object = ` { "n" : 1, "s":"one", "b":true, "no":false, "l":[1, "x", [7], {"a":[1]}, null, 3e1], "z":null, "o":{"n":[1,"}"]},
	"e\u006ec\"": "a\"\u00e9\n", "f":-2.5, "t":"1", "empty":"", "none":[], "big":1e999, "a-b_1":5 }`

func TestExpressions(t *testing.T) {
	for expr, want := range map[string]bool{
		".n == 1": true, ".n==1": true, ".n != 1": false, ".n < 2 and .n > 0": true, ".n >= 1 && .n <= 1": true, ".n": true,
		".s == 'one'": true, `.s == "one"`: true, `.s == 'o\ne'`: true, ".s != 'one'": false, "'one' == .s": true,
		".b": true, ".b == 1": true, ".no": false, "not .no": true, "!.no": true, "! ! .b": true, "not not .b": true, "!(.n == 1)": false,
		".z == null": true, ".z != null": false, ".n == null": false, ".z": false, "null == null": true, "null": false,
		".missing": false, ".missing == null": false, "not .missing": false, ".n == 1 or .missing": false, ".": false,
		".o": false, "not .o": false, ".e": false, ".a-b_1 == 5": true, ".big > 1e308": true,
		".n + 1 == 2": true, ".n - 1 == 0": true, ".n -1 == 0": true, "1-1": false, "2-1": true, ".n * -1 == -1": true, "-.5 < 0": true,
		"6 / 2 / 3 == 1": true, "7 % 4 == 3": true, "-7 % 4 == -3": true, "2 ** 3 ** 2 == 512": true, "2 * 3 ** 2 == 18": true,
		"1 + 2 * 3 == 7": true, "(1 + 2) * 3 == 9": true, "1 / 0 > 1e308": true, "0 / 0 == 0 / 0": false, "5 % 0 == 5 % 0": false,
		"1 or 0 and 0": true, "(1 or 0) and 0": false, "1 == 1 and 2 == 2": true, "not 1 == 0": true, "not (1 == 0)": true,
		"1 in .l": true, "'x' in .l": true, "30 in .l": true, "7 in .l": false, "null in .l": true, "2 in .l": false, ".n in [1,2]": true,
		".n in []": false, "'1' in [1]": true, ".s in ['two', \"one\" ]": true, "null in [ null ]": true, "'ne' in .s": true,
		"1 in '123'": false, "1 in 1": false, "not 2 in [1]": false, "0 in ['x']": true, "not (2 in .l)": true, ".none": false, ".l": true, "[1]": true,
		"'' ": false, "'0'": true, ".empty": false, ".t == 1": true, ".t + 1 == 2": true, ".s > 'a'": true == false, ".s + 1 == 1": true,
		"'12abc' == 12": true, "' 12' == 12": true, "null < 1": true, "[1] == [1]": false, "NOT 0 AND 1": true,
		".n == 1.": true, ".5 == 0.5": true, "1e2 == 100": true,
	} {
		f, err := Parse(expr)
		require.NoError(t, err, expr)
		require.Equal(t, want, f.Match(object), expr)
		require.Equal(t, want, f.Match(object), "again: "+expr)
	}
}

func TestFieldsOfWhatIsNoJSON(t *testing.T) {
	for object, want := range map[string]bool{
		`{"n":1}`: true, `{"n":1`: true, `{"a":{"n":2},"n":1}`: true, `{"a":"\"n\":2","n":1}`: true, `{"n":1,"n":2}`: true,
		"": false, "broken{": false, "{": false, `{"n"`: false, `{"n":`: false, `{"n":}`: false, `{n:1}`: false, `[1]`: false, `{"a" 1,"n":1}`: false,
		`{"a":]},"n":1}`: false, `{"a":,"n":1}`: false, `{"a":"`: false, `{"n":"\u12"}`: false, `{"n":-}`: false, `{"a":[1,2,"n":1}`: false,
		`{"n":[1,}`: false, `{"n":"1\`: false, `{"n":tru}`: false, strings.Repeat(`{"a":`, 100_000) + `"n":1}`: false,
	} {
		f, err := Parse(".n == 1")
		require.NoError(t, err)
		require.Equal(t, want, f.Match(object), "%.50s", object)
	}
	f, err := Parse(`.e == "é😀"`)
	require.NoError(t, err)
	require.True(t, f.Match(`{"\u0065":"\u00E9\ud83d\ude00"}`))
	require.False(t, f.Match(`{"e":"\u00E9\ud83d"}`))
}

func TestFaults(t *testing.T) {
	for expr, near := range map[string]string{
		"": "", " ": " ", ".n ==": ".n ==", "== 1": "== 1", "(.n == 1": "(.n == 1", ".n == 1)": ".n == 1)", "n == 1": " == 1",
		".n === 1": " 1", ".n = 1": " 1", `.s == "open`: `.s == "open`, ".n in [1": ".n in [1", ".n 1": ".n 1", "1 2": "1 2",
		".n == $": "$", "true": "true", ".b == false": ".b == false", ".o.k == 1": ".o.k == 1", "1 not": "1 not", "()": "()", "(": "(",
		"1 and": "1 and", "not": "not", "[1,": "[1,", "[1 2]": "[1 2]", "[a]": "[a]", "[,]": "[,]", "1 (2)": "1 (2)", "&": "", ".n # 1": "# 1",
		"[[1]]": "[[1]]", "-": "-", "+1": "+1",
	} {
		_, err := Parse(expr)
		var fault *SyntaxError
		require.True(t, errors.As(err, &fault), expr)
		require.Equal(t, near, fault.Near, expr)
	}
}

func TestDeepExpressions(t *testing.T) {
	const n = 100_000
	for _, expr := range []string{strings.Repeat("(", n) + "1" + strings.Repeat(")", n), strings.Repeat("!", 2*n) + "1",
		strings.Repeat("not ", 2*n) + "1", "1" + strings.Repeat(" ** 1", n), "1" + strings.Repeat(" + 1", n)} {
		f, err := Parse(expr)
		require.NoError(t, err)
		require.True(t, f.Match("{}"))
	}
}

func FuzzFilter(f *testing.F) {
	for _, expr := range []string{".n == 1 and 'x' in .l", "(.n - 1) ** -2 < .5 or not .b", `.s in ["a",2,null]`, ". ! -1", "1.e5", "'\\"} {
		f.Add(expr, object)
	}
	f.Fuzz(func(t *testing.T, expr, object string) {
		filter, err := Parse(expr)
		if err != nil {
			if !strings.HasSuffix(expr, err.(*SyntaxError).Near) {
				t.Fatalf("%q: %v", expr, err)
			}
			return
		}
		first := filter.Match(object)
		if filter.Match(object) != first {
			t.Fatal("not the same again")
		}
	})
}

func BenchmarkMatch(b *testing.B) {
	f, err := Parse(".a-b_1 > 3 and .s == 'one'")
	require.NoError(b, err)
	b.ReportAllocs()
	for b.Loop() {
		f.Match(object)
	}
}
