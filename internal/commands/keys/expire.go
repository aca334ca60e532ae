package keys

import (
	"github.com/atomredis/atomredis/engine"
	"github.com/atomredis/atomredis/internal/command"
)

// This file has the commands on the deadlines of keys.

func init() { command.Register(expireCommands) }

var expireCommands = []*command.Command{
	{Name: "expire", Group: "generic", Since: "1.0.0", Arity: -3, Flags: command.Write | command.Fast,
		ACL:     command.CatKeyspace,
		Keys:    command.Keys("i1+r0/1/0[RW,UPDATE]"),
		Summary: "Sets a key's time to live in seconds",
		Syntax:  "key seconds [NX | XX | GT | LT]", Complexity: "O(1)", Do: cmdExpire},
	{Name: "expireat", Group: "generic", Since: "1.2.0", Arity: -3, Flags: command.Write | command.Fast,
		ACL:        command.CatKeyspace,
		Keys:       command.Keys("i1+r0/1/0[RW,UPDATE]"),
		Summary:    "Sets when a key expires, as a Unix time in seconds",
		Syntax:     "key unix-time-seconds [NX | XX | GT | LT]",
		Complexity: "O(1)", Do: cmdExpireat},
	{Name: "expiretime", Group: "generic", Since: "7.0.0", Arity: 2, Flags: command.ReadOnly | command.Fast,
		ACL: command.CatKeyspace, Keys: command.Keys("i1+r0/1/0[RO,ACCESS]"),
		Summary: "Returns when a key expires, as a Unix time in seconds",
		Syntax:  "key", Complexity: "O(1)", Do: cmdExpiretime},
	{Name: "persist", Group: "generic", Since: "2.2.0", Arity: 2, Flags: command.Write | command.Fast,
		ACL:     command.CatKeyspace,
		Keys:    command.Keys("i1+r0/1/0[RW,UPDATE]"),
		Summary: "Removes a key's time to live", Syntax: "key", Complexity: "O(1)", Do: cmdPersist},
	{Name: "pexpire", Group: "generic", Since: "2.6.0", Arity: -3, Flags: command.Write | command.Fast,
		ACL:     command.CatKeyspace,
		Keys:    command.Keys("i1+r0/1/0[RW,UPDATE]"),
		Summary: "Sets a key's time to live in milliseconds", Syntax: "key milliseconds [NX | XX | GT | LT]",
		Complexity: "O(1)", Do: cmdPexpire},
	{Name: "pexpireat", Group: "generic", Since: "2.6.0", Arity: -3, Flags: command.Write | command.Fast,
		ACL:        command.CatKeyspace,
		Keys:       command.Keys("i1+r0/1/0[RW,UPDATE]"),
		Summary:    "Sets when a key expires, as a Unix time in milliseconds",
		Syntax:     "key unix-time-milliseconds [NX | XX | GT | LT]",
		Complexity: "O(1)", Do: cmdPexpireat},
	{Name: "pexpiretime", Group: "generic", Since: "7.0.0", Arity: 2, Flags: command.ReadOnly | command.Fast,
		ACL: command.CatKeyspace, Keys: command.Keys("i1+r0/1/0[RO,ACCESS]"),
		Summary: "Returns when a key expires, as a Unix time in milliseconds",
		Syntax:  "key", Complexity: "O(1)", Do: cmdPexpiretime},
	{Name: "pttl", Group: "generic", Since: "2.6.0", Arity: 2, Flags: command.ReadOnly | command.Fast,
		ACL:     command.CatKeyspace,
		Keys:    command.Keys("i1+r0/1/0[RO,ACCESS]"),
		Summary: "Returns a key's time to live in milliseconds", Syntax: "key", Complexity: "O(1)", Do: cmdPttl},
	{Name: "ttl", Group: "generic", Since: "1.0.0", Arity: 2, Flags: command.ReadOnly | command.Fast,
		ACL:     command.CatKeyspace,
		Keys:    command.Keys("i1+r0/1/0[RO,ACCESS]"),
		Summary: "Returns a key's time to live in seconds", Syntax: "key", Complexity: "O(1)", Do: cmdTtl},
}

func cmdExpire(c *command.Ctx)    { expire(c, command.InSeconds) }
func cmdExpireat(c *command.Ctx)  { expire(c, command.AtSeconds) }
func cmdPexpire(c *command.Ctx)   { expire(c, command.InMillis) }
func cmdPexpireat(c *command.Ctx) { expire(c, command.AtMillis) }

// expire gives the key argument 1 the deadline argument 2.
func expire(c *command.Ctx, unit command.TimeUnit) {
	cond, ok := c.ExpireConditions(3)
	if !ok {
		return
	}
	n, ok := c.Int(c.Args[2])
	if !ok {
		return
	}
	at, ok := unit.Deadline(c.Now(), n)
	if !ok {
		c.Err(c.BadExpireTime())
		return
	}
	e := c.G.Write(c.DB, c.Args[1])
	switch {
	case e == nil || !cond.Allow(e.Deadline(), at):
		c.W.Int(0)
		return
	case c.Over(at):
		c.G.Remove(e, engine.EventGeneric, "del")
		c.JournalDelete(c.Args[1])
	default:
		c.G.SetDeadline(e, at)
		c.G.Changed(e, engine.EventGeneric, "expire")
		c.JournalDeadline(c.Args[1], at)
	}
	c.W.Int(1)
}

func cmdPersist(c *command.Ctx) {
	e := c.G.Write(c.DB, c.Args[1])
	if e == nil || e.Deadline() == 0 {
		c.W.Int(0)
		return
	}
	c.G.SetDeadline(e, 0)
	c.G.Changed(e, engine.EventGeneric, "persist")
	c.W.Int(1)
}

func cmdExpiretime(c *command.Ctx)  { replyDeadline(c, command.AtSeconds) }
func cmdPexpiretime(c *command.Ctx) { replyDeadline(c, command.AtMillis) }
func cmdTtl(c *command.Ctx)         { replyDeadline(c, command.InSeconds) }
func cmdPttl(c *command.Ctx)        { replyDeadline(c, command.InMillis) }

// replyDeadline replies with the deadline of the key argument 1, rounded to the unit, -1 without a deadline, -2 for
// a missing key.
func replyDeadline(c *command.Ctx, unit command.TimeUnit) {
	e := c.Look(c.Args[1], false)
	switch {
	case e == nil:
		c.W.Int(-2)
		return
	case e.Deadline() == 0:
		c.W.Int(-1)
		return
	}
	at := e.Deadline()
	if !unit.Absolute {
		at -= c.Now()
	}
	if unit.MS > 1 {
		at = int64((uint64(at) + uint64(unit.MS/2)) / uint64(unit.MS)) // unsigned, because the largest deadline is valid
	}
	c.W.Int(at)
}
