// Package sockcalls receives from many sockets, or sends to them, in a single system call.
//
// What a server does for a short command is for the most part to enter the system and to leave it, once to receive
// and once to send: on virtual machines that takes up to a microsecond each time. Calls for several sockets that are
// made together, through an io_uring, enter it once. Nothing is left to io_uring afterwards: no call waits, so all
// are done when Batch.Do returns, and the memory that they use is the caller's again.
package sockcalls

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// Batch is a number of calls that are to be made together. All of its methods must be called by the same thread, the
// one that called New (see runtime.LockOSThread), but Close, which any may call when nobody uses the batch.
type Batch struct {
	ring    *ring // nil: the calls are made one after the other
	calls   []call
	results []Result
}

// call is one that is to be made: to send or to receive b.
type call struct {
	fd   int
	send bool
	b    []byte
}

// Result is what a call has done: it has sent or received N bytes, none if Err is not 0. To have received none
// without an error means that the other side sends no more.
type Result struct {
	N   int
	Err unix.Errno
}

// minTogether is the number of calls from which on an io_uring saves time: for a single one it costs more than the call.
const minTogether = 2

// New returns a batch for up to limit calls. It makes them one after the other if the system has no
// io_uring that can do this (which Linux has since 6.1), or does not allow it: Together tells.
func New(limit int) *Batch {
	b := NewSeparate(limit)
	b.ring, _ = newRing(limit)
	return b
}

// NewSeparate is New for a batch that makes its calls one after the other in any case.
func NewSeparate(limit int) *Batch {
	return &Batch{calls: make([]call, 0, limit), results: make([]Result, limit)}
}

// Together reports whether several calls are one system call.
func (b *Batch) Together() bool { return b.ring != nil }

// Close gives back what the system keeps for the batch, which must not be used any more.
func (b *Batch) Close() {
	if b.ring != nil {
		b.ring.close()
		b.ring = nil
	}
}

// Full reports that there is no room for another call.
func (b *Batch) Full() bool { return len(b.calls) == cap(b.calls) }

// Recv adds a call that receives what there is from a socket into buf, whose length must not be 0. If there is
// nothing it fails with EAGAIN. The batch must not be full.
func (b *Batch) Recv(fd int, buf []byte) { b.calls = append(b.calls, call{fd: fd, b: buf}) }

// Send adds a call that sends data, whose length must not be 0, to a socket: as much of it as there is room for, and
// if there is none it fails with EAGAIN. The batch must not be full.
func (b *Batch) Send(fd int, data []byte) {
	b.calls = append(b.calls, call{fd: fd, send: true, b: data})
}

// Do makes the calls, and forgets them. The results are in the order in which the calls were added, and valid until
// the next Do. A socket may fail without the others'.
func (b *Batch) Do() []Result {
	results := b.results[:len(b.calls)]
	done := 0
	if b.ring != nil && len(b.calls) >= minTogether {
		var err error
		if done, err = b.ring.do(b.calls, results); err != nil {
			b.Close()
		}
	}
	for i := done; i < len(b.calls); i++ {
		results[i] = b.calls[i].do()
	}
	clear(b.calls)
	b.calls = b.calls[:0]
	return results
}

// do makes the call alone.
func (c *call) do() Result {
	nr, flags := uintptr(unix.SYS_RECVFROM), uintptr(recvFlags)
	if c.send {
		nr, flags = unix.SYS_SENDTO, sendFlags
	}
	n, _, err := unix.RawSyscall6(nr, uintptr(c.fd), uintptr(unsafe.Pointer(&c.b[0])), uintptr(len(c.b)), flags, 0, 0)
	if err != 0 {
		return Result{Err: err}
	}
	return Result{N: int(n)}
}

const (
	recvFlags = unix.MSG_DONTWAIT
	sendFlags = unix.MSG_DONTWAIT | unix.MSG_NOSIGNAL
)
