package transport

import (
	"errors"
	"net"
	"net/netip"
	"os"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// This file accepts clients of a loop.

type listenSocket struct {
	fd   int
	file *os.File // owns fd
	unix string   // the path, if it is a Unix socket
	// closed is set before the socket stops listening. The loop's goroutine closes fd afterwards.
	closed atomic.Bool
	// muted is set while no clients are accepted.
	muted bool
}

// Listen implements Transport: the first loop accepts the clients of all loops. l must be a TCP or a Unix socket.
func (t *loops) Listen(ln net.Listener) (stop func(), err error) {
	filer, ok := ln.(interface{ File() (*os.File, error) })
	if !ok {
		return nil, errors.New("not a socket")
	}
	file, err := filer.File()
	if err != nil {
		return nil, err
	}
	s := &listenSocket{fd: int(file.Fd()), file: file}
	if a, ok := ln.Addr().(*net.UnixAddr); ok {
		s.unix = a.Name
	}
	if err := unix.SetNonblock(s.fd, true); err != nil {
		file.Close()
		return nil, err
	}
	l := t.all[0]
	l.mail.Lock()
	l.mail.listeners = append(l.mail.listeners, s)
	l.mail.Unlock()
	l.interrupt()
	return func() {
		s.closed.Store(true)
		unix.Shutdown(s.fd, unix.SHUT_RDWR) // the address is free from now on, before the loop closes its descriptor
		ln.Close()
		l.mail.Lock()
		l.mail.stopped = append(l.mail.stopped, s)
		l.mail.Unlock()
		l.interrupt()
	}, nil
}

// accept takes all clients that are waiting.
func (l *loop) accept(ln *listenSocket) {
	for {
		fd, addr, err := unix.Accept4(ln.fd, unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC)
		if err != nil && ln.closed.Load() {
			return
		}
		if err != nil {
			if err != unix.EAGAIN && err != unix.EINTR && err != unix.ECONNABORTED {
				// Most likely there are no free file descriptors. The socket stays ready, so trying again at once
				// would only use processor time.
				l.host.Log().Warn("cannot accept clients for a second", "error", err)
				l.mute(ln)
			}
			return
		}
		peer := Peer{FD: fd}
		remote := false
		if ln.unix != "" {
			peer.Addr, peer.Local = ln.unix+":0", ln.unix+":0"
		} else {
			from := addrPort(addr)
			peer.Addr, remote = from.String(), !from.Addr().IsLoopback()
			if local, err := unix.Getsockname(fd); err == nil {
				peer.Local = addrPort(local).String()
			}
			l.tune(fd)
		}
		if refusal := l.host.Refuse(peer, remote); refusal != "" {
			unix.Write(fd, []byte(refusal))
			unix.Close(fd)
			continue
		}
		c := &socket{fd: fd, file: ln.unix != ""}
		c.loop = l.owner.all[int(l.owner.next.Add(1))%len(l.owner.all)]
		c.session = l.host.Open(peer, c.wake)
		c.session.Lend()
		if c.loop == l {
			l.adopt(c)
			continue
		}
		to := c.loop
		to.mail.Lock()
		to.mail.arrived = append(to.mail.arrived, c)
		to.mail.Unlock()
		to.interrupt()
	}
}

// tune sets the options of a TCP connection.
func (l *loop) tune(fd int) {
	unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_NODELAY, 1)
	if seconds := int(l.host.KeepAlive() / time.Second); seconds > 0 {
		unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_KEEPALIVE, 1)
		unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_KEEPIDLE, seconds)
		unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_KEEPINTVL, max(seconds/3, 1))
		unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_KEEPCNT, 3)
	}
}

// adopt makes the loop serve a connection.
func (l *loop) adopt(c *socket) {
	for len(l.conns) <= c.fd {
		l.conns = append(l.conns, nil)
	}
	l.conns[c.fd] = c
	l.count++
	l.counters.Clients.Add(1)
	if err := l.watch(unix.EPOLL_CTL_ADD, c.fd, c.interest()); err != nil {
		l.drop(c)
	}
}

// mute stops accepting from a socket until the next check of the clients.
func (l *loop) mute(ln *listenSocket) {
	ln.muted = true
	l.muted++
	l.watch(unix.EPOLL_CTL_MOD, ln.fd, 0)
	l.nextCheck = l.now + 1000
}

// forget closes the loop's descriptor of a listener that is closed.
func (l *loop) forget(s *listenSocket) {
	delete(l.listeners, int32(s.fd))
	if s.muted {
		l.muted--
	}
	s.file.Close()
}

func addrPort(a unix.Sockaddr) netip.AddrPort {
	switch a := a.(type) {
	case *unix.SockaddrInet4:
		return netip.AddrPortFrom(netip.AddrFrom4(a.Addr), uint16(a.Port))
	case *unix.SockaddrInet6:
		return netip.AddrPortFrom(netip.AddrFrom16(a.Addr).Unmap(), uint16(a.Port))
	}
	return netip.AddrPort{}
}
