package json

import (
	"github.com/atomredis/atomredis/engine"
	"github.com/atomredis/atomredis/engine/documents"
	"github.com/atomredis/atomredis/engine/documents/path"
	"github.com/atomredis/atomredis/internal/command"
)

// A command whose path selects many values is offloaded, on copies of the documents. The copies replace the documents unless
// these have changed meanwhile. See package command.

// edits is the result of an offloaded command.
type edits struct {
	docs   []edit
	event  string
	reply  []byte
	record engine.Record // for the journal, in place of the command; empty if the command itself is journalled

	has map[*documents.Document]bool // the documents in docs
}

// edit is a change of the document whose key is an argument.
type edit struct {
	arg  int
	doc  *documents.Document // the changed copy; nil if it belongs to an earlier edit
	goes bool                // the key must be removed
}

// changing returns the handler of a command that changes documents. do makes the change, unless an offloaded call has computed it.
func changing(do func(c *command.Ctx)) func(c *command.Ctx) {
	return func(c *command.Ctx) {
		if a := c.Offload; a != nil && a.Done {
			if made, ok := a.Result.(*edits); ok {
				made.use(c)
				return
			}
		}
		do(c)
	}
}

// onCopies reports whether this is an offloaded call, which changes copies.
func onCopies(c *command.Ctx) bool { return c.Offload != nil && c.Offload.Changes && !c.Offload.Done }

// finish ends a command that has changed the document of its first argument and has written its reply. goes says
// that the key must be removed. record is journalled in place of a command that would not repeat its effect.
func finish(c *command.Ctx, e *engine.Entry, event string, goes bool, record engine.Record) {
	if onCopies(c) {
		made := edits{event: event, record: record}
		made.add(c, 1, e, goes)
		made.end(c)
	}
	if !record.Empty() {
		c.JournalRecord(&record)
	}
	if goes {
		c.G.Remove(e, engine.EventModule, event)
	} else {
		c.G.Changed(e, engine.EventModule, event)
	}
}

// add records that the copy of a document has changed, or that its key must be removed.
func (made *edits) add(c *command.Ctx, arg int, e *engine.Entry, goes bool) {
	d := edit{arg: arg, goes: goes}
	if doc := e.JSON(); !goes && !made.has[doc] {
		if d.doc = doc; made.has == nil {
			made.has = map[*documents.Document]bool{}
		}
		made.has[doc] = true
	}
	made.docs = append(made.docs, d)
}

// end makes the edits the result of the command. It does not return.
func (made *edits) end(c *command.Ctx) {
	made.reply = c.W.Buf
	for _, d := range made.docs {
		if d.doc != nil {
			c.Host.Keyspace().Prepare(d.doc)
		}
	}
	command.Result(c, func() *edits { return made })
}

// use replaces the documents by the changed copies.
func (made *edits) use(c *command.Ctx) {
	if !made.record.Empty() {
		c.JournalRecord(&made.record)
	}
	for _, d := range made.docs {
		e := c.G.Write(c.DB, c.Args[d.arg])
		switch {
		case d.goes:
			c.G.Remove(e, engine.EventModule, made.event)
			continue
		case e == nil:
			e = c.G.Create(c.DB, c.Args[d.arg], d.doc)
		case d.doc != nil:
			c.G.Replace(e, d.doc)
		}
		c.G.Changed(e, engine.EventModule, made.event)
	}
	c.W.Raw(made.reply)
}

// placeWork is how many elements of another value take as long as a change of one place in a document.
const placeWork = 4

// longPlaces must be called before a change of n places in a document, each of which gets about each bytes.
func longPlaces(c *command.Ctx, d *documents.Document, n, each int) {
	c.LongChange(n*(placeWork+each/elementSize), d.MemoryUsage()/elementSize)
}

// matchesIn returns the matches of a path in a document that will be changed.
func matchesIn(c *command.Ctx, d *documents.Document, p *path.Path) ([]path.Match, error) {
	return p.Matches(d.Root(), func() { c.LongChange(command.LongFrom, command.LongFrom) })
}
