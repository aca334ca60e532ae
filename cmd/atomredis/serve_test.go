package main

import (
	"bufio"
	"bytes"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// One process runs several servers. SHUTDOWN ends one of them, and a signal ends all.
func TestServeRunsServersOfSeveralFiles(t *testing.T) {
	dir := t.TempDir()
	var files []string
	for i := range 3 {
		name := filepath.Join(dir, fmt.Sprint(i))
		file := name + ".conf"
		text := fmt.Sprintf("port 0\nunixsocket %s.sock\ndir %s\nlogfile %s.log\n", name, name, name)
		require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
		files = append(files, file)
	}
	ask := func(i int, command string) string {
		conn, err := net.Dial("unix", filepath.Join(dir, fmt.Sprint(i)+".sock"))
		if err != nil {
			return err.Error()
		}
		defer conn.Close()
		fmt.Fprintf(conn, "%s\r\n", command)
		line, _ := bufio.NewReader(conn).ReadString('\n')
		return line
	}
	for round := range 2 {
		signals := make(chan os.Signal, 1)
		code := make(chan int, 1)
		var stderr bytes.Buffer
		go func() { code <- run(append([]string{"serve"}, files...), &stderr, &stderr, signals) }()
		for i := range files {
			eventually(t, func() bool { return ask(i, "PING") == "+PONG\r\n" })
			if round == 0 {
				require.Equal(t, "+OK\r\n", ask(i, fmt.Sprint("SET own ", i)))
			}
		}
		require.Empty(t, ask(1, "SHUTDOWN"))
		eventually(t, func() bool { return ask(1, "PING") != "+PONG\r\n" })
		require.Equal(t, "$1\r\n", ask(0, "GET own"))
		require.Equal(t, "+OK\r\n", ask(2, fmt.Sprint("SET round ", round)))
		signals <- syscall.SIGTERM
		require.Zero(t, <-code, stderr.String())
	}
	// An error in one configuration prevents the start of all servers.
	require.NoError(t, os.WriteFile(files[1], []byte("no-directive yes\n"), 0o600))
	var stderr bytes.Buffer
	require.Equal(t, 1, run(append([]string{"serve"}, files...), &stderr, &stderr, nil))
	require.Contains(t, stderr.String(), "1.conf")
	require.NotEqual(t, "+PONG\r\n", ask(0, "PING"))
}
