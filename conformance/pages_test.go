package conformance

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/atomredis/atomredis/internal/testing/transcript"
	"github.com/atomredis/atomredis/server"
)

// TestPagesOfDocsRunAsWritten runs the sessions on pages of docs, one after the other.
func TestPagesOfDocsRunAsWritten(t *testing.T) {
	for name, last := range map[string]string{"sketches": "TDIGEST.TRIMMED_MEAN", "arrays": "ARRING", "search": "FT.SUGGET"} {
		t.Run(name, func(t *testing.T) {
			page, err := os.ReadFile("../docs/" + name + ".md")
			require.NoError(t, err)
			sessions := strings.Join(blocks(string(page), ""), "")
			require.Contains(t, sessions, last)
			file := filepath.Join(t.TempDir(), name+".txt")
			require.NoError(t, os.WriteFile(file, []byte(sessions), 0o600))
			transcript.Run(t, startServer(t, server.Options{}), file)
		})
	}
}

// blocks returns a page's blocks in a language; sessions have none.
func blocks(page, language string) (found []string) {
	in := false // a block
	for line := range strings.Lines(page) {
		fence, is := strings.CutPrefix(strings.TrimSuffix(line, "\n"), "```")
		switch {
		case is:
			if in = !in; in && fence == language {
				found = append(found, "")
			} else if in {
				found = append(found, skipped)
			}
		case in && found[len(found)-1] != skipped:
			found[len(found)-1] += line
		}
	}
	return slices.DeleteFunc(found, func(block string) bool { return block == skipped })
}

// skipped stands for a block in another language.
const skipped = "\x00"

// The Python of docs/search.md prints the output shown in its comments, if there is a redis-py.
func TestPythonOfDocsRunsAsWritten(t *testing.T) {
	if err := exec.Command("/usr/bin/python3", "-c", "import redis").Run(); err != nil {
		t.Skip("apt-get install python3-redis")
	}
	page, err := os.ReadFile("../docs/search.md")
	require.NoError(t, err)
	programs := blocks(string(page), "python")
	require.Len(t, programs, 1)
	conn, err := startServer(t, server.Options{})()
	require.NoError(t, err)
	defer conn.Close()
	_, port, err := net.SplitHostPort(conn.RemoteAddr().String())
	require.NoError(t, err)
	program := strings.Replace(programs[0], "port=6379", "port="+port, 1)
	var want []string
	for line := range strings.Lines(program) {
		if _, comment, ok := strings.Cut(line, "  # "); ok {
			want = append(want, strings.TrimSpace(comment))
		}
	}
	require.Len(t, want, 3)
	out, err := exec.Command("/usr/bin/python3", "-c", program).CombinedOutput()
	require.NoError(t, err, string(out))
	require.Equal(t, want, strings.Split(strings.TrimSpace(string(out)), "\n"))
}
