package server

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
	"github.com/atomredis/atomredis/internal/testing/transcript"
)

// unusedPort returns a port that nobody listens on.
func unusedPort(t testing.TB) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	return portOf(t, l)
}

func portOf(t testing.TB, l net.Listener) string {
	_, port, err := net.SplitHostPort(l.Addr().String())
	require.NoError(t, err)
	return port
}

// startListening starts a server at a port of its own, as redis.conf would have it.
func startListening(t *testing.T, o Options, port string, settings ...string) *testServer {
	conf := config.NewConfig()
	conf.InMemory()
	for s := range slices.Chunk(append([]string{"bind", "127.0.0.1", "port", port}, settings...), 2) {
		require.NoError(t, conf.Set(s[0], s[1], false))
	}
	srv, err := New(conf, slog.New(slog.DiscardHandler), o)
	require.NoError(t, err)
	t.Cleanup(func() { srv.Close() })
	require.NoError(t, srv.Start())
	return &testServer{srv, t}
}

// at connects to a port.
func (s *testServer) at(port string) *testClient {
	nc, err := transcript.Dial("127.0.0.1:" + port)
	require.NoError(s.t, err)
	return newTestClient(s.t, nc)
}

// requireNobodyAt fails if somebody listens on the port.
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
	eachTransport(t, func(t *testing.T, o Options, settings ...string) {
		first, second := unusedPort(t), unusedPort(t)
		taken, err := net.Listen("tcp", "127.0.0.1:0")
		require.NoError(t, err)
		defer taken.Close()
		s := startListening(t, o, first, settings...)
		c := s.at(first)

		require.Equal(t, "+OK", c.do("CONFIG SET port "+second))
		require.Equal(t, "+PONG", s.at(second).do("PING"))
		requireNobodyAt(t, first)
		require.Equal(t, `["port" "`+second+`"]`, c.do("CONFIG GET port"), "a client that is connected stays")

		// What cannot be had changes nothing, whichever directive comes first.
		require.Equal(t, portFailed, c.do("CONFIG SET maxmemory 1000000000 port "+portOf(t, taken)))
		require.Equal(t, bindFailed, c.do("CONFIG SET timeout 9 bind 203.0.113.1"))
		require.Equal(t, bindFailed, c.do("CONFIG SET bind 203.0.113.1 port "+first))
		require.Equal(t, portFailed, c.do("CONFIG SET port "+first+" bind 203.0.113.1"))
		require.Equal(t, `["port" "`+second+`" "bind" "127.0.0.1" "maxmemory" "0" "timeout" "0"]`,
			c.do("CONFIG GET port bind maxmemory timeout"))
		require.Equal(t, "+PONG", s.at(second).do("PING"))
		requireNobodyAt(t, first)

		// The old socket stands in the way of the new one.
		v, err := c.Do(testTimeout, "CONFIG", "SET", "bind", "*")
		require.NoError(t, err)
		require.Equal(t, "+OK", v.String())
		require.Equal(t, "+PONG", s.at(second).do("PING"))
		require.Equal(t, bindFailed, errorOf(t, c, "CONFIG", "SET", "bind", "127.0.0.1 127.0.0.1"))
		require.Equal(t, "+PONG", s.at(second).do("PING"), "it listens again after a failure")
		require.Equal(t, "+OK", errorOf(t, c, "CONFIG", "SET", "bind", "127.0.0.1 -203.0.113.1"))
		require.Equal(t, "+PONG", s.at(second).do("PING"))

		require.Equal(t, "+OK", c.do("CONFIG SET port 0"))
		requireNobodyAt(t, second)
		require.Equal(t, "+PONG", c.do("PING"))
		require.Empty(t, s.Addrs())
		require.Equal(t, "+OK", c.do("CONFIG SET port "+first))
		require.Equal(t, "+PONG", s.at(first).do("PING"))
		require.Equal(t, "+OK", errorOf(t, c, "CONFIG", "SET", "bind", ""))
		requireNobodyAt(t, first)
		require.Equal(t, "-ERR CONFIG SET failed (possibly related to argument 'bind') - Too many bind addresses specified.",
			errorOf(t, c, "CONFIG", "SET", "bind", "1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17"))
	})
}

// An address of one family takes connections of that family only, as in Redis: a firewall for one is no firewall for the
// other.
func TestListenersBelongToOneFamily(t *testing.T) {
	if l, err := net.Listen("tcp6", "[::1]:0"); err != nil {
		t.Skip("this machine has no IPv6")
	} else {
		l.Close()
	}
	eachTransport(t, func(t *testing.T, o Options, settings ...string) {
		port := unusedPort(t)
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
			require.Equal(t, "+OK", errorOf(t, c, "CONFIG", "SET", "bind", bind))
			require.False(t, reaches("127.0.0.1"), bind)
			require.True(t, reaches("::1"), bind)
		}
		for _, bind := range []string{"0.0.0.0 ::", "* -::*", ":: *"} {
			require.Equal(t, "+OK", errorOf(t, c, "CONFIG", "SET", "bind", bind))
			require.True(t, reaches("127.0.0.1"), bind)
			require.True(t, reaches("::1"), bind)
		}
	})
}

// errorOf returns the reply to a command whose words may have spaces.
func errorOf(t *testing.T, c *testClient, words ...string) string {
	v, err := c.Do(testTimeout, words...)
	require.NoError(t, err)
	return v.String()
}

func TestListenersOfTheProgramAndUnixSocketsStay(t *testing.T) {
	own, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	path := filepath.Join(t.TempDir(), "s")
	first, second := unusedPort(t), unusedPort(t)
	s := startListening(t, Options{Listeners: []net.Listener{own}}, first, "unixsocket", path)
	require.Len(t, s.Addrs(), 3)
	require.NoError(t, s.config.Set("port", second, true))
	require.Equal(t, "+PONG", s.at(portOf(t, own)).do("PING"))
	require.Equal(t, "+PONG", s.at(second).do("PING"))
	nc, err := transcript.Dial(path)
	require.NoError(t, err)
	defer nc.Close()
	v, err := transcript.NewConn(nc).Do(testTimeout, "PING")
	require.NoError(t, err)
	require.Equal(t, "+PONG", v.String())
	require.Len(t, s.Addrs(), 3)
}

func TestRewriteKeepsAPortThatWasChanged(t *testing.T) {
	first, second := unusedPort(t), unusedPort(t)
	file := filepath.Join(t.TempDir(), "redis.conf")
	require.NoError(t, os.WriteFile(file, []byte("save \"\"\nappendonly no\nbind 127.0.0.1\nport "+first+"\n"), 0o600))
	conf := config.NewConfig()
	require.NoError(t, conf.LoadFile(file))
	srv, err := New(conf, slog.New(slog.DiscardHandler), Options{})
	require.NoError(t, err)
	defer srv.Close()
	require.NoError(t, srv.Start())
	s := &testServer{srv, t}
	c := s.at(first)
	require.Equal(t, "+OK", errorOf(t, c, "CONFIG", "SET", "port", second, "bind", "127.0.0.1 -::1"))
	require.Equal(t, "+OK", c.do("CONFIG REWRITE"))
	content, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, "save \"\"\nappendonly no\nbind 127.0.0.1 -::1\nport "+second+"\n", string(content))
}

func TestTLSPortChangesWhileTheServerRuns(t *testing.T) {
	a := certificates.New(t, "a")
	cert, key := a.Issue("server", 2)
	port, secure := unusedPort(t), unusedPort(t)
	s := startListening(t, Options{}, port)
	c := s.at(port)
	const failed = "-ERR CONFIG SET failed (possibly related to argument 'tls-port') - Unable to update TLS configuration. Check server logs."
	require.Equal(t, failed, c.do("CONFIG SET timeout 5 tls-port "+secure))
	require.Equal(t, `["tls-port" "0" "timeout" "0"]`, c.do("CONFIG GET tls-port timeout"))
	requireNobodyAt(t, secure)

	withCertificate := "CONFIG SET tls-auth-clients no tls-cert-file " + cert + " tls-key-file " + key
	require.Equal(t, "-ERR CONFIG SET failed (possibly related to argument 'tls-port') - Unable to listen on this port. Check server logs.",
		c.do(withCertificate+" tls-port "+port))
	require.False(t, s.tls.Loaded())
	require.Equal(t, "+OK", c.do(withCertificate+" tls-port "+secure))
	reply, _, err := ping("127.0.0.1:"+secure, &tls.Config{RootCAs: a.Pool})
	require.NoError(t, err)
	require.Equal(t, "+PONG\r\n", reply)
	require.Equal(t, "+OK", c.do("CONFIG SET tls-port 0"))
	requireNobodyAt(t, secure)
	require.Equal(t, "+PONG", s.at(port).do("PING"))
}

// Clients connect, and the server is closed, while the port changes.
func TestListenersChangeAtAnyTime(t *testing.T) {
	eachTransport(t, func(t *testing.T, o Options, settings ...string) {
		ports := []string{unusedPort(t), unusedPort(t)}
		s := startListening(t, o, ports[0], settings...)
		var wg sync.WaitGroup
		for range 4 {
			wg.Go(func() {
				for i := range 200 {
					nc, err := net.Dial("tcp", "127.0.0.1:"+ports[i%2])
					if err != nil {
						continue
					}
					nc.SetDeadline(time.Now().Add(testTimeout))
					nc.Write([]byte("PING\r\n"))
					nc.Read(make([]byte, 16))
					nc.Close()
				}
			})
		}
		for i := range 50 {
			require.NoError(t, s.config.Set("port", ports[(i+1)%2], true))
		}
		wg.Wait()
		require.Equal(t, "+PONG", s.at(strconv.Itoa(s.config.Get().Port)).do("PING"))
		wg.Go(func() {
			for i := range 50 {
				s.config.Set("port", ports[(i+1)%2], true) // until the server is closed
			}
		})
		require.NoError(t, s.Close())
		wg.Wait()
		for _, port := range ports {
			requireNobodyAt(t, port)
		}
	})
}

// failingListener cannot accept for the first times.
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

// A server that was out of files accepts clients again, and can be closed while it waits for that.
func TestClientsAreAcceptedAfterAFailure(t *testing.T) {
	for _, failures := range []int32{3, math.MaxInt32} {
		tcp, err := net.Listen("tcp", "127.0.0.1:0")
		require.NoError(t, err)
		l := &failingListener{Listener: tcp}
		l.failures.Store(failures)
		clock := engine.NewManualClock(time.UnixMilli(1_000_000))
		s := startListening(t, Options{Listeners: []net.Listener{l}, Clock: clock}, "0")
		if failures == 3 {
			require.Eventually(t, func() bool {
				clock.Advance(time.Second)
				return l.failures.Load() < 0
			}, testTimeout, time.Millisecond)
			require.Equal(t, "+PONG", s.at(portOf(t, tcp)).do("PING"))
		}
		require.NoError(t, s.Close())
	}
}
