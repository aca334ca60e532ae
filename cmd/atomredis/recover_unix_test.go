//go:build unix

package main

import (
	"bytes"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/atomredis/atomredis/internal/testing/freeport"
)

// The steps of docs/recovery.md, with the binary: two of three directories are lost.
func TestTheStepsOfARecovery(t *testing.T) {
	home := t.TempDir()
	var raft []string
	for range 3 {
		raft = append(raft, freeport.Addr(t))
	}
	data := func(i int) string { return filepath.Join(home, string('1'+rune(i))) }
	started := func(i int) (kill func()) {
		cmd := program(t, "--port", "0", "--unixsocket", data(i)+".sock", "--dir", data(i), "--raft-addr", raft[i],
			"--raft-peers", strings.Join(raft, ","), "--raft-timeout", "500", "--raft-secret", "s3cret", "--save", "")
		require.NoError(t, os.MkdirAll(data(i), 0o700))
		require.NoError(t, cmd.Start())
		ended := false
		kill = func() {
			if !ended {
				ended = true
				require.NoError(t, cmd.Process.Signal(syscall.SIGKILL))
				_ = cmd.Wait()
			}
		}
		t.Cleanup(kill)
		listening(t, data(i)+".sock")
		return kill
	}
	// say runs the program and returns its output.
	say := func(code int, args ...string) string {
		var out bytes.Buffer
		require.Equal(t, code, run(args, &out, &out, nil), "%v: %s", args, &out)
		return out.String()
	}
	asked := func(i int, command string) string {
		conn, err := net.Dial("unix", data(i)+".sock")
		if err != nil {
			return err.Error()
		}
		defer conn.Close()
		require.NoError(t, conn.SetDeadline(time.Now().Add(30*time.Second)))
		if _, err = io.WriteString(conn, command+"\r\n"); err != nil { // a server that leads no more ends its connections
			return err.Error()
		}
		answer := make([]byte, 1<<16)
		n, _ := conn.Read(answer)
		return string(answer[:n])
	}
	var kill []func()
	for i := range raft {
		kill = append(kill, started(i))
	}
	leads := func(i int) bool { return strings.Contains(asked(i, "INFO replication"), "raft_state:leader") }
	leader := -1
	eventually(t, func() bool { // on a busy machine the lead may change
		for i := range raft {
			if strings.HasPrefix(asked(i, "SET key value"), "+OK") {
				leader = i
			}
		}
		return leader >= 0
	})
	left := (leader + 1) % 3
	eventually(t, func() bool { return strings.Contains(asked(left, "GET key"), "value") })
	recovery := []string{"cluster", "recover", "--dir", data(left), "--raft-addr", raft[left], "--raft-secret", "s3cret"}
	require.Contains(t, say(1, recovery...), "a server runs on these data and must be stopped first")
	kill[left]()
	require.Contains(t, say(1, recovery...), "answers")
	require.Contains(t, say(1, recovery[:len(recovery)-2]...), "raft-secret is needed")
	for i := range raft {
		if i != left {
			kill[i]()
			require.NoError(t, os.RemoveAll(data(i)))
		}
	}

	checked := say(0, "check", data(left))
	require.Contains(t, checked, "group: members: ")
	require.Contains(t, checked, "group: entries up to ")
	require.Contains(t, say(0, "backup", filepath.Join(home, "backup"), "--dir", data(left)), "has been written from")
	rdb, aof := filepath.Join(home, "dump.rdb"), filepath.Join(home, "aof")
	say(0, "export", "--rdb", rdb, "--dir", data(left))
	say(0, "export", "--aof", aof, "--dir", data(left))
	content, err := os.ReadFile(aof)
	require.NoError(t, err)
	require.Contains(t, string(content), "$3\r\nkey\r\n$5\r\nvalue\r\n")
	for _, file := range []string{rdb, filepath.Join(home, "backup", "dump.rdb")} {
		content, err = os.ReadFile(file)
		require.NoError(t, err)
		require.Contains(t, string(content), "\x03key\x05value")
	}
	require.Equal(t, checked, say(0, "check", data(left)), "nothing has changed")

	require.Contains(t, say(2, "cluster", "recover", "--dir", data(left)), "say which of the servers this is, with --raft-addr: ")
	require.Contains(t, say(1, "cluster", "recover", "--dir", home, "--raft-addr", raft[left]), "there is no data in")
	require.Contains(t, say(0, recovery...), "This server is the only member of its group now")
	started(left)
	eventually(t, func() bool { return leads(left) })
	require.Contains(t, asked(left, "GET key"), "value")
	require.Contains(t, asked(left, "SET key other"), "+OK")
	for i := range raft {
		if i != left {
			started(i)
		}
	}
	eventually(t, func() bool { return strings.HasPrefix(asked(left, "RAFT.CHECK"), "*0\r\n") })
	for i := range raft {
		eventually(t, func() bool { return strings.Contains(asked(i, "GET key"), "other") })
	}
}
