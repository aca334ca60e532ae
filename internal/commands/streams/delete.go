package streams

import (
	"math"

	"github.com/atomredis/atomredis/engine"
	"github.com/atomredis/atomredis/engine/streams"
	"github.com/atomredis/atomredis/internal/command"
)

// XDELEX and XACKDEL of Redis 8.2: they remove entries depending on the consumer groups in which they are pending.

func init() { command.Register(streamDeleteCommands) }

var streamDeleteCommands = []*command.Command{
	{Name: "xackdel", Group: "stream", Since: "8.2.0", Arity: -6, Flags: command.Write | command.Fast,
		ACL:        command.CatStream,
		Keys:       command.Keys("i1+r0/1/0[RW,UPDATE,DELETE]"),
		Summary:    "Acknowledges pending entries and deletes them",
		Syntax:     "key group [KEEPREF | DELREF | ACKED] <IDS numids id [id ...]>",
		Complexity: "O(1) for each entry", Do: cmdXackdel},
	{Name: "xdelex", Group: "stream", Since: "8.2.0", Arity: -5, Flags: command.Write | command.Fast,
		ACL:        command.CatStream,
		Keys:       command.Keys("i1+r0/1/0[RW,DELETE]"),
		Summary:    "Deletes entries, with or without their pending references",
		Syntax:     "key [KEEPREF | DELREF | ACKED] <IDS numids id [id ...]>",
		Complexity: "O(1) for each entry", Do: cmdXdelex},
}

const (
	errNumIDs      command.Error = "ERR Number of IDs must be a positive integer"
	errNumIDsCount command.Error = "ERR The `numids` parameter must match the number of arguments"
)

// Replies of XDELEX and XACKDEL for an ID.
const (
	idNotFound = -1
	idRemoved  = 1
	idNeeded   = 2
)

// deletion parses the arguments of XDELEX and XACKDEL after the key and the group.
func deletion(c *command.Ctx, from int) (refs streams.References, ids []streams.ID, ok bool) {
	chosen := false
	for o := c.Options(from); o.Next(); {
		if r, is := referencesOption(&o); is && !chosen {
			refs, chosen = r, true
			continue
		}
		switch {
		case o.Is("ids") && o.More() && ids == nil:
			var n int64
			if n, ok = c.IntIn(o.Arg(), 1, math.MaxInt64, errNumIDs); !ok {
				return refs, nil, false
			}
			if n > int64(o.Left()) {
				c.Err(errNumIDsCount)
				return refs, nil, false
			}
			ids, ok = streamIDs(c, nil, o.Rest()[:n])
			o.Skip(int(n))
		default:
			c.Err(command.ErrSyntax)
			return refs, nil, false
		}
		if !ok {
			return refs, nil, false
		}
	}
	if ids == nil {
		c.Err(command.ErrSyntax)
	}
	return refs, ids, ids != nil
}

func cmdXdelex(c *command.Ctx) {
	refs, ids, ok := deletion(c, 2)
	if !ok {
		return
	}
	e, ok := c.WriteAs(c.Args[1], engine.Stream)
	if !ok {
		return
	}
	some := e
	if e != nil {
		some = entriesNamed(e, ids)
	}
	c.W.Array(len(ids))
	changed, acknowledged := false, false
	for _, id := range ids {
		result := int64(idNotFound)
		if e != nil {
			s := some.Stream()
			if refs == streams.DeleteReferences && s.AckAll(id) { // even if the entry does not exist any more
				acknowledged = true
			}
			switch {
			case !s.Has(id):
			case refs == streams.OnlyAcknowledged && s.Needed(id):
				result = idNeeded
			default:
				s.Delete(id)
				changed, result = true, idRemoved
			}
		}
		c.W.Int(result)
	}
	deletionChanged(c, e, changed, acknowledged)
}

func cmdXackdel(c *command.Ctx) {
	refs, ids, ok := deletion(c, 3)
	if !ok {
		return
	}
	e, ok := c.WriteAs(c.Args[1], engine.Stream)
	if !ok {
		return
	}
	var g *streams.Group
	some := e
	if e != nil {
		some = entriesNamed(e, ids)
		g = some.Stream().Group(c.Args[2])
	}
	c.W.Array(len(ids))
	changed, acknowledged := false, false
	for _, id := range ids {
		result := int64(idNotFound)
		if g != nil && g.Ack(id) {
			acknowledged, result = true, idRemoved
			s := some.Stream()
			if refs == streams.DeleteReferences {
				s.AckAll(id)
			}
			if refs == streams.OnlyAcknowledged && s.Needed(id) {
				result = idNeeded
			} else if s.Delete(id) {
				changed = true
			}
		}
		c.W.Int(result)
	}
	deletionChanged(c, e, changed, acknowledged)
}

// deletionChanged reports that entries were removed, or only acknowledged.
func deletionChanged(c *command.Ctx, e *engine.Entry, removed, acknowledged bool) {
	switch {
	case removed:
		c.G.Changed(e, engine.EventStream, "xdel")
	case acknowledged:
		c.G.ChangedBookkeeping(e, 0, "")
	}
}
