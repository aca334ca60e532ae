package server

import (
	"math"
	"runtime/debug"
)

// memoryCommand tells about memory.
var memoryCommand = &Command{Name: "memory", Group: "server", Since: "4.0.0", Arity: -2,
	Summary: "Groups the commands about memory", Complexity: "That of the sub-command",
	Subs: []*Command{
		{Name: "memory|help", Group: "server", Since: "4.0.0", Arity: 2, Flags: Loading | Stale,
			Summary: "Lists the sub-commands", Complexity: "O(1)", Do: cmdMemoryHelp},
		{Name: "memory|purge", Group: "server", Since: "4.0.0", Arity: 2,
			Summary: "Gives unused memory back to the system", Complexity: "Depends on the memory in use", Do: cmdMemoryPurge},
		{Name: "memory|usage", Group: "server", Since: "4.0.0", Arity: -3, Flags: ReadOnly, Keys: keys("i2+r0/1/0[RO]"),
			Summary: "Estimates the memory that a key and its value take", Syntax: "key [SAMPLES count]",
			Complexity: "O(N), where N is the number of samples and of the parts that a large value is kept in", Do: cmdMemoryUsage},
	}}

// memorySamples is how many elements of a large collection MEMORY USAGE looks at unless told.
const memorySamples = 5

func cmdMemoryUsage(c *Ctx) {
	samples := int64(memorySamples)
	for o := c.Options(3); o.Next(); {
		if !o.Is("samples") || !o.More() {
			c.Err(ErrSyntax)
			return
		}
		n, ok := c.Int(o.Arg())
		if !ok {
			return
		}
		if n < 0 {
			c.Err(ErrSyntax)
			return
		}
		samples = n
	}
	e := c.G.Peek(c.DB, c.Args[2])
	if e == nil {
		c.W.Null()
		return
	}
	c.W.Int(int64(e.MemoryUsage(int(min(samples, math.MaxInt32)))))
}

func cmdMemoryPurge(c *Ctx) {
	debug.FreeOSMemory()
	c.W.OK()
}

func cmdMemoryHelp(c *Ctx) {
	helpReply(c,
		"MEMORY <subcommand> [<arg> [value] [opt] ...]. Subcommands are:",
		"PURGE",
		"    Give memory that is not in use back to the system.",
		"USAGE <key> [SAMPLES <count>]",
		"    Estimate the bytes that the key and its value take. Of a large value so many",
		"    elements are looked at (default 5; 0 looks at all).",
		"HELP",
		"    Print this help.")
}
