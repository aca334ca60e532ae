//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package disk

import (
	"errors"
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// lockDir locks the directory itself while it is open. File systems that cannot do that, such as NFS, rely on the file
// in it.
func lockDir(dir string) (io.Closer, error) {
	d, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(d.Fd()), unix.LOCK_EX|unix.LOCK_NB); errors.Is(err, unix.EWOULDBLOCK) {
		return nil, errors.Join(err, d.Close())
	}
	return d, nil
}
