package journal

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/atomredis/atomredis/internal/testing/crashfs"
	"github.com/atomredis/atomredis/internal/testing/testseed"
	"github.com/atomredis/atomredis/persist/disk"
)

// history has the records appended to a journal, and how much of it must survive a crash.
type history struct {
	entries    []entry       // with the LSN after each
	checkpoint atomic.Uint64 // LSN before which a checkpoint has everything
}

func (h *history) append(j *File, commands string) {
	j.Append(0, []byte(commands))
	h.entries = append(h.entries, entry{lsn: j.Appended(), commands: commands})
}

// check compares the records replayed from a checkpoint on: everything durable must be there, followed by at most a
// prefix of the records appended since. Missing records then count as never appended.
func (h *history) check(t require.TestingT, got []string, checkpoint, durable uint64) {
	var want []entry
	for _, e := range h.entries {
		if e.lsn > checkpoint {
			want = append(want, e)
		}
	}
	require.LessOrEqual(t, len(got), len(want))
	for i, e := range want {
		if i < len(got) {
			require.Equal(t, e.commands, got[i])
		} else {
			require.Greater(t, e.lsn, durable, "%q was durable", e.commands)
		}
	}
	h.entries = h.entries[:len(h.entries)-len(want)+len(got)]
}

func TestWhatIsDurableSurvivesCrashes(t *testing.T) {
	testseed.Check(t, func(t *rapid.T) {
		fs := newFS(t)
		var h history
		for crash := range rapid.IntRange(1, 5).Draw(t, "crashes") {
			policy := rapid.SampledFrom([]Policy{Always, EverySec, No}).Draw(t, "policy")
			j := openAt(t, Options{FS: fs, Policy: policy, SegmentSize: 20_000}, h.checkpoint.Load())
			var rotated uint64
			for i := range rapid.IntRange(0, 30).Draw(t, "steps") {
				switch rapid.IntRange(0, 9).Draw(t, "what") {
				case 0:
					require.NoError(t, j.Sync(context.Background()))
				case 1:
					rotated = j.Rotate()
				case 2:
					if rotated != 0 {
						h.checkpoint.Store(rotated)
						require.NoError(t, j.Release(rotated))
					}
				case 3:
					j.Kick()
				default:
					size := rapid.SampledFrom([]int{0, 10, 100, 3000, 10_000}).Draw(t, "size")
					h.append(j, fmt.Sprintf("%d.%d %s", crash, i, strings.Repeat("x", size)))
				}
			}
			durable := j.Durable()
			percent := rapid.SampledFrom([]int{0, 20, 50, 80, 100}).Draw(t, "unsynced")
			crashed := fs.CrashClone(crashfs.CloneCfg{UnsyncedDataPercent: percent, RNG: rng(rapid.Uint64().Draw(t, "seed"))})
			require.NoError(t, j.Close())
			fs = crashed
			h.check(t, mustReplay(t, fs, h.checkpoint.Load()), h.checkpoint.Load(), durable)
		}
	})
}

// workload is several lives of a journal with everything that can happen in one: rotation, release, failure. Like the
// server, it continues after errors. It counts failures.
type workload struct {
	history
	running  atomic.Pointer[File]
	durable  uint64 // at the end of the last life
	failures int
}

func (w *workload) run(t require.TestingT, fs disk.FS) {
	for life := range 3 {
		w.live(t, fs, life)
	}
}

func (w *workload) live(t require.TestingT, fs disk.FS, life int) {
	got, _, err := replay(fs, w.checkpoint.Load())
	if err != nil {
		w.failures++
		return
	}
	w.check(t, commandsOf(got), w.checkpoint.Load(), w.durable)
	j := Open(Options{FS: fs, Dir: dir, Policy: Policy(life % 2), SegmentSize: 200})
	j.prepare, j.reserve = 100, 1000 // so that the zeros are used up too
	if _, err := j.Read(w.checkpoint.Load(), nothing); err != nil {
		w.failures++
		return
	}
	w.running.Store(j)
	for i := range 12 {
		w.append(j, fmt.Sprintf("%d.%d", life, i))
		if i%2 == 0 {
			j.Kick()
		}
		if i%3 == 0 {
			if err := j.Sync(context.Background()); err != nil {
				require.Error(t, j.Err())
				require.Less(t, j.Durable(), j.Appended())
			}
		}
		if i%6 == 5 && j.Err() == nil {
			lsn := j.Rotate()
			w.append(j, "after rotation")
			w.checkpoint.Store(lsn)
			if j.Release(lsn) != nil {
				w.failures++
			}
		}
		if j.Err() != nil {
			w.failures++
			w.resume(t, j)
		}
	}
	if j.Close() != nil {
		w.failures++
		require.Error(t, j.Err())
	} else {
		require.Equal(t, j.Appended(), j.Durable())
	}
	w.running.Store(nil)
	w.durable = j.Durable()
}

// resume revives a failed journal, as the storage does.
func (w *workload) resume(t require.TestingT, j *File) {
	for range 3 {
		lsn := j.FailedNext()
		require.Greater(t, lsn, j.Durable())
		w.append(j, "kept during the checkpoint")
		w.checkpoint.Store(lsn)
		if j.Resume() == nil {
			require.GreaterOrEqual(t, j.Durable(), lsn)
			return
		}
		require.Error(t, j.Err())
	}
}

func TestCrashAtEveryOperation(t *testing.T) {
	type crash struct {
		fs                  *crashfs.FS
		checkpoint, durable uint64
	}
	for seed, percent := range []int{0, 30, 60, 100} {
		fs := newFS(t)
		random := rng(uint64(seed))
		var mu sync.Mutex
		var w workload
		var crashes []crash
		clone := errorfs.InjectorFunc(func(op errorfs.Op) error {
			if op.Kind.ReadOrWrite() == errorfs.OpIsRead {
				return nil
			}
			mu.Lock()
			defer mu.Unlock()
			// Events between here and the clone can only make more durable.
			c := crash{checkpoint: w.checkpoint.Load()}
			if j := w.running.Load(); j != nil {
				c.durable = j.Durable()
			}
			c.fs = fs.CrashClone(crashfs.CloneCfg{UnsyncedDataPercent: percent, RNG: random})
			crashes = append(crashes, c)
			return nil
		})
		w.run(t, crashfs.Wrap(fs, clone))
		require.Zero(t, w.failures)
		require.Greater(t, len(crashes), 60)
		for _, c := range crashes {
			past := history{entries: w.entries}
			past.check(t, mustReplay(t, c.fs, c.checkpoint), c.checkpoint, c.durable)
			j := openAt(t, Options{FS: c.fs}, c.checkpoint)
			appendSynced(t, j, "again")
			require.NoError(t, j.Close())
			require.Contains(t, mustReplay(t, c.fs, c.checkpoint), "again")
		}
	}
}

func TestErrorAtEveryOperation(t *testing.T) {
	for _, many := range []int32{1, 2, 5, 12} { // consecutive failing operations
		for k := int32(0); ; k++ {
			fs := newFS(t)
			var w workload
			var op, injected, reads, zeros, extras atomic.Int32
			bad := crashfs.Wrap(fs, errorfs.InjectorFunc(func(o errorfs.Op) error {
				if n := op.Add(1) - 1; n < k || n >= k+many {
					return nil
				}
				injected.Add(1)
				if o.Kind == errorfs.OpFileReadAt {
					reads.Add(1) // retried
				}
				if o.Kind == errorfs.OpFileWriteAt && o.Path == positionsPath(fs, dir) && o.Offset == progressSlot*slotDistance ||
					o.Path == reservePath(fs, dir) {
					extras.Add(1) // optional
				}
				return errorfs.ErrInjected
			}))
			w.run(t, zeroFS{bad, func(write func() (int, error)) (int, error) {
				n, err := write()
				if err != nil {
					zeros.Add(1) // optional
				}
				return n, err
			}})
			if injected.Load() == 0 {
				require.Greater(t, k, int32(60))
				break
			}
			if many == 1 && reads.Load()+zeros.Load()+extras.Load() == 0 {
				require.Positive(t, w.failures, "operation %d", k)
			}
			fs = fs.CrashClone(crashfs.CloneCfg{UnsyncedDataPercent: 50, RNG: rng(uint64(k))})
			w.check(t, mustReplay(t, fs, w.checkpoint.Load()), w.checkpoint.Load(), w.durable)
		}
	}
}

func TestResumeKeepsWhatIsAppendedDuringTheCheckpoint(t *testing.T) {
	fs := newFS(t)
	var broken atomic.Bool
	var failedOp atomic.Int32 // an errorfs.OpKind
	bad := crashfs.Wrap(fs, errorfs.InjectorFunc(func(op errorfs.Op) error {
		if broken.Load() && op.Kind == errorfs.OpKind(failedOp.Load()) {
			return errorfs.ErrInjected
		}
		return nil
	}))
	for _, kind := range []errorfs.OpKind{errorfs.OpFileWriteAt, errorfs.OpFileSyncData} {
		notified := make(chan error, 100)
		var j *File
		ready := make(chan struct{})
		from := uint64(0)
		if segments, _, _ := list(fs, dir); len(segments) > 0 {
			from = segments[0].start
		}
		_ = mustReplay(t, fs, from)
		j = openAt(t, Options{FS: bad, Notify: func() {
			<-ready
			notified <- j.Err()
		}}, from)
		close(ready)
		require.ErrorIs(t, j.Resume(), errNotKept, "it has not failed")
		appendSynced(t, j, "good")
		require.NoError(t, <-notified)
		durable := j.Durable()

		failedOp.Store(int32(kind))
		broken.Store(true)
		j.Append(0, []byte("lost"))
		require.ErrorIs(t, j.Sync(context.Background()), errorfs.ErrInjected)
		require.ErrorIs(t, <-notified, errorfs.ErrInjected)
		j.Append(0, []byte("dropped"))
		require.Equal(t, durable, j.Durable())
		require.ErrorIs(t, j.Resume(), errNotKept, "there is no checkpoint")

		first := j.FailedNext()
		j.Append(0, []byte("in the second checkpoint"))
		next := j.FailedNext()
		require.Greater(t, next, first)
		j.Append(0, []byte("kept"))
		broken.Store(false)
		require.NoError(t, j.Resume())
		require.NoError(t, <-notified)
		require.NoError(t, j.Err())
		appendSynced(t, j, "after")
		require.NoError(t, j.Close())
		require.Equal(t, []string{"kept", "after"}, mustReplay(t, fs, next))
		segments, _, err := list(fs, dir)
		require.NoError(t, err)
		require.Len(t, segments, 1)
	}
}

func TestTooMuchDuringTheCheckpoint(t *testing.T) {
	fs := newFS(t)
	j := open(t, Options{FS: fs})
	j.maxBuffer, j.maxRecord = 1000, 500
	j.Append(0, make([]byte, 501))
	require.ErrorContains(t, j.Err(), "too long")
	j.FailedNext()
	for range 3 {
		j.Append(0, make([]byte, 400))
	}
	require.ErrorIs(t, j.Resume(), errNotKept)
	next := j.FailedNext()
	require.NoError(t, j.Resume())
	appendSynced(t, j, "after")
	require.NoError(t, j.Close())
	require.Equal(t, []string{"after"}, mustReplay(t, fs, next))
}
