package server

import (
	"github.com/atomredis/atomredis/engine"
	"github.com/atomredis/atomredis/engine/streams"
)

// This file has XINFO, which describes streams and their consumer groups.

var xinfoCommands = []*Command{
	{Name: "xinfo|consumers", Group: "stream", Since: "5.0.0", Arity: 4, Flags: ReadOnly, ACL: CatStream, Keys: keys("i2+r0/1/0[RO,ACCESS]"),
		Summary: "Describes the consumers of a group", Syntax: "key groupname", Complexity: "O(N), where N is the number of consumers", Do: cmdXinfoConsumers},
	{Name: "xinfo|groups", Group: "stream", Since: "5.0.0", Arity: 3, Flags: ReadOnly, ACL: CatStream, Keys: keys("i2+r0/1/0[RO,ACCESS]"),
		Summary: "Describes the consumer groups of a stream", Syntax: "key", Complexity: "O(N), where N is the number of groups", Do: cmdXinfoGroups},
	{Name: "xinfo|help", Group: "stream", Since: "5.0.0", Arity: 2, Flags: Loading | Stale, ACL: CatStream,
		Summary: "Lists the subcommands", Complexity: "O(1)", Do: cmdXinfoHelp},
	{Name: "xinfo|stream", Group: "stream", Since: "5.0.0", Arity: -3, Flags: ReadOnly, ACL: CatStream, Keys: keys("i2+r0/1/0[RO,ACCESS]"),
		Summary: "Describes a stream, with all its groups if FULL is given", Syntax: "key [FULL [COUNT count]]",
		Complexity: "O(1), with FULL O(N), where N is the number of entries, groups, consumers and pending entries shown", Do: cmdXinfoStream},
}

// xinfoEntry returns the stream that XINFO describes; if there is none an error is written and ok is false.
func (c *Ctx) xinfoEntry() (e *engine.Entry, ok bool) {
	if e, ok = c.ReadAs(c.Args[2], engine.Stream); ok && e == nil {
		c.Err(ErrNoKey)
		ok = false
	}
	return e, ok
}

func cmdXinfoConsumers(c *Ctx) {
	e, ok := c.xinfoEntry()
	if !ok {
		return
	}
	g := e.Stream().Group(c.Args[3])
	if g == nil {
		c.errNoGroup()
		return
	}
	w := c.W
	w.Array(len(g.Consumers()))
	for _, consumer := range g.Consumers() {
		w.Map(4)
		w.BulkString("name")
		w.BulkString(consumer.Name)
		w.BulkString("pending")
		w.Int(int64(consumer.PendingLen()))
		w.BulkString("idle")
		w.Int(max(c.Now()-consumer.SeenTime, 0))
		w.BulkString("inactive")
		if consumer.ActiveTime < 0 {
			w.Int(-1) // it was never given anything
		} else {
			w.Int(max(c.Now()-consumer.ActiveTime, 0))
		}
	}
}

func cmdXinfoGroups(c *Ctx) {
	e, ok := c.xinfoEntry()
	if !ok {
		return
	}
	s, w := e.Stream(), c.W
	w.Array(len(s.Groups()))
	for _, g := range s.Groups() {
		w.Map(6)
		w.BulkString("name")
		w.BulkString(g.Name)
		w.BulkString("consumers")
		w.Int(int64(len(g.Consumers())))
		w.BulkString("pending")
		w.Int(int64(g.PendingLen()))
		c.groupProgress(s, g)
	}
}

// groupProgress writes the three pairs that tell how far a group is.
func (c *Ctx) groupProgress(s *streams.Stream, g *streams.Group) {
	w := c.W
	w.BulkString("last-delivered-id")
	writeStreamID(w, g.LastID)
	w.BulkString("entries-read")
	if g.EntriesRead != streams.UnknownEntriesRead {
		w.Int(g.EntriesRead)
	} else {
		w.Null()
	}
	w.BulkString("lag")
	if lag, ok := s.Lag(g); ok {
		w.Int(lag)
	} else {
		w.Null()
	}
}

func cmdXinfoHelp(c *Ctx) {
	helpReply(c,
		"XINFO <subcommand> [<arg> [value] [opt] ...]. Subcommands are:",
		"CONSUMERS <key> <groupname>",
		"    Describe the consumers of the group.",
		"GROUPS <key>",
		"    Describe the consumer groups of the stream.",
		"STREAM <key> [FULL [COUNT <count>]]",
		"    Describe the stream; FULL adds its entries and groups, COUNT of each (0 for all).",
		"HELP",
		"    Show this text.",
	)
}

func cmdXinfoStream(c *Ctx) {
	e, ok := c.xinfoEntry()
	if !ok {
		return
	}
	s := e.Stream()
	switch n := len(c.Args); {
	case n == 3:
		c.streamInfo(s)
	case n != 4 && n != 6, !equalFold(c.Args[3], "full"), n == 6 && !equalFold(c.Args[4], "count"):
		c.errUnknownForm("XINFO")
	case n == 4:
		c.streamInfoFull(s, defaultInfoCount)
	default:
		count, ok := c.Int(c.Args[5])
		if !ok {
			return
		}
		if count < 0 {
			count = defaultInfoCount
		}
		c.streamInfoFull(s, asInt(count))
	}
}

// defaultInfoCount is how many entries of each kind XINFO STREAM FULL shows unless COUNT says otherwise.
const defaultInfoCount = 10

// streamFacts writes the seven pairs that both forms of XINFO STREAM begin with.
func (c *Ctx) streamFacts(s *streams.Stream) {
	w := c.W
	w.BulkString("length")
	w.Int(int64(s.Len()))
	w.BulkString("radix-tree-keys")
	w.Int(int64(s.NodeCount()))
	w.BulkString("radix-tree-nodes")
	w.Int(int64(s.NodeCount()) + 1) // the root and a node for each key, as in Redis while there are few
	w.BulkString("last-generated-id")
	writeStreamID(w, s.LastID())
	w.BulkString("max-deleted-entry-id")
	writeStreamID(w, s.MaxDeletedID())
	w.BulkString("entries-added")
	w.Int(s.EntriesAdded())
	w.BulkString("recorded-first-entry-id")
	writeStreamID(w, s.FirstID())
}

func (c *Ctx) streamInfo(s *streams.Stream) {
	c.W.Map(10)
	c.streamFacts(s)
	c.W.BulkString("groups")
	c.W.Int(int64(len(s.Groups())))
	c.W.BulkString("first-entry")
	c.entryOrNull(s.First)
	c.W.BulkString("last-entry")
	c.entryOrNull(s.Last)
}

func (c *Ctx) entryOrNull(get func() (streams.Entry, bool)) {
	if e, ok := get(); ok {
		writeStreamEntry(c.W, e)
	} else {
		c.W.Null()
	}
}

// streamInfoFull is XINFO STREAM FULL; a count of 0 shows everything.
func (c *Ctx) streamInfoFull(s *streams.Stream, count int) {
	w := c.W
	w.Map(9)
	c.streamFacts(s)
	w.BulkString("entries")
	writeStreamRange(w, s, streams.MinID, streams.MaxID, false, count)
	w.BulkString("groups")
	w.Array(len(s.Groups()))
	for _, g := range s.Groups() {
		w.Map(7)
		w.BulkString("name")
		w.BulkString(g.Name)
		c.groupProgress(s, g)
		w.BulkString("pel-count")
		w.Int(int64(g.PendingLen()))
		w.BulkString("pending")
		mark, n := w.Defer(), 0
		g.Pending(streams.MinID, streams.MaxID, func(nack *streams.NACK) bool {
			w.Array(4)
			writeStreamID(w, nack.ID)
			w.BulkString(nack.Consumer.Name)
			w.Int(nack.DeliveryTime)
			w.Int(nack.DeliveryCount)
			n++
			return n != count
		})
		w.EndArray(mark, n)
		w.BulkString("consumers")
		w.Array(len(g.Consumers()))
		for _, consumer := range g.Consumers() {
			c.consumerInfo(consumer, count)
		}
	}
}

// consumerInfo writes what XINFO STREAM FULL tells of a consumer.
func (c *Ctx) consumerInfo(consumer *streams.Consumer, count int) {
	w := c.W
	w.Map(5)
	w.BulkString("name")
	w.BulkString(consumer.Name)
	w.BulkString("seen-time")
	w.Int(consumer.SeenTime)
	w.BulkString("active-time")
	w.Int(consumer.ActiveTime)
	w.BulkString("pel-count")
	w.Int(int64(consumer.PendingLen()))
	w.BulkString("pending")
	mark, n := w.Defer(), 0
	consumer.Pending(streams.MinID, streams.MaxID, func(nack *streams.NACK) bool {
		w.Array(3)
		writeStreamID(w, nack.ID)
		w.Int(nack.DeliveryTime)
		w.Int(nack.DeliveryCount)
		n++
		return n != count
	})
	w.EndArray(mark, n)
}
