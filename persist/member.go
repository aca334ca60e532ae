package persist

import (
	"errors"
	"fmt"
	"os"

	"github.com/atomredis/atomredis/persist/disk"
	"github.com/atomredis/atomredis/persist/journal"
	"github.com/atomredis/atomredis/persist/store"
)

// The data directory of a stopped server of a group.

// MemberFunc is called with the directory of a group's journal, and with the group's state in the store, nil before the first
// checkpoint.
type MemberFunc func(fs disk.FS, dir string, state []byte) error

// OpenMember calls fn with what a stopped server has of its group, while it has the data directory to itself. ok is false if
// the data belongs to no group; then fn is not called.
func OpenMember(fs disk.FS, dir string, fn MemberFunc) (ok bool, err error) {
	if !store.Exists(fs, dir) {
		return false, fmt.Errorf("there is no data in %s", dir)
	}
	st, err := store.Registered().Open(store.Options{FS: fs, Dir: dir})
	if err != nil {
		return false, stopFirst(err)
	}
	fs = st.FS()
	meta, _ := st.Meta()
	if ok, err = isMember(fs, dir, meta); ok {
		err = fn(fs, fs.PathJoin(dir, groupDir), meta.Group)
	}
	return ok, errors.Join(err, st.Close())
}

// isMember reports whether the data in a directory belongs to a group. Before its first checkpoint only the group's journal
// shows it: a directory with the journal's name can be another program's, or a start that failed has left it.
func isMember(fs disk.FS, dir string, meta store.Meta) (bool, error) {
	if meta.Group != nil {
		return true, nil
	}
	in := fs.PathJoin(dir, groupDir)
	info, err := fs.Stat(in)
	if errors.Is(err, os.ErrNotExist) || err == nil && !info.IsDir() {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	return journal.Exists(fs, journalDir(fs, in))
}
