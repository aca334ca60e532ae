package main

import (
	"bufio"
	"bytes"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/require"

	"github.com/atomredis/atomredis/cmd/atomredis/internal/cli"
	"github.com/atomredis/atomredis/internal/config"
	"github.com/atomredis/atomredis/internal/version"
)

// start runs the program in the background until stop is called, and returns when the log says that it is ready.
func start(t *testing.T, args ...string) (signals chan os.Signal, exit chan int) {
	t.Helper()
	t.Chdir(t.TempDir()) // restores the working directory, which serve changes, after the test
	r, w := io.Pipe()
	signals, exit = make(chan os.Signal, 1), make(chan int, 1)
	go func() {
		code := run(args, w, w, signals)
		w.Close()
		exit <- code
	}()
	lines := bufio.NewScanner(r)
	var log strings.Builder
	for lines.Scan() {
		log.WriteString(lines.Text() + "\n")
		if strings.Contains(lines.Text(), "Ready to accept connections") {
			go io.Copy(io.Discard, r)
			return signals, exit
		}
	}
	require.Fail(t, "the server did not start", log.String())
	return nil, nil
}

// ask sends an inline command and returns the first line of the reply.
func ask(t *testing.T, socket, command string) string {
	t.Helper()
	conn, err := net.Dial("unix", socket)
	require.NoError(t, err)
	defer conn.Close()
	_, err = io.WriteString(conn, command+"\r\n")
	require.NoError(t, err)
	line, _ := bufio.NewReader(conn).ReadString('\n')
	return strings.TrimSpace(line)
}

func TestASignalStopsTheServer(t *testing.T) {
	dir := t.TempDir()
	socket, pid := filepath.Join(dir, "s"), filepath.Join(dir, "pid")
	signals, exit := start(t, "--port", "0", "--unixsocket", socket, "--pidfile", pid)
	require.Equal(t, "+PONG", ask(t, socket, "PING"))
	require.FileExists(t, pid)
	signals <- syscall.SIGTERM
	require.Zero(t, <-exit)
	require.NoFileExists(t, pid)
	_, err := net.Dial("unix", socket)
	require.Error(t, err)
}

func TestShutdownEndsTheProgram(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "s")
	_, exit := start(t, "--port", "0", "--unixsocket", socket)
	require.Empty(t, ask(t, socket, "SHUTDOWN NOSAVE"))
	require.Zero(t, <-exit)
}

func TestPathsAreRelativeToDir(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "redis.conf")
	require.NoError(t, os.WriteFile(file, []byte("port 0\nunixsocket s\ndir "+dir+"\n"), 0o600))
	signals, exit := start(t, file)
	require.Equal(t, "+OK", ask(t, filepath.Join(dir, "s"), "CONFIG SET timeout 7"))
	require.Equal(t, "+OK", ask(t, filepath.Join(dir, "s"), "CONFIG REWRITE"))
	signals <- syscall.SIGINT
	require.Zero(t, <-exit)
	content, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Contains(t, string(content), "timeout 7\n")
}

func TestTheLogFollowsLoglevel(t *testing.T) {
	conf := config.NewConfig()
	var out bytes.Buffer
	log, err := openLog(conf, &out)
	require.NoError(t, err)
	log.Debug("one")
	log.Info("two")
	require.NoError(t, conf.Set("loglevel", "warning", true))
	log.Info("three")
	log.Warn("four")
	require.NoError(t, conf.Set("loglevel", "nothing", true))
	log.Error("five")
	require.NoError(t, conf.Set("loglevel", "debug", true))
	log.Debug("six")
	log.close()
	require.Regexp(t, `\Atime=\S+ level=notice msg=two\ntime=\S+ level=warning msg=four\ntime=\S+ level=debug msg=six\n\z`, out.String())
}

func TestWhatCannotBeStartedIsReported(t *testing.T) {
	dir := t.TempDir()
	for _, tc := range []struct {
		args []string
		want string
	}{
		{[]string{"--port", "x"}, "atomredis: command line: '--port x': argument couldn't be parsed into an integer\n"},
		{[]string{"improt", "dump.rdb"}, "atomredis: can't open config file: open improt: no such file or directory; did you mean import?\n"},
		{[]string{"nosuch.conf"}, "atomredis: can't open config file: open nosuch.conf: no such file or directory\n"},
		{[]string{"--maxmemroy", "1gb"},
			"atomredis: command line: '--maxmemroy 1gb': Bad directive or wrong number of arguments; did you mean maxmemory?\n"},
		{[]string{"--port", "0"}, "atomredis: configured to listen nowhere: set port and bind, or unixsocket\n"},
		{[]string{"--port", "0", "--dir", "new"}, "atomredis: configured to listen nowhere: set port and bind, or unixsocket\n"},
		{[]string{"--port", "0", "--loadmodule", "/lib/redistimeseries.so"}, "atomredis: configured to listen nowhere: set port and bind, or unixsocket\n"},
		{[]string{"--bind", "203.0.113.1"}, "*"},
		{[]string{"--aclfile", "missing.acl"}, "*"},
		{[]string{"--dir", "new", "--aclfile", "missing.acl"}, "*"},
		{[]string{"--logfile", "/nonexistent/log"}, "*"},
		{[]string{"--dir", "/nonexistent/dir"}, "atomredis: Can't chdir to '/nonexistent/dir': No such file or directory\n"},
		{[]string{"--dir", "/nonexistent/dir", "--save", "", "--appendonly", "no"},
			"atomredis: Can't chdir to '/nonexistent/dir': No such file or directory\n"},
	} {
		t.Chdir(dir)
		var stdout, stderr bytes.Buffer
		require.Equal(t, 1, run(tc.args, &stdout, &stderr, nil))
		if tc.want != "*" {
			require.Equal(t, tc.want, stderr.String())
		}
		left, err := os.ReadDir(dir)
		require.NoError(t, err)
		require.Empty(t, left, "a start that fails leaves nothing behind")
	}
}

func TestVersionAndHelp(t *testing.T) {
	var stdout bytes.Buffer
	require.Zero(t, run([]string{"--version"}, &stdout, io.Discard, nil))
	require.Contains(t, stdout.String(), "atomredis v="+version.Number+" redis="+version.Redis)
	stdout.Reset()
	require.Zero(t, run([]string{"-h"}, &stdout, io.Discard, nil))
	require.Equal(t, usage, stdout.String())
}

// Every sub-command is in the usage, the README and the completions, and has a page of the manual.
func TestEverySubCommandIsDescribed(t *testing.T) {
	readme, err := os.ReadFile("../../README.md")
	require.NoError(t, err)
	dir := t.TempDir()
	require.Zero(t, run([]string{"man", dir}, io.Discard, io.Discard, nil))
	var completions bytes.Buffer
	require.Zero(t, run([]string{cobra.ShellCompNoDescRequestCmd, ""}, &completions, io.Discard, nil))
	names := slices.DeleteFunc(slices.Clone(cli.Names), func(name string) bool { return strings.HasPrefix(name, "_") })
	for _, c := range dataCommands(io.Discard, io.Discard) {
		names = append(names, c.Name())
	}
	for _, name := range names {
		require.Contains(t, usage, "\n       atomredis "+name+" ")
		require.Contains(t, string(readme), "`atomredis "+name)
		require.Contains(t, completions.String(), name+"\n")
		require.FileExists(t, filepath.Join(dir, "atomredis-"+name+".1"))
	}
	page, err := os.ReadFile(filepath.Join(dir, "atomredis.1"))
	require.NoError(t, err)
	require.Contains(t, string(page), `\fB\-\-appendfsync\fP value`+"\neverysec, always, no; default: everysec\n")
	require.Contains(t, string(page), `\fB\-\-door\-http\fP value`)
}

func TestTheOptionsOfTheServerAreCompleted(t *testing.T) {
	for _, tc := range []struct{ line, want string }{
		{"--loglev", "--loglevel\n:4\n"},
		{"/etc/redis.conf --port 6380 --appendfsy", "--appendfsync\n:4\n"},
		{"import dump.rdb --checkpoint-s", "--checkpoint-size\n:4\n"},
		{"export ", "--rdb\n--aof\n:4\n"},
		{"check ", ":16\n"},
	} {
		var out bytes.Buffer
		args := append([]string{cobra.ShellCompNoDescRequestCmd}, strings.Split(tc.line, " ")...)
		require.Zero(t, run(args, &out, io.Discard, nil))
		require.Equal(t, tc.want, out.String(), tc.line)
	}
}
