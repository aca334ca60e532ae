package streams

import (
	"github.com/atomredis/atomredis/engine"
	"github.com/atomredis/atomredis/engine/streams"
	"github.com/atomredis/atomredis/internal/command"
)

// This file has XINFO, which describes streams and their consumer groups.

var xinfoCommands = []*command.Command{
	{Name: "xinfo|consumers", Group: "stream", Since: "5.0.0", Arity: 4, Flags: command.ReadOnly, ACL: command.CatStream,
		Keys:    command.Keys("i2+r0/1/0[RO,ACCESS]"),
		Summary: "Describes the consumers of a group", Syntax: "key groupname",
		Complexity: "O(N), where N is the number of consumers", Do: cmdXinfoConsumers},
	{Name: "xinfo|groups", Group: "stream", Since: "5.0.0", Arity: 3, Flags: command.ReadOnly, ACL: command.CatStream,
		Keys:    command.Keys("i2+r0/1/0[RO,ACCESS]"),
		Summary: "Describes the consumer groups of a stream", Syntax: "key",
		Complexity: "O(N), where N is the number of groups", Do: cmdXinfoGroups},
	{Name: "xinfo|help", Group: "stream", Since: "5.0.0", Arity: 2, Flags: command.Loading | command.Stale,
		ACL:     command.CatStream,
		Summary: "Lists the subcommands", Complexity: "O(1)", Do: cmdXinfoHelp},
	{Name: "xinfo|stream", Group: "stream", Since: "5.0.0", Arity: -3, Flags: command.ReadOnly, ACL: command.CatStream,
		Keys:    command.Keys("i2+r0/1/0[RO,ACCESS]"),
		Summary: "Describes a stream, with all its groups if FULL is given", Syntax: "key [FULL [COUNT count]]",
		Complexity: "O(P), where P is the number of producers remembered, with FULL O(N+P), where N is the number of " +
			"entries, groups, consumers and pending entries shown",
		Do: cmdXinfoStream},
}

// xinfoEntry returns the stream that XINFO describes; if there is none, it writes an error and ok is false.
func xinfoEntry(c *command.Ctx) (e *engine.Entry, ok bool) {
	if e, ok = c.ReadAs(c.Args[2], engine.Stream); ok && e == nil {
		c.Err(command.ErrNoKey)
		ok = false
	}
	return e, ok
}

func cmdXinfoConsumers(c *command.Ctx) {
	e, ok := xinfoEntry(c)
	if !ok {
		return
	}
	g := e.Entries().Stream().Group(c.Args[3])
	if g == nil {
		errNoGroup(c)
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
			w.Int(-1) // the consumer never got an entry
		} else {
			w.Int(max(c.Now()-consumer.ActiveTime, 0))
		}
	}
}

func cmdXinfoGroups(c *command.Ctx) {
	e, ok := xinfoEntry(c)
	if !ok {
		return
	}
	s, w := e.Entries(firstEntry).Stream(), c.W
	w.Array(len(s.Groups()))
	for _, g := range s.Groups() {
		w.Map(6)
		w.BulkString("name")
		w.BulkString(g.Name)
		w.BulkString("consumers")
		w.Int(int64(len(g.Consumers())))
		w.BulkString("pending")
		w.Int(int64(g.PendingLen()))
		groupProgress(c, s, g)
	}
}

// groupProgress writes the three pairs about the progress of a group.
func groupProgress(c *command.Ctx, s *streams.Stream, g *streams.Group) {
	w := c.W
	w.BulkString("last-delivered-id")
	WriteID(w, g.LastID)
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

func cmdXinfoHelp(c *command.Ctx) {
	command.HelpReply(c,
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

func cmdXinfoStream(c *command.Ctx) {
	e, ok := xinfoEntry(c)
	if !ok {
		return
	}
	s := e.Stream()
	switch n := len(c.Args); {
	case n == 3:
		streamInfo(c, s)
	case n != 4 && n != 6, !command.EqualFold(c.Args[3], "full"), n == 6 && !command.EqualFold(c.Args[4], "count"):
		errUnknownForm(c, "XINFO")
	case n == 4:
		streamInfoFull(c, s, defaultInfoCount)
	default:
		count, ok := c.Int(c.Args[5])
		if !ok {
			return
		}
		if count < 0 {
			count = defaultInfoCount
		}
		streamInfoFull(c, s, command.AsInt(count))
	}
}

// defaultInfoCount is the default of COUNT in XINFO STREAM FULL: how many entries of each kind it shows.
const defaultInfoCount = 10

// streamFacts writes the thirteen pairs that both forms of XINFO STREAM begin with.
func streamFacts(c *command.Ctx, s *streams.Stream) {
	w := c.W
	w.BulkString("length")
	w.Int(int64(s.Len()))
	w.BulkString("radix-tree-keys")
	w.Int(int64(s.NodeCount()))
	w.BulkString("radix-tree-nodes")
	w.Int(int64(s.NodeCount()) + 1) // the root and a node for each key, as in Redis while there are few
	w.BulkString("last-generated-id")
	WriteID(w, s.LastID())
	w.BulkString("max-deleted-entry-id")
	WriteID(w, s.MaxDeletedID())
	w.BulkString("entries-added")
	w.Int(s.EntriesAdded())
	w.BulkString("recorded-first-entry-id")
	WriteID(w, s.FirstID())
	how, counts := idempotence(c, s), s.ProducerCounts(c.Now())
	w.BulkString("idmp-duration")
	w.Int(int64(how.Duration))
	w.BulkString("idmp-maxsize")
	w.Int(int64(how.MaxSize))
	w.BulkString("pids-tracked")
	w.Int(int64(counts.Producers))
	w.BulkString("iids-tracked")
	w.Int(int64(counts.Tracked))
	w.BulkString("iids-added")
	w.Int(counts.Added)
	w.BulkString("iids-duplicates")
	w.Int(counts.Duplicates)
}

func streamInfo(c *command.Ctx, s *streams.Stream) {
	c.W.Map(16)
	streamFacts(c, s)
	c.W.BulkString("groups")
	c.W.Int(int64(len(s.Groups())))
	c.W.BulkString("first-entry")
	entryOrNull(c, s.First)
	c.W.BulkString("last-entry")
	entryOrNull(c, s.Last)
}

func entryOrNull(c *command.Ctx, get func() (streams.Entry, bool)) {
	if e, ok := get(); ok {
		writeStreamEntry(c.W, e)
	} else {
		c.W.Null()
	}
}

// streamInfoFull is XINFO STREAM FULL; a count of 0 shows everything.
func streamInfoFull(c *command.Ctx, s *streams.Stream, count int) {
	w := c.W
	w.Map(15)
	streamFacts(c, s)
	w.BulkString("entries")
	writeStreamRange(w, s, streams.MinID, streams.MaxID, false, count)
	w.BulkString("groups")
	w.Array(len(s.Groups()))
	for _, g := range s.Groups() {
		w.Map(8)
		w.BulkString("name")
		w.BulkString(g.Name)
		groupProgress(c, s, g)
		w.BulkString("pel-count")
		w.Int(int64(g.PendingLen()))
		w.BulkString("nacked-count")
		w.Int(int64(g.Released()))
		w.BulkString("pending")
		mark, n := w.Defer(), 0
		g.Pending(streams.MinID, streams.MaxID, func(nack *streams.NACK) bool {
			w.Array(4)
			WriteID(w, nack.ID)
			w.BulkString(nack.Owner())
			w.Int(nack.DeliveryTime())
			w.Int(nack.DeliveryCount)
			n++
			return n != count
		})
		w.EndArray(mark, n)
		w.BulkString("consumers")
		w.Array(len(g.Consumers()))
		for _, consumer := range g.Consumers() {
			consumerInfo(c, consumer, count)
		}
	}
}

// consumerInfo writes a consumer as XINFO STREAM FULL shows it.
func consumerInfo(c *command.Ctx, consumer *streams.Consumer, count int) {
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
		WriteID(w, nack.ID)
		w.Int(nack.DeliveryTime())
		w.Int(nack.DeliveryCount)
		n++
		return n != count
	})
	w.EndArray(mark, n)
}
