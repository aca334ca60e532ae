package journal

import (
	"bytes"
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"github.com/stretchr/testify/require"

	"github.com/atomredis/atomredis/internal/testing/crashfs"
	"github.com/atomredis/atomredis/persist/disk"
)

// longCommands returns n bytes that are not all equal.
func longCommands(n int) []byte {
	b := bytes.Repeat([]byte("0123456789abcdef"), n/16+1)
	copy(b, "begins")
	return b[:n]
}

// widestWrite is a file system that records the largest write.
type widestWrite struct {
	disk.FS
	most atomic.Int64
}

func (fs *widestWrite) OpenReadWrite(name string) (disk.File, error) {
	f, err := fs.FS.OpenReadWrite(name)
	return &widestFile{f, fs}, err
}

type widestFile struct {
	disk.File
	fs *widestWrite
}

func (f *widestFile) WriteAt(b []byte, off int64) (int, error) {
	f.fs.most.Store(max(f.fs.most.Load(), int64(len(b))))
	return f.File.WriteAt(b, off)
}

func TestLongRecordsAreNeitherCopiedNorWrittenAtOnce(t *testing.T) {
	for _, policy := range []Policy{Always, EverySec} {
		fs := &widestWrite{FS: newFS(t)}
		j := open(t, Options{FS: fs, Policy: policy})
		long := longCommands(20 * LongRecord)
		j.turn.Lock() // nothing is written
		j.Append(1, []byte("before"))
		j.Append(2, long)
		j.mu.Lock()
		require.Same(t, &long[0], &j.long[0])
		require.Less(t, cap(j.buf), LongRecord)
		j.mu.Unlock()
		j.turn.Unlock()
		j.Append(3, []byte("after"))
		require.NoError(t, j.Sync(context.Background()))
		require.NoError(t, j.Close())
		require.LessOrEqual(t, fs.most.Load(), int64(piece))
		require.Equal(t, []string{"before", string(long), "after"}, mustReplay(t, fs, 0))
	}
}

// Whatever surrounds a long record, and wherever segments end, everything is read as appended.
func TestLongRecordsStandAmongOthers(t *testing.T) {
	fs := newFS(t)
	j := open(t, Options{FS: fs, Policy: No, SegmentSize: 3 * LongRecord})
	var want []string
	add := func(n int) {
		b := longCommands(n)
		j.Append(1, b)
		want = append(want, string(b))
	}
	var from uint64
	var kept int
	for i, n := range []int{10, LongRecord - 1, LongRecord, 5, LongRecord + 1, LongRecord, 4*LongRecord + 7, LongRecord,
		0, 100, 2 * LongRecord} {
		add(n)
		switch i {
		case 2, 5: // a cut right after a long one
			from, kept = j.Rotate(), len(want)
		case 7:
			require.NoError(t, j.Sync(context.Background()))
		}
	}
	require.NoError(t, j.Close())
	segments := len(soundSegments(t, fs, dir))
	require.Equal(t, want, mustReplay(t, fs, 0))
	require.Equal(t, want[kept:], mustReplay(t, fs, from))
	require.Greater(t, segments, 3)
}

// A long record that has only partly reached the disk is invisible.
func TestATornLongRecordIsCutOff(t *testing.T) {
	percents := []int{0, 30, 70}
	if testing.Short() {
		percents = percents[1:2]
	}
	for _, percent := range percents {
		fs := newFS(t)
		j := open(t, Options{FS: fs, Policy: No})
		appendSynced(t, j, "synced")
		j.Append(1, longCommands(9*LongRecord))
		j.Kick()
		require.Eventually(t, func() bool {
			j.turn.Lock()
			defer j.turn.Unlock()
			return j.written == j.Appended()
		}, time.Minute, time.Millisecond)
		crashed := fs.CrashClone(crashfs.CloneCfg{UnsyncedDataPercent: percent, RNG: rng(uint64(percent))})
		require.Equal(t, []string{"synced"}, mustReplay(t, crashed, 0))
		require.NoError(t, j.Close())
	}
}

// A journal that fails in the middle of a long record continues after it, with a long record appended meanwhile.
func TestAJournalResumesWithALongRecord(t *testing.T) {
	mem := newFS(t)
	var fails atomic.Bool
	fs := crashfs.Wrap(mem, errorfs.InjectorFunc(func(op errorfs.Op) error {
		if fails.Load() && op.Kind == errorfs.OpFileWriteAt && op.Offset > 3*LongRecord {
			return errorfs.ErrInjected
		}
		return nil
	}))
	j := open(t, Options{FS: fs, Policy: Always})
	appendSynced(t, j, "first")
	fails.Store(true)
	j.Append(1, longCommands(9*LongRecord))
	require.Error(t, j.Sync(context.Background()))
	fails.Store(false)
	from := j.FailedNext()
	held := longCommands(2 * LongRecord)
	j.Append(2, held)
	require.NoError(t, j.Resume())
	appendSynced(t, j, "last")
	require.NoError(t, j.Close())
	require.Equal(t, []string{string(held), "last"}, mustReplay(t, mem, from))
}
