package scripting

import (
	"fmt"
	"runtime/metrics"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/atomredis/atomredis/internal/testing/testseed"
)

// The transcripts, recorded from Redis, have many more.
func TestMessagesOfTheParser(t *testing.T) {
	for source, want := range map[string]string{
		"if x the":                          "1: 'then' expected near 'the'",
		"if x then\r\n\n\ry(":               "3: unexpected symbol near '<eof>'",
		"do\n-- a comment":                  "2: 'end' expected (to close 'do' at line 1) near '<eof>'",
		"do -- a comment":                   "1: 'end' expected near '<eof>'",
		"f(\n1\n2":                          "3: ')' expected (to close '(' at line 1) near '2'",
		"function f(\na\nb":                 "3: ')' expected near 'b'",
		"while a do for b in c do\nelse":    "2: 'end' expected (to close 'for' at line 1) near 'else'",
		"while a do for b in c do end\nend": "",
		"x 'a\\n\\65'":                      "",
		"x = 1 'a\\65'":                     "1: unexpected symbol near ''aA''",
		"x = 'a\\\nb\nc'":                   "2: unfinished string near ''a\nb'",
		"x = [==[ a ]]":                     "1: unfinished long string near '<eof>'",
		"x = 1 [==[ a\n]==]":                "2: unexpected symbol near '[==[ a\n]==]'",
		"x = 3 y = 4z":                      "1: malformed number near '4z'",
		"x = 3 y = 4z w":                    "1: malformed number near '4z'",
		"if x then\n  break\nend":           "3: no loop to break near 'end'",
		"break":                             "1: no loop to break near '<eof>'",
		"x = \x01":                          "1: unexpected symbol near 'char(1)'",
		"return {...}, function() return ... end": "1: cannot use '...' outside a vararg function near '...'",
	} {
		_, err := compile(source, "name")
		if want == "" {
			require.NoError(t, err, source)
		} else {
			require.EqualError(t, err, "name:"+want, source)
		}
	}
}

// Whatever the source is, the message contains a line of it and a token.
func TestEveryMessageOfTheParserIsWhole(t *testing.T) {
	words := []string{"and", "break", "do", "else", "elseif", "end", "for", "function", "if", "in", "local", "not",
		"repeat", "return", "then", "until", "while",
		"x", "1", "'a'", "'", "[[", "]]", "--[[", "--", "(", ")", "[", "]", "{", "}", "=", "==", ",", ";", ".", ":", "-",
		"..", "...", "~", "\n", "\r", "\\", "\x00", "\xff", "0x", "1e", "goto", "::"}
	testseed.Check(t, func(t *rapid.T) {
		source := strings.Join(rapid.SliceOfN(rapid.SampledFrom(words), 0, 20).Draw(t, "words"),
			rapid.SampledFrom([]string{"", " "}).Draw(t, "between"))
		if _, err := compile(source, "name"); err != nil {
			require.Regexp(t, `(?s)^name:[1-9][0-9]*: [^ ].*`, err.Error())
			require.NotRegexp(t, "runtime error", err.Error())
		}
	})
}

// Nesting is refused where Lua 5.1 refuses it, and chains have no such limit. The numbers are those of Redis.
func TestLimitsOfSyntax(t *testing.T) {
	repeat := strings.Repeat
	const levels = "chunk has too many syntax levels"
	numbered := func(n int, format string) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, format, i)
		}
		return b.String()
	}
	for _, c := range []struct {
		name   string
		source func(n int) string
		most   int    // the most accepted; 0 if there is no limit up to 10,000
		why    string // the error for more
	}{
		{"parentheses", func(n int) string { return "return " + repeat("(", n) + "1" + repeat(")", n) }, 198, levels},
		{"blocks", func(n int) string { return repeat("do ", n) + repeat("end ", n) }, 199, levels},
		{"functions", func(n int) string { return repeat("return function() ", n) + repeat("end ", n) }, 99, levels},
		{"concatenation", func(n int) string { return "local a = 'x' return " + repeat("a..", n) + "a" }, 198, levels},
		{"powers", func(n int) string { return "return " + repeat("1^", n) + "1" }, 198, levels},
		{"unary operators", func(n int) string { return "return " + repeat("not ", n) + "1" }, 198, levels},
		{"tables", func(n int) string { return "return " + repeat("{", n) + repeat("}", n) }, 199, levels},
		{"upvalues", func(n int) string {
			return numbered(n, "local a%d ") + "return function() return " + numbered(n, "a%d,") + "1 end"
		}, 60,
			"function at line 1 has more than 60 upvalues"},
		{"sum", func(n int) string { return "local a = 1 return " + repeat("a+", n) + "a" }, 0, ""},
		{"sum of constants", func(n int) string { return "return " + repeat("1-", n) + "1" }, 0, ""},
		{"and", func(n int) string { return "local a = 1 return " + repeat("a and ", n) + "a" }, 0, ""},
		{"or", func(n int) string { return "local a = 1 return " + repeat("a or nil or ", n/2) + "a" }, 0, ""},
		{"comparisons", func(n int) string { return "local a = 1 return " + repeat("a == ", n) + "a" }, 0, ""},
		{"members", func(n int) string { return "local a = {} a.a = a return a" + repeat(".a", n) }, 0, ""},
		{"calls", func(n int) string { return "local a a = function() return a end return a" + repeat("()", n) }, 0, ""},
		{"branches", func(n int) string {
			return "local x = 1 if x then return 1 " + repeat("elseif x then return 1 ", n/3) + "end"
		}, 0, ""},
		{"statements", func(n int) string { return "local a = 0 " + repeat("a = a + 1 ", n) + "return a" }, 0, ""},
	} {
		if c.most == 0 {
			_, err := compile(c.source(10_000), "name")
			require.NoError(t, err, c.name)
			continue
		}
		_, err := compile(c.source(c.most), "name")
		require.NoError(t, err, c.name)
		_, err = compile(c.source(c.most+1), "name")
		require.EqualError(t, err, "name:1: "+c.why, c.name)
	}
	for n, why := range map[int]string{200: "", 201: "name:1: main function has more than 200 local variables"} {
		_, err := parse(numbered(n, "local a%d "), "name")
		if why == "" {
			require.NoError(t, err)
		} else {
			require.EqualError(t, err, why)
		}
	}
}

// Long chains mean the same as short ones.
func TestLongChains(t *testing.T) {
	e := newEngine()
	for source, want := range map[string]string{
		"local a = 1 return " + strings.Repeat("a + ", 3000) +
			"a": ":3001\r\n",
		"local a = 1 return " + strings.Repeat("2 - ", 3000) +
			"a": ":-5997\r\n",
		"return #(" + strings.Repeat("1 ..", 190) +
			"1)": ":191\r\n",
		"local a, b = 'a', 'b' return " + strings.Repeat("a..b..", 60) +
			"1.5": "$123\r\n" + strings.Repeat("ab", 60) + "1.5\r\n",
		"local x = 3000 if x == 0 then return 0 " + strings.Repeat("elseif x == 1 then return 1 ", 3000) +
			"elseif x == 3000 then return 2 end": ":2\r\n",
		"return " + strings.Repeat("KEYS..", 60) + "1": "-ERR user_script:1: attempt to concatenate global 'KEYS' (a table value)",
		"local t = setmetatable({}, {__concat = function() return 'c' end}) return " + strings.Repeat("'a'..", 60) +
			"t": "$60\r\n" + strings.Repeat("a", 59) + "c\r\n",
		"return " + strings.Repeat("'a'..", 60) + "(nil)": "-ERR user_script:1: attempt to concatenate a nil value",
	} {
		require.Contains(t, run(t, e, source), want, source[:40])
	}
}

// Refusing a source costs little, and sources that the compiler would search for long are refused.
func TestHugeSourcesAreRefusedEarly(t *testing.T) {
	repeat := strings.Repeat
	const n = 1_000_000
	var constants strings.Builder
	for i := range n / 10 {
		fmt.Fprintf(&constants, "'%d',", i)
	}
	for source, why := range map[string]string{
		"return " + repeat("a..", n) + "a":                   "chunk has too many syntax levels",
		"return " + repeat("(", n):                           "chunk has too many syntax levels",
		"return " + repeat("{", n) + repeat("}", n):          "chunk has too many syntax levels",
		repeat("do ", n):                                     "chunk has too many syntax levels",
		"return " + repeat("a+", n) + "a":                    "chunk has too many syntax levels",
		"return a" + repeat(".a", n):                         "chunk has too many syntax levels",
		"return a" + repeat("()", n):                         "chunk has too many syntax levels",
		"if a then " + repeat("elseif a then ", n/5) + "end": "function or expression too complex",
		"return {" + constants.String() + "}":                "constant table overflow",
		"return " + repeat("a,", n) + "=":                    "unexpected symbol near '='",
	} {
		before := allocated()
		_, err := compile(source, "name")
		require.EqualError(t, err, "name:1: "+why)
		require.Less(t, allocated()-before, uint64(150<<20), source[:20])
	}
}

// allocated returns the number of bytes allocated so far.
func allocated() uint64 {
	sample := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}

func TestStackOverflowHasAPlace(t *testing.T) {
	e := newEngine()
	for source, want := range map[string]string{
		"local function f()\nreturn 1 + f() end return f()":                                                     "-ERR user_script:2: stack overflow script: ",
		"local function f() return 1 + f() end return select(2, pcall(f))":                                      "user_script:1: stack overflow\r\n",
		"local t = setmetatable({}, {__index = function(t, k)\nreturn t[k] end}) return t.x":                    "stack overflow script: ",
		"local function f() return 1 + f() end string.gsub('a', 'a', f)":                                        "-ERR user_script:1: stack overflow script: ",
		"local f = coroutine.wrap(function() local function f() return 1 + f() end return f() end)\nreturn f()": "stack overflow script: ",
	} {
		if testing.Short() && !strings.Contains(source, "coroutine") { // the others use one goroutine
			continue
		}
		reply := run(t, e, source)
		require.Contains(t, reply, want, source)
		require.NotContains(t, reply, "callstack", source)
	}
}

func TestLineBreaksAtTheEndOfAnErrorAreLeftOut(t *testing.T) {
	e := newEngine()
	for source, want := range map[string]string{
		`return redis.error_reply("x\r\n")`:  "-ERR x\r\n",
		`return {err="x y\r\n"}`:             "-x y\r\n",
		`return {err="A a\r\nb\r\n\r\n"}`:    "-A a  b\r\n",
		`return {err="\r\nx\r\n"}`:           "-  x\r\n",
		`return {err="\r\n"}`:                "-\r\n",
		`return redis.error_reply("-X a\n")`: "-X a\r\n",
	} {
		require.Equal(t, want, run(t, e, source), source)
	}
}

// Redis 7.0.15 crashes when a script raises a table without a text; the words are those of later releases.
func TestErrorsThatAreTablesHaveAText(t *testing.T) {
	e := newEngine()
	for source, want := range map[string]string{
		"error({})":             "-ERR unknown error script: ",
		"error({err=true})":     "-ERR unknown error script: ",
		"error({err={}})":       "-ERR unknown error script: ",
		"error({err='MY own'})": "-MY own script: ",
		"error({err=5})":        "-5 script: ",
		"error()":               "-ERR nil script: ",
	} {
		require.Contains(t, run(t, e, source), want, source)
	}
}
