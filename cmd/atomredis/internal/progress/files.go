package progress

import (
	"sync/atomic"

	"github.com/atomredis/atomredis/persist/disk"
)

// Files returns a file system whose reads a step of a bar shows, out of a total in bytes. Repeated reads count again;
// when the sum exceeds the total, the bar no longer shows the total.
func Files(fs disk.FS, total int64, b *Bar, step string) disk.FS {
	done := new(atomic.Int64)
	return files{fs, func(n int) {
		read := done.Add(int64(n))
		if read < total {
			b.Show(step, Bytes, read, total)
		} else {
			b.Show(step, Bytes, read, 0) // without a total, the caller ends the step
		}
	}}
}

type files struct {
	disk.FS
	read func(n int)
}

// Open implements disk.FS.
func (f files) Open(name string) (disk.File, error) {
	opened, err := f.FS.Open(name)
	if err != nil {
		return nil, err
	}
	return file{opened, f.read}, nil
}

// file counts the bytes that are read from a file.
type file struct {
	disk.File
	read func(n int)
}

// Read implements io.Reader.
func (f file) Read(p []byte) (int, error) {
	n, err := f.File.Read(p)
	f.read(n)
	return n, err
}

// ReadAt implements io.ReaderAt.
func (f file) ReadAt(p []byte, at int64) (int, error) {
	n, err := f.File.ReadAt(p, at)
	f.read(n)
	return n, err
}
