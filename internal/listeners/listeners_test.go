package listeners_test

import (
	"crypto/tls"
	"log/slog"
	"math"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/atomredis/atomredis/engine"
	"github.com/atomredis/atomredis/internal/config"
	"github.com/atomredis/atomredis/internal/testing/certificates"
	"github.com/atomredis/atomredis/internal/testing/freeport"
	"github.com/atomredis/atomredis/internal/testing/servertest"
	"github.com/atomredis/atomredis/internal/testing/testclient"
	"github.com/atomredis/atomredis/internal/testing/transcript"
	"github.com/atomredis/atomredis/server"
)

func portOf(t testing.TB, l net.Listener) string {
	_, port, err := net.SplitHostPort(l.Addr().String())
	require.NoError(t, err)
	return port
}

// listening is a server whose addresses a test changes.
type listening struct {
	*server.Server
	t *testing.T
}

// startListening starts a server on its own port, with settings as in redis.conf.
func startListening(t *testing.T, o server.Options, port string, settings ...string) *listening {
	conf := config.NewConfig()
	conf.InMemory()
	for s := range slices.Chunk(append([]string{"bind", "127.0.0.1", "port", port}, settings...), 2) {
		require.NoError(t, conf.Set(s[0], s[1], false))
	}
	return startWith(t, conf, o)
}

// startWith starts a server.
func startWith(t *testing.T, conf *config.Config, o server.Options) *listening {
	srv, err := server.New(conf, slog.New(slog.DiscardHandler), o)
	require.NoError(t, err)
	t.Cleanup(func() { srv.Close() })
	require.NoError(t, srv.Start())
	return &listening{srv, t}
}

// at connects to a port.
func (s *listening) at(port string) *testclient.Client {
	nc, err := transcript.Dial("127.0.0.1:" + port)
	require.NoError(s.t, err)
	return testclient.New(s.t, nc)
}

// requireNobodyAt fails if the port accepts connections.
func requireNobodyAt(t *testing.T, port string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:"+port)
	require.NoError(t, err)
	require.NoError(t, l.Close())
}

const (
	portFailed = "-ERR CONFIG SET failed (possibly related to argument 'port') - Unable to listen on this port. Check server logs."
	bindFailed = "-ERR CONFIG SET failed (possibly related to argument 'bind') - Failed to bind to specified addresses."
)

func TestPortAndBindChangeWhileTheServerRuns(t *testing.T) {
	servertest.EachTransport(t, func(t *testing.T, o server.Options, settings ...string) {
		first, second := freeport.Port(t), freeport.Port(t)
		taken, err := net.Listen("tcp", "127.0.0.1:0")
		require.NoError(t, err)
		defer taken.Close()
		s := startListening(t, o, first, settings...)
		c := s.at(first)

		require.Equal(t, "+OK", c.Line("CONFIG SET port "+second))
		require.Equal(t, "+PONG", s.at(second).Line("PING"))
		requireNobodyAt(t, first)
		require.Equal(t, `["port" "`+second+`"]`, c.Line("CONFIG GET port"), "a client that is connected stays")

		// A failed change changes nothing, whichever directive comes first.
		require.Equal(t, portFailed, c.Line("CONFIG SET maxmemory 1000000000 port "+portOf(t, taken)))
		require.Equal(t, bindFailed, c.Line("CONFIG SET timeout 9 bind 203.0.113.1"))
		require.Equal(t, bindFailed, c.Line("CONFIG SET bind 203.0.113.1 port "+first))
		require.Equal(t, portFailed, c.Line("CONFIG SET port "+first+" bind 203.0.113.1"))
		require.Equal(t, `["port" "`+second+`" "bind" "127.0.0.1" "maxmemory" "0" "timeout" "0"]`,
			c.Line("CONFIG GET port bind maxmemory timeout"))
		require.Equal(t, "+PONG", s.at(second).Line("PING"))
		requireNobodyAt(t, first)

		// The old socket blocks the new one.
		require.Equal(t, "+OK", c.Line("CONFIG SET bind *"))
		require.Equal(t, "+PONG", s.at(second).Line("PING"))
		require.Equal(t, bindFailed, c.Call("CONFIG", "SET", "bind", "127.0.0.1 127.0.0.1"))
		require.Equal(t, "+PONG", s.at(second).Line("PING"), "it listens again after a failure")
		require.Equal(t, "+OK", c.Call("CONFIG", "SET", "bind", "127.0.0.1 -203.0.113.1"))
		require.Equal(t, "+PONG", s.at(second).Line("PING"))

		require.Equal(t, "+OK", c.Line("CONFIG SET port 0"))
		requireNobodyAt(t, second)
		require.Equal(t, "+PONG", c.Line("PING"))
		require.Empty(t, s.Addrs())
		require.Equal(t, "+OK", c.Line("CONFIG SET port "+first))
		require.Equal(t, "+PONG", s.at(first).Line("PING"))
		require.Equal(t, "+OK", c.Call("CONFIG", "SET", "bind", ""))
		requireNobodyAt(t, first)
		require.Equal(t, "-ERR CONFIG SET failed (possibly related to argument 'bind') - Too many bind addresses specified.",
			c.Call("CONFIG", "SET", "bind", "1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17"))
	})
}

// An address of one family accepts only connections of that family, as in Redis: a firewall for one family does not
// protect the other.
func TestListenersBelongToOneFamily(t *testing.T) {
	if l, err := net.Listen("tcp6", "[::1]:0"); err != nil {
		t.Skip("this machine has no IPv6")
	} else {
		l.Close()
	}
	servertest.EachTransport(t, func(t *testing.T, o server.Options, settings ...string) {
		port := freeport.Port(t)
		s := startListening(t, o, port, append(settings, "protected-mode", "no", "bind", "0.0.0.0")...)
		c := s.at(port)
		reaches := func(host string) bool {
			conn, err := net.Dial("tcp", net.JoinHostPort(host, port))
			if err == nil {
				conn.Close()
			}
			return err == nil
		}
		require.True(t, reaches("127.0.0.1"))
		require.False(t, reaches("::1"))
		for _, bind := range []string{"::", "::*", "-::*"} {
			require.Equal(t, "+OK", c.Call("CONFIG", "SET", "bind", bind))
			require.False(t, reaches("127.0.0.1"), bind)
			require.True(t, reaches("::1"), bind)
		}
		for _, bind := range []string{"0.0.0.0 ::", "* -::*", ":: *"} {
			require.Equal(t, "+OK", c.Call("CONFIG", "SET", "bind", bind))
			require.True(t, reaches("127.0.0.1"), bind)
			require.True(t, reaches("::1"), bind)
		}
	})
}

func TestListenersOfTheProgramAndUnixSocketsStay(t *testing.T) {
	own, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	path := filepath.Join(t.TempDir(), "s")
	first, second := freeport.Port(t), freeport.Port(t)
	s := startListening(t, server.Options{Listeners: []net.Listener{own}}, first, "unixsocket", path)
	require.Len(t, s.Addrs(), 3)
	require.NoError(t, s.Config().Set("port", second, true))
	require.Equal(t, "+PONG", s.at(portOf(t, own)).Line("PING"))
	require.Equal(t, "+PONG", s.at(second).Line("PING"))
	nc, err := transcript.Dial(path)
	require.NoError(t, err)
	defer nc.Close()
	v, err := transcript.NewConn(nc).Do(testclient.Timeout, "PING")
	require.NoError(t, err)
	require.Equal(t, "+PONG", v.String())
	require.Len(t, s.Addrs(), 3)
}

func TestRewriteKeepsAPortThatWasChanged(t *testing.T) {
	first, second := freeport.Port(t), freeport.Port(t)
	file := filepath.Join(t.TempDir(), "redis.conf")
	require.NoError(t, os.WriteFile(file, []byte("save \"\"\nappendonly no\nbind 127.0.0.1\nport "+first+"\n"), 0o600))
	conf := config.NewConfig()
	require.NoError(t, conf.LoadFile(file))
	s := startWith(t, conf, server.Options{})
	c := s.at(first)
	require.Equal(t, "+OK", c.Call("CONFIG", "SET", "port", second, "bind", "127.0.0.1 -::1"))
	require.Equal(t, "+OK", c.Line("CONFIG REWRITE"))
	content, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, "save \"\"\nappendonly no\nbind 127.0.0.1 -::1\nport "+second+"\n", string(content))
}

func TestTLSPortChangesWhileTheServerRuns(t *testing.T) {
	a := certificates.New(t, "a")
	cert, key := a.Issue("server", 2)
	port, secure := freeport.Port(t), freeport.Port(t)
	s := startListening(t, server.Options{}, port)
	c := s.at(port)
	const failed = "-ERR CONFIG SET failed (possibly related to argument 'tls-port') - Unable to update TLS configuration. Check server logs."
	require.Equal(t, failed, c.Line("CONFIG SET timeout 5 tls-port "+secure))
	require.Equal(t, `["tls-port" "0" "timeout" "0"]`, c.Line("CONFIG GET tls-port timeout"))
	requireNobodyAt(t, secure)

	withCertificate := "CONFIG SET tls-auth-clients no tls-cert-file " + cert + " tls-key-file " + key
	require.Equal(t, "-ERR CONFIG SET failed (possibly related to argument 'tls-port') - Unable to listen on this port. Check server logs.",
		c.Line(withCertificate+" tls-port "+port))
	require.Equal(t, "+OK", c.Line(withCertificate+" tls-port "+secure))
	conn, err := tls.Dial("tcp", "127.0.0.1:"+secure, &tls.Config{RootCAs: a.Pool})
	require.NoError(t, err)
	require.Equal(t, "+PONG", testclient.New(t, conn).Line("PING"))
	require.Equal(t, "+OK", c.Line("CONFIG SET tls-port 0"))
	requireNobodyAt(t, secure)
	require.Equal(t, "+PONG", s.at(port).Line("PING"))
}

// Clients connect, and the server is closed, while the port changes.
func TestListenersChangeAtAnyTime(t *testing.T) {
	servertest.EachTransport(t, func(t *testing.T, o server.Options, settings ...string) {
		ports := []string{freeport.Port(t), freeport.Port(t)}
		s := startListening(t, o, ports[0], settings...)
		var wg sync.WaitGroup
		for range 4 {
			wg.Go(func() {
				for i := range 200 {
					nc, err := net.Dial("tcp", "127.0.0.1:"+ports[i%2])
					if err != nil {
						continue
					}
					nc.SetDeadline(time.Now().Add(testclient.Timeout))
					nc.Write([]byte("PING\r\n"))
					nc.Read(make([]byte, 16))
					nc.Close()
				}
			})
		}
		for i := range 50 {
			require.NoError(t, s.Config().Set("port", ports[(i+1)%2], true))
		}
		wg.Wait()
		require.Equal(t, "+PONG", s.at(strconv.Itoa(s.Config().Get().Network.Port)).Line("PING"))
		wg.Go(func() {
			for i := range 50 {
				s.Config().Set("port", ports[(i+1)%2], true) // until the server is closed
			}
		})
		require.NoError(t, s.Close())
		wg.Wait()
		for _, port := range ports {
			requireNobodyAt(t, port)
		}
	})
}

// failingListener fails in the first calls of Accept.
type failingListener struct {
	net.Listener
	failures atomic.Int32
}

func (l *failingListener) Accept() (net.Conn, error) {
	if l.failures.Add(-1) >= 0 {
		return nil, &net.OpError{Op: "accept", Err: syscall.EMFILE}
	}
	return l.Listener.Accept()
}

// A server that had no free file descriptor accepts clients again, and can be closed while it waits for one.
func TestClientsAreAcceptedAfterAFailure(t *testing.T) {
	for _, failures := range []int32{3, math.MaxInt32} {
		tcp, err := net.Listen("tcp", "127.0.0.1:0")
		require.NoError(t, err)
		l := &failingListener{Listener: tcp}
		l.failures.Store(failures)
		clock := engine.NewManualClock(time.UnixMilli(1_000_000))
		s := startListening(t, server.Options{Listeners: []net.Listener{l}, Clock: clock}, "0")
		if failures == 3 {
			require.Eventually(t, func() bool {
				clock.Advance(time.Second)
				return l.failures.Load() < 0
			}, testclient.Timeout, time.Millisecond)
			require.Equal(t, "+PONG", s.at(portOf(t, tcp)).Line("PING"))
		}
		require.NoError(t, s.Close())
	}
}

func TestInfoListsListeners(t *testing.T) {
	port, socket := freeport.Port(t), filepath.Join(t.TempDir(), "s")
	s := startListening(t, server.Options{}, port, "bind", "127.0.0.1 -::1 -203.0.113.1", "unixsocket", socket)
	info := s.at(port).Line("INFO server")
	require.Regexp(t, "\r\nlistener0:name=tcp,bind=127.0.0.1(,bind=-::1)?,port="+port+"\r\n", info)
	require.Contains(t, info, "\r\nlistener1:name=unix,bind="+socket+"\r\n")
	require.NotContains(t, info, "listener2")
}
