package journal

import (
	"errors"
	"fmt"

	"github.com/atomredis/atomredis/persist/disk"
)

// Unless the policy is Always, replies show changes that are not written yet. When the disk is full, the reserve, a
// file beside the directory of the segments, is removed to make room: appending stops, the appended records are written
// and synced, and only then the journal fails. It continues after there is room for a reserve again.

const (
	reserveName = "reserve"
	reserveSize = 2 * eagerSize // exceeds the waiting records, unless the disk is slow or a record is very long
)

func reservePath(fs disk.FS, dir string) string { return fs.PathJoin(fs.PathDir(dir), reserveName) }

// keepReserve creates the reserve if it is missing and may be needed. It returns an error if there is no room for it.
// The caller has the turn, or is the only user of j.
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

// checkReserve creates the reserve if the policy now requires one, and makes the journal fail if there is no room. The
// caller has the turn.
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
	// Not with Write, because Pebble's files may change its argument.
	for at := 0; at < j.reserve && err == nil; at += len(zeros) {
		err = writeAt(file, zeros[:min(j.reserve-at, len(zeros))], int64(at))
	}
	if err = errors.Join(err, file.Close()); err != nil {
		_ = j.o.FS.Remove(path) // useless, and takes room
	}
	return err
}

// useReserve frees the reserve after a write failed for lack of room, and reports whether it did. The caller has the
// turn.
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
