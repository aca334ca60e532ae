package server

import (
	"log/slog"
	"net"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/atomredis/atomredis/engine"
	"github.com/atomredis/atomredis/internal/command"
	"github.com/atomredis/atomredis/internal/config"
	"github.com/atomredis/atomredis/internal/session"
	"github.com/atomredis/atomredis/internal/testing/crashfs"
	"github.com/atomredis/atomredis/internal/testing/testclient"
	"github.com/atomredis/atomredis/internal/testing/transcript"
	"github.com/atomredis/atomredis/internal/transport"
	"github.com/atomredis/atomredis/resp"
)

// testServer is a running server and the way to connect to it.
type testServer struct {
	*Server
	t testing.TB
}

// eachTransport runs a test with one event loop, with several, and with goroutines; with one shard and with many.
func eachTransport(t *testing.T, test func(t *testing.T, o Options, settings ...string)) {
	t.Run("one loop", func(t *testing.T) { test(t, Options{}, "shards", "1") })
	t.Run("four loops", func(t *testing.T) { test(t, Options{}, "shards", "16", "io-threads", "4", "io-uring", "no") })
	t.Run("goroutines", func(t *testing.T) { test(t, Options{Goroutines: true}, "shards", "16") })
}

// startTestServer starts a server on a free port. settings are directives and their values.
func startTestServer(t testing.TB, o Options, settings ...string) *testServer {
	s := newTestServer(t, o, settings...)
	require.NoError(t, s.Start())
	return s
}

func newTestServer(t testing.TB, o Options, settings ...string) *testServer {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	conf := config.NewConfig()
	conf.InMemory()
	for i := 0; i < len(settings); i += 2 {
		require.NoError(t, conf.Set(settings[i], settings[i+1], false))
	}
	require.NoError(t, conf.Set("port", "0", false))
	o.Listeners = []net.Listener{l}
	srv, err := New(conf, slog.New(slog.DiscardHandler), o)
	require.NoError(t, err)
	t.Cleanup(func() { srv.Close() })
	return &testServer{srv, t}
}

func (s *testServer) dial() (net.Conn, error) { return transcript.Dial(s.Addrs()[0].String()) }

// testClient is a testclient.Client with short method names.
type testClient struct {
	*testclient.Client
	t testing.TB
}

func (s *testServer) connect() *testClient {
	nc, err := s.dial()
	require.NoError(s.t, err)
	return newTestClient(s.t, nc)
}

// newTestClient returns the client of a connection, which the end of the test closes.
func newTestClient(t testing.TB, nc net.Conn) *testClient {
	return &testClient{testclient.New(t, nc), t}
}

const testTimeout = testclient.Timeout

func (c *testClient) do(command string) string { c.t.Helper(); return c.Line(command) }

func (c *testClient) waitFor(command, text string) { c.t.Helper(); c.WaitFor(command, text) }

func (c *testClient) read() string { c.t.Helper(); return c.Next() }

func (c *testClient) send(args ...string) { c.t.Helper(); c.Send(args...) }

func (c *testClient) call(args ...string) string { c.t.Helper(); return c.Call(args...) }

// Output of any length arrives unchanged, also if a transport writes it in pieces.
func TestOutputOfAnyLengthOnEveryTransport(t *testing.T) {
	eachTransport(t, func(t *testing.T, o Options, settings ...string) {
		c := startTestServer(t, o, settings...).connect()
		value := make([]byte, 4000) // it is copied into the output
		for i := range value {
			value[i] = 'a' + byte(i%23)
		}
		require.Equal(t, "+OK", c.Call("SET", "key", string(value)))
		for _, n := range []int{1, 16, 25, 40, 60, 100, 300} { // commands in a pipeline
			for i := range n {
				c.Append("GETRANGE", "key", strconv.Itoa(i), "-1")
			}
			require.NoError(t, c.Flush())
			for i := range n {
				v, err := c.Read(testTimeout)
				require.NoError(t, err)
				require.Equal(t, string(value[i:]), v.Text, "%d of %d", i, n)
			}
		}
	})
}

func TestTrackingTableIsBounded(t *testing.T) {
	s := startTestServer(t, Options{}, "tracking-table-max-keys", "2")
	c := s.connect()
	c.do("HELLO 3")
	require.Equal(t, "+OK", c.do("CLIENT TRACKING ON"))
	require.Equal(t, "[null null null null]", c.do("MGET a b c d"))
	require.Regexp(t, `^push\["invalidate" \["[abcd]"\]\]$`, c.read())
	require.Regexp(t, `^push\["invalidate" \["[abcd]"\]\]$`, c.read())
	_, keys, readers, _ := s.sessions.Tracking.Size()
	require.Equal(t, []int{2, 2}, []int{keys, readers})
	require.Equal(t, "+OK", c.do("CLIENT TRACKING OFF"))
	clients, keys, readers, _ := s.sessions.Tracking.Size()
	require.Equal(t, []int{0, 0, 0}, []int{clients, keys, readers})
}

func TestConnectionsAreRefused(t *testing.T) {
	eachTransport(t, func(t *testing.T, o Options, settings ...string) {
		s := startTestServer(t, o, append(settings, "maxclients", "1")...)
		c := s.connect()
		require.Equal(t, "+PONG", c.do("PING"))
		require.Equal(t, "-ERR max number of clients reached", s.connect().read())
		require.Contains(t, c.do("INFO stats"), "rejected_connections:1\r\n")
	})
	s := startTestServer(t, Options{})
	require.Empty(t, s.refuseClient(true))
	require.Regexp(t, "^DENIED Redis is running in protected mode because protected mode is enabled and no password is set for the default user. ", s.refuseClient(false))
	open := startTestServer(t, Options{}, "protected-mode", "no")
	require.Empty(t, open.refuseClient(false))
	guarded := startTestServer(t, Options{}, "requirepass", "x")
	require.Empty(t, guarded.refuseClient(false))
}

// detached returns a session without a transport.
func (s *testServer) detached() *session.Session {
	c := s.sessions.Open(transport.Peer{Addr: "127.0.0.1:1"}, func() {})
	s.t.Cleanup(c.Close)
	return c
}

// send gives a session a command, and returns its reply.
func send(s *session.Session, now int64, command string) string {
	s.Input([]byte(command+"\r\n"), now)
	out := string(s.Output())
	s.SetOutput(nil)
	return out
}

func TestIdleClientsExpire(t *testing.T) {
	clock := engine.NewManualClock(time.UnixMilli(1_000_000)) // a command that takes long is the client's last activity
	s := startTestServer(t, Options{Clock: clock}, "timeout", "10")
	now := s.ks.Now()
	c := s.detached()
	send(c, now, "PING")
	require.False(t, c.Expired(now+10_000))
	require.True(t, c.Expired(now+10_001))
	send(c, now, "SUBSCRIBE x")
	require.False(t, c.Expired(now+60_000), "subscribers may wait")
	send(c, now, "RESET")
	require.True(t, c.Expired(now+60_000))
	send(c, now, "MONITOR")
	require.False(t, c.Expired(now+60_000), "monitors may wait")
}

func TestSubscriberThatDoesNotReadIsDisconnected(t *testing.T) {
	s := startTestServer(t, Options{}, "client-output-buffer-limit", "pubsub 100kb 0 0")
	c := s.detached()
	now := s.ks.Now()
	send(c, now, "SUBSCRIBE x")
	p := s.detached()
	for range 200 {
		send(p, now, "PUBLISH x "+strings.Repeat("m", 1000))
	}
	c.Advance(now)
	require.True(t, c.Closing())
	require.Empty(t, c.Output())
}

func TestInfoIsWellFormed(t *testing.T) {
	clock := engine.NewManualClock(time.UnixMilli(1_000_000))
	s := startTestServer(t, Options{Clock: clock})
	c := s.detached()
	send(c, clock.Now().UnixMilli(), "SET k v EX 100")
	send(c, clock.Now().UnixMilli(), "GET k x")
	info := func(command string) string {
		c.Input([]byte(command+"\r\n"), clock.Now().UnixMilli())
		defer c.SetOutput(nil)
		_, text, _ := strings.Cut(string(c.Output()), "\r\n")
		return strings.TrimSuffix(text, "\r\n")
	}
	all := info("INFO all")
	headers := regexp.MustCompile(`(?m)^# (\w+)\r$`).FindAllStringSubmatch(all, -1)
	var names []string
	for _, h := range headers {
		names = append(names, h[1])
	}
	require.Equal(t, []string{"Server", "Clients", "Memory", "Persistence", "Store", "Threads", "Stats", "Replication", "CPU",
		"Hotkeys", "Modules", "Commandstats", "Errorstats", "Latencystats", "Cluster", "Keyspace"}, names)
	for line := range strings.SplitSeq(strings.TrimSuffix(all, "\r\n"), "\r\n") {
		require.Regexp(t, `^($|# \w+$|[\w|.-]+:[^:\n]*$)`, line)
	}
	require.Equal(t, "# Keyspace\r\ndb0:keys=1,expires=1,avg_ttl=100000,subexpiry=0\r\n", info("INFO keyspace"))
	require.NotContains(t, info("INFO"), "# Commandstats")
	require.Regexp(t, `cmdstat_get:calls=0,usec=0,usec_per_call=0\.00,rejected_calls=1,failed_calls=0\r\n`, all)
	require.Equal(t, "# Cluster\r\ncluster_enabled:0\r\n\r\n# Keyspace\r\ndb0:keys=1,expires=1,avg_ttl=100000,subexpiry=0\r\n", info("INFO keyspace nosuch CLUSTER"))
	require.Empty(t, info("INFO nosuch"))

	// In a transaction it holds the shards itself.
	send(c, clock.Now().UnixMilli(), "MULTI\r\nINFO keyspace\r\nGET k")
	require.Contains(t, send(c, clock.Now().UnixMilli(), "EXEC"), "db0:keys=1,expires=1,avg_ttl=100000,subexpiry=0\r\n")
}

func TestOperationsPerSecondAreMeasured(t *testing.T) {
	s := startTestServer(t, Options{Goroutines: true})
	s.Sample(1000)
	c := s.detached()
	for range 50 {
		send(c, 1000, "PING")
	}
	s.sessions.Counters.BytesIn.Add(4096)
	s.replica.Received.Add(8192) // it is part of the total
	s.followed.Sent.Add(2048)
	s.stats.loops[0].Rounds.Add(10)
	s.Sample(3000)
	rate := s.rates.Last()
	require.EqualValues(t, 25, rate.Commands)
	require.InDelta(t, 6, rate.In, 0.5)
	require.Equal(t, 4.0, rate.ReplIn)
	require.Equal(t, 1.0, rate.ReplOut)
	require.EqualValues(t, 5, rate.Rounds)
}

func TestDebugIsForThoseWhoMay(t *testing.T) {
	for setting, want := range map[string]string{
		"no":    `-ERR DEBUG command not allowed. If the enable-debug-command option is set to "local", you can run it from a local connection, otherwise you need to set this option in the configuration file, and then restart the server.`,
		"yes":   "+OK",
		"local": "+OK",
	} {
		s := startTestServer(t, Options{}, "enable-debug-command", setting)
		require.Equal(t, want, s.connect().do("DEBUG SLEEP 0"))
		far := s.sessions.Open(transport.Peer{Addr: "192.0.2.1:1"}, func() {})
		require.Equal(t, setting == "yes", far.Has(s.config.Get().Commands.EnableDebug))
		far.Close()
	}
	s := startTestServer(t, Options{}, "enable-debug-command", "yes")
	require.Equal(t, "-ERR unknown subcommand or wrong number of arguments for 'JMAP'. Try DEBUG HELP.",
		s.connect().do("DEBUG JMAP"))
}

func TestTheDirectoryChangesOnlyWhereNothingIsStored(t *testing.T) {
	c := startTestServer(t, Options{}).connect()
	require.Equal(t, "-ERR CONFIG SET failed (possibly related to argument 'dir') - can't set protected config",
		c.do("CONFIG SET dir /tmp"))
	c = startTestServer(t, Options{}, "enable-protected-configs", "local").connect()
	require.Equal(t, "+OK", c.do("CONFIG SET dir "+t.TempDir()))
	require.Equal(t, "-ERR CONFIG SET failed (possibly related to argument 'dir') - Changing directory: No such file or directory", c.do("CONFIG SET dir /nonexistent"))
	require.Equal(t, "-ERR CONFIG SET failed (possibly related to argument 'dir') - Changing directory: Not a directory",
		c.do("CONFIG SET dir "+writeFile(t, "x", "")))
	d, err := openDurable(t, crashfs.Mem(), "enable-protected-configs=yes")
	require.NoError(t, err)
	d.expect("-ERR CONFIG SET failed (possibly related to argument 'dir') - the data stays where it is while the server runs\r\n", "CONFIG SET dir /tmp")
	d.end()
}

func TestUnblockRacesWithServing(t *testing.T) {
	eachTransport(t, func(t *testing.T, o Options, settings ...string) {
		s := newTestServer(t, o, settings...)
		require.NoError(t, s.table.Extend(awaitCommand()))
		require.NoError(t, s.Start())
		b := s.connect()
		id := b.do("CLIENT ID")
		a, w := s.connect(), s.connect()
		for range 50 {
			b.Append("AWAIT", "k")
			require.NoError(t, b.Flush())
			a.waitFor("INFO clients", "blocked_clients:1\r\n")
			var wg sync.WaitGroup
			wg.Go(func() { w.do("SET k v") })
			unblocked := a.do("CLIENT UNBLOCK " + id + " ERROR")
			want := map[string]string{"0": "+served", "1": "-UNBLOCKED client unblocked via CLIENT UNBLOCK"}[unblocked]
			require.Equal(t, want, b.read())
			wg.Wait()
			w.do("DEL k")
		}
	})
}

// awaitCommand is a command that waits for a key.
func awaitCommand() *command.Command {
	cmd := &command.Command{Name: "await", Arity: 2, Flags: command.Blocking, Keys: command.Keys("i1+r0/1/0[RO]")}
	try := func(c *command.Ctx, key []byte) bool {
		if c.G.Peek(c.DB, key) == nil {
			return false
		}
		c.W.Simple("served")
		return true
	}
	cmd.Do = func(c *command.Ctx) {
		if !try(c, c.Args[1]) {
			c.Block(command.Block{Keys: c.Args[1:], Try: try, Empty: func(w *resp.Writer) { w.Null() }})
		}
	}
	return cmd
}
