package transport

import (
	"iter"
	"log/slog"
	"net"
	"net/netip"
	"strings"
	"sync/atomic"
	"time"
)

// Transport carries bytes between connections and sessions.
type Transport interface {
	// Listen has clients accepted in the background. stop ends that at once, closes l and frees its address.
	Listen(l net.Listener) (stop func(), err error)
	// Recheck has the transport ask sessions again what may be sent, of those that held some of their output back. Any
	// goroutine may call it.
	Recheck()
	// Close disconnects all clients and returns when no goroutine of the transport is left. Its listeners must be
	// closed before.
	Close()
}

// Loops is the Transport of event loops, which only Linux has. A loop serves many clients with one goroutine.
type Loops interface {
	Transport
	// Relieve has other goroutines go on with the loops that are held up in a session. Any goroutine may call it, again and
	// again while sessions take long; a session too, for itself.
	Relieve()
	// Resume has the loops do what they have put off while the host was stalled.
	Resume()
	// ProcessorTime returns how long the loops have used processors, exactly. It costs little.
	ProcessorTime() time.Duration
	// ProcessorTimes is ProcessorTime with its parts. It reads files.
	ProcessorTimes() ProcessorTimes
	// Together reports whether the loops make several system calls at once, through an io_uring.
	Together() bool
}

// ProcessorTimes are how long threads have used processors. Total is the sum, exactly; none of the three ever falls.
type ProcessorTimes struct{ System, User, Total time.Duration }

// Counters count what a transport does. Any goroutine may read them.
type Counters struct {
	Reads, Writes atomic.Int64 // system calls, or what would be one if it were not done together with others
	Sent          atomic.Int64 // bytes
	Rounds        atomic.Int64 // of event loops
}

// Reset sets them to zero.
func (c *Counters) Reset() {
	for _, n := range []*atomic.Int64{&c.Reads, &c.Writes, &c.Sent, &c.Rounds} {
		n.Store(0)
	}
}

// LoopOptions say how event loops work.
type LoopOptions struct {
	Loops int // how many there are, each with a thread of its own
	// IOUring has them make several system calls at once where the system allows that.
	IOUring bool
	// SpareProcessors says that GOMAXPROCS is greater by Loops than what the rest of the program needs. Then a loop
	// keeps its processor while it waits, up to ten milliseconds, which makes it faster.
	SpareProcessors bool
	Counters        *Counters
}

// Peer tells where a client comes from.
type Peer struct {
	// Addr and Local are the two ends: "ip:port", or the path of the Unix socket with ":0".
	Addr, Local string
	// FD is the number of the socket's file descriptor, 0 if the transport does not know it.
	FD int
}

// Embedded is the Peer at the other end of a connection in memory, and so part of the program.
var Embedded = Peer{Addr: "@embedded:0", Local: "@embedded:0"}

// Unix reports whether the client is connected through a Unix socket, or part of the program.
func (p *Peer) Unix() bool { return strings.HasPrefix(p.Addr, "/") || strings.HasPrefix(p.Addr, "@") }

// SameMachine reports whether the client is on this machine.
func (p *Peer) SameMachine() bool {
	if p.Unix() {
		return true
	}
	a, err := netip.ParseAddrPort(p.Addr)
	return err == nil && a.Addr().Unmap().IsLoopback()
}

// Clock is where transports take the time from.
type Clock interface {
	// Now returns the time in ms since 1970.
	Now() int64
	// AfterFunc calls f in a goroutine of its own once d has passed.
	AfterFunc(d time.Duration, f func()) Timer
}

// Timer is a pending call of AfterFunc.
type Timer interface {
	// Stop prevents the call and reports whether it did.
	Stop() bool
}

// sleep returns how long to sleep if there are so many ms: an hour at most, which is a Duration in any case.
func sleep(ms int64) time.Duration {
	return time.Duration(min(max(ms, 0), int64(time.Hour/time.Millisecond))) * time.Millisecond
}

// Host is the server that transports belong to. Its methods may be called by any goroutine.
type Host interface {
	Clock

	// Log is where transports write what they cannot tell anybody else.
	Log() *slog.Logger
	// KeepAlive is after how long without a word the system asks whether a client is still there; 0 is never.
	KeepAlive() time.Duration

	// Refuse returns what a new client is sent before its connection is closed, "" if it is welcome. remote says that
	// it is on another machine.
	Refuse(p Peer, remote bool) string
	// Open returns the session of a new client. wake has the transport call its Advance soon; it may be called by any
	// goroutine, under any lock, and takes no time.
	Open(p Peer, wake func()) Session
	// Prefetch is told of inputs that are about to be given to their sessions, in this order and at once. It may have
	// memory fetched that they will need, and must neither change anything nor wait. Nothing of the slice may be kept.
	Prefetch(batch []Input)

	// Commit is called between the inputs of a round of an event loop and the sending of their replies: what the
	// replies wait for (see Session.Sendable) is best done now, once for all of them and in the caller's goroutine.
	Commit()
	// CommitSoon is Commit where each client has goroutines of its own: somebody else is to do it.
	CommitSoon()
	// Stalled reports that sessions may wait for each other for long. Meanwhile event loops put off closing sessions
	// and their deadlines, until Loops.Resume is called.
	Stalled() bool
}

// Input is what a client has sent.
type Input struct {
	Session Session
	Data    []byte
}

// Session is one client as a state machine, which takes the bytes that the client sent and gives the bytes to send
// back. It does no I/O. One goroutine at a time calls its methods, and after Close none. Times are in ms since 1970.
type Session interface {
	// Input takes bytes that the client has sent; b is not kept. It returns with how many others a request came last,
	// and itself, as far as the session counts them. Input, Received, Advance and Close may wait for other sessions.
	Input(b []byte, now int64) (requests int)
	// ReadsAlone reports that the client is to be read from alone, because something long is on its way or the session
	// is closing.
	ReadsAlone() bool
	// Room returns where the next bytes should be read to, because they belong to something long that need not be moved
	// then; nil if there is nothing of that kind.
	Room() []byte
	// Received is Input for n bytes that were read to Room.
	Received(n int, now int64)

	// Advance goes on with what had to wait. The transport calls it after wake, and at the Deadline.
	Advance(now int64)
	// Deadline returns when Advance must be called at the latest; 0 if there is no need.
	Deadline() int64

	// Unsent returns how many bytes there are for the client.
	Unsent() int
	// Sendable returns how many of them, from the first on, may be sent now. After Recheck it may be more.
	Sendable() int
	// Output returns the bytes for the client, but for those that are lent.
	Output() []byte
	// SetOutput tells what is left to send of Output, if nothing is lent, and gives memory for what comes next.
	SetOutput(rest []byte)
	// Lend allows the session to leave long pieces of its output where they lie until they are sent. The transport
	// sends Pieces from now on, and calls Sent.
	Lend()
	// Pieces returns the first n bytes for the client as the pieces that they lie in.
	Pieces(n int) iter.Seq[[]byte]
	// Sent tells that the first n bytes for the client have been sent.
	Sent(n int)

	// GiveUp reports whether the connection must be closed although output waits: because there is too much of it, or
	// because it is to be closed at once. extra are bytes that SetOutput has taken and that are not sent yet; if it is
	// 0 the question is about what the session has itself.
	GiveUp(extra int) bool
	// Expired reports whether the connection must be closed because of how much time has passed. The transport asks
	// about once a second.
	Expired(now int64) bool
	// Closing reports that the connection must be closed once the output is sent.
	Closing() bool
	// Abort has the session be Closing without any output.
	Abort()
	// Close ends the session: the connection is closed, or about to be.
	Close()
}
