package arrays

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/atomredis/atomredis/internal/testing/commandtest"
)

func TestBackreferences(t *testing.T) {
	for text, want := range map[string]bool{`(a)\1`: true, `\\1`: false, `[\1]`: false, `[]\1]`: false, `[^]\1]`: false,
		`[a]\9`: true, `\0`: false, `a\`: false} {
		require.Equal(t, want, hasBackreference([]byte(text)), text)
	}
}

// FuzzGrep reads arbitrary conditions, and compares NOCASE with a search in lower-case elements.
func FuzzGrep(f *testing.F) {
	for _, s := range []string{"a", "^a|b$", "[[:alpha:]]+", "(", `\x{1`, "a{3}", "*", "[^]]", `\Q`} {
		f.Add(s, "some Text")
	}
	f.Fuzz(func(t *testing.T, text, element string) {
		for _, kind := range []string{"exact", "match", "glob", "re"} {
			s := &search{nocase: true}
			fn, err := s.condition(kind, []byte(text))
			if err != "" {
				continue
			}
			s.conditions = append(s.conditions, fn)
			found := s.matches([]byte(element))
			if kind == "exact" && found != (strings.Map(lower, text) == strings.Map(lower, element)) && isASCII(text+element) {
				t.Fatalf("%q and %q: %t", text, element, found)
			}
		}
	})
}

func lower(r rune) rune {
	if 'A' <= r && r <= 'Z' {
		return r | 0x20
	}
	return r
}

func isASCII(s string) bool { return strings.IndexFunc(s, func(r rune) bool { return r >= 0x80 }) < 0 }

// A search with an expression of many instructions, on many long elements, is stopped.
func TestSearchesEnd(t *testing.T) {
	c := commandtest.New(t)
	for range 100 {
		c.Line(t, "ARINSERT a "+strings.Repeat("a", 20_000))
	}
	require.Equal(t, "-"+string(errWork)+"\r\n", c.Line(t, "ARGREP a - + RE ^b"+strings.Repeat("(c?){900}", 2)))
	require.Equal(t, "*1\r\n:0\r\n", c.Line(t, "ARGREP a - + RE a+$ LIMIT 1"))
}

// BenchmarkCommands runs commands on an array of 100,000 elements.
func BenchmarkCommands(b *testing.B) {
	c := commandtest.New(b)
	for i := range 100_000 {
		c.Line(b, fmt.Sprint("ARINSERT a value:", i))
	}
	for _, line := range []string{"ARGET a 77777", "ARSET a 77777 value:77777", "ARRING r 1000 value", "ARSCAN a 0 99999",
		"ARGREP a - + MATCH nope", "ARGREP a - + RE ^value:9.*8$", "AROP a 0 99999 USED"} {
		b.Run(strings.ReplaceAll(line, " ", "_"), func(b *testing.B) {
			for b.Loop() {
				c.Line(b, line)
			}
		})
	}
}
