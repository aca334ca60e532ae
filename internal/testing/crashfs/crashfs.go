// Package crashfs has file systems in memory for tests, based on Pebble's. They can be copied while they are in use,
// in the state after a power loss, and fail on demand.
package crashfs

import (
	"sync"
	"sync/atomic"
	"syscall"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"github.com/atomredis/atomredis/persist/disk"
	"github.com/atomredis/atomredis/persist/store/pebblefs"
)

// FS is a file system in memory.
type FS struct {
	disk.FS
	files *files
}

// CloneCfg describes which unsynced data a copy has.
type CloneCfg = vfs.CrashCloneCfg

// New returns an empty file system that CrashClone copies.
func New() *FS { return of(vfs.NewCrashableMem()) }

// Mem returns an empty file system that cannot be copied, which takes less memory.
func Mem() *FS { return of(vfs.NewMem()) }

func of(mem *vfs.MemFS) *FS {
	f := &files{MemFS: mem}
	return &FS{pebblefs.From(f), f}
}

// CrashClone returns a copy with all synced data, and the part of other data that cfg describes.
func (f *FS) CrashClone(cfg CloneCfg) *FS {
	f.files.mu.Lock()
	defer f.files.mu.Unlock()
	return of(f.files.MemFS.CrashClone(cfg))
}

// Bytes returns the content of a file, which the test may change while no code reads or writes the file.
func (f *FS) Bytes(name string) ([]byte, error) { return f.files.UnsafeGetFileDataBuffer(name) }

// files is a vfs.MemFS that can be copied at any time. A MemFS by itself takes its lock of copies twice in Link and
// in ReuseForWrite, so that a CrashClone between the two causes a deadlock.
type files struct {
	*vfs.MemFS
	mu sync.RWMutex
}

// Link is that of vfs.FS.
func (f *files) Link(old, name string) error {
	f.mu.RLock()
	defer f.mu.RUnlock()
	return f.MemFS.Link(old, name)
}

// ReuseForWrite is that of vfs.FS.
func (f *files) ReuseForWrite(old, name string, category vfs.DiskWriteCategory) (vfs.File, error) {
	f.mu.RLock()
	defer f.mu.RUnlock()
	return f.MemFS.ReuseForWrite(old, name, category)
}

// Wrap returns a file system whose operations fail, or are late, as an injector of Pebble's says.
func Wrap(fs disk.FS, injector errorfs.Injector) disk.FS {
	return pebblefs.From(errorfs.Wrap(pebblefs.To(fs), injector))
}

// Full returns a file system that has no room for anything while full is set: writes fail with ENOSPC.
func Full(fs disk.FS, full *atomic.Bool) disk.FS {
	return Wrap(fs, errorfs.InjectorFunc(func(op errorfs.Op) error {
		if full.Load() && (op.Kind == errorfs.OpFileWrite || op.Kind == errorfs.OpFileWriteAt) {
			return syscall.ENOSPC
		}
		return nil
	}))
}

// Copy copies a file, or a directory with all that is in it, from one file system to another; ok reports whether it
// exists.
func Copy(from, to disk.FS, old, name string) (ok bool, err error) {
	return vfs.Clone(pebblefs.To(from), pebblefs.To(to), old, name)
}
