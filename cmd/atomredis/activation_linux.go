package main

import (
	"fmt"
	"net"
	"os"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"github.com/atomredis/atomredis/internal/config"
)

// firstSocket is the number of the first file descriptor that systemd passes.
const firstSocket = 3

// inheritedSockets returns the sockets that a service manager has opened for this process (LISTEN_FDS). With them the
// manager can start the server with the first client, and no client is refused during a restart. If the port of the
// configuration is among them, inheritedSockets removes it from the configuration, so that it is not opened again.
func inheritedSockets(conf *config.Config) (list []net.Listener, err error) {
	pid, count := os.Getenv("LISTEN_PID"), os.Getenv("LISTEN_FDS")
	if pid != strconv.Itoa(os.Getpid()) || count == "" {
		return nil, nil
	}
	for _, name := range []string{"LISTEN_PID", "LISTEN_FDS", "LISTEN_FDNAMES"} {
		os.Unsetenv(name) // child processes must not inherit them
	}
	n, err := strconv.Atoi(count)
	if err != nil || n < 0 {
		return nil, fmt.Errorf("LISTEN_FDS is %q", count)
	}
	for i := range n {
		unix.CloseOnExec(firstSocket + i)
		file := os.NewFile(uintptr(firstSocket+i), "inherited socket")
		l, err := net.FileListener(file) // duplicates file
		file.Close()
		if err != nil {
			return nil, fmt.Errorf("inherited socket %d: %w", i, err)
		}
		switch at := l.Addr().(type) {
		case *net.TCPAddr:
			if at.Port == conf.Get().Network.Port {
				err = conf.Set("port", "0", false)
			}
		case *net.UnixAddr:
			if at.Name == conf.Get().Network.UnixSocket {
				err = conf.Set("unixsocket", "", false)
			}
		}
		if err != nil {
			return nil, err
		}
		list = append(list, l)
	}
	return list, nil
}

// monotonic returns the time that systemd expects with RELOADING=1.
func monotonic() time.Duration {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts); err != nil {
		return 0
	}
	return time.Duration(ts.Nano())
}
