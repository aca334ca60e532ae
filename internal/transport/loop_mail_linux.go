package transport

import (
	"sync"
	"unsafe"

	"golang.org/x/sys/unix"
)

// This file has the mail of a loop, and how other goroutines wake it.

// mail is the requests of other goroutines, also those of other loops, to a loop.
type mail struct {
	sync.Mutex // protects the following fields
	woken      []*socket
	arrived    []*socket       // accepted by another loop
	listeners  []*listenSocket // to be served
	stopped    []*listenSocket // to be closed
	timer      bool            // the timer has fired
	recheck    bool            // Recheck was called
	returned   []*socket       // no longer detached
	resume     bool            // Resume was called
	stop       bool
	ended      bool // the mail is not read any more
}

// wake makes the loop call the session's Advance.
func (c *socket) wake() {
	if c.woken.Swap(true) {
		return
	}
	l := c.loop
	l.mail.Lock()
	l.mail.woken = append(l.mail.woken, c)
	l.mail.Unlock()
	l.interrupt()
}

// interrupt makes the loop read its mail: at once if it sleeps, otherwise before it sleeps.
func (l *loop) interrupt() {
	if l.sleeping.Swap(false) {
		one := uint64(1)
		unix.Write(l.wakeup, unsafe.Slice((*byte)(unsafe.Pointer(&one)), 8))
	}
}

func (l *loop) hasMail() bool {
	l.mail.Lock()
	defer l.mail.Unlock()
	m := &l.mail
	return len(m.woken) > 0 || len(m.arrived) > 0 || len(m.listeners) > 0 || len(m.stopped) > 0 || len(m.returned) > 0 ||
		m.timer || m.recheck || m.resume || m.stop
}

// readMail does what the mail requests, and reports whether the loop must stop.
func (l *loop) readMail() (stop bool) {
	l.mail.Lock()
	l.woken, l.mail.woken = l.mail.woken, l.woken[:0]
	arrived, listeners, stopped := l.mail.arrived, l.mail.listeners, l.mail.stopped
	returned := l.mail.returned
	l.mail.stopped = nil
	l.mail.arrived, l.mail.listeners, l.mail.returned, l.mail.resume = nil, nil, nil, false
	if l.mail.timer {
		l.mail.timer, l.armed = false, 0
	}
	stop = l.mail.stop
	recheck := l.mail.recheck
	l.mail.recheck = false
	l.mail.Unlock()

	if recheck {
		l.holding.Store(false)
		for i, c := range l.delayed {
			l.delayed[i], c.held = nil, false
			if c.fd >= 0 {
				l.enqueue(c)
			}
		}
		l.delayed = l.delayed[:0]
	}

	for _, s := range listeners {
		l.listeners[int32(s.fd)] = s
		if err := l.watch(unix.EPOLL_CTL_ADD, s.fd, unix.EPOLLIN); err != nil {
			l.host.Log().Error("cannot accept clients", "error", err)
		}
	}
	for _, s := range stopped {
		l.forget(s)
	}
	for _, c := range arrived {
		l.adopt(c)
	}
	l.takeBack(returned)
	for i, c := range l.woken {
		l.woken[i] = nil
		c.woken.Store(false)
		if c.fd >= 0 && !c.detached {
			l.advance(c)
			l.enqueue(c)
		}
	}
	return stop
}

// advance calls a session's Advance.
func (l *loop) advance(c *socket) {
	now := l.now
	l.enter(c)
	c.session.Advance(now)
	l.leave(c)
}
