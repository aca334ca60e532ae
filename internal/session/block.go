package session

import (
	"math"
	"slices"
	"sync/atomic"
	"unsafe"

	"github.com/atomredis/atomredis/engine"
	"github.com/atomredis/atomredis/internal/buffers"
	"github.com/atomredis/atomredis/internal/clients"
	"github.com/atomredis/atomredis/internal/clients/acl"
	"github.com/atomredis/atomredis/internal/command"
	"github.com/atomredis/atomredis/resp"
)

// blocked is the state of a session that waits for keys. Most clients that block do so repeatedly, so a session
// reuses it.
type blocked struct {
	keyWait *keyWait
	ctx     command.Ctx // the Ctx of Try
	w       resp.Writer // takes the reply until the session's own goroutine fetches it
	// the latest time of the next call of try, in ms since 1970; 0 if there is none
	again  atomic.Int64
	try    func(c *command.Ctx, key []byte) bool // see Block
	empty  func(w *resp.Writer)
	cancel func(c *command.Ctx)
	took   int64  // ns that the handler took before it blocked
	origin origin // of the changes that Try makes
	// user has the permissions of the client when it blocked; nil if it has no account.
	user *acl.User
	// refused is the reason why the client is not served: its user has lost the permission meanwhile.
	refused acl.Verdict

	// Memory for arguments, which are usually small.
	args  [][]byte
	text  []byte // of args
	reply [192]byte
}

// Sizes of the memory that a session keeps for the arguments of the next blocking command.
const (
	keptArgs = 16
	keptText = 512 // bytes
)

// keyWait is the part of a blocked client that other goroutines may refer to. Each wait has its own, so that a late
// withdrawal cannot end the next wait.
type keyWait struct {
	waiter   engine.Waiter
	cmd      *command.Command
	deadline atomic.Int64 // ms since 1970; 0 waits for ever
	key      [1]string    // memory for the waiter's keys
	slot     int          // of the keys in cluster mode
	left     atomic.Bool  // it was withdrawn and its half-done work is undone: see migrate.Blocked
	onLeave  func()       // see Ctx.AwaitOr; may be nil
}

// Block implements Client. The guard is still held.
func (s *Session) Block(c *command.Ctx, b command.Block) {
	if s.blocked == nil {
		s.blocked = new(blocked)
	}
	state := s.blocked
	state.keyWait = &keyWait{cmd: c.Cmd, slot: s.hashSlot}
	state.try, state.empty, state.cancel = b.Try, b.Empty, b.Cancel
	state.origin.session, state.origin.Client = s, &s.modes.tracking
	if a := s.account.Load(); a != nil {
		state.user = a.User()
	}
	state.w = resp.Writer{Buf: state.reply[:0], Proto: c.W.Proto}
	state.args = slices.Grow(state.args, len(c.Args))[:len(c.Args)]
	n := sizeOf(c.Args)
	state.text = slices.Grow(state.text, n)
	copyArgs(state.args, state.text[:n], c.Args)
	state.ctx = command.Ctx{
		Args: state.args, W: &state.w, DB: c.DB, Client: s, Host: s.ctx.Host, Cmd: c.Cmd, Origin: c.Origin,
		NoBlock: true, Wait: state,
	}
	state.setTimeout(s.now, b.Timeout)
	state.again.Store(b.Again)
	w := &state.keyWait.waiter
	w.DB, w.OnRemoval, w.Shards, w.Client = c.DB, b.OnRemoval, b.Shards, state
	w.Keys = state.keyWait.key[:0]
	for _, k := range b.Keys {
		w.Keys = append(w.Keys, string(k))
	}
	s.beginWait(forKeys, 0)
	c.G.Wait(w)
	// A client that INFO counts as blocked must be visible to CLIENT LIST and CLIENT UNBLOCK.
	s.info.Lock()
	s.infoData.Blocked, s.infoData.keyWait = true, state.keyWait
	s.info.Unlock()
	s.shared.Counters.Blocked.Add(1)
}

// leave takes the client out of all queues. Nobody uses its state from then on.
func (s *Session) leave() {
	if left := s.blocked.keyWait.onLeave; left != nil {
		left()
	}
	s.shared.Keyspace.Leave(&s.blocked.keyWait.waiter, s.now)
	s.shared.Counters.Blocked.Add(-1)
}

// forget ends the wait of a client that has left. The reply that was made for it must not be used any more.
func (s *Session) forget() {
	b := s.blocked
	s.endWait(forKeys)
	clear(b.args)
	args, text := b.args[:0], b.text[:0]
	if cap(args) > keptArgs {
		args = nil
	}
	if cap(text) > keptText {
		text = nil
	}
	*b = blocked{args: args, text: text}
}

// setTimeout sets the deadline to timeout ms after now; timeout 0 means no deadline.
func (b *blocked) setTimeout(now, timeout int64) {
	switch {
	case timeout == 0:
		b.keyWait.deadline.Store(0)
	case now+timeout < now:
		b.keyWait.deadline.Store(math.MaxInt64) // the sum overflows
	default:
		b.keyWait.deadline.Store(now + timeout)
	}
}

// SetTimeout implements Wait.
func (b *blocked) SetTimeout(now, timeout int64) {
	b.setTimeout(now, timeout)
	sessionOf(&b.ctx).post(0) // its transport must read the deadline again
}

// TryAgain implements Wait.
func (b *blocked) TryAgain(at int64) {
	if was := b.again.Swap(at); was == 0 || at < was {
		sessionOf(&b.ctx).post(0) // its transport must read the deadline again
	}
}

// next returns the time of the session's next timer: the deadline, or the next call of try; 0 if there is none.
func (b *blocked) next() int64 {
	deadline, again := b.keyWait.deadline.Load(), b.again.Load()
	if again != 0 && (again < deadline || deadline == 0) {
		return again
	}
	return deadline
}

// putOff is the delay in ms of the next try if the client may not change anything now.
const putOff = 100

// tryAgain calls the Try of all clients that wait for the keys of this blocked client, at the time that its own Try
// has set. Its Try sets the next time.
func (s *Session) tryAgain() {
	b := s.blocked
	b.again.Store(s.now + putOff)
	if s.shared.Pause.Running(s.now) || s.shared.Restricted.Load() && s.shared.Host.Restriction(b.ctx.Cmd, b.ctx.Cmd.Flags, true) != "" {
		return
	}
	s.shared.Keyspace.ServeKeys(&b.keyWait.waiter, s.now)
}

// Try implements engine.WaitingClient. A panic in the callback must not reach the client that changed the key: the blocked
// client gets an error and is released.
func (b *blocked) Try(g *engine.Guard, key string) (done bool) {
	c := &b.ctx
	c.G = g
	sessionOf(c).beginAnswer()
	defer func() {
		if !done {
			sessionOf(c).endAnswer()
		}
	}()
	defer func() {
		if p := recover(); p != nil {
			sharedOf(c).logPanic(c.Cmd, p)
			b.w.Buf = append(b.w.Buf[:0], panicReply(p)...)
			done = true
		}
	}()
	// The changes are made for this client, not for the client that holds the guard.
	owner := g.Owner
	g.Owner = &b.origin
	defer func() {
		sharedOf(c).Tracking.Broadcast(&b.origin.Changer)
		g.Owner = owner
	}()
	changes := g.Changes()
	c.Journalled = false
	if b.refuse() {
		if done = true; b.cancel != nil {
			b.cancel(c)
		}
	} else {
		done = b.try(c, unsafe.Slice(unsafe.StringData(key), len(key))) // try does not change key
	}
	journalChanges(c, changes)
	return done
}

// refuse reports whether the client's user has lost the permission for the command since it blocked; then the reply is the
// error. Any goroutine that may serve the client may call it.
func (b *blocked) refuse() bool {
	s := sessionOf(&b.ctx)
	a := s.account.Load()
	if a == nil || a.User() == b.user {
		return false
	}
	v := a.User().CheckCommand(b.ctx.Cmd, b.ctx.Args, b.ctx.DB)
	if v.Reason == acl.Allowed {
		return false
	}
	b.refused = v
	b.w.Error(string(v.Refusal(command.FromClient, b.ctx.Cmd, clients.UserName(a))))
	return true
}

// beginAnswer makes later pushes follow the reply that a blocked command is about to get. Any goroutine may call it.
func (s *Session) beginAnswer() {
	s.box.mu.Lock()
	s.box.answered, s.box.replyAt = true, len(s.box.push)
	s.box.mu.Unlock()
}

// endAnswer notes that there is no reply yet.
func (s *Session) endAnswer() {
	s.box.mu.Lock()
	s.box.answered = false
	left := len(s.box.push) > 0 && !s.box.filled.Swap(true)
	s.box.mu.Unlock()
	if left {
		s.wake()
	}
}

// Served implements engine.WaitingClient.
func (b *blocked) Served() { sessionOf(&b.ctx).post(mailServed) }

// readBlockedMail acts on mail for a blocked client.
func (s *Session) readBlockedMail(m mail) {
	b := s.blocked
	if m&mailHeld != 0 {
		s.undoHeld()
	}
	switch {
	case m&mailServed != 0:
		s.delay.wasServed(s.shared, b.ctx.Cmd)
		s.endBlock(b.w.Buf)
	// In these cases CLIENT UNBLOCK has withdrawn the waiter.
	case m&mailUnblocked != 0:
		s.endEmpty()
	case m&mailError != 0:
		s.takeBack()
		s.endBlock([]byte("-UNBLOCKED client unblocked via CLIENT UNBLOCK\r\n"))
	case m&mailMoved != 0:
		s.endMoved()
	case m&mailRoleChanged != 0:
		s.takeBack()
		s.endBlock([]byte("-" + command.ErrRoleChanged + "\r\n"))
		s.closing = true
	}
}

// timeOut answers a blocked client whose deadline has passed, unless its wait already ends for another reason.
func (s *Session) timeOut() {
	if s.blocked.keyWait.waiter.Withdraw() {
		s.endEmpty()
	}
}

// endEmpty answers a blocked client as if its deadline had passed.
func (s *Session) endEmpty() {
	s.takeBack()
	w := resp.Writer{Proto: s.out.Proto}
	s.blocked.empty(&w)
	s.endBlock(w.Buf)
}

// takeBack undoes the half-done work of the blocked client, which must have been withdrawn before it was served.
func (s *Session) takeBack() {
	b := s.blocked
	if b.cancel == nil || s.shared.follows() {
		return // another server has the data now
	}
	c := &b.ctx
	c.G = &s.guard
	s.guard.Owner = &s.origin
	s.guard.Lock(s.shared.Keyspace, b.keyWait.waiter.AllShards(s.shared.Keyspace), s.now)
	changes := s.guard.Changes()
	c.Journalled = false
	b.cancel(c)
	journalChanges(c, changes)
	s.shared.Tracking.Broadcast(&s.origin.Changer)
	s.guard.Unlock()
}

// endBlock answers the blocked client and ends its wait. The session owns reply from now on.
func (s *Session) endBlock(reply []byte) {
	s.leave()
	b := s.blocked
	if b.refused.Reason != acl.Allowed {
		s.logVerdict(command.FromClient, b.ctx.Cmd, b.refused)
	}
	s.calls++
	s.examine(b.ctx.Cmd, b.ctx.Args, 1, b.took)
	if len(reply) > 0 && reply[0] == '-' {
		s.shared.CommandStats.Of(b.ctx.Cmd).Failed.Add(1)
		s.shared.Counters.Errors.Count(reply[1:])
	}
	switch {
	case s.modes.options.Replies == clients.ReplyOn && cap(reply) >= buffers.Large && s.out.Len() == 0:
		s.out.Buf, reply = reply, nil
	case s.modes.options.Replies == clients.ReplyOn:
		s.out.Raw(reply)
	default:
		s.modes.options.Replies.EndSkipped()
	}
	buffers.Put(reply)
	s.readPushes()
	s.out.Raw(b.origin.Later)
	s.forget()
}

// cancelBlocked ends the wait of a client that disconnects.
func (s *Session) cancelBlocked() {
	if s.blocked.keyWait.waiter.Withdraw() {
		s.takeBack()
	} else if s.box.has(mailHeld) {
		s.undoHeld()
	}
	s.leave()
	s.endWait(forKeys) // the goroutine that has withdrawn it may still use its state: see Session.Await
}

// Await implements command.Client.
func (s *Session) Await(c *command.Ctx, timeout int64, empty command.Reply, left func()) (finish func(command.Reply)) {
	s.Block(c, command.Block{Timeout: timeout, Empty: empty})
	state, keyWait := s.blocked, s.blocked.keyWait
	keyWait.onLeave = left
	return func(reply command.Reply) {
		if keyWait.waiter.Withdraw() { // so the state is still that of this wait
			if !state.refuse() {
				reply(&state.w)
			}
			s.post(mailServed)
		}
	}
}
