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

// Session is one client: a state machine that takes the bytes that the client sent and gives the bytes to send back.
// It does no I/O and never blocks: its transport sends, receives and waits. It is a transport.Session.
//
// Only the goroutine of the session's transport uses its fields, except box, info, proto, account, states, and the
// fields that are set once when the session starts. Other goroutines reach a session through post.
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
	forwarded     bool // another server of the group forwards the client's commands
	modes         modes
	tx            transaction
	wait          wait
	blocked       *blocked // of the wait for keys; nil before the first one
	closing       bool     // close as soon as out is written
	sentAway      bool     // close as soon as the client has its replies
	why           error    // the error for the program when the session closes; nil if it was killed
	// the result of Host.MakeRoom at the start of the running command; valid only while there is a limit
	room           Room
	throttledUntil float64  // when the client may execute the next command that needs memory, in ms since 1970
	fetching       fetching // of values that are not in memory
	offload        *offload // of the next command; usually nil
	states         []any    // the services' state for the client, by their IDs
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

	// proto is a copy of out.Proto for the goroutines that send pushes.
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

// Advance acts on mail and timers, and continues with input that had to wait.
func (s *Session) Advance(now int64) {
	s.now = now
	s.readMail()
	s.checkTimers()
	s.processInput()
	s.delayOutput()
	s.publish()
}

// Output returns the bytes for the client without those that are lent. The first Sendable bytes of all may be sent.
func (s *Session) Output() []byte { return s.out.Buf }

// SetOutput sets the unsent rest of Output, if nothing is lent, and gives the buffer back for reuse.
func (s *Session) SetOutput(rest []byte) {
	size := len(s.out.Buf)
	s.out.Buf = rest
	s.sentOutput(size, size-len(rest))
}

// Lend allows replies to lend long values instead of copying them. The transport must then send Pieces, and call
// Sent.
func (s *Session) Lend() { s.out.Lends = true }

// Pieces returns the first n bytes for the client as they are in memory, in pieces.
func (s *Session) Pieces(n int) iter.Seq[[]byte] { return s.out.Pieces(n) }

// Unsent returns how many bytes wait for the client, including those that are lent.
func (s *Session) Unsent() int { return s.out.Len() }

// Sent records that the first n bytes for the client have been sent.
func (s *Session) Sent(n int) {
	size := len(s.out.Buf)
	s.out.Sent(n)
	s.sentOutput(size, n)
}

// sentOutput updates the counters after n bytes were taken from the output, whose buffer had size bytes before.
func (s *Session) sentOutput(size, n int) {
	s.modes.follower.Took(n)
	s.forwarding.took(n)
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

// Close ends the session of a client that has disconnected. The transport must not use it any more.
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
	s.forwarding.each(Forwarder.Stop)
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

// sharedOf returns the Shared of a command's client.
func sharedOf(c *command.Ctx) *Shared { return sessionOf(c).shared }

// sessionOf returns the session of a command, which must have a client.
func sessionOf(c *command.Ctx) *Session { return c.Client.(*Session) }

// Kill closes the session at once. Any goroutine may call it, under any lock.
func (s *Session) Kill() { s.post(mailKill) }

// DB returns the database that the client has selected.
func (s *Session) DB() int { return s.db }
