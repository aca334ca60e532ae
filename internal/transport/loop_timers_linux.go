package transport

import (
	"golang.org/x/sys/unix"
)

// runTimers calls Advance of sessions whose deadlines have passed. They may have to wait for others, so it does
// nothing while the host is stalled.
func (l *loop) runTimers() {
	for !l.host.Stalled() {
		c, at, ok := l.timers.Min()
		if !ok || at > l.now {
			return
		}
		l.timers.Remove(c)
		if c.detached {
			continue
		}
		l.advance(c)
		l.enqueue(c)
	}
}

// arm sets the timer that wakes the loop for the next deadline.
func (l *loop) arm() {
	next := int64(0)
	if l.count > 0 || l.muted > 0 {
		next = l.nextCheck
	}
	if _, at, ok := l.timers.Min(); ok && (next == 0 || at < next) && !l.host.Stalled() {
		next = at
	}
	if next == 0 || l.armed != 0 && l.armed <= next {
		return
	}
	if l.timer != nil {
		l.timer.Stop()
	}
	l.armed = next
	l.timer = l.host.AfterFunc(sleep(next-l.now), func() {
		l.mail.Lock()
		l.mail.timer = true
		l.mail.Unlock()
		l.interrupt()
	})
}

// checkClients disconnects clients that have been idle for too long, or have left too much output unread for too long,
// once a second.
func (l *loop) checkClients() {
	l.nextCheck = l.now + 1000
	for _, s := range l.listeners {
		if s.muted {
			s.muted = false
			l.muted--
			l.watch(unix.EPOLL_CTL_MOD, s.fd, unix.EPOLLIN)
		}
	}
	for _, c := range l.conns {
		if c != nil && !c.detached && c.session.Expired(l.now) {
			l.drop(c)
		}
	}
}
