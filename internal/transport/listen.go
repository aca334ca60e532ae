package transport

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/user"
	"strconv"
	"syscall"

	"github.com/atomredis/atomredis/internal/family"
)

// Listen begins to listen, as net.Listen does, but an address of one family accepts only connections of that family.
// Up to backlog connections may wait to be accepted, if the system supports the setting. Listen removes a Unix
// socket that a killed server has left, and no other file.
func Listen(network, address string, backlog int) (net.Listener, error) {
	if network == "unix" {
		if err := removeStaleSocket(address); err != nil {
			return nil, err
		}
	}
	if network == "tcp" {
		network = family.Network(address)
	}
	l, err := net.Listen(network, address)
	if err != nil {
		return nil, err
	}
	if err := setBacklog(l, backlog); err != nil {
		l.Close()
		return nil, err
	}
	return l, nil
}

// ListenUnix is Listen for a Unix socket, whose file gets the permissions and the group unless they are 0 and "". As
// in Redis a file of that name that is not a socket is removed.
func ListenUnix(path string, permissions os.FileMode, group string, backlog int) (net.Listener, error) {
	if info, err := os.Lstat(path); err == nil && info.Mode()&os.ModeSocket == 0 && !info.IsDir() {
		if err := os.Remove(path); err != nil {
			return nil, err
		}
	}
	l, err := Listen("unix", path, backlog)
	if err != nil {
		return nil, err
	}
	if permissions != 0 {
		err = os.Chmod(path, permissions)
	}
	if err == nil && group != "" {
		err = setGroup(path, group)
	}
	if err != nil {
		l.Close()
		return nil, err
	}
	return l, nil
}

// setGroup gives a file to a group.
func setGroup(path, name string) error {
	group, err := user.LookupGroup(name)
	if err != nil {
		return fmt.Errorf("unixsocketgroup: %w", err)
	}
	id, err := strconv.Atoi(group.Gid)
	if err != nil {
		return fmt.Errorf("unixsocketgroup: %w", err)
	}
	return os.Chown(path, -1, id)
}

// removeStaleSocket removes the file of a Unix socket that has no listener any more.
func removeStaleSocket(path string) error {
	info, err := os.Lstat(path)
	if err != nil {
		return nil // there is none; other errors are reported when the socket is opened
	}
	if info.Mode()&os.ModeSocket == 0 {
		return fmt.Errorf("unix socket %s: a file of that name exists and is no socket", path)
	}
	conn, err := net.Dial("unix", path)
	if err == nil {
		conn.Close()
	}
	if err == nil || errors.Is(err, syscall.EAGAIN) || errors.Is(err, os.ErrPermission) {
		// Too many clients wait, or we lack the permission to connect.
		return fmt.Errorf("unix socket %s: address already in use", path)
	}
	return os.Remove(path)
}
