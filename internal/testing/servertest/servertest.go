// Package servertest starts servers for tests that use only a server's protocol and exported API. A test of commands
// or of a protocol is an external test in their package, and uses one of these:
//
//   - Start: a server that listens, with clients over TCP whose replies are in the notation of transcripts
//   - NewStepped: a server without sockets whose clock stands still; a command that has no reply yet waits
//   - OpenDurable: a server whose data is on a file system in memory, to be restarted
//   - Transcripts: the transcripts of a group, replayed
//
// Tests of handlers that need no server use package commandtest. Tests inside package server cannot import this
// package, which imports it; code that both need is in packages commandtest and testclient.
package servertest

import (
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/atomredis/atomredis/internal/config"
	"github.com/atomredis/atomredis/internal/testing/testclient"
	"github.com/atomredis/atomredis/internal/testing/transcript"
	"github.com/atomredis/atomredis/server"
)

// ShardsVariable is the environment variable with the number of shards of servers whose tests do not choose one.
const ShardsVariable = "ATOMREDIS_TEST_SHARDS"

// Server is a running server that listens on a port of its own.
type Server struct {
	*server.Server
	t testing.TB
}

// Start starts a server in memory. settings are directives and their values in turn. The end of the test closes it.
func Start(t testing.TB, o server.Options, settings ...string) *Server {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	o.Listeners = []net.Listener{l}
	srv, err := server.New(memoryConfig(t, settings), slog.New(slog.DiscardHandler), o)
	require.NoError(t, err)
	t.Cleanup(func() { srv.Close() })
	require.NoError(t, srv.Start())
	return &Server{srv, t}
}

// EachTransport runs a test with one event loop, with several, and with goroutines; with one shard and with many.
func EachTransport(t *testing.T, test func(t *testing.T, o server.Options, settings ...string)) {
	t.Run("one loop", func(t *testing.T) { test(t, server.Options{}, "shards", "1") })
	t.Run("four loops", func(t *testing.T) {
		test(t, server.Options{}, "shards", "16", "io-threads", "4", "io-uring", "no")
	})
	t.Run("goroutines", func(t *testing.T) { test(t, server.Options{Goroutines: true}, "shards", "16") })
}

// Dial connects to the server.
func (s *Server) Dial() (net.Conn, error) { return transcript.Dial(s.Addrs()[0].String()) }

// Connect returns a new client, which the end of the test closes.
func (s *Server) Connect() *testclient.Client {
	s.t.Helper()
	nc, err := s.Dial()
	require.NoError(s.t, err)
	return testclient.New(s.t, nc)
}

// Transcripts replays the transcripts of a group, conformance/testdata/<group>, on each transport. The caller's
// package is three folders below the module's. Package conformance skips groups that tests replay with this
// function.
func Transcripts(t *testing.T, group string) {
	files, err := filepath.Glob("../../../conformance/testdata/" + group + "/*.txt")
	require.NoError(t, err)
	require.NotEmpty(t, files, group)
	EachTransport(t, func(t *testing.T, o server.Options, settings ...string) {
		s := Start(t, o, append([]string{"enable-debug-command", "yes"}, settings...)...)
		for _, file := range files {
			t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) { transcript.Run(t, s.Dial, file) })
		}
	})
}

// memoryConfig returns the configuration of a server whose data are in memory only.
func memoryConfig(t require.TestingT, settings []string) *config.Config {
	conf := config.NewConfig()
	conf.InMemory()
	require.NoError(t, conf.Set("port", "0", false))
	set(t, conf, settings)
	return conf
}

// set sets directives. The number of shards is that of ATOMREDIS_TEST_SHARDS unless a directive sets it.
func set(t require.TestingT, conf *config.Config, settings []string) {
	if shards := os.Getenv(ShardsVariable); shards != "" {
		require.NoError(t, conf.Set("shards", shards, false))
	}
	for i := 0; i < len(settings); i += 2 {
		require.NoError(t, conf.Set(settings[i], settings[i+1], false))
	}
}
