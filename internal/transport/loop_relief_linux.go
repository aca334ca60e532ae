package transport

import (
	"runtime"
	"slices"

	"golang.org/x/sys/unix"
)

// This file lets a loop continue while a session that it serves takes long: because its work takes long, or because
// it waits for such a session. The host detects that and calls Relieve, which takes the loop from its goroutine and
// gives it to a new one. The old goroutine keeps only the session; when the session returns it gives the session
// back to the loop, and ends. So neither a session nor a loop is ever used by two goroutines.
//
// loop.using decides which goroutine owns the loop. The loop's goroutine sets it before it calls a method of a
// session that may wait, and clears it afterwards, unless Relieve has done so first.

// maxRelieved limits how many sessions of a loop have goroutines, and threads, of their own. Beyond that the loop
// stops until one of them returns.
const maxRelieved = 128

// enter must be called before a method of a client's session that may wait. The loop's fields must not be used from
// then on until leave has returned.
func (l *loop) enter(c *socket) { l.using.Store(c) }

// leave must be called after the method. If another goroutine has the loop now, leave gives the client back and does
// not return.
func (l *loop) leave(c *socket) {
	if !l.stillDriving(c) {
		l.giveBack(c)
		runtime.Goexit()
	}
}

func (l *loop) stillDriving(c *socket) bool { return l.using.CompareAndSwap(c, nil) }

// Relieve implements Loops.
func (t *loops) Relieve() {
	for _, l := range t.all {
		l.relieve()
	}
}

// Resume implements Loops.
func (t *loops) Resume() {
	for _, l := range t.all {
		l.mail.Lock()
		l.mail.resume = true
		l.mail.Unlock()
		l.interrupt()
	}
}

// relieve gives the loop to a new goroutine if the current one is inside a session.
func (l *loop) relieve() {
	c := l.using.Load()
	if c == nil || l.detached.Load() >= maxRelieved || !l.using.CompareAndSwap(c, nil) {
		return
	}
	if c.fd >= 0 { // otherwise it is being closed
		c.detached = true
		l.detached.Add(1)
		l.watch(unix.EPOLL_CTL_DEL, c.fd, 0) // its input would be reported again and again
	}
	l.mail.Lock()
	for i, w := range l.woken { // those not handled yet
		if w != nil {
			l.mail.woken = append(l.mail.woken, w)
			l.woken[i] = nil
		}
	}
	l.mail.Unlock()
	// The session's arguments may be in the old buffer, and inputs refers to it.
	l.buf = make([]byte, readBuffer)
	// Executed inputs are empty.
	l.inputs = slices.DeleteFunc(l.inputs, func(in input) bool { return in.c == nil })
	l.owner.wg.Add(1)
	go l.run()
}

// giveBack returns a client to the loop, which may have ended.
func (l *loop) giveBack(c *socket) {
	l.mail.Lock()
	ended := l.mail.ended
	if !ended {
		l.mail.returned = append(l.mail.returned, c)
	}
	l.mail.Unlock()
	if ended {
		c.session.Close()
		unix.Close(c.fd)
		return
	}
	l.interrupt()
}

// takeBack makes the loop serve detached clients again.
func (l *loop) takeBack(returned []*socket) {
	for _, c := range returned {
		c.detached = false
		l.detached.Add(-1)
		if err := l.watch(unix.EPOLL_CTL_ADD, c.fd, c.interest()); err != nil {
			c.session.Abort()
		}
		l.enqueue(c)
		l.woken = append(l.woken, c) // its mail has not been read meanwhile
	}
}

// closeGone closes the sessions and connections of dropped clients.
func (l *loop) closeGone() {
	for len(l.gone) > 0 {
		c := l.gone[0]
		if l.gone = l.gone[1:]; len(l.gone) == 0 {
			l.gone = nil
		}
		l.enter(c.socket)
		c.session.Close()
		still := l.stillDriving(c.socket)
		unix.Close(c.fd)
		if !still {
			runtime.Goexit()
		}
	}
}

// goneSocket is a dropped client with its file descriptor.
type goneSocket struct {
	*socket
	fd int
}
