package replication

import (
	"github.com/atomredis/atomredis/command"
	"github.com/atomredis/atomredis/resp"
)

// This file has the commands that wait until others have what the client wrote.

func init() { command.Register(waitCommands) }

var waitCommands = []*command.Command{
	{Name: "wait", Group: "generic", Since: "3.0.0", Arity: 3, Flags: command.Blocking, ACL: command.CatConnection,
		Summary: "Waits until replicas have received the client's writes",
		Syntax:  "numreplicas timeout", Complexity: "O(1)", Do: wait},
	{Name: "waitaof", Group: "generic", Since: "7.2.0", Arity: 4, Flags: command.Blocking, ACL: command.CatConnection,
		Summary:    "Waits until the client's writes are on disk, here and on replicas",
		Syntax:     "numlocal numreplicas timeout",
		Complexity: "O(1)", Do: waitaof},
}

const (
	errZeroOrOne command.Error = "ERR value is out of range, value must between 0 and 1"
	errNoAOF     command.Error = "ERR WAITAOF cannot be used when numlocal is set but appendonly is disabled."
)

// wait waits for replicas: there are none, so if it waits for some it waits until its time is up.
func wait(c *command.Ctx) {
	replicas, ok := c.Int(c.Args[1])
	if !ok {
		return
	}
	timeout, ok := c.IntTimeout(c.Args[2])
	if !ok {
		return
	}
	if replicas <= 0 {
		c.W.Int(0)
		return
	}
	c.Block(command.Block{Timeout: timeout, Empty: func(w *resp.Writer) { w.Int(0) }})
}

func waitaof(c *command.Ctx) {
	local, ok := c.Int(c.Args[1])
	if !ok {
		return
	}
	if local < 0 || local > 1 {
		c.Err(errZeroOrOne)
		return
	}
	replicas, ok := c.Int(c.Args[2])
	if !ok {
		return
	}
	if replicas < 0 {
		c.Err(command.ErrNotPositive)
		return
	}
	timeout, ok := c.IntTimeout(c.Args[3])
	if !ok {
		return
	}
	host := hostOf(c)
	journalled := host.HasJournal()
	if local > 0 && !journalled {
		c.Err(errNoAOF)
		return
	}
	counts := func(w *resp.Writer) {
		n := int64(0)
		if journalled && host.Durable() {
			n = 1
		}
		writeAOFCounts(w, n)
	}
	switch {
	case replicas > 0: // which there will never be
		c.Block(command.Block{Timeout: timeout, Empty: counts})
	case local == 0 || c.NoBlock || host.Durable():
		counts(c.W)
	default:
		finish := c.Await(timeout, counts)
		host.AwaitDurable(func() { finish(func(w *resp.Writer) { writeAOFCounts(w, 1) }) })
	}
}

// writeAOFCounts writes the reply of WAITAOF.
func writeAOFCounts(w *resp.Writer, local int64) {
	w.Array(2)
	w.Int(local)
	w.Int(0)
}
