package store

import (
	"fmt"
	"io"
	"os"
	"strings"
	"sync"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// fence is the file system that one Pebble works on. Once it is shut nothing can be changed through it any more, so that a
// Pebble that has failed, whose goroutines may go on for a while, leaves the files alone to the one that is opened after it.
type fence struct {
	vfs.FS

	mu  sync.RWMutex // held for reading by every operation that changes something
	err error        // why it is shut

	reason sync.RWMutex // protects err; never held during an operation
}

// shut lets no operation begin any more. Only the first call has an effect, and it reports true.
func (f *fence) shut(err error) bool {
	f.reason.Lock()
	defer f.reason.Unlock()
	if f.err != nil {
		return false
	}
	f.err = err
	return true
}

// Err returns why the fence is shut, nil if it is not.
func (f *fence) Err() error {
	f.reason.RLock()
	defer f.reason.RUnlock()
	return f.err
}

// drain waits for the operations that had begun before the fence was shut.
func (f *fence) drain() {
	f.mu.Lock()
	defer f.mu.Unlock()
}

// pass calls op unless the fence is shut.
func (f *fence) pass(op func() error) error {
	f.mu.RLock()
	defer f.mu.RUnlock()
	if err := f.Err(); err != nil {
		return fmt.Errorf("the store has failed before: %w", err)
	}
	return op()
}

// open is pass for operations that give a file.
func (f *fence) open(op func() (vfs.File, error)) (vfs.File, error) {
	var file vfs.File
	err := f.pass(func() (err error) {
		file, err = op()
		return err
	})
	if err != nil {
		return nil, err
	}
	return &fencedFile{File: file, fence: f}, nil
}

// Create creates a file. The name of a marker of Pebble's has the name of another file, which must not be missing when the
// marker is there after a crash: Pebble leaves it to the file system that names appear on the disk in the order of creation.
func (f *fence) Create(name string, category vfs.DiskWriteCategory) (vfs.File, error) {
	return f.open(func() (vfs.File, error) {
		if strings.HasPrefix(f.FS.PathBase(name), "marker.") {
			if err := syncDir(f.FS, f.FS.PathDir(name)); err != nil {
				return nil, err
			}
		}
		return f.FS.Create(name, category)
	})
}

func (f *fence) OpenReadWrite(name string, category vfs.DiskWriteCategory, opts ...vfs.OpenOption) (vfs.File, error) {
	return f.open(func() (vfs.File, error) { return f.FS.OpenReadWrite(name, category, opts...) })
}

func (f *fence) OpenDir(name string) (vfs.File, error) {
	return f.open(func() (vfs.File, error) { return f.FS.OpenDir(name) })
}

func (f *fence) ReuseForWrite(old, name string, category vfs.DiskWriteCategory) (vfs.File, error) {
	return f.open(func() (vfs.File, error) { return f.FS.ReuseForWrite(old, name, category) })
}

func (f *fence) Link(old, name string) error {
	return f.pass(func() error { return f.FS.Link(old, name) })
}

func (f *fence) Remove(name string) error {
	return f.pass(func() error { return f.FS.Remove(name) })
}

func (f *fence) RemoveAll(name string) error {
	return f.pass(func() error { return f.FS.RemoveAll(name) })
}

func (f *fence) Rename(old, name string) error {
	return f.pass(func() error { return f.FS.Rename(old, name) })
}

func (f *fence) MkdirAll(dir string, perm os.FileMode) error {
	return f.pass(func() error { return f.FS.MkdirAll(dir, perm) })
}

// Lock does nothing: the Store holds a lock on the directory above as long as it is open, also from one Pebble to the next.
func (f *fence) Lock(string) (io.Closer, error) { return io.NopCloser(nil), nil }

// Unwrap returns the file system behind the fence.
func (f *fence) Unwrap() vfs.FS { return f.FS }

// fencedFile is a file that can be written or synced.
type fencedFile struct {
	vfs.File
	fence *fence
}

func (f *fencedFile) Write(p []byte) (n int, err error) {
	err = f.fence.pass(func() (err error) {
		n, err = f.File.Write(p)
		return err
	})
	return n, err
}

func (f *fencedFile) WriteAt(p []byte, off int64) (n int, err error) {
	err = f.fence.pass(func() (err error) {
		n, err = f.File.WriteAt(p, off)
		return err
	})
	return n, err
}

func (f *fencedFile) Preallocate(off, length int64) error {
	return f.fence.pass(func() error { return f.File.Preallocate(off, length) })
}

func (f *fencedFile) Sync() error { return f.fence.pass(f.File.Sync) }

func (f *fencedFile) SyncData() error { return f.fence.pass(f.File.SyncData) }

func (f *fencedFile) SyncTo(length int64) (full bool, err error) {
	err = f.fence.pass(func() (err error) {
		full, err = f.File.SyncTo(length)
		return err
	})
	return full, err
}
