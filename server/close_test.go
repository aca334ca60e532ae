package server

import (
	"net"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/atomredis/atomredis/engine"
	"github.com/atomredis/atomredis/internal/testing/transcript"
)

func TestClosedServerLeavesNoGoroutine(t *testing.T) {
	eachTransport(t, func(t *testing.T, o Options, settings ...string) {
		before := goleak.IgnoreCurrent()
		s := startTestServer(t, o, settings...)
		var conns []net.Conn
		dial := func() *testClient {
			conn, err := s.dial()
			require.NoError(t, err)
			conns = append(conns, conn)
			return newTestClient(t, conn)
		}
		send := func(command string) {
			dial()
			_, err := conns[len(conns)-1].Write(request(strings.Fields(command)...))
			require.NoError(t, err)
		}
		admin := dial()
		send("BLPOP nothing 0")
		send("XREAD BLOCK 100000 STREAMS nothing $")
		admin.waitFor("INFO clients", "blocked_clients:2\r\n")
		subscriber := dial()
		subscriber.do("SUBSCRIBE channel")
		monitor := dial()
		require.Equal(t, "+OK", monitor.do("MONITOR"))
		require.Equal(t, "+OK", admin.do("CLIENT PAUSE 100000 WRITE"))
		send("SET paused z")
		admin.waitFor("INFO clients", "blocked_clients:3\r\n")
		require.NoError(t, s.Close())
		for _, conn := range conns {
			conn.Close()
		}
		goleak.VerifyNone(t, before)
	})
}

// A client must not see a command refused because the server is being closed, and a later one executed.
func TestNoCommandBeginsWhileTheServerIsBeingClosed(t *testing.T) {
	eachTransport(t, func(t *testing.T, o Options, settings ...string) {
		s := startTestServer(t, o, settings...)
		c := s.connect()
		require.Equal(t, "+OK", c.do("SET k v"))
		s.sessions.Ending.Store(true)
		v, err := c.Do(testTimeout, "SET", "k", "w")
		require.NoError(t, err)
		require.Equal(t, transcript.Closed, v.Kind)
		var g engine.Guard
		g.Lock(s.ks, engine.AllShards, s.ks.Now())
		defer g.Unlock()
		require.Equal(t, "v", string(g.Peek(0, []byte("k")).Bytes()))
	})
}
