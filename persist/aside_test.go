package persist

import (
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/atomredis/atomredis/persist/disk"
	"github.com/atomredis/atomredis/persist/store"
)

// setAside moves what belongs to the data and what a new server would read, and goes on after a crash.
func TestDataIsSetAside(t *testing.T) {
	dir := t.TempDir()
	write := func(names ...string) {
		for _, name := range names {
			require.NoError(t, os.MkdirAll(filepath.Join(dir, filepath.Dir(name)), 0o700))
			require.NoError(t, os.WriteFile(filepath.Join(dir, name), nil, 0o600))
		}
	}
	s := &Storage{o: Options{FS: disk.System, Dir: dir, Log: slog.New(slog.DiscardHandler)}, aside: &AsideError{Files: []string{"dump.rdb"}}}
	set := func(want ...string) {
		require.NoError(t, s.setAside())
		var names []string
		require.NoError(t, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			if err == nil && !d.IsDir() {
				name, _ := filepath.Rel(dir, path)
				names = append(names, filepath.ToSlash(name))
			}
			return err
		}))
		require.Equal(t, want, names)
	}
	write("data/a", "checkpoint/b", "journal/c", "raft/d", "dump.rdb", "repaired", "users.acl")
	first := []string{"LOCK", "damaged-1/checkpoint/b", "damaged-1/data/a", "damaged-1/dump.rdb", "damaged-1/journal/c",
		"damaged-1/raft/d", "damaged-1/repaired", "users.acl"}
	set(first...)

	write("raft/d", "damaged-2/data/a") // a crash before the group's directory was moved
	set(append(append(first[:7:7], "damaged-2/data/a", "damaged-3/raft/d"), first[7])...)

	lock, err := disk.System.Lock(filepath.Join(dir, store.LockFile))
	require.NoError(t, err)
	defer lock.Close()
	require.Error(t, s.setAside())
}
