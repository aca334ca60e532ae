package api_test

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// blocks returns the blocks of docs/http-api.md in a language, for a server.
func blocks(a api, language string) (found []string) {
	page, err := os.ReadFile("../../../docs/http-api.md")
	require.NoError(a.t, err)
	text := strings.ReplaceAll(string(page), "http://127.0.0.1:9121", a.url)
	for _, block := range strings.Split(text, "```"+language+"\n")[1:] {
		block, _, _ = strings.Cut(block, "```")
		found = append(found, block)
	}
	return found
}

// program returns the path of a program, and skips the test without it.
func program(t *testing.T, name string) string {
	path, err := exec.LookPath(name)
	if err != nil {
		t.Skip("there is no " + name)
	}
	return path
}

// The command lines of the page print what the page says.
func TestCommandLinesOfThePageRunAsWritten(t *testing.T) {
	shell := program(t, "sh")
	program(t, "curl")
	a := open(t, "", nil)
	sessions := blocks(a, "console")
	require.Len(t, sessions, 2)
	for _, session := range sessions {
		for _, part := range strings.Split("\n"+session, "\n$ ")[1:] {
			line, want, _ := strings.Cut(part, "\n")
			out, err := exec.CommandContext(t.Context(), shell, "-c", line).CombinedOutput()
			require.NoError(t, err, line)
			require.Equal(t, strings.TrimSpace(want), string(out), line)
		}
	}
}

// The programs of the page print what their comments say.
func TestProgramsOfThePageRunAsWritten(t *testing.T) {
	for _, test := range []struct {
		language, program, comment string
		args                       []string
	}{
		{"js", "node", "); // ", []string{"--input-type=module", "-e"}},
		{"python", "python3", ")  # ", []string{"-c"}},
	} {
		t.Run(test.language, func(t *testing.T) {
			path := program(t, test.program)
			a := open(t, "", nil)
			var want []string
			text := blocks(a, test.language)[0]
			for line := range strings.Lines(text) {
				if _, comment, ok := strings.Cut(line, test.comment); ok {
					want = append(want, strings.TrimSpace(comment))
				}
			}
			require.Len(t, want, 2)
			out, err := exec.CommandContext(t.Context(), path, append(test.args, text)...).CombinedOutput()
			require.NoError(t, err, string(out))
			require.Equal(t, want, strings.Split(strings.TrimSpace(string(out)), "\n"))
		})
	}
}
