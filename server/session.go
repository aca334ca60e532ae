package server

import (
	"bytes"
	"iter"
	"sync"
	"sync/atomic"
	"time"

	"github.com/atomredis/atomredis/command"
	"github.com/atomredis/atomredis/door"
	"github.com/atomredis/atomredis/engine"
	"github.com/atomredis/atomredis/internal/buffers"
	"github.com/atomredis/atomredis/resp"
)

// Session is one client: a state machine that takes the bytes that the client sent and gives the bytes to send back. It
// does no I/O and never blocks; the transport that owns it does the first and waits for it.
//
// Everything is used only by the goroutine of the transport that owns the session, except box, info, proto, account, states, and what
// is set once when the session starts. Others reach a session through post.
type Session struct {
	srv  *Server
	id   int64
	peer Peer
	// wake makes the transport call Advance soon. It may be called by any goroutine, under any lock.
	wake    func()
	started time.Time

	parser     resp.Parser
	input      []byte // bytes that do not make a whole command yet, or that wait for the client to be unblocked
	long       longArg
	owned      ownedArg
	out        resp.Writer
	origin     origin // of the changes that the client makes
	guard      engine.Guard
	ctx        command.Ctx
	executing  int   // bytes of the command that is being executed
	now        int64 // ms since 1970, refreshed with every batch
	tally      tally
	exact      bool // commands are measured one by one; see timing
	suspicious int  // how many commands are still to be measured one by one

	db            int
	authenticated bool
	ahead         *lookahead       // what prepare has parsed for Input
	next          *command.Command // the command behind the one that is executed; nil if it is not known
	depth         int              // with how many others a command came last, and itself; no more than maxAhead
	modes
	tx           transaction
	blocked      *blocked
	waits        *blocked // what blocked is while the client waits; nil before the first time
	pausedUntil  int64    // the session waits for CLIENT UNPAUSE or this time; 0 if it does not
	closing      bool     // close as soon as out is written
	why          error    // what a program is told when the session closes; nil if it was killed
	outOfMemory  bool     // when the command that runs began; means something only while there is a limit
	states       []any    // what services keep with the client, by their IDs
	after        []func(now int64)
	door         *openDoor // nil if the client has not come through one
	delay        delayedOutput
	floodedSince int64 // when the output was first seen beyond its soft limit, in ms since 1970; 0 if it is not beyond
	replyBuffer  replyBuffer
	lastCmd      *command.Command
	script       *scriptCaller // the script that runs, or ran last; nil before the first
	custom       *Caller       // the custom command that runs; nil if none does
	name         string
	libName      string
	libVersion   string

	// proto is out.Proto for those who send pushes.
	proto atomic.Int32
	// account is the client's user; nil if the session may do everything, because it is the program's or the journal's.
	account atomic.Pointer[account]

	slot int // place in the transport's timers

	// In cluster mode hashSlot is the slot of the keys of the command that is running, or of the whole transaction;
	// noSlot if none is known.
	hashSlot int

	box mailbox

	info     sync.Mutex
	infoData clientInfo // protected by info; refreshed after every batch, and output when some of it is sent
}

// Peer tells where a client comes from.
type Peer struct {
	// Addr and Local are the two ends as CLIENT LIST shows them: "ip:port", or the path of the Unix socket with ":0".
	Addr, Local string
	// FD is the number of the socket's file descriptor, 0 if there is none.
	FD int
}

// mailbox is where other goroutines leave things for a session.
type mailbox struct {
	mu     sync.Mutex
	push   []byte // out-of-band messages in the client's protocol
	mail   mail   // what else happened
	filled atomic.Bool

	// answered says that a blocked command has its reply, or is about to: it belongs behind the first replyAt bytes of push.
	answered bool
	replyAt  int
}

// mail is a set of things that can happen to a session from outside.
type mail uint8

const (
	mailServed      mail = 1 << iota // the blocked command has its reply
	mailUnblocked                    // CLIENT UNBLOCK … TIMEOUT
	mailError                        // CLIENT UNBLOCK … ERROR
	mailResume                       // the pause has ended
	mailKill                         // close at once
	mailSlow                         // with mailKill: because too much output waits
	mailRoleChanged                  // the blocked command must not run: the server has become a replica
)

// newSession registers a client. wake is as in Session.
func (srv *Server) newSession(peer Peer, wake func()) *Session {
	s := &Session{
		srv: srv, peer: peer, wake: wake,
		started: srv.ks.Clock().Now(),
	}
	s.now = s.started.UnixMilli()
	s.origin.session = s
	s.setProto(2)
	s.parser.MaxBulk = srv.MaxBulk()
	s.becomeDefault()
	s.ctx = command.Ctx{W: &s.out, G: &s.guard, Client: s, Host: srv, Origin: command.FromClient}
	s.out.Buf = make([]byte, 0, minReplyBuffer)
	s.replyBuffer.resetAt = s.now
	s.states = srv.newStates()
	srv.clients.add(s)
	s.publish()
	return s
}

// setProto chooses the version of the protocol.
func (s *Session) setProto(version int) {
	s.out.Proto = version
	s.proto.Store(int32(version))
}

// ID returns the client's number, which no other client of this server has had.
func (s *Session) ID() int64 { return s.id }

// Input takes bytes that the client sent, at time now in ms since 1970, and executes the commands that they complete.
// b is not kept.
func (s *Session) Input(b []byte, now int64) {
	s.now = now
	s.parser.MaxBulk = s.srv.MaxBulk()
	s.srv.stats.bytesIn.Add(int64(len(b)))
	if s.box.filled.Load() {
		s.readMail()
	}
	s.owned.bulky = false
	if s.long.size > 0 {
		b = s.receiveLong(b)
	}
	switch {
	case len(b) == 0:
	case len(s.input) > 0 || s.waiting():
		s.input = append(buffers.Grow(s.input, len(b)), b...)
		s.processInput()
	default:
		if rest := s.process(b); len(rest) > 0 {
			s.input = append(buffers.Grow(s.input, len(rest)), rest...)
		}
	}
	s.checkInput()
}

// Bulky reports that the last input had a long argument, and that the next one may have: the less of it is read before Room can tell where to, the less
// is copied.
func (s *Session) Bulky() bool { return s.owned.bulky }

// readsAlone reports that what the client sends next should not be read together with what others send, because Room, Bulky or Closing has something to say to it.
func (s *Session) readsAlone() bool { return s.closing || s.owned.bulky || len(s.Room()) > 0 }

// prepare parses what is about to be the Input, unless it has already or there is some left from before, and appends to hints what it will use if
// it is a single command. It executes nothing. Input must be the next that is called.
func (s *Session) prepare(b []byte, hints []engine.Hint) []engine.Hint {
	if s.ahead != nil || len(s.input) > 0 || s.waiting() || s.closing || !s.authenticated {
		return hints
	}
	s.parser.MaxBulk = s.srv.MaxBulk()
	s.ahead = lookaheads.Get().(*lookahead)
	s.parseAhead(s.ahead, b)
	if len(s.ahead.commands) != 1 {
		return hints // process sees to a pipeline
	}
	return append(hints, s.ahead.hints...)
}

// Room returns where the next bytes of a long command should be read to, so that they need not be moved; nil if there is no such
// command. Received tells how many there are.
func (s *Session) Room() []byte {
	if room := s.long.room(); len(room) > 0 {
		return room
	}
	n := s.parser.Missing(len(s.input))
	if n < minDirect || s.long.size > 0 || s.waiting() {
		return nil
	}
	// What the client claims it will send gets memory as it does.
	n = min(n, max(directStep, len(s.input)))
	s.input = buffers.Grow(s.input, n)
	return s.input[len(s.input) : len(s.input)+n]
}

// Received is Input for n bytes that were read to Room.
func (s *Session) Received(n int, now int64) {
	s.now = now
	s.srv.stats.bytesIn.Add(int64(n))
	if s.long.size > 0 {
		s.long.received(n)
	} else {
		s.input = s.input[:len(s.input)+n]
	}
	if s.box.filled.Load() {
		s.readMail()
	}
	if s.long.size == 0 && s.parser.Missing(len(s.input)) == 0 {
		s.processInput()
	}
	s.checkInput()
}

const (
	minDirect  = 16 << 10 // bytes that must be missing for them to be read to where they stay
	directStep = 1 << 20  // bytes that a client gets room for before it has sent that much
)

// checkInput ends what Input does.
func (s *Session) checkInput() {
	s.startLong()
	if len(s.input)+s.long.arrived() > s.inputLimit() {
		s.srv.stats.inputTooLong.Add(1)
		s.srv.log.Warn("closing client that reached the query buffer limit", "client", s.id, "addr", s.peer.Addr)
		s.abort()
	}
	s.delayOutput()
	s.publish()
}

// Advance reads what others left for the session and goes on with input that had to wait.
func (s *Session) Advance(now int64) {
	s.now = now
	s.readMail()
	s.checkTimers()
	s.processInput()
	s.delayOutput()
	s.publish()
}

// Deadline returns when Advance must be called at the latest, in ms since 1970; 0 if there is no need.
func (s *Session) Deadline() int64 {
	if s.blocked != nil {
		return s.blocked.next()
	}
	return s.pausedUntil
}

// Output returns the bytes for the client, but for those that are lent. The first Sendable bytes of all may be sent.
func (s *Session) Output() []byte { return s.out.Buf }

// SetOutput tells what is left to send of Output, if nothing is lent, and gives the buffer back for reuse.
func (s *Session) SetOutput(rest []byte) {
	size := len(s.out.Buf)
	s.out.Buf = rest
	s.sentOutput(size, size-len(rest))
}

// Lend allows to leave long values where they lie until they are sent. The transport sends Pieces from now on, and calls Sent.
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

// sentOutput does what is to be done when n bytes have been taken from the output. There were size bytes in its buffer before.
func (s *Session) sentOutput(size, n int) {
	s.follower.feed.took(n)
	s.delay.sent(n)
	s.out.Buf = s.replyBuffer.sent(size, s.out.Buf)
	if s.replyBuffer.grew() {
		s.srv.stats.expands.Add(1)
	}
	s.out.Expected = min(s.replyBuffer.peak, maxExpected)
	s.info.Lock()
	s.infoData.output = s.out.Len()
	s.publishBuffer(&s.infoData)
	s.countMemory(&s.infoData)
	s.info.Unlock()
}

// Closing reports that the connection must be closed once the output is sent.
func (s *Session) Closing() bool { return s.closing }

// abort makes the transport close the connection without sending anything more.
func (s *Session) abort() {
	s.closing = true
	s.out.Truncate(0)
	s.delay.drop()
	s.input, s.long = nil, longArg{}
}

// Close ends the session: the client has gone. The transport must not use it any more.
func (s *Session) Close() {
	if s.out.Lends {
		s.out.Truncate(0) // so that nobody has to leave values as they are for it
	}
	if s.blocked != nil {
		s.cancelBlocked()
	}
	s.srv.tellGone(s)
	s.unwatchAll()
	s.unsubscribeAll()
	s.stopTracking()
	if s.monitor {
		s.srv.monitors.remove(s)
	}
	if s.follower.following.Load() {
		s.srv.unfollow(s)
	}
	s.srv.clients.remove(s)
}

// waiting reports that commands must not be executed now.
func (s *Session) waiting() bool { return s.blocked != nil || s.pausedUntil != 0 }

func (s *Session) processInput() {
	if len(s.input) == 0 || s.long.size > 0 || s.waiting() {
		return
	}
	rest := s.process(s.input)
	s.input = s.input[:copy(s.input, rest)]
	if len(s.input) == 0 && cap(s.input) >= maxInput {
		buffers.Put(s.input)
		s.input = nil
	}
}

const (
	maxInput = 64 << 10 // bytes of memory that a session keeps for its input
	maxAhead = 16       // how many commands are parsed before they are executed
	maxWarm  = 256      // how many keys of them are warmed: what is fetched must still be in the cache when it is used
)

// lookahead is a stretch of parsed commands that are about to be executed.
type lookahead struct {
	commands []parsedCommand
	args     [][]byte      // of all commands
	hints    []engine.Hint // what the commands will use
	template resp.Template // of the commands that are being parsed

	more bool  // there may be another command behind them
	err  error // a violation of the protocol behind them
}

// parsedCommand is one command as the table and the parser have it.
type parsedCommand struct {
	cmd, container *command.Command
	args           [][]byte
	size           int // in bytes
}

// lookaheads are shared by all sessions: one is needed only while input is processed.
var lookaheads = sync.Pool{New: func() any {
	return &lookahead{args: make([][]byte, 0, 32*maxAhead)}
}}

// process executes the commands at the start of b and returns what is left of it.
func (s *Session) process(b []byte) []byte {
	s.flushTally()
	ahead := s.ahead // of prepare
	if s.ahead = nil; ahead == nil {
		ahead = lookaheads.Get().(*lookahead)
		s.parseAhead(ahead, b)
	}
	s.depth = len(ahead.commands)
	defer lookaheads.Put(ahead)
	defer s.endCommands() // before ahead, in which the arguments lie, is given back
	for len(b) > 0 && !s.closing {
		if !s.authenticated && s.floodsUnauthenticated() {
			s.abort()
			return nil
		}
		if len(ahead.hints) > 1 && !s.srv.scriptBusy() {
			s.srv.ks.TryWarm(s.db, ahead.hints)
		}
		for i := range ahead.commands {
			if s.srv.ending.Load() {
				s.endGuard()
				s.closing = true
				return nil
			}
			p := &ahead.commands[i]
			s.executing = p.size
			if s.next = nil; i+1 < len(ahead.commands) {
				s.next = ahead.commands[i+1].cmd
			}
			done := len(p.args) == 0 || s.execute(p.cmd, p.container, p.args)
			s.executing = 0
			if s.publishing && s.next != p.cmd {
				s.endPublishing()
			}
			if !done {
				s.parser.Reset()
				return b // it must wait its turn
			}
			if len(s.after) > 0 {
				s.runAfter()
			}
			if s.closing {
				return nil
			}
			b = b[p.size:]
			if s.blocked != nil {
				s.parser.Reset()
				return b
			}
		}
		if ahead.err != nil {
			s.out.Error("ERR " + ahead.err.Error())
			s.closing = true
			return nil
		}
		if !ahead.more {
			break
		}
		s.flushTally() // before the arguments are overwritten
		s.parseAhead(ahead, b)
	}
	return b
}

// endCommands ends what was kept of commands that have been executed: nobody looks at their arguments any more.
func (s *Session) endCommands() {
	s.next = nil
	if s.publishing {
		s.endPublishing()
	}
	s.flushTally()
	if len(s.owned.kept) > 0 || len(s.owned.spare) > 0 {
		s.releaseOwned()
	}
}

// mayShareGuard reports whether the guard of a command may also be that of cmd behind it. It must not be for followers, who would be sent
// both as one transaction.
func (s *Session) mayShareGuard(cmd *command.Command) bool {
	return cmd != nil && cmd.Flags&(command.ReadOnly|command.Write) != 0 &&
		cmd.Flags&(command.OwnGuard|command.WholeKeyspace) == 0 && !s.tx.active && !s.srv.followed.active.Load()
}

// parseAhead parses a stretch of commands at the start of b.
func (s *Session) parseAhead(ahead *lookahead, b []byte) {
	depth := maxAhead
	if !s.authenticated {
		depth = 1 // the limits change with authentication
		s.parser.Unauthenticated = s.mustAuthenticate()
	}
	ahead.commands, ahead.hints = ahead.commands[:0], ahead.hints[:0]
	used := 0
	var last *command.Command // the one found last, by the name it was called; the template's, if there is one
	var name []byte
	ahead.template.Forget()
	for len(ahead.commands) < depth {
		room := ahead.args[used:used:cap(ahead.args)]
		args, n, alike := ahead.template.Next(b, room)
		if !alike {
			var err error
			if args, n, err = s.parser.Next(b, room); err != nil || n == 0 {
				ahead.more, ahead.err = false, err
				return
			}
		}
		p := parsedCommand{args: args, size: n}
		switch {
		case len(args) == 0:
		case alike:
			p.cmd = last
		case last != nil && bytes.Equal(args[0], name):
			p.cmd = last // pipelines repeat themselves
			ahead.template.Learn(b, n, args)
		default:
			called := args[0] // which lookup replaces if the command is renamed
			if p.cmd, p.container = s.srv.table.Lookup(args); p.cmd != nil && p.cmd.Parent == nil && p.cmd.Subs == nil && &called[0] == &args[0][0] {
				last, name = p.cmd, called
				ahead.template.Learn(b, n, args)
			}
		}
		if used += len(args); used > cap(ahead.args) {
			used = cap(ahead.args) // they did not fit and have memory of their own
		}
		if p.cmd != nil && len(args) > 1 && len(ahead.hints) < maxWarm {
			ahead.hints = p.cmd.AppendHints(ahead.hints, args)
		}
		ahead.commands = append(ahead.commands, p)
		b = b[n:]
	}
	ahead.more, ahead.err = true, nil
}

// post leaves push bytes and mail for the session and wakes its transport. Any goroutine may call it, under any lock.
func (s *Session) post(m mail, push ...[]byte) {
	s.box.mu.Lock()
	for _, b := range push {
		s.box.push = append(buffers.Grow(s.box.push, len(b)), b...)
	}
	s.box.mail |= m
	first := !s.box.filled.Swap(true)
	size := len(s.box.push)
	s.box.mu.Unlock()
	if first || m&mailKill != 0 {
		s.wake()
	}
	if m&mailKill == 0 && size > 0 && s.srv.overLimit(s, size) {
		s.post(mailKill | mailSlow)
	}
}

// readMail takes what others left.
func (s *Session) readMail() {
	if !s.box.filled.Load() {
		return
	}
	s.box.mu.Lock()
	m := s.box.mail
	s.box.mail = 0
	s.box.filled.Store(false)
	if s.box.answered {
		s.takePushes(s.box.replyAt)
	} else {
		s.takePushes(len(s.box.push))
	}
	s.box.mu.Unlock()

	if m&mailKill != 0 {
		if m&mailSlow != 0 {
			s.why = door.ErrSlow
		}
		s.abort()
		return
	}
	if m&mailResume != 0 {
		s.pausedUntil = 0
	}
	if s.blocked != nil {
		s.readBlockedMail(m)
	}
}

// takePushes moves the first n bytes of what was pushed to the output. The mailbox is locked.
func (s *Session) takePushes(n int) {
	box := &s.box
	switch {
	case n == 0:
	case n == len(box.push) && len(s.out.Buf) == 0:
		s.out.Buf, box.push = box.push, s.out.Buf
		s.replyBuffer.own = nil // it may be the mailbox's now
	default:
		s.out.RawAside(box.push[:n])
		box.push = box.push[:copy(box.push, box.push[n:])]
	}
	box.replyAt -= n
	if len(box.push) == 0 && cap(box.push) > 64*1024 {
		buffers.Put(box.push)
		box.push = nil
	}
}

// readPushes takes all that was pushed, behind a reply: a command's own messages, and those of others that came before or meanwhile.
func (s *Session) readPushes() {
	s.box.mu.Lock()
	s.box.answered = false
	s.takePushes(len(s.box.push))
	s.box.mu.Unlock()
}

// checkTimers ends waits whose time is up, and looks after clients that wait for a time to come.
func (s *Session) checkTimers() {
	if s.pausedUntil != 0 && s.pausedUntil <= s.now {
		s.pausedUntil = 0
	}
	if s.blocked != nil {
		if at := s.blocked.again.Load(); at != 0 && at <= s.now {
			s.tryAgain()
		}
		if at := s.blocked.wait.deadline.Load(); at != 0 && at <= s.now {
			s.timeOut()
		}
	}
}

// SetSlot implements expiry.Item for the transport's timers.
func (s *Session) SetSlot(slot int) { s.slot = slot }

// Slot implements expiry.Item.
func (s *Session) Slot() int { return s.slot }
