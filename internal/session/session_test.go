package session

import (
	"strings"
	"testing"

	"github.com/atomredis/atomredis/internal/clients/tracking"

	"github.com/stretchr/testify/require"
)

func TestPostedMessagesBeyondTheLimitKillOnce(t *testing.T) {
	b := newHarness(t)
	require.NoError(t, b.Config.Set("client-output-buffer-limit", "normal 10 0 0", false))
	s := b.session()
	s.post(0, []byte("0123456789"))
	require.False(t, s.dying())
	s.post(mailKill, []byte("0123456789"))
	require.True(t, s.dying())
	s.Advance(b.Keyspace.Now())
	require.True(t, s.Closing())
	require.Empty(t, s.Output())
	b.finish(t, s)
}

func TestRefusedCommandEndsClientCaching(t *testing.T) {
	b := newHarness(t)
	s := b.session()
	caching := func() bool { return s.modes.tracking.Flags()&tracking.Caching != 0 }
	b.feed(s, request("CLIENT", "TRACKING", "ON", "OPTIN"))
	for _, refused := range [][]string{{"GET"}, {"NOSUCH"}, {"CLIENT", "NOSUCH"}} {
		b.feed(s, request("CLIENT", "CACHING", "YES"))
		require.True(t, caching())
		b.feed(s, request(refused...))
		require.False(t, caching(), "%q", refused)
	}
	b.feed(s, request("CLIENT", "CACHING", "YES"), request("CLIENT", "CACHING"), request("MULTI"), request("GET"))
	require.True(t, caching(), "it lasts for the whole transaction")
	b.finish(t, s)
}

func TestInfoTellsEverythingInTransactionsAndScripts(t *testing.T) {
	b := newHarness(t)
	s := b.session()
	b.feed(s, request("SET", "a", "1", "PX", "100500"), request("SET", "b", "1"), request("GET", "a"),
		request("GET", "none"))
	for _, reply := range []string{
		b.feed(s, request("INFO", "stats", "keyspace")),
		b.feed(s, request("MULTI"), request("INFO", "stats", "keyspace"), request("EXEC")),
		b.feed(s, request("EVAL", "return redis.call('info', 'stats', 'keyspace')", "0")),
	} {
		require.Contains(t, reply, "keyspace_hits:1\r\nkeyspace_misses:1\r\n")
		require.Contains(t, reply, "expired_keys:0\r\n")
		require.Contains(t, reply, "db0:keys=2,expires=1,avg_ttl=")
	}
	b.finish(t, s)
}

func TestClientInfoInTransaction(t *testing.T) {
	b := newHarness(t)
	s := b.session()
	reply := b.feed(s, request("MULTI"), request("PING"), request("CLIENT", "INFO"), request("EXEC"))
	require.Contains(t, reply, " flags=x ")
	require.Contains(t, reply, " multi=2 ")
	require.Contains(t, reply, " cmd=exec ")
	require.Contains(t, b.feed(s, request("CLIENT", "INFO")), " flags=N db=0 sub=0 psub=0 ssub=0 multi=-1 ")
	b.finish(t, s)
}

func TestOthersSeeThatOutputWasSent(t *testing.T) {
	b := newHarness(t)
	s := b.session()
	s.Input(request("PING"), b.Keyspace.Now())
	require.Equal(t, len("+PONG\r\n"), s.snapshot().Output)
	s.SetOutput(s.Output()[:3])
	require.Equal(t, 3, s.snapshot().Output)
	s.SetOutput(nil)
	require.Zero(t, s.snapshot().Output)
	b.finish(t, s)
}

func TestLongestStringCanBeChangedForConnectedClients(t *testing.T) {
	b := newHarness(t)
	s := b.session()
	b.feed(s, request("CONFIG", "SET", "proto-max-bulk-len", "3mb"))
	require.Equal(t, "$2000000\r\n", b.feed(s, request("ECHO", strings.Repeat("x", 2_000_000)))[:10])
	b.feed(s, request("CONFIG", "SET", "proto-max-bulk-len", "1mb"))
	require.Equal(t, "-ERR Protocol error: invalid bulk length\r\n", b.feed(s, []byte("*2\r\n$4\r\nECHO\r\n$2000000\r\n")))
	b.finish(t, s)
}

func TestNobodyWhoHasGoneMonitors(t *testing.T) {
	b := newHarness(t)
	gone, s := b.session(), b.session()
	b.feed(gone, request("MONITOR"))
	b.feed(s, request("MONITOR"))
	require.EqualValues(t, 2, b.monitors.count.Load())
	b.feed(s, request("RESET"))
	gone.Close()
	require.Zero(t, b.monitors.count.Load())
	b.finish(t, s)
}
