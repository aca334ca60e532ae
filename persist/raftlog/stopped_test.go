package raftlog

import (
	"fmt"
	"strings"
	"testing"

	"github.com/hashicorp/raft"
	"github.com/stretchr/testify/require"

	"github.com/atomredis/atomredis/internal/testing/crashfs"
	"github.com/atomredis/atomredis/persist/journal"
)

// read returns what Read finds in a log, as contents does, and checks that it changes nothing.
func read(t *testing.T, fs *crashfs.FS, start journal.Start) (string, Found) {
	t.Helper()
	paths, before := files(t, fs)
	var b strings.Builder
	f, err := Read(Options{FS: fs, Dir: dir, Start: start}, func(e *raft.Log) error {
		require.Equal(t, entries(e.Index, e.Index, e.Term)[0], e)
		fmt.Fprintf(&b, "%d:%d ", e.Index, e.Term)
		return nil
	})
	require.NoError(t, err)
	again, after := files(t, fs)
	require.Equal(t, paths, again)
	require.Equal(t, before, after)
	return strings.TrimSpace(b.String()), f
}

func TestAStoppedLogIsRead(t *testing.T) {
	fs := newFS(t)
	l := open(t, Options{FS: fs, SegmentSize: 200})
	require.NoError(t, l.SetUint64([]byte("term"), 3))
	require.NoError(t, l.StoreLogs(entries(1, 20, 1)))
	require.NoError(t, l.DeleteRange(15, 20))
	require.NoError(t, l.StageCommitIndex(16))
	require.NoError(t, l.StoreLogs(entries(15, 18, 2)))
	start, err := l.Anchor(10)
	require.NoError(t, err)
	want := contents(t, l)
	for _, closed := range []bool{false, true} {
		at := fs
		if closed {
			require.NoError(t, l.Close())
		} else {
			at = fs.CrashClone(crashfs.CloneCfg{})
		}
		got, f := read(t, at, journal.Start{})
		require.Equal(t, want, got)
		require.EqualValues(t, 16, f.Committed)
		require.Equal(t, byte(3), f.Values["term"][0])
		got, _ = read(t, at, start)
		require.True(t, strings.HasSuffix(want, got), got)
		require.Contains(t, got, "10:1")
	}
	got, f := read(t, newFS(t), journal.Start{})
	require.Empty(t, got)
	require.Zero(t, f.Committed)

	// Damage is told before anything is read.
	paths, all := files(t, fs)
	write(t, fs, paths[0], []byte{all[0][60] ^ 1}, 60)
	_, err = Read(Options{FS: fs, Dir: dir}, func(*raft.Log) error { return fmt.Errorf("not called") })
	require.ErrorAs(t, err, new(*journal.DamageError))
}
