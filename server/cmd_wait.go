package server

import (
	"github.com/atomredis/atomredis/command"
	"github.com/atomredis/atomredis/resp"
)

// This file has the commands that wait until others have what the client wrote.

func init() { command.Register(waitCommands) }

var waitCommands = []*command.Command{
	{Name: "wait", Group: "generic", Since: "3.0.0", Arity: 3, Flags: command.Blocking, ACL: command.CatConnection,
		Summary: "Waits until replicas have received the client's writes",
		Syntax:  "numreplicas timeout", Complexity: "O(1)", Do: cmdWait},
	{Name: "waitaof", Group: "generic", Since: "7.2.0", Arity: 4, Flags: command.Blocking, ACL: command.CatConnection,
		Summary:    "Waits until the client's writes are on disk, here and on replicas",
		Syntax:     "numlocal numreplicas timeout",
		Complexity: "O(1)", Do: cmdWaitaof},
}

const (
	errNumLocal command.Error = "ERR value is out of range, value must between 0 and 1"
	errNoAOF    command.Error = "ERR WAITAOF cannot be used when numlocal is set but appendonly is disabled."
)

// cmdWait waits for replicas: there are none, so if it waits for some it waits until its time is up.
func cmdWait(c *command.Ctx) {
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

func cmdWaitaof(c *command.Ctx) {
	local, ok := c.Int(c.Args[1])
	if !ok {
		return
	}
	if local < 0 || local > 1 {
		c.Err(errNumLocal)
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
	st := &serverOf(c).storage
	journalled := st.Storage != nil && st.HasJournal()
	if local > 0 && !journalled {
		c.Err(errNoAOF)
		return
	}
	counts := func(w *resp.Writer) {
		n := int64(0)
		if journalled && st.Durable() >= st.Appended() {
			n = 1
		}
		writeAOFCounts(w, n)
	}
	switch {
	case replicas > 0: // which there will never be
		c.Block(command.Block{Timeout: timeout, Empty: counts})
	case local == 0 || c.NoBlock || st.Durable() >= st.Appended():
		counts(c.W)
	default:
		st.await(st.Appended(), c.Await(timeout, counts))
	}
}

// writeAOFCounts writes the reply of WAITAOF.
func writeAOFCounts(w *resp.Writer, local int64) {
	w.Array(2)
	w.Int(local)
	w.Int(0)
}
