// Package disk is the file system of the operating system, adapted to a server that syncs all the time.
package disk

import (
	"errors"
	"os"
	"slices"
	"time"
)

// System is the file system of the operating system, with gentle removal of long files.
//
// A file system may free the blocks of a removed file, and tell the disk about them, in one go; every sync then waits
// for that (ext4 with discard: 17 ms for 64 MiB). So Remove first truncates a long file step by step, with pauses in
// between.
var System FS = gentle{FS: system{}, rest: func() { time.Sleep(rest) }}

const (
	step = 1 << 20          // bytes of a file freed at once
	rest = time.Millisecond // pause in which others can sync
)

// gentle is System. rest is called after each step.
type gentle struct {
	FS
	rest func()
}

// Free implements Roomy.
func (g gentle) Free(dir string) (bytes int64, ok bool) {
	if fs, roomy := g.FS.(Roomy); roomy {
		return fs.Free(dir)
	}
	return 0, false
}

// Remove removes a file or an empty directory. Its content becomes invalid for those that have it open.
func (g gentle) Remove(name string) error {
	if info, err := os.Lstat(name); err == nil && info.Mode().IsRegular() && onlyName(info) {
		for size := info.Size() - step; size > 0; size -= step {
			if os.Truncate(name, size) != nil {
				break // perhaps it can be removed
			}
			g.rest()
		}
	}
	return g.FS.Remove(name)
}

// MakeDir creates a directory and its missing parents, for their owner alone, and makes them durable. It also syncs an
// existing directory, because its creator may have failed to do so.
func MakeDir(fs FS, dir string) error {
	parents := []string{fs.PathDir(dir)}
	for p := fs.PathDir(dir); fs.PathDir(p) != p; p = fs.PathDir(p) {
		if _, err := fs.Stat(p); err == nil {
			break
		} else if !errors.Is(err, os.ErrNotExist) {
			return err
		}
		parents = append(parents, fs.PathDir(p))
	}
	if err := fs.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	for _, p := range parents {
		if err := SyncDir(fs, p); err != nil && !errors.Is(err, os.ErrPermission) {
			return err
		}
	}
	return nil
}

// SyncDir makes creations, renames and removals in a directory durable.
func SyncDir(fs FS, dir string) error {
	f, err := fs.OpenDir(dir)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// Full reports whether an error means that there is no room. That is temporary, and readable data stays readable.
func Full(err error) bool {
	return slices.ContainsFunc(full, func(e error) bool { return errors.Is(err, e) })
}
