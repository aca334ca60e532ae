package expr

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/atomredis/atomredis/internal/search/query"
	"github.com/atomredis/atomredis/internal/search/value"
	"github.com/atomredis/atomredis/internal/testing/testseed"
)

// row is a Row of named values.
type row struct {
	names  []string
	values []value.Value
	terms  []string
}

func (r *row) Get(slot int) value.Value { return r.values[slot] }
func (r *row) MatchedTerms(n int) []string {
	return r.terms[:min(n, len(r.terms))]
}

func (r *row) slot(name string) (int, bool) {
	i := slices.Index(r.names, name)
	return i, i >= 0
}

// document is the row of most tests.
var document = &row{
	names:  []string{"title", "price", "place", "gone", "list", "a-b", "null"},
	values: []value.Value{value.Str("blue hammer"), value.Num(19.99), value.Str("-0.12,51.5"), {}, value.Strings([]string{"x"}), value.Num(7), value.Nil},
	terms:  []string{"hammer", "+hammer"},
}

// compute computes an expression for the document and prints the result.
func compute(text string) (string, error) {
	e, err := Parse(text)
	if err != nil {
		return "", err
	}
	if err := e.Bind(document.slot); err != nil {
		return "", err
	}
	v, err := e.Eval(document)
	return printed(v), err
}

func printed(v value.Value) string {
	switch v.Kind() {
	case value.Absent:
		return "absent"
	case value.Null:
		return "nil"
	case value.Array:
		var items []string
		for _, item := range v.Items() {
			items = append(items, printed(item))
		}
		return "[" + strings.Join(items, " ") + "]"
	}
	return v.ToText()
}

func TestValuesOfExpressions(t *testing.T) {
	for text, want := range map[string]string{
		`1 + 2 * 3`: "7", `(1 + 2) * 3`: "9", `2 ^ 3 ^ 2`: "512", `10 - 3 - 2`: "5", `-7 % 4`: "-3", `7.5 % 2`: "1.5", `1 / 0`: "inf",
		`0 - 1 / 0`: "-inf", `1 == 1 && 2 != 1`: "1", `!0`: "1", `!!3`: "3", `!@price == 1`: "1", `!(1 == 2)`: "1",
		`1 + !2 * 3`: "1", `'a' < 'b'`: "1", `'10' == 10`: "1", `'a' == 1`: "0", `NULL == NULL`: "1", `NULL < 1`: "1", `NULL == ''`: "0",
		`0/0 == 0/0`: "0", `0 / 0 < 1`: "0", `0 / 0 >= 1`: "0", `-inf < 0`: "1", `+inf`: "inf", `'it\'s'`: "it's", `"a\"b"`: `a"b`, `'a\x'`: `a\x`,
		`'a\\'`: `a\`, `'a\'`: `a\`, `@a\-b`: "7", `@title`: "blue hammer", `1;`: "1", `.5`: "5",
		`0 && @gone`: "0", `1 || @gone`: "1", `exists(@gone)`: "0", `exists(@price)`: "1", `exists(NULL)`: "0", `EXISTS(1)`: "1",
		`exists(case(1, @gone, 2))`: "0", `exists(case(0, @gone, 2))`: "1", `case('', 1, 2)`: "2", `case(1, 'ok', to_number('x'))`: "ok",
		`case(@list, 1, 2)`: "1", `matched_terms()`: "[hammer +hammer]", `matched_terms(1)`: "[hammer]", `matched_terms(0)`: "[hammer +hammer]",
		`lower('ABC Ä')`: "abc Ä", `upper(3)`: "nil", `substr('hello', -3, 2)`: "ll", `substr('hello', 1, -2)`: "el", `substr('hello', 9, 2)`: "",
		`substr('hello', -9, 2)`: "", `substr('hello', -5, 2)`: "he", `minute(1.5e18 + 30)`: "1500000000000000000", `substr('hello', 1, 1e30)`: "ello", `substr('hello', 0 / 0, 2)`: "he", `substr('hello', 4, -3)`: "",
		`contains('banana', 'ana')`: "2", `contains('abc', '')`: "4", `contains('', 'a')`: "0", `startswith('abc', 'ab')`: "1",
		`format('%s-%s', @title, @price)`: "blue hammer-19.99", `format('100%%')`: "100%", `format('%s', NULL)`: "(null)",
		`format('%s', 1, 2)`: "1", `format('%s|', @list)`: "|", `split('a,b, c,,d')`: "[a b c d]", `split('a-b;c', '-;')`: "[a b c]",
		`split('  a , b ', ',', '')`: "[  a   b ]", `split('xaxbx', ',', 'x')`: "[axb]", `split('')`: "[]", `split(' , ')`: "[]",
		`to_number(' 3.50')`: "3.5", `to_str(4.5)`: "4.5", `to_str(NULL)`: "", `strlen('é')`: "2", `abs('x')`: "nan", `sqrt('9')`: "3",
		`log(NULL)`: "nan", `abs(,-1)`: "1",
		`geodistance(1,2,3,4)`: "314371.93", `geodistance('1,2', '3 4')`: "314371.93", `geodistance('1,2', 3, 4)`: "314371.93",
		`geodistance(1, 2, '3,4')`: "314371.93", `geodistance(@place, '2.35,48.85')`: "343224.69", `geodistance(NULL, '1,2')`: "nan",
		`geodistance('1', NULL, 1, 1)`: "nan",
	} {
		got, err := compute(text)
		require.NoError(t, err, text)
		require.Equal(t, want, got, text)
	}
}

func TestErrorsOfExpressions(t *testing.T) {
	for text, want := range map[string]string{
		"0.1+0.2":                   "SEARCH_EXPR Syntax error at offset 3 near '+0.2'",
		"@price+1":                  "SEARCH_EXPR Syntax error at offset 6 near '+1'",
		"-@price":                   "SEARCH_EXPR Syntax error at offset 0 near ''",
		"":                          "SEARCH_EXPR Syntax error at offset 0 near ''",
		"1 +":                       "SEARCH_EXPR Syntax error at offset 2 near '1'",
		"@price >":                  "SEARCH_EXPR Syntax error at offset 7 near 'price'",
		"1 2":                       "SEARCH_EXPR Syntax error at offset 2 near '2'",
		"(1":                        "SEARCH_EXPR Syntax error at offset 1 near '1'",
		"1)":                        "SEARCH_EXPR Syntax error at offset 1 near '1'",
		"f(1,)":                     "SEARCH_EXPR Syntax error at offset 4 near '1'",
		"1 == 2 == 3":               "SEARCH_EXPR Syntax error at offset 7 near '2'",
		"1 < 2 > 3":                 "SEARCH_EXPR Syntax error at offset 6 near '2'",
		"'a' 'b'":                   "SEARCH_EXPR Syntax error at offset 4 near ''b''",
		"1 é":                       "SEARCH_EXPR Syntax error at offset 2 near '1'",
		"foo(1)":                    "SEARCH_EXPR Unknown function name 'foo'",
		"foo(1) + 1":                "SEARCH_EXPR Unknown function name 'foo'",
		"foo(1) 2":                  "SEARCH_EXPR Syntax error at offset 7 near '2': Unknown function name 'foo'",
		"foo":                       "SEARCH_EXPR Unknown symbol 'foo'",
		"inf":                       "SEARCH_EXPR Unknown symbol 'inf'",
		`"x`:                        "SEARCH_EXPR Unknown symbol 'x'",
		"'a\nb'":                    "SEARCH_EXPR Syntax error at offset 3 near 'b': Unknown symbol 'a'",
		"null":                      "SEARCH_EXPR Unknown symbol 'null'",
		"foo bar":                   "SEARCH_EXPR Syntax error at offset 4 near 'bar': Unknown symbol 'foo'",
		"upper()":                   "SEARCH_EXPR Function 'upper' expects 1 arguments, but got 0",
		"substr('a',1)":             "SEARCH_EXPR Function 'substr' expects 3 arguments, but got 2",
		"geodistance(1)":            "SEARCH_EXPR Function 'geodistance' expects between 2 and 4 arguments, but got 1",
		"@nope":                     "SEARCH_PROP_NOT_FOUND Property not loaded nor in pipeline: `nope`",
		"exists(@nope)":             "SEARCH_PROP_NOT_FOUND Property not loaded nor in pipeline: `nope`",
		"'a' + 1":                   "SEARCH_NUMERIC_VALUE_INVALID Invalid numeric value",
		"NULL * 1":                  "SEARCH_NUMERIC_VALUE_INVALID Invalid numeric value",
		"'a' < 1":                   "Error converting string",
		"@gone":                     "SEARCH_VALUE_NOT_FOUND Could not find the value for a parameter name, consider using EXISTS if applicable for gone",
		"!@gone":                    "SEARCH_VALUE_NOT_FOUND Could not find the value for a parameter name, consider using EXISTS if applicable for gone",
		"exists(upper(@gone))":      "SEARCH_VALUE_NOT_FOUND Could not find the value for a parameter name, consider using EXISTS if applicable for gone",
		"format('%')":               "SEARCH_PARSE_ARGS Bad format string!",
		"format('%d', 1)":           "SEARCH_PARSE_ARGS Unknown format specifier passed",
		"format('%s %s', 1)":        "SEARCH_PARSE_ARGS Not enough arguments for format",
		"format(1)":                 "SEARCH_PARSE_ARGS Invalid type (1) for argument 0 in function 'format'. VALIDATE_ARG__STRING(v, 0) was false.",
		"strlen(split('a'))":        "SEARCH_PARSE_ARGS Invalid type (5) for argument 0 in function 'strlen'. VALIDATE_ARG__STRING(v, 0) was false.",
		"substr(1, 1, 1)":           "SEARCH_PARSE_ARGS Invalid type for substr. Expected string",
		"substr('a', '1', 1)":       "SEARCH_PARSE_ARGS Invalid type (2) for argument 1 in function 'substr'. VALIDATE_ARG__TYPE(v, RSValueType_Number) was false.",
		"to_number('abc')":          "SEARCH_PARSE_ARGS to_number: cannot convert string 'abc'",
		"to_number(NULL)":           "SEARCH_PARSE_ARGS to_number: cannot convert string '(null)'",
		"geodistance('x', 'y')":     "SEARCH_PARSE_ARGS Invalid geo string: missing separator",
		"geodistance('1,x', '1,2')": "SEARCH_PARSE_ARGS Invalid geo string \"x\": invalid float literal",
		"geodistance('" + strings.Repeat("1", 200) + "', '1,2')": "SEARCH_PARSE_ARGS Geo string cannot be longer than 128 bytes",
	} {
		_, err := compute(text)
		require.EqualError(t, err, want, text)
		require.True(t, errors.As(err, new(*query.Error)), text)
	}
}

func TestFunctionsOfInstants(t *testing.T) {
	for text, want := range map[string]string{
		"timefmt(1000000000)": "2001-09-09T01:46:40Z", "timefmt('x')": "nil", "timefmt(-1)": "1969-12-31T23:59:59Z", "timefmt(0 / 0)": "nil",
		"timefmt(1e30)": "nil", "timefmt(0, '')": "nil", "timefmt(0, '%')": "%", "timefmt(0, '%Q')": "%Q",
		"timefmt(1000000000, '%a %A %b %B %C %d %e %D')":          "Sun Sunday Sep September 20 09  9 09/09/01",
		"timefmt(1000000000, '%g %G %h %H %I %j %k %l %m %M %p')": "01 2001 Sep 01 01 252  1  1 09 46 AM",
		"timefmt(1000000000, '%P %r %R %s %S %T %u %U %V %w %W')": "am 01:46:40 AM 01:46 1000000000 40 01:46:40 7 36 36 0 36",
		"timefmt(1000000000, '%x %X %y %Y %z %Z %c')":             "09/09/01 01:46:40 01 2001 +0000 GMT Sun Sep  9 01:46:40 2001",
		"timefmt(1000000000, '%-d %_d %05d %^a %Ey %Od')":         "9  9 %05d SUN 01 09",
		"timefmt(1609459200, '%U %W %V %G %g %j')":                "00 00 53 2020 20 001",
		"timefmt(1325376000, '%U %W %V %G %g %j')":                "01 00 52 2011 11 001",
		"parsetime('2001-09-09T01:46:40Z', '%FT%TZ')":             "1000000000",
		"parsetime('2001', '%Y-%m')":                              "nil",
		"parsetime('2001', '%Y')":                                 "978220800",
		"parsetime('2001 252', '%Y %j')":                          "999993600",
		"parsetime('9 sep 01 1:46 pm', '%d %b %y %I:%M %p')":      "1000043160",
		"parsetime('Sunday, September 9 2001', '%A, %B %d %Y')":   "999993600",
		"parsetime('20 01', '%C %y')":                             "978220800",
		"parsetime('1000000000 rest', '%s')":                      "1000000000",
		"parsetime('2001-09-09 +02:00', '%F %z')":                 "999993600",
		"parsetime('2001 36 0', '%Y %U %w')":                      "999993600",
		"parsetime('13', '%m')":                                   "nil",
		"minute(1000000000)":                                      "999999960", "hour(1000000000)": "999997200", "day(1000000000)": "999993600", "month(1000000000)": "999302400",
		"dayofmonth(1000000000)": "9", "dayofweek(1000000000)": "0", "dayofyear(1000000000)": "251", "monthofyear(1000000000)": "8",
		"year('1000000000')": "2001", "year(-1)": "nil", "hour('x')": "nil", "day(-5)": "nil", "dayofweek(0)": "4", "year(1e300)": "nil",
		"day(1000000000.9)": "999993600", "month(4102444800)": "4102444800",
	} {
		got, err := compute(text)
		require.NoError(t, err, text)
		require.Equal(t, want, got, text)
	}
}

func TestProfilesDescribeExpressions(t *testing.T) {
	for text, want := range map[string]string{
		"1.5": "Literal 1.5", "@a": "Property a", "1 + 2": "Operator +", "Upper('a')": "Function upper", "1 && 2": "Predicate &&", "!1": "Inverted",
	} {
		e, err := Parse(text)
		require.NoError(t, err)
		require.Equal(t, want, e.String())
	}
}

func TestNamesAreBoundInTheOrderOfTheText(t *testing.T) {
	e, err := Parse("upper(@b) == @a && !@c || matched_terms()")
	require.NoError(t, err)
	require.Equal(t, []string{"b", "a", "c"}, e.Names())
	require.True(t, e.UsesTerms())
	err = e.Bind(func(name string) (int, bool) { return 0, name == "b" })
	require.EqualError(t, err, "SEARCH_PROP_NOT_FOUND Property not loaded nor in pipeline: `a`")
}

func TestDeepExpressionsAreRefused(t *testing.T) {
	for _, deep := range []string{
		strings.Repeat("(", 1e6), strings.Repeat("!", 1e6), strings.Repeat("abs(", 1e6), strings.Repeat("1 ^ ", 1e6), strings.Repeat("1 + ", 1e6),
		"1" + strings.Repeat(" + 1", maxDepth),
	} {
		_, err := Parse(deep)
		require.ErrorIs(t, err, errTooDeep)
	}
	got, err := compute("0" + strings.Repeat(" + 1", maxDepth-2))
	require.NoError(t, err)
	require.Equal(t, fmt.Sprint(maxDepth-2), got)
}

// expressions are random expressions that are right, with their values.
func expressions(depth int) *rapid.Generator[string] {
	return rapid.Custom(func(t *rapid.T) string {
		if depth == 0 || rapid.Bool().Draw(t, "leaf") {
			return rapid.SampledFrom([]string{"1", "0", "2.5", "'a'", "'7'", "@price", "@title", "NULL", "@list"}).Draw(t, "leaf")
		}
		sub := func() string { return expressions(depth-1).Draw(t, "sub") }
		switch rapid.IntRange(0, 3).Draw(t, "kind") {
		case 0:
			return "!" + sub()
		case 1:
			return "(" + sub() + ")"
		case 2:
			return "case(" + sub() + "," + sub() + "," + sub() + ")"
		}
		return "(" + sub() + " " + rapid.SampledFrom([]string{"+", "-", "*", "/", "&&", "||", "==", "!=", "<", ">="}).Draw(t, "op") + " " + sub() + ")"
	})
}

func TestParenthesesAroundDoNotMatter(t *testing.T) {
	testseed.Check(t, func(t *rapid.T) {
		text := expressions(4).Draw(t, "text")
		plain, err := compute(text)
		inside, also := compute("((" + text + "))")
		require.Equal(t, fmt.Sprint(err), fmt.Sprint(also))
		require.Equal(t, plain, inside)
	})
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{"1 + 2", "upper(@title)", `'a\'b' < "c"`, "format('%s', NULL)", "timefmt(@price, '%c')", "case(1, 2, 3) ^ -4", "parsetime('1', '%y')"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		e, err := Parse(s)
		if err != nil {
			return
		}
		if err := e.Bind(func(string) (int, bool) { return len(s) % len(document.values), true }); err != nil {
			t.Fatal(err)
		}
		_, _ = e.Eval(document)
		_ = e.String()
	})
}

func TestHoldsKnowsWhatItCanCompute(t *testing.T) {
	for text, want := range map[string]bool{
		`@price > 1`: true, `@price == 2`: false, `@gone == 1`: false, `@gone != 1`: false, `!(@gone == 1)`: false, `!(@price == 2)`: true,
		`@gone == 1 || @price > 1`: true, `@price > 1 || @gone == 1`: true, `@gone == 1 && @price > 1`: false,
		`!(@gone == 1 && @price == 2)`: true, `!(@gone == 1 && @price > 1)`: false, `@title > 1`: false, `@gone == @gone`: false,
		`exists(@gone)`: false, `!exists(@gone)`: true, `@gone == 1 || @gone == 2`: false,
	} {
		e, err := Parse(text)
		require.NoError(t, err)
		require.NoError(t, e.Bind(document.slot))
		require.Equal(t, want, e.Holds(document), text)
	}
}
