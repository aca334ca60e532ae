package cli

import (
	"bytes"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/require"
)

func TestNamesAreTheCommandsOfTheRoot(t *testing.T) {
	names := []string{cobra.ShellCompRequestCmd, cobra.ShellCompNoDescRequestCmd}
	for _, c := range new(app).root().Commands() {
		if c.IsAvailableCommand() {
			names = append(names, c.Name())
		}
	}
	require.ElementsMatch(t, names, Names)
}

func TestCompletionScripts(t *testing.T) {
	for _, shell := range []string{"bash", "zsh", "fish"} {
		var script bytes.Buffer
		require.Zero(t, Run(t.Context(), []string{"completion", shell}, nil, &script, io.Discard))
		require.Contains(t, script.String(), "__complete", shell)
		if path, err := exec.LookPath(shell); err == nil {
			check := exec.Command(path, "-n")
			check.Stdin = &script
			out, err := check.CombinedOutput()
			require.NoError(t, err, "%s: %s", shell, out)
		}
	}
	var stderr bytes.Buffer
	require.Equal(t, 2, Run(t.Context(), []string{"completion", "tcsh"}, nil, io.Discard, &stderr))
	require.Equal(t, "atomredis: unknown shell \"tcsh\": there are bash, zsh, fish\n", stderr.String())
}

// Every command has a page with the text of its help, and uses only requests that exist.
func TestPagesOfTheManual(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "man1")
	require.Zero(t, Run(t.Context(), []string{"man", dir}, nil, io.Discard, io.Discard))
	requests := []string{".TH", ".SH", ".TP", ".PP", ".nf", ".fi"}
	pages := 0
	var visit func(c *cobra.Command)
	visit = func(c *cobra.Command) {
		pages++
		page, err := os.ReadFile(filepath.Join(dir, pageName(c)+".1"))
		require.NoError(t, err)
		for line := range strings.Lines(string(page)) {
			if strings.HasPrefix(line, ".") {
				require.Contains(t, requests, strings.Fields(line)[0], "%s: %s", c.CommandPath(), line)
			}
		}
		shown := strings.NewReplacer(`\-`, "-", `\e`, `\`, `\fB`, "", `\fP`, "", `\&`, "").Replace(string(page))
		require.Contains(t, shown, c.Short)
		require.Contains(t, shown, c.UseLine())
		require.Contains(t, shown, c.Example)
		for _, f := range slices.Concat(sortedFlags(c.NonInheritedFlags()), sortedFlags(c.InheritedFlags())) {
			require.Contains(t, shown, "--"+f.Name, c.CommandPath())
		}
		for _, sub := range c.Commands() {
			if sub.IsAvailableCommand() {
				visit(sub)
			}
		}
	}
	visit(new(app).root())
	files, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, files, pages)
}
