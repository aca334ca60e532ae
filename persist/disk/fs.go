package disk

import (
	"io"
	"os"
	"path/filepath"
	"runtime"
)

// FS is a file system: System is that of the operating system, and tests have others, in memory. Errors are those of
// package os, or wrap them.
type FS interface {
	// Create makes a file for reading and writing. A file that has the name is removed before, not emptied: it may have
	// another name too.
	Create(name string) (File, error)
	// Open opens a file for reading, OpenReadWrite for both; that makes the file if it does not exist.
	Open(name string) (File, error)
	OpenReadWrite(name string) (File, error)
	// OpenDir opens a directory, to sync what was made, renamed and removed in it.
	OpenDir(name string) (File, error)
	// Link gives a file another name.
	Link(old, name string) error
	// Rename replaces what has the new name.
	Rename(old, name string) error
	// Remove removes a file or an empty directory, RemoveAll a directory with all that is in it.
	Remove(name string) error
	RemoveAll(name string) error
	MkdirAll(dir string, perm os.FileMode) error
	// List returns the names in a directory, in any order.
	List(dir string) ([]string, error)
	Stat(name string) (os.FileInfo, error)
	// Lock makes an empty file and locks it until the lock is closed. It fails if anybody has locked it, this process too.
	Lock(name string) (io.Closer, error)
	// Paths have the separators of the file system.
	PathBase(path string) string
	PathDir(path string) string
	PathJoin(elem ...string) string
}

// File is an open file. One goroutine at a time may write to it or sync it, but for SyncData, which may be called while
// another one writes.
type File interface {
	io.Reader
	io.ReaderAt
	io.Writer // which may change the bytes that it is given
	io.WriterAt
	io.Closer
	Stat() (os.FileInfo, error)
	// Sync brings the file to the disk, SyncData what is needed to read it: not its times.
	Sync() error
	SyncData() error
	// SyncTo has the beginning of the file brought to the disk soon; whole says that all of it is there already.
	SyncTo(length int64) (whole bool, err error)
	// Preallocate reserves room, and Prefetch has a part read that is needed soon. Both do nothing where that is unknown.
	Preallocate(off, length int64) error
	Prefetch(off, length int64) error
	// Fd is the descriptor of the operating system, NoFd if there is none.
	Fd() uintptr
}

// NoFd is no descriptor.
const NoFd = ^uintptr(0)

// system is the file system of the operating system, as it is.
type system struct{}

func (system) Create(name string) (File, error) {
	for {
		f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o666)
		if err == nil {
			return openFile(f), nil
		}
		if !os.IsExist(err) {
			return nil, err
		}
		if err := os.Remove(name); err != nil && !os.IsNotExist(err) {
			return nil, err
		}
	}
}

func (system) Open(name string) (File, error) { return opened(os.Open(name)) }

func (system) OpenReadWrite(name string) (File, error) {
	return opened(os.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o666))
}

// opened is a File for what package os has opened.
func opened(f *os.File, err error) (File, error) {
	if err != nil {
		return nil, err
	}
	return openFile(f), nil
}

func (system) OpenDir(name string) (File, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	return directory{f}, nil
}

func (system) Link(old, name string) error                 { return os.Link(old, name) }
func (system) Rename(old, name string) error               { return os.Rename(old, name) }
func (system) Remove(name string) error                    { return os.Remove(name) }
func (system) RemoveAll(name string) error                 { return os.RemoveAll(name) }
func (system) MkdirAll(dir string, perm os.FileMode) error { return os.MkdirAll(dir, perm) }
func (system) Stat(name string) (os.FileInfo, error)       { return os.Stat(name) }
func (system) Lock(name string) (io.Closer, error)         { return lockFile(name) }
func (system) PathBase(path string) string                 { return filepath.Base(path) }
func (system) PathDir(path string) string                  { return filepath.Dir(path) }
func (system) PathJoin(elem ...string) string              { return filepath.Join(elem...) }

func (system) List(dir string) ([]string, error) {
	d, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	defer d.Close()
	return d.Readdirnames(-1)
}

// directory is an open directory.
type directory struct{ *os.File }

// Sync does nothing on Windows, which cannot do that.
func (d directory) Sync() error {
	if runtime.GOOS == "windows" {
		return nil
	}
	return d.File.Sync()
}

func (d directory) SyncData() error            { return d.Sync() }
func (directory) SyncTo(int64) (bool, error)   { return false, nil }
func (directory) Preallocate(_, _ int64) error { return nil }
func (directory) Prefetch(_, _ int64) error    { return nil }
