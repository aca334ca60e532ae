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

// wait waits until followers have executed the client's changes, and other servers of the group have them.
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
	written := clientOf(c).Wrote()
	count := func(w *resp.Writer) { w.Int(host.Acked(written, false)) }
	if c.NoBlock || host.Acked(written, false) >= replicas {
		count(c.W)
		return
	}
	finish := await(c, timeout, count)
	host.AwaitAcked(clientOf(c), written, replicas, false, func(acked int64) {
		finish(func(w *resp.Writer) { w.Int(acked) })
	})
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
	written := clientOf(c).Wrote()
	counts := func(least int64) command.Reply {
		return func(w *resp.Writer) {
			n := int64(0)
			if journalled && host.Durable() {
				n = 1
			}
			writeAOFCounts(w, n, max(least, host.Acked(written, true)))
		}
	}
	acked := host.Acked(written, true)
	if c.NoBlock || (local == 0 || host.Durable()) && acked >= replicas {
		counts(acked)(c.W)
		return
	}
	finish := await(c, timeout, counts(0))
	whenHere := func(acked int64) {
		if local == 0 {
			finish(counts(acked))
			return
		}
		// The client's changes are on disk then, even if later ones are not.
		host.AwaitDurable(func() {
			finish(func(w *resp.Writer) { writeAOFCounts(w, 1, max(acked, host.Acked(written, true))) })
		})
	}
	if acked >= replicas {
		whenHere(acked)
		return
	}
	host.AwaitAcked(clientOf(c), written, replicas, true, whenHere)
}

// await suspends the client. A server that begins to follow another one ends the waits that it finds: if it has begun since the
// command looked, it may have missed this one.
func await(c *command.Ctx, timeout int64, empty command.Reply) (finish func(command.Reply)) {
	finish = c.Await(timeout, empty)
	if c.Host.Follows() {
		finish(func(w *resp.Writer) { w.Error(string(command.ErrRoleChanged)) })
	}
	return finish
}

// writeAOFCounts writes the reply of WAITAOF.
func writeAOFCounts(w *resp.Writer, local, replicas int64) {
	w.Array(2)
	w.Int(local)
	w.Int(replicas)
}
