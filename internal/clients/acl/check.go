package acl

import (
	"slices"

	"github.com/atomredis/atomredis/engine/glob"
	"github.com/atomredis/atomredis/internal/command"
)

// Key is a key that a command uses.
type Key struct {
	Name   []byte
	Access Access
	// At orders the keys of a command: it is the index of the argument.
	At int
}

// Call is a command with its arguments that a user wants to execute.
type Call struct {
	// Command is the command's index.
	Command int
	// Always says that every user may execute the command.
	Always bool
	// Args are the command's name and arguments.
	Args [][]byte
	Keys []Key
	// Unknown is what the command does with keys that are known only when it runs. It needs this permission for all
	// keys.
	Unknown Access
	// Channels are those that the command publishes to or subscribes to; Patterns says that they are patterns.
	Channels [][]byte
	Patterns bool
	// Databases are those that the command uses; AllDatabases says that it uses all.
	Databases    []Database
	AllDatabases bool
}

// Database is a database that a command uses.
type Database struct {
	Number int
	// Name is the argument with its number, or the command's name for the client's own database.
	Name []byte
}

// Reason says why a command is refused. If several selectors refuse it, the greatest reason counts.
type Reason uint8

// The reasons.
const (
	Allowed Reason = iota
	DeniedDatabase
	DeniedCommand
	DeniedKey
	DeniedAuth
	DeniedChannel
	DeniedCertificate // no enabled user has the name in it; the client stays what it was
	Reasons           // how many there are
)

// String returns the reason as ACL LOG shows it.
func (r Reason) String() string {
	return [...]string{"allowed", "database", "command", "key", "auth", "channel", "tls-cert"}[r]
}

// Verdict is the decision on a call. Object is the key, the channel or the name of the database that is refused.
type Verdict struct {
	Reason Reason
	Object []byte
	at     int
}

// Check decides whether the user may make the call.
func (u *User) Check(c *Call) Verdict {
	if u.unrestricted {
		return Verdict{}
	}
	var worst Verdict
	for _, s := range u.granted {
		v := s.check(c)
		if v.Reason == Allowed {
			return v
		}
		if v.Reason > worst.Reason || v.Reason == worst.Reason && v.at > worst.at {
			worst = v
		}
	}
	return worst
}

// AllowsChannel reports whether the user may listen to a channel or, if pattern is set, to a pattern of channels,
// which must be allowed literally.
func (u *User) AllowsChannel(name []byte, pattern bool) bool {
	return slices.ContainsFunc(u.granted, func(s *selector) bool { return s.allowsChannel(name, pattern) })
}

func (s *selector) check(c *Call) Verdict {
	if !c.Always && !s.commands.has(c.Command) && !s.allowsFirstArg(c) {
		return Verdict{Reason: DeniedCommand}
	}
	if !s.allDBs {
		if c.AllDatabases {
			return Verdict{DeniedDatabase, c.Args[0], 0}
		}
		for i, db := range c.Databases {
			if _, ok := slices.BinarySearch(s.dbs, db.Number); !ok {
				return Verdict{DeniedDatabase, db.Name, i}
			}
		}
	}
	if !s.allKeys {
		for i := range c.Keys {
			if k := &c.Keys[i]; !s.allowsKey(k.Name, k.Access) {
				return Verdict{DeniedKey, k.Name, k.At}
			}
		}
		if c.Unknown != 0 && !s.allowsEveryKey(c.Unknown) {
			return Verdict{DeniedKey, []byte("*"), len(c.Args)}
		}
	}
	if !s.allChannels {
		for i, name := range c.Channels {
			if !s.allowsChannel(name, c.Patterns) {
				return Verdict{DeniedChannel, name, i}
			}
		}
	}
	return Verdict{}
}

func (s *selector) allowsFirstArg(c *Call) bool {
	if len(c.Args) < 2 {
		return false
	}
	for _, arg := range s.firstArgs[c.Command] {
		if len(arg) == len(c.Args[1]) && lower(arg) == lower(string(c.Args[1])) {
			return true
		}
	}
	return false
}

func (s *selector) allowsKey(name []byte, access Access) bool {
	for i := range s.keys {
		p := &s.keys[i]
		if p.access&access == access && glob.Match([]byte(p.pattern), name, false) {
			return true
		}
	}
	return false
}

func (s *selector) allowsEveryKey(access Access) bool {
	return slices.ContainsFunc(s.keys, func(p keyPattern) bool { return p.pattern == "*" && p.access&access == access })
}

func (s *selector) allowsChannel(name []byte, pattern bool) bool {
	if s.allChannels {
		return true
	}
	for _, p := range s.channels {
		if pattern && p == string(name) || !pattern && glob.Match([]byte(p), name, false) {
			return true
		}
	}
	return false
}

// Refusal returns the error for a command of a user that the verdict refuses.
func (v Verdict) Refusal(from command.Origin, cmd *command.Command, user string) command.Error {
	switch {
	case from.In(command.FromQueue): // the command was allowed when it was queued
		return command.Error("NOPERM ACLs rules changed between the moment the transaction was accumulated and the " +
			"EXEC call. This command is no longer allowed for the following reason: " + v.whyNow())
	case from.In(command.FromScript):
		return command.Error("ERR ACL failure in script: " + v.why(cmd, user))
	}
	return command.Error("NOPERM " + v.why(cmd, user))
}

// why says what a refused command lacks, without the key or channel: others may see it.
func (v Verdict) why(cmd *command.Command, user string) string {
	switch v.Reason {
	case DeniedDatabase:
		return "No permissions to access database"
	case DeniedKey:
		return "No permissions to access a key"
	case DeniedChannel:
		return "No permissions to access a channel"
	}
	return "User " + user + " has no permissions to run the '" + cmd.Name + "' command"
}

// whyNow says the same of a command of a transaction.
func (v Verdict) whyNow() string {
	switch v.Reason {
	case DeniedDatabase:
		return "no permission to access the database"
	case DeniedKey:
		return "no permission to touch the specified keys"
	case DeniedChannel:
		return "no permission to access one of the channels used as arguments"
	}
	return "no permission to execute the command or subcommand"
}
