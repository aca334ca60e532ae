package server

import (
	"math"
	"slices"

	"github.com/atomredis/atomredis/internal/command"
	"github.com/atomredis/atomredis/internal/stats"
)

func init() { command.Register([]*command.Command{slowlogCommand, commandlogCommand}) }

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

// commandlogCommand shows the commands that took long, and those with large requests or replies.
var commandlogCommand = &command.Command{Name: "commandlog", Group: "server", Since: "8.1.0", Arity: -2,
	Summary: "Groups the commands about logged commands", Complexity: "That of the sub-command",
	Subs: []*command.Command{
		{Name: "commandlog|get", Group: "server", Since: "8.1.0", Arity: 4,
			Flags:   command.Admin | command.Loading | command.Stale,
			Summary: "Returns entries of a log", Syntax: "count <SLOW | LARGE-REQUEST | LARGE-REPLY>",
			Complexity: "O(N), where N is the number of entries returned", Do: commandlogGet},
		{Name: "commandlog|help", Group: "server", Since: "8.1.0", Arity: 2, Flags: command.Loading | command.Stale,
			Summary: "Lists the subcommands", Complexity: "O(1)", Do: commandlogHelp},
		{Name: "commandlog|len", Group: "server", Since: "8.1.0", Arity: 3,
			Flags:   command.Admin | command.Loading | command.Stale,
			Summary: "Counts the entries of a log", Syntax: "<SLOW | LARGE-REQUEST | LARGE-REPLY>", Complexity: "O(1)",
			Do: commandlogLen},
		{Name: "commandlog|reset", Group: "server", Since: "8.1.0", Arity: 3,
			Flags:   command.Admin | command.Loading | command.Stale,
			Summary: "Empties a log", Syntax: "<SLOW | LARGE-REQUEST | LARGE-REPLY>",
			Complexity: "O(N), where N is the number of entries", Do: commandlogReset},
	}}

const (
	errLogCount command.Error = "ERR count should be greater than or equal to -1"
	errLogKind  command.Error = "ERR type should be one of the following: SLOW, LARGE-REQUEST, LARGE-REPLY"
)

// logNames are the names of the logs.
var logNames = [stats.LogKinds]string{"slow", "large-request", "large-reply"}

// logNamed returns the log of that name. If there is none, it writes an error and ok is false.
func logNamed(c *command.Ctx, name []byte) (l *stats.CommandLog, ok bool) {
	kind := slices.Index(logNames[:], command.Lower(name))
	if kind < 0 {
		c.Err(errLogKind)
		return nil, false
	}
	return hostOf(c).CommandLog(stats.LogKind(kind)), true
}

func slowLog(c *command.Ctx) *stats.CommandLog { return hostOf(c).CommandLog(stats.SlowCommands) }

// logCount reads the number of requested entries; -1 means all. If it is invalid, it writes an error and ok is
// false.
func logCount(c *command.Ctx, arg []byte) (count int64, ok bool) {
	if count, ok = c.IntIn(arg, -1, math.MaxInt64, errLogCount); ok && count == -1 {
		count = math.MaxInt64
	}
	return count, ok
}

func slowlogGet(c *command.Ctx) {
	count, ok := int64(10), true
	if len(c.Args) > 3 {
		command.WrongUse(c, "SLOWLOG")
		return
	}
	if len(c.Args) == 3 {
		if count, ok = logCount(c, c.Args[2]); !ok {
			return
		}
	}
	writeEntries(c, slowLog(c), count, true)
}

func commandlogGet(c *command.Ctx) {
	count, ok := logCount(c, c.Args[2])
	if !ok {
		return
	}
	if l, ok := logNamed(c, c.Args[3]); ok {
		writeEntries(c, l, count, false)
	}
}

// writeEntries writes the latest entries of a log; argc adds the number of all arguments.
func writeEntries(c *command.Ctx, l *stats.CommandLog, count int64, argc bool) {
	entries := l.Latest(count)
	c.W.Array(len(entries))
	for _, e := range entries {
		if argc {
			c.W.Array(7)
		} else {
			c.W.Array(6)
		}
		c.W.Int(e.ID)
		c.W.Int(e.At)
		c.W.Int(e.Value)
		c.W.Array(len(e.Args))
		for _, a := range e.Args {
			c.W.BulkString(a)
		}
		c.W.BulkString(e.Addr)
		c.W.BulkString(e.Name)
		if argc {
			c.W.Int(int64(e.Argc))
		}
	}
}

func slowlogLen(c *command.Ctx) { c.W.Int(int64(slowLog(c).Len())) }

func commandlogLen(c *command.Ctx) {
	if l, ok := logNamed(c, c.Args[2]); ok {
		c.W.Int(int64(l.Len()))
	}
}

func slowlogReset(c *command.Ctx) {
	slowLog(c).Reset()
	c.W.OK()
}

func commandlogReset(c *command.Ctx) {
	if l, ok := logNamed(c, c.Args[2]); ok {
		l.Reset()
		c.W.OK()
	}
}

func slowlogHelp(c *command.Ctx) {
	command.HelpReply(c,
		"SLOWLOG <subcommand> [<arg> [value] [opt] ...]. Subcommands are:",
		"GET [<count>]",
		"    Show the latest slow commands (default 10, -1 is all). Each has its number, the time,",
		"    the microseconds that it took, its arguments, the client's address, its name, and how",
		"    many arguments there were.",
		"LEN",
		"    Count the entries of the log.",
		"RESET",
		"    Empty the log.",
		"HELP",
		"    Print this help.")
}

func commandlogHelp(c *command.Ctx) {
	command.HelpReply(c,
		"COMMANDLOG <subcommand> [<arg> [value] [opt] ...]. Subcommands are:",
		"GET <count> <type>",
		"    Show the latest commands of a log (-1 is all). Each has its number, the time, the microseconds that it",
		"    took or the bytes of its request or reply, its arguments, the client's address, its name, and how",
		"    many arguments there were.",
		"    * SLOW: commands that took long, as SLOWLOG shows them.",
		"    * LARGE-REQUEST: commands with many bytes.",
		"    * LARGE-REPLY: commands whose replies had many bytes.",
		"LEN <type>",
		"    Count the entries of a log.",
		"RESET <type>",
		"    Empty a log.",
		"HELP",
		"    Print this help.")
}
