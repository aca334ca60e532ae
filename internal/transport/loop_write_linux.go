package transport

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// This file sends the output of sessions at the end of a round.

// writing is output that is about to be written.
type writing struct {
	c        *socket
	sendable int
}

// flushAll writes the output of all connections in ready.
func (l *loop) flushAll() {
	for len(l.ready) > 0 {
		for i := 0; i < len(l.ready); i++ {
			c := l.ready[i]
			l.ready[i], c.queued = nil, false
			if c.fd >= 0 && !c.detached {
				l.flush(c)
			}
		}
		l.ready = l.ready[:0]
		l.writeTogether()
	}
}

// flush writes the output of a connection, or adds it to writing.
func (l *loop) flush(c *socket) {
	s := c.session
	sendable := s.Sendable()
	switch {
	case sendable == 0:
		l.wrote(c, 0, 0, 0)
	case len(s.Output()) < s.Unsent(): // some of it is lent
		n, err := l.writePieces(c, sendable)
		l.wrote(c, sendable, n, err)
	default:
		n := sendable
		if n > writeSize*3/2 && n <= writeSize*4 { // for longer ones several writes cost more than they save
			n = writeSize
		}
		l.calls.Send(c.fd, s.Output()[:n])
		if l.writing = append(l.writing, writing{c, sendable}); l.calls.Full() {
			l.writeTogether()
		}
	}
}

// writeTogether writes the outputs in writing.
func (l *loop) writeTogether() {
	for i, r := range l.calls.Do() {
		w := l.writing[i]
		l.writing[i] = writing{}
		l.wrote(w.c, w.sendable, r.N, r.Err)
	}
	l.writing = l.writing[:0]
}

// wrote records that n of the sendable bytes of a client's output have been written, and prepares the client for the
// next round.
func (l *loop) wrote(c *socket, sendable, n int, err unix.Errno) {
	s := c.session
	if sendable > 0 {
		l.counters.Writes.Add(1)
		switch {
		case err == 0:
			l.counters.Sent.Add(int64(n))
			sendable -= n
			s.Sent(n)
		case err == unix.EAGAIN || err == unix.EINTR:
		default:
			l.drop(c)
			return
		}
	}
	unsent := s.Unsent()
	if unsent == 0 && s.Closing() || unsent > 0 && s.GiveUp(0) {
		l.drop(c)
		return
	}
	if sendable < unsent && !c.held {
		c.held = true
		l.delayed = append(l.delayed, c)
		l.holding.Store(true)
		if s.Sendable() > sendable {
			l.enqueue(c) // Recheck may have been called before holding was set
		}
	}
	if writing := sendable > 0; writing != c.writing {
		c.writing = writing
		if err := l.watch(unix.EPOLL_CTL_MOD, c.fd, c.interest()); err != nil {
			l.drop(c)
			return
		}
	}
	if at := s.Deadline(); at != 0 {
		l.timers.Set(c, at)
	} else if c.slot != 0 {
		l.timers.Remove(c)
	}
}

// writeSize is the number of bytes that are written at once of a somewhat longer output; the rest follows in the
// next round. A new connection accepts about one and a half times as much before the client has read any of it. With
// BBR, bytes beyond that took 4 ms for some time on each connection (not so with Reno), and cost more processor
// time: see bench/notes/tried.md.
const writeSize = 64 << 10

// writePieces writes the first n bytes of a client's output, or as many of them as the socket and l.pieces allow,
// without copying.
func (l *loop) writePieces(c *socket, n int) (int, unix.Errno) {
	k := 0
	for p := range c.session.Pieces(n) {
		l.pieces[k].Base = &p[0]
		l.pieces[k].SetLen(len(p))
		if k++; k == len(l.pieces) {
			break
		}
	}
	sent, _, err := unix.RawSyscall(unix.SYS_WRITEV, uintptr(c.fd), uintptr(unsafe.Pointer(&l.pieces[0])), uintptr(k))
	clear(l.pieces[:k]) // so that they do not reference the values
	return int(sent), err
}
