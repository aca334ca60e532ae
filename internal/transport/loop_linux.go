package transport

import (
	"fmt"
	"runtime"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/atomredis/atomredis/engine/expiry"
	"github.com/atomredis/atomredis/internal/sockcalls"
)

// loop is one event loop. Only its own goroutine uses its fields, except mail.
type loop struct {
	host      Host
	owner     *loops
	counters  *Counters
	keeps     bool // it keeps its processor while it waits
	epoll     int
	wakeup    int                     // eventfd
	listeners map[int32]*listenSocket // by file descriptor
	conns     []*socket               // by file descriptor
	count     int                     // of conns
	timers    expiry.Index[*socket]   // by the deadlines of their sessions
	calls     *sockcalls.Batch        // of the loop's thread; empty except while the loop reads or writes
	unread    []*socket               // possibly readable; may hold stale entries
	next      int                     // the first of unread that has not been read from in this round
	reading   []*socket               // that are read together
	ready     []*socket               // whose output may have to be written
	writing   []writing               // written together
	woken     []*socket               // reused
	delayed   []*socket               // with output that must not be sent yet
	buf       []byte                  // bytes that are read; inputs refers to it
	inputs    []input                 // read but not executed yet
	batch     []Input                 // reused
	events    [256]unix.EpollEvent    // reused
	first, n  int                     // the events from first to n have not been handled
	pieces    [64]unix.Iovec          // reused
	now       int64                   // ms since 1970, taken once per round
	nextCheck int64                   // time of the next check for idle clients
	yielded   int64                   // time at which the loop last gave its processor to the scheduler
	timer     Timer                   // wakes the loop at armed
	armed     int64                   // 0 = not armed
	muted     int                     // how many of listeners are muted
	coalescer coalescer
	busy      bool         // a client has sent something in this round
	gone      []goneSocket // whose sessions are to be closed

	using    atomic.Pointer[socket] // the loop's goroutine is in its session; see enter
	detached atomic.Int32           // how many sockets are detached
	holding  atomic.Bool            // delayed is not empty, or about to be
	sleeping atomic.Bool            // the loop waits, or is about to wait, for events
	mail     mail
}

// socket is one client's connection.
type socket struct {
	fd       int
	loop     *loop
	session  Session
	slot     int   // place in loop.timers
	requests int   // the last result of Input
	queued   bool  // in loop.ready
	held     bool  // in loop.delayed
	writing  bool  // EPOLLOUT is requested
	unread   bool  // in loop.unread: it may be readable
	long     bool  // the last read filled a slot, or more
	partial  bool  // a read that does not fill its room may not have read everything
	file     bool  // a Unix socket
	detached bool  // its session is used by a goroutine that has lost the loop
	seen     int64 // loop.now when the client last sent something
	woken    atomic.Bool
}

// SetSlot implements expiry.Item for loop.timers.
func (c *socket) SetSlot(slot int) { c.slot = slot }

// Slot implements expiry.Item.
func (c *socket) Slot() int { return c.slot }

func newLoop(owner *loops, counters *Counters) (*loop, error) {
	l := &loop{host: owner.host, owner: owner, counters: counters, keeps: owner.options.SpareProcessors,
		listeners: map[int32]*listenSocket{}, buf: make([]byte, readBuffer), inputs: make([]input, 0, maxInputs),
		coalescer: newCoalescer()}
	var err error
	if l.epoll, err = unix.EpollCreate1(unix.EPOLL_CLOEXEC); err != nil {
		return nil, fmt.Errorf("epoll_create1: %w", err)
	}
	if l.wakeup, err = unix.Eventfd(0, unix.EFD_NONBLOCK|unix.EFD_CLOEXEC); err != nil {
		unix.Close(l.epoll)
		return nil, fmt.Errorf("eventfd: %w", err)
	}
	if err := l.watch(unix.EPOLL_CTL_ADD, l.wakeup, unix.EPOLLIN); err != nil {
		unix.Close(l.epoll)
		unix.Close(l.wakeup)
		return nil, err
	}
	return l, nil
}

func (l *loop) watch(op, fd int, events uint32) error {
	if err := unix.EpollCtl(l.epoll, op, fd, &unix.EpollEvent{Events: events, Fd: int32(fd)}); err != nil {
		return fmt.Errorf("epoll_ctl: %w", err)
	}
	return nil
}

func (l *loop) run() {
	defer l.owner.wg.Done()
	runtime.LockOSThread()
	l.owner.threads.begin()
	defer l.owner.threads.end()
	if l.keeps {
		beQuick()
	}
	if l.calls != nil {
		l.calls.Close() // it belonged to the other thread
	}
	if l.owner.options.IOUring {
		l.calls = sockcalls.New(maxWrites)
		l.owner.together.Store(l.calls.Together())
	} else {
		l.calls = sockcalls.NewSeparate(maxWrites)
	}
	l.now = l.host.Now()
	l.execute() // inputs that another goroutine has left; it may also have left events and unread: see relieve
	for {
		for l.first < l.n {
			ev := &l.events[l.first]
			l.first++
			l.handle(ev)
		}
		l.readAll()
		if stop := l.readMail(); stop {
			l.shutdown()
			return
		}
		l.runTimers()
		l.host.Commit()
		l.flushAll()
		if l.now >= l.nextCheck {
			l.checkClients()
		}
		if !l.host.Stalled() { // closing a session may have to wait
			l.closeGone()
		}
		l.arm()

		l.counters.Rounds.Add(1)
		if l.busy {
			l.counters.Busy.Add(1)
			l.busy = false
		}
		l.first, l.n = 0, l.wait()
		l.now = l.host.Now()
	}
}

// wait returns the number of ready file descriptors. While there is work it does not sleep. The ordinary way to
// sleep gives the processor to the scheduler, and when the loop wakes it must wait for a processor like all other
// goroutines. So a loop that may keep its processor (see LoopOptions.SpareProcessors) keeps it until the scheduler
// takes it, after ten milliseconds or to stop all goroutines, with a signal that ends the system call. A loop that
// does not sleep for so long gives the processor to the scheduler earlier: see yieldInterval.
func (l *loop) wait() int {
	if len(l.unread) > 0 {
		return l.poll(0, 0)
	}
	yields := l.keeps && l.now-l.yielded >= yieldInterval
	delays := l.coalescer.coalesces(l.n)
	if !l.keeps || yields || delays {
		n := l.poll(0, 0)
		if delays && n < coalesceReady {
			delay := unix.Timespec{Nsec: coalesceDelay}
			unix.RawSyscall6(unix.SYS_CLOCK_NANOSLEEP, unix.CLOCK_MONOTONIC, 0, uintptr(unsafe.Pointer(&delay)), 0, 0, 0)
			n += l.poll(n, 0)
		}
		if n > 0 {
			return n
		}
		if yields {
			l.yielded = l.now
			runtime.Gosched()
		}
	}
	l.sleeping.Store(true)
	defer l.sleeping.Store(false)
	if l.hasMail() {
		return l.poll(0, 0)
	}
	if l.keeps {
		if n := l.poll(0, -1); n > 0 {
			return n
		}
	}
	n, err := unix.EpollWait(l.epoll, l.events[:], -1)
	if err != nil {
		return 0 // interrupted by a signal
	}
	return n
}

// poll waits for up to timeout ms, without limit if it is negative, without the scheduler's knowledge. It stores the
// ready ones in events from the given index on.
func (l *loop) poll(from, timeout int) int {
	events := l.events[from:]
	n, _, err := unix.RawSyscall6(unix.SYS_EPOLL_PWAIT, uintptr(l.epoll), uintptr(unsafe.Pointer(&events[0])),
		uintptr(len(events)), uintptr(timeout), 0, 0)
	if err != 0 {
		return 0
	}
	return int(n)
}

func (l *loop) handle(ev *unix.EpollEvent) {
	fd := int(ev.Fd)
	if fd == l.wakeup {
		var count [8]byte
		unix.Read(fd, count[:])
		return
	}
	if s, ok := l.listeners[ev.Fd]; ok {
		l.accept(s)
		return
	}
	c := l.conns[fd]
	if c == nil || c.detached {
		return // closed or detached earlier in this round
	}
	if ev.Events&^unix.EPOLLOUT != 0 {
		if ev.Events&^(unix.EPOLLIN|unix.EPOLLOUT) != 0 {
			c.partial = true // the end of the connection may follow the readable bytes, or a read must stop at urgent data
		}
		l.mark(c)
	}
	l.enqueue(c)
}

// interest returns the events for which a connection is watched. Except on Unix sockets, the system reports readable
// bytes only once, which saves it a check of the connection after each command. So the loop must read everything, or
// remember that there may be more. Room to write is reported as long as there is some, because not all of it is used
// at once.
func (c *socket) interest() uint32 {
	switch {
	case c.writing:
		return unix.EPOLLIN | unix.EPOLLOUT
	case c.file: // it may pass file descriptors, and a read ends at each
		return unix.EPOLLIN
	}
	return unix.EPOLLIN | unix.EPOLLRDHUP | unix.EPOLLPRI | unix.EPOLLET
}

// enqueue marks a connection whose session may have output, or may have ended.
func (l *loop) enqueue(c *socket) {
	if !c.queued {
		c.queued = true
		l.ready = append(l.ready, c)
	}
}

// drop removes a client from the loop; closeGone closes the connection.
func (l *loop) drop(c *socket) {
	l.timers.Remove(c)
	l.conns[c.fd] = nil
	l.count--
	l.counters.Clients.Add(-1)
	l.gone = append(l.gone, goneSocket{c, c.fd})
	c.fd = -1
}

// shutdown writes what can be written and closes everything.
func (l *loop) shutdown() {
	if l.timer != nil {
		l.timer.Stop()
	}
	l.mail.Lock()
	l.mail.ended = true
	returned := l.mail.returned
	l.mail.Unlock()
	l.takeBack(returned)
	l.flushAll()
	for _, c := range l.conns {
		if c != nil && !c.detached {
			l.drop(c)
		}
	}
	l.closeGone()
	l.calls.Close()
	for _, s := range l.listeners {
		s.file.Close()
	}
}
