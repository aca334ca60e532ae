package server

import (
	"fmt"
	"log/slog"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/atomredis/atomredis/internal/config"
	"github.com/atomredis/atomredis/internal/session"
	"github.com/atomredis/atomredis/internal/testing/crashfs"
	"github.com/atomredis/atomredis/internal/transport"
)

// infoNumber returns a number of INFO.
func infoNumber(t testing.TB, b *harness, s *session.Session, name string) int64 {
	return infoNumbers(t, b, s, name)[0]
}

// infoNumbers returns numbers of a single INFO, because at the next one the client's own buffers may be larger, and
// keys may have been evicted for them.
func infoNumbers(t testing.TB, b *harness, s *session.Session, names ...string) (all []int64) {
	info := b.feed(s, request("INFO", "everything"))
	for _, name := range names {
		m := regexp.MustCompile(name + `[:=](\d+)`).FindStringSubmatch(info)
		require.NotNil(t, m, name)
		n, err := strconv.ParseInt(m[1], 10, 64)
		require.NoError(t, err)
		all = append(all, n)
	}
	return all
}

// INFO and MEMORY STATS show the memory that maxmemory limits, with a limit and without. It does not include
// garbage.
func TestMemoryInUseIsWhatIsLimited(t *testing.T) {
	b := newHarness(t)
	s := b.session()
	defer b.finish(t, s)
	const buffers = 64 << 10 // of the client, which differ between two commands
	allocated := regexp.MustCompile(`total\.allocated\r\n:(\d+)`)
	used := func() int64 {
		shown := infoNumbers(t, b, s, "\nused_memory", "used_memory_peak", "used_memory_overhead", "used_memory_dataset",
			"used_memory_startup", "mem_not_counted_for_evict")
		require.InDelta(t, b.UsedMemory(), shown[0], buffers)
		m := allocated.FindStringSubmatch(b.feed(s, request("MEMORY", "STATS")))
		require.NotNil(t, m)
		stats, err := strconv.ParseInt(m[1], 10, 64)
		require.NoError(t, err)
		require.InDelta(t, shown[0], stats, buffers)
		require.GreaterOrEqual(t, shown[1], shown[0])
		require.Equal(t, shown[0], shown[2]+shown[3], "overhead and data are all that is in use")
		require.Equal(t, []int64{0, 0}, shown[4:])
		return shown[0]
	}
	value := strings.Repeat("v", 1000)
	for _, limit := range []string{"0", "8mb"} {
		require.Equal(t, "+OK\r\n", b.feed(s, request("CONFIG", "SET", "maxmemory", limit)))
		empty := used()
		for i := range 4000 {
			require.Equal(t, "+OK\r\n", b.feed(s, request("SET", fmt.Sprint("key:", i), value)))
		}
		full := used()
		require.Greater(t, full-empty, int64(4000*1000))
		require.Less(t, full-empty, int64(4000*1200))
		for i := range 2000 {
			b.feed(s, request("SET", fmt.Sprint("key:", i), value)) // it makes garbage
			b.feed(s, request("DEL", fmt.Sprint("key:", i)))
		}
		require.InDelta(t, (full-empty)/2, used()-empty, 2*buffers)
		b.feed(s, request("FLUSHALL"))
		require.InDelta(t, empty, used(), buffers)
	}
	require.Equal(t, "+OK\r\n", b.feed(s, request("CONFIG", "SET", "maxmemory", fmt.Sprint(used()+200_000))))
	written := 0
	for ; b.feed(s, request("SET", fmt.Sprint("key:", written), value)) == "+OK\r\n"; written++ {
	}
	require.InDelta(t, 200, written, 100, "what INFO shows decides when commands are refused")
}

func TestMemoryStaysWithinTheLimit(t *testing.T) {
	b := newHarness(t)
	s := b.session()
	defer b.finish(t, s)
	const limit = 1 << 20
	value := strings.Repeat("v", 1000)
	for i := range 100 {
		require.Equal(t, "+OK\r\n", b.feed(s, request("SET", fmt.Sprint("before:", i), value)))
	}
	require.Zero(t, infoNumber(t, b, s, "\nmaxmemory"))
	require.Equal(t, "+OK\r\n", b.feed(s, request("CONFIG", "SET", "maxmemory", fmt.Sprint(limit), "maxmemory-policy",
		"allkeys-lru")))
	for i := range 5000 {
		require.Equal(t, "+OK\r\n", b.feed(s, request("SET", fmt.Sprint("key:", i), value)))
		require.Less(t, b.UsedMemory(), int64(limit+4096), "one value too many at most")
	}
	require.Greater(t, b.UsedMemory(), int64(limit*9/10))
	keptAndEvicted := infoNumbers(t, b, s, "db0:keys", "evicted_keys")
	require.EqualValues(t, 5100, keptAndEvicted[0]+keptAndEvicted[1])
	require.EqualValues(t, limit, infoNumber(t, b, s, "\nmaxmemory"))

	// A key in use stays.
	b.feed(s, request("SET", "used", "v"))
	for i := range 3000 {
		b.feed(s, request("SET", fmt.Sprint("more:", i), value))
		require.Equal(t, "$1\r\nv\r\n", b.feed(s, request("GET", "used")))
	}

	// After the limit is lowered keys are evicted without any command.
	require.Equal(t, "+OK\r\n", b.feed(s, request("CONFIG", "SET", "maxmemory", fmt.Sprint(limit/2),
		"maxmemory-eviction-tenacity", "0")))
	b.clock.Advance(time.Second)
	require.LessOrEqual(t, b.UsedMemory(), int64(limit/2))
	require.Equal(t, "+OK\r\n", b.feed(s, request("FLUSHALL")))
	require.Equal(t, b.sessions.Clients.Memory(), b.UsedMemory())
}

// CONFIG SET may come under a guard that holds shards.
func TestTheLimitCanBeSetInATransaction(t *testing.T) {
	b := newHarness(t)
	s := b.session()
	defer b.finish(t, s)
	for _, c := range []string{"MULTI", "SET a b", "CONFIG SET maxmemory 1", "SET c d", "EXEC"} {
		b.feed(s, request(strings.Fields(c)...))
	}
	require.Equal(t, "-OOM command not allowed when used memory > 'maxmemory'.\r\n", b.feed(s, request("SET", "a", "b")))
	require.Greater(t, infoNumber(t, b, s, "current_eviction_exceeded_time"), int64(-1))
	for _, c := range []string{"MULTI", "EXEC", "CONFIG SET maxmemory 0"} {
		b.feed(s, request(strings.Fields(c)...))
	}
	require.Equal(t, "+OK\r\n", b.feed(s, request("SET", "a", "b")))
}

func TestClientsThatUseTooMuchMemoryAreDisconnected(t *testing.T) {
	b := newHarness(t)
	small, large, kept := b.session(), b.session(), b.session()
	defer b.finish(t, small)
	require.Equal(t, "+OK\r\n", b.feed(small, request("CONFIG", "SET", "maxmemory-clients", "1mb")))
	require.Equal(t, "+OK\r\n", b.feed(kept, request("CLIENT", "NO-EVICT", "ON")))
	queue := func(s *session.Session) {
		b.feed(s, request("MULTI"))
		b.feed(s, request("SET", "k", strings.Repeat("v", 600_000)))
	}
	queue(kept)
	require.Zero(t, infoNumber(t, b, small, "evicted_clients"))
	require.Less(t, b.sessions.Clients.Memory(), int64(1<<20))
	queue(large)
	b.feed(large)
	require.True(t, large.Closing())
	require.False(t, kept.Closing())
	large.Close()
	require.EqualValues(t, 1, infoNumber(t, b, small, "evicted_clients"))
	require.False(t, small.Closing())
	kept.Close()
	require.Less(t, b.sessions.Clients.Memory(), int64(100_000))
}

// Evicted keys do not come back after a restart, and the memory is counted as before.
func TestEvictedKeysStayGone(t *testing.T) {
	fs := crashfs.Mem()
	open := func() *Server {
		conf := config.NewConfig()
		for name, value := range map[string]string{"dir": "/data", "port": "0", "appendfsync": "always",
			"maxmemory": "300kb", "maxmemory-policy": "allkeys-random"} {
			require.NoError(t, conf.Set(name, value, false))
		}
		srv, err := New(conf, slog.New(slog.DiscardHandler), Options{FS: fs, Goroutines: true})
		require.NoError(t, err)
		require.NoError(t, srv.Start())
		return srv
	}
	srv := open()
	s := srv.sessions.Open(transport.Peer{}, func() {})
	for i := range 1000 {
		s.Input(request("SET", fmt.Sprint("key:", i), strings.Repeat("v", 1000)), srv.ks.Now())
	}
	s.Close()
	now := srv.ks.Now()
	before, used := dump(srv.ks, now), srv.ks.UsedMemory()
	require.NotEmpty(t, before)
	require.NoError(t, srv.close(false))

	srv = open()
	require.Equal(t, before, dump(srv.ks, now))
	require.InEpsilon(t, used, srv.ks.UsedMemory(), 0.1)
	require.NoError(t, srv.Close())
}
