package search

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The page names the directives that have an effect in its table, and search-workers among the others.
func TestThePageListsTheDirectives(t *testing.T) {
	page, err := os.ReadFile("../../../docs/search.md")
	require.NoError(t, err)
	_, table, ok := strings.Cut(string(page), "\n## Directives\n")
	require.True(t, ok)
	table, _, _ = strings.Cut(table, "\n## ")
	for _, s := range settings {
		listed := strings.Contains(table, "| `"+s.directive+"` |")
		require.Equal(t, !strings.HasPrefix(s.help, "Has no effect") && s.directive != "search-ext-load", listed, s.directive)
	}
	require.Contains(t, table, "`search-workers`")
}
