//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd || solaris

package disk

import (
	"errors"
	"io"
	"os"
	"sync"

	"golang.org/x/sys/unix"
)

// heldFiles are the files that this process has locked: the system would let it lock them again.
var heldFiles struct {
	sync.Mutex
	names map[string]bool
}

var errHeld = errors.New("this process has locked it already")

// lockFile creates a file and locks it. While it is locked, the process must not open and close it elsewhere, which
// would unlock it.
func lockFile(name string) (io.Closer, error) {
	h := &heldFiles
	h.Lock()
	defer h.Unlock()
	if h.names[name] {
		return nil, errHeld
	}
	f, err := os.Create(name)
	if err != nil {
		return nil, err
	}
	all := unix.Flock_t{Type: unix.F_WRLCK, Whence: io.SeekStart}
	if err := unix.FcntlFlock(f.Fd(), unix.F_SETLK, &all); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	if h.names == nil {
		h.names = map[string]bool{}
	}
	h.names[name] = true
	return &heldFile{name, f}, nil
}

// heldFile is a locked file.
type heldFile struct {
	name string
	f    *os.File
}

// Close releases the lock.
func (l *heldFile) Close() error {
	h := &heldFiles
	h.Lock()
	defer h.Unlock()
	err := l.f.Close()
	delete(h.names, l.name)
	return err
}
