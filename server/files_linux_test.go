package server

import (
	"bufio"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// The limit applies to the whole process, so the test lowers it only to the number that the server's clients need.
func TestServerThatRunsOutOfFilesGoesOnWhenThereAreSomeAgain(t *testing.T) {
	addr := startTestServer(t, Options{}).Addrs()[0].String()
	first, err := net.Dial("tcp", addr)
	require.NoError(t, err)
	defer first.Close()
	requirePong(t, first)

	second, err := net.Dial("tcp", addr) // our own end is opened before the limit is lowered
	require.NoError(t, err)
	defer second.Close()
	requirePong(t, second)
	socket, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	require.NoError(t, err)
	defer unix.Close(socket)

	var old unix.Rlimit
	require.NoError(t, unix.Getrlimit(unix.RLIMIT_NOFILE, &old))
	low := old
	low.Cur = uint64(socket + 1)
	require.NoError(t, unix.Setrlimit(unix.RLIMIT_NOFILE, &low))
	host, err := net.ResolveTCPAddr("tcp", addr)
	require.NoError(t, err)
	err = unix.Connect(socket, &unix.SockaddrInet4{Port: host.Port, Addr: [4]byte{127, 0, 0, 1}})
	requirePong(t, first) // connected clients are served
	require.NoError(t, unix.Setrlimit(unix.RLIMIT_NOFILE, &old))
	require.NoError(t, err)

	_, err = unix.Write(socket, []byte("PING\r\n"))
	require.NoError(t, err)
	require.NoError(t, unix.SetsockoptTimeval(socket, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &unix.Timeval{Sec: 20}))
	var reply [16]byte
	n, err := unix.Read(socket, reply[:])
	require.NoError(t, err)
	require.Equal(t, "+PONG\r\n", string(reply[:n]), "it is accepted later")
}

func requirePong(t *testing.T, conn net.Conn) {
	_, err := conn.Write([]byte("PING\r\n"))
	require.NoError(t, err)
	require.NoError(t, conn.SetReadDeadline(time.Now().Add(time.Minute)))
	line, err := bufio.NewReader(conn).ReadString('\n')
	require.NoError(t, err)
	require.Equal(t, "+PONG\r\n", line)
}
