package session

import (
	"crypto/sha256"
	"iter"
	"sync"
	"sync/atomic"
	"time"

	"github.com/atomredis/atomredis/engine"
	"github.com/atomredis/atomredis/internal/clients/acl"
	"github.com/atomredis/atomredis/internal/command"
	"github.com/atomredis/atomredis/internal/commands/hashes"
	"github.com/atomredis/atomredis/internal/transport"
	"github.com/atomredis/atomredis/resp"
)

// Session is one client: a state machine that takes the bytes that the client sent and gives the bytes to send back. It
// does no I/O and never blocks; the transport that owns it does the first and waits for it. It is a transport.Session.
//
// Everything is used only by the goroutine of the transport that owns the session, except box, info, proto, account,
// states, and what is set once when the session starts. Others reach a session through post.
type Session struct {
	shared *Shared
	id     int64
	peer   transport.Peer
	// wake makes the transport call Advance soon. It may be called by any goroutine, under any lock.
	wake    func()
	started time.Time

	in           received
	pipeline     pipeline
	out          resp.Writer
	origin       origin // of the changes that the client makes
	guard        engine.Guard
	ctx          command.Ctx
	now          int64 // ms since 1970, refreshed with every batch
	pendingCalls pendingCalls
	exact        bool // commands are measured one by one; see timing
	unobserved   bool // its commands are not timed: see door.Session
	exactCalls   int  // how many commands are still to be measured one by one

	db            int
	authenticated atomic.Bool       // written by the session's goroutine
	digest        [sha256.Size]byte // of the password that the client has shown; zero if it has shown none
	forwarding    forwarding
	forwarded     bool // the client is one of another server of the group
	modes         modes
	tx            transaction
	wait          wait
	blocked       *blocked // of the wait for keys; nil before the first one
	closing       bool     // close as soon as out is written
	why           error    // the error for the program when the session closes; nil if it was killed
	// what Host.MakeRoom came to when the command that runs began; means something only while there is a limit
	room           Room
	throttledUntil float64  // when the client may execute the next command that needs memory, in ms since 1970
	fetching       fetching // of values that are not in memory
	offload        *offload // of the next command; nil as a rule
	states         []any    // what services keep with the client, by their IDs
	fieldsets      hashes.Fieldsets
	after          []func(now int64)
	door           *Door // nil if the client has not come through one
	delay          delayedOutput
	floodedSince   int64 // when the output was first seen beyond its soft limit, in ms since 1970; 0 if it is not beyond
	replyBuffer    replyBuffer
	lastCmd        *command.Command
	calls          int64         // commands that have ended, as CLIENT LIST counts them
	script         *scriptCaller // the script that runs, or ran last; nil before the first
	custom         *Caller       // the custom command that runs; nil if none does

	// proto is out.Proto for those who send pushes.
	proto atomic.Int32
	// account is the client's user; nil if the session may do everything, because it is the program's or the journal's.
	account atomic.Pointer[acl.Account]

	// In cluster mode hashSlot is the slot of the keys of the command that is running, or of the whole transaction;
	// cluster.NoSlot if none is known.
	hashSlot int

	box mailbox

	info     sync.Mutex
	infoData clientInfo // protected by info; refreshed after every batch, and output when some of it is sent
}

// Open registers a client. wake is as in Session.
func (sh *Shared) Open(peer transport.Peer, wake func()) *Session {
	s := &Session{
		shared: sh, peer: peer, wake: wake,
		started: sh.Keyspace.Clock().Now(),
	}
	s.now = s.started.UnixMilli()
	s.delay.epoch = sh.epoch()
	s.join()
	s.setProto(2)
	s.in.parser.MaxBulk, s.in.parser.Many = sh.MaxBulk(), sh.Relieve
	s.becomeDefault()
	s.ctx = command.Ctx{W: &s.out, G: &s.guard, Client: s, Host: sh.Host, Origin: command.FromClient}
	s.out.Buf = make([]byte, 0, minReplyBuffer)
	s.replyBuffer.resetAt = s.now
	s.states = sh.newStates()
	sh.Clients.add(s)
	d := &s.infoData.Info
	d.ID, d.Addr, d.Local, d.FD, d.Unix = s.id, peer.Addr, peer.Local, peer.FD, peer.Unix()
	d.Started = s.started.UnixMilli()
	s.publish()
	return s
}

// setProto chooses the version of the protocol.
func (s *Session) setProto(version int) {
	s.out.Proto = version
	s.proto.Store(int32(version))
	s.modes.subs.SetProtocol(version)
}

// ID returns the client's number, which no other client of this server has had.
func (s *Session) ID() int64 { return s.id }

// Advance reads what others left for the session and goes on with input that had to wait.
func (s *Session) Advance(now int64) {
	s.now = now
	s.readMail()
	s.checkTimers()
	s.processInput()
	s.delayOutput()
	s.publish()
}

// Output returns the bytes for the client, but for those that are lent. The first Sendable bytes of all may be sent.
func (s *Session) Output() []byte { return s.out.Buf }

// SetOutput sets the unsent rest of Output, if nothing is lent, and gives the buffer back for reuse.
func (s *Session) SetOutput(rest []byte) {
	size := len(s.out.Buf)
	s.out.Buf = rest
	s.sentOutput(size, size-len(rest))
}

// Lend allows to leave long values where they lie until they are sent. The transport sends Pieces from now on, and
// calls Sent.
func (s *Session) Lend() { s.out.Lends = true }

// Pieces returns the first n bytes for the client as the pieces that they lie in.
func (s *Session) Pieces(n int) iter.Seq[[]byte] { return s.out.Pieces(n) }

// Unsent returns how many bytes there are for the client, with those that are lent.
func (s *Session) Unsent() int { return s.out.Len() }

// Sent tells that the first n bytes for the client have been sent.
func (s *Session) Sent(n int) {
	size := len(s.out.Buf)
	s.out.Sent(n)
	s.sentOutput(size, n)
}

// sentOutput updates the counters after n bytes were taken from the output, whose buffer had size bytes before.
func (s *Session) sentOutput(size, n int) {
	s.modes.follower.Took(n)
	if s.forwarding.to != nil {
		s.forwarding.to.Took(n)
	}
	s.delay.sent(n)
	s.out.Buf = s.replyBuffer.sent(size, s.out.Buf)
	if s.replyBuffer.grew() {
		s.shared.Counters.Expands.Add(1)
	}
	s.out.Expected = min(s.replyBuffer.peak, maxExpected)
	s.info.Lock()
	s.infoData.Output = s.out.Len()
	s.infoData.Sent += int64(n)
	s.publishBuffer(&s.infoData)
	s.countMemory(&s.infoData)
	s.info.Unlock()
}

// Closing reports that the connection must be closed once the output is sent.
func (s *Session) Closing() bool { return s.closing }

// Abort makes the transport close the connection without sending anything more.
func (s *Session) Abort() {
	s.closing = true
	s.out.Truncate(0)
	s.delay.drop()
	s.in.input, s.in.long = nil, longArg{}
}

// Close ends the session: the client has gone. The transport must not use it any more.
func (s *Session) Close() {
	if s.out.Lends {
		s.out.Truncate(0) // ends its loans, so that values can be changed in place again
	}
	if s.isBlocked() {
		s.cancelBlocked()
	}
	if s.offload != nil {
		s.dropOffload()
	}
	if s.forwarding.to != nil {
		s.forwarding.to.Stop()
	}
	s.shared.tellGone(s)
	s.Unwatch()
	s.modes.subs.UnsubscribeAll()
	s.modes.tracking.Stop()
	if s.modes.monitor {
		s.shared.monitors.remove(s)
	}
	s.shared.Followed.Leave(&s.modes.follower)
	s.shared.Clients.remove(s)
}

// sharedOf returns what the client of a command shares with others.
func sharedOf(c *command.Ctx) *Shared { return sessionOf(c).shared }

// sessionOf returns the client of a command that has one.
func sessionOf(c *command.Ctx) *Session { return c.Client.(*Session) }

// Kill has the session closed at once. Any goroutine may call it, under any lock.
func (s *Session) Kill() { s.post(mailKill) }

// DB returns the database that the client has selected.
func (s *Session) DB() int { return s.db }
