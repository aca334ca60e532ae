// Package pebblefs translates between Pebble's file systems and ours, in both directions: Pebble works on a disk.FS,
// and in tests the server works on Pebble's file system in memory.
package pebblefs

import (
	"io"
	"os"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/atomredis/atomredis/persist/disk"
)

// To makes our file system usable by Pebble.
func To(fs disk.FS) vfs.FS {
	if f, ok := fs.(from); ok {
		return f.FS
	}
	return to{fs}
}

// to is the result of To.
type to struct{ disk.FS }

// file is our file for Pebble.
type file struct{ disk.File }

// fileInfo describes it. Pebble only needs the device on its own file systems.
type fileInfo struct{ os.FileInfo }

func (fileInfo) DeviceID() vfs.DeviceID { return vfs.DeviceID{} }

func (f file) Stat() (vfs.FileInfo, error) { return stat(f.File.Stat()) }

func stat(info os.FileInfo, err error) (vfs.FileInfo, error) {
	if err != nil {
		return nil, err
	}
	if known, ok := info.(vfs.FileInfo); ok {
		return known, nil
	}
	return fileInfo{info}, nil
}

// toFile translates the result of opening a file.
func toFile(f disk.File, err error, opts ...vfs.OpenOption) (vfs.File, error) {
	if err != nil {
		return nil, err
	}
	var opened vfs.File = file{f}
	if theirs, ok := f.(fromFile); ok {
		opened = theirs.File
	}
	for _, o := range opts {
		o.Apply(opened)
	}
	return opened, nil
}

func (t to) Create(name string, _ vfs.DiskWriteCategory) (vfs.File, error) {
	f, err := t.FS.Create(name)
	return toFile(f, err)
}

func (t to) Open(name string, opts ...vfs.OpenOption) (vfs.File, error) {
	f, err := t.FS.Open(name)
	return toFile(f, err, opts...)
}

func (t to) OpenReadWrite(name string, _ vfs.DiskWriteCategory, opts ...vfs.OpenOption) (vfs.File, error) {
	f, err := t.FS.OpenReadWrite(name)
	return toFile(f, err, opts...)
}

func (t to) OpenDir(name string) (vfs.File, error) {
	f, err := t.FS.OpenDir(name)
	return toFile(f, err)
}

// ReuseForWrite renames a file and opens it.
func (t to) ReuseForWrite(old, name string, category vfs.DiskWriteCategory) (vfs.File, error) {
	if err := t.Rename(old, name); err != nil {
		return nil, err
	}
	return t.OpenReadWrite(name, category)
}

func (t to) Stat(name string) (vfs.FileInfo, error) { return stat(t.FS.Stat(name)) }

// GetDiskUsage implements vfs.FS: only the operating system has the figures.
func (t to) GetDiskUsage(path string) (vfs.DiskUsage, error) {
	if disk.OfSystem(t.FS) {
		return vfs.Default.GetDiskUsage(path)
	}
	return vfs.DiskUsage{}, vfs.ErrUnsupported
}

// Unwrap implements vfs.FS.
func (to) Unwrap() vfs.FS { return nil }

// From makes a Pebble file system usable as ours.
func From(fs vfs.FS) disk.FS {
	if t, ok := fs.(to); ok {
		return t.FS
	}
	return from{fs}
}

// from is the result of From. FS is not promoted: its methods have other types.
type from struct{ FS vfs.FS }

// fromFile is a Pebble file as ours.
type fromFile struct{ vfs.File }

func (f fromFile) Stat() (os.FileInfo, error) { return f.File.Stat() }

func ours(f vfs.File, err error) (disk.File, error) {
	if err != nil {
		return nil, err
	}
	if t, ok := f.(file); ok {
		return t.File, nil
	}
	return fromFile{f}, nil
}

func (f from) Create(name string) (disk.File, error) {
	return ours(f.FS.Create(name, vfs.WriteCategoryUnspecified))
}

func (f from) OpenReadWrite(name string) (disk.File, error) {
	return ours(f.FS.OpenReadWrite(name, vfs.WriteCategoryUnspecified))
}

func (f from) Open(name string) (disk.File, error)         { return ours(f.FS.Open(name)) }
func (f from) OpenDir(name string) (disk.File, error)      { return ours(f.FS.OpenDir(name)) }
func (f from) Link(old, name string) error                 { return f.FS.Link(old, name) }
func (f from) Rename(old, name string) error               { return f.FS.Rename(old, name) }
func (f from) Remove(name string) error                    { return f.FS.Remove(name) }
func (f from) RemoveAll(name string) error                 { return f.FS.RemoveAll(name) }
func (f from) MkdirAll(dir string, perm os.FileMode) error { return f.FS.MkdirAll(dir, perm) }
func (f from) List(dir string) ([]string, error)           { return f.FS.List(dir) }
func (f from) Stat(name string) (os.FileInfo, error)       { return f.FS.Stat(name) }
func (f from) Lock(name string) (io.Closer, error)         { return f.FS.Lock(name) }
func (f from) PathBase(path string) string                 { return f.FS.PathBase(path) }
func (f from) PathDir(path string) string                  { return f.FS.PathDir(path) }
func (f from) PathJoin(elem ...string) string              { return f.FS.PathJoin(elem...) }
