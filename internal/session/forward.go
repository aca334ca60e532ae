package session

import (
	"crypto/sha256"

	"github.com/atomredis/atomredis/internal/clients"
	"github.com/atomredis/atomredis/internal/command"
)

// With replicated-proxy a follower forwards what only the leader can do. This file is the client's half of it: which
// commands are forwarded, and how the leader learns the client's state.

// Relay is a client's connection to the leader. Commands go there and replies come back as they are and in order. The
// goroutine of the session's transport calls its methods.
type Relay interface {
	// Forward has the leader do a command, if wanted says that it is the leader's and this server cannot do it, or if others
	// on the way must come first. It reports whether it has taken the command; done is then what execute returns.
	Forward(cmd *command.Command, args [][]byte, wanted bool) (done, taken bool)
	// Flush sends the forwarded commands.
	Flush()
	// Took notes that n bytes have been sent to the client.
	Took(n int)
	// Over reports whether the client's connection must end.
	Over() bool
	// Busy reports whether the client waits for the leader, or for what happens there.
	Busy() bool
	// Stop ends the relay: the client has gone.
	Stop()
}

// relaying is what a session has for its relay. It belongs to the goroutine of the session's transport.
type relaying struct {
	may   bool  // the session belongs to a transport that can carry what comes from elsewhere
	held  bool  // the next command waits for the relay
	relay Relay // nil before the first command is forwarded
}

// Identity is a client as another server is to see it.
type Identity struct {
	Addr, Local           string
	User                  string            `json:",omitempty"` // "" if it has not authenticated
	Digest                [sha256.Size]byte // of its password
	DB, Protocol          int
	Name, Library, LibVer string `json:",omitempty"`
}

// forward has the leader do a command, if this server cannot and may ask it. It reports whether it has taken the
// command; done is then what execute returns.
func (s *Session) forward(cmd *command.Command, args [][]byte) (done, taken bool) {
	r := s.relaying.relay
	wanted := cmd != nil && cmd.ArityOK(len(args)) && s.leadersPart(cmd) && s.shared.Following.Load() && s.shared.Forwards.Load()
	switch {
	case !s.authenticated.Load() && s.mustAuthenticate():
		return false, false
	case r == nil && (!wanted || s.Tied()):
		return false, false
	case r == nil:
		r = s.shared.Host.NewRelay(s)
		s.relaying.relay = r
	}
	if done, taken = r.Forward(cmd, args, wanted); done && taken && cmd != nil {
		s.lastCmd = cmd
	}
	return done, taken
}

// MayRelay says that the session's transport can carry what comes from elsewhere.
func (s *Session) MayRelay() { s.relaying.may = true }

// leadersPart reports whether a command is for the leader: it uses data, or what clients of the leader share. A client
// that has sent READONLY reads here.
func (s *Session) leadersPart(cmd *command.Command) bool {
	if s.modes.options.ReadOnly && (cmd.Flags&command.ReadOnly != 0 || cmd.AtLeader) {
		return false
	}
	const data = command.Write | command.ReadOnly | command.MayReplicate | command.Blocking | command.PubSub
	const shared = command.CatTransaction | command.CatScripting | command.CatPubSub
	return cmd.AtLeader || cmd.Flags&command.Admin == 0 && (cmd.Flags&data != 0 || cmd.ACL&shared != 0)
}

// Tied reports whether this server keeps something for the client that cannot be moved.
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

// AwaitRelay has the next command wait until Relayed is called.
func (s *Session) AwaitRelay() { s.relaying.held = true }

// Relayed has the session look at its relay, behind replies of the leader. Any goroutine may call it.
func (s *Session) Relayed(replies ...[]byte) { s.post(mailRelay, replies...) }

// Return has the client's commands executed here again, behind all that the leader has sent.
func (s *Session) Return() { s.readPushes() }

// Adopt takes over the database and the protocol that the client has chosen at the leader.
func (s *Session) Adopt(db, protocol int) {
	if s.db = db; s.out.Proto != protocol {
		s.setProto(protocol)
	}
}

var errRelayedUser = []byte("-WRONGPASS invalid username-password pair or user is disabled.\r\n")

// Impersonate makes the session that of a client of another server, which forwards its commands: it acts for the user
// whose password the client has shown there. If that is not right here the session ends.
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
		s.out.Raw(errRelayedUser)
		s.closing = true
	}
	s.publish()
}

// Bound reports whether the session keeps something for the client that it cannot take elsewhere.
func (s *Session) Bound() bool { return s.Tied() || s.modes.options.NoEvict || s.guard.NoTouch }

// Idle reports whether nothing of what the client has sent is still to be executed.
func (s *Session) Idle() bool { return len(s.in.input) == 0 && !s.in.long.Active() && !s.Waiting() }

// EndListeners disconnects clients that listen to what happens at the leader from now on, and could have their commands
// forwarded there.
func (sh *Shared) EndListeners() {
	for _, s := range sh.Clients.All() {
		if d := s.snapshot(); s.relaying.may && (d.Subscriptions() > 0 || d.Tracking != 0) {
			s.Kill()
		}
	}
}
