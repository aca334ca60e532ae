package glob

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/atomredis/atomredis/internal/testing/testseed"
)

// The expectations were checked against KEYS (and COMMAND LIST FILTERBY
// PATTERN for nocase) of a real Redis.
func TestMatchAgreesWithRedis(t *testing.T) {
	for _, c := range []struct {
		pattern, s string
		nocase     bool
		want       bool
	}{
		// Literals and the empty ends.
		{"", "", false, true},
		{"", "a", false, false},
		{"a", "", false, false},
		{"abc", "abc", false, true},
		{"abc", "ab", false, false},
		{"ab", "abc", false, false},
		{"a\x00b", "a\x00b", false, true},
		// Stars.
		{"*", "", false, false},
		{"**", "", false, false},
		{"*", "a", false, true},
		{"**", "abc", false, true},
		{"a*", "a", false, true},
		{"a***", "a", false, true},
		{"*a", "ba", false, true},
		{"*a", "ab", false, false},
		{"a*c", "abcbc", false, true},
		{"a*c", "abcb", false, false},
		{"*ab*ab", "abab", false, true},
		{"*ab*ab", "aab", false, false},
		{"h*llo*", "heeeello", false, true},
		{"*?", "a", false, true},
		{"?*", "a", false, true},
		{"*??", "a", false, false},
		{"a*\\*", "ab*", false, true},
		{"a\\**", "a*", false, true},
		{"a\\**", "ab", false, false},
		// Question marks.
		{"?", "a", false, true},
		{"?", "", false, false},
		{"??", "a", false, false},
		{"h?llo", "hello", false, true},
		// Classes.
		{"[abc]", "b", false, true},
		{"[abc]", "d", false, false},
		{"[^abc]", "d", false, true},
		{"[^abc]", "b", false, false},
		{"[a^]", "^", false, true},
		{"[]", "]", false, false},
		{"[]a", "a", false, false},
		{"[]]", "]", false, false},
		{"[^]", "a", false, true},
		{"[^]a", "xa", false, true},
		{"[a-c]", "b", false, true},
		{"[c-a]", "b", false, true},
		{"[^a-c]", "b", false, false},
		{"[a-]", "-", false, false},
		{"[a-]", "_", false, true}, // a range from ']' to 'a', left open
		{"[a-", "-", false, true},
		{"[-a]", "-", false, true},
		{"[a-cx]", "x", false, true},
		{"[a-c-e]", "-", false, true},
		{"[a-c-e]", "d", false, false},
		{"[\\]]", "]", false, true},
		{"[\\-a]", "-", false, true},
		{"[a\\-c]", "b", false, false},
		{"[\\\\]", "\\", false, true},
		{"[*?]", "*", false, true},
		{"[*?]", "a", false, false},
		{"[a-\xff]", "b", false, false}, // bytes are signed: '\xff' is below 'a'
		{"[a-\xff]", "A", false, true},
		{"[\x80-\xff]", "\x90", false, true},
		// Classes that are not closed.
		{"[", "[", false, false},
		{"[^", "a", false, true},
		{"[a", "a", false, true},
		{"[a", "b", false, false},
		{"[^a", "b", false, true},
		{"[a\\", "\\", false, true},
		{"[a\\", "a", false, true},
		{"[\\]", "]", false, true},
		{"*[a", "ba", false, true},
		// Escapes.
		{"\\a", "a", false, true},
		{"\\*", "*", false, true},
		{"\\*", "a", false, false},
		{"\\?", "?", false, true},
		{"\\[a]", "[a]", false, true},
		{"\\\\", "\\", false, true},
		{"\\", "\\", false, true},
		{"a\\", "a\\", false, true},
		{"a\\", "a", false, false},
		// Case.
		{"GET", "get", false, false},
		{"GET", "get", true, true},
		{"\\G*", "get", true, true},
		{"[A-H]et", "get", true, true},
		{"[GS]et", "get", true, true},
		{"[\\GS]et", "get", true, false},
		{"[Z-a]et", "get", true, false}, // ordered first, folded second: empty
		{"[^G]et", "get", true, false},
	} {
		require.Equal(t, c.want, Match([]byte(c.pattern), []byte(c.s), c.nocase), "%q on %q", c.pattern, c.s)
	}
}

func TestManyStarsTakeBoundedTime(t *testing.T) {
	s := []byte(strings.Repeat("a", 20_000))
	require.False(t, Match([]byte(strings.Repeat("a*", 500)+"b"), s, false))
	require.False(t, Match([]byte(strings.Repeat("*a", 500)+"*b"), s, false))
	require.True(t, Match([]byte(strings.Repeat("*", 20_000)+"a"), s, false))
	require.True(t, Match([]byte(strings.Repeat("*a", maxStars)), s, false))
	require.False(t, Match([]byte(strings.Repeat("*a", maxStars+1)), s, false), "as in Redis")
}

// matchByRecursion is the definition, exponential in the number of stars.
func matchByRecursion(p, s []byte, nocase bool) bool {
	switch {
	case len(p) == 0:
		return len(s) == 0
	case p[0] == '*':
		return matchByRecursion(p[1:], s, nocase) || len(s) > 0 && matchByRecursion(p, s[1:], nocase)
	case len(s) == 0:
		return false
	}
	n, ok := matchOne(p, s[0], nocase)
	return ok && matchByRecursion(p[n:], s[1:], nocase)
}

func TestMatchEqualsItsRecursiveDefinition(t *testing.T) {
	testseed.Check(t, func(t *rapid.T) {
		pattern := []byte(rapid.StringOfN(rapid.RuneFrom([]rune("aabB-]^[\\**?")), 0, 10, -1).Draw(t, "pattern"))
		s := []byte(rapid.StringOfN(rapid.RuneFrom([]rune("aabB-]^[\\*")), 1, 8, -1).Draw(t, "s"))
		nocase := rapid.Bool().Draw(t, "nocase")
		want := matchByRecursion(pattern, s, nocase)
		require.Equal(t, want, Match(pattern, s, nocase), "%q on %q", pattern, s)
	})
}

func FuzzMatchNeverPanics(f *testing.F) {
	f.Add([]byte("a*[^b-\\"), []byte("abc"))
	f.Fuzz(func(t *testing.T, pattern, s []byte) {
		Match(pattern, s, false)
		Match(pattern, s, true)
	})
}

func BenchmarkMatch(b *testing.B) {
	pattern, s := []byte("user:*:profile:[0-9]?"), []byte("user:1234567890:profile:42")
	b.ReportAllocs()
	for b.Loop() {
		Match(pattern, s, false)
	}
}
