// Package streams has the commands on streams. This file adds, lists, removes and trims entries; read.go has XREAD
// and XREADGROUP, groups.go consumer groups, info.go XINFO.
package streams

import (
	"bytes"
	"math"
	"strconv"
	"sync"

	"github.com/atomredis/atomredis/engine"
	"github.com/atomredis/atomredis/engine/streams"
	"github.com/atomredis/atomredis/internal/command"
	"github.com/atomredis/atomredis/resp"
)

func init() { command.Register(streamCommands) }

var streamCommands = []*command.Command{
	{Name: "xack", Group: "stream", Since: "5.0.0", Arity: -4, Flags: command.Write | command.Fast, ACL: command.CatStream,
		Keys:    command.Keys("i1+r0/1/0[RW,UPDATE]"),
		Summary: "Acknowledges pending entries", Syntax: "key group id [id ...]",
		Complexity: "O(1) for each entry", Do: Ack},
	{Name: "xadd", Group: "stream", Since: "5.0.0", Arity: -5, Flags: command.Write | command.DenyOOM | command.Fast,
		ACL: command.CatStream, Keys: command.Keys("i1+r0/1/0[RW,UPDATE]"),
		Summary: "Appends an entry to a stream",
		Syntax: "key [NOMKSTREAM] [KEEPREF | DELREF | ACKED] [IDMPAUTO pid | IDMP pid iid] " +
			"[<MAXLEN | MINID> [= | ~] threshold [LIMIT count]] <* | id> field value [field value ...]",
		Complexity: "O(1) to add, O(N) to trim, where N is the number of entries removed", Do: Add},
	{Name: "xautoclaim", Group: "stream", Since: "6.2.0", Arity: -6, Flags: command.Write | command.Fast,
		ACL:        command.CatStream,
		Keys:       command.Keys("i1+r0/1/0[RW,DELETE]"),
		Summary:    "Transfers entries that were pending for long to another consumer",
		Syntax:     "key group consumer min-idle-time start [COUNT count] [JUSTID]",
		Complexity: "O(1) if COUNT is small", Do: cmdXautoclaim},
	{Name: "xclaim", Group: "stream", Since: "5.0.0", Arity: -6, Flags: command.Write | command.Fast,
		ACL:     command.CatStream,
		Keys:    command.Keys("i1+r0/1/0[RW,UPDATE]"),
		Summary: "Transfers pending entries to another consumer",
		Syntax: "key group consumer min-idle-time id [id ...] [IDLE ms] [TIME unix-time-milliseconds] [RETRYCOUNT count] " +
			"[FORCE] [JUSTID] [LASTID id]",
		Complexity: "O(log N), where N is the number of entries pending in the group", Do: cmdXclaim},
	{Name: "xdel", Group: "stream", Since: "5.0.0", Arity: -3, Flags: command.Write | command.Fast, ACL: command.CatStream,
		Keys:    command.Keys("i1+r0/1/0[RW,DELETE]"),
		Summary: "Deletes entries", Syntax: "key id [id ...]", Complexity: "O(1) for each entry", Do: cmdXdel},
	{Name: "xgroup", Group: "stream", Since: "5.0.0", Arity: -2,
		Summary: "Manages consumer groups", Complexity: "Depends on the subcommand", Subs: xgroupCommands},
	{Name: "xinfo", Group: "stream", Since: "5.0.0", Arity: -2,
		Summary: "Describes streams and consumer groups", Complexity: "Depends on the subcommand", Subs: xinfoCommands},
	{Name: "xlen", Group: "stream", Since: "5.0.0", Arity: 2, Flags: command.ReadOnly | command.Fast,
		ACL:     command.CatStream,
		Keys:    command.Keys("i1+r0/1/0[RO]"),
		Summary: "Counts the entries of a stream", Syntax: "key", Complexity: "O(1)", Do: cmdXlen},
	{Name: "xpending", Group: "stream", Since: "5.0.0", Arity: -3, Flags: command.ReadOnly, ACL: command.CatStream,
		Keys:       command.Keys("i1+r0/1/0[RO,ACCESS]"),
		Summary:    "Counts or lists the pending entries of a group",
		Syntax:     "key group [[IDLE min-idle-time] start end count [consumer]]",
		Complexity: "O(N+M), where N is the number of entries looked at and M the number of consumers in the summary",
		Do:         cmdXpending},
	{Name: "xrange", Group: "stream", Since: "5.0.0", Arity: -4, Flags: command.ReadOnly, ACL: command.CatStream,
		Keys:    command.Keys("i1+r0/1/0[RO,ACCESS]"),
		Summary: "Returns the entries in a range of IDs", Syntax: "key start end [COUNT count]",
		Complexity: "O(N), where N is the number of entries returned", Do: cmdXrange},
	{Name: "xread", Group: "stream", Since: "5.0.0", Arity: -4, Flags: command.Blocking | command.ReadOnly,
		ACL:     command.CatStream,
		Keys:    command.Keys("kw:STREAMS@1+r-1/1/2[RO,ACCESS]"),
		Summary: "Returns entries after given IDs of streams, and can wait for new ones",
		Syntax: "[COUNT count] [MAXCOUNT maxcount] [MAXSIZE maxsize] [BLOCK milliseconds] " +
			"STREAMS key [key ...] id [id ...]",
		Complexity: "O(N) for each stream, where N is the number of entries returned", Do: cmdXread},
	{Name: "xreadgroup", Group: "stream", Since: "5.0.0", Arity: -7, Flags: command.Blocking | command.Write,
		ACL: command.CatStream, Keys: command.Keys("kw:STREAMS@4+r-1/1/2[RO,ACCESS]"),
		Summary: "Delivers entries of streams to a consumer of a group, and can wait for new ones",
		Syntax: "GROUP group consumer [COUNT count] [MAXCOUNT maxcount] [MAXSIZE maxsize] [BLOCK milliseconds] " +
			"[CLAIM min-idle-time] [NOACK] STREAMS key [key ...] id [id ...]",
		Complexity: "O(M) for each stream, where M is the number of entries returned", Do: cmdXreadgroup},
	{Name: "xrevrange", Group: "stream", Since: "5.0.0", Arity: -4, Flags: command.ReadOnly, ACL: command.CatStream,
		Keys:    command.Keys("i1+r0/1/0[RO,ACCESS]"),
		Summary: "Returns the entries in a range of IDs, last first", Syntax: "key end start [COUNT count]",
		Complexity: "O(N), where N is the number of entries returned", Do: cmdXrevrange},
	{Name: "xsetid", Group: "stream", Since: "5.0.0", Arity: -3, Flags: command.Write | command.DenyOOM | command.Fast,
		ACL: command.CatStream, Keys: command.Keys("i1+r0/1/0[RW,UPDATE]"),
		Summary:    "Sets the last ID of a stream",
		Syntax:     "key last-id [ENTRIESADDED entries_added] [MAXDELETEDID max_deleted_entry_id]",
		Complexity: "O(1)", Do: cmdXsetid},
	{Name: "xtrim", Group: "stream", Since: "5.0.0", Arity: -4, Flags: command.Write, ACL: command.CatStream,
		Keys:       command.Keys("i1+r0/1/0[RW,DELETE]"),
		Summary:    "Trims a stream to its newest entries",
		Syntax:     "key <MAXLEN | MINID> [= | ~] threshold [LIMIT count] [KEEPREF | DELREF | ACKED]",
		Complexity: "O(N), where N is the number of entries removed", Do: cmdXtrim},
}

// Errors of commands on streams.
const (
	errStreamID        command.Error = "ERR Invalid stream ID specified as stream command argument"
	errZeroID          command.Error = "ERR The ID specified in XADD must be greater than 0-0"
	errNoIDsLeft       command.Error = "ERR The stream has exhausted the last possible ID, unable to add more items"
	errStartOfInterval command.Error = "ERR invalid start ID for the interval"
	errEndOfInterval   command.Error = "ERR invalid end ID for the interval"
	errTwoTrims        command.Error = "ERR syntax error, MAXLEN and MINID options at the same time are not compatible"
	errMaxLen          command.Error = "ERR The MAXLEN argument must be >= 0."
	errTrimLimit       command.Error = "ERR The LIMIT argument must be >= 0."
	errLimitAlone      command.Error = "ERR syntax error, LIMIT cannot be used without specifying a trimming strategy"
	errLimitExact      command.Error = "ERR syntax error, LIMIT cannot be used without the special ~ option"
	errNoTrim          command.Error = "ERR syntax error, XTRIM must be called with a trimming strategy"
	errEntriesAdded    command.Error = "ERR entries_added must be positive"

	errSetIDBelowCurrent command.Error = "ERR The ID specified in XSETID is smaller than current max_deleted_entry_id"
)

// ParseID reads an ID whose second part is optional, 0 by default; if it is invalid, it writes an error and ok is
// false.
func ParseID(c *command.Ctx, arg []byte) (id streams.ID, ok bool) {
	if id, ok = streams.ParseID(arg, 0); !ok {
		c.Err(errStreamID)
	}
	return id, ok
}

// streamIDs is ParseID for several IDs, which it appends to dst.
func streamIDs(c *command.Ctx, dst []streams.ID, args [][]byte) (ids []streams.ID, ok bool) {
	for _, arg := range args {
		id, ok := ParseID(c, arg)
		if !ok {
			return nil, false
		}
		dst = append(dst, id)
	}
	return dst, true
}

// Interval reads the two ends of a range of IDs; '(' excludes the end. If one is wrong, it writes an error and ok is
// false.
func Interval(c *command.Ctx, first, last []byte) (start, end streams.ID, ok bool) {
	if start, ok = intervalStart(c, first); !ok {
		return start, end, false
	}
	end, exclusive, ok := intervalEnd(c, last, math.MaxUint64)
	if ok && exclusive {
		if end, ok = end.Prev(); !ok {
			c.Err(errEndOfInterval)
		}
	}
	return start, end, ok
}

// intervalStart reads the lower end of a range of IDs.
func intervalStart(c *command.Ctx, arg []byte) (start streams.ID, ok bool) {
	start, exclusive, ok := intervalEnd(c, arg, 0)
	if ok && exclusive {
		if start, ok = start.Next(); !ok {
			c.Err(errStartOfInterval)
		}
	}
	return start, ok
}

// intervalEnd reads an end of a range of IDs. It refuses "(-" and "(+".
func intervalEnd(c *command.Ctx, arg []byte, defaultSeq uint64) (id streams.ID, exclusive, ok bool) {
	if exclusive = len(arg) > 1 && arg[0] == '('; exclusive {
		id, ok = streams.ParseID(arg[1:], defaultSeq)
	} else {
		id, ok = streams.ParseRangeID(arg, defaultSeq)
	}
	if !ok {
		c.Err(errStreamID)
	}
	return id, exclusive, ok
}

// WriteID writes an ID.
func WriteID(w *resp.Writer, id streams.ID) {
	var scratch [41]byte
	w.Bulk(id.Append(scratch[:0]))
}

// writeStreamEntry writes an entry: its ID, and its fields and values in one array.
func writeStreamEntry(w *resp.Writer, e streams.Entry) {
	w.Array(2)
	WriteID(w, e.ID)
	writeStreamFields(w, e)
}

// writeStreamFields writes the fields and values of an entry in one array.
func writeStreamFields(w *resp.Writer, e streams.Entry) {
	w.Array(2 * e.Len())
	for field, value := range e.Fields() {
		w.Bulk(field)
		w.Bulk(value)
	}
}

// writeStreamRange writes an array of the entries from start to end, at most count of them if count is positive.
func writeStreamRange(w *resp.Writer, s *streams.Stream, start, end streams.ID, reverse bool, count int) {
	mark, n := w.Defer(), 0
	s.Range(start, end, reverse, func(e streams.Entry) bool {
		writeStreamEntry(w, e)
		n++
		return n != count
	})
	w.EndArray(mark, n)
}

// trimming has the trimming options of XADD and XTRIM.
type trimming struct {
	by      trimStrategy
	maxLen  int64
	minID   streams.ID
	limited bool // LIMIT was given
	limit   int64
	how     streams.Trim
	chosen  bool // the treatment of references was given
}

type trimStrategy uint8

const (
	trimNothing trimStrategy = iota
	trimByLength
	trimByMinID
)

// option takes one of the trimming options, if o is at one. If its argument is wrong, it writes an error and ok is
// false.
func (t *trimming) option(c *command.Ctx, o *command.OptionArgs) (taken, ok bool) {
	if refs, is := referencesOption(o); is && !t.chosen {
		t.how.References, t.chosen = refs, true
		return true, true
	}
	if !o.More() {
		return false, true
	}
	switch {
	case o.Is("maxlen"):
		arg, ok := t.threshold(c, o, trimByLength)
		if !ok {
			return true, false
		}
		if t.maxLen, ok = c.Int(arg); ok && t.maxLen < 0 {
			c.Err(errMaxLen)
			ok = false
		}
		return true, ok
	case o.Is("minid"):
		arg, ok := t.threshold(c, o, trimByMinID)
		if ok {
			t.minID, ok = ParseID(c, arg)
		}
		return true, ok
	case o.Is("limit"):
		t.limited = true
		if t.limit, ok = c.Int(o.Arg()); ok && t.limit < 0 {
			c.Err(errTrimLimit)
			ok = false
		}
		return true, ok
	}
	return false, true
}

// threshold takes the optional = or ~ after the strategy, and the argument.
func (t *trimming) threshold(c *command.Ctx, o *command.OptionArgs, by trimStrategy) (arg []byte, ok bool) {
	if t.by != trimNothing {
		c.Err(errTwoTrims)
		return nil, false
	}
	t.by = by
	arg = o.Arg()
	if o.More() && len(arg) == 1 && (arg[0] == '~' || arg[0] == '=') {
		t.how.Approx = arg[0] == '~'
		arg = o.Arg()
	}
	return arg, true
}

// check reports whether the options fit together, and writes an error if they do not. XTRIM requires a strategy.
func (t *trimming) check(c *command.Ctx, required bool) bool {
	switch {
	case t.limit > 0 && t.by == trimNothing:
		c.Err(errLimitAlone)
	case required && t.by == trimNothing:
		c.Err(errNoTrim)
	case t.limited && !t.how.Approx:
		c.Err(errLimitExact)
	default:
		return true
	}
	return false
}

// apply trims s and returns how many entries it removed.
func (t *trimming) apply(s *streams.Stream, lim streams.Limits) int {
	switch {
	case t.limited:
		t.how.Limit = command.AsInt(t.limit)
	case t.how.Approx:
		t.how.Limit = lim.DefaultTrimLimit()
	}
	switch t.by {
	case trimByLength:
		return s.TrimByLength(command.AsInt(t.maxLen), t.how)
	case trimByMinID:
		return s.TrimByMinID(t.minID, t.how)
	}
	return 0
}

// needs returns the entry of e with its last entry and everything that apply needs in memory, for a stream that
// first gets more new entries.
func (t *trimming) needs(e *engine.Entry, more int) *engine.Entry {
	switch {
	case !e.InParts():
		return e
	case t.by == trimNothing:
		return e.Entries(lastEntry)
	case t.how.References != streams.KeepReferences:
		return e
	case t.by == trimByMinID:
		return e.Entries(lastEntry, streams.Stretch{To: t.minID})
	}
	if n := e.Count() + more - command.AsInt(t.maxLen); n > 0 {
		return e.Entries(lastEntry, streams.Stretch{To: streams.MaxID, N: n})
	}
	return e.Entries(lastEntry)
}

// firstEntry and lastEntry are the needs for the ends of a stream.
var (
	firstEntry = streams.Stretch{To: streams.MaxID, N: 1}
	lastEntry  = streams.Stretch{To: streams.MaxID, N: 1, Reverse: true}
)

// Words of journalled XADD and XTRIM.
var (
	XaddWord   = []byte("XADD")
	MaxLenWord = []byte("MAXLEN")
	exactWord  = []byte("=")
	ApproxWord = []byte("~")
	AnyIDWord  = []byte("*")
)

// referenceWords are the words for the treatment of references, in lower case.
var referenceWords = [...]string{streams.KeepReferences: "keepref", streams.DeleteReferences: "delref",
	streams.OnlyAcknowledged: "acked"}

// referencesOption returns the treatment of references, if o is at a word for one.
func referencesOption(o *command.OptionArgs) (refs streams.References, is bool) {
	for i, word := range referenceWords {
		if o.Is(word) {
			return streams.References(i), true
		}
	}
	return 0, false
}

// appendReferences appends the word for the treatment of references, unless they are kept, the default.
func appendReferences(args [][]byte, refs streams.References) [][]byte {
	if refs == streams.KeepReferences {
		return args
	}
	return append(args, bytes.ToUpper([]byte(referenceWords[refs])))
}

// newEntry has the arguments of XADD.
type newEntry struct {
	id      streams.ID
	auto    bool // the server chooses the ID
	autoSeq bool // the server chooses its second part
	at      int  // index of the ID
	fields  [][]byte
	trim    trimming
	noMake  bool // NOMKSTREAM: only to an existing stream
	as      idempotentID
}

// parse reads the arguments of XADD; if they are wrong, it writes an error and ok is false.
func (n *newEntry) parse(c *command.Ctx) (ok bool) {
	o := c.Options(2)
	for o.Next() {
		if n.auto = len(o.Word()) == 1 && o.Word()[0] == '*'; n.auto {
			break
		}
		if taken, ok := n.trim.option(c, &o); !ok {
			return false
		} else if taken {
			continue
		}
		if o.Is("nomkstream") {
			n.noMake = true
			continue
		}
		if taken, ok := n.as.option(c, &o); !ok {
			return false
		} else if taken {
			continue
		}
		if n.id, n.autoSeq, ok = streams.ParseNewID(o.Word()); !ok {
			c.Err(errStreamID)
			return false
		}
		if n.as.producer != nil && (n.autoSeq || !c.Origin.In(command.Accepted)) {
			c.Err(errIdempotentID)
			return false
		}
		break
	}
	n.at = len(c.Args) - 1 - o.Left()
	n.fields = o.Rest()
	switch {
	case !n.trim.check(c, false):
	case len(n.fields) == 0 || len(n.fields)%2 != 0:
		c.Err(command.WrongArity(c.Cmd))
	case !n.auto && !n.autoSeq && n.id.IsZero():
		c.Err(errZeroID)
	default:
		return true
	}
	return false
}

// resolve completes the ID; if no ID is left, or the given one is too small, it writes an error and ok is false.
func (n *newEntry) resolve(c *command.Ctx, s *streams.Stream) (id streams.ID, ok bool) {
	switch {
	case s.LastID() == streams.MaxID:
		c.Err(errNoIDsLeft)
		return id, false
	case n.auto:
		return s.NextID(uint64(c.Now()))
	case !n.autoSeq:
		return n.id, true
	}
	if id, ok = s.NextSeq(n.id.Ms); !ok {
		c.Err(command.Error(streams.ErrIDTooSmall.Error()))
	}
	return id, ok
}

// Add is the handler of XADD.
func Add(c *command.Ctx) {
	var n newEntry
	if !n.parse(c) {
		return
	}
	key := c.Args[1]
	e, ok := c.WriteAs(key, engine.Stream)
	if !ok {
		return
	}
	if e == nil && n.noMake {
		c.W.Null()
		return
	}
	var s *streams.Stream
	if e != nil {
		if n.as.producer == nil {
			s = n.trim.needs(e, 1).Stream()
		} else {
			s = e.Stream()
			if entry, ok := n.produced(c, s); ok {
				duplicate(c, e, n.as, entry)
				WriteID(c.W, entry)
				return
			}
		}
	} else {
		s = streams.New()
		if n.as.byContent {
			n.as.iid = contentID(n.fields)
		}
	}
	id, ok := n.resolve(c, s)
	if !ok {
		return
	}
	lim := c.Host.StreamLimits()
	if err := s.Append(id, n.fields, lim); err != nil {
		c.Err(command.Error(err.Error()))
		return
	}
	if e == nil {
		e = c.G.Create(c.DB, key, s)
	}
	trimmed := n.trim.apply(s, lim)
	c.G.Changed(e, engine.EventStream, "xadd")
	c.G.Wake(e)
	if trimmed > 0 {
		c.G.Notify(engine.EventStream, "xtrim", c.DB, e.Key())
	}
	switch {
	case n.trim.how.Approx || n.as.producer != nil:
		journalXadd(c, id, n.fields, trimmed > 0, s.Len(), n.trim.how.References)
	case n.auto || n.autoSeq:
		journalID(c, n.at, id)
	}
	if n.as.producer != nil {
		produce(c, s, n.as, id)
	}
	WriteID(c.W, id)
}

// journalID journals an XADD as it was sent, except that argument at becomes the ID that the server chose.
func journalID(c *command.Ctx, at int, id streams.ID) {
	if !c.G.Journals() {
		return
	}
	l := argLists.Get().(*argList)
	sent := c.Args[at]
	c.Args[at] = id.Append(l.text[:0])
	c.Journal(c.Args...)
	c.Args[at] = sent // monitors and the slow log show what was sent
	argLists.Put(l)
}

// journalXadd journals an XADD with its ID and the exact result of trimming: the length, or no trimming. Approximate
// trimming depends on the blocks of the stream, so it cannot be repeated.
func journalXadd(c *command.Ctx, id streams.ID, fields [][]byte, trimmed bool, length int, refs streams.References) {
	if !c.G.Journals() {
		return
	}
	l := argLists.Get().(*argList)
	text := id.Append(l.text[:0])
	idEnd := len(text)
	args := append(l.room[:0], XaddWord, c.Args[1])
	if trimmed {
		text = strconv.AppendInt(text, int64(length), 10)
		args = appendReferences(append(args, MaxLenWord, exactWord, text[idEnd:]), refs)
	}
	args = append(args, text[:idEnd])
	args = append(args, fields...)
	c.Journal(args...)
	clear(l.room[:])
	argLists.Put(l)
}

// argList is reused memory for the arguments of a journalled XADD, if they are few.
type argList struct {
	room [32][]byte
	text [64]byte // of an ID and a length
}

// argLists save allocations in the most frequent command on streams.
var argLists = sync.Pool{New: func() any { return new(argList) }}

func cmdXdel(c *command.Ctx) {
	e, ok := c.WriteAs(c.Args[1], engine.Stream)
	if !ok {
		return
	}
	if e == nil {
		c.W.Int(0)
		return
	}
	var scratch [8]streams.ID
	ids, ok := streamIDs(c, scratch[:0], c.Args[2:])
	if !ok {
		return
	}
	removed, s := int64(0), entriesNamed(e, ids).Stream()
	for _, id := range ids {
		if s.Delete(id) {
			removed++
		}
	}
	if removed > 0 {
		c.G.Changed(e, engine.EventStream, "xdel")
	}
	c.W.Int(removed)
}

// entriesNamed returns an entry for reading and removing entries of the stream of e.
func entriesNamed(e *engine.Entry, ids []streams.ID) *engine.Entry {
	if !e.InParts() || len(ids) > fewNamed {
		return e
	}
	need := make([]streams.Stretch, 0, fewNamed)
	for _, id := range ids {
		need = append(need, streams.Stretch{From: id, To: id})
	}
	return e.Entries(need...)
}

// fewNamed is the number of named entries up to which only these are read, and not the whole stream.
const fewNamed = 64

func cmdXlen(c *command.Ctx) { c.ReplyCount(c.Args[1], engine.Stream) }

func cmdXrange(c *command.Ctx)    { xrange(c, c.Args[2], c.Args[3], false) }
func cmdXrevrange(c *command.Ctx) { xrange(c, c.Args[3], c.Args[2], true) }

// xrange is XRANGE and XREVRANGE.
func xrange(c *command.Ctx, first, last []byte, reverse bool) {
	start, end, ok := Interval(c, first, last)
	if !ok {
		return
	}
	count := int64(-1)
	for o := c.Options(4); o.Next(); {
		if !o.Is("count") || !o.More() {
			c.Err(command.ErrSyntax)
			return
		}
		if count, ok = c.Int(o.Arg()); !ok {
			return
		}
		count = max(count, 0)
	}
	e, ok := c.ReadAs(c.Args[1], engine.Stream)
	switch {
	case !ok:
	case e == nil:
		c.W.Array(0)
	case count == 0:
		c.W.NullArray()
	default:
		some := e.Entries(streams.Stretch{From: start, To: end, N: command.AsInt(max(count, 0)), Reverse: reverse})
		s := some.Stream()
		// Other ranges have an unknown number of entries.
		if some == e && !s.FirstID().Less(start) && !end.Less(s.LastID()) {
			n := s.Len()
			if count >= 0 {
				n = min(n, command.AsInt(count))
			}
			c.Long(n, s.Len())
		}
		writeStreamRange(c.W, s, start, end, reverse, command.AsInt(count))
	}
}

func cmdXsetid(c *command.Ctx) {
	id, ok := ParseID(c, c.Args[2])
	if !ok {
		return
	}
	added, maxDeleted := int64(-1), streams.ID{}
	for o := c.Options(3); o.Next(); {
		switch {
		case o.Is("entriesadded") && o.More():
			if added, ok = c.Int(o.Arg()); ok && added < 0 {
				c.Err(errEntriesAdded)
				ok = false
			}
		case o.Is("maxdeletedid") && o.More():
			if maxDeleted, ok = ParseID(c, o.Arg()); ok && id.Less(maxDeleted) {
				c.Err(command.Error(streams.ErrSetIDBelowDeleted.Error()))
				ok = false
			}
		default:
			c.Err(command.ErrSyntax)
			return
		}
		if !ok {
			return
		}
	}
	e, ok := c.WriteAs(c.Args[1], engine.Stream)
	if !ok {
		return
	}
	if e == nil {
		c.Err(command.ErrNoKey)
		return
	}
	s := e.Entries(lastEntry).Stream()
	if id.Less(s.MaxDeletedID()) && !c.Origin.In(command.Accepted) {
		c.Err(errSetIDBelowCurrent)
		return
	}
	if err := s.SetID(id, added, maxDeleted); err != nil {
		c.Err(command.Error(err.Error()))
		return
	}
	c.G.ChangedBookkeeping(e, engine.EventStream, "xsetid")
	c.W.OK()
}

func cmdXtrim(c *command.Ctx) {
	var t trimming
	for o := c.Options(2); o.Next(); {
		taken, ok := t.option(c, &o)
		if !ok {
			return
		}
		if !taken {
			c.Err(command.ErrSyntax)
			return
		}
	}
	if !t.check(c, true) {
		return
	}
	e, ok := c.WriteAs(c.Args[1], engine.Stream)
	if !ok {
		return
	}
	if e == nil {
		c.W.Int(0)
		return
	}
	s := t.needs(e, 0).Stream()
	removed := t.apply(s, c.Host.StreamLimits())
	if removed > 0 {
		c.G.Changed(e, engine.EventStream, "xtrim")
	}
	if removed > 0 && t.how.Approx { // as with XADD
		length := strconv.AppendInt(nil, int64(s.Len()), 10)
		c.Journal(appendReferences([][]byte{[]byte("XTRIM"), c.Args[1], MaxLenWord, exactWord, length}, t.how.References)...)
	}
	c.W.Int(int64(removed))
}
