package server

import (
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/atomredis/atomredis/engine/clock"
	"github.com/atomredis/atomredis/internal/archive"
	"github.com/atomredis/atomredis/internal/archive/objects"
	"github.com/atomredis/atomredis/internal/config"
	"github.com/atomredis/atomredis/internal/testing/testseed"
	"github.com/atomredis/atomredis/persist/disk"
)

// archivedServer is a server with an archive and a clock of its own.
type archivedServer struct {
	*Server
	t     *testing.T
	clock *clock.Manual
}

// startArchived starts a server without sockets.
func startArchived(t *testing.T, c *clock.Manual, o Options, settings ...string) *archivedServer {
	t.Helper()
	conf := config.NewConfig()
	for _, pair := range append([]string{"port=0", "save=", "appendonly=yes", "appendfsync=always", "enable-debug-command=yes"},
		settings...) {
		name, value, _ := strings.Cut(pair, "=")
		require.NoError(t, conf.Set(name, value, false), pair)
	}
	o.Clock, o.Goroutines = c, true
	log := slog.New(slog.DiscardHandler)
	if os.Getenv("ARCHIVE_LOG") != "" {
		log = slog.New(slog.NewTextHandler(os.Stderr, nil))
	}
	srv, err := New(conf, log, o)
	require.NoError(t, err)
	require.NoError(t, srv.Start())
	return &archivedServer{srv, t, c}
}

// do executes a command, which must succeed.
func (s *archivedServer) do(args ...any) string {
	s.t.Helper()
	reply, err := do(s.t, s.Server, 0, args...)
	require.NoError(s.t, err, args)
	return reply.String()
}

// pass lets time pass, a second at a time.
func (s *archivedServer) pass(d time.Duration) {
	for ; d > 0; d -= time.Second {
		s.clock.Advance(min(d, time.Second))
	}
}

// awaitArchived waits until everything is in the archive.
func (s *archivedServer) awaitArchived() {
	s.t.Helper()
	require.Eventually(s.t, func() bool {
		s.clock.Advance(time.Second)
		st := s.archived.Status()
		return st.State == archive.Running && st.LagBytes == 0
	}, testTimeout, time.Millisecond, "%v", s.archived.Status())
}

// awaitReach waits until the archive is known to be complete up to a time.
func (s *archivedServer) awaitReach(to time.Time) {
	s.t.Helper()
	require.Eventually(s.t, func() bool {
		s.clock.Advance(time.Second)
		return s.archived.Status().Time.After(to)
	}, testTimeout, time.Millisecond)
	s.pass(2 * time.Minute) // the reach is noted once a minute
	s.awaitArchived()
}

// backTo opens the data of an archive at a time.
func backTo(t *testing.T, in string, to time.Time) (*archivedServer, *objects.Point, error) {
	t.Helper()
	store, err := objects.Open(disk.System, in)
	require.NoError(t, err)
	point, err := objects.Find(t.Context(), store, to)
	if err != nil {
		return nil, nil, err
	}
	c := clock.NewManual(point.BaseTime())
	conf := config.NewConfig()
	dir := t.TempDir()
	for _, pair := range []string{"port=0", "save=", "appendonly=yes", "enable-debug-command=yes", "dir=" + dir} {
		name, value, _ := strings.Cut(pair, "=")
		require.NoError(t, conf.Set(name, value, false), pair)
	}
	srv, err := New(conf, slog.New(slog.DiscardHandler), Options{Restore: restoredAt{point, c, to}, Clock: c, Goroutines: true})
	require.NoError(t, err)
	if err := srv.Start(); err != nil {
		return nil, nil, err
	}
	require.NoError(t, srv.Close())
	return startArchived(t, c, Options{}, "dir="+dir), point, nil
}

// restoredAt sets the clock to the instant when all is restored.
type restoredAt struct {
	*objects.Point
	clock *clock.Manual
	to    time.Time
}

func (r restoredAt) Records(do func(now int64, commands []byte) error) error {
	err := r.Point.Records(do)
	to := r.to
	if to == objects.Latest {
		to = time.UnixMilli(r.Reached)
	}
	r.clock.Advance(to.Sub(r.clock.Now()))
	return err
}

// begun is when the clocks of these tests begin.
var begun = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

// An hour of writes, of every kind that depends on time and chance, is restored to chosen seconds: the data is what it was then.
func TestAnHourIsRestoredToTheSecond(t *testing.T) {
	r := testseed.Rand(t)
	in := filepath.Join(t.TempDir(), "archive")
	s := startArchived(t, clock.NewManual(begun), Options{}, "dir="+t.TempDir(), "archive="+in, "archive-base-interval=1200")
	s.awaitArchived()
	first := s.clock.Now()
	var times []time.Time
	digests := map[time.Time]string{}
	for second := range 3600 {
		if second%600 == 0 {
			s.awaitArchived() // bases are made beside the clock
		}
		for range r.IntN(4) {
			key := fmt.Sprint("key", r.IntN(40))
			switch r.IntN(9) {
			case 0:
				s.do("SET", key, second, "PX", 1+r.IntN(60_000))
			case 1:
				s.do("SADD", "set"+key, second, r.IntN(9), "m")
			case 2:
				s.do("SPOP", "set"+key)
			case 3:
				s.do("XADD", "stream", "MAXLEN", 50, "*", "f", second)
			case 4:
				s.do("PERSIST", key)
			case 5:
				s.do("DEL", key)
			case 6:
				s.do("HSET", "hash"+key, r.IntN(5), second)
				s.do("HPEXPIRE", "hash"+key, 1+r.IntN(30_000), "FIELDS", 1, r.IntN(5))
			case 7:
				s.do("EVAL", "redis.call('INCR', KEYS[1]) return redis.call('ZADD', KEYS[2], ARGV[1], ARGV[2])", 2, "n", "z", r.IntN(50), key)
			case 8:
				s.do("EXPIRE", "z", 1+r.IntN(500))
			}
		}
		times = append(times, s.clock.Now())
		digests[s.clock.Now()] = s.do("DEBUG", "DIGEST")
		s.clock.Advance(time.Second)
	}
	s.awaitReach(s.clock.Now())
	require.GreaterOrEqual(t, s.archived.Status().Bases, int64(2))
	for _, to := range []time.Time{times[r.IntN(1000)], times[1300+r.IntN(1000)], times[3599]} {
		got, point, err := backTo(t, in, to)
		require.NoError(t, err)
		require.Equal(t, digests[to], got.do("DEBUG", "DIGEST"), "%s, base of %s", to, point.BaseTime())
		require.NoError(t, got.Close())
	}
	s.do("SET", "last", "1")
	digest := s.do("DEBUG", "DIGEST")
	require.NoError(t, s.Close()) // uploads what is left
	got, _, err := backTo(t, in, objects.Latest)
	require.NoError(t, err)
	require.Equal(t, digest, got.do("DEBUG", "DIGEST"))
	require.NoError(t, got.Close())
	_, _, err = backTo(t, in, first.Add(-time.Minute))
	require.ErrorContains(t, err, "the archive begins at 2026-11-30T12:0")
	_, _, err = backTo(t, in, begun.Add(24*time.Hour))
	require.ErrorContains(t, err, "the archive reaches to 2026-11-30T13:0")
	store, err := objects.Open(disk.System, in)
	require.NoError(t, err)
	chains, err := objects.Check(t.Context(), store, nil)
	require.NoError(t, err)
	require.Len(t, chains, 1)
	require.Empty(t, chains[0].Problems)
}
