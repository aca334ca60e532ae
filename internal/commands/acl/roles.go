package acl

import (
	"fmt"

	"github.com/atomredis/atomredis/internal/clients/acl"
	"github.com/atomredis/atomredis/internal/command"
)

// The commands about roles, as in Valkey 9.2.

func setrole(c *command.Ctx) {
	name := string(c.Args[2])
	if err := acl.CheckRoleName(name); err != nil {
		c.Err(command.Error("ERR " + err.Error()))
		return
	}
	rules, ok := rulesOf(c)
	if !ok {
		return
	}
	if err := usersOf(c).SetRole(c.Client, name, rules); err != nil {
		c.Err(command.Error("ERR Error in ACL SETROLE modifier " + command.OneLine(err.Error())))
		return
	}
	c.W.OK()
}

func getrole(c *command.Ctx) {
	role, users := usersOf(c).Role(c.Args[2])
	if role == nil {
		c.W.Null()
		return
	}
	all := usersOf(c).Rules().Selectors(role)
	c.W.Map(2 + selectorFields(all[0], true))
	writeSelector(c, all[0], true)
	writeSelectors(c, all[1:], true)
	c.W.BulkString("users")
	c.W.Array(len(users))
	for _, name := range users {
		c.W.BulkString(name)
	}
}

func delrole(c *command.Ctx) {
	names := make([]string, len(c.Args)-2)
	for i, arg := range c.Args[2:] {
		names[i] = string(arg)
	}
	deleted, held := usersOf(c).DeleteRoles(names)
	if held != "" {
		c.Err(command.Error(fmt.Sprintf("ERR Role '%s' is assigned to one or more users", held)))
		return
	}
	c.W.Int(int64(deleted))
}

func roles(c *command.Ctx) {
	all := usersOf(c).AllRoles()
	c.W.Array(len(all))
	for _, role := range all {
		c.W.BulkString(role.Name())
	}
}
