package lsm

import (
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"
	"sync"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/atomredis/atomredis/persist/disk"
	"github.com/atomredis/atomredis/persist/store/pebblefs"
)

// fence is the file system of one Pebble instance. Once it is shut, nothing can be changed through it. So a failed
// Pebble, whose goroutines may continue for a while, cannot touch the files of the one opened after it.
//
// Pebble cannot survive an error while it writes the MANIFEST, the record of which files make up the data set: it does
// not know whether the record was written, and its state in memory is half changed, so it soon panics. Therefore the
// goroutine with such an error never gets it: it is blocked where it is. There it holds only the lock of the MANIFEST,
// so everything else that would use the half changed state waits for it, while readers continue.
type fence struct {
	vfs.FS
	fail func(error) // called after an error that makes Pebble useless; shuts the fence

	mu sync.RWMutex // read-locked by every operation that changes something

	state sync.RWMutex // protects the fields below; never held during an operation
	err   error        // why it is shut
	keeps bool         // files of data stay until release
	kept  []string     // those that Pebble has removed meanwhile
	files map[*fencedFile]struct{}

	dead chan struct{} // closed when the fence is shut
}

// newFence returns a fence that keeps files of data until release. A Pebble removes what it does not need as soon as it is open,
// and it may fail before it is used: then the one before it still reads these files.
func newFence(fs vfs.FS, fail func(error)) *fence {
	return &fence{FS: fs, fail: fail, keeps: true, files: map[*fencedFile]struct{}{}, dead: make(chan struct{})}
}

// shut blocks all further operations. Only the first call has an effect, and returns true.
func (f *fence) shut(err error) bool {
	f.state.Lock()
	defer f.state.Unlock()
	if f.err != nil {
		return false
	}
	f.err = err
	close(f.dead)
	return true
}

// Err returns why the fence is shut, nil if it is not.
func (f *fence) Err() error {
	f.state.RLock()
	defer f.state.RUnlock()
	return f.err
}

// keep reports whether a file stays until release. The names of such files are not used again.
func (f *fence) keep(name string) bool {
	f.state.Lock()
	defer f.state.Unlock()
	if !f.keeps || !strings.HasSuffix(name, ".sst") && !strings.HasSuffix(name, ".blob") {
		return false
	}
	f.kept = append(f.kept, name)
	return true
}

// release removes the files that Pebble has removed so far: no other Pebble reads them.
func (f *fence) release() {
	f.state.Lock()
	names := f.kept
	f.keeps, f.kept = false, nil
	f.state.Unlock()
	for _, name := range names {
		_ = f.Remove(name)
	}
}

// drain waits for the operations that began before the fence was shut.
func (f *fence) drain() {
	f.mu.Lock()
	defer f.mu.Unlock()
}

// closeFiles closes the open files.
func (f *fence) closeFiles() {
	f.state.RLock()
	var files []*fencedFile
	for file := range f.files {
		files = append(files, file)
	}
	f.state.RUnlock()
	for _, file := range files {
		_ = file.Close() // unsynced data is lost anyway
	}
}

// try calls op unless the fence is shut.
func (f *fence) try(op func() error) error {
	f.mu.RLock()
	defer f.mu.RUnlock()
	if err := f.Err(); err != nil {
		return fmt.Errorf("the store has failed before: %w", err)
	}
	return op()
}

// pass is try, but does not return if an error would be fatal.
func (f *fence) pass(op func() error) error { return f.check(f.try(op)) }

// check returns err, but does not return if it would be fatal.
func (f *fence) check(err error) error {
	// This function writes the MANIFEST, or installs a new one.
	if err != nil && calledBy(".(*versionSet).UpdateVersionLocked") {
		f.fail(fmt.Errorf("the list of files cannot be written: %w", err))
		select {}
	}
	return err
}

// calledBy reports whether a function with this suffix is among the callers.
func calledBy(suffix string) bool {
	var pcs [64]uintptr
	frames := runtime.CallersFrames(pcs[:runtime.Callers(2, pcs[:])])
	for {
		frame, more := frames.Next()
		if strings.HasSuffix(frame.Function, suffix) {
			return true
		}
		if !more {
			return false
		}
	}
}

// open is pass for operations that return a file.
func (f *fence) open(op func() (vfs.File, error)) (vfs.File, error) {
	var file vfs.File
	err := f.pass(func() (err error) {
		file, err = op()
		return err
	})
	if err != nil {
		return nil, err
	}
	return f.wrap(file), nil
}

func (f *fence) wrap(file vfs.File) vfs.File {
	w := &fencedFile{File: file, fence: f}
	f.state.Lock()
	defer f.state.Unlock()
	f.files[w] = struct{}{}
	return w
}

// Create creates a file. The name of a Pebble marker contains the name of another file, which must exist if the marker
// survives a crash: Pebble relies on the file system to make names durable in the order of creation.
func (f *fence) Create(name string, category vfs.DiskWriteCategory) (vfs.File, error) {
	return f.open(func() (vfs.File, error) {
		if strings.HasPrefix(f.FS.PathBase(name), "marker.") {
			if err := disk.SyncDir(pebblefs.From(f.FS), f.FS.PathDir(name)); err != nil {
				return nil, err
			}
		}
		return f.FS.Create(name, category)
	})
}

// Open opens a file for reading, even after the fence is shut.
func (f *fence) Open(name string, opts ...vfs.OpenOption) (vfs.File, error) {
	file, err := f.FS.Open(name, opts...)
	if err != nil {
		return nil, err
	}
	return f.wrap(file), nil
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

// Remove removes a file. An error is never fatal: a leftover file does no harm.
func (f *fence) Remove(name string) error {
	if f.keep(name) {
		return nil
	}
	return f.try(func() error { return f.FS.Remove(name) })
}

func (f *fence) RemoveAll(name string) error {
	return f.try(func() error { return f.FS.RemoveAll(name) })
}

func (f *fence) Rename(old, name string) error {
	return f.pass(func() error { return f.FS.Rename(old, name) })
}

func (f *fence) MkdirAll(dir string, perm os.FileMode) error {
	return f.pass(func() error { return f.FS.MkdirAll(dir, perm) })
}

// Lock does nothing: the Store locks the directory above while it is open, also between two Pebble instances.
func (f *fence) Lock(string) (io.Closer, error) { return io.NopCloser(nil), nil }

// Unwrap returns the file system behind the fence.
func (f *fence) Unwrap() vfs.FS { return f.FS }

// fencedFile is a file opened through a fence, which can close it while others use it.
type fencedFile struct {
	vfs.File
	fence *fence

	mu     sync.RWMutex // read-locked by operations that are possible after the fence is shut
	closed bool
}

// Close closes the file.
func (f *fencedFile) Close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return os.ErrClosed
	}
	f.closed = true
	f.fence.state.Lock()
	delete(f.fence.files, f)
	f.fence.state.Unlock()
	return f.fence.check(f.File.Close())
}

// use calls op unless the file is closed.
func (f *fencedFile) use(op func() error) error {
	f.mu.RLock()
	defer f.mu.RUnlock()
	if f.closed {
		return os.ErrClosed
	}
	return op()
}

func (f *fencedFile) Read(p []byte) (n int, err error) {
	err = f.use(func() (err error) {
		n, err = f.File.Read(p)
		return err
	})
	return n, err
}

func (f *fencedFile) ReadAt(p []byte, off int64) (n int, err error) {
	err = f.use(func() (err error) {
		n, err = f.File.ReadAt(p, off)
		return err
	})
	return n, err
}

func (f *fencedFile) Prefetch(off, length int64) error {
	return f.use(func() error { return f.File.Prefetch(off, length) })
}

func (f *fencedFile) Stat() (info vfs.FileInfo, err error) {
	err = f.use(func() (err error) {
		info, err = f.File.Stat()
		return err
	})
	return info, err
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
	return f.fence.try(func() error { return f.File.Preallocate(off, length) })
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

// run calls op, which an error may block forever, in a goroutine of its own. It returns the result of op or, if the
// fence is shut first, the reason.
func (f *fence) run(op func() error) error {
	done := make(chan error, 1)
	go func() {
		defer func() {
			if r := recover(); r != nil {
				err := fmt.Errorf("Pebble panics: %v", r)
				f.fail(err)
				done <- err
			}
		}()
		done <- op()
	}()
	select {
	case err := <-done:
		return err
	case <-f.dead:
	}
	select {
	case err := <-done:
		return err
	default:
		return f.Err()
	}
}
