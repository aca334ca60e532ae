package pressure_test

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// unindented is text without the white space that lines begin with.
func unindented(text string) string {
	return regexp.MustCompile(`(?m)^\s+`).ReplaceAllString(text, "")
}

func TestTheTutorialQuotesTheExamples(t *testing.T) {
	examples, err := os.ReadFile("example_test.go")
	require.NoError(t, err)
	document, err := os.ReadFile("../docs/pressure.md")
	require.NoError(t, err)
	_, tutorial, found := strings.Cut(string(document), "\n## Tutorial\n")
	require.True(t, found)
	tutorial, _, _ = strings.Cut(tutorial, "\n## ")
	quotes := strings.Split(tutorial, "```go\n")[1:]
	require.NotEmpty(t, quotes)
	for _, quote := range quotes {
		quote, _, _ = strings.Cut(quote, "\n```")
		require.Contains(t, unindented(string(examples)), unindented(quote))
	}
}
