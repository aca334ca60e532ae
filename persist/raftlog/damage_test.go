package raftlog

import (
	"errors"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"github.com/hashicorp/raft"
	"github.com/stretchr/testify/require"

	"github.com/atomredis/atomredis/internal/testing/crashfs"
	"github.com/atomredis/atomredis/persist/disk"
	"github.com/atomredis/atomredis/persist/journal"
)

// files returns the paths of the segments, in order, and their contents.
func files(t require.TestingT, fs disk.FS) (paths []string, bytes [][]byte) {
	names, err := fs.List(dir)
	require.NoError(t, err)
	slices.Sort(names)
	for _, name := range names {
		path := fs.PathJoin(dir, name)
		info, err := fs.Stat(path)
		require.NoError(t, err)
		b := make([]byte, info.Size())
		f, err := fs.Open(path)
		require.NoError(t, err)
		_, err = f.ReadAt(b, 0)
		require.NoError(t, err)
		require.NoError(t, f.Close())
		paths, bytes = append(paths, path), append(bytes, b)
	}
	return paths, bytes
}

func write(t require.TestingT, fs disk.FS, path string, b []byte, at int64) {
	f, err := fs.OpenReadWrite(path)
	require.NoError(t, err)
	_, err = f.WriteAt(b, at)
	require.NoError(t, err)
	require.NoError(t, f.Close())
}

func TestFlippedBitsAreDamage(t *testing.T) {
	fs := newFS(t)
	l := open(t, Options{FS: fs, SegmentSize: 200})
	require.NoError(t, l.SetUint64([]byte("term"), 1))
	require.NoError(t, l.StoreLogs(entries(1, 12, 1)))
	require.NoError(t, l.DeleteRange(11, 12))
	end := l.journal.Appended()
	require.NoError(t, l.Close())
	paths, files := files(t, fs)
	require.Greater(t, len(paths), 2)
	random := rng(1)
	for i := len(paths) - 1; i >= 0; i-- {
		path := paths[i]
		start, err := strconv.ParseUint(path[strings.LastIndexByte(path, '-')+1:], 16, 64)
		require.NoError(t, err)
		used := int64(end-start) + 32 // including the header; zeros follow
		end = start
		for at := range used {
			b := files[i][at] ^ 1<<random.IntN(8)
			write(t, fs, path, []byte{b}, at)
			_, err := Open(Options{FS: fs, Dir: dir})
			require.ErrorAs(t, err, new(*journal.DamageError), "%s at %d", path, at)
			write(t, fs, path, files[i][at:at+1], at)
		}
	}
	l = open(t, Options{FS: fs})
	require.Equal(t, "1:1 2:1 3:1 4:1 5:1 6:1 7:1 8:1 9:1 10:1", contents(t, l))
	require.NoError(t, l.Close())
}

// Losing acknowledged data is damage, even if all of it is lost.
func TestLostFilesAreDamage(t *testing.T) {
	for _, n := range []int{1, 2, 100} { // number of lost segments at the end
		fs := newFS(t)
		l := open(t, Options{FS: fs, SegmentSize: 300})
		require.NoError(t, l.StoreLogs(entries(1, 12, 1)))
		require.NoError(t, l.Close())
		paths, _ := files(t, fs)
		for _, path := range paths[max(0, len(paths)-n):] {
			require.NoError(t, fs.Remove(path))
		}
		_, err := Open(Options{FS: fs, Dir: dir})
		require.ErrorAs(t, err, new(*journal.DamageError))
	}
}

// Entries that a crash has left and that were not acknowledged are cut off.
func TestTornTailIsCut(t *testing.T) {
	fs := newFS(t)
	l := open(t, Options{FS: fs})
	require.NoError(t, l.StoreLogs(entries(1, 3, 1)))
	acknowledged := l.Size()
	before := fs.CrashClone(crashfs.CloneCfg{})
	require.NoError(t, l.StoreLogs(entries(4, 4, 1)))
	size := l.Size()
	paths, files := files(t, fs)
	for cut := acknowledged; cut < size; cut++ {
		crashed := before.CrashClone(crashfs.CloneCfg{})
		write(t, crashed, paths[0], files[0][acknowledged:cut], acknowledged)
		again := open(t, Options{FS: crashed})
		require.Equal(t, "1:1 2:1 3:1", contents(t, again), cut)
		require.NoError(t, again.StoreLogs(entries(4, 5, 2)))
		require.Equal(t, "1:1 2:1 3:1 4:2 5:2", contents(t, again))
		require.NoError(t, again.Close())
	}
	require.NoError(t, l.Close())
}

// An unreadable entry is not treated as a missing one: raft would send a snapshot instead.
func TestUnreadableEntries(t *testing.T) {
	fs := newFS(t)
	l := open(t, Options{FS: fs})
	require.NoError(t, l.StoreLogs(entries(1, 5, 1)))
	l.recent = recent{}
	paths, files := files(t, fs)
	at := int64(strings.Index(string(files[0]), "data 3"))
	write(t, fs, paths[0], []byte("D"), at)
	var e raft.Log
	require.NoError(t, l.GetLog(2, &e))
	err := l.GetLog(3, &e)
	require.ErrorAs(t, err, new(*journal.DamageError))
	require.NotErrorIs(t, err, raft.ErrLogNotFound)
	require.ErrorAs(t, l.Each(1, 5, func(*raft.Log) error { return nil }), new(*journal.DamageError))
	require.NoError(t, l.GetLog(4, &e))
	require.Equal(t, entries(4, 4, 1)[0], &e)
	require.NoError(t, l.Close())
}

// A log on a full disk reports it, keeps what it has acknowledged, and continues after it is reopened.
func TestFullDisk(t *testing.T) {
	fs := newFS(t)
	var full atomic.Bool
	errFull := errors.New("no space left")
	bad := crashfs.Wrap(fs, errorfs.InjectorFunc(func(op errorfs.Op) error {
		if full.Load() && op.Kind.ReadOrWrite() == errorfs.OpIsWrite {
			return errFull
		}
		return nil
	}))
	l := open(t, Options{FS: bad})
	require.NoError(t, l.StoreLogs(entries(1, 3, 1)))
	full.Store(true)
	require.ErrorIs(t, l.StoreLogs(entries(4, 6, 1)), errFull)
	require.ErrorIs(t, l.Err(), errFull)
	require.ErrorIs(t, l.SetUint64([]byte("term"), 2), errFull)
	require.ErrorIs(t, l.DeleteRange(3, 3), errFull)
	_, err := l.Anchor(1)
	require.ErrorIs(t, err, errFull)
	require.Equal(t, "1:1 2:1 3:1", contents(t, l))
	require.ErrorIs(t, l.Close(), errFull)
	full.Store(false)
	l = open(t, Options{FS: bad})
	require.Equal(t, "1:1 2:1 3:1", contents(t, l))
	require.NoError(t, l.StoreLogs(entries(4, 4, 2)))
	require.NoError(t, l.Close())
}
