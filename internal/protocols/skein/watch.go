package skein

import (
	"bytes"
	"slices"

	"github.com/atomredis/atomredis/engine"
	"github.com/atomredis/atomredis/internal/command"
	"github.com/atomredis/atomredis/internal/protocols/internal/effect"
	"github.com/atomredis/atomredis/internal/protocols/internal/feed"
	"github.com/atomredis/atomredis/internal/protocols/skein/event"
	"github.com/atomredis/atomredis/internal/protocols/skein/keys"
	"github.com/atomredis/atomredis/resp"
)

// This file has the commands that wait for events, list and finish applications.

// watchRange waits for the next event in a range.
func watchRange(c *command.Ctx) {
	w := &watch{puts: true, deletes: true}
	p := parser{args: c.Args[2:]}
	w.start, w.end = bytes.Clone(p.key()), bytes.Clone(p.key())
	switch {
	case p.is("put"):
		w.deletes = false
	case p.is("delete"):
		w.puts = false
	default:
		p.is("all")
	}
	timeout := int64(0)
	if p.is("timeout") {
		ms, ok := c.IntTimeout(p.arg())
		if !ok {
			return
		}
		timeout = ms
	}
	if len(p.args) > 0 {
		p.fail(command.ErrSyntax)
	}
	if p.err != "" {
		c.Err(p.err)
		return
	}
	a, ok := openedToRead(c, 1, readOnly)
	if !ok {
		return
	}
	if c.NoBlock {
		c.W.NullArray()
		return
	}
	w.app, w.session = a.id(), sessionOf(c.Client)
	service := a.service
	w.finish = c.Await(timeout, func(out *resp.Writer) {
		service.forget(w)
		out.NullArray()
	})
	service.wait(w)
}

func revision(c *command.Ctx) {
	if a, ok := openedToRead(c, 1, readOnly); ok {
		c.W.Int(a.service.revision(a.id()))
	}
}

// apps lists the applications with a key or a service.
func apps(c *command.Ctx) {
	var names []string
	c.G.Each(c.DB, func(e *engine.Entry) bool {
		for _, k := range []key{valuesKey, servicesKey, statusKey} {
			if name, ok := nameIn(e, k); ok {
				names = append(names, name)
			}
		}
		return true
	})
	slices.Sort(names)
	names = slices.Compact(names)
	c.W.Array(len(names))
	for _, name := range names {
		c.W.BulkString(name)
	}
}

// status returns the status and message of a finished application; both are empty before.
func (a *app) status() (status, message []byte) {
	if e := a.c.G.Peek(a.c.DB, a.names[statusKey]); e != nil {
		status, message, _ = bytes.Cut(e.Bytes(), []byte(" "))
	}
	return status, message
}

func info(c *command.Ctx) {
	a, ok := openedToRead(c, 1, numberOfKeys)
	if !ok {
		return
	}
	numbers := []struct {
		name string
		n    int
	}{
		{"keys", effect.HLen(c, a.names[valuesKey])},
		{"owned", effect.HLen(c, a.names[ownersKey])},
		{"services", effect.HLen(c, a.names[servicesKey])},
		{"containers", len(a.containersOf(func(ct *container) bool { return !ct.state.completed() }))},
		{"leases", effect.ZCard(c, a.names[leasesKey])},
	}
	c.W.Map(len(numbers) + 3)
	for _, f := range numbers {
		c.W.BulkString(f.name)
		c.W.Int(int64(f.n))
	}
	c.W.BulkString("revision")
	c.W.Int(a.service.revision(a.id()))
	status, message := a.status()
	c.W.BulkString("status")
	c.W.Bulk(status)
	c.W.BulkString("message")
	c.W.Bulk(message)
}

// finalStatuses are the possible final statuses of an application.
var finalStatuses = []string{"UNDEFINED", states[succeeded], states[failedState], states[killed]}

// messageFinished is the message of containers that end with their application.
const messageFinished = "The application has finished."

// Host is what SKEIN.FINISH needs of the server.
type Host interface {
	command.Host
	// CloseDoor closes, in the background, the door of that name if it is open and a directive of it has the value.
	CloseDoor(name, directive, value string)
}

// finish ends an application with all its containers, and the door that serves it.
func finish(c *command.Ctx) {
	at := slices.IndexFunc(finalStatuses, func(s string) bool { return command.EqualFold(c.Args[2], command.Lower([]byte(s))) })
	if at < 0 || len(c.Args) > 4 {
		c.Err(command.ErrSyntax)
		return
	}
	a, ok := opened(c, 1)
	if !ok {
		return
	}
	status, message := []byte(finalStatuses[at]), []byte(nil)
	if len(c.Args) == 4 {
		message = c.Args[3]
	}
	final := slices.Concat(status, []byte(" "), message)
	effect.Set(c, a.names[statusKey], final)
	for _, ct := range a.containersOf(func(ct *container) bool { return !ct.state.completed() }) {
		a.end(&ct, killed, messageFinished)
	}
	a.service.tell(a, &event.Event{Type: event.Finish, Status: status, Message: message})
	if feed.Heard(c) {
		feed.Send(c, keys.AppendFinished(bytes.Clone(a.names[valuesKey]), c.DB), final)
	}
	if c.DB == 0 { // doors serve database 0
		c.Host.(Host).CloseDoor("skein", "skein-application", string(c.Args[1]))
	}
	c.W.OK()
}
