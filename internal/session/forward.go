package session

import (
	"crypto/sha256"

	"github.com/atomredis/atomredis/internal/clients"
	"github.com/atomredis/atomredis/internal/command"
)

// With replicated-proxy a follower forwards commands that only the leader can execute. This file decides which commands
// those are, and describes the client to the leader. Package internal/cluster/forward has the connections.

// Forwarder is a client's connection to the leader. It sends commands unchanged and returns the replies in order. Only
// the goroutine of the session's transport calls its methods.
type Forwarder interface {
	// Forward takes a command for the leader. With wanted only the leader can execute it; without, the command is forwarded
	// if it must follow others that are still on their way. Forward reports whether it has taken the command; done is then
	// the result of execute.
	Forward(cmd *command.Command, args [][]byte, wanted bool) (done, taken bool)
	// Flush sends the forwarded commands.
	Flush()
	// Took counts n bytes as sent to the client.
	Took(n int)
	// Ended reports whether the client's connection must end.
	Ended() bool
	// Busy reports whether the client waits for the leader's replies or listens to its messages.
	Busy() bool
	// Stop closes the connection: the client has disconnected.
	Stop()
}

// forwarding is the part of a session that forwards commands. It belongs to the goroutine of the session's transport.
type forwarding struct {
	allowed bool      // the session's transport can send replies that come from another server
	to      Forwarder // nil before the first command is forwarded
}

// Identity describes a client to another server.
type Identity struct {
	Addr, Local           string
	User                  string            `json:",omitempty"` // "" if it has not authenticated
	Digest                [sha256.Size]byte // of its password
	DB, Protocol          int
	Name, Library, LibVer string `json:",omitempty"`
}

// forward sends a command to the leader if this server cannot execute it and may forward it. It reports whether it has
// taken the command; done is then the result of execute.
func (s *Session) forward(cmd *command.Command, args [][]byte) (done, taken bool) {
	f := s.forwarding.to
	wanted := cmd != nil && cmd.ArityOK(len(args)) && s.leadersPart(cmd) && s.shared.Following.Load() && s.shared.Forwards.Load()
	switch {
	case !s.authenticated.Load() && s.mustAuthenticate():
		return false, false
	case f == nil && (!wanted || s.Tied()):
		return false, false
	case f == nil:
		f = s.shared.Host.NewForwarder(s)
		s.forwarding.to = f
	}
	if done, taken = f.Forward(cmd, args, wanted); done && taken && cmd != nil {
		s.lastCmd = cmd
	}
	return done, taken
}

// AllowForwarding declares that the session's transport can send replies that come from another server.
func (s *Session) AllowForwarding() {
	s.forwarding.allowed = true
	s.info.Lock()
	defer s.info.Unlock()
	s.infoData.forwards = true
}

// leadersPart reports whether a command is for the leader: it uses data, or state that the leader's clients share. A
// client that has sent READONLY reads here.
func (s *Session) leadersPart(cmd *command.Command) bool {
	if s.modes.options.ReadOnly && (cmd.Flags&command.ReadOnly != 0 || cmd.AtLeader) {
		return false
	}
	const data = command.Write | command.ReadOnly | command.MayReplicate | command.Blocking | command.PubSub
	const shared = command.CatTransaction | command.CatScripting | command.CatPubSub
	return cmd.AtLeader || cmd.Flags&command.Admin == 0 && (cmd.Flags&data != 0 || cmd.ACL&shared != 0)
}

// Tied reports whether the client has a transaction, subscriptions or modes that cannot move to another server.
func (s *Session) Tied() bool {
	return s.tx.active || len(s.tx.watches) > 0 || s.modes.subs.Any() || s.modes.tracking.On() || s.modes.monitor ||
		s.modes.options.Replies != clients.ReplyOn || s.modes.follower.Following()
}

// Identity returns the client as the leader is to see it.
func (s *Session) Identity() Identity {
	c := Identity{Addr: s.peer.Addr, Local: s.peer.Local, Digest: s.digest, DB: s.db, Protocol: s.out.Proto,
		Name: s.modes.options.Name, Library: s.modes.options.Library, LibVer: s.modes.options.LibraryVersion}
	if a := s.account.Load(); a != nil && s.digest != [sha256.Size]byte{} {
		c.User = a.User().Name()
	}
	return c
}

// AwaitLeader holds the next command until LeaderReplied is called.
func (s *Session) AwaitLeader() { s.beginWait(forLeader, 0) }

// LeaderReplied passes on replies of the leader; the session then checks its Forwarder. Any goroutine may call it.
func (s *Session) LeaderReplied(replies ...[]byte) { s.post(mailLeader, replies...) }

// StopForwarding executes the client's commands here again, behind all replies of the leader.
func (s *Session) StopForwarding() { s.readPushes() }

// Adopt sets the database and the protocol that the client has chosen at the leader.
func (s *Session) Adopt(db, protocol int) {
	if s.db = db; s.out.Proto != protocol {
		s.setProto(protocol)
	}
}

var errForwardedUser = []byte("-WRONGPASS invalid username-password pair or user is disabled.\r\n")

// Impersonate makes the session act for a client of another server that forwards its commands. The client's user is the
// one that it has authenticated as there. If the password is wrong here the session ends.
func (s *Session) Impersonate(c Identity) {
	s.forwarded = true
	s.db = c.DB
	s.setProto(c.Protocol)
	s.modes.options.Name, s.modes.options.Library, s.modes.options.LibraryVersion = c.Name, c.Library, c.LibVer
	switch {
	case c.User == "":
		s.becomeDefault()
	case s.shared.Users.Authenticate(&s.account, c.User, c.Digest):
		s.digest = c.Digest
		s.setAuthenticated(true)
	default:
		s.out.Raw(errForwardedUser)
		s.closing = true
	}
	s.publish()
}

// Bound reports whether the session keeps state for the client that cannot move to another server.
func (s *Session) Bound() bool { return s.Tied() || s.modes.options.NoEvict || s.guard.NoTouch }

// Idle reports whether every command that the client has sent is executed.
func (s *Session) Idle() bool { return len(s.in.input) == 0 && !s.in.long.Active() && !s.Waiting() }

// EndListeners disconnects the subscribed and tracking clients whose commands can be forwarded: from now on their
// messages are published at the leader.
func (sh *Shared) EndListeners() {
	for _, s := range sh.Clients.All() {
		if d := s.snapshot(); d.forwards && (d.Subscriptions() > 0 || d.Tracking != 0) {
			s.Kill()
		}
	}
}

// SendAway disconnects ordinary and subscribed clients before their next command, because this server does not lead any more.
// Redis Sentinel does the same (CLIENT KILL TYPE normal and pubsub). Replies that wait for the journal are still sent, and so
// is one that does not depend on the data, such as that of RAFT.TRANSFER. Clients that have sent READONLY may stay.
func (sh *Shared) SendAway() {
	for _, s := range sh.Clients.All() {
		if d := s.snapshot(); d.forwards && !d.Follower && !d.ReadOnly {
			s.post(mailSentAway)
		}
	}
}

// goAway closes the session of a client that is sent away, unless a blocked command is to reply first.
func (s *Session) goAway() {
	s.closing = s.closing || s.sentAway && !(s.isBlocked() && s.blocked.ctx.Cmd.NoData)
}
