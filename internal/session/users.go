package session

import (
	"crypto/sha256"
	"crypto/x509"
	"slices"

	"github.com/atomredis/atomredis/internal/clients"
	"github.com/atomredis/atomredis/internal/clients/acl"
	"github.com/atomredis/atomredis/internal/clients/pubsub"
	"github.com/atomredis/atomredis/internal/command"
	"github.com/atomredis/atomredis/internal/config"
)

// This file has a client's user and the checks of its permissions. Users are package acl.

// Expel implements acl.Clients.
func (sh *Shared) Expel(by command.Client, accounts []*acl.Account) {
	for _, s := range sh.Clients.All() {
		if slices.Contains(accounts, s.account.Load()) {
			s.expel(by)
		}
	}
}

// ExpelListeners implements acl.Clients.
func (sh *Shared) ExpelListeners(by command.Client, a *acl.Account) {
	user := a.User()
	for to := range sh.PubSub.Except(func(kind pubsub.Kind, name string) bool {
		return user.AllowsChannel([]byte(name), kind == pubsub.Pattern)
	}) {
		if s := to.(*Session); s.account.Load() == a {
			s.expel(by)
		}
	}
}

// expel disconnects the client, after the reply if its own command is the reason.
func (s *Session) expel(by command.Client) {
	if by == s {
		s.closing = true
		return
	}
	if w := s.snapshot().keyWait; w != nil {
		w.waiter.Withdraw() // from now on it takes no elements
	}
	s.Kill()
}

// enter makes the client a user if the password is right, and reports whether it is.
func (s *Session) enter(name, password []byte) bool {
	digest := sha256.Sum256(password)
	if !s.shared.Users.Authenticate(&s.account, string(name), digest) {
		s.logDenial(s.ctx.Cmd, s.logContext(), acl.DeniedAuth, string(s.ctx.Args[0]), string(name))
		return false
	}
	s.setAuthenticated(true)
	s.digest = digest
	return true
}

// become makes the client a user without checking a password, and reports whether the user exists and is enabled.
func (s *Session) become(name string) bool {
	ok := s.shared.Users.Become(&s.account, name)
	if ok {
		s.setAuthenticated(true)
	}
	return ok
}

// Identify implements transport.Session. It makes the client the user with the name in its certificate, if
// tls-auth-clients-user is set. If there is no such user the client remains the default user.
func (s *Session) Identify(cert *x509.Certificate) {
	var names []string
	switch s.shared.Config.Get().TLS.AuthClientsUser {
	case config.UserOfCommonName:
		if name := cert.Subject.CommonName; name != "" {
			names = append(names, name)
		}
	case config.UserOfURI:
		for _, uri := range cert.URIs {
			names = append(names, uri.String())
		}
	}
	if len(names) > 0 && !slices.ContainsFunc(names, s.become) {
		s.logDenial(nil, fromClient, acl.DeniedCertificate, "", names[len(names)-1])
	}
}

// becomeDefault makes the client the default user, as after connecting.
func (s *Session) becomeDefault() {
	s.account.Store(s.shared.Users.Default())
	s.setAuthenticated(s.shared.Users.Open())
	s.digest = [sha256.Size]byte{}
}

func (s *Session) setAuthenticated(yes bool) {
	s.authenticated.Store(yes)
	s.in.parser.Unauthenticated = s.mustAuthenticate()
}

// mustAuthenticate reports whether the client must authenticate before it may do anything. A change of the default
// user can change that.
func (s *Session) mustAuthenticate() bool { return !s.authenticated.Load() && !s.shared.Users.Open() }

// lacksAuthentication reports whether the client must authenticate before it may execute a command.
func (s *Session) lacksAuthentication(cmd *command.Command) bool {
	return !s.authenticated.Load() && cmd.Flags&command.NoAuth == 0 && s.mustAuthenticate()
}

// unrestricted reports whether the client may do everything. A session without an account may: it is the program's or
// the journal's.
func (s *Session) unrestricted() bool {
	a := s.account.Load()
	return a == nil || a.User().Unrestricted()
}

// Account returns the account of the client's user; nil if the session has none.
func (s *Session) Account() *acl.Account { return s.account.Load() }

// check decides whether the client's user may execute a command.
func (s *Session) check(cmd *command.Command, args [][]byte) acl.Verdict {
	if a := s.account.Load(); a != nil {
		return a.User().CheckCommand(cmd, args, s.database())
	}
	return acl.Verdict{}
}

// Rights implements Client.
func (s *Session) Rights() command.Rights {
	if a := s.account.Load(); a != nil {
		return a.User()
	}
	return nil
}

// MayReadAll implements Client.
func (s *Session) MayReadAll(cmd *command.Command, args [][]byte) bool {
	a := s.account.Load()
	return a == nil || a.User().MayReadAll(cmd, args, s.database())
}

// MayRead implements Client.
func (s *Session) MayRead(cmd *command.Command, key []byte, db int) bool {
	a := s.account.Load()
	return a == nil || a.User().MayRead(cmd, key, db)
}

// database returns the database of the next command. In MULTI a queued SELECT may have chosen it.
func (s *Session) database() int {
	if s.tx.active && s.tx.selected {
		return s.tx.db
	}
	return s.db
}

// denied returns the error for a command that the client's user may not execute, and logs it; "" if the user may
// execute it.
func (s *Session) denied(from command.Origin, cmd *command.Command, args [][]byte) command.Error {
	v := s.check(cmd, args)
	if v.Reason == acl.Allowed {
		return ""
	}
	s.logVerdict(from, cmd, v)
	return v.Refusal(from, cmd, clients.UserName(s.account.Load()))
}

// The origins of refused commands in the log.
const (
	fromClient = "toplevel"
	inMulti    = "multi"
	inScript   = "lua"
)

func (s *Session) logContext() string {
	if s.tx.active || s.tx.running > 0 {
		return inMulti
	}
	return fromClient
}

// logVerdict logs that a command was refused.
func (s *Session) logVerdict(from command.Origin, cmd *command.Command, v acl.Verdict) {
	object := string(v.Object)
	if v.Reason == acl.DeniedCommand {
		object = cmd.Name
	}
	context := s.logContext()
	if from.In(command.FromScript) {
		context, cmd = inScript, s.ctx.Cmd // the command that the client has sent
	}
	s.logDenial(cmd, context, v.Reason, object, clients.UserName(s.account.Load()))
}

// logDenial logs a refusal to the client, whose command is cmd.
func (s *Session) logDenial(cmd *command.Command, context string, why acl.Reason, object, user string) {
	if s.tx.running == 0 {
		s.lastCmd = cmd // the client's description has it
	}
	now := s.shared.Keyspace.Now()
	s.publish()
	about := s.about(now)
	s.shared.Counters.Denied[why].Add(1)
	s.shared.Users.Log.Add(acl.Entry{Reason: why, Context: context, Object: object, User: user, Time: now,
		Client: string(about.AppendLine(nil, now))},
		s.shared.Config.Get().ACL.LogMaxLen)
}
