// Package files detects changes of files, explains errors of the file system, creates directories with an undo, and
// replaces files atomically.
package files

import (
	"bufio"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// States are the states of files by name, to detect changes. Missing files are not in it.
type States map[string]os.FileInfo

// Stat returns the states of files.
func Stat(names ...string) States {
	states := States{}
	for _, name := range names {
		if info, err := os.Stat(name); err == nil {
			states[name] = info
		}
	}
	return states
}

// Equal reports whether the files are unchanged since before.
func (s States) Equal(before States) bool {
	if len(s) != len(before) {
		return false
	}
	for name, info := range s {
		was, ok := before[name]
		if !ok || !os.SameFile(info, was) || info.Size() != was.Size() || !info.ModTime().Equal(was.ModTime()) {
			return false
		}
	}
	return true
}

// Reason returns the innermost cause of an error, with the text of C libraries for errors of the system.
func Reason(err error) string {
	if errno, ok := errors.AsType[syscall.Errno](err); ok {
		text := errno.Error()
		return strings.ToUpper(text[:1]) + text[1:]
	}
	for {
		next := errors.Unwrap(err)
		if next == nil {
			return err.Error()
		}
		err = next
	}
}

// MakeDir makes a directory and those above it that do not exist. undo removes those of the created directories that
// are empty.
func MakeDir(dir string, perm os.FileMode) (undo func(), err error) {
	var missing []string // the deepest first
	for p := filepath.Clean(dir); ; p = filepath.Dir(p) {
		if _, err := os.Stat(p); !errors.Is(err, os.ErrNotExist) {
			break
		}
		missing = append(missing, p)
	}
	undo = func() {
		for _, p := range missing {
			if os.Remove(p) != nil {
				return
			}
		}
	}
	if err := os.MkdirAll(dir, perm); err != nil {
		undo()
		return nil, err
	}
	return undo, nil
}

// Replace writes a temporary file with write, and renames it to name once it is complete and on disk.
func Replace(name string, write func(w io.Writer) error) error {
	f, err := os.CreateTemp(filepath.Dir(name), filepath.Base(name)+".tmp*") // only the owner can access it
	if err != nil {
		return err
	}
	w := bufio.NewWriterSize(f, 1<<20)
	if err = write(w); err == nil {
		err = w.Flush()
	}
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), name)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	dir, err := os.Open(filepath.Dir(name))
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}
