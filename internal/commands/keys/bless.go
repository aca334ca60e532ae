package keys

import (
	"github.com/atomredis/atomredis/engine"
	"github.com/atomredis/atomredis/internal/command"
	"github.com/atomredis/atomredis/resp"
)

func init() { command.Register([]*command.Command{blessCommand}) }

// blessCommand protects keys from eviction.
var blessCommand = &command.Command{Name: "bless", Group: "generic", Since: "8.12.0", Arity: -2,
	Summary: "Protects keys from eviction", Complexity: "That of the sub-command",
	Subs: []*command.Command{
		{Name: "bless|clear", Group: "generic", Since: "8.12.0", Arity: 4, Flags: command.Write | command.Fast,
			ACL: command.CatDangerous, Keys: command.Keys("i2+r0/1/0[RW]"),
			Summary: "Ends the protection of a key from eviction", Syntax: "key NO-EVICT", Complexity: "O(1)",
			Do: func(c *command.Ctx) { bless(c, false, "unbless") }},
		{Name: "bless|get", Group: "generic", Since: "8.12.0", Arity: 3, Flags: command.ReadOnly | command.Fast,
			ACL: command.CatKeyspace, Keys: command.Keys("i2+r0/1/0[RO]"),
			Summary: "Returns how a key is protected", Syntax: "key", Complexity: "O(1)", Do: cmdBlessGet},
		{Name: "bless|help", Group: "generic", Since: "8.12.0", Arity: 2, Flags: command.Loading | command.Stale,
			Summary: "Lists the subcommands", Complexity: "O(1)", Do: cmdBlessHelp},
		{Name: "bless|scan", Group: "generic", Since: "8.12.0", Arity: -4,
			Flags:   command.ReadOnly | command.TouchesArbitraryKeys | command.WholeKeyspace | command.AllKeys,
			ACL:     command.CatKeyspace,
			Summary: "Iterates over the protected keys of the database", Syntax: "cursor NO-EVICT [COUNT count]",
			Complexity: "O(1) for every call, O(N) for a whole walk, where N is the number of keys in the database",
			Do:         cmdBlessScan, InSteps: true},
		{Name: "bless|set", Group: "generic", Since: "8.12.0", Arity: 4,
			Flags: command.Write | command.DenyOOM | command.Fast,
			ACL:   command.CatDangerous, Keys: command.Keys("i2+r0/1/0[RW]"),
			Summary: "Protects a key from eviction", Syntax: "key NO-EVICT", Complexity: "O(1)",
			Do: func(c *command.Ctx) { bless(c, true, "bless") }},
	}}

// The only flag, as in replies and as in EqualFold.
const (
	noEvict       = "NO-EVICT"
	noEvictFolded = "no-evict"
)

// isNoEvict reports whether argument 3 is the flag; for another it writes an error.
func isNoEvict(c *command.Ctx) bool {
	if !command.EqualFold(c.Args[3], noEvictFolded) {
		c.Err(command.ErrSyntax)
		return false
	}
	return true
}

func bless(c *command.Ctx, on bool, event string) {
	if !isNoEvict(c) {
		return
	}
	e := c.G.Write(c.DB, c.Args[2])
	switch {
	case e == nil:
		c.Err(command.ErrNoKey)
	case e.Blessed() == on:
		c.W.Int(0)
	default:
		c.G.Bless(e, on)
		c.G.Changed(e, engine.EventGeneric, event)
		c.W.Int(1)
	}
}

func cmdBlessGet(c *command.Ctx) {
	e := c.G.Peek(c.DB, c.Args[2])
	switch {
	case e == nil:
		c.Err(command.ErrNoKey)
	case e.Blessed():
		c.W.Array(1)
		c.W.BulkString(noEvict)
	default:
		c.W.Array(0)
	}
}

// blessScanCount is the number of keys that BLESS SCAN visits unless it has a COUNT.
const blessScanCount = 1024

func cmdBlessScan(c *command.Ctx) {
	if !isNoEvict(c) {
		return
	}
	scan := command.ScanOptions{Count: blessScanCount}
	var ok bool
	if scan.Cursor, ok = c.ScanCursor(c.Args[2]); !ok {
		return
	}
	for o := c.Options(4); o.Next(); {
		if !o.Is("count") || !o.More() {
			c.Err(command.ErrSyntax)
			return
		}
		count, ok := c.Int(o.Arg())
		if !ok {
			return
		}
		if count < 1 {
			c.Err(command.ErrSyntax)
			return
		}
		scan.Count = command.AsInt(count)
	}
	if c.G.DBStats(c.DB).Blessed == 0 {
		c.ScanReply(0, 0, new(resp.Writer))
		return
	}
	scanKeys(c, &scan, (*engine.Entry).Blessed)
}

func cmdBlessHelp(c *command.Ctx) {
	command.HelpReply(c,
		"BLESS <subcommand> [<arg> [value] [opt] ...]. Subcommands are:",
		"CLEAR <key> NO-EVICT",
		"    End the protection of the key from eviction.",
		"GET <key>",
		"    List how the key is protected.",
		"SCAN <cursor> NO-EVICT [COUNT <count>]",
		"    Iterate over the protected keys of the database.",
		"SET <key> NO-EVICT",
		"    Protect the key from eviction.",
		"HELP",
		"    Print this help.")
}
