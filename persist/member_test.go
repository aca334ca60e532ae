package persist_test

import (
	"log/slog"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/atomredis/atomredis/engine"
	"github.com/atomredis/atomredis/internal/testing/crashfs"
	"github.com/atomredis/atomredis/persist"
	"github.com/atomredis/atomredis/persist/disk"
	"github.com/atomredis/atomredis/persist/raftlog"
)

// Before its first checkpoint a server of a group has its data in the group's journal only: without it the data is not opened.
func TestADirectoryOfAGroupIsRefusedBeforeItsFirstCheckpoint(t *testing.T) {
	fs := keep(t, fresh, true, false).fs
	makeGroup(t, fs)
	_, err := openKeyspace(fs)
	require.ErrorIs(t, err, persist.ErrOfGroup)
	require.NoError(t, fs.RemoveAll("db/raft/journal")) // the journal is lost, and has left its positions
	require.NoError(t, fs.MkdirAll("db/raft/journal", 0o700))
	_, err = openKeyspace(fs)
	require.ErrorIs(t, err, persist.ErrOfGroup)
}

// A directory or a file with the name of a group's directory may be anything.
func TestADirectoryOfAnotherProgramIsNoGroup(t *testing.T) {
	fs := keep(t, fresh, true, false).fs
	opens := func() {
		t.Helper()
		own, err := openKeyspace(fs)
		require.NoError(t, err)
		require.NoError(t, own.close(false))
	}
	writeFile(t, fs, "db/raft", nil)
	opens()
	require.NoError(t, fs.Remove("db/raft"))
	require.NoError(t, fs.MkdirAll("db/raft", 0o700))
	writeFile(t, fs, "db/raft/raft.go", nil)
	opens()
	require.NoError(t, fs.MkdirAll("db/raft/journal", 0o700)) // a start with raft-addr that failed leaves it
	opens()
}

// makeGroup begins the journal of a group in db.
func makeGroup(t *testing.T, fs disk.FS) {
	require.NoError(t, fs.MkdirAll("db/raft/journal", 0o700))
	log, err := raftlog.Open(raftlog.Options{FS: fs, Dir: "db/raft/journal"})
	require.NoError(t, err)
	require.NoError(t, log.SetUint64([]byte("CurrentTerm"), 1))
	require.NoError(t, log.Close())
}

// Reading the data of a stopped server of a group leaves the end of its journal, which a crash has left unfinished.
func TestADirectoryOfAGroupIsOnlyRead(t *testing.T) {
	k := keep(t, fresh, true, false)
	last := segments(t, k.fs)[0]
	torn := append(readFile(t, k.fs, last), "torn"...)
	writeFile(t, k.fs, last, torn)
	makeGroup(t, k.fs)
	before := files(t, k.fs, "db/journal")

	read := ""
	storage, err := persist.Open(persist.Options{FS: k.fs, Dir: "db", Log: slog.New(slog.DiscardHandler),
		Member: func(_ disk.FS, dir string, state []byte) error {
			require.Nil(t, state)
			read = dir
			return nil
		}})
	require.NoError(t, err)
	ks := &keyspace{engine.New(engine.Options{Source: storage.Source(), Databases: 1}), storage}
	require.NoError(t, storage.Recover(ks.Keyspace, ks.apply))
	require.Equal(t, "db/raft", read)
	for key, value := range k.want {
		got, err := ks.get(key)
		require.NoError(t, err)
		require.Equal(t, value, got)
	}
	require.NoError(t, ks.close(true))
	require.Equal(t, before, files(t, k.fs, "db/journal"))
	require.Equal(t, torn, readFile(t, k.fs, last))

	require.NoError(t, k.fs.RemoveAll("db/raft"))
	own, err := openKeyspace(k.fs) // a start of the server itself cuts the end off
	require.NoError(t, err)
	require.NoError(t, own.close(false))
	require.NotEqual(t, torn, readFile(t, k.fs, last))
}

// OpenMember passes on what a server has of its group, and nothing of a server without one.
func TestTheDirectoryOfAMemberIsOpened(t *testing.T) {
	k := keep(t, fresh, true, false)
	called := 0
	count := func(_ disk.FS, dir string, state []byte) error {
		require.Equal(t, "db/raft", dir)
		require.Nil(t, state)
		called++
		return nil
	}
	ok, err := persist.OpenMember(k.fs, "db", count)
	require.NoError(t, err)
	require.False(t, ok)
	require.Zero(t, called)
	makeGroup(t, k.fs)
	ok, err = persist.OpenMember(k.fs, "db", count)
	require.NoError(t, err)
	require.True(t, ok)
	require.Equal(t, 1, called)
	_, err = persist.OpenMember(crashfs.New(), "db", count)
	require.ErrorContains(t, err, "there is no data in db")
}
