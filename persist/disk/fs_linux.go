package disk

import (
	"os"
	"sync"

	"golang.org/x/sys/unix"
)

// file is an open file of the operating system.
type file struct {
	*os.File
	fd     int
	ranges func() bool // whether SyncTo can start to write a range
}

func openFile(f *os.File) File {
	fd := int(f.Fd())
	return file{f, fd, sync.OnceValue(func() bool { return syncsRanges(fd) })}
}

func (f file) SyncData() error { return unix.Fdatasync(f.fd) }

// SyncTo first waits for the ranges that it started to write before, to limit the amount under way.
func (f file) SyncTo(length int64) (whole bool, err error) {
	if !f.ranges() {
		err = f.SyncData()
		return err == nil, err
	}
	return false, unix.SyncFileRange(f.fd, 0, length, unix.SYNC_FILE_RANGE_WAIT_BEFORE|unix.SYNC_FILE_RANGE_WRITE)
}

// syncsRanges reports whether sync_file_range works for a file. File systems other than ext accept the call but may
// ignore it, and systems that emulate Linux may not have it.
func syncsRanges(fd int) bool {
	var fs unix.Statfs_t
	return unix.Fstatfs(fd, &fs) == nil && fs.Type == unix.EXT4_SUPER_MAGIC && unix.SyncFileRange(fd, 0, 0, 0) != unix.ENOSYS
}

func (f file) Preallocate(off, length int64) error {
	return unix.Fallocate(f.fd, unix.FALLOC_FL_KEEP_SIZE, off, length)
}

func (f file) Prefetch(off, length int64) error {
	return unix.Fadvise(f.fd, off, length, unix.FADV_WILLNEED)
}
