package server

import (
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/atomredis/atomredis/doors/door"
	"github.com/atomredis/atomredis/internal/clients/pubsub"
	"github.com/atomredis/atomredis/internal/command"
)

// For all commands that can change their connection it must be decided how.
func TestEveryCommandOfConnectionsIsDecidedUpon(t *testing.T) {
	harmless := map[string]bool{
		"echo": true, "ping": true, "client": true, "client|getname": true, "client|getredir": true, "client|help": true,
		"client|id":   true,
		"client|info": true, "client|kill": true, "client|list": true, "client|pause": true, "client|trackinginfo": true,
		"client|unblock": true, "client|unpause": true,
		"publish": true, "spublish": true, "pubsub": true, "pubsub|channels": true, "pubsub|help": true,
		"pubsub|numpat": true, "pubsub|numsub": true,
		"pubsub|shardchannels": true, "pubsub|shardnumsub": true,
	}
	for name, cmd := range command.NewTable().ByName {
		if cmd.Group == "connection" || cmd.Group == "pubsub" || cmd.Group == "transactions" || cmd.Immediate ||
			cmd.WhileSubscribed {
			require.True(t, cmd.Stateful != harmless[name], "%s: is it Stateful?", name)
		}
	}
}

func TestReleasedSessionsAreUsedAgainIfTheyAreAsGoodAsNew(t *testing.T) {
	srv := newTestServer(t, Options{})
	words := func(args ...string) (out [][]byte) {
		for _, a := range args {
			out = append(out, []byte(a))
		}
		return out
	}
	use := func(commands ...[][]byte) int64 {
		d, err := srv.Direct(0)
		require.NoError(t, err)
		defer d.Release()
		for _, c := range commands {
			require.NoError(t, d.Control(t.Context(), c))
		}
		_, err = d.Flush()
		require.NoError(t, err)
		return d.ID()
	}
	first := use(words("SET", "k", "v"))
	require.Equal(t, first, use(words("SELECT", "3"), words("EVAL", "return redis.call('select', 5)", "0")))
	require.Equal(t, first, use(words("MULTI"), words("GET", "k"), words("EXEC")))
	require.Equal(t, first, use(words("WATCH", "k"), words("UNWATCH")))
	for _, left := range [][]string{
		{"MULTI"}, {"WATCH", "k"}, {"SUBSCRIBE", "c"}, {"PSUBSCRIBE", "c"}, {"MONITOR"}, {"CLIENT", "TRACKING", "ON"},
		{"CLIENT", "REPLY", "OFF"},
		{"CLIENT", "SETNAME", "x"}, {"CLIENT", "SETINFO", "LIB-NAME", "x"}, {"CLIENT", "NO-EVICT", "ON"},
		{"CLIENT", "NO-TOUCH", "ON"},
		{"SCRIPT", "DEBUG", "YES"}, {"HELLO", "2"}, {"RESET"}, {"QUIT"},
	} {
		id := use(words(left...))
		require.NotEqual(t, id, use(words("PING")), left)
	}
	require.EqualValues(t, 1, srv.sessions.Clients.Len(), "what was not kept is closed")
	require.Zero(t, srv.sessions.PubSub.Len(pubsub.Pattern))
	_, err := srv.Direct(16)
	require.ErrorContains(t, err, "no database 16")
}

func TestAnyConnectionCanBeServed(t *testing.T) {
	eachTransport(t, func(t *testing.T, o Options, settings ...string) {
		s := startTestServer(t, o, settings...)
		client, conn := net.Pipe() // a pipe has no buffer
		require.NoError(t, s.ServeConn(conn))
		require.NoError(t, client.SetDeadline(time.Now().Add(testTimeout)))
		_, err := client.Write([]byte("PING\r\nECHO x\r\n"))
		require.NoError(t, err)
		want := "+PONG\r\n$1\r\nx\r\n"
		got := make([]byte, len(want))
		for n := 0; n < len(got); {
			m, err := client.Read(got[n:])
			require.NoError(t, err)
			n += m
		}
		require.Equal(t, want, string(got))
		require.NoError(t, s.Close())
		_, err = client.Read(got)
		require.Error(t, err)
		_, conn = net.Pipe()
		require.ErrorIs(t, s.ServeConn(conn), door.ErrClosed)
	})
}
