package server

import (
	"fmt"
	"strings"

	"github.com/atomredis/atomredis/command"
	"github.com/atomredis/atomredis/engine"
)

// execute carries out one command of the client, which the table knows as cmd and container. It reports false if the command must be tried again later because
// clients are paused; nothing has happened then.
func (s *Session) execute(cmd, container *command.Command, args [][]byte) bool {
	srv := s.srv
	mark := len(s.out.Buf)
	skip := s.replies != replyOn
	if s.replies == replySkipNext {
		s.replies = replySkipThis
	}

	switch e := s.refuse(cmd, container, args); {
	case cmd == nil && isHTTP(args[0]):
		s.srv.log.Warn("closing a client that speaks HTTP: possibly a cross-protocol attack", "addr", s.peer.Addr)
		s.abort()
	case e != "":
		s.reject(cmd, e)
	case srv.pause.active.Load() && s.pausedBy(cmd, args):
		s.endGuard()
		return false
	case s.tx.active && !cmd.Immediate:
		s.enqueue(cmd, args)
	default:
		s.call(cmd, args)
	}
	if !s.sharesGuard() {
		s.endGuard()
	}

	if skip && s.replies != replyOn {
		s.out.Truncate(mark)
		if s.replies == replySkipThis && s.blocked == nil { // a blocked command has its reply skipped later

			s.replies = replyOn
		}
	}
	if o := &s.origin; o.pushed || len(o.later) > 0 {
		if o.pushed && s.blocked == nil {
			o.pushed = false
			s.readPushes()
		}
		s.out.Raw(o.later)
		o.later = o.later[:0]
	}
	return true
}

// sharesGuard reports whether the guard of the command that has just been executed may be the next one's too. Pipelines are full of
// commands that take the same shards, and to give them back and take them again costs up to a twentieth of a short command.
func (s *Session) sharesGuard() bool {
	return s.mayShareGuard(s.next) && s.guard.Quiet() && s.guard.Now() == s.now && s.blocked == nil && !s.closing && len(s.roles.suspects) == 0
}

// endGuard ends the guard that the command before has left, if it has. Whatever takes another guard, or a lock under which others
// take one, must call it first.
func (s *Session) endGuard() {
	if s.guard.Locked() {
		s.guard.Unlock()
	}
}

// refuse returns the error that keeps a command from being executed or queued, if there is one.
func (s *Session) refuse(cmd, container *command.Command, args [][]byte) command.Error {
	switch {
	case cmd == nil && container != nil:
		return command.Error(fmt.Sprintf("ERR unknown subcommand '%s'. Try %s HELP.", command.Printed(args[1]), strings.ToUpper(container.Name)))
	case cmd == nil:
		return command.UnknownCommand(args)
	case !cmd.ArityOK(len(args)) || cmd.Do == nil:
		return command.WrongArity(cmd)
	case cmd.Flags&command.Protected != 0 && !cmd.Allowed(s.srv, s):
		return notAllowed(cmd)
	case !s.authenticated && cmd.Flags&command.NoAuth == 0 && s.mustAuthenticate():
		return "NOAUTH Authentication required."
	case s.tx.active && cmd.Flags&command.NoMulti != 0:
		return "ERR Command not allowed inside a transaction"
	}
	if !s.unrestricted() {
		if e := s.denied(cmd, args); e != "" {
			return e
		}
	}
	if s.srv.cluster != nil {
		if e := s.refuseInCluster(cmd, args); e != "" {
			return e
		}
	}
	if s.srv.eviction.limit.Load() != 0 {
		s.endGuard()
		if e := s.checkMemory(cmd, args); e != "" {
			return e
		}
	}
	switch {
	case s.subs.count > 0 && s.out.Proto == 2 && !cmd.WhileSubscribed:
		return command.Error(fmt.Sprintf("ERR Can't execute '%s': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / RESET are "+
			"allowed in this context", cmd.Name))
	case (s.monitor || s.follower.following.Load()) && cmd.Flags&(command.ReadOnly|command.Write|command.MayReplicate) != 0:
		return "ERR Replica can't interact with the keyspace" // Redis treats monitors as a kind of replica
	case s.srv.restricted.Load():
		s.endGuard()
		if e := s.srv.restriction(cmd, cmd.Flags&command.Write != 0 || cmd.RunsQueue && s.tx.writes); e != "" {
			return e
		}
	}
	return s.srv.busyScript(cmd)
}

// isHTTP recognises the first words of lines that a browser sends when it is made to post to this port.
func isHTTP(name []byte) bool {
	return command.EqualFold(name, "post") || command.EqualFold(name, "host:")
}

// notAllowed returns the error for DEBUG or MODULE where it is not switched on.
func notAllowed(cmd *command.Command) command.Error {
	name, _, _ := strings.Cut(cmd.Name, "|")
	return command.Error(fmt.Sprintf("ERR %s command not allowed. If the enable-%s-command option is set to \"local\", you can "+
		"run it from a local connection, "+
		"otherwise you need to set this option in the configuration file, and then restart the server.", strings.ToUpper(name), name))
}

// reject answers a command with an error without executing it. In a transaction it spoils the whole.
func (s *Session) reject(cmd *command.Command, e command.Error) {
	if s.tx.active {
		s.tx.spoiled = true
	} else {
		s.tracking.endCaching(cmd)
	}
	if cmd != nil {
		s.srv.commandStats.of(cmd).rejected.Add(1)
	}
	if cmd != nil && cmd.RunsQueue {
		s.discard()
		e = execAborted(e)
	}
	s.srv.countError([]byte(e))
	s.out.Error(string(e))
}

// execAborted is what EXEC answers where another command would answer e.
func execAborted(e command.Error) command.Error {
	return "EXECABORT Transaction discarded because of: " + command.Error(strings.TrimPrefix(string(e), "ERR "))
}

// call executes a command of the client under a guard, which execute ends.
func (s *Session) call(cmd *command.Command, args [][]byte) {
	c := &s.ctx
	c.Cmd, c.Args, c.DB = cmd, args, s.db
	if shards := cmd.Shards(s.srv.ks, args); !s.guard.HoldsOnly(shards) {
		s.endGuard()
		s.guard.Owner = &s.origin
		if busy := s.lock(&s.guard, shards); busy != "" {
			s.reject(cmd, busy)
			return
		}
	}
	if s.srv.replica.loading.Load() && cmd.Flags&command.Loading == 0 { // since the command was accepted
		s.endGuard()
		s.reject(cmd, errLoading)
		return
	}
	s.runMonitored(c)
	if s.tracking.on {
		s.rememberKeys(cmd, args)
	}
	if len(s.origin.changed) > 0 {
		s.srv.tracking.broadcast(&s.origin)
	}
	s.lastCmd = cmd
}

// run calls the handler of c.Cmd and counts. It is the one way in which a handler is ever called, from clients,
// transactions and scripts alike. A handler that panics is a bug; it must not take other clients down.
func (s *Session) run(c *command.Ctx) {
	mark := len(c.W.Buf)
	cmd := c.Cmd
	start, alone := s.begin(c)
	writes, changes := cmd.Flags&command.Write != 0, c.G.Changes()
	c.Journalled = false
	defer func() {
		if p := recover(); p != nil {
			s.srv.logPanic(cmd, p)
			c.W.Truncate(mark)
			c.W.Raw([]byte(panicReply(p)))
			if writes {
				journalChanges(c, changes)
			}
		}
	}()
	cmd.Do(c)
	if writes {
		journalChanges(c, changes)
	}
	if len(c.W.Buf) > mark && c.W.Buf[mark] == '-' {
		s.srv.commandStats.of(cmd).failed.Add(1)
		s.srv.countError(c.W.Buf[mark+1:])
	}
	if alone {
		s.end(c, start)
	}
}

// panicReply returns the reply to a command that could not be carried out.
func panicReply(p any) string {
	if e, ok := p.(*engine.LoadError); ok {
		return "-ERR cannot " + oneLine(e.Error()) + "\r\n"
	}
	return "-ERR internal error\r\n"
}
