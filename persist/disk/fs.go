package disk

import (
	"io"
	"os"
	"path/filepath"
	"runtime"
)

// FS is a file system: System is the operating system's, and tests have others, in memory. Errors are those of package
// os, or wrap them.
type FS interface {
	// Create creates a file for reading and writing. An existing file of that name is removed, not truncated: it may
	// have another name too.
	Create(name string) (File, error)
	// Open opens a file for reading, OpenReadWrite for both; the latter creates the file if it does not exist.
	Open(name string) (File, error)
	OpenReadWrite(name string) (File, error)
	// OpenDir opens a directory, for syncing creations, renames and removals in it.
	OpenDir(name string) (File, error)
	// Link gives a file an additional name.
	Link(old, name string) error
	// Rename replaces an existing file with the new name.
	Rename(old, name string) error
	// Remove removes a file or an empty directory, RemoveAll a directory with all its content.
	Remove(name string) error
	RemoveAll(name string) error
	MkdirAll(dir string, perm os.FileMode) error
	// List returns the names in a directory, in any order.
	List(dir string) ([]string, error)
	Stat(name string) (os.FileInfo, error)
	// Lock creates an empty file and locks it until the lock is closed. It fails if the file is locked, even by this
	// process.
	Lock(name string) (io.Closer, error)
	// Paths use the separators of the file system.
	PathBase(path string) string
	PathDir(path string) string
	PathJoin(elem ...string) string
}

// Roomy is an FS that knows how much room there is; System is one on Linux, macOS and FreeBSD.
type Roomy interface {
	// Free returns how many bytes files in a directory may take in addition; ok is false if that is not known.
	Free(dir string) (bytes int64, ok bool)
}

// File is an open file. One goroutine at a time may write to it or sync it; only SyncData may be called while another
// goroutine writes.
type File interface {
	io.Reader
	io.ReaderAt
	io.Writer // may change its argument
	io.WriterAt
	io.Closer
	Stat() (os.FileInfo, error)
	// Sync makes the file durable, SyncData only what is needed to read it: not its times.
	Sync() error
	SyncData() error
	// SyncTo starts to make the beginning of the file durable; whole reports that it is already.
	SyncTo(length int64) (whole bool, err error)
	// Preallocate reserves room, and Prefetch starts to read a part that is needed soon. Both do nothing where
	// unsupported.
	Preallocate(off, length int64) error
	Prefetch(off, length int64) error
	// Fd returns the descriptor of the operating system, NoFd if there is none.
	Fd() uintptr
}

// NoFd is no descriptor.
const NoFd = ^uintptr(0)

// system is the unchanged file system of the operating system.
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

// opened returns a File for the result of package os.
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

// Sync does nothing on Windows, which cannot sync directories.
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
