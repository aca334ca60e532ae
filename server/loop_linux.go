package server

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/atomredis/atomredis/engine"
	"github.com/atomredis/atomredis/engine/expiry"
	"github.com/atomredis/atomredis/internal/sockcalls"
)

// loops is the transport on Linux: event loops on epoll, each on a thread of its own. A loop takes every ready
// connection, reads, lets the session execute what it read, and when it has been through all of them writes all
// replies. Its reads and writes never block, so they bypass the scheduler; they are recv and send, which do less in
// the system than read and write, and those of several connections are one system call where the system allows that
// (see sockcalls).
type loops struct {
	srv  *Server
	all  []*loop
	next atomic.Uint32 // the loop that gets the next client
	wg   sync.WaitGroup

	threads threads
}

// loop is one event loop. Everything but mail is used by its own goroutine only.
type loop struct {
	srv       *Server
	owner     *loops
	keeps     bool // its processor while it waits
	epoll     int
	wakeup    int                     // eventfd
	listeners map[int32]*listenSocket // by file descriptor
	conns     []*socket               // by file descriptor
	count     int                     // of conns
	timers    expiry.Index[*Session]  // blocked and paused clients by deadline
	sockets   map[*Session]*socket    // of the sessions in timers
	calls     *sockcalls.Batch        // of the loop's thread; empty but while the loop reads or writes
	unread    []*socket               // possibly readable; may hold stale entries
	next      int                     // the first of unread that has not been read from in this round
	reading   []*socket               // from which is read together
	ready     []*socket               // whose output may have to be written
	writing   []writing               // what is written together
	woken     []*socket               // reused
	delayed   []*socket               // with output that waits for the journal
	buf       []byte                  // what is read goes here first; inputs lie in it
	inputs    []input                 // read, and not executed yet
	hints     []engine.Hint           // reused
	events    [256]unix.EpollEvent    // reused
	first, n  int                     // those of events that have not been handled: from first to n
	pieces    [64]unix.Iovec          // reused
	now       int64                   // ms since 1970, taken once per round
	nextCheck int64                   // when clients are checked for idleness
	yielded   int64                   // when the loop last let the scheduler have its processor
	timer     engine.Timer            // wakes the loop at armed
	armed     int64                   // 0 = not armed
	muted     int                     // how many of listeners are muted
	napper    napper
	gone      []goneSocket // whose sessions are to be closed

	using    atomic.Pointer[socket] // whose session the loop's goroutine is in; see enter
	detached atomic.Int32           // how many sockets are detached
	holding  atomic.Bool            // held is not empty, or about to be
	sleeping atomic.Bool            // the loop waits, or is about to wait, for events
	mail     struct {
		sync.Mutex
		woken     []*socket
		arrived   []*socket       // accepted by another loop
		listeners []*listenSocket // to be served
		stopped   []*listenSocket // to be forgotten
		timer     bool            // the timer has fired
		storage   bool            // storageChanged was called
		returned  []*socket       // were detached
		resume    bool            // resume was called
		stop      bool
		ended     bool // nobody reads the mail any more
	}
}

type listenSocket struct {
	fd   int
	file *os.File // owns fd
	unix string   // the path, if it is a Unix socket
	// closed is set before the socket stops listening. The loop's goroutine closes fd afterwards.
	closed atomic.Bool
	// muted says that clients are not accepted for the moment.
	muted bool
}

// socket is one client's connection.
type socket struct {
	fd       int
	loop     *loop
	session  *Session
	queued   bool  // in loop.ready
	held     bool  // in loop.held
	writing  bool  // EPOLLOUT is asked for
	unread   bool  // in loop.unread: it may have something to read
	long     bool  // the last read found what fills a slot, or more
	partial  bool  // a read that finds less than it has room for may not have found all
	file     bool  // a Unix socket
	detached bool  // its session is used by a goroutine that does not drive the loop any more
	seen     int64 // loop.now when the client last sent something
	woken    atomic.Bool
}

const (
	readBuffer = 128 * 1024
	// how much is read there of what is likely to be the beginning of a long argument, and what follows one
	bulkyRead = 16 * 1024
	maxInputs = 16 // clients from which is read together, and whose input is executed together
	maxWrites = 64 // clients to which is written together
	// bytes that are read from each of several clients; without the 64 all slots would begin in the same places of the
	// processor's caches
	slotSize  = readBuffer/maxInputs - 64
	minInputs = 4   // clients for whom it is worth the trouble to fetch memory for all at once
	maxShort  = 512 // bytes of input that may be a single command for which that is of use
)

// input is what a client has sent.
type input struct {
	c    *socket
	data []byte
}

// writing is output that is about to be written.
type writing struct {
	c        *socket
	sendable int
}

// maxSleep in ms keeps far deadlines within a Duration.
const maxSleep = int64(time.Hour / time.Millisecond)

// newTransport returns n event loops. keeps is Options.SpareProcessors.
func newTransport(srv *Server, n int, keeps bool) (transport, error) {
	t := &loops{srv: srv}
	for range n {
		l, err := newLoop(srv, t)
		if err != nil {
			t.close()
			return nil, err
		}
		l.keeps = keeps
		t.all = append(t.all, l)
		t.wg.Add(1)
		go l.run()
	}
	return t, nil
}

func newLoop(srv *Server, owner *loops) (*loop, error) {
	l := &loop{srv: srv, owner: owner, listeners: map[int32]*listenSocket{}, sockets: map[*Session]*socket{},
		buf: make([]byte, readBuffer), inputs: make([]input, 0, maxInputs), napper: newNapper()}
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

// listen makes the first loop accept clients.
func (t *loops) listen(ln net.Listener) (stop func(), err error) {
	filer, ok := ln.(interface{ File() (*os.File, error) })
	if !ok {
		return nil, errors.New("not a socket")
	}
	file, err := filer.File()
	if err != nil {
		return nil, err
	}
	s := &listenSocket{fd: int(file.Fd()), file: file}
	if a, ok := ln.Addr().(*net.UnixAddr); ok {
		s.unix = a.Name
	}
	if err := unix.SetNonblock(s.fd, true); err != nil {
		file.Close()
		return nil, err
	}
	l := t.all[0]
	l.mail.Lock()
	l.mail.listeners = append(l.mail.listeners, s)
	l.mail.Unlock()
	l.interrupt()
	return func() {
		s.closed.Store(true)
		unix.Shutdown(s.fd, unix.SHUT_RDWR) // the address is free from now on, whenever the loop closes its descriptor
		ln.Close()
		l.mail.Lock()
		l.mail.stopped = append(l.mail.stopped, s)
		l.mail.Unlock()
		l.interrupt()
	}, nil
}

// storageChanged implements transport.
func (t *loops) storageChanged() {
	for _, l := range t.all {
		if !l.holding.Load() {
			continue
		}
		l.mail.Lock()
		l.mail.storage = true
		l.mail.Unlock()
		l.interrupt()
	}
}

// close stops all loops and waits for them.
func (t *loops) close() {
	for _, l := range t.all {
		l.mail.Lock()
		l.mail.stop = true
		l.mail.Unlock()
		l.interrupt()
	}
	t.wg.Wait()
	for _, l := range t.all {
		unix.Close(l.epoll)
		unix.Close(l.wakeup)
	}
}

// interrupt makes the loop look at its mail, now if it sleeps and otherwise before it sleeps next.
func (l *loop) interrupt() {
	if l.sleeping.Swap(false) {
		one := uint64(1)
		unix.Write(l.wakeup, unsafe.Slice((*byte)(unsafe.Pointer(&one)), 8))
	}
}

// wake asks the loop to call the session's Advance.
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

func (l *loop) run() {
	defer l.owner.wg.Done()
	runtime.LockOSThread()
	l.owner.threads.begin()
	defer l.owner.threads.end()
	if l.keeps {
		beQuick()
	}
	if l.calls != nil {
		l.calls.Close() // it was the other thread's
	}
	if l.srv.config.Get().IOUring {
		l.calls = sockcalls.New(maxWrites)
		l.srv.callsTogether.Store(l.calls.Together())
	} else {
		l.calls = sockcalls.NewSeparate(maxWrites)
	}
	l.now = l.srv.ks.Now()
	l.execute() // what another goroutine has left, as it may the rest of events and unread: see relieve
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
		if l.srv.storage.Storage != nil {
			l.srv.storage.Commit()
		}
		l.flushAll()
		if l.now >= l.nextCheck {
			l.checkClients()
		}
		if l.srv.scripts.Busy() == "" { // it may take guards
			l.closeGone()
		}
		l.arm()

		l.srv.stats.rounds.Add(1)
		l.first, l.n = 0, l.wait()
		l.now = l.srv.ks.Now()
	}
}

// wait returns the number of ready file descriptors. While there is work it only asks; otherwise it sleeps. The
// ordinary way to sleep gives the processor back to the scheduler, and a loop that comes back from there stands in
// line with all other goroutines for one. So one that may keep its processor (see Options.SpareProcessors) does until
// the scheduler wants it back, which it does after ten milliseconds or to stop everything: it sends a signal, which
// ends the system call. A loop that does not wait for so long lets it have the processor before that: see
// yieldInterval.
func (l *loop) wait() int {
	if len(l.unread) > 0 {
		return l.poll(0, 0)
	}
	yields := l.keeps && l.now-l.yielded >= yieldInterval
	naps := l.napper.naps(l.n)
	if !l.keeps || yields || naps {
		n := l.poll(0, 0)
		if naps && n < napEnough {
			nap := unix.Timespec{Nsec: napTime}
			unix.RawSyscall6(unix.SYS_CLOCK_NANOSLEEP, unix.CLOCK_MONOTONIC, 0, uintptr(unsafe.Pointer(&nap)), 0, 0, 0)
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

// poll waits for up to timeout ms, for ever if that is negative, without the knowledge of the scheduler. What is
// ready goes to events from the given one on.
func (l *loop) poll(from, timeout int) int {
	events := l.events[from:]
	n, _, err := unix.RawSyscall6(unix.SYS_EPOLL_PWAIT, uintptr(l.epoll), uintptr(unsafe.Pointer(&events[0])),
		uintptr(len(events)), uintptr(timeout), 0, 0)
	if err != 0 {
		return 0
	}
	return int(n)
}

func (l *loop) hasMail() bool {
	l.mail.Lock()
	defer l.mail.Unlock()
	m := &l.mail
	return len(m.woken) > 0 || len(m.arrived) > 0 || len(m.listeners) > 0 || len(m.stopped) > 0 || len(m.returned) > 0 ||
		m.timer || m.storage || m.resume || m.stop
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
		return // closed, or held up, earlier in this round
	}
	if ev.Events&^unix.EPOLLOUT != 0 {
		if ev.Events&^(unix.EPOLLIN|unix.EPOLLOUT) != 0 {
			c.partial = true // there may be an end behind what there is to read, or a reader must stop where urgent data was
		}
		l.mark(c)
	}
	l.enqueue(c)
}

// interest is what a connection is watched for. It is reported once that there is something to read (but on Unix
// sockets), which saves the system a look at the connection after each command; so who has been told must read all
// that there is, or keep in mind that there may be more. Room to write is reported as long as there is some, because
// not all of it is used at once.
func (c *socket) interest() uint32 {
	switch {
	case c.writing:
		return unix.EPOLLIN | unix.EPOLLOUT
	case c.file: // it may pass files, at which each read ends
		return unix.EPOLLIN
	}
	return unix.EPOLLIN | unix.EPOLLRDHUP | unix.EPOLLPRI | unix.EPOLLET
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
		if c.long || c.session.readsAlone() {
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
		l.srv.stats.loopReads.Add(1)
		if l.keeps {
			l.napper.arrived(n, c.session.depth, c.seen, l.now)
		}
		c.seen = l.now
		c.long = n >= slotSize
		if c.partial || n == room {
			l.mark(c)
		}
	case err == unix.EINTR:
		l.mark(c)
	case err != unix.EAGAIN:
		c.session.abort()
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
			c.session.abort()
		}
		return
	}
	room, free := c.session.Room(), l.buf
	if len(room) > 0 || c.session.Bulky() {
		free = free[:bulkyRead]
	}
	n, err := l.readSome(c, room, free)
	l.took(c, n, err, len(room)+len(free))
	if n <= 0 {
		return
	}
	now, k := l.now, min(n, len(room))
	l.enter(c)
	if k == 0 {
		c.session.Input(free[:n], now)
	} else if c.session.Received(k, now); k < n && !c.session.Closing() {
		c.session.Input(free[:n-k], now)
	}
	l.leave(c)
}

// execute has the sessions execute what was read.
func (l *loop) execute() {
	l.warm()
	for i := range l.inputs {
		in := l.inputs[i]
		l.inputs[i] = input{}
		now := l.now
		l.enter(in.c)
		in.c.session.Input(in.data, now)
		l.leave(in.c)
	}
	l.inputs = l.inputs[:0]
}

// warm has memory fetched for clients that have sent a single command each. Those of a pipeline see to that themselves.
func (l *loop) warm() {
	if len(l.inputs) < minInputs {
		return
	}
	db := l.inputs[0].c.session.db
	for _, in := range l.inputs {
		if s := in.c.session; s.db == db && len(in.data) <= maxShort {
			l.hints = s.prepare(in.data, l.hints)
		}
	}
	if len(l.hints) > 1 {
		l.srv.ks.TryWarm(db, l.hints)
	}
	clear(l.hints)
	l.hints = l.hints[:0]
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

// enqueue marks a connection whose session may have output, or may have ended.
func (l *loop) enqueue(c *socket) {
	if !c.queued {
		c.queued = true
		l.ready = append(l.ready, c)
	}
}

// flushAll writes the output of all connections that had something to do.
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

// flush writes the output of a connection, or adds it to what is written together.
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
		if n > writeSize*3/2 && n <= writeSize*4 { // to write even longer ones piece by piece costs more than it brings
			n = writeSize
		}
		l.calls.Send(c.fd, s.Output()[:n])
		if l.writing = append(l.writing, writing{c, sendable}); l.calls.Full() {
			l.writeTogether()
		}
	}
}

// writeTogether writes what is in writing.
func (l *loop) writeTogether() {
	for i, r := range l.calls.Do() {
		w := l.writing[i]
		l.writing[i] = writing{}
		l.wrote(w.c, w.sendable, r.N, r.Err)
	}
	l.writing = l.writing[:0]
}

// wrote notes that n bytes of a client's output have been written, of those that were sendable, and sees to what is
// to be done for the client until the next round.
func (l *loop) wrote(c *socket, sendable, n int, err unix.Errno) {
	s := c.session
	if sendable > 0 {
		l.srv.stats.loopWrites.Add(1)
		switch {
		case err == 0:
			l.srv.stats.bytesOut.Add(int64(n))
			sendable -= n
			s.Sent(n)
		case err == unix.EAGAIN || err == unix.EINTR:
		default:
			l.drop(c)
			return
		}
	}
	pending := s.Unsent() > 0
	if s.Closing() && !pending {
		l.drop(c)
		return
	}
	if pending && l.srv.overLimit(s, 0) {
		l.drop(c)
		return
	}
	if sendable < s.Unsent() && !c.held {
		c.held = true
		l.delayed = append(l.delayed, c)
		l.holding.Store(true)
		if s.Sendable() > sendable {
			l.enqueue(c) // storageChanged may have been called before holding was set
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
		l.timers.Set(s, at)
		l.sockets[s] = c
	} else if s.Slot() != 0 {
		l.timers.Remove(s)
		delete(l.sockets, s)
	}
}

// writeSize is how much of an output that is somewhat longer is written at once, in bytes; the rest follows in the
// next round. A new client takes in about half as much again before it has read any of it. With BBR, what was written
// beyond that took 4 ms for a while on each connection (not so with Reno), and cost more processor time: see
// bench/notes/tried.md.
const writeSize = 64 << 10

// writePieces writes the first n bytes of a client's output, or as many of them as the socket and l.pieces allow,
// from where they lie.
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
	clear(l.pieces[:k]) // so that they do not keep the values
	return int(sent), err
}

// drop takes a client out of the loop; closeGone closes the connection.
func (l *loop) drop(c *socket) {
	l.timers.Remove(c.session)
	delete(l.sockets, c.session)
	l.conns[c.fd] = nil
	l.count--
	l.gone = append(l.gone, goneSocket{c, c.fd})
	c.fd = -1
}

// readMail does what others have asked for, and reports that the loop must stop.
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
	storage := l.mail.storage
	l.mail.storage = false
	l.mail.Unlock()

	if storage {
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
			l.srv.log.Error("cannot accept clients", "error", err)
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

// advance lets a session go on.
func (l *loop) advance(c *socket) {
	now := l.now
	l.enter(c)
	c.session.Advance(now)
	l.leave(c)
}

// runTimers lets sessions go on whose time has come. That may take guards, and so it is put off while a script is
// running for long.
func (l *loop) runTimers() {
	for l.srv.scripts.Busy() == "" {
		s, at, ok := l.timers.Min()
		if !ok || at > l.now {
			return
		}
		c := l.sockets[s]
		l.timers.Remove(s)
		delete(l.sockets, s)
		if c.detached {
			continue
		}
		l.advance(c)
		l.enqueue(c)
	}
}

// arm makes sure that the loop is woken for its next timer.
func (l *loop) arm() {
	next := int64(0)
	if l.count > 0 || l.muted > 0 {
		next = l.nextCheck
	}
	if _, at, ok := l.timers.Min(); ok && (next == 0 || at < next) && l.srv.scripts.Busy() == "" {
		next = at
	}
	if next == 0 || l.armed != 0 && l.armed <= next {
		return
	}
	if l.timer != nil {
		l.timer.Stop()
	}
	l.armed = next
	l.timer = l.srv.ks.Clock().AfterFunc(time.Duration(min(max(next-l.now, 0), maxSleep))*time.Millisecond, func() {
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
		if c != nil && !c.detached && l.srv.expired(c.session, l.now) {
			l.drop(c)
		}
	}
}

// forget closes the loop's descriptor of a listener that is closed.
func (l *loop) forget(s *listenSocket) {
	delete(l.listeners, int32(s.fd))
	if s.muted {
		l.muted--
	}
	s.file.Close()
}

// accept takes all clients that are waiting.
func (l *loop) accept(ln *listenSocket) {
	for {
		fd, addr, err := unix.Accept4(ln.fd, unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC)
		if err != nil && ln.closed.Load() {
			return
		}
		if err != nil {
			if err != unix.EAGAIN && err != unix.EINTR && err != unix.ECONNABORTED {
				// Out of files, most likely. The socket stays ready, so asking again at once would only spin.
				l.srv.log.Warn("cannot accept clients for a second", "error", err)
				l.mute(ln)
			}
			return
		}
		peer := Peer{FD: fd}
		loopback := true
		if ln.unix != "" {
			peer.Addr, peer.Local = ln.unix+":0", ln.unix+":0"
		} else {
			remote := addrPort(addr)
			peer.Addr = remote.String()
			loopback = remote.Addr().IsLoopback()
			if local, err := unix.Getsockname(fd); err == nil {
				peer.Local = addrPort(local).String()
			}
			l.tune(fd)
		}
		if refusal := l.srv.refuseClient(loopback); refusal != "" {
			unix.Write(fd, []byte("-"+refusal+"\r\n"))
			unix.Close(fd)
			continue
		}
		c := &socket{fd: fd, file: ln.unix != ""}
		c.loop = l.owner.all[int(l.owner.next.Add(1))%len(l.owner.all)]
		c.session = l.srv.newSession(peer, c.wake)
		c.session.Lend()
		if c.loop == l {
			l.adopt(c)
			continue
		}
		to := c.loop
		to.mail.Lock()
		to.mail.arrived = append(to.mail.arrived, c)
		to.mail.Unlock()
		to.interrupt()
	}
}

// mute stops accepting from a socket until the next check of the clients.
func (l *loop) mute(ln *listenSocket) {
	ln.muted = true
	l.muted++
	l.watch(unix.EPOLL_CTL_MOD, ln.fd, 0)
	l.nextCheck = l.now + 1000
}

// tune sets the options of a TCP connection.
func (l *loop) tune(fd int) {
	unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_NODELAY, 1)
	if seconds := l.srv.config.Get().TCPKeepAlive; seconds > 0 {
		unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_KEEPALIVE, 1)
		unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_KEEPIDLE, seconds)
		unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_KEEPINTVL, max(seconds/3, 1))
		unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_KEEPCNT, 3)
	}
}

// adopt makes the loop serve a connection.
func (l *loop) adopt(c *socket) {
	for len(l.conns) <= c.fd {
		l.conns = append(l.conns, nil)
	}
	l.conns[c.fd] = c
	l.count++
	if err := l.watch(unix.EPOLL_CTL_ADD, c.fd, c.interest()); err != nil {
		l.drop(c)
	}
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

func addrPort(a unix.Sockaddr) netip.AddrPort {
	switch a := a.(type) {
	case *unix.SockaddrInet4:
		return netip.AddrPortFrom(netip.AddrFrom4(a.Addr), uint16(a.Port))
	case *unix.SockaddrInet6:
		return netip.AddrPortFrom(netip.AddrFrom16(a.Addr).Unmap(), uint16(a.Port))
	}
	return netip.AddrPort{}
}
