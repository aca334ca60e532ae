// Package acl has the commands about users and what they may do.
package acl

import (
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"slices"

	"github.com/atomredis/atomredis/internal/clients/acl"
	"github.com/atomredis/atomredis/internal/command"
)

func init() { command.Register(aclCommands) }

var aclCommands = []*command.Command{
	{Name: "acl", Group: "server", Since: "6.0.0", Arity: -2,
		Summary:    "A container for commands about users",
		Complexity: "Depends on the sub-command", Subs: []*command.Command{
			{Name: "acl|cat", Group: "server", Since: "6.0.0", Arity: -2,
				Flags:   command.NoScript | command.Loading | command.Stale,
				Summary: "Lists the categories of commands, or the commands of one", Syntax: "[categoryname]",
				Complexity: "O(N), where N is the number of commands", Do: cat},
			{Name: "acl|delrole", Group: "server", Since: "9.2.0", Arity: -3,
				Flags:   command.Admin | command.NoScript | command.Loading | command.Stale,
				Summary: "Deletes roles that no user has, as in Valkey", Syntax: "rolename [rolename ...]",
				Complexity: "O(N*M), where N is the number of roles and M of users", Do: delrole},
			{Name: "acl|deluser", Group: "server", Since: "6.0.0", Arity: -3,
				Flags:   command.Admin | command.NoScript | command.Loading | command.Stale,
				Summary: "Deletes users and disconnects their clients", Syntax: "username [username ...]",
				Complexity: "O(N), where N is the number of clients", Do: deluser},
			{Name: "acl|dryrun", Group: "server", Since: "7.0.0", Arity: -4,
				Flags:   command.Admin | command.NoScript | command.Loading | command.Stale,
				Summary: "Checks whether a user may execute a command", Syntax: "username command [arg [arg ...]]",
				Complexity: "O(N), where N is the number of the user's rules", Do: dryrun},
			{Name: "acl|genpass", Group: "server", Since: "6.0.0", Arity: -2,
				Flags:   command.NoScript | command.Loading | command.Stale,
				Summary: "Generates a random password", Syntax: "[bits]", Complexity: "O(1)", Do: genpass},
			{Name: "acl|getrole", Group: "server", Since: "9.2.0", Arity: 3,
				Flags:   command.Admin | command.NoScript | command.Loading | command.Stale,
				Summary: "Shows the rules of a role and the users that have it, as in Valkey",
				Syntax:  "rolename", Complexity: "O(N), where N is the number of rules and users", Do: getrole},
			{Name: "acl|getuser", Group: "server", Since: "6.0.0", Arity: 3,
				Flags:   command.Admin | command.NoScript | command.Loading | command.Stale,
				Summary: "Shows the rules of a user",
				Syntax:  "username", Complexity: "O(N), where N is the number of the user's rules", Do: getuser},
			{Name: "acl|help", Group: "server", Since: "6.0.0", Arity: 2, Flags: command.Loading | command.Stale,
				Summary: "Lists the subcommands", Complexity: "O(1)", Do: help},
			{Name: "acl|list", Group: "server", Since: "6.0.0", Arity: 2,
				Flags:      command.Admin | command.NoScript | command.Loading | command.Stale,
				Summary:    "Lists the users with their rules",
				Complexity: "O(N), where N is the number of users", Do: list},
			{Name: "acl|load", Group: "server", Since: "6.0.0", Arity: 2,
				Flags:      command.Admin | command.NoScript | command.Loading | command.Stale,
				Summary:    "Reloads the users from the ACL file",
				Complexity: "O(N), where N is the number of users", Do: load},
			{Name: "acl|log", Group: "server", Since: "6.0.0", Arity: -2,
				Flags:   command.Admin | command.NoScript | command.Loading | command.Stale,
				Summary: "Lists the latest denied commands and logins, or clears the list", Syntax: "[count | RESET]",
				Complexity: "O(N), where N is the number of entries", Do: log},
			{Name: "acl|roles", Group: "server", Since: "9.2.0", Arity: 2,
				Flags:      command.Admin | command.NoScript | command.Loading | command.Stale,
				Summary:    "Lists the names of the roles, as in Valkey",
				Complexity: "O(N), where N is the number of roles", Do: roles},
			{Name: "acl|save", Group: "server", Since: "6.0.0", Arity: 2,
				Flags:      command.Admin | command.NoScript | command.Loading | command.Stale,
				Summary:    "Writes the users to the ACL file",
				Complexity: "O(N), where N is the number of users", Do: save},
			{Name: "acl|setrole", Group: "server", Since: "9.2.0", Arity: -3,
				Flags:   command.Admin | command.NoScript | command.Loading | command.Stale,
				Summary: "Creates a role or changes its rules, as in Valkey", Syntax: "rolename [rule [rule ...]]",
				Complexity: "O(N), where N is the number of rules and users", Do: setrole},
			{Name: "acl|setuser", Group: "server", Since: "6.0.0", Arity: -3,
				Flags:   command.Admin | command.NoScript | command.Loading | command.Stale,
				Summary: "Creates a user or changes a user's rules", Syntax: "username [rule [rule ...]]",
				Complexity: "O(N), where N is the number of rules", Secrets: command.AllFrom(2), Do: setuser},
			{Name: "acl|users", Group: "server", Since: "6.0.0", Arity: 2,
				Flags:      command.Admin | command.NoScript | command.Loading | command.Stale,
				Summary:    "Lists the names of the users",
				Complexity: "O(N), where N is the number of users", Do: users},
			{Name: "acl|whoami", Group: "server", Since: "6.0.0", Arity: 2,
				Flags:   command.NoScript | command.Loading | command.Stale,
				Summary: "Returns the connection's user", Complexity: "O(1)", Do: whoami},
		}},
}

// Errors of the ACL commands.
const (
	errUserName      command.Error = "ERR Usernames can't contain spaces or null characters"
	errDeleteDefault command.Error = "ERR The 'default' user cannot be removed"
	errGenpassBits   command.Error = "ERR ACL GENPASS argument must be the number of bits for the output password, a positive " +
		"number up to 4096"
	errNoACLFile command.Error = "ERR This Redis instance is not configured to use an ACL file. You may want to specify " +
		"users via the ACL SETUSER command and then issue a CONFIG REWRITE (assuming you have a Redis configuration file set) in " +
		"order to store users in the Redis configuration."
	errACLSave command.Error = "ERR There was an error trying to save the ACLs. Please check the server logs for more information"
)

func cat(c *command.Ctx) {
	switch len(c.Args) {
	case 2:
		c.W.Array(len(command.CategoryNames))
		for _, name := range command.CategoryNames {
			c.W.BulkString(name)
		}
		return
	case 3:
	default:
		command.WrongUse(c, "ACL")
		return
	}
	i := slices.Index(command.CategoryNames[:], command.Lower(c.Args[2]))
	if i < 0 {
		c.Err(command.Error(fmt.Sprintf("ERR Unknown category '%s'", command.Printed(c.Args[2]))))
		return
	}
	m, n := c.W.Defer(), 0
	for cmd := range hostOf(c).Table().All {
		if acl.Categories(cmd)&(1<<i) != 0 {
			c.W.BulkString(cmd.Name)
			n++
		}
	}
	c.W.EndArray(m, n)
}

func deluser(c *command.Ctx) {
	names := c.Args[2:]
	if slices.ContainsFunc(names, func(name []byte) bool { return string(name) == acl.DefaultName }) {
		c.Err(errDeleteDefault)
		return
	}
	deleted := int64(0)
	for _, name := range names {
		if usersOf(c).Delete(c.Client, string(name)) {
			deleted++
		}
	}
	c.W.Int(deleted)
}

func dryrun(c *command.Ctx) {
	a := usersOf(c).Get(c.Args[2])
	if a == nil {
		c.Err(command.Error(fmt.Sprintf("ERR User '%s' not found", command.UntilNUL(c.Args[2]))))
		return
	}
	args := c.Args[3:]
	cmd, _ := hostOf(c).Table().Lookup(args)
	switch {
	case cmd == nil:
		c.Err(command.Error(fmt.Sprintf("ERR Command '%s' not found", command.UntilNUL(args[0]))))
		return
	case !cmd.ArityOK(len(args)):
		c.Err(command.WrongArity(cmd))
		return
	}
	switch v := a.User().CheckCommand(cmd, args, c.DB); v.Reason {
	case acl.Allowed:
		c.W.OK()
	case acl.DeniedCommand:
		c.W.BulkString(fmt.Sprintf("User %s has no permissions to run the '%s' command", command.UntilNUL(c.Args[2]),
			cmd.Name))
	case acl.DeniedDatabase:
		c.W.BulkString(fmt.Sprintf("User %s has no permissions to access database %s", command.UntilNUL(c.Args[2]),
			command.UntilNUL(v.Object)))
	default:
		c.W.BulkString(fmt.Sprintf("User %s has no permissions to access the '%s' %v", command.UntilNUL(c.Args[2]),
			command.UntilNUL(v.Object), v.Reason))
	}
}

// maxGenpassBits bounds the argument of ACL GENPASS.
const maxGenpassBits = 4096

func genpass(c *command.Ctx) {
	bits := int64(256)
	switch len(c.Args) {
	case 2:
	case 3:
		var ok bool
		if bits, ok = c.Int(c.Args[2]); !ok {
			return
		}
	default:
		command.WrongUse(c, "ACL")
		return
	}
	if bits <= 0 || bits > maxGenpassBits {
		c.Err(errGenpassBits)
		return
	}
	random := make([]byte, (bits+7)/8)
	rand.Read(random)
	c.W.BulkString(hex.EncodeToString(random)[:(bits+3)/4])
}

func getuser(c *command.Ctx) {
	a := usersOf(c).Get(c.Args[2])
	if a == nil {
		c.W.Null()
		return
	}
	user, w := a.User(), c.W
	all := usersOf(c).Rules().Selectors(user)
	roles := user.Roles()
	fields := 3 + selectorFields(all[0], false)
	if len(roles) > 0 { // Redis has none
		fields++
	}
	w.Map(fields)
	w.BulkString("flags")
	flags := user.Flags()
	w.Set(len(flags))
	for _, name := range flags {
		w.BulkString(name)
	}
	w.BulkString("passwords")
	passwords := user.Passwords()
	w.Array(len(passwords))
	for _, p := range passwords {
		w.BulkString(p)
	}
	writeSelector(c, all[0], false)
	writeSelectors(c, all[1:], false)
	if len(roles) > 0 {
		w.BulkString("roles")
		w.Array(len(roles))
		for _, name := range roles {
			w.BulkString(name)
		}
	}
}

func writeSelectors(c *command.Ctx, list []acl.Selector, ofRole bool) {
	c.W.BulkString("selectors")
	c.W.Array(len(list))
	for _, s := range list {
		c.W.Map(selectorFields(s, ofRole))
		writeSelector(c, s, ofRole)
	}
}

// selectorFields returns how many fields writeSelector writes. The databases, which Redis does not have, are a field of
// users only if some are forbidden.
func selectorFields(s acl.Selector, ofRole bool) int {
	if s.AllDatabases && !ofRole {
		return 3
	}
	return 4
}

func writeSelector(c *command.Ctx, s acl.Selector, ofRole bool) {
	for _, word := range []string{"commands", s.Commands, "keys", s.Keys, "channels", s.Channels} {
		c.W.BulkString(word)
	}
	if !s.AllDatabases || ofRole {
		c.W.BulkString("databases")
		c.W.BulkString(s.Databases)
	}
}

func list(c *command.Ctx) {
	all, roles := usersOf(c).All(), usersOf(c).AllRoles()
	c.W.Array(len(roles) + len(all))
	for _, role := range roles {
		c.W.BulkString("role " + role.Name() + " " + usersOf(c).Rules().Describe(role))
	}
	for _, user := range all {
		c.W.BulkString("user " + user.Name() + " " + usersOf(c).Rules().Describe(user))
	}
}

func users(c *command.Ctx) {
	all := usersOf(c).All()
	c.W.Array(len(all))
	for _, user := range all {
		c.W.BulkString(user.Name())
	}
}

func load(c *command.Ctx) {
	if !usersOf(c).HasFile() {
		c.Err(errNoACLFile)
		return
	}
	if problems := usersOf(c).Load(c.Client); problems != "" {
		c.Err(command.Error("ERR " + command.OneLine(problems)))
		return
	}
	c.W.OK()
}

func save(c *command.Ctx) {
	if !usersOf(c).HasFile() {
		c.Err(errNoACLFile)
		return
	}
	if err := usersOf(c).Save(); err != nil {
		c.Host.Log().Warn("cannot write the ACL file", "error", err)
		c.Err(errACLSave)
		return
	}
	c.W.OK()
}

func log(c *command.Ctx) {
	count := int64(10)
	switch {
	case len(c.Args) > 3:
		command.WrongUse(c, "ACL")
		return
	case len(c.Args) == 3 && command.EqualFold(c.Args[2], "reset"):
		usersOf(c).Log.Reset()
		c.W.OK()
		return
	case len(c.Args) == 3:
		var ok bool
		if count, ok = c.Int(c.Args[2]); !ok {
			return
		}
	}
	entries := usersOf(c).Log.Newest(max(count, 0))
	now := c.Host.Keyspace().Now()
	w := c.W
	w.Array(len(entries))
	for i := range entries {
		e := &entries[i]
		w.Map(10)
		w.BulkString("count")
		w.Int(e.Count)
		w.BulkString("reason")
		w.BulkString(e.Reason.String())
		w.BulkString("context")
		w.BulkString(e.Context)
		w.BulkString("object")
		w.BulkString(e.Object)
		w.BulkString("username")
		w.BulkString(e.User)
		w.BulkString("age-seconds")
		w.Double(float64(now-e.Time) / 1000)
		w.BulkString("client-info")
		w.BulkString(e.Client)
		w.BulkString("entry-id")
		w.Int(e.ID)
		w.BulkString("timestamp-created")
		w.Int(e.Created)
		w.BulkString("timestamp-last-updated")
		w.Int(e.Time)
	}
}

func setuser(c *command.Ctx) {
	name := string(c.Args[2])
	if !acl.ValidName(name) {
		c.Err(errUserName)
		return
	}
	rules, ok := rulesOf(c)
	if !ok {
		return
	}
	if err := usersOf(c).Set(c.Client, name, rules); err != nil {
		c.Err(command.Error("ERR Error in ACL SETUSER modifier " + command.OneLine(err.Error())))
		return
	}
	c.W.OK()
}

// rulesOf returns the rules in the arguments from index 3 on, or writes an error.
func rulesOf(c *command.Ctx) (rules []string, ok bool) {
	words := make([]string, len(c.Args)-3)
	for i, arg := range c.Args[3:] {
		words[i] = string(arg)
	}
	rules, unmatched := acl.Merge(words)
	if unmatched >= 0 {
		c.Err(command.Error(fmt.Sprintf("ERR Unmatched parenthesis in acl selector starting at '%s'.",
			command.OneLine(words[unmatched]))))
	}
	return rules, unmatched < 0
}

func whoami(c *command.Ctx) {
	a := c.Client.(Client).Account()
	if a == nil {
		c.W.Null()
		return
	}
	c.W.BulkString(a.User().Name())
}

func help(c *command.Ctx) {
	command.HelpReply(c,
		"ACL <subcommand> [<arg> [value] [opt] ...]. Subcommands are:",
		"CAT [<category>]", "    List the categories of commands, or the commands of one.",
		"DELROLE <rolename> [<rolename> ...]", "    Delete roles that no user has.",
		"DELUSER <username> [<username> ...]", "    Delete users.",
		"DRYRUN <username> <command> [<arg> ...]", "    Tell whether a user may execute a command, without executing it.",
		"GETROLE <rolename>", "    Describe a role, and name the users that have it.",
		"GETUSER <username>", "    Describe a user.",
		"GENPASS [<bits>]", "    Return a random password in hexadecimal, of 256 bits or as many as <bits> says.",
		"LIST", "    Describe all users by their rules, as files have them.",
		"LOAD", "    Replace all users by those of the ACL file.",
		"LOG [<count> | RESET]", "    List what was refused lately, or forget it.",
		"ROLES", "    List the names of all roles.",
		"SAVE", "    Write all users into the ACL file.",
		"SETROLE <rolename> <attribute> [<attribute> ...]", "    Change a role, or make a new one.",
		"SETUSER <username> <attribute> [<attribute> ...]", "    Change a user, or make a new one.",
		"USERS", "    List the names of all users.",
		"WHOAMI", "    Tell which user this connection is.",
		"HELP", "    Print this help.")
}
