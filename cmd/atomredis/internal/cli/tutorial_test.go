package cli

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// programVariable makes the test binary run as the program.
const programVariable = "ATOMREDIS_CLI_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(programVariable) != "" {
		os.Exit(Run(context.Background(), os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
	}
	os.Exit(m.Run())
}

// The output of the command lines in the pages is that in the pages.
func TestTheTutorialsRunAsWritten(t *testing.T) {
	for page, section := range map[string]string{"pressure.md": "\n## Tutorial\n", "skein.md": "\n### From the shell\n"} {
		t.Run(page, func(t *testing.T) { runSection(t, page, section) })
	}
}

// runSection runs the command lines of a section of a page.
func runSection(t *testing.T, page, section string) {
	shell, err := exec.LookPath("sh")
	if err != nil {
		t.Skip("there is no shell")
	}
	binary, err := os.Executable()
	require.NoError(t, err)
	dir := t.TempDir()
	program := fmt.Sprintf("#!/bin/sh\n%s=1 exec %s \"$@\" %s\n", programVariable, binary,
		strings.Join(at(start(t, nil)), " "))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "atomredis"), []byte(program), 0o700))

	document, err := os.ReadFile("../../../../docs/" + page)
	require.NoError(t, err)
	_, tutorial, found := strings.Cut(string(document), section)
	require.True(t, found)
	tutorial, _, _ = strings.Cut(tutorial, "\n## ")
	blocks := strings.Split(tutorial, "```console\n")[1:]
	require.NotEmpty(t, blocks)
	for _, block := range blocks {
		block, _, _ = strings.Cut(block, "\n```")
		for _, part := range strings.Split("\n"+block, "\n$ ")[1:] {
			line, want, _ := strings.Cut(part+"\n", "\n")
			if command, background := strings.CutSuffix(line, " &"); background { // a background command must not keep the output open
				line = "{ " + command + "; } >/dev/null 2>&1 &"
			}
			cmd := exec.Command(shell, "-c", line)
			cmd.Env = append(os.Environ(), "PATH="+dir+string(os.PathListSeparator)+os.Getenv("PATH"))
			out, _ := cmd.CombinedOutput() // a command may fail on purpose; its message is compared
			require.Equal(t, want, string(out), line)
		}
	}
}
