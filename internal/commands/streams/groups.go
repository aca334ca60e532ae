package streams

import (
	"fmt"
	"math"
	"slices"

	"github.com/atomredis/atomredis/engine"
	"github.com/atomredis/atomredis/engine/streams"
	"github.com/atomredis/atomredis/internal/command"
)

// This file has the commands on consumer groups except XREADGROUP: XGROUP, XACK, XPENDING, XCLAIM and XAUTOCLAIM.

var xgroupCommands = []*command.Command{
	{Name: "xgroup|create", Group: "stream", Since: "5.0.0", Arity: -5, Flags: command.Write | command.DenyOOM,
		ACL: command.CatStream, Keys: command.Keys("i2+r0/1/0[RW,INSERT]"),
		Summary: "Creates a consumer group", Syntax: "key groupname <id | $> [MKSTREAM] [ENTRIESREAD entries_read]",
		Complexity: "O(1)", Do: CreateGroup},
	{Name: "xgroup|createconsumer", Group: "stream", Since: "6.2.0", Arity: 5, Flags: command.Write | command.DenyOOM,
		ACL: command.CatStream, Keys: command.Keys("i2+r0/1/0[RW,INSERT]"),
		Summary: "Creates a consumer in a group",
		Syntax:  "key groupname consumername", Complexity: "O(1)", Do: cmdXgroupCreateconsumer},
	{Name: "xgroup|delconsumer", Group: "stream", Since: "5.0.0", Arity: 5, Flags: command.Write, ACL: command.CatStream,
		Keys:    command.Keys("i2+r0/1/0[RW,DELETE]"),
		Summary: "Deletes a consumer and its pending entries", Syntax: "key groupname consumername",
		Complexity: "O(1)", Do: cmdXgroupDelconsumer},
	{Name: "xgroup|destroy", Group: "stream", Since: "5.0.0", Arity: 4, Flags: command.Write, ACL: command.CatStream,
		Keys:    command.Keys("i2+r0/1/0[RW,DELETE]"),
		Summary: "Deletes a consumer group", Syntax: "key groupname",
		Complexity: "O(N), where N is the number of entries pending in the group", Do: cmdXgroupDestroy},
	{Name: "xgroup|help", Group: "stream", Since: "5.0.0", Arity: 2, Flags: command.Loading | command.Stale,
		ACL:     command.CatStream,
		Summary: "Lists the subcommands", Complexity: "O(1)", Do: cmdXgroupHelp},
	{Name: "xgroup|setid", Group: "stream", Since: "5.0.0", Arity: -5, Flags: command.Write, ACL: command.CatStream,
		Keys:    command.Keys("i2+r0/1/0[RW,UPDATE]"),
		Summary: "Sets the ID from which a group reads on", Syntax: "key groupname <id | $> [ENTRIESREAD entries_read]",
		Complexity: "O(1)", Do: cmdXgroupSetid},
}

// Errors of the commands on consumer groups.
const (
	errGroupNeedsKey command.Error = "ERR The XGROUP subcommand requires the key to exist. Note that for CREATE you may want to " +
		"use the MKSTREAM option to create an empty stream automatically."
	errGroupExists    command.Error = "BUSYGROUP Consumer Group name already exists"
	errEntriesRead    command.Error = "ERR value for ENTRIESREAD must be positive or -1"
	errClaimIdle      command.Error = "ERR Invalid min-idle-time argument for XCLAIM"
	errAutoClaimIdle  command.Error = "ERR Invalid min-idle-time argument for XAUTOCLAIM"
	errAutoClaimCount command.Error = "ERR COUNT must be > 0"
)

// maxAutoClaimCount is the largest COUNT of XAUTOCLAIM.
const maxAutoClaimCount = math.MaxInt64 / 16

// errUnknownForm writes the error for a sub-command with wrong arguments.
func errUnknownForm(c *command.Ctx, container string) {
	c.Err(command.Error(fmt.Sprintf("ERR unknown subcommand or wrong number of arguments for '%.128s'. Try %s HELP.",
		c.Args[1], container)))
}

// GroupChanged reports a change in a group for which Redis has no event, except that created says that it made a
// consumer.
func GroupChanged(c *command.Ctx, e *engine.Entry, created bool) {
	if created {
		c.G.ChangedBookkeeping(e, engine.EventStream, "xgroup-createconsumer")
		return
	}
	c.G.ChangedBookkeeping(e, 0, "")
}

// groupOf returns the group that arguments 1 and 2 name, in the stream of e, which may be nil. If there is none, it
// writes an error and ok is false.
func groupOf(c *command.Ctx, e *engine.Entry) (g *streams.Group, ok bool) {
	if e != nil {
		g = e.Entries().Stream().Group(c.Args[2])
	}
	if g == nil {
		c.Err(command.Error(fmt.Sprintf("NOGROUP No such key '%s' or consumer group '%s'", command.UntilNUL(c.Args[1]),
			command.UntilNUL(c.Args[2]))))
		return nil, false
	}
	return g, true
}

// xgroupEntry returns the stream that XGROUP changes; if there is none, it writes an error and ok is false.
func xgroupEntry(c *command.Ctx) (e *engine.Entry, ok bool) {
	if e, ok = c.WriteAs(c.Args[2], engine.Stream); ok && e == nil {
		c.Err(errGroupNeedsKey)
		ok = false
	}
	return e, ok
}

// xgroupGroup returns the group that XGROUP changes and its stream; if there is none, it writes an error and ok is
// false.
func xgroupGroup(c *command.Ctx) (e *engine.Entry, g *streams.Group, ok bool) {
	if e, ok = xgroupEntry(c); !ok {
		return nil, nil, false
	}
	if g = e.Entries().Stream().Group(c.Args[3]); g == nil {
		errNoGroup(c)
		return nil, nil, false
	}
	return e, g, true
}

// errNoGroup writes the error for a missing group; arguments 2 and 3 name it.
func errNoGroup(c *command.Ctx) {
	c.Err(command.Error(fmt.Sprintf("NOGROUP No such consumer group '%s' for key name '%s'", command.UntilNUL(c.Args[3]),
		command.UntilNUL(c.Args[2]))))
}

// isDollar reports whether an argument stands for the end of the stream.
func isDollar(arg []byte) bool { return len(arg) == 1 && arg[0] == '$' }

// entriesRead reads the argument of ENTRIESREAD; if it is wrong, it writes an error and ok is false.
func entriesRead(c *command.Ctx, arg []byte) (n int64, ok bool) {
	if n, ok = c.Int(arg); ok && n < 0 && n != streams.UnknownEntriesRead {
		c.Err(errEntriesRead)
		ok = false
	}
	return n, ok
}

// entriesReadOf limits a group's count of read entries, n, to the number of added entries. Counts from the journal
// stay unchanged, because XSETID may have lowered that number since.
func entriesReadOf(c *command.Ctx, e *engine.Entry, n int64) int64 {
	if c.Origin.In(command.Accepted) {
		return n
	}
	return min(n, e.Entries().Stream().EntriesAdded())
}

// CreateGroup is the handler of XGROUP CREATE.
func CreateGroup(c *command.Ctx) {
	read, makeStream := int64(streams.UnknownEntriesRead), false
	for o := c.Options(5); o.Next(); {
		switch {
		case o.Is("mkstream"):
			makeStream = true
		case o.Is("entriesread") && o.More():
			var ok bool
			if read, ok = entriesRead(c, o.Arg()); !ok {
				return
			}
		default:
			errUnknownForm(c, "XGROUP")
			return
		}
	}
	e, ok := c.WriteAs(c.Args[2], engine.Stream)
	if !ok {
		return
	}
	if e == nil && !makeStream {
		c.Err(errGroupNeedsKey)
		return
	}
	var start streams.ID
	if !isDollar(c.Args[4]) {
		if start, ok = ParseID(c, c.Args[4]); !ok {
			return
		}
	} else if e != nil {
		start = e.Entries().Stream().LastID()
	}
	changed := c.G.ChangedBookkeeping
	if e == nil {
		e = c.G.Create(c.DB, c.Args[2], streams.New())
		changed = c.G.Changed
	}
	if _, created := e.Entries().Stream().CreateGroup(c.Args[3], start, entriesReadOf(c, e, read)); !created {
		c.Err(errGroupExists)
		return
	}
	changed(e, engine.EventStream, "xgroup-create")
	c.W.OK()
}

func cmdXgroupCreateconsumer(c *command.Ctx) {
	e, g, ok := xgroupGroup(c)
	if !ok {
		return
	}
	if _, created := g.CreateConsumer(c.Args[4], c.Now()); !created {
		c.W.Int(0)
		return
	}
	c.G.ChangedBookkeeping(e, engine.EventStream, "xgroup-createconsumer")
	c.W.Int(1)
}

func cmdXgroupDelconsumer(c *command.Ctx) {
	e, g, ok := xgroupGroup(c)
	if !ok {
		return
	}
	pending, ok := g.DeleteConsumer(c.Args[4])
	if ok {
		c.G.ChangedBookkeeping(e, engine.EventStream, "xgroup-delconsumer")
	}
	c.W.Int(int64(pending))
}

func cmdXgroupDestroy(c *command.Ctx) {
	e, ok := xgroupEntry(c)
	if !ok {
		return
	}
	if !e.Entries().Stream().DestroyGroup(c.Args[3]) {
		c.W.Int(0)
		return
	}
	c.G.ChangedBookkeeping(e, engine.EventStream, "xgroup-destroy")
	c.G.Wake(e) // wakes clients that wait in the group
	c.W.Int(1)
}

func cmdXgroupHelp(c *command.Ctx) {
	command.HelpReply(c,
		"XGROUP <subcommand> [<arg> [value] [opt] ...]. Subcommands are:",
		"CREATE <key> <groupname> <id|$> [MKSTREAM] [ENTRIESREAD <n>]",
		"    Add a group that is to be given the entries after the ID, or only later ones ($).",
		"    MKSTREAM makes the stream if need be; ENTRIESREAD tells how many entries",
		"    were added up to the ID.",
		"CREATECONSUMER <key> <groupname> <consumer>",
		"    Add a consumer to the group.",
		"DELCONSUMER <key> <groupname> <consumer>",
		"    Drop a consumer, with whatever is pending for it.",
		"DESTROY <key> <groupname>",
		"    Drop the group, with its consumers.",
		"SETID <key> <groupname> <id|$> [ENTRIESREAD <n>]",
		"    Go on after another ID.",
		"HELP",
		"    Show this text.",
	)
}

func cmdXgroupSetid(c *command.Ctx) {
	read := int64(streams.UnknownEntriesRead)
	for o := c.Options(5); o.Next(); {
		if !o.Is("entriesread") || !o.More() {
			errUnknownForm(c, "XGROUP")
			return
		}
		var ok bool
		if read, ok = entriesRead(c, o.Arg()); !ok {
			return
		}
	}
	e, g, ok := xgroupGroup(c)
	if !ok {
		return
	}
	id := e.Entries().Stream().LastID()
	if !isDollar(c.Args[4]) {
		if id, ok = streams.ParseRangeID(c.Args[4], 0); !ok { // unlike CREATE it accepts - and +
			c.Err(errStreamID)
			return
		}
	}
	g.SetID(id, entriesReadOf(c, e, read))
	c.G.ChangedBookkeeping(e, engine.EventStream, "xgroup-setid")
	c.W.OK()
}

// Ack is the handler of XACK.
func Ack(c *command.Ctx) {
	e, ok := c.WriteAs(c.Args[1], engine.Stream)
	if !ok {
		return
	}
	var g *streams.Group
	if e != nil {
		g = e.Entries().Stream().Group(c.Args[2])
	}
	if g == nil {
		c.W.Int(0)
		return
	}
	var scratch [8]streams.ID
	ids, ok := streamIDs(c, scratch[:0], c.Args[3:])
	if !ok {
		return
	}
	acked := int64(0)
	for _, id := range ids {
		if g.Ack(id) {
			acked++
		}
	}
	if acked > 0 {
		c.G.ChangedBookkeeping(e, 0, "")
	}
	c.W.Int(acked)
}

func cmdXpending(c *command.Ctx) {
	if len(c.Args) == 3 {
		pendingSummary(c)
	} else {
		pendingList(c)
	}
}

// pendingSummary is XPENDING without a range.
func pendingSummary(c *command.Ctx) {
	e, ok := c.ReadAs(c.Args[1], engine.Stream)
	if !ok {
		return
	}
	g, ok := groupOf(c, e)
	if !ok {
		return
	}
	w := c.W
	w.Array(4)
	w.Int(int64(g.PendingLen()))
	first, last, ok := g.PendingBounds()
	if !ok {
		w.Null()
		w.Null()
		w.NullArray()
		return
	}
	WriteID(w, first)
	WriteID(w, last)
	mark, n := w.Defer(), 0
	for _, consumer := range g.Consumers() {
		if consumer.PendingLen() > 0 {
			w.Array(2)
			w.BulkString(consumer.Name)
			w.BulkInt(int64(consumer.PendingLen()))
			n++
		}
	}
	w.EndArray(mark, n)
}

// pendingList is XPENDING with a range.
func pendingList(c *command.Ctx) {
	if len(c.Args) < 6 || len(c.Args) > 9 {
		c.Err(command.ErrSyntax)
		return
	}
	at, minIdle := 3, int64(0)
	if command.EqualFold(c.Args[3], "idle") {
		var ok bool
		if minIdle, ok = c.Int(c.Args[4]); !ok {
			return
		}
		if len(c.Args) < 8 {
			c.Err(command.ErrSyntax)
			return
		}
		at = 5
	}
	count, ok := c.Int(c.Args[at+2])
	if !ok {
		return
	}
	start, end, ok := Interval(c, c.Args[at], c.Args[at+1])
	if !ok {
		return
	}
	e, ok := c.ReadAs(c.Args[1], engine.Stream)
	if !ok {
		return
	}
	g, ok := groupOf(c, e)
	if !ok {
		return
	}
	var consumer *streams.Consumer
	one := at+3 < len(c.Args)
	if one {
		consumer = g.Consumer(c.Args[at+3])
	}
	if count <= 0 || one && consumer == nil {
		c.W.Array(0)
		return
	}
	w, now := c.W, c.Now()
	mark, n := w.Defer(), int64(0)
	show := func(nack *streams.NACK) bool {
		idle := nack.Idle(now)
		if minIdle != 0 && idle < minIdle {
			return true
		}
		w.Array(4)
		WriteID(w, nack.ID)
		w.BulkString(nack.Owner())
		if nack.Consumer == nil {
			idle = -1
		} else {
			idle = max(idle, 0)
		}
		w.Int(idle)
		w.Int(nack.DeliveryCount)
		n++
		return n < count
	}
	if one {
		consumer.Pending(start, end, show)
	} else {
		g.Pending(start, end, show)
	}
	w.EndArray(mark, int(n))
}

// claimOptions are the options of XCLAIM.
type claimOptions struct {
	streams.ClaimOptions
	lastID streams.ID
}

// parse reads the options of XCLAIM from o; if they are wrong, it writes an error and ok is false.
func (opt *claimOptions) parse(c *command.Ctx, o command.OptionArgs) (ok bool) {
	delivered := int64(-1)
	opt.DeliveryCount = -1
	for o.Next() {
		ok = true
		switch {
		case o.Is("force"):
			opt.Force = true
		case o.Is("justid"):
			opt.JustID = true
		case o.Is("idle") && o.More():
			if delivered, ok = c.IntIn(o.Arg(), math.MinInt64, math.MaxInt64,
				"ERR Invalid IDLE option argument for XCLAIM"); ok {
				delivered = opt.Now - delivered
			}
		case o.Is("time") && o.More():
			delivered, ok = c.IntIn(o.Arg(), math.MinInt64, math.MaxInt64, "ERR Invalid TIME option argument for XCLAIM")
		case o.Is("retrycount") && o.More():
			opt.DeliveryCount, ok = c.IntIn(o.Arg(), math.MinInt64, math.MaxInt64,
				"ERR Invalid RETRYCOUNT option argument for XCLAIM")
		case o.Is("lastid") && o.More():
			opt.lastID, ok = ParseID(c, o.Arg())
		default:
			c.Err(command.Error(fmt.Sprintf("ERR Unrecognized XCLAIM option '%s'", command.UntilNUL(o.Word()))))
			return false
		}
		if !ok {
			return false
		}
	}
	opt.DeliveryTime = delivered
	if delivered < 0 || delivered > opt.Now {
		opt.DeliveryTime = opt.Now
	}
	return true
}

func cmdXclaim(c *command.Ctx) {
	e, ok := c.WriteAs(c.Args[1], engine.Stream)
	if !ok {
		return
	}
	g, ok := groupOf(c, e)
	if !ok {
		return
	}
	minIdle, ok := c.IntIn(c.Args[4], math.MinInt64, math.MaxInt64, errClaimIdle)
	if !ok {
		return
	}
	// The options begin at the first argument that is no ID.
	var scratch [8]streams.ID
	ids := scratch[:0]
	for _, arg := range c.Args[5:] {
		id, ok := streams.ParseID(arg, 0)
		if !ok {
			break
		}
		ids = append(ids, id)
	}
	opt := claimOptions{}
	opt.Now, opt.MinIdle = c.Now(), max(minIdle, 0)
	if !opt.parse(c, c.Options(5+len(ids))) {
		return
	}
	s := entriesNamed(e, ids).Stream()
	if g.LastID.Less(opt.lastID) {
		g.SetID(opt.lastID, g.EntriesRead)
	}

	consumer, created := g.CreateConsumer(c.Args[3], opt.Now)
	consumer.Seen(opt.Now)
	mark, n := c.W.Defer(), 0
	claimed := claims{lastID: opt.lastID}
	for _, id := range ids {
		nack, dropped := g.Claim(s, id, consumer, opt.ClaimOptions)
		if dropped {
			claimed.dropped = append(claimed.dropped, id)
		}
		if nack == nil {
			continue
		}
		n++
		claimed.add(nack)
		if opt.JustID {
			WriteID(c.W, id)
		} else if entry, ok := s.Get(id); ok {
			writeStreamEntry(c.W, entry)
		}
	}
	c.W.EndArray(mark, n)
	claimed.journal(c)
	GroupChanged(c, e, created)
}

// claims are the changes of an XCLAIM or XAUTOCLAIM.
type claims struct {
	runs    []claimRun
	dropped []streams.ID // pending entries that are no longer in the stream
	lastID  streams.ID   // the group's new last ID, if it was set
}

// claimRun is a run of entries with the same time and number of deliveries.
type claimRun struct {
	ids          []streams.ID
	time, counts int64
}

// add records that an entry was claimed.
func (cl *claims) add(n *streams.NACK) {
	if i := len(cl.runs) - 1; i >= 0 && cl.runs[i].time == n.DeliveryTime() && cl.runs[i].counts == n.DeliveryCount {
		cl.runs[i].ids = append(cl.runs[i].ids, n.ID)
		return
	}
	cl.runs = append(cl.runs, claimRun{[]streams.ID{n.ID}, n.DeliveryTime(), n.DeliveryCount})
}

// noClaim only records that the consumer was seen: its entry cannot exist.
var noClaim = claimRun{ids: []streams.ID{{}}}

// journal journals the claimed entries by their IDs, because others may be idle enough when the command is repeated,
// and the dropped ones.
func (cl *claims) journal(c *command.Ctx) {
	if !c.G.Journals() {
		return
	}
	runs := cl.runs
	if len(runs) == 0 {
		runs = []claimRun{noClaim}
	}
	for i, run := range runs {
		args := [][]byte{[]byte("XCLAIM"), c.Args[1], c.Args[2], c.Args[3], []byte("0")}
		args = appendIDs(args, run.ids)
		args = append(args, []byte("TIME"), number(run.time), []byte("RETRYCOUNT"), number(run.counts), []byte("FORCE"),
			[]byte("JUSTID"))
		if i == 0 && cl.lastID != (streams.ID{}) {
			args = append(args, []byte("LASTID"), cl.lastID.Append(nil))
		}
		c.Journal(args...)
	}
	if len(cl.dropped) > 0 {
		c.Journal(appendIDs([][]byte{[]byte("XACK"), c.Args[1], c.Args[2]}, cl.dropped)...)
	}
}

// appendIDs appends IDs as arguments.
func appendIDs(args [][]byte, ids []streams.ID) [][]byte {
	for _, id := range ids {
		args = append(args, id.Append(nil))
	}
	return args
}

func cmdXautoclaim(c *command.Ctx) {
	minIdle, ok := c.IntIn(c.Args[4], math.MinInt64, math.MaxInt64, errAutoClaimIdle)
	if !ok {
		return
	}
	start, ok := intervalStart(c, c.Args[5])
	if !ok {
		return
	}
	count, justID := int64(100), false
	for o := c.Options(6); o.Next(); {
		switch {
		case o.Is("count") && o.More():
			if count, ok = c.IntIn(o.Arg(), 1, maxAutoClaimCount, errAutoClaimCount); !ok {
				return
			}
		case o.Is("justid"):
			justID = true
		default:
			c.Err(command.ErrSyntax)
			return
		}
	}
	e, ok := c.WriteAs(c.Args[1], engine.Stream)
	if !ok {
		return
	}
	g, ok := groupOf(c, e)
	if !ok {
		return
	}

	s, w, now := e.Stream(), c.W, c.Now()
	consumer, created := g.CreateConsumer(c.Args[3], now)
	consumer.Seen(now)
	begin, n := len(w.Buf), 0
	var claimed claims
	next, dropped := g.AutoClaim(s, consumer, start, max(minIdle, 0), now, command.AsInt(count), justID,
		func(nack *streams.NACK, e streams.Entry) {
			n++
			claimed.add(nack)
			if justID {
				WriteID(w, nack.ID)
			} else {
				writeStreamEntry(w, e)
			}
		})
	// The beginning of the reply is known only now.
	end := len(w.Buf)
	w.Array(3)
	WriteID(w, next)
	w.Array(n)
	head := slices.Clone(w.Buf[end:])
	w.Buf = slices.Insert(w.Buf[:end], begin, head...)
	w.Array(len(dropped))
	for _, id := range dropped {
		WriteID(w, id)
	}
	claimed.dropped = dropped
	claimed.journal(c)
	GroupChanged(c, e, created)
}
