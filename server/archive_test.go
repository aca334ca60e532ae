package server

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/atomredis/atomredis/engine/clock"
	"github.com/atomredis/atomredis/internal/archive"
	"github.com/atomredis/atomredis/internal/archive/objects"
	"github.com/atomredis/atomredis/internal/config"
	"github.com/atomredis/atomredis/internal/testing/crashfs"
	"github.com/atomredis/atomredis/internal/testing/testseed"
	"github.com/atomredis/atomredis/persist/disk"
	"github.com/atomredis/atomredis/resp"
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
	store, err := objects.Open(s.fs, s.config.Get().Persistence.Archive)
	require.NoError(s.t, err)
	require.Eventually(s.t, func() bool {
		s.clock.Advance(time.Second)
		if s.archived.Status().Time.Before(to) {
			return false
		}
		_, err := objects.Find(s.t.Context(), store, to)
		return err == nil
	}, testTimeout, time.Millisecond)
}

// backTo opens the data of an archive at a time.
func backTo(t *testing.T, in string, to time.Time) (*archivedServer, *objects.Point, error) {
	t.Helper()
	return backFrom(t, disk.System, in, to)
}

// backFrom is backTo for an archive on a file system.
func backFrom(t *testing.T, fs disk.FS, in string, to time.Time) (*archivedServer, *objects.Point, error) {
	t.Helper()
	store, err := objects.Open(fs, in)
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
				s.do("EVAL", "redis.call('INCR', KEYS[1]) return redis.call('ZADD', KEYS[2], ARGV[1], ARGV[2])", 2, "n", "z",
					r.IntN(50), key)
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
	// How much time passes while the test waits for the archive depends on the machine.
	_, _, err = backTo(t, in, begun.Add(-time.Minute))
	require.ErrorContains(t, err, "the archive begins at 2026-11-30T")
	_, _, err = backTo(t, in, begun.Add(24*time.Hour))
	require.ErrorContains(t, err, "the archive reaches to 2026-11-30T")
	store, err := objects.Open(disk.System, in)
	require.NoError(t, err)
	chains, err := objects.Check(t.Context(), store, nil)
	require.NoError(t, err)
	require.Len(t, chains, 1)
	require.Empty(t, chains[0].Problems)
}

// requireAt restores a time, and compares the digest.
func requireAt(t *testing.T, fs disk.FS, in string, to time.Time, digest string) {
	t.Helper()
	got, point, err := backFrom(t, fs, in, to)
	require.NoError(t, err, to)
	require.Equal(t, digest, got.do("DEBUG", "DIGEST"), "%s, base of %s", to, point.BaseTime())
	require.NoError(t, got.Close())
}

// gone is a file system on which a directory cannot be reached while away is set.
type gone struct {
	disk.FS
	dir  string
	away atomic.Bool
}

var errGone = errors.New("no route to the archive")

func (g *gone) reach(name string) error {
	if g.away.Load() && strings.HasPrefix(name, g.dir) {
		return errGone
	}
	return nil
}

func (g *gone) Create(name string) (disk.File, error) {
	if err := g.reach(name); err != nil {
		return nil, err
	}
	return g.FS.Create(name)
}

func (g *gone) Open(name string) (disk.File, error) {
	if err := g.reach(name); err != nil {
		return nil, err
	}
	return g.FS.Open(name)
}

func (g *gone) List(name string) ([]string, error) {
	if err := g.reach(name); err != nil {
		return nil, err
	}
	return g.FS.List(name)
}

// While the archive cannot be reached, clients go on and the journal is kept: the archive continues without a gap. If it is away for
// too long there is a gap, which is no part of what can be restored, and a new base.
func TestAnArchiveThatCannotBeReached(t *testing.T) {
	in := filepath.Join(t.TempDir(), "archive")
	fs := &gone{FS: disk.System, dir: in}
	s := startArchived(t, clock.NewManual(begun), Options{FS: fs}, "dir="+t.TempDir(), "archive="+in, "archive-journal-limit=1mb")
	s.do("SET", "k", 0)
	s.awaitArchived()
	value := strings.Repeat("x", 100_000)
	for n, size := range []int{3, 30} {
		s.do("SET", "before", n)
		s.clock.Advance(time.Second)
		before, digest := s.clock.Now(), s.do("DEBUG", "DIGEST")
		s.clock.Advance(time.Second)
		s.do("SET", "later", n)
		s.awaitArchived()
		fs.away.Store(true)
		var during []time.Time
		digests := map[time.Time]string{}
		for i := range size {
			s.do("SET", fmt.Sprint("k", i%4), fmt.Sprint(i, value))
			s.do("SAVE") // the journal needs it no more for a recovery
			s.pass(time.Minute)
			during = append(during, s.clock.Now())
			digests[s.clock.Now()] = s.do("DEBUG", "DIGEST")
			s.pass(time.Minute)
		}
		require.Eventually(t, func() bool {
			s.clock.Advance(time.Second)
			return s.archived.Status().State == archive.Failing
		}, testTimeout, time.Millisecond)
		require.ErrorIs(t, s.archived.Status().LastError, errGone)
		s.pass(2 * time.Minute)
		require.GreaterOrEqual(t, s.archived.Status().Lag, time.Minute)
		require.Contains(t, s.do("INFO", "persistence"), "archive_last_error:no route to the archive")
		fs.away.Store(false)
		s.awaitArchived()
		require.EqualValues(t, n, s.archived.Status().Gaps)
		after := s.clock.Now()
		s.awaitReach(after)
		requireAt(t, disk.System, in, before, digest)
		for i, at := range during {
			if n == 0 {
				requireAt(t, disk.System, in, at, digests[at])
			} else if i > 0 && i < len(during)-1 && i%10 == 0 {
				_, _, err := backTo(t, in, at)
				require.ErrorContains(t, err, "the archive reaches to ")
			}
		}
		requireAt(t, disk.System, in, after, s.do("DEBUG", "DIGEST"))
	}
	require.NoError(t, s.Close())
}

// A server is killed, or its machine loses power, again and again: what was acknowledged is in the archive once it is uploaded, and
// each noted time can be restored.
func TestAnArchiveOfAServerThatCrashes(t *testing.T) {
	r := testseed.Rand(t)
	fs := crashfs.New()
	const in = "/archive"
	settings := []string{"dir=/db", "archive=" + in, "archive-interval=3", "archive-base-interval=100"}
	c := clock.NewManual(begun)
	s := startArchived(t, c, Options{FS: fs}, settings...)
	s.awaitArchived()
	var times []time.Time
	digests := map[time.Time]string{}
	for round := range 6 {
		for range 60 {
			s.do("SET", fmt.Sprint("k", r.IntN(20)), r.IntN(1000), "PX", 1+r.IntN(40_000))
			s.do("SADD", "s", r.IntN(500))
			s.do("SPOP", "s")
			if r.IntN(30) == 0 {
				s.do("SAVE")
			}
			times = append(times, c.Now())
			digests[c.Now()] = s.do("DEBUG", "DIGEST")
			c.Advance(time.Second)
			if r.IntN(4) == 0 {
				time.Sleep(time.Duration(r.IntN(3)) * time.Millisecond) // the archiver works beside the clients
			}
		}
		lost := fs.CrashClone(crashfs.CloneCfg{UnsyncedDataPercent: r.IntN(101), RNG: testseed.Fork(r)})
		require.NoError(t, s.Abandon())
		fs = lost
		s = startArchived(t, c, Options{FS: fs}, settings...)
		if round%2 == 0 {
			s.awaitArchived()
		}
	}
	s.awaitReach(c.Now())
	require.Zero(t, s.archived.Status().Gaps)
	for range 6 {
		at := times[r.IntN(len(times))]
		requireAt(t, fs, in, at, digests[at])
	}
	require.NoError(t, s.Close())
	store, err := objects.Open(fs, in)
	require.NoError(t, err)
	chains, err := objects.Check(t.Context(), store, nil)
	require.NoError(t, err)
	require.Len(t, chains, 1)
	require.Empty(t, chains[0].Problems)
}

// What no second within the retention needs is deleted, and nothing else.
func TestARetentionOfTheArchive(t *testing.T) {
	in := filepath.Join(t.TempDir(), "archive")
	s := startArchived(t, clock.NewManual(begun), Options{}, "dir="+t.TempDir(), "archive="+in, "archive-base-interval=600")
	s.awaitArchived()
	digests := map[time.Time]string{}
	var times []time.Time
	hour := func() {
		for range 60 {
			s.do("INCR", "n")
			times = append(times, s.clock.Now())
			digests[s.clock.Now()] = s.do("DEBUG", "DIGEST")
			s.pass(time.Minute)
			s.awaitArchived()
		}
	}
	hour()
	store, err := objects.Open(disk.System, in)
	require.NoError(t, err)
	before, err := objects.List(t.Context(), store)
	require.NoError(t, err)
	require.GreaterOrEqual(t, len(before[0].Bases), 6)
	requireAt(t, disk.System, in, times[1], digests[times[1]])
	s.do("CONFIG", "SET", "archive-retention", "1800")
	hour()
	s.awaitReach(s.clock.Now())
	after, err := objects.List(t.Context(), store)
	require.NoError(t, err)
	require.Less(t, len(after[0].Bases), len(before[0].Bases))
	oldest := s.clock.Now().Add(-1800 * time.Second)
	require.False(t, time.UnixMilli(after[0].From).After(oldest))
	require.Less(t, oldest.Sub(time.UnixMilli(after[0].From)), 30*time.Minute)
	for _, at := range times {
		if !at.Before(oldest) && len(times)%7 == 0 {
			requireAt(t, disk.System, in, at, digests[at])
		}
	}
	_, _, err = backTo(t, in, times[1])
	require.ErrorContains(t, err, "the archive begins at ")
	chains, err := objects.Check(t.Context(), store, nil)
	require.NoError(t, err)
	require.Len(t, chains, 1)
	require.Empty(t, chains[0].Problems)
	require.NoError(t, s.Close())
}

// Two servers with one archive: the second one waits while the first one writes, takes it over after a long silence, and the first one
// notices.
func TestTwoServersWithOneArchive(t *testing.T) {
	in := filepath.Join(t.TempDir(), "archive")
	c := clock.NewManual(begun)
	first := startArchived(t, c, Options{}, "dir="+t.TempDir(), "archive="+in)
	first.do("SET", "k", "first")
	first.awaitArchived()
	fs := &gone{FS: disk.System, dir: in}
	second := startArchived(t, c, Options{FS: fs}, "dir="+t.TempDir(), "archive="+in)
	second.do("SET", "k", "second")
	for range 10 {
		first.do("INCR", "n")
		first.pass(time.Minute)
		first.awaitArchived()
		second.awaitState(archive.Waiting)
	}
	require.NoError(t, first.Close())
	second.pass(4 * time.Minute)
	second.awaitArchived()
	require.Contains(t, second.do("INFO", "persistence"), "archive_state:running")
	got, _, err := backTo(t, in, objects.Latest)
	require.NoError(t, err)
	require.Contains(t, got.do("GET", "k"), "second")
	require.NoError(t, got.Close())
	require.NoError(t, second.Close())
}

// awaitState waits until the archiver is in a state.
func (s *archivedServer) awaitState(want archive.State) {
	s.t.Helper()
	require.Eventually(s.t, func() bool { return s.archived.Status().State == want }, testTimeout, time.Millisecond,
		"%v", s.archived.Status())
}

func TestAnArchiveNeedsAJournal(t *testing.T) {
	conf := config.NewConfig()
	for _, pair := range []string{"port=0", "save=", "appendonly=no", "archive=/tmp/x"} {
		name, value, _ := strings.Cut(pair, "=")
		require.NoError(t, conf.Set(name, value, false), pair)
	}
	_, err := New(conf, slog.New(slog.DiscardHandler), Options{})
	require.ErrorIs(t, err, errArchiveJournal)
	srv := startTestServer(t, Options{}, "enable-protected-configs", "yes")
	_, err = do(t, srv.Server, 0, "CONFIG", "SET", "archive", "/tmp/x")
	require.EqualError(t, err, "ERR CONFIG SET failed (possibly related to argument 'archive') - "+errArchiveJournal.Error())
	s := startArchived(t, clock.NewManual(begun), Options{}, "dir="+t.TempDir(), "enable-protected-configs=yes")
	_, err = do(t, s.Server, 0, "CONFIG", "SET", "archive", "relative")
	require.ErrorContains(t, err, "the path of a directory must be absolute")
	require.Contains(t, s.do("INFO", "persistence"), "archive_state:off")
	s.do("CONFIG", "SET", "archive", filepath.Join(t.TempDir(), "archive"))
	s.do("SET", "k", 1)
	s.awaitArchived()
	s.do("CONFIG", "SET", "archive", "")
	s.awaitState(archive.Off)
	require.NoError(t, s.Close())
}

// The leader of a group is killed, or hands over the lead, again and again: the archive goes on without a gap, and each noted time can
// be restored.
func TestAnArchiveOfAGroup(t *testing.T) {
	r := testseed.Rand(t)
	in := filepath.Join(t.TempDir(), "archive")
	g := startGroup(t, 3, "archive="+in, "archive-interval=50ms", "checkpoint-size=1mb", "enable-debug-command=yes")
	g.settled()
	// The lead may change at any time, which ends sessions.
	again := func(at func() *groupNode, args ...any) string {
		var reply resp.Reply
		require.EventuallyWithT(t, func(c *assert.CollectT) {
			var err error
			reply, err = do(t, at().Server, 0, args...)
			assert.NoError(c, err)
		}, testTimeout, 10*time.Millisecond)
		return reply.String()
	}
	digest := func(n *groupNode) string { return again(func() *groupNode { return n }, "DEBUG", "DIGEST") }
	// archived waits until the archive has everything.
	archived := func() *groupNode {
		var leads *groupNode
		require.Eventually(t, func() bool {
			leads = g.leader()
			st := leads.archived.Status()
			return st.State == archive.Running && st.LagBytes == 0
		}, testTimeout, 10*time.Millisecond)
		return leads
	}
	archived()
	var times []time.Time
	digests := map[time.Time]string{}
	value := strings.Repeat("x", 50_000)
	for round := range 4 {
		for i := range 60 {
			for {
				_, err := do(t, g.leader().Server, 0, "SET", fmt.Sprint("k", r.IntN(30)), fmt.Sprint(i, value), "PX", 100+r.IntN(100_000))
				if err == nil {
					break
				}
			}
		}
		leader := archived()
		time.Sleep(5 * time.Millisecond) // the next change has another time
		times = append(times, time.Now())
		digests[times[round]] = digest(leader)
		time.Sleep(5 * time.Millisecond)
		if round%2 == 0 {
			leader.kill()
			g.leader()
			leader.start()
		} else {
			_ = leader.group.node().Transfer("")
		}
		g.settled()
	}
	again(g.settled, "SET", "last", 1)
	archived()
	for _, n := range g.nodes {
		require.Zero(t, n.archived.Status().Gaps)
	}
	store, err := objects.Open(disk.System, in)
	require.NoError(t, err)
	chains, err := objects.Check(t.Context(), store, nil)
	require.NoError(t, err)
	require.Len(t, chains, 1)
	require.Empty(t, chains[0].Problems)
	for _, at := range times {
		got, _, err := backTo(t, in, at)
		require.NoError(t, err)
		require.Equal(t, digests[at], digest(&groupNode{Server: got.Server}))
		require.NoError(t, got.Close())
	}
}
