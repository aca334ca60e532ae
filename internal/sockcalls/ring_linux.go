package sockcalls

import (
	"fmt"
	"math/bits"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"
)

// ring is an io_uring: two queues in memory that is shared with the system, one of calls to be made and one of their
// results. See io_uring(7) and io_uring_setup(2).
type ring struct {
	fd     int
	queues []byte // the memory of both queues
	memory []byte // the memory of entries

	entries    []submission
	submitted  *uint32 // how many entries the system has taken, modulo 2^32; it writes this
	tail       *uint32 // how many entries there are in total; we write this
	mask       uint32
	completed  *uint32 // how many completions there are; the system writes this
	head       *uint32 // how many completions we have read; we write this
	results    []completion
	resultMask uint32
}

// submission is an entry of the first queue, struct io_uring_sqe.
type submission struct {
	opcode   uint8
	flags    uint8
	ioprio   uint16
	fd       int32
	off      uint64
	addr     uint64
	len      uint32
	msgFlags uint32
	userData uint64
	_        [3]uint64
}

// completion is an entry of the second queue, struct io_uring_cqe.
type completion struct {
	userData uint64
	res      int32 // a negative error number if the call has failed
	flags    uint32
}

// params is struct io_uring_params.
type params struct {
	sqEntries, cqEntries, flags, sqThreadCPU, sqThreadIdle, features, wqFD uint32
	_                                                                      [3]uint32
	sq                                                                     struct {
		head, tail, ringMask, ringEntries, flags, dropped, array, _ uint32
		userAddr                                                    uint64
	}
	cq struct {
		head, tail, ringMask, ringEntries, overflow, cqes, flags, _ uint32
		userAddr                                                    uint64
	}
}

const (
	setupSingleIssuer = 1 << 12 // only one thread makes calls; since Linux 6.0
	setupDeferTaskrun = 1 << 13 // remaining work is done when that thread asks for results; since Linux 6.1
	featureSingleMmap = 1 << 0  // both queues are one piece of memory
	enterGetEvents    = 1 << 0
	offsetQueues      = 0
	offsetEntries     = 0x10000000
	opSend            = 26
	opRecv            = 27
)

// newRing returns a ring for up to limit calls at once. Only the thread that calls it may use it.
func newRing(limit int) (_ *ring, err error) {
	p := params{flags: setupSingleIssuer | setupDeferTaskrun}
	size := uint32(1) << bits.Len(uint(limit-1))
	fd, _, errno := unix.Syscall(unix.SYS_IO_URING_SETUP, uintptr(size), uintptr(unsafe.Pointer(&p)), 0)
	if errno != 0 {
		return nil, fmt.Errorf("io_uring_setup: %w", errno)
	}
	r := &ring{fd: int(fd)}
	defer func() {
		if err != nil {
			r.close()
		}
	}()
	if p.features&featureSingleMmap == 0 {
		return nil, fmt.Errorf("io_uring_setup: %w", unix.ENOSYS)
	}
	queues := max(p.sq.array+p.sqEntries*4, p.cq.cqes+p.cqEntries*uint32(unsafe.Sizeof(completion{})))
	if r.queues, err = unix.Mmap(r.fd, offsetQueues, int(queues), unix.PROT_READ|unix.PROT_WRITE,
		unix.MAP_SHARED|unix.MAP_POPULATE); err != nil {
		return nil, fmt.Errorf("mmap: %w", err)
	}
	if r.memory, err = unix.Mmap(r.fd, offsetEntries, int(p.sqEntries)*int(unsafe.Sizeof(submission{})),
		unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED|unix.MAP_POPULATE); err != nil {
		return nil, fmt.Errorf("mmap: %w", err)
	}
	r.entries = unsafe.Slice((*submission)(unsafe.Pointer(&r.memory[0])), p.sqEntries)
	r.results = unsafe.Slice((*completion)(unsafe.Pointer(&r.queues[p.cq.cqes])), p.cqEntries)
	r.submitted, r.tail, r.mask = r.word(p.sq.head), r.word(p.sq.tail), *r.word(p.sq.ringMask)
	r.head, r.completed, r.resultMask = r.word(p.cq.head), r.word(p.cq.tail), *r.word(p.cq.ringMask)
	order := unsafe.Slice(r.word(p.sq.array), p.sqEntries)
	for i := range order {
		order[i] = uint32(i) // entries are taken in their order
	}
	return r, nil
}

func (r *ring) word(offset uint32) *uint32 { return (*uint32)(unsafe.Pointer(&r.queues[offset])) }

func (r *ring) close() {
	if r.queues != nil {
		unix.Munmap(r.queues)
	}
	if r.memory != nil {
		unix.Munmap(r.memory)
	}
	unix.Close(r.fd)
}

// do makes calls, at most as many as the ring was made for, and returns how many it has made: all of them, or fewer
// with an error. After an error the ring must not be used any more.
func (r *ring) do(calls []call, results []Result) (done int, err error) {
	tail := *r.tail
	for i := range calls {
		c := &calls[i]
		e := &r.entries[(tail+uint32(i))&r.mask]
		*e = submission{opcode: opRecv, fd: int32(c.fd), addr: uint64(uintptr(unsafe.Pointer(&c.b[0]))),
			len: uint32(len(c.b)), msgFlags: recvFlags, userData: uint64(i)}
		if c.send {
			e.opcode, e.msgFlags = opSend, sendFlags
		}
	}
	atomic.StoreUint32(r.tail, tail+uint32(len(calls)))
	for taken, seen := 0, 0; seen < len(calls); {
		n, _, errno := unix.RawSyscall6(unix.SYS_IO_URING_ENTER, uintptr(r.fd), uintptr(len(calls)-taken),
			uintptr(len(calls)-seen), enterGetEvents, 0, 0)
		switch {
		case errno == 0:
			taken += int(n)
		case errno != unix.EINTR:
			err = fmt.Errorf("io_uring_enter: %w", errno)
		}
		seen += r.reap(results)
		if err != nil {
			// The system takes calls in their order, and has done those that it has taken.
			return int(atomic.LoadUint32(r.submitted) - tail), err
		}
	}
	return len(calls), nil
}

// reap stores the results that have arrived, each at the index of its call, and returns their number.
func (r *ring) reap(results []Result) int {
	head, tail := *r.head, atomic.LoadUint32(r.completed)
	for ; head != tail; head++ {
		c := &r.results[head&r.resultMask]
		if c.res < 0 {
			results[c.userData] = Result{Err: unix.Errno(-c.res)}
		} else {
			results[c.userData] = Result{N: int(c.res)}
		}
	}
	n := int(head - *r.head)
	atomic.StoreUint32(r.head, head)
	return n
}
