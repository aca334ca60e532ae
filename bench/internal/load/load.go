//go:build linux

// Package load puts a server under load and measures how long its replies take. One goroutine drives all connections by
// epoll, and encodes and parses without allocating: on a machine with few processors the client must not be the
// bottleneck.
package load

import (
	"errors"
	"fmt"
	"math"
	"net/netip"
	"runtime"
	"runtime/debug"
	"slices"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/HdrHistogram/hdrhistogram-go"
	"golang.org/x/sys/unix"

	"github.com/atomredis/atomredis/bench/internal/servers"
)

// Client determines what a connection sends, as a state machine. An operation consists of one or more steps; each is
// sent after all replies to the one before. Pipelined operations go through their steps together.
type Client interface {
	// Append appends the commands of a step of one of the pipelined operations to dst and returns the number of replies
	// to wait for before the next step. If it returns 0 the operation has ended.
	Append(dst []byte, op, step int) ([]byte, int)
	// Reply receives the next reply to an operation. It must not keep it.
	Reply(op int, reply []byte) error
}

// Connection is one connection of a Generator.
type Connection struct {
	Client Client
	// Hello is a command that is sent once, before any load; none if empty.
	Hello []string
	// Partner marks a connection that the others cannot do without, such as the consumer of a queue: it begins its next
	// operation whenever the last has ended, and its operations are not counted.
	Partner bool
	// Errors passes error replies to the Client; otherwise they end the run.
	Errors bool
}

// Options describe a run of a Generator.
type Options struct {
	Pipeline   int           // how many operations a connection has under way at once
	Duration   time.Duration // for how long operations are begun
	Operations int           // the most operations; 0 for no limit
	// Rate makes the loop open: that many operations are due per second, at equal intervals. Their time counts from
	// when they were due, whether or not a connection was free, until the system received their reply. Delays of the
	// generator itself, in sending or reading while the machine holds it up, do not count. Without a Rate the loop is
	// closed: each connection continues as soon as it can.
	Rate float64
	// WarmUp is the number of operations at first whose time does not count: a server that has rested begins slowly.
	WarmUp int
	// Parts is the number of parts into which the operations after the WarmUp are divided, in the order in which they
	// are due. The latency of each part is reported; 0 means 1. Only with a Rate.
	Parts int
	// Stop prevents further operations once it is true. If it is nil only the limits above end the run.
	Stop *atomic.Bool
}

// Result is the outcome of a run.
type Result struct {
	Operations int
	Elapsed    time.Duration             // from the start of the first operation to the end of the last
	Latency    []*hdrhistogram.Histogram // of operations after the WarmUp, in nanoseconds: one per part
}

// PerSecond returns the number of operations done per second.
func (r Result) PerSecond() float64 { return float64(r.Operations) / r.Elapsed.Seconds() }

// stallTimeout is how long a run waits while nothing happens.
const stallTimeout = 30 * time.Second

// errStuck is the error of a run in which nothing happens any more.
var errStuck = errors.New("load: no reply comes any more")

// Generator is a set of connections to a server. Only one goroutine may use it.
type Generator struct {
	epoll int
	conns []*conn
	base  time.Time // the origin of times

	// Of the run:
	Options
	message  *message // for reading in an open loop
	idle     []*conn  // connections without operations under way, the longest idle first
	begun    int      // pipelines begun
	active   int      // pipelines that have not ended
	ended    int      // operations ended
	last     time.Duration
	interval float64 // between two pipelines, in nanoseconds
	latency  []*hdrhistogram.Histogram
}

// conn is the state of a connection.
type conn struct {
	Connection
	fd      int
	index   int    // in conns
	in      []byte // received bytes, from the first incomplete reply
	scanner Scanner
	out     []byte // to send
	sent    int    // bytes of out already sent
	waiting bool   // for room to send

	// when the operations under way began, or when they were due, plus the generator's own delay
	began time.Duration
	came  time.Duration           // when the last bytes arrived, as the system recorded
	part  *hdrhistogram.Histogram // where their time is recorded; nil if it does not count
	step  int
	op    int   // the one whose reply comes next
	left  int   // operations that have not ended
	now   []int // replies still to come in this step, for each operation
	next  []int // replies of the next step
}

// New connects to a server.
func New(addr string, connections []Connection) (*Generator, error) {
	g := &Generator{base: time.Now().Round(0)} // without the monotonic clock, which the system's records do not use
	var err error
	if g.epoll, err = unix.EpollCreate1(unix.EPOLL_CLOEXEC); err != nil {
		return nil, fmt.Errorf("epoll: %w", err)
	}
	for _, c := range connections {
		if err := g.connect(addr, c); err != nil {
			g.Close()
			return nil, fmt.Errorf("connecting to %s: %w", addr, err)
		}
	}
	return g, nil
}

func (g *Generator) connect(addr string, connection Connection) error {
	to, err := netip.ParseAddrPort(addr)
	if err != nil {
		return err
	}
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	c := &conn{Connection: connection, fd: fd, index: len(g.conns), in: make([]byte, 0, 16<<10),
		scanner: Scanner{Errors: connection.Errors}}
	g.conns = append(g.conns, c) // from here on Close closes it
	if err := unix.Connect(fd, &unix.SockaddrInet4{Addr: to.Addr().As4(), Port: int(to.Port())}); err != nil {
		return err
	}
	if err := unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_NODELAY, 1); err != nil {
		return err
	}
	if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_TIMESTAMPNS, 1); err != nil {
		return err
	}
	if len(c.Hello) > 0 {
		if _, err := unix.Write(fd, servers.AppendCommand(nil, c.Hello...)); err != nil {
			return err
		}
		for length := 0; length == 0; {
			if _, err := c.read(nil); err != nil {
				return err
			}
			if length, err = c.scanner.Next(c.in); err != nil {
				return err
			}
		}
		c.in = c.in[:0]
	}
	if err := unix.SetNonblock(fd, true); err != nil {
		return err
	}
	return unix.EpollCtl(g.epoll, unix.EPOLL_CTL_ADD, fd, &unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(c.index)})
}

// Close closes all connections.
func (g *Generator) Close() {
	for _, c := range g.conns {
		unix.Close(c.fd)
	}
	unix.Close(g.epoll)
}

// Run puts the server under load until all operations have ended. The garbage collector is off meanwhile; existing
// garbage is collected before.
func (g *Generator) Run(o Options) (Result, error) {
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	debug.FreeOSMemory()
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	unix.Prctl(unix.PR_SET_TIMERSLACK, 1, 0, 0, 0) // makes sleeps end when they should

	g.Options = o
	g.message = nil
	if o.Rate > 0 {
		g.message = new(message)
	}
	g.begun, g.active, g.ended, g.idle = 0, 0, 0, nil
	g.latency = nil
	for range max(o.Parts, 1) {
		g.latency = append(g.latency, hdrhistogram.New(1, int64(10*stallTimeout), 3))
	}
	most := math.MaxInt
	if o.Operations > 0 {
		most = max(o.Operations/o.Pipeline, 1)
	}
	if o.Rate > 0 {
		g.interval = float64(o.Pipeline) / o.Rate * 1e9
		most = min(most, max(int(float64(o.Duration)/g.interval), 1))
	}
	for _, c := range g.conns {
		if c.Partner {
			if c.left == 0 { // otherwise it still waits since the run before
				if err := g.begin(c, g.now()); err != nil {
					return Result{}, err
				}
			}
			continue
		}
		g.idle = append(g.idle, c)
	}

	start := g.now()
	if err := g.loop(start, most); err != nil {
		return Result{}, err
	}
	return Result{Operations: g.ended, Elapsed: g.last - start, Latency: g.latency}, nil
}

func (g *Generator) now() time.Duration { return time.Since(g.base) }

// loop begins at most this many pipelines, and returns when all have ended.
func (g *Generator) loop(start time.Duration, most int) error {
	events := make([]unix.EpollEvent, 256)
	last := start // the last time anything happened
	for {
		now := g.now()
		wait := stallTimeout
		if g.Stop != nil && g.Stop.Load() {
			most = g.begun
		}
		for g.begun < most && len(g.idle) > 0 {
			due := now
			if g.Rate > 0 {
				due = start + time.Duration(float64(g.begun)*g.interval)
				if early := due - now; early > 0 {
					wait = early
					break
				}
				// After a delay so long that some due operations have no free connection, these would wait for one
				// another.
				if late := now - max(due, g.idle[0].came); float64(late) > g.interval*float64(len(g.idle)) {
					start += late
					due += late
				}
			} else if now-start >= g.Duration {
				most = g.begun
				break
			}
			c := g.idle[0]
			g.idle = g.idle[1:]
			c.part = g.part(most)
			g.begun++
			g.active++
			if err := g.begin(c, due); err != nil {
				return err
			}
		}
		if g.active == 0 && g.begun >= most {
			return nil
		}
		n, err := g.await(events, wait)
		if err != nil {
			return err
		}
		if now = g.now(); n > 0 {
			last = now
		} else if now-last > stallTimeout {
			return errStuck
		}
		for _, e := range events[:n] {
			if err := g.ready(g.conns[e.Fd], e.Events); err != nil {
				return err
			}
		}
	}
}

// spin is the longest interval between operations for which the generator polls instead of sleeping. Polling keeps a
// processor busy; with longer intervals the generator sleeps, so that it does not occupy a processor it hardly needs.
const spin = 30 * time.Microsecond

// await waits for events. For a short wait it polls without the scheduler's knowledge.
func (g *Generator) await(events []unix.EpollEvent, wait time.Duration) (int, error) {
	var n uintptr
	var errno unix.Errno
	epoll, first, count := uintptr(g.epoll), unsafe.Pointer(&events[0]), uintptr(len(events))
	if g.Rate > 0 && g.interval <= float64(spin) && wait <= spin {
		n, _, errno = unix.RawSyscall6(unix.SYS_EPOLL_PWAIT, epoll, uintptr(first), count, 0, 0, 0)
	} else {
		t := unix.NsecToTimespec(int64(wait))
		n, _, errno = unix.Syscall6(unix.SYS_EPOLL_PWAIT2, epoll, uintptr(first), count, uintptr(unsafe.Pointer(&t)), 0, 0)
	}
	if errno == unix.EINTR {
		return 0, nil
	}
	if errno != 0 {
		return 0, fmt.Errorf("epoll: %w", errno)
	}
	return int(n), nil
}

// begin begins the next operations of a connection.
func (g *Generator) begin(c *conn, at time.Duration) error {
	if len(c.now) != g.Pipeline {
		c.now, c.next = make([]int, g.Pipeline), make([]int, g.Pipeline)
	}
	c.began, c.step, c.op, c.left = at+g.late(max(at, c.came)), 0, 0, len(c.now)
	for op := range c.now {
		c.out, c.now[op] = c.Client.Append(c.out, op, 0)
	}
	return g.send(c)
}

// late returns the time since the generator could have acted; 0 in a closed loop.
func (g *Generator) late(since time.Duration) time.Duration {
	if g.Rate == 0 {
		return 0
	}
	return max(g.now()-since, 0)
}

// ready handles the events that epoll reports for a connection.
func (g *Generator) ready(c *conn, events uint32) error {
	if c.waiting && events&unix.EPOLLOUT != 0 {
		if err := g.send(c); err != nil {
			return err
		}
	}
	if events&^unix.EPOLLOUT == 0 {
		return nil
	}
	if ok, err := c.read(g.message); err != nil || !ok {
		return err
	}
	now := g.now()
	if g.message != nil {
		if came, ok := g.message.came(); ok {
			now = came.Sub(g.base)
		}
		c.came = now
	}
	done := 0
	for done < len(c.in) {
		n, err := c.scanner.Next(c.in[done:])
		if err != nil {
			return err
		}
		if n == 0 {
			break
		}
		if err := g.reply(c, c.in[done:done+n], now); err != nil {
			return err
		}
		done += n
	}
	if done > 0 {
		c.in = append(c.in[:0], c.in[done:]...)
	}
	return nil
}

// reply hands a reply to the client and continues if it was the last one of a step.
func (g *Generator) reply(c *conn, reply []byte, now time.Duration) error {
	if c.left == 0 {
		return fmt.Errorf("a reply to nothing: %.60q", reply)
	}
	if err := c.Client.Reply(c.op, reply); err != nil {
		return err
	}
	if c.now[c.op]--; c.now[c.op] > 0 {
		return nil
	}
	c.out, c.next[c.op] = c.Client.Append(c.out, c.op, c.step+1)
	if c.next[c.op] == 0 {
		c.left--
		if !c.Partner {
			g.ended++
			g.last = now
			if err := c.record(now); err != nil {
				return err
			}
		}
	}
	if c.skip(); c.op < len(c.now) {
		return nil
	}
	if c.left > 0 {
		c.now, c.next = c.next, c.now
		c.step, c.op = c.step+1, -1
		c.skip()
		c.began += g.late(now)
		return g.send(c)
	}
	if c.Partner {
		return g.begin(c, now)
	}
	g.active--
	g.idle = append(g.idle, c)
	return nil
}

// part returns where the time of the next pipeline counts, given the most pipelines of the run.
func (g *Generator) part(most int) *hdrhistogram.Histogram {
	first := (g.WarmUp + g.Pipeline - 1) / g.Pipeline
	switch {
	case g.begun < first:
		return nil
	case len(g.latency) == 1:
		return g.latency[0]
	}
	return g.latency[(g.begun-first)*len(g.latency)/(most-first)]
}

// record records the duration of an operation that ends now.
func (c *conn) record(now time.Duration) error {
	if c.part == nil {
		return nil
	}
	if err := c.part.RecordValue(int64(now - c.began)); err != nil {
		return fmt.Errorf("latency of an operation: %w", err)
	}
	return nil
}

// skip advances to the next operation that still has replies to come in this step.
func (c *conn) skip() {
	for c.op++; c.op < len(c.now) && c.now[c.op] == 0; {
		c.op++
	}
}

// send sends the connection's output as far as there is room.
func (g *Generator) send(c *conn) error {
	for c.sent < len(c.out) {
		b := c.out[c.sent:]
		n, _, errno := unix.RawSyscall(unix.SYS_WRITE, uintptr(c.fd), uintptr(unsafe.Pointer(&b[0])), uintptr(len(b)))
		if errno == unix.EAGAIN {
			break
		}
		if errno == unix.EINTR {
			continue
		}
		if errno != 0 {
			return fmt.Errorf("writing: %w", errno)
		}
		c.sent += int(n)
	}
	waiting := c.sent < len(c.out)
	if !waiting {
		c.out, c.sent = c.out[:0], 0
	}
	if waiting == c.waiting {
		return nil
	}
	c.waiting = waiting
	e := unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(c.index)}
	if waiting {
		e.Events |= unix.EPOLLOUT
	}
	return unix.EpollCtl(g.epoll, unix.EPOLL_CTL_MOD, c.fd, &e)
}

// read reads once, with m if it is not nil, and reports whether anything arrived.
func (c *conn) read(m *message) (bool, error) {
	if len(c.in) == cap(c.in) {
		c.in = slices.Grow(c.in, len(c.in))
	}
	free := c.in[len(c.in):cap(c.in)]
	var n uintptr
	var errno unix.Errno
	if m == nil {
		n, _, errno = unix.RawSyscall(unix.SYS_READ, uintptr(c.fd), uintptr(unsafe.Pointer(&free[0])), uintptr(len(free)))
	} else {
		n, errno = m.receive(c.fd, free)
	}
	switch {
	case errno == unix.EAGAIN || errno == unix.EINTR:
		return false, nil
	case errno != 0:
		return false, fmt.Errorf("reading: %w", errno)
	case n == 0:
		return false, errors.New("the server has closed a connection")
	}
	c.in = c.in[:len(c.in)+int(n)]
	return true, nil
}

// message is what the system needs in order to report when bytes arrived.
type message struct {
	header  unix.Msghdr
	piece   unix.Iovec
	control struct {
		unix.Cmsghdr
		at unix.Timespec
	}
}

// receive reads once.
func (m *message) receive(fd int, b []byte) (uintptr, unix.Errno) {
	m.piece.Base = &b[0]
	m.piece.SetLen(len(b))
	m.header = unix.Msghdr{Iov: &m.piece, Iovlen: 1, Control: (*byte)(unsafe.Pointer(&m.control))}
	m.header.SetControllen(int(unsafe.Sizeof(m.control)))
	n, _, errno := unix.RawSyscall(unix.SYS_RECVMSG, uintptr(fd), uintptr(unsafe.Pointer(&m.header)), 0)
	return n, errno
}

// came returns when the last received bytes arrived. For the very first bytes the system may not know.
func (m *message) came() (at time.Time, ok bool) {
	if m.header.Controllen == 0 || m.control.Level != unix.SOL_SOCKET || m.control.Type != unix.SCM_TIMESTAMPNS {
		return at, false
	}
	return time.Unix(m.control.at.Unix()), true
}
