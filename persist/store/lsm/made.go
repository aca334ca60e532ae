package lsm

import (
	"github.com/atomredis/atomredis/persist/disk"
)

// made is what opening a store makes, so that one that is not wanted after all leaves nothing behind. What was there
// before, and what others have put there, stays.
type made struct {
	dirs  []string // directories that did not exist, the innermost first
	fresh bool     // the directory was empty but for the lock, when that was taken
}

// willMake returns what has to be made for a directory.
func willMake(fs disk.FS, dir string) (m made) {
	for p := dir; ; p = fs.PathDir(p) {
		if _, err := fs.Stat(p); err == nil || fs.PathDir(p) == p {
			return m
		}
		m.dirs = append(m.dirs, p)
	}
}

// lockFile is the name of the file that is locked.
const lockFile = "LOCK"

// look finds out whether there is anything in the directory, whose lock is held.
func (m *made) look(fs disk.FS, dir string) {
	names, err := fs.List(dir)
	m.fresh = err == nil && len(names) <= 1
}

// removeFiles empties the directory, whose lock is held, if it was empty before. It is best effort: who calls it has
// failed already.
func (m *made) removeFiles(fs disk.FS, dir string) {
	if !m.fresh {
		return
	}
	names, _ := fs.List(dir)
	for _, name := range names {
		_ = fs.RemoveAll(fs.PathJoin(dir, name))
	}
}

// removeDirs removes the directories that were made, as far as they are empty. The lock is held no longer: some
// systems remove its file only now.
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
