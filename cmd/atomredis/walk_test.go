package main

import (
	"bytes"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/atomredis/atomredis/internal/testing/freeport"
)

// walk executes the sessions of a page of docs with a shell, in which atomredis is this program.
type walk struct {
	t          *testing.T
	shell      string
	bin, home  string // directories: of the programs, and the one in which the sessions run
	addr, port string // of the server
	// rewrite returns the line to execute in place of one of the page; nil for the same one.
	rewrite func(line string) string
}

func newWalk(t *testing.T) *walk {
	shell, err := exec.LookPath("sh")
	if err != nil {
		t.Skip("there is no shell")
	}
	binary, err := os.Executable()
	require.NoError(t, err)
	w := &walk{t: t, shell: shell, bin: t.TempDir(), home: t.TempDir(), addr: freeport.Addr(t)}
	_, w.port, _ = net.SplitHostPort(w.addr)
	w.program("atomredis", asProgram+"=1 exec "+binary+` "$@"`)
	return w
}

// program makes a program for the sessions.
func (w *walk) program(name, script string) {
	require.NoError(w.t, os.WriteFile(filepath.Join(w.bin, name), []byte("#!/bin/sh\n"+script+"\n"), 0o700))
}

// page returns a page of docs.
func (w *walk) page(name string) string {
	page, err := os.ReadFile("../../docs/" + name)
	require.NoError(w.t, err)
	return string(page)
}

// run executes the sessions of a text. check gets each line with the output of the page and that of the command. A line that
// ends with & starts the server.
func (w *walk) run(text string, check func(line, want, got string)) {
	blocks := strings.Split(text, "```console\n")[1:]
	require.NotEmpty(w.t, blocks)
	for _, block := range blocks {
		block, _, _ := strings.Cut(block, "\n```")
		for _, part := range strings.Split("\n"+block, "\n$ ")[1:] {
			line, want, _ := strings.Cut(part+"\n", "\n")
			server, background := strings.CutSuffix(line, " &")
			if background {
				w.start(server)
				continue
			}
			if w.rewrite != nil {
				line = w.rewrite(line)
			}
			var stdout, stderr bytes.Buffer
			cmd := w.command(line)
			cmd.Stdout, cmd.Stderr = &stdout, &stderr // the latter has the log
			require.NoError(w.t, cmd.Run(), "%s: %s", line, &stderr)
			check(line, want, stdout.String())
		}
	}
}

func (w *walk) command(line string) *exec.Cmd {
	cmd := exec.Command(w.shell, "-c", line)
	cmd.Dir, cmd.Env = w.home, append(os.Environ(), "PATH="+w.bin+string(os.PathListSeparator)+os.Getenv("PATH"))
	return cmd
}

// start starts the server, and waits until it accepts connections.
func (w *walk) start(line string) {
	cmd := w.command("exec " + line)
	require.NoError(w.t, cmd.Start())
	w.t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	eventually(w.t, func() bool {
		conn, err := net.Dial("tcp", w.addr)
		if err == nil {
			conn.Close()
		}
		return err == nil
	})
}

// The sessions of docs/changes.md. Positions and times are other ones in each run; a position of the page stands for the same
// one everywhere.
func TestTheWalkThroughChanges(t *testing.T) {
	w := newWalk(t)
	w.program("redis-cli", "exec atomredis cli -p "+w.port+` --no-raw "$@"`)
	text := w.page("changes.md")
	for _, name := range []string{"atomredis --dir", "atomredis changes --from"} {
		require.Contains(t, text, "$ "+name)
		at := strings.LastIndex(name, " ")
		text = strings.ReplaceAll(text, "$ "+name, "$ "+name[:at]+" --port "+w.port+name[at:])
	}
	positions := regexp.MustCompile(`\b[0-9a-f]{8}-\d+\b`)
	times := regexp.MustCompile(`\b\d{13}\b`)
	is := map[string]string{} // positions of the page
	here := func(text string) string {
		return positions.ReplaceAllStringFunc(text, func(p string) string {
			if known, ok := is[p]; ok {
				return known
			}
			return p
		})
	}
	checked := 0
	w.rewrite = here
	w.run(text, func(line, want, got string) {
		found := positions.FindAllString(got, -1)
		for i, p := range positions.FindAllString(want, -1) {
			require.Less(t, i, len(found), "%s: %s", line, got)
			if _, known := is[p]; !known {
				is[p] = found[i]
			}
		}
		require.Equal(t, times.ReplaceAllString(here(want), "TIME"), times.ReplaceAllString(got, "TIME"), line)
		checked++
	})
	require.Equal(t, 8, checked)
}
