package objects

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"iter"
	"slices"
	"strings"

	"github.com/atomredis/atomredis/persist/disk"
)

// dir is a Store of files in a directory.
type dir struct {
	fs   disk.FS
	root string
}

// temporary ends the names of files that are not complete.
const temporary = ".tmp"

var errNoPath = errors.New("archive: the name of a directory is missing")

func directory(fs disk.FS, root string) (Store, error) {
	if root == "" {
		return nil, errNoPath
	}
	return &dir{fs: fs, root: root}, nil
}

// String implements Store.
func (d *dir) String() string { return d.root }

func (d *dir) path(name string) string {
	return d.fs.PathJoin(append([]string{d.root}, strings.Split(name, "/")...)...)
}

// Put implements Store. The file is on the disk before it has its name.
func (d *dir) Put(ctx context.Context, name string, r io.Reader, _ int64) (err error) {
	path := d.path(name)
	in := d.fs.PathDir(path)
	if _, err := d.fs.Stat(in); errors.Is(err, fs.ErrNotExist) {
		err = disk.MakeDir(d.fs, in)
		if err != nil {
			return err
		}
	} else if err != nil {
		return err
	}
	var id [6]byte
	rand.Read(id[:])
	incomplete := path + "." + hex.EncodeToString(id[:]) + temporary
	file, err := d.fs.Create(incomplete)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = d.fs.Remove(incomplete)
		}
	}()
	_, err = io.CopyBuffer(struct{ io.Writer }{file}, contextReader{ctx, r}, make([]byte, 256<<10))
	if err == nil {
		err = file.Sync()
	}
	if err = errors.Join(err, file.Close()); err != nil {
		return err
	}
	if err = d.fs.Rename(incomplete, path); err != nil {
		return err
	}
	return disk.SyncDir(d.fs, in)
}

// contextReader fails once its context has ended. It hides other methods of the reader, so that io.Copy uses its buffer.
type contextReader struct {
	ctx context.Context
	r   io.Reader
}

// Read implements io.Reader.
func (c contextReader) Read(b []byte) (int, error) {
	if err := context.Cause(c.ctx); err != nil {
		return 0, err
	}
	return c.r.Read(b)
}

// Get implements Store.
func (d *dir) Get(ctx context.Context, name string) (io.ReadCloser, error) {
	file, err := d.fs.Open(d.path(name))
	if err != nil {
		return nil, err
	}
	return struct {
		io.Reader
		io.Closer
	}{contextReader{ctx, file}, file}, nil
}

// List implements Store.
func (d *dir) List(ctx context.Context, prefix, after string) iter.Seq2[Object, error] {
	return func(yield func(Object, error) bool) { d.walk(ctx, "", prefix, after, yield) }
}

// walk lists a folder, whose name ends in a slash unless it is the outermost one. It reports false once yield has.
func (d *dir) walk(ctx context.Context, folder, prefix, after string, yield func(Object, error) bool) bool {
	if err := context.Cause(ctx); err != nil {
		return yield(Object{}, err)
	}
	names, err := d.fs.List(d.path(folder))
	if errors.Is(err, fs.ErrNotExist) {
		return true
	}
	if err != nil {
		return yield(Object{}, err)
	}
	slices.Sort(names)
	for _, name := range names {
		full := folder + name
		if strings.HasSuffix(name, temporary) {
			continue
		}
		info, err := d.fs.Stat(d.path(full))
		switch {
		case errors.Is(err, fs.ErrNotExist): // removed meanwhile
		case err != nil:
			return yield(Object{}, err)
		case info.IsDir():
			full += "/"
			before := full < after && !strings.HasPrefix(after, full)
			if before || !strings.HasPrefix(full, prefix) && !strings.HasPrefix(prefix, full) {
				continue
			}
			if !d.walk(ctx, full, prefix, after, yield) {
				return false
			}
		case strings.HasPrefix(full, prefix) && full > after:
			if !yield(Object{full, info.Size()}, nil) {
				return false
			}
		}
	}
	return true
}

// Folders implements Store.
func (d *dir) Folders(_ context.Context, folder string) (found []string, err error) {
	names, err := d.fs.List(d.path(folder))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	for _, name := range names {
		if info, err := d.fs.Stat(d.path(folder + "/" + name)); err == nil && info.IsDir() {
			found = append(found, name)
		}
	}
	slices.Sort(found)
	return found, err
}

// Delete implements Store. It also removes folders that become empty.
func (d *dir) Delete(_ context.Context, name string) error {
	err := d.fs.Remove(d.path(name))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	for folder := name; err == nil; {
		at := strings.LastIndexByte(folder, '/')
		if at < 0 {
			return nil
		}
		folder = folder[:at]
		if rest, listErr := d.fs.List(d.path(folder)); listErr != nil || len(rest) > 0 {
			return nil
		}
		if d.fs.Remove(d.path(folder)) != nil { // another object has just been added
			return nil
		}
	}
	return err
}
