//go:build !linux

package disk

import "os"

// file is an open file of the operating system.
type file struct{ *os.File }

func openFile(f *os.File) File { return file{f} }

func (f file) SyncData() error { return f.Sync() }

func (f file) SyncTo(int64) (whole bool, err error) {
	err = f.Sync()
	return err == nil, err
}

func (file) Preallocate(_, _ int64) error { return nil }
func (file) Prefetch(_, _ int64) error    { return nil }
