package server

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"github.com/stretchr/testify/require"

	"github.com/atomredis/atomredis/internal/testing/crashfs"
	"github.com/atomredis/atomredis/persist/disk"
)

const (
	misconfAOF = "-MISCONF Errors writing to the AOF file: No space left on device\r\n"
	misconfRDB = "-MISCONF Redis is configured to save RDB snapshots, but it's currently unable to persist to disk. Commands that may modify " +
		"the data set are disabled, because this instance is configured to report errors during writes if RDB snapshotting fails " +
		"(stop-writes-on-bgsave-error option). Please check the Redis logs for details about the RDB error.\r\n"
)

// A server that crashed on a full disk starts, serves its data, refuses changes as Redis does, and accepts them
// again when there is room.
func TestStartOnAFullDisk(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, refusal string
		settings      []string
	}{
		{"always", misconfAOF, []string{"appendfsync=always"}},
		{"everysec", misconfAOF, []string{"appendfsync=everysec"}},
		{"no", misconfAOF, []string{"appendfsync=no"}},
		{"without a journal", misconfRDB, []string{"appendonly=no", "save=3600 1"}},
		{"the journal is given up", misconfRDB, []string{"appendonly=no", "save=3600 1"}},
	} {
		for _, checkpoint := range []bool{false, true} {
			t.Run(fmt.Sprint(c.name, checkpoint), func(t *testing.T) {
				mem := crashfs.New()
				settings := c.settings
				if c.name == "the journal is given up" {
					settings = nil
				}
				d, err := openDurable(t, mem, settings...)
				require.NoError(t, err)
				n := 3
				for i := range n {
					ok, reply := d.write(i + 1)
					require.True(t, ok, reply)
				}
				d.do("CONFIG SET appendfsync always")
				for d.storage.Durable() < d.storage.Appended() {
					d.storage.Kick()
				}
				if checkpoint || strings.HasPrefix(c.name, "without") {
					_, ok := d.do("SAVE")
					require.True(t, ok)
				}
				killed := mem.CrashClone(crashfs.CloneCfg{UnsyncedDataPercent: 100, RNG: rng(1)})
				d.end()

				var full atomic.Bool
				full.Store(true)
				d, err = openDurable(t, crashfs.Full(killed, &full), c.settings...)
				require.NoError(t, err)
				require.Equal(t, n, d.check("on a full disk"))
				for range 2 {
					reply, ok := d.do("SET other 1")
					require.True(t, ok)
					require.Equal(t, c.refusal, reply)
				}
				reply, _ := d.do("PING")
				require.Equal(t, c.refusal, reply)
				again := killed.CrashClone(crashfs.CloneCfg{UnsyncedDataPercent: 100, RNG: rng(2)})

				full.Store(false)
				for deadline := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
					// PFCOUNT stores no estimate before all know that writes are allowed again.
					if reply, _ = d.do("SET other 1"); reply == "+OK\r\n" && !d.sessions.Restricted.Load() {
						break
					}
					require.True(t, time.Now().Before(deadline), reply)
				}
				ok, reply := d.write(n + 1)
				require.True(t, ok, reply)
				d.do("SAVE")
				healed := killed.CrashClone(crashfs.CloneCfg{UnsyncedDataPercent: 100, RNG: rng(3)})
				d.end()
				for fs, want := range map[disk.FS]int{again: n, healed: n + 1} {
					d, err = openDurable(t, fs, c.settings...)
					require.NoError(t, err)
					require.Equal(t, want, d.check("afterwards"))
					d.end()
				}
			})
		}
	}
}

// Under everysec a full disk loses no acknowledged change, however often it is full, and however long before the
// kill.
func TestFullDiskUnderEverySecLosesNothingAcknowledged(t *testing.T) {
	t.Parallel()
	mem := crashfs.New()
	var full atomic.Bool
	var room atomic.Int64 // the space of removed files
	fs := crashfs.Wrap(mem, errorfs.InjectorFunc(func(op errorfs.Op) error {
		if op.Kind == errorfs.OpRemove && strings.HasSuffix(op.Path, "reserve") {
			room.Add(1 << 20)
		}
		if full.Load() && (op.Kind == errorfs.OpFileWrite || op.Kind == errorfs.OpFileWriteAt) {
			if strings.Contains(op.Path, "/journal/") && room.Add(-10_000) > 0 {
				return nil
			}
			return syscall.ENOSPC
		}
		return nil
	}))
	d, err := openDurable(t, fs, "appendfsync=everysec")
	require.NoError(t, err)
	write := func(n int) bool {
		reply, ok := d.do("MULTI", fmt.Sprintf("SET a %d", n), fmt.Sprintf("EVAL redis.call('SET','b',ARGV[1]) 0 %d", n),
			"EXEC")
		return ok && strings.HasSuffix(reply, "\r\n*2\r\n+OK\r\n$-1\r\n")
	}
	check := func(d *durableServer) int {
		a, _ := d.do("GET a")
		b, _ := d.do("GET b")
		require.Equal(t, a, b, "one half of a transaction")
		n, err := strconv.Atoi(strings.Split(a, "\r\n")[1])
		require.NoError(t, err)
		return n
	}
	n := 0
	for range 3 {
		for range 20 {
			require.True(t, write(n+1))
			n++
		}
		full.Store(true)
		for {
			if !write(n + 1) {
				break
			}
			n++
		}
		killed := mem.CrashClone(crashfs.CloneCfg{UnsyncedDataPercent: 100, RNG: rng(uint64(n))})
		after, err := openDurable(t, killed, "appendfsync=everysec")
		require.NoError(t, err)
		found := check(after)
		require.True(t, found == n || found == n+1, "%d of %d", found, n) // the change that was not acknowledged may exist
		after.end()

		full.Store(false)
		room.Store(0)
		for deadline := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
			if reply, _ := d.do("SET other 1"); reply == "+OK\r\n" {
				break
			}
			require.True(t, time.Now().Before(deadline))
		}
		n = check(d)
	}
	d.end()
}

func rng(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 0)) }
