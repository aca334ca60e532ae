package acl

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/atomredis/atomredis/internal/command"
	"github.com/atomredis/atomredis/internal/config"
	"github.com/atomredis/atomredis/internal/files"
)

// Users are the users of a server. Their methods may be called by any goroutine.
type Users struct {
	table   *command.Table
	foreign []*command.Command // see tableForRules
	config  *config.Config
	logger  *slog.Logger
	clients Clients

	// held while users change and while a client gets an account; the methods of clients are called under it
	mu       sync.Mutex
	accounts map[string]*Account
	byNobody *Account                         // the default user, which is in accounts too
	roles    atomic.Pointer[map[string]*User] // by name; changes while mu is held
	file     files.States                     // the ACL file as it was when it was last read or written

	// Log records refusals.
	Log Log
}

// Account is a user across all changes of its rights; clients refer to it. A deleted account may do nothing.
type Account struct{ user atomic.Pointer[User] }

// User returns the user with its present rights.
func (a *Account) User() *User { return a.user.Load() }

// Clients are the clients of the server. The argument by is the client that changes users, or nil. If it is
// disconnected, it still gets its reply.
type Clients interface {
	// Expel disconnects the clients of accounts that have been deleted.
	Expel(by command.Client, accounts []*Account)
	// ExpelListeners disconnects those of an account that listen to channels which it may not use.
	ExpelListeners(by command.Client, a *Account)
}

// NewUsers makes the users of the configuration. foreign are commands that rules can name although they are not in
// the table; their indices differ from those of the table.
func NewUsers(table *command.Table, foreign []*command.Command, conf *config.Config, log *slog.Logger, clients Clients) (*Users, error) {
	set := conf.Get()
	u := &Users{table: table, foreign: foreign, config: conf, logger: log, clients: clients, accounts: map[string]*Account{}}
	u.roles.Store(&map[string]*User{})
	u.byNobody = u.put(withPassword(u.Rules(), u.Rules().Default(), set.ACL.RequirePass))
	conf.Follow(func(set *config.Settings) { u.setPassword(set.ACL.RequirePass) }, "requirepass")
	if set.ACL.File != "" && len(set.ACL.Users)+len(set.ACL.Roles) > 0 {
		return nil, errors.New("users are defined both in the configuration file and in an ACL file: only one of them may " +
			"have users")
	}
	for _, words := range set.ACL.Roles {
		if err := u.addRole(words); err != nil {
			return nil, err
		}
	}
	for _, words := range set.ACL.Users {
		user, err := u.configured(words)
		if err != nil {
			return nil, err
		}
		u.put(user)
	}
	if set.ACL.File == "" {
		return u, nil
	}
	if problems := u.Load(nil); problems != "" {
		return nil, errors.New(problems)
	}
	return u, nil
}

// Rules returns the Rules that make users of this server.
func (u *Users) Rules() Rules {
	set := u.config.Get()
	return Rules{Commands: tableForRules{u.table, u.foreign}, AllChannels: set.ACL.PubSubDefault,
		Databases: set.DatabaseCount(), Roles: *u.roles.Load()}
}

// configured returns the user of a line of the configuration file; words are its name and rules.
func (u *Users) configured(words []string) (*User, error) {
	r, name := u.Rules(), words[0]
	if !ValidName(name) {
		return nil, fmt.Errorf("user '%s': spaces are not allowed in names", name)
	}
	user, err := r.configure("user", r.New(name), words[1:])
	if err == nil && !user.Enabled() {
		u.logger.Info("a user is disabled: its rules in the configuration do not include 'on'", "user", name)
	}
	return user, err
}

// configuredRole returns the role of a line of the configuration file; words are its name and rules.
func (u *Users) configuredRole(words []string) (*User, error) {
	r, name := u.Rules(), words[0]
	if err := CheckRoleName(name); err != nil {
		return nil, fmt.Errorf("role '%s': %w", name, err)
	}
	return r.configure(roleWord, r.NewRole(name), words[1:])
}

// configure applies the rules of a line of the configuration file to a new user or role; word begins the line.
func (r Rules) configure(word string, user *User, words []string) (*User, error) {
	rules, unmatched := Merge(words)
	if unmatched >= 0 {
		return nil, fmt.Errorf("%s '%s': unmatched parenthesis", word, user.name)
	}
	configured, err := r.Apply(user, rules...)
	if err != nil {
		return nil, fmt.Errorf("%s '%s': %w", word, user.name, err)
	}
	return configured, nil
}

// withPassword gives the default user the password of requirepass, "" for none.
func withPassword(r Rules, user *User, password string) *User {
	rule := "nopass"
	if password != "" {
		rule = ">" + password
	}
	user, err := r.Apply(user, "resetpass", rule)
	if err != nil {
		panic("acl: " + err.Error()) // cannot happen: any text can be a password
	}
	return user
}

// setPassword applies a new value of requirepass.
func (u *Users) setPassword(password string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.byNobody.user.Store(withPassword(u.Rules(), u.byNobody.User(), password))
}

// put adds a user or gives it new permissions. mu is locked, except while NewUsers makes u.
func (u *Users) put(user *User) *Account {
	a := u.accounts[user.Name()]
	if a == nil {
		a = new(Account)
		u.accounts[user.Name()] = a
	}
	a.user.Store(user)
	return a
}

// Default is the account of clients that have not authenticated. It is always the same.
func (u *Users) Default() *Account { return u.byNobody }

// Open reports whether clients may run commands without authentication.
func (u *Users) Open() bool {
	user := u.byNobody.User()
	return user.Enabled() && !user.NeedsPassword()
}

// Get returns the account of that name, or nil.
func (u *Users) Get(name []byte) *Account {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.accounts[string(name)]
}

// All returns the users in order of their names.
func (u *Users) All() []*User {
	u.mu.Lock()
	defer u.mu.Unlock()
	list := make([]*User, 0, len(u.accounts))
	for _, a := range u.accounts {
		list = append(list, a.User())
	}
	slices.SortFunc(list, func(a, b *User) int { return cmp.Compare(a.Name(), b.Name()) })
	return list
}

// Authenticate gives a client the account of that name if digest is the SHA-256 digest of its password, and reports
// whether it is.
func (u *Users) Authenticate(client *atomic.Pointer[Account], name string, digest [sha256.Size]byte) bool {
	return u.enter(client, name, func(user *User) bool { return user.Admits(digest) })
}

// Become gives a client the account of that name without a password. It reports whether an enabled account exists.
func (u *Users) Become(client *atomic.Pointer[Account], name string) bool {
	return u.enter(client, name, (*User).Enabled)
}

// enter gives a client the account of that name if right accepts its user. A later deletion of the account finds the
// client.
func (u *Users) enter(client *atomic.Pointer[Account], name string, right func(user *User) bool) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	a := u.accounts[name]
	if a == nil || !right(a.User()) {
		return false
	}
	client.Store(a)
	return true
}

// Set applies rules to a user, and creates it if needed. It disconnects the user's clients that listen to channels
// that are now forbidden. by is the client that asks, or nil. The error is a *RuleError.
func (u *Users) Set(by command.Client, name string, rules []string) error {
	u.mu.Lock()
	defer u.mu.Unlock()
	r := u.Rules()
	a := u.accounts[name]
	if a == nil {
		user, err := r.Apply(r.New(name), rules...)
		if err == nil {
			u.put(user)
		}
		return err
	}
	user, err := r.Apply(a.User(), rules...)
	if err != nil {
		return err
	}
	a.user.Store(user)
	u.clients.ExpelListeners(by, a)
	return nil
}

// Delete removes a user and disconnects its clients; it reports whether the user existed. by is the client that
// asks.
func (u *Users) Delete(by command.Client, name string) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	a := u.accounts[name]
	if a == nil {
		return false
	}
	delete(u.accounts, name)
	u.retire(by, []*Account{a})
	return true
}

// retire takes all permissions from accounts and disconnects their clients. mu is locked.
func (u *Users) retire(by command.Client, accounts []*Account) {
	for _, a := range accounts {
		a.user.Store(u.Rules().New(a.User().Name()))
	}
	u.clients.Expel(by, accounts)
}

// HasFile reports whether the users are in a file of their own (aclfile).
func (u *Users) HasFile() bool { return u.config.Get().ACL.File != "" }

// Load replaces all users by those of the ACL file; if the file has errors, it changes nothing and returns them. It
// disconnects clients of removed users, and those that listen to channels that are now forbidden. by is the client
// that asks, or nil.
func (u *Users) Load(by command.Client) (problems string) {
	file, r := u.config.Get().ACL.File, u.Rules()
	states := files.Stat(file)
	content, err := os.ReadFile(file)
	if err != nil {
		why := files.Reason(err)
		return fmt.Sprintf("Error loading ACLs, opening file '%s': %s%s", file, strings.ToUpper(why[:1]), why[1:])
	}
	list, roles, problems := r.ParseFile(file, content)
	if problems != "" {
		return problems + "WARNING: ACL errors detected, no change to the previously active ACL rules was performed"
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	u.file = states
	u.roles.Store(&roles)
	if !slices.ContainsFunc(list, func(user *User) bool { return user.Name() == DefaultName }) {
		list = append(list, r.Default())
	}
	old := u.accounts
	u.accounts = map[string]*Account{}
	for _, user := range list {
		if a := old[user.Name()]; a != nil {
			delete(old, user.Name())
			u.accounts[user.Name()] = a
		}
		u.clients.ExpelListeners(by, u.put(user))
	}
	u.retire(by, slices.Collect(maps.Values(old)))
	return ""
}

// Save writes the ACL file.
func (u *Users) Save() error {
	var b bytes.Buffer
	for _, role := range u.AllRoles() {
		fmt.Fprintf(&b, "%s %s %s\n", roleWord, role.Name(), u.Rules().Describe(role))
	}
	for _, user := range u.All() {
		fmt.Fprintf(&b, "user %s %s\n", user.Name(), u.Rules().Describe(user))
	}
	file := u.config.Get().ACL.File
	if err := config.ReplaceFile(file, b.Bytes()); err != nil {
		return err
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	u.file = files.Stat(file)
	return nil
}

// Reread loads the ACL file if it exists and has changed since it was last read or written.
func (u *Users) Reread() {
	if !u.HasFile() {
		return
	}
	u.mu.Lock()
	same := files.Stat(u.config.Get().ACL.File).Equal(u.file)
	u.mu.Unlock()
	if same {
		return
	}
	if problems := u.Load(nil); problems != "" {
		u.logger.Error("the ACL file has changed but has errors; the users stay unchanged", "problem", problems)
		return
	}
	u.logger.Info("the ACL file has changed and was read again")
}

// Lines returns the roles and users as lines of a configuration file, for CONFIG REWRITE: none if they are in a file of
// their own. The default user is left out if a line would not change it. Those of included files stay in those files,
// which are not rewritten.
func (u *Users) Lines(set *config.Settings, included [][]string) (lines []string, err error) {
	if set.ACL.File != "" {
		return nil, nil
	}
	r := u.Rules()
	filed := map[[2]string]string{} // by word and name
	for _, words := range included {
		made := u.configured
		if words[0] == roleWord {
			made = u.configuredRole
		}
		user, err := made(words[1:])
		if err != nil {
			return nil, err
		}
		filed[[2]string{words[0], user.Name()}] = r.Describe(user)
	}
	add := func(word string, user *User, plain string) {
		rules, key := r.Describe(user), [2]string{word, user.Name()}
		if was, ok := filed[key]; ok && rules == was {
			delete(filed, key)
			return
		}
		if rules == plain {
			return
		}
		words := []string{word, config.QuoteWord(user.Name())}
		for _, rule := range strings.Split(rules, " ") {
			words = append(words, config.QuoteWord(rule))
		}
		lines = append(lines, strings.Join(words, " "))
	}
	for _, role := range u.AllRoles() {
		add(roleWord, role, "")
	}
	for _, user := range u.All() {
		plain := ""
		if user.Name() == DefaultName {
			plain = r.Describe(withPassword(r, r.Default(), set.ACL.RequirePass))
		}
		add("user", user, plain)
	}
	for key := range filed {
		return nil, fmt.Errorf("%s '%s' is not as the file says that the configuration file includes", key[0], key[1])
	}
	return lines, nil
}

// addRole adds the role of a line of the configuration file, while NewUsers makes u.
func (u *Users) addRole(words []string) error {
	role, err := u.configuredRole(words)
	if err == nil {
		(*u.roles.Load())[role.name] = role
	}
	return err
}
