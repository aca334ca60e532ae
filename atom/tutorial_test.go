package atom_test

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// words joins the words of text with single spaces, so that line breaks may differ.
func words(text string) string { return strings.Join(strings.Fields(text), " ") }

func TestTheTutorialQuotesTheExamples(t *testing.T) {
	examples, err := os.ReadFile("example_test.go")
	require.NoError(t, err)
	tutorial, err := os.ReadFile("../docs/atom.md")
	require.NoError(t, err)
	quotes := strings.Split(string(tutorial), "```go\n")[1:]
	require.NotEmpty(t, quotes)
	for _, quote := range quotes {
		quote, _, _ = strings.Cut(quote, "\n```")
		require.Contains(t, words(string(examples)), words(quote))
	}
}
