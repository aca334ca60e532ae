package session

import (
	"log/slog"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/atomredis/atomredis/engine"
	"github.com/atomredis/atomredis/internal/config"
	"github.com/atomredis/atomredis/internal/testing/commandtest"
	"github.com/atomredis/atomredis/internal/transport"
	"github.com/atomredis/atomredis/persist/disk"
)

// NewTestServer makes a server without sockets, whose sessions tests inspect, and returns a function that closes it.
// A file of the external tests sets it, because this package cannot import the server's.
var NewTestServer func(conf *config.Config, log *slog.Logger, clock engine.Clock, fs disk.FS) (sh *Shared, closeIt func() error, err error)

// harness is a server whose clock a test advances.
type harness struct {
	*Shared
	Close  func() error
	clock  *engine.ManualClock
	panics *commandtest.PanicLog
}

func newHarness(t require.TestingT) *harness {
	return newHarnessWith(t, "proto-max-bulk-len", "1mb", "shards", "4")
}

// newHarnessWith is newHarness with directives and their values.
func newHarnessWith(t require.TestingT, settings ...string) *harness {
	conf := config.NewConfig()
	conf.InMemory()
	return newHarnessOf(t, conf, nil, settings)
}

// newHarnessOn returns a server that syncs each change to a file system.
func newHarnessOn(t require.TestingT, fs disk.FS, settings ...string) *harness {
	return newHarnessOf(t, config.NewConfig(), fs, append([]string{"port", "0", "dir", "/db", "save", "", "appendonly", "yes",
		"appendfsync", "always", "databases", "4"}, settings...))
}

func newHarnessOf(t require.TestingT, conf *config.Config, fs disk.FS, settings []string) *harness {
	for i := 0; i < len(settings); i += 2 {
		require.NoError(t, conf.Set(settings[i], settings[i+1], false))
	}
	b := &harness{clock: engine.NewManualClock(time.UnixMilli(1e12)), panics: &commandtest.PanicLog{}}
	var err error
	b.Shared, b.Close, err = NewTestServer(conf, slog.New(b.panics), b.clock, fs)
	require.NoError(t, err)
	return b
}

func (b *harness) session() *Session {
	return b.Open(transport.Peer{Addr: "127.0.0.1:1", Local: "127.0.0.1:2"}, func() {})
}

// feed gives the session input, advances the clock by a second, and returns the output.
func (b *harness) feed(s *Session, pieces ...[]byte) string {
	for _, p := range pieces {
		if !s.Closing() {
			s.Input(p, b.Keyspace.Now())
		}
	}
	b.clock.Advance(time.Second)
	s.Advance(b.Keyspace.Now())
	out := string(s.Output())
	s.SetOutput(nil)
	return out
}

// told gives the session a command, and returns the reply once it may be sent, "" if the session ends before.
func (b *harness) told(s *Session, args ...string) string {
	s.Input(request(args...), b.Keyspace.Now())
	for {
		b.Storage.Kick()
		s.Advance(b.Keyspace.Now())
		n, out := s.Sendable(), string(s.Output())
		if s.Closing() {
			return ""
		}
		if n > 0 && n == len(out) {
			s.SetOutput(nil)
			return out
		}
		time.Sleep(50 * time.Microsecond)
	}
}

// finish closes the session and the server, and fails the test if a handler has panicked.
func (b *harness) finish(t require.TestingT, s *Session) {
	s.Close()
	require.NoError(t, b.Close())
	require.Empty(t, b.panics.Found)
}

// request encodes a command.
func request(args ...string) []byte { return commandtest.Request(args...) }
