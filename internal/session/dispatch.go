package session

import (
	"strings"

	"github.com/atomredis/atomredis/engine"
	"github.com/atomredis/atomredis/internal/clients"
	"github.com/atomredis/atomredis/internal/command"
)

// execute executes one command of the client; cmd and container are the result of Table.Lookup. The session must not
// be waiting. execute reports false if the session waits now before the command can be executed: nothing has
// happened then, and execute is called again when the wait has ended.
func (s *Session) execute(cmd, container *command.Command, args [][]byte) bool {
	sh := s.shared
	if s.forwarding.allowed && (s.forwarding.to != nil || sh.Forwards.Load() || s.forwarding.always) {
		if done, taken := s.forward(cmd, args); taken {
			return done
		}
	}
	mark, before := len(s.out.Buf), s.out.Len()
	skip := s.modes.options.Replies.Begin()

	switch e := s.admit(s.ctx.Origin, cmd, container, args); {
	case cmd == nil && isHTTP(args[0]):
		s.shared.Log.Warn("closing a client that speaks HTTP: possibly a cross-protocol attack", "addr", s.peer.Addr)
		s.Abort()
	case sh.Migrations.Holding() && s.heldBack(e):
	case e != "":
		s.reject(cmd, e)
	case sh.Pause.active.Load() && s.pausedBy(cmd, args):
	case s.mustWait(cmd, args):
	case s.tx.active && !cmd.Immediate:
		s.enqueue(cmd, args)
	case s.shared.Tiered.Load():
		s.callTiered(cmd, args)
	default:
		s.call(cmd, args)
	}
	if s.wait.reason&forExecution != 0 {
		s.endGuard()
		if s.offload != nil {
			s.startOffload(args)
		}
		return false
	}
	if s.offload != nil {
		s.endGuard()
		s.dropOffload()
	}
	if !s.sharesGuard() {
		s.endGuard()
	}
	if reply := s.out.Len() - before; int64(max(reply, s.pipeline.executing)) >= sh.Timing.large.Load() {
		s.logLarge(cmd, args, s.pipeline.executing, reply)
	}

	if skip && s.modes.options.Replies != clients.ReplyOn {
		s.out.Truncate(mark)
		if !s.isBlocked() { // otherwise the reply is still to come
			s.modes.options.Replies.EndSkipped()
		}
	}
	if o := &s.origin; o.pushed || len(o.Later) > 0 {
		if o.pushed && !s.isBlocked() {
			o.pushed = false
			s.readPushes()
		}
		s.out.Raw(o.Later)
		o.Later = o.Later[:0]
	}
	return true
}

// sharesGuard reports whether the guard of the command that has just been executed may be the next one's too. Most
// commands of a pipeline take the same shards, and releasing and taking them again costs up to a twentieth of the
// time of a short command.
func (s *Session) sharesGuard() bool {
	return s.mayShareGuard(s.pipeline.next) && s.guard.Quiet() && s.guard.Now() == s.now && !s.Waiting() && !s.closing &&
		len(s.after) == 0
}

// mayShareGuard reports whether the next command, cmd, may run under the same guard. It may not if there are
// followers, which would receive both as one transaction.
func (s *Session) mayShareGuard(cmd *command.Command) bool {
	return cmd != nil && cmd.Flags&(command.ReadOnly|command.Write) != 0 &&
		cmd.Flags&(command.OwnGuard|command.WholeKeyspace) == 0 && !s.tx.active && !s.shared.Followed.Active()
}

// endGuard ends the guard that the command before has left, if it has. Code that takes another guard, or a lock
// under which other code takes one, must call it first.
func (s *Session) endGuard() {
	if s.guard.Locked() {
		s.guard.Unlock()
	}
}

// isHTTP recognises the first words of lines that a browser sends when it is made to post to this port.
func isHTTP(name []byte) bool {
	return command.EqualFold(name, "post") || command.EqualFold(name, "host:")
}

// reject answers a command with an error without executing it. In a transaction EXEC then fails.
func (s *Session) reject(cmd *command.Command, e command.Error) {
	if s.forwarded && s.shared.Following.Load() {
		s.Abort() // the client's own server knows the new leader
		return
	}
	if s.tx.active {
		s.tx.spoiled = true
	} else {
		s.modes.tracking.EndCaching(cmd)
	}
	if cmd != nil {
		s.shared.CommandStats.Of(cmd).Rejected.Add(1)
	}
	if cmd != nil && cmd.RunsQueue {
		s.Discard()
		if !redirects(e) {
			e = execAborted(e)
		}
	}
	s.shared.Counters.Errors.Count([]byte(e))
	s.out.Error(string(e))
}

// execAborted returns the reply of EXEC where another command would reply e.
func execAborted(e command.Error) command.Error {
	return "EXECABORT Transaction discarded because of: " + command.Error(strings.TrimPrefix(string(e), "ERR "))
}

// call executes a command of the client under a guard, which execute ends. If the call ends early the command must be
// executed again.
func (s *Session) call(cmd *command.Command, args [][]byte) (retry command.Retry) {
	if s.offload != nil && s.takeReply(cmd, args) {
		return retry
	}
	c := &s.ctx
	c.Cmd, c.Args, c.DB = cmd, args, s.db
	if shards := cmd.Shards(s.shared.Keyspace, args); !s.guard.HoldsOnly(shards) {
		s.endGuard()
		s.guard.Owner = &s.origin
		if busy := s.shared.Scripts.Lock(&s.guard, shards, s.now); busy != "" {
			s.reject(cmd, busy)
			return retry
		}
	}
	if e := s.lateRefusal(cmd); e != "" {
		s.endGuard()
		s.reject(cmd, e)
		return retry
	}
	if s.offload != nil {
		s.useResult(c)
	}
	retry = s.runMonitored(c)
	if s.offload != nil {
		c.Offload = nil
	}
	if retry.Reason != 0 {
		return retry
	}
	if s.modes.tracking.On() {
		s.rememberKeys(cmd, args)
	}
	if s.origin.Changed() {
		s.shared.Tracking.Broadcast(&s.origin.Changer)
	}
	s.lastCmd = cmd
	return retry
}

// fromFiles are the origins of commands that files of this server, or of another one, have.
const fromFiles = command.FromJournal | command.FromImport

// run calls the handler of c.Cmd. No other code calls handlers, whether the command comes from a client, a
// transaction, a script, a master or the journal. Commands from the journal and other files are neither counted nor
// journalled again. If the call ends early, which only a client's call does, nothing has been counted or replied.
func (s *Session) run(c *command.Ctx) (retry command.Retry) {
	cmd, mark, changes := c.Cmd, len(c.W.Buf), c.G.Changes()
	counted := !c.Origin.In(fromFiles)
	var start int64
	var alone bool
	var size int // of the earlier replies
	if counted {
		if start, alone = s.begin(c); alone {
			size = c.W.Len()
		}
	}
	c.Journalled = false
	c.G.Writes = cmd.Flags&command.Write != 0
	waits := s.mayWait(c)
	if waits {
		c.G.OnAway(command.AwaitValue)
	}
	defer func() {
		if p := recover(); p != nil {
			retry = s.panicked(c, cmd, mark, changes, p)
		}
	}()
	cmd.Do(c)
	for c.Missing != 0 {
		if e := s.widen(c); e != "" {
			c.Err(e)
			break
		}
		if waits {
			c.G.OnAway(command.AwaitValue)
		}
		cmd.Do(c)
	}
	if waits {
		c.G.OnAway(nil)
	}
	if !counted {
		return retry
	}
	if cmd.Flags&command.Write != 0 {
		journalChanges(c, changes)
	}
	if len(c.W.Buf) > mark && c.W.Buf[mark] == '-' {
		s.shared.CommandStats.Of(cmd).Failed.Add(1)
		if failure := c.W.Buf[mark+1:]; !s.passesOn(cmd, failure) {
			s.shared.Counters.Errors.Count(failure)
		}
	}
	if !s.isBlocked() {
		s.calls++
	}
	if alone {
		s.end(c, start, c.W.Len()-size)
	}
	return retry
}

// takeCallBack drops the output and counts of a call that has ended early. Its output begins at mark.
func (s *Session) takeCallBack(c *command.Ctx, mark int, retry command.Retry) {
	c.W.Truncate(mark)
	if retry.Reason == command.RetryAway {
		c.G.Uncount()
	}
	c.G.OnAway(nil)
	if !c.Cmd.Slow && !s.exact {
		s.uncountCall()
	}
}

// widen takes the guard of the client's own command again, with the shards that its handler lacks.
func (s *Session) widen(c *command.Ctx) command.Error {
	shards := c.G.Shards() | c.Missing
	c.Missing = 0
	if c.Origin != command.FromClient {
		return errUndeclaredKey
	}
	c.G.Unlock()
	c.G.Owner = &s.origin
	if busy := s.shared.Scripts.Lock(c.G, shards, s.now); busy != "" {
		return busy
	}
	return s.lateRefusal(c.Cmd)
}

// errUndeclaredKey is the reply to a command, called by a custom command, that must use a key whose name it has read
// from a value: only then can such a command have a guard without all shards.
const errUndeclaredKey command.Error = "ERR the command needs a key that the custom command does not declare"

// panicked ends a call whose handler has panicked. If the panic is a command.Retry, panicked returns it. Any other
// panic is a bug, which must not disconnect other clients. When the journal repeats the command, the first execution
// panicked at the same point, so loading continues, unless a stored value cannot be read.
func (s *Session) panicked(c *command.Ctx, cmd *command.Command, mark, changes int, p any) (retry command.Retry) {
	if early, ok := command.EndedEarly(p); ok {
		s.takeCallBack(c, mark, early)
		return early
	}
	s.shared.logPanic(cmd, p)
	c.W.Truncate(mark)
	if _, unreadable := p.(*engine.LoadError); unreadable || c.Origin&^fromFiles != 0 {
		c.W.Raw([]byte(panicReply(p)))
	}
	if cmd.Flags&command.Write != 0 && !c.Origin.In(fromFiles) {
		journalChanges(c, changes)
	}
	return retry
}

// panicReply returns the reply to a command that could not be carried out.
func panicReply(p any) string {
	if e, ok := p.(*engine.LoadError); ok {
		return "-ERR cannot " + command.OneLine(e.Error()) + "\r\n"
	}
	return "-ERR internal error\r\n"
}

// journalChanges writes a command that has run to the journal if it has changed anything, unless its handler has done
// so. changes is what G.Changes said before.
func journalChanges(c *command.Ctx, changes int) {
	if c.G.Changes() == changes || c.Journalled {
		return
	}
	c.G.Log(c.DB, c.Args)
}
