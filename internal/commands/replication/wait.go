package replication

import (
	"github.com/atomredis/atomredis/internal/command"
	"github.com/atomredis/atomredis/resp"
)

// This file has the commands that wait until followers have the client's writes.

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

const (
	errWaitOfReplica command.Error = "ERR WAIT cannot be used with replica instances. Please also note that since Redis " +
		"4.0 if a replica is configured to be writable (which is not the default) writes to replicas are just local and " +
		"are not propagated."
	errWaitAOFOfReplica command.Error = "ERR WAITAOF cannot be used with replica instances. Please also note that writes " +
		"to replicas are just local and are not propagated."
)

// wait waits until followers have executed the client's changes.
func wait(c *command.Ctx) {
	host := hostOf(c)
	if _, follows := host.Master(); follows {
		c.Err(errWaitOfReplica)
		return
	}
	replicas, ok := c.Int(c.Args[1])
	if !ok {
		return
	}
	timeout, ok := c.IntTimeout(c.Args[2])
	if !ok {
		return
	}
	offset := clientOf(c).Wrote()
	count := func(w *resp.Writer) { w.Int(host.Acked(offset, false)) }
	if c.NoBlock || host.Acked(offset, false) >= replicas {
		count(c.W)
		return
	}
	finish := c.Await(timeout, count)
	host.AwaitAcked(clientOf(c), offset, replicas, false, func() { finish(count) })
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
	if _, follows := host.Master(); follows {
		c.Err(errWaitAOFOfReplica)
		return
	}
	journalled := host.HasJournal()
	if local > 0 && !journalled {
		c.Err(errNoAOF)
		return
	}
	offset := clientOf(c).Wrote()
	counts := func(w *resp.Writer) {
		n := int64(0)
		if journalled && host.Durable() {
			n = 1
		}
		writeAOFCounts(w, n, host.Acked(offset, true))
	}
	here, there := local == 0 || host.Durable(), host.Acked(offset, true) >= replicas
	if c.NoBlock || here && there {
		counts(c.W)
		return
	}
	finish := c.Await(timeout, counts)
	whenHere := func() {
		if local == 0 {
			finish(counts)
			return
		}
		// The client's changes are on disk then, even if later ones are not.
		host.AwaitDurable(func() {
			finish(func(w *resp.Writer) { writeAOFCounts(w, 1, host.Acked(offset, true)) })
		})
	}
	if there {
		whenHere()
		return
	}
	host.AwaitAcked(clientOf(c), offset, replicas, true, whenHere)
}

// writeAOFCounts writes the reply of WAITAOF.
func writeAOFCounts(w *resp.Writer, local, replicas int64) {
	w.Array(2)
	w.Int(local)
	w.Int(replicas)
}
