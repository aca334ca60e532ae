package journal

import (
	"errors"
	"fmt"

	"github.com/atomredis/atomredis/persist/disk"
)

// Unless the policy is Always, replies show changes that are not written yet. When the disk is full, the reserve, a file beside
// the directory of the segments, is removed to make room: appending stops, the appended records are written and synced, and
// only then the journal fails. It continues when there is room for a reserve again.

const (
	reserveName = "reserve"
	reserveSize = 2 * eagerSize // more than what waits to be written, unless the disk is slow or a record is very long
)

func reservePath(fs disk.FS, dir string) string { return fs.PathJoin(fs.PathDir(dir), reserveName) }

// keepReserve makes the reserve if it is missing and may be needed. It returns an error if there is no room for it. The caller
// has the turn, or is the only one that has j.
func (j *File) keepReserve() error {
	if j.reserved || j.noReserve || Policy(j.policy.Load()) == Always {
		return nil
	}
	path := reservePath(j.o.FS, j.o.Dir)
	info, err := j.o.FS.Stat(path)
	if err != nil || info.Size() < int64(j.reserve) {
		err = j.makeReserve(path)
	}
	j.reserved = err == nil
	if disk.Full(err) {
		return fmt.Errorf("make %s: %w", path, err)
	}
	j.noReserve = err != nil
	return nil
}

// checkReserve makes the reserve if the policy wants one now, and has the journal fail if there is no room for it.
// The caller has the turn.
func (j *File) checkReserve() {
	if j.Err() != nil {
		return
	}
	if err := j.keepReserve(); err != nil {
		j.mu.Lock()
		j.exhausted = err
		j.wakeWriter()
		j.mu.Unlock()
	}
}

func (j *File) makeReserve(path string) error {
	file, err := j.o.FS.Create(path)
	if err != nil {
		return err
	}
	// Not by Write, which of Pebble's files may change what it is given.
	for at := 0; at < j.reserve && err == nil; at += len(zeros) {
		err = writeAt(file, zeros[:min(j.reserve-at, len(zeros))], int64(at))
	}
	if err = errors.Join(err, file.Close()); err != nil {
		_ = j.o.FS.Remove(path) // it is of no use, and takes room
	}
	return err
}

// useReserve reports whether there is room now for what could not be written for want of it. The caller has the turn.
func (j *File) useReserve(err error) bool {
	if err == nil || !j.reserved || !disk.Full(err) {
		return false
	}
	j.reserved = false
	if j.o.FS.Remove(reservePath(j.o.FS, j.o.Dir)) != nil {
		return false
	}
	j.mu.Lock()
	j.exhausted = err
	j.mu.Unlock()
	return true
}
