package acl

import (
	"bytes"
	"strings"

	"github.com/atomredis/atomredis/internal/command"
	"github.com/atomredis/atomredis/resp"
)

// This file connects rules and decisions with the command table.

// tableForRules shows the command table to the rules of users.
type tableForRules struct {
	t *command.Table
	// foreign are the commands of doors, which the table does not have.
	foreign []*command.Command
}

// Command implements Commands.
func (c tableForRules) Command(name string) (cmd Command, ok bool) {
	if found := c.t.Original(name); found != nil {
		return forRules(found), true
	}
	name = strings.ToLower(name)
	for _, cmd := range c.foreign {
		if cmd.Name == name {
			return forRules(cmd), true
		}
		for _, sub := range cmd.Subs {
			if sub.Name == name {
				return forRules(sub), true
			}
		}
	}
	return Command{}, false
}

// All implements Commands.
func (c tableForRules) All() (list []Command) {
	for _, cmd := range c.t.Everything() {
		list = append(list, forRules(cmd))
	}
	for _, cmd := range c.foreign {
		list = append(list, forRules(cmd))
	}
	return list
}

// Categories implements Commands.
func (c tableForRules) Categories() []string { return command.CategoryNames[:] }

// forRules returns what the rules of users need to know.
func forRules(cmd *command.Command) Command {
	r := Command{Index: cmd.Index, Name: cmd.Name, Categories: Categories(cmd), Sub: cmd.Parent != nil}
	for _, sub := range cmd.Subs {
		r.Subs = append(r.Subs, forRules(sub))
	}
	return r
}

// Categories are the categories of a command, in the bits of command.CategoryNames.
func Categories(cmd *command.Command) uint32 {
	if cmd.Custom {
		return 0 // as Redis has it with the commands of modules
	}
	return uint32(cmd.ACL)
}

// CheckCommand decides whether the user may execute a command of a client that uses the database db.
func (u *User) CheckCommand(cmd *command.Command, args [][]byte, db int) Verdict {
	if u.unrestricted {
		return Verdict{}
	}
	var c Call
	describeCall(cmd, &c, args)
	if u.checksKeys {
		describeKeys(cmd, &c, args)
	}
	if u.checksDBs {
		describeDatabases(cmd, &c, args, db, u.databases)
	}
	return u.Check(&c)
}

// MayRead reports whether the user may read the key of a database with the command.
func (u *User) MayRead(cmd *command.Command, key []byte, db int) bool {
	if u.unrestricted {
		return true
	}
	name := []byte(cmd.Name)
	return u.Check(&Call{Command: cmd.Index, Args: [][]byte{name}, Keys: []Key{{Name: key, Access: Read}},
		Databases: []Database{{Number: db, Name: name}}}).Reason == Allowed
}

// MayReadAll reports whether the user may execute a command, of a client that uses the database db, although it reads
// keys that are not among its arguments.
func (u *User) MayReadAll(cmd *command.Command, args [][]byte, db int) bool {
	if u.unrestricted {
		return true
	}
	var c Call
	describeCall(cmd, &c, args)
	describeKeys(cmd, &c, args)
	c.Unknown |= Read
	describeDatabases(cmd, &c, args, db, u.databases)
	return u.Check(&c).Reason == Allowed
}

// describeCall fills in the call, except for its keys.
func describeCall(cmd *command.Command, c *Call, args [][]byte) {
	*c = Call{Command: cmd.Index, Always: cmd.Flags&command.NoAuth != 0, Args: args}
	if cmd.Channels != nil {
		c.Channels, c.Patterns = cmd.Channels(args)
	}
}

// describeKeys fills in the keys of the call.
func describeKeys(cmd *command.Command, c *Call, args [][]byte) {
	fit := cmd.EachKey(args, func(i int, spec *command.KeySpec) bool {
		if access, ok := neededAccess(cmd, spec, args); ok {
			c.Keys = append(c.Keys, Key{Name: args[i], Access: access, At: i})
		}
		return true
	})
	if !fit {
		c.Keys = nil // the command fails, whatever its keys
	}
	const arbitrary = command.TouchesArbitraryKeys | command.WholeKeyspace
	switch {
	case !cmd.ArityOK(len(args)): // possible in a script's question
	case cmd.DerivedKeys != nil:
		c.Keys = appendDerivedKeys(cmd, c.Keys, args)
	case cmd.Flags&(arbitrary|command.AllKeys) == arbitrary:
		// commands with AllKeys return names of keys, as KEYS does, and no values
		c.Unknown = keyAccess(cmd)
	}
}

// describeDatabases fills in the databases of the call; the client uses db. A command with an invalid number fails,
// whatever the user's rights, so such numbers are left out.
func describeDatabases(cmd *command.Command, c *Call, args [][]byte, db, databases int) {
	c.AllDatabases = cmd.AllDatabases
	if usesOwnDatabase(cmd) {
		c.Databases = append(c.Databases, Database{Number: db, Name: args[0]})
	}
	if cmd.Databases == nil {
		return
	}
	for _, i := range cmd.Databases(args) {
		if i >= len(args) {
			continue
		}
		if n, ok := resp.ParseInt(args[i]); ok && n >= 0 && n < int64(databases) {
			c.Databases = append(c.Databases, Database{Number: int(n), Name: args[i]})
		}
	}
}

// usesOwnDatabase reports whether the command uses keys of the database that its client has selected. What scripts do is
// checked command by command.
func usesOwnDatabase(cmd *command.Command) bool {
	if cmd.ACL&command.CatScripting != 0 {
		return false
	}
	const whole = command.WholeKeyspace | command.AllKeys | command.TouchesArbitraryKeys
	return len(cmd.Keys) > 0 || cmd.DerivedKeys != nil ||
		cmd.Databases == nil && cmd.Flags&(command.ReadOnly|command.Write) != 0 && cmd.Flags&whole != 0
}

// keyAccess is what the command may do with keys that no spec describes.
func keyAccess(cmd *command.Command) Access {
	if cmd.Flags&command.Write != 0 {
		return Read | Write
	}
	return Read
}

// appendDerivedKeys appends the keys that are not among the arguments.
func appendDerivedKeys(cmd *command.Command, keys []Key, args [][]byte) []Key {
	access := keyAccess(cmd)
	cmd.DerivedKeys(args, func(key []byte) {
		keys = append(keys, Key{Name: bytes.Clone(key), Access: access, At: len(args)})
	})
	return keys
}

// neededAccess returns what the command does with the keys of the spec; ok is false if they are no keys.
func neededAccess(cmd *command.Command, spec *command.KeySpec, args [][]byte) (access Access, ok bool) {
	for _, flag := range cmd.UseOfKey(spec, args) {
		switch flag {
		case "not_key":
			return 0, false
		case "access":
			access |= Read
		case "insert", "delete", "update":
			access |= Write
		}
	}
	return access, true
}
