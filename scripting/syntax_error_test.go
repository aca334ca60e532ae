package scripting

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// The transcripts have many more, recorded from Redis; here are those on which the reading of the source depends.
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
		"x = 3 y = 4z":                      "1: malformed number near '4z'", // which the parser takes for two tokens
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

func TestLongSourcesAreNotReadAgain(t *testing.T) {
	source := strings.Repeat("x = 1\n", maxExplained)
	_, err := compile(source+"if x the", "name")
	require.EqualError(t, err, "name:65537: unexpected symbol near 'the'")
}

// Whatever the source is, the message has a line of it and a token.
func TestEveryMessageOfTheParserIsWhole(t *testing.T) {
	words := []string{"and", "break", "do", "else", "elseif", "end", "for", "function", "if", "in", "local", "not", "repeat", "return", "then", "until", "while",
		"x", "1", "'a'", "'", "[[", "]]", "--[[", "--", "(", ")", "[", "]", "{", "}", "=", "==", ",", ";", ".", ":", "-", "..", "...", "~", "\n", "\r", "\\", "\x00", "\xff", "0x", "1e", "goto", "::"}
	rapid.Check(t, func(t *rapid.T) {
		source := strings.Join(rapid.SliceOfN(rapid.SampledFrom(words), 0, 20).Draw(t, "words"), rapid.SampledFrom([]string{"", " "}).Draw(t, "between"))
		if _, err := compile(source, "name"); err != nil {
			require.Regexp(t, `(?s)^name:[1-9][0-9]*: [^ ].*`, err.Error())
			require.NotRegexp(t, "runtime error", err.Error())
		}
	})
}
