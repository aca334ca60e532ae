package disk

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// Lock locks a file and, where the system can, also its directory: removing the file then lets nobody in. The file is
// identified by its real path, because the system's locks do not stop a process from taking one twice.
func (g gentle) Lock(name string) (io.Closer, error) {
	path := filepath.Dir(name)
	dir, err := filepath.Abs(path)
	if err == nil {
		dir, err = filepath.EvalSymlinks(dir)
	}
	if err != nil {
		return nil, err
	}
	ofDir, err := lockDir(dir)
	if err != nil {
		return nil, err
	}
	ofFile, err := g.FS.Lock(filepath.Join(dir, filepath.Base(name)))
	if err != nil {
		return nil, errors.Join(err, ofDir.Close())
	}
	is, err := os.Stat(path)
	if err != nil {
		return nil, errors.Join(err, ofFile.Close(), ofDir.Close())
	}
	return &lock{file: ofFile, dir: ofDir, path: path, is: is}, nil
}

// lock is the result of System.Lock.
type lock struct {
	file, dir io.Closer
	path      string      // of the directory
	is        os.FileInfo // the directory itself
}

// Close releases the lock.
func (l *lock) Close() error { return errors.Join(l.file.Close(), l.dir.Close()) }

// still returns an error if another directory, or none, has replaced the locked one.
func (l *lock) still() error {
	now, err := os.Stat(l.path)
	if err == nil && !os.SameFile(now, l.is) {
		err = fmt.Errorf("%s is another directory than the one that was opened, which has been moved away or removed", l.path)
	}
	return err
}

// Within returns a file system for the content of a directory that was locked with System.Lock: it creates, renames and
// removes nothing once another directory has replaced this one, because that may be another server's. Open files can
// still be read and written.
func Within(fs FS, locked io.Closer) FS {
	if l, ok := locked.(*lock); ok {
		return within{fs, l}
	}
	return fs
}

// within is the result of Within.
type within struct {
	FS
	lock *lock
}

// open calls op, which creates a file, unless the directory was replaced.
func (w within) open(op func() (File, error)) (File, error) {
	if err := w.lock.still(); err != nil {
		return nil, err
	}
	return op()
}

// change is open for an op that returns no file.
func (w within) change(op func() error) error {
	if err := w.lock.still(); err != nil {
		return err
	}
	return op()
}

func (w within) Create(name string) (File, error) {
	return w.open(func() (File, error) { return w.FS.Create(name) })
}

func (w within) OpenReadWrite(name string) (File, error) {
	return w.open(func() (File, error) { return w.FS.OpenReadWrite(name) })
}

func (w within) Link(old, name string) error {
	return w.change(func() error { return w.FS.Link(old, name) })
}

func (w within) Rename(old, name string) error {
	return w.change(func() error { return w.FS.Rename(old, name) })
}

func (w within) Remove(name string) error {
	return w.change(func() error { return w.FS.Remove(name) })
}

func (w within) RemoveAll(name string) error {
	return w.change(func() error { return w.FS.RemoveAll(name) })
}

func (w within) MkdirAll(dir string, perm os.FileMode) error {
	return w.change(func() error { return w.FS.MkdirAll(dir, perm) })
}

// OfSystem reports whether a file system is the operating system's.
func OfSystem(fs FS) bool {
	switch f := fs.(type) {
	case gentle:
		return true
	case within:
		return OfSystem(f.FS)
	}
	return false
}
