package nearest

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTheNameThatIsMeant(t *testing.T) {
	names := []string{"import", "export", "cli", "top", "man", "maxmemory", "maxmemory-policy", "maxclients", "port", "tls-port", "appendonly"}
	for word, want := range map[string]string{
		"improt":          "import", // two letters swapped
		"xport":           "export", // the first of equally near names
		"IMPRT":           "import",
		"maxmemroy":       "maxmemory",
		"maxmemory_polic": "maxmemory-policy",
		"clii":            "cli",
		"tpo":             "top",
		"maxmem":          "maxmemory", // the shortest with this prefix
		"app":             "appendonly",
		"ap":              "",
		"import":          "import",
		"x":               "",
		"":                "",
		"restore":         "",
		"/etc/redis.conf": "",
	} {
		require.Equal(t, want, Of(word, names), "%q", word)
	}
	require.Equal(t, "; did you mean import?", Question("improt", names))
	require.Empty(t, Question("restore", names))
	require.Empty(t, Question("improt", nil))
}

func TestDistance(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want int
	}{
		{"", "", 0}, {"a", "", 1}, {"", "abc", 3}, {"abc", "abc", 0}, {"abc", "abd", 1}, {"abc", "acb", 1}, {"abc", "ab", 1},
		{"abc", "xabc", 1}, {"ca", "abc", 3}, {"kitten", "sitting", 3}, {"abcd", "badc", 2},
	} {
		require.Equal(t, c.want, distance(c.a, c.b, 10), "%q %q", c.a, c.b)
		require.Equal(t, c.want, distance(c.b, c.a, 10), "%q %q", c.b, c.a)
	}
	require.Equal(t, 2, distance("a", "abcdefgh", 1), "not more than asked for")
}
