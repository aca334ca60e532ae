package transport

import (
	"fmt"
	"net"
	"syscall"

	"golang.org/x/sys/unix"
)

// setBacklog sets how many connections may wait to be accepted (tcp-backlog). net.Listen has no parameter for it,
// but Linux accepts a new value for a listening socket; it limits the value to net.core.somaxconn.
func setBacklog(l net.Listener, n int) error {
	raw, err := l.(syscall.Conn).SyscallConn()
	if err != nil {
		return err
	}
	var failed error
	if err := raw.Control(func(fd uintptr) { failed = unix.Listen(int(fd), n) }); err != nil {
		return err
	}
	if failed != nil {
		return fmt.Errorf("tcp-backlog of %s: %w", l.Addr(), failed)
	}
	return nil
}
