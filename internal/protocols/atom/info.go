package atom

import (
	"github.com/atomredis/atomredis/engine"
	"github.com/atomredis/atomredis/engine/streams"
	"github.com/atomredis/atomredis/internal/command"
	streamcommands "github.com/atomredis/atomredis/internal/commands/streams"
	"github.com/atomredis/atomredis/internal/protocols/atom/keys"
	"github.com/atomredis/atomredis/resp"
)

// This file has ATOM.INFO, which describes an element from its keys and its connections.

// atomGoneAfter is the time in ms without a sign of life after which an element without connections counts as gone.
const atomGoneAfter = 10_000

// atomElement is the known state of an element.
type atomElement struct {
	commands, responses *streams.Stream // nil if there is none
	group               *streams.Group  // the group that distributes the commands; nil if missing
	language, version   []byte          // views; nil if not sent, or trimmed
	cameUp              int64           // time of its first entries, in ms since 1970; 0 if unknown
	data                []atomStream
	connections         int
	instances           []byte // the value of its counter; nil if missing
}

// atomStream is a data stream.
type atomStream struct {
	name   string
	stream *streams.Stream
}

func cmdAtomInfo(c *command.Ctx) {
	e, exists := findAtomElement(c, c.Args[1])
	if !exists {
		c.Err(errNoElement)
		return
	}
	idle := c.Now() - e.lastSeen()
	w := c.W
	w.Map(12)
	w.BulkString("language")
	bulkOrNull(w, e.language)
	w.BulkString("version")
	bulkOrNull(w, e.version)
	w.BulkString("state")
	if e.connections > 0 || idle < atomGoneAfter {
		w.BulkString("alive")
	} else {
		w.BulkString("gone")
	}
	w.BulkString("idle")
	w.Int(max(idle, 0))
	w.BulkString("connections")
	w.Int(int64(e.connections))
	w.BulkString("instances")
	if n, ok := resp.ParseInt(e.instances); ok {
		w.Int(n)
	} else {
		bulkOrNull(w, e.instances)
	}
	w.BulkString("backlog")
	w.Int(int64(e.backlog()))
	e.writeConsumers(c)
	w.BulkString("commands")
	writeStreamSize(w, e.commands)
	w.BulkString("responses")
	writeStreamSize(w, e.responses)
	w.BulkString("streams")
	w.Map(len(e.data))
	for _, d := range e.data {
		w.BulkString(d.name)
		writeStreamSize(w, d.stream)
	}
}

// findAtomElement looks an element up. exists is false if it has neither a command nor a response stream.
func findAtomElement(c *command.Ctx, name []byte) (e atomElement, exists bool) {
	commands := atomKey(keys.Command, name)
	e.commands, e.responses = peekStream(c, commands), peekStream(c, atomKey(keys.Response, name))
	if e.commands == nil && e.responses == nil {
		return e, false
	}
	if e.commands != nil {
		e.group = e.commands.Group(atomKey(keys.Group, name))
	}
	e.introduce(e.responses)
	e.introduce(e.commands)
	prefix := keys.Stream + string(name) + ":"
	for _, stream := range atomNames(c, prefix) {
		e.data = append(e.data, atomStream{stream, peekStream(c, []byte(prefix+stream))})
	}
	if counter := c.G.Peek(c.DB, atomKey(keys.Counter, name)); counter != nil && counter.Type() == engine.String {
		e.instances = counter.Bytes()
	}
	e.connections = atomConnections(c, string(name), commands)
	return e, true
}

// introduce reads the entry that the element wrote at the beginning of one of its streams when it came up.
func (e *atomElement) introduce(s *streams.Stream) {
	if s == nil {
		return
	}
	first, ok := s.First()
	if !ok {
		return
	}
	if language, ok := fieldOf(first, "language"); ok {
		e.language = language
		e.version, _ = fieldOf(first, "version")
		e.cameUp = int64(first.ID.Ms)
	}
}

// atomConnections counts the clients of an element: those with its name, and those that wait for its commands.
func atomConnections(c *command.Ctx, name string, commands []byte) int {
	waiters := map[*engine.Waiter]bool{}
	c.G.EachWaiter(c.DB, commands, func(w *engine.Waiter) { waiters[w] = true })
	n := 0
	c.Host.(interface {
		EachClient(fn func(name string, waits *engine.Waiter))
	}).EachClient(func(client string, waits *engine.Waiter) {
		if client == name || waiters[waits] {
			n++
		}
	})
	return n
}

// lastSeen returns the time of the element's last sign of life in its streams, in ms since 1970: it came up, wrote
// data, or got a command. Entries of others, commands and responses, do not count.
func (e *atomElement) lastSeen() int64 {
	at := e.cameUp
	for _, d := range e.data {
		at = max(at, int64(d.stream.LastID().Ms))
	}
	if e.group != nil {
		for _, consumer := range e.group.Consumers() {
			at = max(at, consumer.SeenTime)
		}
	}
	return at
}

// backlog returns the number of unfinished commands: those that its group has not read, and those that are pending
// there. Without a group it is unknown what was read, so every command in the stream counts.
func (e *atomElement) backlog() int {
	if e.commands == nil {
		return 0
	}
	after, n := streams.ID{}, 0
	if e.group != nil {
		after, n = e.group.LastID, e.group.PendingLen()
	}
	start, ok := after.Next()
	if !ok {
		return n
	}
	e.commands.Range(start, streams.MaxID, false, func(entry streams.Entry) bool {
		if _, isCommand := fieldOf(entry, "cmd"); isCommand {
			n++
		}
		return true
	})
	return n
}

// writeConsumers writes the pairs about the consumers of the commands.
func (e *atomElement) writeConsumers(c *command.Ctx) {
	w := c.W
	w.BulkString("pending")
	if e.group == nil {
		w.Int(0)
		w.BulkString("consumers")
		w.Map(0)
		return
	}
	w.Int(int64(e.group.PendingLen()))
	w.BulkString("consumers")
	w.Map(len(e.group.Consumers()))
	for _, consumer := range e.group.Consumers() {
		w.BulkString(consumer.Name)
		w.Map(2)
		w.BulkString("pending")
		w.Int(int64(consumer.PendingLen()))
		w.BulkString("idle")
		w.Int(max(c.Now()-consumer.SeenTime, 0))
	}
}

// writeStreamSize writes the length and the last ID of a stream, or null if it is missing.
func writeStreamSize(w *resp.Writer, s *streams.Stream) {
	if s == nil {
		w.Null()
		return
	}
	w.Map(2)
	w.BulkString("length")
	w.Int(int64(s.Len()))
	w.BulkString("last-id")
	streamcommands.WriteID(w, s.LastID())
}

func bulkOrNull(w *resp.Writer, b []byte) {
	if b == nil {
		w.Null()
	} else {
		w.Bulk(b)
	}
}
