package progress

import (
	"errors"
	"os"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// Files returns a file system of which a step of a bar shows how much has been read, beside the size of all files in a
// directory. What is read twice counts twice.
func Files(fs vfs.FS, dir string, b *Bar, step string) vfs.FS {
	total, done := size(fs, dir), new(atomic.Int64)
	return files{fs, func(n int) {
		b.Show(step, Bytes, min(done.Add(int64(n)), total-1), total) // the caller knows when it has ended
	}}
}

// size returns how many bytes the files in a directory have. What cannot be read is left out.
func size(fs vfs.FS, dir string) (total int64) {
	names, err := fs.List(dir)
	if errors.Is(err, os.ErrNotExist) {
		return 0
	}
	for _, name := range names {
		path := fs.PathJoin(dir, name)
		info, err := fs.Stat(path)
		switch {
		case err != nil:
		case info.IsDir():
			total += size(fs, path)
		default:
			total += info.Size()
		}
	}
	return total
}

type files struct {
	vfs.FS
	read func(n int)
}

// Open implements vfs.FS.
func (f files) Open(name string, o ...vfs.OpenOption) (vfs.File, error) {
	opened, err := f.FS.Open(name, o...)
	if err != nil {
		return nil, err
	}
	return file{opened, f.read}, nil
}

// file counts what is read of a file.
type file struct {
	vfs.File
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
