package server

import (
	"math"

	"github.com/atomredis/atomredis/command"
)

func init() { command.Register([]*command.Command{slowlogCommand}) }

// slowlogCommand shows the commands that took long.
var slowlogCommand = &command.Command{Name: "slowlog", Group: "server", Since: "2.2.12", Arity: -2,
	Summary: "Groups the commands about slow commands", Complexity: "That of the sub-command",
	Subs: []*command.Command{
		{Name: "slowlog|get", Group: "server", Since: "2.2.12", Arity: -2,
			Flags:   command.Admin | command.Loading | command.Stale,
			Summary: "Returns entries of the slow log",
			Syntax:  "[count]", Complexity: "O(N), where N is the number of entries returned", Do: slowlogGet},
		{Name: "slowlog|help", Group: "server", Since: "6.2.0", Arity: 2, Flags: command.Loading | command.Stale,
			Summary: "Lists the subcommands", Complexity: "O(1)", Do: slowlogHelp},
		{Name: "slowlog|len", Group: "server", Since: "2.2.12", Arity: 2,
			Flags:   command.Admin | command.Loading | command.Stale,
			Summary: "Counts the entries of the slow log", Complexity: "O(1)", Do: slowlogLen},
		{Name: "slowlog|reset", Group: "server", Since: "2.2.12", Arity: 2,
			Flags:   command.Admin | command.Loading | command.Stale,
			Summary: "Empties the slow log", Complexity: "O(N), where N is the number of entries", Do: slowlogReset},
	}}

const errSlowlogCount command.Error = "ERR count should be greater than or equal to -1"

func slowlogGet(c *command.Ctx) {
	count := int64(10)
	switch {
	case len(c.Args) > 3:
		command.WrongUse(c, "SLOWLOG")
		return
	case len(c.Args) == 3:
		var ok bool
		if count, ok = c.IntIn(c.Args[2], -1, math.MaxInt64, errSlowlogCount); !ok {
			return
		}
		if count == -1 {
			count = math.MaxInt64
		}
	}
	entries := hostOf(c).Slowlog().Latest(count)
	c.W.Array(len(entries))
	for _, e := range entries {
		c.W.Array(6)
		c.W.Int(e.ID)
		c.W.Int(e.At)
		c.W.Int(e.Took.Microseconds())
		c.W.Array(len(e.Args))
		for _, a := range e.Args {
			c.W.BulkString(a)
		}
		c.W.BulkString(e.Addr)
		c.W.BulkString(e.Name)
	}
}

func slowlogLen(c *command.Ctx) { c.W.Int(int64(hostOf(c).Slowlog().Len())) }

func slowlogReset(c *command.Ctx) {
	hostOf(c).Slowlog().Reset()
	c.W.OK()
}

func slowlogHelp(c *command.Ctx) {
	command.HelpReply(c,
		"SLOWLOG <subcommand> [<arg> [value] [opt] ...]. Subcommands are:",
		"GET [<count>]",
		"    Show the latest slow commands (default 10, -1 is all). Each has its number, the time,",
		"    the microseconds that it took, its arguments, the client's address and its name.",
		"LEN",
		"    Count the entries of the log.",
		"RESET",
		"    Empty the log.",
		"HELP",
		"    Print this help.")
}
