package conformance

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/atomredis/atomredis/internal/testing/transcript"
	"github.com/atomredis/atomredis/server"
)

// TestPagesOfDocsRunAsWritten runs the sessions of pages of docs, one after the other.
func TestPagesOfDocsRunAsWritten(t *testing.T) {
	for name, last := range map[string]string{"sketches": "TDIGEST.TRIMMED_MEAN", "arrays": "ARRING", "search": "FT.SUGGET"} {
		t.Run(name, func(t *testing.T) {
			page, err := os.ReadFile("../docs/" + name + ".md")
			require.NoError(t, err)
			var sessions strings.Builder
			for i, block := range strings.Split(string(page), "```\n") {
				if i%2 == 1 {
					sessions.WriteString(block)
				}
			}
			require.Contains(t, sessions.String(), last)
			file := filepath.Join(t.TempDir(), name+".txt")
			require.NoError(t, os.WriteFile(file, []byte(sessions.String()), 0o600))
			transcript.Run(t, startServer(t, server.Options{}), file)
		})
	}
}
