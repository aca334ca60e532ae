// Package acl decides what users may do. Rules are those of ACL SETUSER and ACL files, a User decides whether a
// command may run, Users are the users of a server, and a Log records refusals. Rules know commands only by number,
// name and category; Users see clients through an interface.
package acl

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/atomredis/atomredis/resp"
)

// DefaultName is the name of the user of clients that have not authenticated.
const DefaultName = "default"

// Command is what rules need to know of a command.
type Command struct {
	// Index is the command's number; sub-commands have numbers of their own.
	Index int
	// Name is in lower case. A sub-command's begins with that of its container: "config|get".
	Name string
	// Categories is a set of bits, in the order of Commands.Categories. Commands that programs add have none: they
	// belong to @all only.
	Categories uint32
	// Sub says that it is a sub-command.
	Sub bool
	// Subs are its sub-commands.
	Subs []Command
}

// Commands is the command table as rules see it. Commands may be added while there are users.
type Commands interface {
	// Command returns the command or sub-command of that name, in any case.
	Command(name string) (cmd Command, ok bool)
	// All returns the commands, without sub-commands, in order of their names.
	All() []Command
	// Categories are the names of the categories, in lower case.
	Categories() []string
}

// Rules makes users from rules.
type Rules struct {
	Commands Commands
	// AllChannels says that users may use all channels until a rule says otherwise (acl-pubsub-default).
	AllChannels bool
	// Databases is how many databases there are.
	Databases int
	// Roles are the roles that users can have, by name. It does not change.
	Roles map[string]*User
}

// User is a user with its rights at one time, or a role. It is immutable: applying rules makes a new one.
type User struct {
	name         string
	isRole       bool
	flags        flags
	passwords    []password
	selectors    []*selector // the first, which always exists, has the user's own permissions
	roles        []*User     // whose selectors count like its own
	granted      []*selector // its own and those of its roles
	unrestricted bool        // a selector allows everything
	checksKeys   bool        // at least one selector does not allow all keys
	checksDBs    bool        // at least one selector does not allow all databases
	databases    int         // how many there are
}

// password is the SHA-256 digest of a password.
type password [sha256.Size]byte

// flags are properties of a user as a whole.
type flags uint8

const (
	enabled flags = 1 << iota
	disabled
	noPassword
	skipSanitize
	sanitize
)

var flagNames = [...]string{"on", "off", "nopass", "skip-sanitize-payload", "sanitize-payload"}

// Why a rule cannot be applied.
var (
	errUnknown       = errors.New("Unknown command or category name in ACL")
	errSyntax        = errors.New("Syntax error")
	errAfterAllKeys  = errors.New("Adding a pattern after the * pattern (or the 'allkeys' flag) is not valid and does not have any effect. Try 'resetkeys' to start with an empty list of patterns")
	errAfterAllChans = errors.New("Adding a pattern after the * pattern (or the 'allchannels' flag) is not valid and does not have any effect. Try 'resetchannels' to start with an empty list of channels")
	errNoPassword    = errors.New("The password you are trying to remove from the user does not exist")
	errHash          = errors.New("The password hash must be exactly 64 characters and contain only lowercase hexadecimal characters")
	errDatabase      = errors.New("The provided database ID is out of range")
	errSubFirstArg   = errors.New("Allowing first-arg of a subcommand is not supported")
	errOnlyUsers     = errors.New("A role cannot have a rule about users")
	errNoRole        = errors.New("The role does not exist")
)

// RuleError says which rule cannot be applied, and why.
type RuleError struct {
	Rule string
	Err  error
}

// Error implements error.
func (e *RuleError) Error() string { return fmt.Sprintf("'%s': %v", e.Rule, e.Err) }

// Unwrap returns the reason.
func (e *RuleError) Unwrap() error { return e.Err }

// New returns a user that may do nothing and cannot authenticate.
func (r Rules) New(name string) *User {
	own := []*selector{r.newSelector()}
	return &User{name: name, flags: disabled | sanitize, selectors: own, granted: own, checksKeys: true}
}

// Default returns the default user before any change: it may do everything, without a password.
func (r Rules) Default() *User {
	u, err := r.Apply(r.New(DefaultName), "+@all", "~*", "&*", "on", "nopass")
	if err != nil {
		panic("acl: " + err.Error()) // cannot happen: these rules name nothing that can be unknown
	}
	return u
}

// Apply returns a copy of u with rules applied. The error is a *RuleError.
func (r Rules) Apply(u *User, rules ...string) (*User, error) {
	next := &User{name: u.name, isRole: u.isRole, flags: u.flags, passwords: slices.Clone(u.passwords)}
	for _, s := range u.selectors {
		next.selectors = append(next.selectors, s.clone())
	}
	for _, role := range u.roles {
		next.roles = append(next.roles, cmp.Or(r.Roles[role.name], role))
	}
	for _, rule := range rules {
		if err := r.apply(next, rule); err != nil {
			return nil, &RuleError{rule, err}
		}
	}
	next.granted = next.selectors
	for _, role := range next.roles {
		next.granted = append(slices.Clip(next.granted), role.selectors...)
	}
	next.unrestricted = slices.ContainsFunc(next.granted, (*selector).allowsEverything)
	next.checksKeys = slices.ContainsFunc(next.granted, func(s *selector) bool { return !s.allKeys })
	next.checksDBs = slices.ContainsFunc(next.granted, func(s *selector) bool { return !s.allDBs })
	next.databases = r.Databases
	return next, nil
}

// apply applies one rule to u.
func (r Rules) apply(u *User, rule string) error {
	if rule == "" {
		return nil
	}
	if u.isRole && ofUsers(rule) {
		return errOnlyUsers
	}
	switch lower(rule) {
	case "on":
		u.flags = u.flags&^disabled | enabled
		return nil
	case "off":
		u.flags = u.flags&^enabled | disabled
		return nil
	case "skip-sanitize-payload":
		u.flags = u.flags&^sanitize | skipSanitize
		return nil
	case "sanitize-payload":
		u.flags = u.flags&^skipSanitize | sanitize
		return nil
	case "nopass":
		u.flags |= noPassword
		u.passwords = nil
		return nil
	case "resetpass":
		u.flags &^= noPassword
		u.passwords = nil
		return nil
	case "clearselectors":
		u.selectors = u.selectors[:1]
		return nil
	case "reset":
		u.flags = disabled | sanitize
		u.passwords = nil
		u.selectors, u.roles = []*selector{r.newSelector()}, nil
		return nil
	case "resetroles":
		u.roles = nil
		return nil
	}
	if names, ok := roleNames(rule); ok {
		return r.setRoles(u, names)
	}
	switch c := rule[0]; {
	case strings.IndexByte("><#!", c) >= 0:
		return u.applyPassword(c, rule[1:])
	case c == '(' && rule[len(rule)-1] == ')':
		return r.addSelector(u, rule)
	}
	return r.applyTo(u.selectors[0], rule)
}

// applyPassword adds a password (kind '>' or '#') or removes one ('<' or '!'). With '#' and '!' the text is its
// digest in hexadecimal.
func (u *User) applyPassword(kind byte, text string) error {
	var p password
	if kind == '>' || kind == '<' {
		p = sha256.Sum256([]byte(text))
	} else if len(text) != 2*len(p) || lower(text) != text {
		return errHash
	} else if _, err := hex.Decode(p[:], []byte(text)); err != nil {
		return errHash
	}
	i := slices.Index(u.passwords, p)
	switch {
	case kind == '<' || kind == '!':
		if i < 0 {
			return errNoPassword
		}
		u.passwords = slices.Delete(u.passwords, i, i+1)
		return nil
	case i < 0:
		u.passwords = append(u.passwords, p)
	}
	u.flags &^= noPassword
	return nil
}

// addSelector adds a selector: rules in parentheses. As in Redis, a selector with unbalanced quotes has no rules.
func (r Rules) addSelector(u *User, rule string) error {
	s := r.newSelector()
	words, err := resp.SplitArgs([]byte(rule[1:max(len(rule)-1, 1)]), nil)
	if err != nil {
		words = nil
	}
	for _, word := range words {
		if err := r.applyTo(s, string(word)); err != nil {
			return err
		}
	}
	u.selectors = append(u.selectors, s)
	return nil
}

// Merge makes one rule of the arguments of each selector: "(~a" and "+get)" become "(~a +get)". unmatched is the
// index of the argument that opens a selector without closing it, or -1.
func Merge(args []string) (rules []string, unmatched int) {
	open, unmatched := "", -1
	for i, arg := range args {
		closes := strings.HasSuffix(arg, ")")
		switch {
		case strings.HasPrefix(arg, "(") && !closes:
			open, unmatched = arg, i
		case unmatched >= 0:
			open += " " + arg
			if closes {
				rules = append(rules, open)
				unmatched = -1
			}
		default:
			rules = append(rules, arg)
		}
	}
	return rules, unmatched
}

// ValidName reports whether a user may have that name.
func ValidName(name string) bool { return !hasSpaces(name) }

// hasSpaces reports whether s has white space or NUL, which would make rules ambiguous in files.
func hasSpaces(s string) bool { return strings.ContainsAny(s, " \t\n\v\f\r\x00") }

// lower returns s with ASCII letters in lower case.
func lower(s string) string {
	for i := range len(s) {
		if c := s[i]; c >= 'A' && c <= 'Z' {
			b := []byte(s)
			for ; i < len(b); i++ {
				if b[i] >= 'A' && b[i] <= 'Z' {
					b[i] |= 0x20
				}
			}
			return string(b)
		}
	}
	return s
}

// Name is the user's name.
func (u *User) Name() string { return u.name }

// Enabled reports whether clients can authenticate as the user.
func (u *User) Enabled() bool { return u.flags&disabled == 0 }

// NeedsPassword reports whether authentication as the user needs a password.
func (u *User) NeedsPassword() bool { return u.flags&noPassword == 0 }

// Unrestricted reports whether the user may do everything.
func (u *User) Unrestricted() bool { return u.unrestricted }

// ChecksKeys reports whether decisions can depend on the keys of a call.
func (u *User) ChecksKeys() bool { return u.checksKeys }

// Admits reports whether digest is the SHA-256 digest of a password of the user. Its time does not depend on how
// similar the passwords are.
func (u *User) Admits(digest [sha256.Size]byte) bool {
	if !u.Enabled() {
		return false
	}
	if !u.NeedsPassword() {
		return true
	}
	found := 0
	for i := range u.passwords {
		found |= subtle.ConstantTimeCompare(digest[:], u.passwords[i][:])
	}
	return found == 1
}

// Flags are the names of the user's flags.
func (u *User) Flags() (names []string) {
	for i, name := range flagNames {
		if u.flags&(1<<i) != 0 {
			names = append(names, name)
		}
	}
	return names
}

// Passwords are the digests of the passwords, in hexadecimal.
func (u *User) Passwords() (digests []string) {
	for i := range u.passwords {
		digests = append(digests, hex.EncodeToString(u.passwords[i][:]))
	}
	return digests
}

// ParseFile reads the users and roles of a file as ACL SAVE writes it: one to a line, and no comments. If it has errors,
// problems describes all of them, in Redis's words.
func (r Rules) ParseFile(file string, content []byte) (users []*User, roles map[string]*User, problems string) {
	roles, seen := map[string]*User{}, map[string]bool{}
	lines := bytes.Split(content, []byte("\n"))
	each := func(isRole bool, read func(words []string, number int) (problem string)) {
		for i, line := range lines {
			words := strings.Split(string(bytes.Trim(line, " \t\r\n")), " ")
			if words[0] != "" && (words[0] == roleWord) == isRole {
				problems += read(words, i+1)
			}
		}
	}
	each(true, func(words []string, number int) string {
		role, problem := r.parseRole(words, file, number, roles)
		if role != nil {
			roles[role.name] = role
		}
		return problem
	})
	r.Roles = roles
	each(false, func(words []string, number int) string {
		u, problem := r.parseUser(words, file, number, seen)
		users = append(users, u)
		return problem
	})
	return users, roles, problems
}

// parseUser reads a line about a user. seen are the names in the lines before.
func (r Rules) parseUser(words []string, file string, number int, seen map[string]bool) (u *User, problem string) {
	place := fmt.Sprintf("%s:%d", file, number)
	if len(words) < 2 || words[0] != "user" {
		return nil, place + " should start with user keyword followed by the username. "
	}
	name := words[1]
	switch {
	case !ValidName(name):
		return nil, fmt.Sprintf("'%s: username '%s' contains invalid characters. ", place, name)
	case seen[name]:
		return nil, fmt.Sprintf("WARNING: Duplicate user '%s' found on line %d. ", name, number)
	}
	seen[name] = true
	return r.parseRules(r.New(name), words[2:], place)
}

// parseRules applies the rules in a line.
func (r Rules) parseRules(u *User, words []string, place string) (_ *User, problem string) {
	rules, unmatched := Merge(words)
	if unmatched >= 0 {
		return nil, place + ": Unmatched parenthesis in selector definition."
	}
	for _, rule := range rules {
		next, err := r.Apply(u, strings.Trim(rule, "\t\r\n"))
		switch {
		case errors.Is(err, errUnknown): // such a rule contains no password
			problem += fmt.Sprintf("%s: Error in applying operation '%s': %v. ", place, rule, errUnknown)
		case err != nil:
			problem += fmt.Sprintf("%s: %v. ", place, errors.Unwrap(err))
		default:
			u = next
		}
	}
	return u, problem
}
