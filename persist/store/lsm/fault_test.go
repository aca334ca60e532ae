package lsm

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"path"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"github.com/stretchr/testify/require"

	"github.com/atomredis/atomredis/internal/testing/crashfs"
	"github.com/atomredis/atomredis/internal/testing/testseed"
	"github.com/atomredis/atomredis/persist/disk"
	"github.com/atomredis/atomredis/persist/store"
)

// states are the permitted states of a store.
type states struct {
	mu      sync.Mutex
	allowed []map[string]string
}

func (s *states) set(allowed ...map[string]string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.allowed = allowed
}

func (s *states) get() []map[string]string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.allowed
}

// TestCrashAnywhere cuts the power before every change of the file system, with some of the unsynced data on the disk.
// It expects the last committed checkpoint or, while the next was being committed, either of the two.
func TestCrashAnywhere(t *testing.T) {
	seeds := uint64(3)
	if testing.Short() {
		seeds = 1
	}
	for seed := range seeds {
		mem := crashfs.New()
		type crash struct {
			fs      *crashfs.FS
			allowed []map[string]string
			op      string
		}
		var mu sync.Mutex
		var crashes []crash
		rng := rand.New(rand.NewPCG(seed, 1))
		var now states
		now.set(map[string]string{})
		fs := crashfs.Wrap(mem, errorfs.InjectorFunc(func(op errorfs.Op) error {
			if op.Kind.ReadOrWrite() == errorfs.OpIsWrite {
				mu.Lock()
				defer mu.Unlock()
				// Before the clone is made: Commit may return while it is.
				allowed := now.get()
				clone := mem.CrashClone(crashfs.CloneCfg{UnsyncedDataPercent: []int{0, 50, 100}[rng.IntN(3)], RNG: rng})
				crashes = append(crashes, crash{clone, append(allowed, now.get()...), fmt.Sprint(op.Kind, op.Path)})
			}
			return nil
		}))
		w := newWorld(seed)
		s := open(t, fs)
		for i := range 6 {
			before := w.stored()
			next := *w // the same changes, without a store
			next.rng = rand.New(rand.NewPCG(seed, uint64(i)))
			w.rng = rand.New(rand.NewPCG(seed, uint64(i)))
			after := next.clone().dryRun(t, 20)
			now.set(before, after)
			require.NoError(t, w.checkpoint(s, 20))
			require.Equal(t, after, w.stored())
			now.set(after)
			if i == 3 {
				require.NoError(t, s.Close())
				s = open(t, fs)
			}
		}
		require.NoError(t, s.Close())
		for i, c := range crashes {
			s, err := Open(Options{FS: c.fs, Dir: "some/where", tune: often})
			require.NoError(t, err, "seed %d, crash %d before %s", seed, i, c.op)
			requireOneOf(t, c.allowed, stored(t, s), "seed %d, crash %d before %s", seed, i, c.op)
			require.NoError(t, s.Close())
		}
		t.Logf("%d crashes", len(crashes))
	}
}

func requireOneOf(t *testing.T, allowed []map[string]string, got map[string]string, format string, args ...any) {
	t.Helper()
	for _, a := range allowed {
		if maps.Equal(a, got) {
			return
		}
	}
	require.Failf(t, "the state is none of those that are allowed", format, args...)
}

func (w *world) clone() *world {
	c := *w
	c.spaces = append([]uint32(nil), w.spaces...)
	c.heads = maps.Clone(w.heads)
	c.parts = map[uint64]map[string]string{}
	for id, parts := range w.parts {
		c.parts[id] = maps.Clone(parts)
	}
	return &c
}

// dryRun returns a store's content after w.checkpoint.
func (w *world) dryRun(t require.TestingT, changes int) map[string]string {
	s := open(t, crashfs.Mem())
	require.NoError(t, w.checkpoint(s, changes))
	require.NoError(t, s.Close())
	return w.stored()
}

// TestErrorAnywhere makes every operation of the file system fail in turn, once or until the end of a checkpoint.
func TestErrorAnywhere(t *testing.T) {
	step := 20 // other operations with every seed
	if testing.Short() {
		step = 300
	}
	random := testseed.Rand(t)
	for _, once := range []bool{true, false} {
		for at := 1 + random.IntN(step); ; at += step {
			if !errorAt(t, int64(at), once) {
				t.Logf("%d operations", at)
				break
			}
		}
	}
}

// errorAt makes operation at fail, and reports whether there are that many operations.
func errorAt(t *testing.T, at int64, once bool) bool {
	name := fmt.Sprintf("operation %d, once %v", at, once)
	var left atomic.Int64
	left.Store(at)
	var broken, healed atomic.Bool
	failing := func(op errorfs.Op) error {
		switch op.Kind {
		case errorfs.OpFileClose, errorfs.OpGetDiskUsage:
			return nil
		}
		n := left.Add(-1)
		if healed.Load() || n > 0 || n < 0 && once {
			return nil
		}
		broken.Store(true)
		return fmt.Errorf("%v %s: the disk is broken", op.Kind, op.Path)
	}
	fs := crashfs.Wrap(crashfs.Mem(), errorfs.InjectorFunc(failing))
	w := newWorld(1)
	s, err := Open(Options{FS: fs, Dir: "some/where", tune: often})
	if err != nil {
		require.True(t, broken.Load(), "%s: %v", name, err)
		healed.Store(true)
		s = open(t, fs)
	}
	state := w.stored()
	for i, failures := 0, 0; i < 10; i++ {
		w.rng = rand.New(rand.NewPCG(1, uint64(i)))
		next := w.clone()
		err := next.checkpoint(s, 20)
		if err == nil {
			w, state = next, next.stored()
			continue
		}
		require.True(t, broken.Load(), "%s: %v", name, err)
		healed.Store(true)
		// A compaction that has met the error may make the store fail a moment later.
		failures++
		require.LessOrEqual(t, failures, 3, "%s: %v", name, err)
		if s.Err() == nil {
			require.Equal(t, state, stored(t, s), name)
			continue
		}
		if i%2 == 0 {
			require.NoError(t, s.Close(), name)
			s = open(t, fs)
		} else {
			require.NoError(t, s.Reopen(), name)
		}
		got := stored(t, s)
		requireOneOf(t, []map[string]string{state, next.stored()}, got, name)
		if !maps.Equal(got, state) {
			w, state = next, got
		}
		m, _ := s.Meta()
		require.Equal(t, w.meta.Saved, m.Saved, name)
	}
	healed.Store(true)
	require.NoError(t, s.Reopen(), name)
	require.Equal(t, state, stored(t, s), name)
	_ = s.Close() // a compaction may have met the error
	s = open(t, fs)
	require.Equal(t, state, stored(t, s), name)
	w.requireReadable(t, s)
	require.NoError(t, s.Close(), name)
	w.requireSound(t, fs)
	return broken.Load()
}

// A Pebble that fails before it is used has removed no file that the one before it reads.
func TestFilesOfDataStayUntilTheirPebbleIsUsed(t *testing.T) {
	fs := vfs.NewMem()
	f := newFence(fs, func(error) {})
	for _, name := range []string{"1.sst", "2.blob", "MANIFEST-1", "3.sst", "4.sst"} {
		file, err := f.Create(name, vfs.WriteCategoryUnspecified)
		require.NoError(t, err)
		require.NoError(t, file.Close())
	}
	there := func(want ...string) {
		t.Helper()
		names, err := fs.List("")
		require.NoError(t, err)
		require.ElementsMatch(t, want, names)
	}
	for _, name := range []string{"1.sst", "2.blob", "MANIFEST-1"} {
		require.NoError(t, f.Remove(name))
	}
	there("1.sst", "2.blob", "3.sst", "4.sst")
	f.release()
	there("3.sst", "4.sst")
	require.NoError(t, f.Remove("3.sst"))
	there("4.sst")

	f = newFence(fs, func(error) {})
	require.NoError(t, f.Remove("4.sst"))
	require.True(t, f.shut(errors.New("input/output error")))
	f.release()
	there("4.sst")
}

// TestFailedStoreIsReadAndOpenedAnew makes the sync of the MANIFEST fail.
func TestFailedStoreIsReadAndOpenedAnew(t *testing.T) {
	var broken atomic.Bool
	fs := crashfs.Wrap(crashfs.Mem(), errorfs.InjectorFunc(func(op errorfs.Op) error {
		manifest := strings.HasPrefix(path.Base(op.Path), "MANIFEST")
		if broken.Load() && (op.Kind == errorfs.OpFileSync || op.Kind == errorfs.OpFileSyncData) && manifest {
			return errors.New("input/output error")
		}
		return nil
	}))
	failed := make(chan error, 100)
	s, err := Open(Options{FS: fs, Dir: "some/where", tune: often, Failed: func(err error) { failed <- err }})
	require.NoError(t, err)
	w := newWorld(1)
	require.NoError(t, w.checkpoint(s, 50))
	before := w.clone()
	for range 3 {
		broken.Store(true)
		next := w.clone()
		require.ErrorContains(t, next.checkpoint(s, 50), "input/output error")
		require.ErrorContains(t, s.Err(), "input/output error")
		require.NotContains(t, s.Err().Error(), "MANIFEST sync failed", "Pebble has got the error")
		require.ErrorContains(t, <-failed, "input/output error")
		before.requireReadable(t, s)
		// Reopening may succeed, and shows the state, but changes fail.
		require.Error(t, w.clone().checkpoint(s, 50))
		requireOneOf(t, []map[string]string{before.stored(), next.stored()}, stored(t, s), "opened anew")

		broken.Store(false)
		require.NoError(t, s.Reopen())
		require.NoError(t, s.Err())
		m, _ := s.Meta()
		if m.Saved != before.meta.Saved {
			require.Equal(t, before.meta.Saved+1, m.Saved)
		}
		for len(failed) > 0 {
			<-failed // those of the second attempt
		}
		// Everything again, as the keyspace would write it.
		c, err := s.Begin()
		require.NoError(t, err)
		for space := range before.meta.NextSpace + 9 {
			c.DropSpace(space)
		}
		for id := range before.meta.NextParts + 99 {
			c.DropParts(id)
		}
		require.NoError(t, c.Commit(store.Meta{}))
		w = newWorld(2)
		require.NoError(t, w.checkpoint(s, 50))
		before = w.clone()
	}
	broken.Store(true)
	require.Error(t, w.clone().checkpoint(s, 50))
	require.NoError(t, s.Close(), "it ends")
	broken.Store(false)
	require.NoError(t, open(t, fs).Close())
}

// TestFailedCompactionIsNotRepeatedAtOnce makes all compactions fail.
func TestFailedCompactionIsNotRepeatedAtOnce(t *testing.T) {
	var broken atomic.Bool
	var attempts atomic.Int64
	fs := crashfs.Wrap(crashfs.Mem(), errorfs.InjectorFunc(func(op errorfs.Op) error {
		if broken.Load() && op.Kind == errorfs.OpCreate && path.Base(path.Dir(op.Path)) == dataDir {
			attempts.Add(1)
			return errors.New("no space left on device")
		}
		return nil
	}))
	s, err := Open(Options{FS: fs, Dir: "some/where", tune: func(o *pebble.Options) { often(o) }})
	require.NoError(t, err)
	broken.Store(true)
	w := newWorld(1)
	for range 50 {
		require.NoError(t, w.checkpoint(s, 20))
	}
	require.NoError(t, s.Err())
	require.LessOrEqual(t, attempts.Load(), int64(1))
	w.requireReadable(t, s)
	require.NoError(t, s.Close())
}

// TestFailedStoreDoesNotGatherStatistics makes a store fail while Pebble fails to gather statistics. After a reopening,
// the first Pebble can no longer gather them.
func TestFailedStoreDoesNotGatherStatistics(t *testing.T) {
	var unreadable, broken atomic.Bool
	fs := crashfs.Wrap(crashfs.Mem(), errorfs.InjectorFunc(func(op errorfs.Op) error {
		sync := op.Kind == errorfs.OpFileSync || op.Kind == errorfs.OpFileSyncData
		switch {
		case broken.Load() && sync && strings.HasPrefix(path.Base(op.Path), "MANIFEST"):
			return errors.New("input/output error")
		case unreadable.Load() && calledBy(".(*DB).collectTableStats"):
			return errors.New("unreadable")
		}
		return nil
	}))
	s := open(t, fs)
	w := newWorld(1)
	require.NoError(t, w.checkpoint(s, 50))
	require.NoError(t, s.Close())

	const many = 1000
	attempts := make(chan error, many)
	s, err := Open(Options{FS: fs, Dir: "some/where", tune: func(o *pebble.Options) {
		unreadable.Store(true)
		often(o)
		told := o.EventListener.BackgroundError
		o.EventListener.BackgroundError = func(err error) {
			select {
			case attempts <- err:
			default:
			}
			told(err)
		}
	}})
	require.NoError(t, err)
	require.ErrorContains(t, <-attempts, "unreadable")
	broken.Store(true)
	require.ErrorContains(t, w.clone().checkpoint(s, 50), "input/output error")
	broken.Store(false)
	unreadable.Store(false)
	require.NoError(t, s.Reopen())
	time.Sleep(50 * time.Millisecond) // in which there would be many
	require.Less(t, len(attempts), many)
	require.NoError(t, s.Close())
}

// written counts written bytes.
type written struct {
	disk.FS
	bytes *atomic.Int64
}

type writtenFile struct {
	disk.File
	bytes *atomic.Int64
}

func (f written) Create(name string) (disk.File, error) {
	file, err := f.FS.Create(name)
	return writtenFile{file, f.bytes}, err
}

func (f writtenFile) Write(p []byte) (int, error) {
	f.bytes.Add(int64(len(p)))
	return f.File.Write(p)
}

func TestSmallCheckpointWritesLittle(t *testing.T) {
	var n atomic.Int64
	s, err := Open(Options{FS: written{crashfs.Mem(), &n}, Dir: "d"})
	require.NoError(t, err)
	rng := rand.New(rand.NewPCG(1, 1))
	const size, changes = 100, 100
	parts, checkpoints := 200_000, 200
	if testing.Short() {
		parts, checkpoints = 50_000, 20
	}
	data := make([]byte, size)
	put := func(step int, ids ...int) {
		c, err := s.Begin()
		require.NoError(t, err)
		for _, i := range ids {
			for j := range data {
				data[j] = byte(rng.Uint32())
			}
			require.NoError(t, c.PutPart(1, fmt.Sprintf("%06d", i), data))
		}
		require.NoError(t, c.Commit(store.Meta{Saved: int64(step)}))
	}
	all := make([]int, parts)
	for i := range all {
		all[i] = i
	}
	put(0, all...)
	total := n.Swap(0)
	require.Greater(t, total, int64(parts*size))
	for step := range checkpoints {
		var some []int
		for i := range changes {
			some = append(some, i*(parts/changes)+rng.IntN(parts/changes))
		}
		put(step+1, some...)
		if step == 0 {
			t.Logf("the first checkpoint of %d parts after one of %d bytes writes %d bytes", changes, total, n.Load())
			require.Less(t, n.Load(), int64(64<<10))
		}
	}
	require.NoError(t, s.Close())
	t.Logf("%d checkpoints write %d bytes each, with compactions", checkpoints, n.Load()/int64(checkpoints))
	require.Less(t, n.Load()/int64(checkpoints), total/10)
}
