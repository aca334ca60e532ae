package server

import (
	"io"
	"net"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// atOnce keeps a server busy while f sends, so that it then receives everything at once.
func (s *testServer) atOnce(f func()) {
	sleeper := s.connect()
	sleeper.send("DEBUG", "SLEEP", "0.1")
	f()
	require.Equal(s.t, "+OK", sleeper.read())
	sleeper.Close()
}

// A loop gets a single event for several things to read: a command and the end, or more than it reads at once.
func TestClientsThatEndRightBehindTheirLastCommandAreGone(t *testing.T) {
	eachTransport(t, func(t *testing.T, o Options, settings ...string) {
		s := startTestServer(t, o, append(settings, "enable-debug-command", "yes")...)
		first := s.connect()
		var conns []net.Conn
		for range 20 {
			c, err := s.dial()
			require.NoError(t, err)
			defer c.Close()
			requirePong(t, c)
			conns = append(conns, c)
		}
		s.atOnce(func() {
			for _, c := range conns {
				_, err := io.WriteString(c, "INCR counter\r\n")
				require.NoError(t, err)
				require.NoError(t, c.(*net.TCPConn).CloseWrite())
			}
		})
		for _, c := range conns {
			require.NoError(t, c.SetReadDeadline(time.Now().Add(testTimeout)))
			_, err := io.ReadAll(c)
			require.NoError(t, err)
		}
		first.waitFor("INFO clients", "connected_clients:1\r")
		require.Equal(t, "20", first.do("GET counter"))
	})
}

func TestPipelinesLongerThanWhatIsReadAtOnce(t *testing.T) {
	const clients, commands = 3, 40_000
	eachTransport(t, func(t *testing.T, o Options, settings ...string) {
		s := startTestServer(t, o, append(settings, "enable-debug-command", "yes")...)
		var conns []net.Conn
		for range clients {
			c, err := s.dial()
			require.NoError(t, err)
			defer c.Close()
			conns = append(conns, c)
		}
		s.atOnce(func() {
			for _, c := range conns {
				go io.WriteString(c, strings.Repeat("INCR counter\r\n", commands)+"PING\r\n")
			}
		})
		for _, c := range conns {
			require.NoError(t, c.SetReadDeadline(time.Now().Add(testTimeout)))
			var in []byte
			for b := make([]byte, 1<<16); !strings.HasSuffix(string(in), "+PONG\r\n"); {
				n, err := c.Read(b)
				require.NoError(t, err)
				in = append(in[max(0, len(in)-16):], b[:n]...)
			}
		}
		require.Equal(t, "120000", s.connect().do("GET counter"))
	})
}

// Urgent data and file descriptors end a read although more bytes follow.
func TestReadsThatEndEarly(t *testing.T) {
	special := map[string]func(fd int) error{
		"tcp": func(fd int) error { return unix.Sendto(fd, []byte("!"), unix.MSG_OOB, nil) },
		"unix": func(fd int) error {
			return unix.Sendmsg(fd, []byte("\r\n"), unix.UnixRights(fd), nil, 0)
		},
	}
	for network, send := range special {
		t.Run(network, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "socket")
			s := startTestServer(t, Options{}, "unixsocket", path, "enable-debug-command", "yes")
			addr := s.Addrs()[0].String()
			if network == "unix" {
				addr = path
			}
			c, err := net.Dial(network, addr)
			require.NoError(t, err)
			defer c.Close()
			raw, err := c.(syscall.Conn).SyscallConn()
			require.NoError(t, err)
			s.atOnce(func() {
				_, err := io.WriteString(c, "INCR counter\r\n")
				require.NoError(t, err)
				require.NoError(t, raw.Control(func(fd uintptr) { err = send(int(fd)) }))
				require.NoError(t, err)
				_, err = io.WriteString(c, "INCR counter\r\n")
				require.NoError(t, err)
			})
			require.NoError(t, c.SetReadDeadline(time.Now().Add(testTimeout)))
			reply := make([]byte, len(":1\r\n:2\r\n"))
			_, err = io.ReadFull(c, reply)
			require.NoError(t, err)
			require.Equal(t, ":1\r\n:2\r\n", string(reply))
		})
	}
}
