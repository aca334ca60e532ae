package conformance

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/atomredis/atomredis/internal/transcript"
	"github.com/atomredis/atomredis/server"
)

// TestPageOfSketchesRunsAsWritten runs the sessions of docs/sketches.md, one after the other.
func TestPageOfSketchesRunsAsWritten(t *testing.T) {
	page, err := os.ReadFile("../docs/sketches.md")
	require.NoError(t, err)
	var sessions strings.Builder
	for i, block := range strings.Split(string(page), "```\n") {
		if i%2 == 1 {
			sessions.WriteString(block)
		}
	}
	require.Contains(t, sessions.String(), "TDIGEST.TRIMMED_MEAN")
	file := filepath.Join(t.TempDir(), "sketches.txt")
	require.NoError(t, os.WriteFile(file, []byte(sessions.String()), 0o600))
	transcript.Run(t, startServer(t, server.Options{}), file)
}
