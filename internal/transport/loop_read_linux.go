package transport

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// This file is how a loop reads from its clients and gives their sessions what it has read.

const (
	readBuffer = 128 * 1024
	// how much is read there of what is likely to be the beginning of a long argument, and what follows one
	bulkyRead = 16 * 1024
	maxInputs = 16 // clients from which is read together, and whose input is executed together
	maxWrites = 64 // clients to which is written together
	// bytes that are read from each of several clients; without the 64 all slots would begin in the same places of the
	// processor's caches
	slotSize  = readBuffer/maxInputs - 64
	minInputs = 4 // clients for whom it is worth the trouble to fetch memory for all at once
)

// input is what a client has sent.
type input struct {
	c    *socket
	data []byte
}

// mark says that a connection may have something to read.
func (l *loop) mark(c *socket) {
	if !c.unread {
		c.unread = true
		l.unread = append(l.unread, c)
	}
}

// readAll reads once from each connection that may have something to read, and has the sessions execute it. Who may
// have more than that is marked for the next round.
func (l *loop) readAll() {
	for end := len(l.unread); l.next < end; {
		c := l.unread[l.next]
		l.unread[l.next] = nil
		l.next++
		c.unread = false
		if c.fd < 0 || c.detached { // a detached one is watched anew when it comes back
			continue
		}
		l.enqueue(c)
		if c.long || c.session.ReadsAlone() {
			l.readTogether()
			l.read(c)
			continue
		}
		if l.reading = append(l.reading, c); len(l.reading) == maxInputs {
			l.readTogether()
		}
	}
	l.readTogether()
	rest := copy(l.unread, l.unread[l.next:])
	clear(l.unread[rest:])
	l.unread, l.next = l.unread[:rest], 0
}

// readTogether reads from those in reading, and has their sessions execute it.
func (l *loop) readTogether() {
	if len(l.reading) == 0 {
		return
	}
	room := slotSize
	if len(l.reading) == 1 {
		room = readBuffer
	}
	for i, c := range l.reading {
		l.calls.Recv(c.fd, l.buf[i*slotSize:][:room])
	}
	for i, r := range l.calls.Do() {
		c := l.reading[i]
		l.reading[i] = nil
		l.took(c, r.N, r.Err, room)
		if r.N > 0 {
			l.inputs = append(l.inputs, input{c, l.buf[i*slotSize:][:r.N]})
		}
	}
	l.reading = l.reading[:0]
	l.execute()
}

// took notes that n bytes were received from a client where there was room for some.
func (l *loop) took(c *socket, n int, err unix.Errno, room int) {
	switch {
	case n > 0:
		l.counters.Reads.Add(1)
		if l.keeps {
			l.coalescer.arrived(n, c.requests, c.seen, l.now)
		}
		c.seen = l.now
		c.long = n >= slotSize
		if c.partial || n == room {
			l.mark(c)
		}
	case err == unix.EINTR:
		l.mark(c)
	case err != unix.EAGAIN:
		c.session.Abort()
	}
}

// read takes what a client sent that is to be read from alone.
func (l *loop) read(c *socket) {
	if c.session.Closing() {
		// Only the rest of the output is of interest, but a hang-up must not spin.
		n, err := l.readSome(c, nil, l.buf)
		switch {
		case n > 0:
			l.mark(c)
		case err != unix.EAGAIN:
			c.session.Abort()
		}
		return
	}
	room, free := c.session.Room(), l.buf
	if c.session.ReadsAlone() {
		free = free[:bulkyRead]
	}
	n, err := l.readSome(c, room, free)
	l.took(c, n, err, len(room)+len(free))
	if n <= 0 {
		return
	}
	now, k := l.now, min(n, len(room))
	requests := c.requests
	l.enter(c)
	if k == 0 {
		requests = c.session.Input(free[:n], now)
	} else if c.session.Received(k, now); k < n && !c.session.Closing() {
		requests = c.session.Input(free[:n-k], now)
	}
	l.leave(c)
	c.requests = requests
}

// readSome reads what the client has sent to room, and what is more to free.
func (l *loop) readSome(c *socket, room, free []byte) (int, unix.Errno) {
	if len(room) > 0 {
		l.pieces[0].Base, l.pieces[1].Base = &room[0], &free[0]
		l.pieces[0].SetLen(len(room))
		l.pieces[1].SetLen(len(free))
		n, _, err := unix.RawSyscall(unix.SYS_READV, uintptr(c.fd), uintptr(unsafe.Pointer(&l.pieces[0])), 2)
		clear(l.pieces[:2]) // so that they do not keep the memory
		if err != 0 {
			return -1, err
		}
		return int(n), 0
	}
	l.calls.Recv(c.fd, free)
	r := l.calls.Do()[0]
	return r.N, r.Err
}

// execute has the sessions execute what was read.
func (l *loop) execute() {
	l.prefetch()
	for i := range l.inputs {
		in := l.inputs[i]
		l.inputs[i] = input{}
		now := l.now
		l.enter(in.c)
		requests := in.c.session.Input(in.data, now)
		l.leave(in.c)
		in.c.requests = requests
	}
	l.inputs = l.inputs[:0]
}

// prefetch tells the host of the inputs that are about to be executed.
func (l *loop) prefetch() {
	if len(l.inputs) < minInputs {
		return
	}
	for _, in := range l.inputs {
		l.batch = append(l.batch, Input{in.c.session, in.data})
	}
	l.host.Prefetch(l.batch)
	clear(l.batch)
	l.batch = l.batch[:0]
}
