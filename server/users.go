package server

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/atomredis/atomredis/acl"
	"github.com/atomredis/atomredis/command"
	"github.com/atomredis/atomredis/config"
	"github.com/atomredis/atomredis/internal/files"
)

// This file has the users of the server, who a client is, and the decision whether it may execute a command. Rules
// are read and applied in package acl; the ACL commands are in cmd_acl.go.

// users are the server's users, and the log of what was refused to them.
type users struct {
	// held while users change, and while a client becomes one of them; the hub and mailboxes are locked under it
	mu       sync.Mutex
	accounts map[string]*account
	byNobody *account     // the default user, which is in accounts too
	file     files.States // the ACL file as it was when it was last read or written

	log acl.Log
}

// account is a user through all changes of what it may do. Sessions refer to it. When it is deleted nothing is
// allowed any more.
type account struct{ user atomic.Pointer[acl.User] }

// tableForRules shows the command table to the rules of users.
type tableForRules struct{ t *command.Table }

// Command implements acl.Commands.
func (c tableForRules) Command(name string) (cmd acl.Command, ok bool) {
	found := c.t.Original(name)
	if found == nil {
		return acl.Command{}, false
	}
	return forRules(found), true
}

// All implements acl.Commands.
func (c tableForRules) All() (list []acl.Command) {
	for _, cmd := range c.t.Everything() {
		list = append(list, forRules(cmd))
	}
	return list
}

// Categories implements acl.Commands.
func (c tableForRules) Categories() []string { return command.CategoryNames[:] }

// forRules returns what the rules of users need to know.
func forRules(cmd *command.Command) acl.Command {
	r := acl.Command{Index: cmd.Index, Name: cmd.Name, Categories: uint32(cmd.ACL), Sub: cmd.Parent != nil}
	if cmd.Custom {
		r.Categories = 0 // as Redis has it with the commands of modules
	}
	for _, sub := range cmd.Subs {
		r.Subs = append(r.Subs, forRules(sub))
	}
	return r
}

// rules returns what makes users from rules.
func (srv *Server) rules() acl.Rules {
	return acl.Rules{Commands: tableForRules{srv.table}, AllChannels: srv.config.Get().ACLPubSubDefault}
}

// startUsers makes the users that the configuration asks for.
func (srv *Server) startUsers() error {
	set := srv.config.Get()
	u := &srv.users
	u.accounts = map[string]*account{}
	u.byNobody = u.put(withPassword(srv.rules(), srv.rules().Default(), set.RequirePass))
	if set.ACLFile != "" && len(set.Users) > 0 {
		return errors.New("users are defined both in the configuration file and in an ACL file: only one of them may have users")
	}
	for _, words := range set.Users {
		user, err := srv.configuredUser(words)
		if err != nil {
			return err
		}
		u.put(user)
	}
	if set.ACLFile == "" {
		return nil
	}
	if problems := srv.loadUsers(nil); problems != "" {
		return errors.New(problems)
	}
	return nil
}

// configuredUser returns the user of a line of the configuration file, of which words are the name and the rules.
func (srv *Server) configuredUser(words []string) (*acl.User, error) {
	name := words[0]
	if !acl.ValidName(name) {
		return nil, fmt.Errorf("user '%s': spaces are not allowed in names", name)
	}
	rules, unmatched := acl.Merge(words[1:])
	if unmatched >= 0 {
		return nil, fmt.Errorf("user '%s': unmatched parenthesis", name)
	}
	user := srv.rules().New(name)
	if name == acl.DefaultName {
		rules = append([]string{"reset"}, rules...)
	}
	user, err := srv.rules().Apply(user, rules...)
	if err != nil {
		return nil, fmt.Errorf("user '%s': %w", name, err)
	}
	if !user.Enabled() {
		srv.log.Info("a user is disabled: its rules in the configuration do not include 'on'", "user", name)
	}
	return user, nil
}

// withPassword gives the default user the password of requirepass, "" for none.
func withPassword(r acl.Rules, user *acl.User, password string) *acl.User {
	rule := "nopass"
	if password != "" {
		rule = ">" + password
	}
	user, err := r.Apply(user, "resetpass", rule)
	if err != nil {
		panic("server: " + err.Error()) // there is no password that cannot be one
	}
	return user
}

// passwordChanged applies a new value of requirepass.
func (u *users) passwordChanged(r acl.Rules, password string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.byNobody.user.Store(withPassword(r, u.byNobody.user.Load(), password))
}

// put adds a user or gives it new permissions. mu is locked, or nobody else knows u yet.
func (u *users) put(user *acl.User) *account {
	a := u.accounts[user.Name()]
	if a == nil {
		a = new(account)
		u.accounts[user.Name()] = a
	}
	a.user.Store(user)
	return a
}

// get returns the account of that name, or nil.
func (u *users) get(name []byte) *account {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.accounts[string(name)]
}

// all returns the users in order of their names.
func (u *users) all() []*acl.User {
	u.mu.Lock()
	defer u.mu.Unlock()
	list := make([]*acl.User, 0, len(u.accounts))
	for _, a := range u.accounts {
		list = append(list, a.user.Load())
	}
	slices.SortFunc(list, func(a, b *acl.User) int { return cmp.Compare(a.Name(), b.Name()) })
	return list
}

// open reports whether clients need not authenticate.
func (u *users) open() bool {
	user := u.byNobody.user.Load()
	return user.Enabled() && !user.NeedsPassword()
}

// setUser applies rules to a user, which is made if there is none. Clients of the user that listen to channels that
// it may not use any more are disconnected. by is the client that wants it.
func (srv *Server) setUser(by *Session, name string, rules []string) error {
	u, r := &srv.users, srv.rules()
	u.mu.Lock()
	defer u.mu.Unlock()
	a := u.accounts[name]
	if a == nil {
		user, err := r.Apply(r.New(name), rules...)
		if err == nil {
			u.put(user)
		}
		return err
	}
	user, err := r.Apply(a.user.Load(), rules...)
	if err != nil {
		return err
	}
	a.user.Store(user)
	for s := range srv.pubsub.misplaced(a, user) {
		s.expel(by)
	}
	return nil
}

// misplaced returns the subscribers with the account that listen to channels that the user may not use.
func (h *hub) misplaced(a *account, user *acl.User) map[*Session]bool {
	found := map[*Session]bool{}
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, kind := range []*subscriptionKind{byChannel, byPattern, byShard} {
		for name, subs := range *kind.in(h) {
			if user.AllowsChannel([]byte(name), kind == byPattern) {
				continue
			}
			for _, s := range subs.all {
				if s.account.Load() == a {
					found[s] = true
				}
			}
		}
	}
	return found
}

// deleteUser removes a user and disconnects its clients; it reports whether there was one. by is the client that
// wants it.
func (srv *Server) deleteUser(by *Session, name string) bool {
	u := &srv.users
	u.mu.Lock()
	defer u.mu.Unlock()
	a := u.accounts[name]
	if a == nil {
		return false
	}
	delete(u.accounts, name)
	srv.retire(by, []*account{a})
	return true
}

// retire takes all permissions from accounts and disconnects their clients. users.mu is locked.
func (srv *Server) retire(by *Session, accounts []*account) {
	for _, a := range accounts {
		a.user.Store(srv.rules().New(a.user.Load().Name()))
	}
	for _, s := range srv.clients.all() {
		if slices.Contains(accounts, s.account.Load()) {
			s.expel(by)
		}
	}
}

// expel disconnects the client, after the reply to its command if that is the one which wants it.
func (s *Session) expel(by *Session) {
	if s == by {
		s.closing = true
		return
	}
	if w := s.snapshot().wait; w != nil {
		w.waiter.Withdraw() // from now on it takes nothing
	}
	s.post(mailKill)
}

// loadUsers replaces all users by those of the ACL file, if there is nothing wrong with it; otherwise it tells what.
// Clients of users that are there no more are disconnected, and those that listen to channels that they may not use
// any more. by is the client that wants it, or nil.
func (srv *Server) loadUsers(by *Session) (problems string) {
	file, r := srv.config.Get().ACLFile, srv.rules()
	states := files.Stat(file)
	content, err := os.ReadFile(file)
	if err != nil {
		why := files.Reason(err)
		return fmt.Sprintf("Error loading ACLs, opening file '%s': %s%s", file, strings.ToUpper(why[:1]), why[1:])
	}
	list, problems := r.ParseFile(file, content)
	if problems != "" {
		return problems + "WARNING: ACL errors detected, no change to the previously active ACL rules was performed"
	}
	u := &srv.users
	u.mu.Lock()
	defer u.mu.Unlock()
	u.file = states
	if !slices.ContainsFunc(list, func(user *acl.User) bool { return user.Name() == acl.DefaultName }) {
		list = append(list, r.Default())
	}
	old := u.accounts
	u.accounts = map[string]*account{}
	for _, user := range list {
		if a := old[user.Name()]; a != nil {
			delete(old, user.Name())
			u.accounts[user.Name()] = a
		}
		for s := range srv.pubsub.misplaced(u.put(user), user) {
			s.expel(by)
		}
	}
	srv.retire(by, slices.Collect(maps.Values(old)))
	return ""
}

// saveUsers writes the ACL file.
func (srv *Server) saveUsers() error {
	var b bytes.Buffer
	for _, user := range srv.users.all() {
		fmt.Fprintf(&b, "user %s %s\n", user.Name(), srv.rules().Describe(user))
	}
	file := srv.config.Get().ACLFile
	if err := config.ReplaceFile(file, b.Bytes()); err != nil {
		return err
	}
	u := &srv.users
	u.mu.Lock()
	defer u.mu.Unlock()
	u.file = files.Stat(file)
	return nil
}

// rereadUsers loads the ACL file, if there is one and it is not as it was when it was last read or written.
func (srv *Server) rereadUsers() {
	file := srv.config.Get().ACLFile
	if file == "" {
		return
	}
	u := &srv.users
	u.mu.Lock()
	same := files.Stat(file).Equal(u.file)
	u.mu.Unlock()
	if same {
		return
	}
	if problems := srv.loadUsers(nil); problems != "" {
		srv.log.Error("the ACL file has changed and cannot be used; the users stay as they are", "problem", problems)
		return
	}
	srv.log.Info("the ACL file has changed and was read again")
}

// userLines returns the users as lines of a configuration file, for CONFIG REWRITE: none if they are in a file of
// their own. The default user is left out if it is as without such a line. Users of included files stay there, where
// they cannot be changed.
func (srv *Server) userLines(set *config.Settings, included [][]string) (lines []string, err error) {
	if set.ACLFile != "" {
		return nil, nil
	}
	r := srv.rules()
	filed := map[string]string{}
	for _, words := range included {
		user, err := srv.configuredUser(words)
		if err != nil {
			return nil, err
		}
		filed[user.Name()] = r.Describe(user)
	}
	plain := r.Describe(withPassword(r, r.Default(), set.RequirePass))
	for _, user := range srv.users.all() {
		rules := r.Describe(user)
		if was, ok := filed[user.Name()]; ok && rules == was {
			delete(filed, user.Name())
			continue
		}
		if user.Name() == acl.DefaultName && rules == plain {
			continue
		}
		words := []string{"user", config.QuoteWord(user.Name())}
		for _, rule := range strings.Split(rules, " ") {
			words = append(words, config.QuoteWord(rule))
		}
		lines = append(lines, strings.Join(words, " "))
	}
	for name := range filed {
		return nil, fmt.Errorf("user '%s' is not as the file says that the configuration file includes", name)
	}
	return lines, nil
}

// enter makes the client a user if the password is right, and reports whether it is.
func (s *Session) enter(name, password []byte) bool {
	u := &s.srv.users
	u.mu.Lock()
	a := u.accounts[string(name)]
	ok := a != nil && a.user.Load().Admits(password)
	if ok {
		s.account.Store(a)
	}
	u.mu.Unlock()
	if !ok {
		s.logDenial(s.ctx.Cmd, s.logContext(), acl.DeniedAuth, string(s.ctx.Args[0]), string(name))
		return false
	}
	s.setAuthenticated(true)
	return true
}

// become makes the client a user without a password, and reports whether there is one who is not disabled.
func (s *Session) become(name string) bool {
	u := &s.srv.users
	u.mu.Lock()
	a := u.accounts[name]
	ok := a != nil && a.user.Load().Enabled()
	if ok {
		s.account.Store(a)
	}
	u.mu.Unlock()
	if ok {
		s.setAuthenticated(true)
	}
	return ok
}

// becomeDefault makes the client what it was when it connected.
func (s *Session) becomeDefault() {
	s.account.Store(s.srv.users.byNobody)
	s.setAuthenticated(s.srv.users.open())
}

func (s *Session) setAuthenticated(yes bool) {
	s.authenticated = yes
	s.parser.Unauthenticated = s.mustAuthenticate()
}

// mustAuthenticate reports whether the client may do nothing before it has authenticated. That can change without it.
func (s *Session) mustAuthenticate() bool { return !s.authenticated && !s.srv.users.open() }

// unrestricted reports whether the client may do everything. A session without an account may: it is the program's or
// the journal's.
func (s *Session) unrestricted() bool {
	a := s.account.Load()
	return a == nil || a.user.Load().Unrestricted()
}

// userName is the name of the client's user, as CLIENT LIST shows it.
func (s *Session) userName() string {
	if a := s.account.Load(); a != nil {
		return a.user.Load().Name()
	}
	return "(superuser)"
}

// check decides whether the client's user may execute a command.
func (s *Session) check(cmd *command.Command, args [][]byte) acl.Verdict {
	if a := s.account.Load(); a != nil {
		return checkFor(cmd, a.user.Load(), args)
	}
	return acl.Verdict{}
}

// checkFor decides whether a user may execute the command.
func checkFor(cmd *command.Command, user *acl.User, args [][]byte) acl.Verdict {
	if user.Unrestricted() {
		return acl.Verdict{}
	}
	var c acl.Call
	describeCall(cmd, &c, args)
	if user.ChecksKeys() {
		describeKeys(cmd, &c, args)
	}
	return user.Check(&c)
}

// describeCall describes the command with its arguments, but for the keys, for a decision.
func describeCall(cmd *command.Command, c *acl.Call, args [][]byte) {
	*c = acl.Call{Command: cmd.Index, Always: cmd.Flags&command.NoAuth != 0, Args: args}
	if cmd.Channels != nil {
		c.Channels, c.Patterns = cmd.Channels(args)
	}
}

// describeKeys describes the keys.
func describeKeys(cmd *command.Command, c *acl.Call, args [][]byte) {
	fit := cmd.EachKey(args, func(i int, spec *command.KeySpec) bool {
		if access, ok := neededAccess(cmd, spec, args); ok {
			c.Keys = append(c.Keys, acl.Key{Name: args[i], Access: access, At: i})
		}
		return true
	})
	if !fit {
		c.Keys = nil // the command will be an error, whatever its keys
	}
	const arbitrary = command.TouchesArbitraryKeys | command.WholeKeyspace
	switch {
	case !cmd.ArityOK(len(args)): // a script may ask so
	case cmd.DerivedKeys != nil:
		c.Keys = appendDerivedKeys(cmd, c.Keys, args)
	case cmd.Flags&(arbitrary|command.AllKeys) == arbitrary:
		// commands with AllKeys tell names, as KEYS does, and not what is there
		c.Unknown = keyAccess(cmd)
	}
}

// keyAccess is what the command may do with keys that no spec describes.
func keyAccess(cmd *command.Command) acl.Access {
	if cmd.Flags&command.Write != 0 {
		return acl.Read | acl.Write
	}
	return acl.Read
}

// appendDerivedKeys appends the keys that are not among the arguments.
func appendDerivedKeys(cmd *command.Command, keys []acl.Key, args [][]byte) []acl.Key {
	access := keyAccess(cmd)
	cmd.DerivedKeys(args, func(key []byte) {
		keys = append(keys, acl.Key{Name: bytes.Clone(key), Access: access, At: len(args)})
	})
	return keys
}

// neededAccess returns what the command does with the keys of the spec; ok is false if they are no keys.
func neededAccess(cmd *command.Command, spec *command.KeySpec, args [][]byte) (access acl.Access, ok bool) {
	for _, flag := range cmd.UseOfKey(spec, args) {
		switch flag {
		case "not_key":
			return 0, false
		case "access":
			access |= acl.Read
		case "insert", "delete", "update":
			access |= acl.Write
		}
	}
	return access, true
}

// MayReadAll implements Client.
func (s *Session) MayReadAll(cmd *command.Command, args [][]byte) bool {
	a := s.account.Load()
	if a == nil {
		return true
	}
	user := a.user.Load()
	if user.Unrestricted() {
		return true
	}
	var call acl.Call
	describeCall(cmd, &call, args)
	describeKeys(cmd, &call, args)
	call.Unknown |= acl.Read
	return user.Check(&call).Reason == acl.Allowed
}

// denied returns the error for a command that the client's user may not execute, and notes it in the log; "" if it may.
func (s *Session) denied(from command.Origin, cmd *command.Command, args [][]byte) command.Error {
	v := s.check(cmd, args)
	if v.Reason == acl.Allowed {
		return ""
	}
	s.logVerdict(from, cmd, v)
	switch {
	case from.In(command.FromQueue): // it was allowed when it was queued
		return command.Error("NOPERM ACLs rules changed between the moment the transaction was accumulated and the " +
			"EXEC call. This command is no longer allowed for the following reason: " + whyDeniedNow(v))
	case from.In(command.FromScript):
		return command.Error("ERR ACL failure in script: " + s.whyDenied(cmd, v))
	}
	return command.Error("NOPERM " + s.whyDenied(cmd, v))
}

// whyDenied says what a refused command lacks, without the key or channel: others may see it.
func (s *Session) whyDenied(cmd *command.Command, v acl.Verdict) string {
	switch v.Reason {
	case acl.DeniedKey:
		return "No permissions to access a key"
	case acl.DeniedChannel:
		return "No permissions to access a channel"
	}
	return "User " + s.userName() + " has no permissions to run the '" + cmd.Name + "' command"
}

// whyDeniedNow says the same of a command of a transaction.
func whyDeniedNow(v acl.Verdict) string {
	switch v.Reason {
	case acl.DeniedKey:
		return "no permission to touch the specified keys"
	case acl.DeniedChannel:
		return "no permission to access one of the channels used as arguments"
	}
	return "no permission to execute the command or subcommand"
}

// Where a refused command came from, in the log.
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

// logVerdict notes in the log that a command was refused.
func (s *Session) logVerdict(from command.Origin, cmd *command.Command, v acl.Verdict) {
	object := string(v.Object)
	if v.Reason == acl.DeniedCommand {
		object = cmd.Name
	}
	context := s.logContext()
	if from.In(command.FromScript) {
		context, cmd = inScript, s.ctx.Cmd // what the client has sent
	}
	s.logDenial(cmd, context, v.Reason, object, s.userName())
}

// logDenial notes in the log what was refused to the client, whose command is cmd.
func (s *Session) logDenial(cmd *command.Command, context string, why acl.Reason, object, user string) {
	if s.tx.running == 0 {
		s.lastCmd = cmd // it is in the description of the client
	}
	s.publish()
	s.srv.stats.denied[why].Add(1)
	now := s.srv.ks.Now()
	s.srv.users.log.Add(acl.Entry{Reason: why, Context: context, Object: object, User: user, Time: now,
		Client: string(s.describe(nil, now))},
		s.srv.config.Get().ACLLogMaxLen)
}
