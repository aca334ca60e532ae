package search_test

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// squeezed joins the words of text with single spaces, so that line breaks and indentation may differ.
func squeezed(text string) string { return strings.Join(strings.Fields(text), " ") }

func TestTheTutorialQuotesTheExamples(t *testing.T) {
	examples, err := os.ReadFile("example_test.go")
	require.NoError(t, err)
	page, err := os.ReadFile("../docs/search.md")
	require.NoError(t, err)
	quotes := strings.Split(string(page), "```go\n")[1:]
	require.NotEmpty(t, quotes)
	for _, quote := range quotes {
		quote, _, _ = strings.Cut(quote, "\n```")
		require.Contains(t, squeezed(string(examples)), squeezed(quote))
	}
}
