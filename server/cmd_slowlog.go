package server

import (
	"fmt"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/atomredis/atomredis/command"
)

// slowlogCommand shows the commands that took long.
var slowlogCommand = &command.Command{Name: "slowlog", Group: "server", Since: "2.2.12", Arity: -2,
	Summary: "Groups the commands about slow commands", Complexity: "That of the sub-command",
	Subs: []*command.Command{
		{Name: "slowlog|get", Group: "server", Since: "2.2.12", Arity: -2,
			Flags:   command.Admin | command.Loading | command.Stale,
			Summary: "Returns entries of the slow log",
			Syntax:  "[count]", Complexity: "O(N), where N is the number of entries returned", Do: cmdSlowlogGet},
		{Name: "slowlog|help", Group: "server", Since: "6.2.0", Arity: 2, Flags: command.Loading | command.Stale,
			Summary: "Lists the subcommands", Complexity: "O(1)", Do: cmdSlowlogHelp},
		{Name: "slowlog|len", Group: "server", Since: "2.2.12", Arity: 2,
			Flags:   command.Admin | command.Loading | command.Stale,
			Summary: "Counts the entries of the slow log", Complexity: "O(1)", Do: cmdSlowlogLen},
		{Name: "slowlog|reset", Group: "server", Since: "2.2.12", Arity: 2,
			Flags:   command.Admin | command.Loading | command.Stale,
			Summary: "Empties the slow log", Complexity: "O(N), where N is the number of entries", Do: cmdSlowlogReset},
	}}

const errSlowlogCount command.Error = "ERR count should be greater than or equal to -1"

// slowlog has the latest commands that took as long as slowlog-log-slower-than says.
type slowlog struct {
	mu      sync.Mutex // protects what follows
	entries []slowEntry
	next    int64 // the number of the next entry
}

// slowEntry is a command that took long.
type slowEntry struct {
	id, at   int64 // at is in s since 1970
	took     time.Duration
	args     []string
	addr, by string
}

// How much of a slow command is kept: so many arguments, and bytes of each.
const (
	maxSlowArgs  = 32
	maxSlowBytes = 128
)

// add logs a command of a client that took so many ns; the log keeps the latest limit entries.
func (l *slowlog) add(s *Session, cmd *command.Command, args [][]byte, took int64, limit int) {
	e := slowEntry{at: s.srv.ks.Now() / 1000, took: time.Duration(took), args: slowArgs(cmd, args), addr: s.peer.Addr,
		by: s.name}
	l.mu.Lock()
	defer l.mu.Unlock()
	e.id = l.next
	l.next++
	l.entries = append(l.entries, e)
	if extra := len(l.entries) - limit; extra > 0 {
		l.entries = slices.Delete(l.entries, 0, extra)
	}
}

// slowArgs returns copies of the arguments as they are logged.
func slowArgs(cmd *command.Command, args [][]byte) []string {
	secret := secrets(cmd, args)
	out := make([]string, 0, min(len(args), maxSlowArgs))
	for i, a := range args {
		switch {
		case i == maxSlowArgs-1 && len(args) > maxSlowArgs:
			return append(out, fmt.Sprintf("... (%d more arguments)", len(args)-i))
		case slices.Contains(secret, i):
			out = append(out, "(redacted)")
		case len(a) > maxSlowBytes:
			out = append(out, fmt.Sprintf("%s... (%d more bytes)", a[:maxSlowBytes], len(a)-maxSlowBytes))
		default:
			out = append(out, string(a))
		}
	}
	return out
}

// latest returns the latest n entries, the last one first.
func (l *slowlog) latest(n int64) []slowEntry {
	l.mu.Lock()
	defer l.mu.Unlock()
	from := int64(len(l.entries)) - min(n, int64(len(l.entries)))
	out := slices.Clone(l.entries[from:])
	slices.Reverse(out)
	return out
}

func (l *slowlog) len() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.entries)
}

func (l *slowlog) reset() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.entries = nil
}

func cmdSlowlogGet(c *command.Ctx) {
	count := int64(10)
	switch {
	case len(c.Args) > 3:
		wrongUse(c, "SLOWLOG")
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
	entries := serverOf(c).slowlog.latest(count)
	c.W.Array(len(entries))
	for _, e := range entries {
		c.W.Array(6)
		c.W.Int(e.id)
		c.W.Int(e.at)
		c.W.Int(e.took.Microseconds())
		c.W.Array(len(e.args))
		for _, a := range e.args {
			c.W.BulkString(a)
		}
		c.W.BulkString(e.addr)
		c.W.BulkString(e.by)
	}
}

func cmdSlowlogLen(c *command.Ctx) { c.W.Int(int64(serverOf(c).slowlog.len())) }

func cmdSlowlogReset(c *command.Ctx) {
	serverOf(c).slowlog.reset()
	c.W.OK()
}

func cmdSlowlogHelp(c *command.Ctx) {
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
