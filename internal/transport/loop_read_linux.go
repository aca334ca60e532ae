package transport

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// This file reads from a loop's clients and gives the input to their sessions.

const (
	readBuffer = 128 * 1024
	// bytes read into the buffer if a long argument is likely to begin, or after one
	bulkyRead = 16 * 1024
	maxInputs = 16 // clients that are read together and whose input is executed together
	maxWrites = 64 // clients that are written to together
	// bytes that are read from each of several clients; without the 64 all slots would begin at the same places of
	// the processor's caches
	slotSize  = readBuffer/maxInputs - 64
	minInputs = 4 // least number of clients for which fetching memory together is worthwhile
)

// input is bytes from a client.
type input struct {
	c    *socket
	data []byte
}

// mark marks a connection as possibly readable.
func (l *loop) mark(c *socket) {
	if !c.unread {
		c.unread = true
		l.unread = append(l.unread, c)
	}
}

// readAll reads once from each connection that may be readable, and lets the sessions execute the input. Connections
// that may have more are marked for the next round.
func (l *loop) readAll() {
	for end := len(l.unread); l.next < end; {
		c := l.unread[l.next]
		l.unread[l.next] = nil
		l.next++
		c.unread = false
		if c.fd < 0 || c.detached { // a detached one is watched again when it is given back
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

// readTogether reads from the connections in reading, and lets their sessions execute the input.
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

// took records that n bytes were received from a client, with room for up to room bytes.
func (l *loop) took(c *socket, n int, err unix.Errno, room int) {
	switch {
	case n > 0:
		l.counters.Reads.Add(1)
		l.busy = true
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

// read reads from a client that needs a read of its own.
func (l *loop) read(c *socket) {
	if c.session.Closing() {
		// The input is ignored, because only the rest of the output matters, but the end of the connection must be
		// detected.
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

// readSome reads from the client into room, and then into free.
func (l *loop) readSome(c *socket, room, free []byte) (int, unix.Errno) {
	if len(room) > 0 {
		l.pieces[0].Base, l.pieces[1].Base = &room[0], &free[0]
		l.pieces[0].SetLen(len(room))
		l.pieces[1].SetLen(len(free))
		n, _, err := unix.RawSyscall(unix.SYS_READV, uintptr(c.fd), uintptr(unsafe.Pointer(&l.pieces[0])), 2)
		clear(l.pieces[:2]) // so that they do not reference the memory
		if err != 0 {
			return -1, err
		}
		return int(n), 0
	}
	l.calls.Recv(c.fd, free)
	r := l.calls.Do()[0]
	return r.N, r.Err
}

// execute lets the sessions execute the inputs.
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
