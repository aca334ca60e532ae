package server

import (
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"syscall"
)

// listen opens the addresses that the configuration asks for. What it opened is returned even with an error.
func listen(set *Settings) (open []net.Listener, err error) {
	if set.Port != 0 {
		if open, err = listenTCP(set, set.Port); err != nil {
			return open, err
		}
	}
	if set.UnixSocket != "" {
		if err := removeStaleSocket(set.UnixSocket); err != nil {
			return open, err
		}
		l, err := net.Listen("unix", set.UnixSocket)
		if err != nil {
			return open, err
		}
		open = append(open, l)
		if err := setBacklog(l, set.TCPBacklog); err != nil {
			return open, err
		}
		if set.UnixSocketPerm != 0 {
			if err := os.Chmod(set.UnixSocket, set.UnixSocketPerm); err != nil {
				return open, err
			}
		}
	}
	return open, nil
}

// listenTCP opens a port at all addresses. What it opened is returned even with an error.
func listenTCP(set *Settings, port int) (open []net.Listener, err error) {
	for _, addr := range set.Bind {
		optional := strings.HasPrefix(addr, "-")
		addr = strings.TrimPrefix(addr, "-")
		network := "tcp"
		switch addr {
		case "*":
			network, addr = "tcp4", "0.0.0.0"
		case "::*":
			network, addr = "tcp6", "::"
		}
		l, err := net.Listen(network, net.JoinHostPort(addr, strconv.Itoa(port)))
		if err != nil {
			if optional && !errors.Is(err, syscall.EADDRINUSE) {
				continue // as in redis.conf: an address that this machine does not have
			}
			return open, err
		}
		open = append(open, l)
		if err := setBacklog(l, set.TCPBacklog); err != nil {
			return open, err
		}
	}
	return open, nil
}

// removeStaleSocket removes the file of a Unix socket that nobody listens on any more.
func removeStaleSocket(path string) error {
	info, err := os.Lstat(path)
	if err != nil {
		return nil // there is none; whatever else is wrong shows when the socket is opened
	}
	if info.Mode()&os.ModeSocket == 0 {
		return fmt.Errorf("unix socket %s: a file of that name exists and is no socket", path)
	}
	if conn, err := net.Dial("unix", path); err == nil {
		conn.Close()
		return fmt.Errorf("unix socket %s: address already in use", path)
	}
	return os.Remove(path)
}
