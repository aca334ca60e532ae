package journal

import (
	"bytes"
	"context"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"github.com/stretchr/testify/require"

	"github.com/atomredis/atomredis/internal/testing/crashfs"
	"github.com/atomredis/atomredis/persist/disk"
)

// A record of two parts has both, and its LSN is where it can be read.
func TestAppendParts(t *testing.T) {
	fs := newFS(t)
	j := open(t, Options{FS: fs, Policy: Always})
	long := strings.Repeat("x", LongRecord)
	parts := [][2]string{{"", "a"}, {"head ", ""}, {"head ", "body"}, {"head ", long}, {"", long}, {long, "body"}, {"", ""}}
	lsns := make([]uint64, len(parts))
	for i, p := range parts {
		lsns[i] = j.AppendParts(int64(i), []byte(p[0]), []byte(p[1]))
		if i%2 == 0 {
			require.NoError(t, j.Sync(context.Background())) // so that marks come in between
		}
	}
	require.NoError(t, j.Sync(context.Background()))
	for from, lsn := range lsns {
		i := from
		next, err := j.Read(lsn, func(lsn uint64, now int64, commands []byte) error {
			require.Equal(t, lsns[i], lsn)
			require.Equal(t, int64(i), now)
			require.True(t, string(commands) == parts[i][0]+parts[i][1])
			i++
			return nil
		})
		require.NoError(t, err)
		require.Equal(t, len(parts), i)
		require.Equal(t, j.Durable(), next)
	}
	require.NoError(t, j.Close())
	require.Zero(t, j.AppendParts(0, nil, []byte("dropped")))
	require.Len(t, mustReplay(t, fs, 0), len(parts))
}

// Reading can start at any record; a position within a record yields the next one.
func TestReadFromTheMiddleOfASegment(t *testing.T) {
	fs := newFS(t)
	j := open(t, Options{FS: fs, Policy: Always})
	first := j.AppendParts(0, nil, []byte("first"))
	second := j.AppendParts(0, nil, []byte("second"))
	require.NoError(t, j.Sync(context.Background()))
	read := func(from uint64) (got []string, err error) {
		_, err = j.Read(from, func(_ uint64, _ int64, commands []byte) error {
			got = append(got, string(commands))
			return nil
		})
		return got, err
	}
	for from := first + 1; from <= second; from++ {
		got, err := read(from)
		require.NoError(t, err)
		require.Equal(t, []string{"second"}, got)
	}
	path := segmentPath(fs, dir, 0)
	b := readFile(t, fs, path)
	at := bytes.Index(b, []byte("first"))
	file, err := fs.OpenReadWrite(path)
	require.NoError(t, err)
	require.NoError(t, writeAt(file, []byte("F"), int64(at)))
	require.NoError(t, file.Close())
	got, err := read(second)
	require.NoError(t, err)
	require.Equal(t, []string{"second"}, got)
	for from := first; from < second; from++ {
		_, err = read(from)
		require.ErrorAs(t, err, new(*DamageError))
	}
	require.NoError(t, j.Close())
}

func TestLongRecordsMayBeKept(t *testing.T) {
	fs := newFS(t)
	j := open(t, Options{FS: fs, Policy: Always})
	for i := range 3 {
		j.Append(0, bytes.Repeat([]byte{byte(i)}, LongRecord+i))
		j.Append(0, []byte("between"))
	}
	require.NoError(t, j.Sync(context.Background()))
	var kept [][]byte
	_, err := j.Read(0, func(_ uint64, _ int64, commands []byte) error {
		if len(commands) >= LongRecord {
			kept = append(kept, commands)
		}
		return nil
	})
	require.NoError(t, err)
	require.Len(t, kept, 3)
	for i, b := range kept {
		require.True(t, bytes.Equal(bytes.Repeat([]byte{byte(i)}, LongRecord+i), b))
	}
	require.NoError(t, j.Close())
}

func TestSegmentIsWhereAnLSNIs(t *testing.T) {
	fs := newFS(t)
	j := open(t, Options{FS: fs, Policy: Always})
	one := j.AppendParts(0, nil, []byte("one"))
	rotated := j.Rotate()
	two := j.AppendParts(0, nil, []byte("two"))
	require.NoError(t, j.Sync(context.Background()))
	first, ok := j.Segment(one)
	require.True(t, ok)
	require.Equal(t, Start{LSN: 0, Seed: seedAt(j, 0)}, first)
	second, ok := j.Segment(two)
	require.True(t, ok)
	require.Equal(t, Start{LSN: rotated, Seed: seedAt(j, two)}, second)
	require.NotEqual(t, first.Seed, second.Seed)
	require.NoError(t, j.Release(rotated))
	_, ok = j.Segment(one)
	require.False(t, ok)
	require.NoError(t, j.Close())
	_, ok = j.Segment(two)
	require.False(t, ok)
}

// Removing long files takes a while, during which reading works.
func TestReadDoesNotWaitForRelease(t *testing.T) {
	fs := newFS(t)
	removing, goOn := make(chan struct{}), make(chan struct{})
	j := open(t, Options{Policy: Always, FS: removeFS{fs, func() {
		close(removing)
		<-goOn
	}}})
	appendSynced(t, j, "one")
	rotated := j.Rotate()
	appendSynced(t, j, "two")
	released := make(chan error)
	go func() { released <- j.Release(rotated) }()
	<-removing
	n := 0
	_, err := j.Read(rotated, func(uint64, int64, []byte) error {
		n++
		return nil
	})
	require.NoError(t, err)
	require.Equal(t, 1, n)
	close(goOn)
	require.NoError(t, <-released)
	require.NoError(t, j.Close())
}

// removeFS calls a function before a file is removed.
type removeFS struct {
	disk.FS
	before func()
}

func (f removeFS) Remove(name string) error {
	f.before()
	return f.FS.Remove(name)
}

// Data that could not be synced may only be in the system's memory, which considers it written.
func TestWhatWasNotSyncedIsWrittenAgain(t *testing.T) {
	fs := newFS(t)
	var broken atomic.Bool
	var rewritten atomic.Int64 // offset; 0 if nothing was
	path := segmentPath(fs, dir, 0)
	watched := crashfs.Wrap(fs, errorfs.InjectorFunc(func(op errorfs.Op) error {
		if broken.Load() && op.Kind == errorfs.OpFileSyncData {
			return errorfs.ErrInjected
		}
		if op.Kind == errorfs.OpFileWriteAt && op.Path == path && op.Offset >= headerSize {
			rewritten.Store(op.Offset)
		}
		return nil
	}))
	j := open(t, Options{FS: watched, Policy: Always})
	appendSynced(t, j, "synced")
	synced := j.Durable()
	broken.Store(true)
	j.Append(0, bytes.Repeat([]byte("not synced"), 1000))
	require.ErrorIs(t, j.Sync(context.Background()), errorfs.ErrInjected)
	require.ErrorIs(t, j.Close(), errorfs.ErrInjected)
	broken.Store(false)
	rewritten.Store(0)
	want := mustReplay(t, fs, 0)
	require.Len(t, want, 2)
	j = open(t, Options{FS: watched, Policy: Always})
	require.LessOrEqual(t, rewritten.Load(), headerSize+int64(synced))
	require.GreaterOrEqual(t, rewritten.Load(), int64(headerSize))
	require.NoError(t, j.Close())
	rewritten.Store(0)
	require.NoError(t, open(t, Options{FS: watched, Policy: Always}).Close())
	require.Zero(t, rewritten.Load(), "all is known to be synced")
	require.Equal(t, want, mustReplay(t, fs, 0))
}

// seedAt returns the seed that a checkpoint notes.
func seedAt(j *File, lsn uint64) uint32 {
	a, _ := j.Anchor(lsn)
	return a.Start.Seed
}
