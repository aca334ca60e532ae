package acl

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/atomredis/atomredis/internal/command"
)

// Roles, as in Valkey 9.2: sets of permissions with a name. A user may do what its own rules allow, and what its roles
// allow. A role is a User with nothing but selectors.

// roleWord begins a line about a role in files.
const roleWord = "role"

// NewRole returns a role that allows nothing.
func (r Rules) NewRole(name string) *User {
	u := r.New(name)
	u.isRole, u.flags = true, 0
	return u
}

// CheckRoleName returns what is wrong with the name of a role, nil if it is valid.
func CheckRoleName(name string) error {
	switch {
	case name == "":
		return errors.New("Role names can't be empty")
	case strings.ContainsFunc(name, func(c rune) bool { return c <= ' ' || c > '~' }):
		return errors.New("Role names must consist of printable ASCII characters other than space")
	case strings.Contains(name, ","):
		return errors.New("Role names can't contain commas")
	case strings.ContainsAny(name, `"'\\`):
		return errors.New("Role names can't contain quotes or backslashes")
	}
	return nil
}

// roleNames returns the names in a rule role=name[,name …].
func roleNames(rule string) (names []string, ok bool) {
	const prefix = roleWord + "="
	if len(rule) < len(prefix) || lower(rule[:len(prefix)]) != prefix {
		return nil, false
	}
	return strings.Split(rule[len(prefix):], ","), true
}

// ofUsers reports whether a rule is about a user as a whole, which roles do not have.
func ofUsers(rule string) bool {
	if _, ok := roleNames(rule); ok || strings.IndexByte("><#!", rule[0]) >= 0 {
		return true
	}
	switch rule = lower(rule); rule {
	case "reset", "resetpass", "resetroles":
		return true
	}
	return slices.Contains(flagNames[:], rule)
}

// setRoles gives a user roles in place of those that it has.
func (r Rules) setRoles(u *User, names []string) error {
	var roles []*User
	for _, name := range names {
		role := r.Roles[name]
		switch {
		case name == "":
			return errSyntax
		case role == nil:
			return errNoRole
		case !slices.Contains(roles, role):
			roles = append(roles, role)
		}
	}
	u.roles = roles
	return nil
}

// Roles are the names of the user's roles.
func (u *User) Roles() (names []string) {
	for _, role := range u.roles {
		names = append(names, role.name)
	}
	return names
}

// parseRole reads a line about a role. seen are the roles in the lines before.
func (r Rules) parseRole(words []string, file string, number int, seen map[string]*User) (role *User, problem string) {
	place := fmt.Sprintf("%s:%d", file, number)
	if len(words) < 2 {
		return nil, place + ": a role line requires a role name. "
	}
	name := words[1]
	if err := CheckRoleName(name); err != nil {
		return nil, fmt.Sprintf("%s: invalid role name: %v. ", place, err)
	}
	if seen[name] != nil {
		return nil, fmt.Sprintf("WARNING: Duplicate role '%s' found on line %d. ", name, number)
	}
	return r.parseRules(r.NewRole(name), words[2:], place)
}

// AllRoles returns the roles in order of their names.
func (u *Users) AllRoles() (list []*User) {
	roles := *u.roles.Load()
	for _, name := range slices.Sorted(maps.Keys(roles)) {
		list = append(list, roles[name])
	}
	return list
}

// Role returns the role of that name, or nil, and the names of the users that have it, in order.
func (u *Users) Role(name []byte) (role *User, users []string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if role = (*u.roles.Load())[string(name)]; role == nil {
		return nil, nil
	}
	return role, u.having(role)
}

// having returns the names of the users that have a role, in order. mu is locked.
func (u *Users) having(role *User) (names []string) {
	for _, name := range slices.Sorted(maps.Keys(u.accounts)) {
		if slices.Contains(u.accounts[name].User().roles, role) {
			names = append(names, name)
		}
	}
	return names
}

// SetRole applies rules to a role, and creates it if needed. It disconnects clients that listen to channels that are
// now forbidden. by is the client that asks, or nil. The error is a *RuleError.
func (u *Users) SetRole(by command.Client, name string, rules []string) error {
	u.mu.Lock()
	defer u.mu.Unlock()
	r := u.Rules()
	role := r.Roles[name]
	users := []string(nil)
	if role == nil {
		role = r.NewRole(name)
	} else {
		users = u.having(role)
	}
	role, err := r.Apply(role, rules...)
	if err != nil {
		return err
	}
	roles := maps.Clone(r.Roles)
	roles[name] = role
	u.roles.Store(&roles)
	r.Roles = roles
	for _, name := range users {
		a := u.accounts[name]
		user, err := r.Apply(a.User())
		if err != nil {
			panic("acl: " + err.Error()) // cannot happen: there are no rules
		}
		a.user.Store(user)
		u.clients.ExpelListeners(by, a)
	}
	return nil
}

// DeleteRoles removes roles, and returns how many of them existed. If users have one of them, it removes none, and
// returns its name.
func (u *Users) DeleteRoles(names []string) (deleted int, held string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	roles := maps.Clone(*u.roles.Load())
	for _, name := range names {
		role := roles[name]
		if role == nil {
			continue
		}
		if len(u.having(role)) > 0 {
			return 0, name
		}
		delete(roles, name)
		deleted++
	}
	u.roles.Store(&roles)
	return deleted, ""
}
