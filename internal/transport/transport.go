package transport

import (
	"crypto/x509"
	"iter"
	"log/slog"
	"net"
	"net/netip"
	"strings"
	"sync/atomic"
	"time"
)

// Transport moves bytes between connections and sessions.
type Transport interface {
	// Listen accepts clients in the background. stop ends that at once, closes l and frees its address.
	Listen(l net.Listener) (stop func(), err error)
	// Recheck makes the transport call Sendable again for sessions with output that could not be sent. Any goroutine
	// may call it.
	Recheck()
	// Close disconnects all clients and returns when no goroutine of the transport is left. Its listeners must be
	// closed first.
	Close()
}

// Loops is the Transport of event loops, which only Linux has. A loop serves many clients with one goroutine.
type Loops interface {
	Transport
	// Relieve lets other goroutines continue the loops that are inside a session. Any goroutine may call it,
	// repeatedly while sessions take long; a session may call it for itself.
	Relieve()
	// Resume lets the loops do the work that they have delayed while the host was stalled.
	Resume()
	// ProcessorTime returns the exact processor time of the loops. It costs little.
	ProcessorTime() time.Duration
	// ProcessorTimes is ProcessorTime with its parts. It reads files.
	ProcessorTimes() ProcessorTimes
	// Together reports whether the loops make several system calls at once, through an io_uring.
	Together() bool
}

// ProcessorTimes are processor times of threads. Total is the exact sum; none of the three ever decreases.
type ProcessorTimes struct{ System, User, Total time.Duration }

// Counters count the work of a transport, or of one event loop. Any goroutine may read them.
type Counters struct {
	Clients       atomic.Int64 // that are connected now
	Reads, Writes atomic.Int64 // system calls; calls made together count separately
	Sent          atomic.Int64 // bytes
	Rounds, Busy  atomic.Int64 // rounds of event loops, and those in which clients sent something
}

// Sums are sums of Counters.
type Sums struct{ Reads, Writes, Sent, Rounds, Busy int64 }

// Sum returns the sums of the counters of some loops.
func Sum(loops []Counters) (sum Sums) {
	for i := range loops {
		c := &loops[i]
		sum.Reads += c.Reads.Load()
		sum.Writes += c.Writes.Load()
		sum.Sent += c.Sent.Load()
		sum.Rounds += c.Rounds.Load()
		sum.Busy += c.Busy.Load()
	}
	return sum
}

// Reset sets the counters to zero, but for the number of clients.
func (c *Counters) Reset() {
	for _, n := range []*atomic.Int64{&c.Reads, &c.Writes, &c.Sent, &c.Rounds, &c.Busy} {
		n.Store(0)
	}
}

// LoopOptions are the options of event loops.
type LoopOptions struct {
	Loops int // the number of loops, each with a thread of its own
	// IOUring makes them make several system calls at once if the system allows that.
	IOUring bool
	// SpareProcessors means that GOMAXPROCS exceeds the need of the rest of the program by Loops. Then a loop keeps
	// its processor while it waits, up to ten milliseconds, which makes it faster.
	SpareProcessors bool
	Counters        []Counters // as many as loops, one for each
}

// Peer describes the two ends of a client's connection.
type Peer struct {
	// Addr and Local are the two ends: "ip:port", or the path of the Unix socket with ":0".
	Addr, Local string
	// FD is the number of the socket's file descriptor, 0 if the transport does not know it.
	FD int
}

// Embedded is the Peer of clients that are part of the program and have a connection in memory.
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

// Clock is the source of time of transports.
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

// sleep returns ms as a Duration, at most an hour so that it cannot overflow.
func sleep(ms int64) time.Duration {
	return time.Duration(min(max(ms, 0), int64(time.Hour/time.Millisecond))) * time.Millisecond
}

// Host is the server that transports belong to. Its methods may be called by any goroutine.
type Host interface {
	Clock

	// Log is the log of transports.
	Log() *slog.Logger
	// KeepAlive is the time without input after which the system probes a client; 0 means never.
	KeepAlive() time.Duration

	// Refuse returns the text that a refused client gets before its connection is closed, "" if the client is
	// accepted. remote is set if it is on another machine.
	Refuse(p Peer, remote bool) string
	// Open returns the session of a new client. wake makes the transport call its Advance soon; it may be called by
	// any goroutine, under any lock, and returns at once.
	Open(p Peer, wake func()) Session
	// Prefetch is called with inputs that are about to be given to their sessions, in this order. It may fetch the
	// memory that they will need, and must neither change anything nor wait. It must not keep the slice or its
	// content.
	Prefetch(batch []Input)

	// Commit is called between the inputs of a round of an event loop and the sending of their replies: work that
	// the replies wait for (see Session.Sendable) is best done now, once for all of them and in the caller's
	// goroutine.
	Commit()
	// CommitSoon is Commit for clients with goroutines of their own: another goroutine does the work.
	CommitSoon()
	// Stalled reports whether sessions may wait long for each other. Then event loops delay closing sessions and
	// their deadlines until Loops.Resume is called.
	Stalled() bool
}

// Input is bytes from a client.
type Input struct {
	Session Session
	Data    []byte
}

// Session is one client as a state machine, which takes the bytes that the client sent and gives the bytes to send
// back. It does no I/O. One goroutine at a time calls its methods, and none after Close. Times are in ms since 1970.
type Session interface {
	// Identify tells the session the verified certificate of its client, before any input. Only clients with TLS that
	// have shown one are identified.
	Identify(cert *x509.Certificate)
	// Input takes bytes that the client has sent; b is not kept. It returns how many requests the last batch had, if
	// the session counts them. Input, Received, Advance and Close may wait for other sessions.
	Input(b []byte, now int64) (requests int)
	// ReadsAlone reports whether the client needs a read of its own, because a long argument is arriving or the
	// session is closing.
	ReadsAlone() bool
	// Room returns the memory into which the next bytes should be read, because they belong to a long argument that
	// then need not be moved; nil if there is none.
	Room() []byte
	// Received is Input for n bytes that were read to Room.
	Received(n int, now int64)

	// Advance continues work that had to wait. The transport calls it after wake, and at the Deadline.
	Advance(now int64)
	// Deadline returns the latest time of the next call of Advance; 0 if there is none.
	Deadline() int64

	// Unsent returns how many bytes wait for the client.
	Unsent() int
	// Sendable returns how many of them, from the first on, may be sent now. After Recheck it may be more.
	Sendable() int
	// Output returns the bytes for the client without those that are lent.
	Output() []byte
	// SetOutput sets the unsent rest of Output, if nothing is lent, and provides memory for the next output.
	SetOutput(rest []byte)
	// Lend allows the session to lend long pieces of its output instead of copying them. The transport must then
	// send Pieces, and call Sent.
	Lend()
	// Pieces returns the first n bytes for the client as they are in memory, in pieces.
	Pieces(n int) iter.Seq[[]byte]
	// Sent records that the first n bytes for the client have been sent.
	Sent(n int)

	// GiveUp reports whether the connection must be closed although output waits: because there is too much of it,
	// or because it is to be closed at once. extra is the number of bytes that the transport has taken from the
	// session and not sent yet; if it is 0 the session's own output is counted.
	GiveUp(extra int) bool
	// Expired reports whether the connection must be closed because a time limit has passed. The transport calls it
	// about once a second.
	Expired(now int64) bool
	// Closing reports whether the connection must be closed once the output is sent.
	Closing() bool
	// Abort makes the session Closing and drops its output.
	Abort()
	// Close ends the session: the connection is closed, or about to be.
	Close()
}
