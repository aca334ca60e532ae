// Package disk is the file system of the operating system, made fit for a server that syncs all the time.
package disk

import (
	"errors"
	"os"
	"slices"
	"time"
)

// System is the file system of the operating system, which removes long files gently.
//
// A file system may free the blocks of a removed file, and tell the disk about them, in one go, and everybody who
// syncs anything waits for that (ext4 that discards: 17 ms for 64 MiB). So Remove shortens a long file bit by bit
// before, and rests in between.
var System FS = gentle{FS: system{}, rest: func() { time.Sleep(rest) }}

const (
	step = 1 << 20          // how much of a file is freed at once, in bytes
	rest = time.Millisecond // in which others get to sync
)

// gentle is System. rest is called after each step.
type gentle struct {
	FS
	rest func()
}

// Remove removes a file or an empty directory. Who has it open cannot count on what it holds any more.
func (g gentle) Remove(name string) error {
	if info, err := os.Lstat(name); err == nil && info.Mode().IsRegular() && onlyName(info) {
		for size := info.Size() - step; size > 0; size -= step {
			if os.Truncate(name, size) != nil {
				break // it can perhaps be removed
			}
			g.rest()
		}
	}
	return g.FS.Remove(name)
}

// MakeDir makes a directory and those above it that do not exist, for their owner alone, so that they are there after a
// crash. That holds for a directory too that exists: whoever made it may have failed to sync it.
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

// SyncDir syncs what was made, renamed and removed in a directory.
func SyncDir(fs FS, dir string) error {
	f, err := fs.OpenDir(dir)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// Full reports whether an error means that there is no room: that will pass, and what can be read can be read.
func Full(err error) bool {
	return slices.ContainsFunc(full, func(e error) bool { return errors.Is(err, e) })
}
