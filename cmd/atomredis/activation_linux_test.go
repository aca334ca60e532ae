package main

import (
	"net"
	"os"
	"os/exec"
	"strconv"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// A shell plays the service manager: it knows the pid of the process that it becomes.
func TestSocketsOfTheServiceManagerAreServed(t *testing.T) {
	socket := t.TempDir() + "/s"
	unix, err := net.Listen("unix", socket)
	require.NoError(t, err)
	defer unix.Close()
	tcp, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer tcp.Close()
	u, err := unix.(*net.UnixListener).File()
	require.NoError(t, err)
	defer u.Close()
	f, err := tcp.(*net.TCPListener).File()
	require.NoError(t, err)
	defer f.Close()
	port := strconv.Itoa(tcp.Addr().(*net.TCPAddr).Port)
	server := program(t, "--unixsocket", socket, "--port", port, "--bind", "127.0.0.1", "--save", "", "--appendonly", "no")
	cmd := exec.Command("/bin/sh", append([]string{"-c", `LISTEN_PID=$$ exec "$@"`, "sh", server.Path},
		server.Args[1:]...)...)
	cmd.Env, cmd.Dir, cmd.ExtraFiles = append(server.Env, "LISTEN_FDS=2"), server.Dir, []*os.File{u, f}
	require.NoError(t, cmd.Start())
	require.Equal(t, "+PONG", ask(t, socket, "PING"), "a client that is early waits")
	require.Zero(t, run([]string{"ping", "-p", port}, t.Output(), t.Output(), nil))
	require.NoError(t, cmd.Process.Signal(syscall.SIGTERM))
	require.NoError(t, cmd.Wait())
	require.FileExists(t, socket, "it is the manager's")
}
