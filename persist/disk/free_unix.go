//go:build linux || darwin || freebsd

package disk

import "golang.org/x/sys/unix"

// Free implements Roomy.
func (system) Free(dir string) (bytes int64, ok bool) {
	var fs unix.Statfs_t
	if err := unix.Statfs(dir, &fs); err != nil {
		return 0, false
	}
	return int64(fs.Bavail) * int64(fs.Bsize), true
}
