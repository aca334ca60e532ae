package lsm

import (
	"github.com/atomredis/atomredis/persist/disk"
	"github.com/atomredis/atomredis/persist/store"
)

// made records what opening a store has created, so that an unwanted one leaves nothing behind. Earlier content, and
// that of others, stays.
type made struct {
	dirs  []string // directories that did not exist, innermost first
	fresh bool     // when locked, the directory was empty except for the lock
}

// willMake returns what must be created for a directory.
func willMake(fs disk.FS, dir string) (m made) {
	for p := dir; ; p = fs.PathDir(p) {
		if _, err := fs.Stat(p); err == nil || fs.PathDir(p) == p {
			return m
		}
		m.dirs = append(m.dirs, p)
	}
}

// lockFile is the name of the lock file.
const lockFile = store.LockFile

// look records whether the directory, whose lock is held, is empty.
func (m *made) look(fs disk.FS, dir string) {
	names, err := fs.List(dir)
	m.fresh = err == nil && len(names) <= 1
}

// removeFiles empties the directory, whose lock is held, if it was empty before. It ignores errors: its caller has
// already failed.
func (m *made) removeFiles(fs disk.FS, dir string) {
	if !m.fresh {
		return
	}
	names, _ := fs.List(dir)
	for _, name := range names {
		_ = fs.RemoveAll(fs.PathJoin(dir, name))
	}
}

// removeDirs removes the created directories as far as they are empty. The lock is no longer held: some systems only
// now remove its file.
func (m *made) removeDirs(fs disk.FS, dir string) {
	if m.fresh {
		_ = fs.Remove(fs.PathJoin(dir, lockFile))
	}
	for _, d := range m.dirs {
		if fs.Remove(d) != nil {
			return
		}
	}
}
