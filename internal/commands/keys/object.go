package keys

import (
	"github.com/atomredis/atomredis/engine"
	"github.com/atomredis/atomredis/internal/command"
)

// objectCommand shows the representation of a value, and its use.
var objectCommand = &command.Command{Name: "object", Group: "generic", Since: "2.2.3", Arity: -2,
	Summary: "Inspects how a value is kept", Complexity: "That of the sub-command",
	Subs: []*command.Command{
		{Name: "object|encoding", Group: "generic", Since: "2.2.3", Arity: 3, Flags: command.ReadOnly,
			ACL:     command.CatKeyspace,
			Keys:    command.Keys("i2+r0/1/0[RO]"),
			Summary: "Returns the internal encoding of a value",
			Syntax:  "key", Complexity: "O(1)", Do: cmdObjectEncoding},
		{Name: "object|freq", Group: "generic", Since: "4.0.0", Arity: 3, Flags: command.ReadOnly, ACL: command.CatKeyspace,
			Keys:    command.Keys("i2+r0/1/0[RO]"),
			Summary: "Returns how often a key is used, on a logarithmic scale",
			Syntax:  "key", Complexity: "O(1)", Do: cmdObjectFreq},
		{Name: "object|help", Group: "generic", Since: "6.2.0", Arity: 2, Flags: command.Loading | command.Stale,
			ACL:     command.CatKeyspace,
			Summary: "Lists the subcommands", Complexity: "O(1)", Do: cmdObjectHelp},
		{Name: "object|idletime", Group: "generic", Since: "2.2.3", Arity: 3, Flags: command.ReadOnly,
			ACL:     command.CatKeyspace,
			Keys:    command.Keys("i2+r0/1/0[RO]"),
			Summary: "Returns how many seconds a key has not been used",
			Syntax:  "key", Complexity: "O(1)", Do: cmdObjectIdletime},
		{Name: "object|refcount", Group: "generic", Since: "2.2.3", Arity: 3, Flags: command.ReadOnly,
			ACL:     command.CatKeyspace,
			Keys:    command.Keys("i2+r0/1/0[RO]"),
			Summary: "Returns the number of references to a value",
			Syntax:  "key", Complexity: "O(1)", Do: cmdObjectRefcount},
	}}

const (
	errNotLFU command.Error = "ERR An LFU maxmemory policy is not selected, access frequency not tracked. " + errLFUSwitch
	errLFU    command.Error = "ERR An LFU maxmemory policy is selected, idle time not tracked. " + errLFUSwitch

	errLFUSwitch = "Please note that when switching between policies at runtime LRU and LFU data will take some time to adjust."
)

// object returns the entry of the key in argument 2, without counting as a use of it; for a missing key it writes a
// null.
func object(c *command.Ctx) *engine.Entry {
	e := c.G.Peek(c.DB, c.Args[2])
	if e == nil {
		c.W.Null()
	}
	return e
}

func cmdObjectEncoding(c *command.Ctx) {
	if e := object(c); e != nil {
		c.W.BulkString(command.EncodingOf(e))
	}
}

func cmdObjectFreq(c *command.Ctx) {
	e := object(c)
	switch {
	case e == nil:
	case c.G.CountsFrequency():
		c.W.Int(int64(c.G.Frequency(e)))
	default:
		c.Err(errNotLFU)
	}
}

func cmdObjectIdletime(c *command.Ctx) {
	e := object(c)
	switch {
	case e == nil:
	case c.G.CountsFrequency():
		c.Err(errLFU)
	default:
		c.W.Int(c.G.IdleTime(e))
	}
}

func cmdObjectRefcount(c *command.Ctx) {
	if e := object(c); e != nil {
		c.W.Int(1) // values are not shared
	}
}

func cmdObjectHelp(c *command.Ctx) {
	command.HelpReply(c,
		"OBJECT <subcommand> [<arg> [value] [opt] ...]. Subcommands are:",
		"ENCODING <key>",
		"    Name the representation of the value.",
		"FREQ <key>",
		"    Tell how often the key is used lately, on a logarithmic scale.",
		"IDLETIME <key>",
		"    Tell for how many seconds the key has not been used.",
		"REFCOUNT <key>",
		"    Tell how many references to the value there are.",
		"HELP",
		"    Print this help.")
}
