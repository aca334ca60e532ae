package persist

import (
	"errors"
	"fmt"
	"os"

	"github.com/atomredis/atomredis/persist/disk"
	"github.com/atomredis/atomredis/persist/journal"
	"github.com/atomredis/atomredis/persist/store"
)

// AsideError is an error of Options.Group for data that is of no use any more: that of a group's server whose log is
// damaged. Abandon then moves the data into a directory beside it, and the server begins again with an empty directory.
type AsideError struct {
	Err error
	// Files are the names of further files and directories that a new server would read.
	Files []string
}

func (e *AsideError) Error() string { return e.Err.Error() }

// Unwrap returns Err.
func (e *AsideError) Unwrap() error { return e.Err }

// asideDir is the directory that gets the data; a number follows.
const asideDir = "damaged-"

// setAside moves the data. The group's directory is the last to be moved: a directory with the group's state and without its
// log would vote without knowing what it has promised. Without the state the log is still damaged, and the next start goes on.
func (s *Storage) setAside() error {
	fs, dir := s.o.FS, s.o.Dir
	lock, err := fs.Lock(fs.PathJoin(dir, store.LockFile))
	if err != nil {
		return err // another process has begun to use the directory
	}
	defer lock.Close()
	n, to := 1, ""
	for ; ; n++ {
		to = fs.PathJoin(dir, fmt.Sprint(asideDir, n))
		if _, err := fs.Stat(to); errors.Is(err, os.ErrNotExist) {
			break
		} else if err != nil {
			return err
		}
	}
	if err := fs.MkdirAll(to, 0o700); err != nil {
		return err
	}
	for _, name := range append(s.aside.Files, markerName, store.CheckpointDir, store.DataDir, journal.DirName, groupDir) {
		err := fs.Rename(fs.PathJoin(dir, name), fs.PathJoin(to, name))
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err := errors.Join(err, disk.SyncDir(fs, to), disk.SyncDir(fs, dir)); err != nil {
			return err
		}
	}
	s.o.Log.Warn("the damaged data is set aside", "directory", to)
	return nil
}
