// Package disk is the file system of the operating system, made fit for a server that syncs all the time.
package disk

import (
	"errors"
	"os"
	"slices"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// FS is the file system that data are kept on: vfs.Default, but for how it removes long files.
//
// A file system may free the blocks of a removed file, and tell the disk about them, in one go, and everybody who
// syncs anything waits for that (ext4 that discards: 17 ms for 64 MiB). So Remove shortens a long file bit by bit
// before, and rests in between.
var FS vfs.FS = gentle{FS: vfs.Default, rest: func() { time.Sleep(rest) }}

const (
	step = 1 << 20          // how much of a file is freed at once, in bytes
	rest = time.Millisecond // in which others get to sync
)

// gentle is FS. rest is called after each step.
type gentle struct {
	vfs.FS
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

// Unwrap returns the file system behind it.
func (g gentle) Unwrap() vfs.FS { return g.FS }

// Full reports whether an error means that there is no room: that will pass, and what can be read can be read.
func Full(err error) bool {
	return slices.ContainsFunc(full, func(e error) bool { return errors.Is(err, e) })
}
