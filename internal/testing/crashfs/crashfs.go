// Package crashfs has a file system in memory that tests copy, while it is in use, as a power loss would leave it.
package crashfs

import (
	"sync"
	"sync/atomic"
	"syscall"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
)

// FS is a vfs.MemFS that can be copied at any time. A MemFS by itself takes its lock of copies twice in Link and in
// ReuseForWrite, so that each of them and a CrashClone that comes between wait for each other for ever.
type FS struct {
	*vfs.MemFS
	mu sync.RWMutex
}

// New returns an empty file system.
func New() *FS { return &FS{MemFS: vfs.NewCrashableMem()} }

// Link is that of vfs.FS.
func (f *FS) Link(old, name string) error {
	f.mu.RLock()
	defer f.mu.RUnlock()
	return f.MemFS.Link(old, name)
}

// ReuseForWrite is that of vfs.FS.
func (f *FS) ReuseForWrite(old, name string, category vfs.DiskWriteCategory) (vfs.File, error) {
	f.mu.RLock()
	defer f.mu.RUnlock()
	return f.MemFS.ReuseForWrite(old, name, category)
}

// CrashClone returns a copy that has what was synced, and of the rest what cfg says.
func (f *FS) CrashClone(cfg vfs.CrashCloneCfg) *vfs.MemFS {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.MemFS.CrashClone(cfg)
}

// Full returns a file system that has no room for anything while full is set: writes fail with ENOSPC.
func Full(fs vfs.FS, full *atomic.Bool) vfs.FS {
	return errorfs.Wrap(fs, errorfs.InjectorFunc(func(op errorfs.Op) error {
		if full.Load() && (op.Kind == errorfs.OpFileWrite || op.Kind == errorfs.OpFileWriteAt) {
			return syscall.ENOSPC
		}
		return nil
	}))
}
