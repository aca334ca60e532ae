package session

import (
	"bytes"
	"crypto/sha256"

	"github.com/atomredis/atomredis/internal/buffers"
	"github.com/atomredis/atomredis/internal/clients"
	"github.com/atomredis/atomredis/internal/cluster"
	"github.com/atomredis/atomredis/internal/command"
)

// With replicated-proxy a follower forwards commands that only the leader can execute. Clients of a door whose protocol has
// no redirections (door.Kind.AtLeader) are always served that way, also by the leaders of other shards. This file decides
// which commands are forwarded, and describes the client to the leader. Package internal/cluster/forward has the connections.

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
	// Answered reports whether the leader has answered all commands that Forward has taken.
	Answered() bool
	// Busy reports whether the client waits for the leader's replies or listens to its messages.
	Busy() bool
	// Stop closes the connection: the client has disconnected.
	Stop()
}

// forwarding is the part of a session that forwards commands. It belongs to the goroutine of the session's transport.
type forwarding struct {
	allowed bool      // the session's transport can send replies that come from another server
	to      Forwarder // to the leader of this server's group; nil before the first command is forwarded
	// always says that commands go to the leader of the shard that has their keys, whatever replicated-proxy is. The client
	// is a Direct, which waits for each reply.
	always  bool
	shards  map[string]Forwarder // to the leaders of other shards, by ID; only with always
	vouched bool                 // see Identity.Vouched
}

// each calls fn with the connections to leaders.
func (f *forwarding) each(fn func(Forwarder)) {
	if f.to != nil {
		fn(f.to)
	}
	for _, to := range f.shards {
		fn(to)
	}
}

// took counts n bytes as sent to the client.
func (f *forwarding) took(n int) {
	f.each(func(to Forwarder) { to.Took(n) })
}

// answered reports whether leaders have answered all commands.
func (f *forwarding) answered() bool {
	all := true
	f.each(func(to Forwarder) { all = all && to.Answered() })
	return all
}

// ended reports whether the client's connection must end.
func (f *forwarding) ended() (any bool) {
	f.each(func(to Forwarder) { any = any || to.Ended() })
	return any
}

// Identity describes a client to another server.
type Identity struct {
	Addr, Local           string
	User                  string            `json:",omitempty"` // "" if it has not authenticated
	Digest                [sha256.Size]byte // of its password
	DB, Protocol          int
	Name, Library, LibVer string `json:",omitempty"`
	// Vouched says that the client needs no password, because its server has made it the user: a directive of a door names
	// it, or User is "" and the client works for a door itself, with all permissions.
	Vouched bool `json:",omitempty"`
}

// forward sends a command to the leader if this server cannot execute it and may forward it. It reports whether it has
// taken the command; done is then the result of execute.
func (s *Session) forward(cmd *command.Command, args [][]byte) (done, taken bool) {
	if s.forwarding.always {
		return s.forwardToOwner(cmd, args)
	}
	f := s.forwarding.to
	wanted := cmd != nil && cmd.ArityOK(len(args)) && s.leadersPart(cmd) && s.shared.Following.Load() && s.shared.Forwards.Load()
	switch {
	case !s.authenticated.Load() && s.mustAuthenticate():
		return false, false
	case f == nil && (!wanted || s.Tied()):
		return false, false
	case f == nil:
		f = s.shared.Host.NewForwarder(s, "")
		s.forwarding.to = f
	}
	if done, taken = f.Forward(cmd, args, wanted); done && taken && cmd != nil {
		s.lastCmd = cmd
	}
	return done, taken
}

// forwardToOwner is forward for a client with forwarding.always: the leader of the shard that has the keys executes the
// command.
func (s *Session) forwardToOwner(cmd *command.Command, args [][]byte) (done, taken bool) {
	if cmd == nil || !cmd.ArityOK(len(args)) || !sharesData(cmd) || !s.authenticated.Load() && s.mustAuthenticate() {
		return false, false
	}
	shard, elsewhere := s.ownerOf(cmd, args)
	if !elsewhere {
		return false, false
	}
	f := s.forwarding.to
	if shard != "" {
		f = s.forwarding.shards[shard]
	}
	if f == nil {
		f = s.shared.Host.NewForwarder(s, shard)
		switch {
		case shard == "":
			s.forwarding.to = f
		case s.forwarding.shards == nil:
			s.forwarding.shards = map[string]Forwarder{shard: f}
		default:
			s.forwarding.shards[shard] = f
		}
	}
	return f.Forward(cmd, args, true)
}

// ownerOf returns the other shard that has the keys of a command, "" for this one. elsewhere is false if this server executes
// or refuses the command. A subscription belongs to the slot of its channel, because the channels of protocols have the
// hash tag of the keys that they are about.
func (s *Session) ownerOf(cmd *command.Command, args [][]byte) (shard string, elsewhere bool) {
	sh := s.shared
	if sh.Shards == nil {
		return "", false
	}
	if sh.Cluster != nil {
		slot, ok := sh.slotOf(cmd, args)
		if ok && slot == cluster.NoSlot && cmd.Flags&command.PubSub != 0 && len(args) == 2 {
			slot = cluster.SlotOf(args[1])
		}
		now := sh.Shards.Now()
		switch {
		case !ok:
			return "", false
		case slot != cluster.NoSlot && !now.Own.Has(slot):
			shard, _ = now.Owners.Of(slot)
			return shard, shard != "" && shard != now.ID
		}
	}
	return "", sh.Following.Load() && !(s.modes.options.ReadOnly && cmd.Flags&command.ReadOnly != 0)
}

// redirected reports whether the output from a position on is an error that names another server, or says that slots are
// about to move.
func (s *Session) redirected(start int) bool {
	reply := s.out.Buf[min(start, len(s.out.Buf)):]
	return bytes.HasPrefix(reply, []byte("-MOVED ")) || bytes.HasPrefix(reply, []byte("-TRYAGAIN "))
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
	return sharesData(cmd)
}

// sharesData reports whether a command uses data, or state that the leader's clients share.
func sharesData(cmd *command.Command) bool {
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
	c.Vouched = s.forwarding.vouched && s.digest == [sha256.Size]byte{}
	if a := s.account.Load(); a != nil && (c.Vouched || s.digest != [sha256.Size]byte{}) {
		c.User = a.User().Name()
	}
	return c
}

// AwaitLeader holds the next command until LeaderReplied is called.
func (s *Session) AwaitLeader() { s.beginWait(forLeader, 0) }

// LeaderReplied passes on replies of the leader; the session then checks its Forwarder. Any goroutine may call it.
func (s *Session) LeaderReplied(replies ...[]byte) {
	if !s.forwarding.always {
		s.post(mailLeader, replies...)
		return
	}
	s.box.mu.Lock()
	for _, b := range replies {
		s.box.leader = append(buffers.Grow(s.box.leader, len(b)), b...)
	}
	s.box.mu.Unlock()
	s.post(mailLeader)
}

// takeReplies moves the replies of leaders to the output.
func (s *Session) takeReplies() {
	s.box.mu.Lock()
	replies := s.box.leader
	s.box.leader = nil
	s.box.mu.Unlock()
	s.out.Raw(replies)
	if replies != nil {
		buffers.Put(replies)
	}
}

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
	case c.Vouched && c.User == "":
		s.account.Store(nil)
		s.setAuthenticated(true)
	case c.Vouched:
		if !s.become(c.User) {
			s.refuseForwarded()
		}
	case c.User == "":
		s.becomeDefault()
	case s.shared.Users.Authenticate(&s.account, c.User, c.Digest):
		s.digest = c.Digest
		s.setAuthenticated(true)
	default:
		s.refuseForwarded()
	}
	s.publish()
}

// refuseForwarded ends the session of a client of another server whose user is not known here.
func (s *Session) refuseForwarded() {
	s.out.Raw(errForwardedUser)
	s.closing = true
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
