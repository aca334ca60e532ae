package server

import (
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// atOnce has a server find all that f sends when it next looks: it is busy meanwhile.
func (s *testServer) atOnce(f func()) {
	sleeper := s.connect()
	sleeper.send("DEBUG", "SLEEP", "0.1")
	f()
	require.Equal(s.t, "+OK", sleeper.read())
	sleeper.Close()
}

// A loop is told once what there is to read: a command and the end, or more than it reads at once.
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
