// Package sockcalls receives from many sockets, or sends to them, in a single system call.
//
// For a short command most of a server's time is spent on entering and leaving the kernel, once to receive and once
// to send: on virtual machines each takes up to a microsecond. With io_uring, calls for several sockets enter the
// kernel once. No call waits, so all calls have ended when Batch.Do returns, and the caller may use their memory
// again.
package sockcalls

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// Batch is a number of calls that are to be made together. The thread that called New must call all its methods (see
// runtime.LockOSThread), except Close, which any thread may call when the batch is not in use.
type Batch struct {
	ring    *ring // nil: the calls are made one after the other
	calls   []call
	results []Result
}

// call is a call to be made: it sends or receives b.
type call struct {
	fd   int
	send bool
	b    []byte
}

// Result is the result of a call: it has sent or received N bytes, none if Err is not 0. A receiving call with N and
// Err 0 means that the other side sends no more.
type Result struct {
	N   int
	Err unix.Errno
}

// minTogether is the least number of calls for which an io_uring saves time: for a single call it costs more than it
// saves.
const minTogether = 2

// New returns a batch for up to limit calls. It makes them one after the other if the system has no suitable
// io_uring (Linux has it since 6.1), or does not allow it: see Together.
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

// Close frees the system's resources of the batch, which must not be used any more.
func (b *Batch) Close() {
	if b.ring != nil {
		b.ring.close()
		b.ring = nil
	}
}

// Full reports whether there is no room for another call.
func (b *Batch) Full() bool { return len(b.calls) == cap(b.calls) }

// Recv adds a call that receives the available bytes of a socket into buf, whose length must not be 0. If there are
// none it fails with EAGAIN. The batch must not be full.
func (b *Batch) Recv(fd int, buf []byte) { b.calls = append(b.calls, call{fd: fd, b: buf}) }

// Send adds a call that sends data, whose length must not be 0, to a socket. It sends as many bytes as there is room
// for; without room it fails with EAGAIN. The batch must not be full.
func (b *Batch) Send(fd int, data []byte) {
	b.calls = append(b.calls, call{fd: fd, send: true, b: data})
}

// Do makes the calls and removes them from the batch. The results are in the order in which the calls were added,
// and valid until the next Do. The call of one socket may fail without the others.
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
