package streams

import (
	"bytes"
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/atomredis/atomredis/engine"
	"github.com/atomredis/atomredis/engine/streams"
	"github.com/atomredis/atomredis/internal/command"
	"github.com/atomredis/atomredis/resp"
)

// This file has XREAD and XREADGROUP, which return new entries of streams, or wait for them.

// Errors of XREAD and XREADGROUP.
const (
	errUnbalanced      command.Error = "ERR Unbalanced 'xread' list of streams: for each stream key an ID, '+', or '$' must be specified."
	errUnbalancedGroup command.Error = "ERR Unbalanced 'xreadgroup' list of streams: for each stream key an ID or '>' must be specified."
	errGroupMissing    command.Error = "ERR Missing GROUP option for XREADGROUP"
	errGroupOption     command.Error = "ERR The GROUP option is only supported by XREADGROUP. You called XREAD instead."
	errNoAckOption     command.Error = "ERR The NOACK option is only supported by XREADGROUP. You called XREAD instead."
	errDollarInGroup   command.Error = "ERR The $ ID is meaningless in the context of XREADGROUP: you want to read the history " +
		"of this consumer by specifying a proper ID, or use the > ID to get new messages. The $ ID would just return an empty result set."
	errPlusInGroup command.Error = "ERR The + ID is meaningless in the context of XREADGROUP: you want to read the history " +
		"of this consumer by specifying a proper ID, or use the > ID to get new messages. The + ID would just return an empty result set."
	errNewNoGroup   command.Error = "ERR The > ID can be specified only when calling XREADGROUP using the GROUP <group> <consumer> option."
	errClaimOption  command.Error = "ERR The CLAIM option is only supported by XREADGROUP. You called XREAD instead."
	errReadIdle     command.Error = "ERR min-idle-time is not an integer or out of range"
	errReadIdleSign command.Error = "ERR min-idle-time must be a positive integer"
	errReadCount    command.Error = "ERR MAXCOUNT must be a positive integer"
	errReadSize     command.Error = "ERR MAXSIZE must be a positive integer"
	errReadCounts   command.Error = "ERR MAXCOUNT must be greater than or equal to COUNT"
)

// streamRead has the arguments of XREAD or XREADGROUP. It holds no views: it refers to arguments by index.
type streamRead struct {
	group   int   // index of the group's name, which the consumer's follows; 0 for XREAD
	keys, n int   // index and number of the keys; the IDs follow
	count   int   // limit of entries for each stream, if positive
	all     int   // limit of entries of all streams together, if positive
	size    int   // limit of the reply in bytes, if positive; the first entry may be larger
	wait    bool  // BLOCK was given
	timeout int64 // in ms
	noAck   bool
	claim   bool  // CLAIM was given: a read of new entries also claims pending ones
	minIdle int64 // that have been idle for so many ms
}

// forms reports whether a delivery to a group is journalled by its result and not as the command, because idle times
// or the length of the reply may differ when it is repeated.
func (r streamRead) forms() bool { return r.claim || r.all > 0 || r.size > 0 }

// allowance is the rest of what MAXCOUNT and MAXSIZE allow for all streams.
type allowance struct {
	entries int // with MAXCOUNT
	end     int // of the reply, with MAXSIZE
	given   int // entries
}

// allowance returns the allowance at the beginning of a read.
func (r streamRead) allowance(w *resp.Writer) allowance {
	return allowance{entries: r.all, end: len(w.Buf) + r.size}
}

// spent reports whether the allowance is used up.
func (r streamRead) spent(c *command.Ctx, a *allowance) bool {
	return r.all > 0 && a.given >= r.all || r.size > 0 && a.given > 0 && len(c.W.Buf) >= a.end
}

// countOf returns the limit of entries for the next stream, 0 for no limit.
func (r streamRead) countOf(a *allowance) int {
	if r.all > 0 && (r.count == 0 || r.all-a.given < r.count) {
		return r.all - a.given
	}
	return r.count
}

// wrote records an entry that was written from start on. If it exceeds MAXSIZE, wrote removes it and returns false.
func (r streamRead) wrote(w *resp.Writer, a *allowance, start int) bool {
	if r.size > 0 && a.given > 0 && len(w.Buf) > a.end {
		w.Buf = w.Buf[:start]
		return false
	}
	a.given++
	return true
}

// streamPosition is the place to read from in one stream.
type streamPosition struct {
	e     *engine.Entry // nil if there is no stream
	group *streams.Group
	after streams.ID // MaxID in a group: the group's new entries
}

func cmdXread(c *command.Ctx)      { xread(c, false) }
func cmdXreadgroup(c *command.Ctx) { xread(c, true) }

// xread is XREAD and XREADGROUP.
func xread(c *command.Ctx, grouped bool) {
	r, ok := parseStreamRead(c, grouped)
	if !ok {
		return
	}
	var scratch [4]streamPosition
	from, ok := r.positions(c, scratch[:0])
	if !ok {
		return
	}
	r.noteConsumers(c, from)
	a := r.allowance(c.W)
	mark, n := c.W.Defer(), 0
	for i, p := range from {
		if !r.spent(c, &a) && r.ready(c, p, &a) && r.deliver(c, c.Args[r.keys+i], p, &a) {
			n++
		}
	}
	switch {
	case n > 0:
		endStreams(c, mark, n)
	case r.wait:
		r.block(c, from)
	default:
		c.W.NullArray()
	}
}

// parseStreamRead reads the arguments; if they are wrong, it writes an error and ok is false.
func parseStreamRead(c *command.Ctx, grouped bool) (r streamRead, ok bool) {
	o := c.Options(1)
	for r.keys == 0 && o.Next() {
		switch {
		case o.Is("block") && o.More():
			r.wait = true
			if r.timeout, ok = c.IntTimeout(o.Arg()); !ok {
				return r, false
			}
		case o.Is("count") && o.More():
			count, ok := c.Int(o.Arg())
			if !ok {
				return r, false
			}
			r.count = command.AsInt(max(count, 0))
		case o.Is("maxcount") && o.More():
			if r.all, ok = positive(c, o.Arg(), errReadCount); !ok {
				return r, false
			}
		case o.Is("maxsize") && o.More():
			if r.size, ok = positive(c, o.Arg(), errReadSize); !ok {
				return r, false
			}
		case o.Is("streams") && o.More():
			r.keys = len(c.Args) - o.Left()
			if o.Left()%2 != 0 {
				if grouped {
					c.Err(errUnbalancedGroup)
				} else {
					c.Err(errUnbalanced)
				}
				return r, false
			}
			r.n = o.Left() / 2
		case o.Is("group") && o.Left() >= 2:
			if !grouped {
				c.Err(errGroupOption)
				return r, false
			}
			r.group = len(c.Args) - o.Left()
			o.Skip(2)
		case o.Is("claim") && o.More():
			if !grouped {
				c.Err(errClaimOption)
				return r, false
			}
			r.claim = true
			if r.minIdle, ok = c.IntIn(o.Arg(), math.MinInt64, math.MaxInt64, errReadIdle); !ok {
				return r, false
			}
			if r.minIdle < 0 {
				c.Err(errReadIdleSign)
				return r, false
			}
		case o.Is("noack"):
			if !grouped {
				c.Err(errNoAckOption)
				return r, false
			}
			r.noAck = true
		default:
			c.Err(command.ErrSyntax)
			return r, false
		}
	}
	switch {
	case r.keys == 0:
		c.Err(command.ErrSyntax)
	case grouped && r.group == 0:
		c.Err(errGroupMissing)
	case r.all > 0 && r.all < r.count:
		c.Err(errReadCounts)
	case grouped && !r.holdsKeys(c):
		c.Err(command.ErrSyntax)
	default:
		return r, true
	}
	return r, false
}

// positive reads a positive number; if it is invalid, it writes an error and ok is false.
func positive(c *command.Ctx, arg []byte, err command.Error) (n int, ok bool) {
	value, ok := c.IntIn(arg, 1, math.MaxInt64, err)
	return command.AsInt(value), ok
}

// firstStreamsWord is the index from which the key spec of XREADGROUP searches for the word STREAMS.
const firstStreamsWord = 4

// holdsKeys reports whether the guard holds the shards of the keys. It does not if the key spec took a group or a
// consumer named "streams" for the word STREAMS.
func (r streamRead) holdsKeys(c *command.Ctx) bool {
	for i := max(r.group, firstStreamsWord); i < r.group+2; i++ {
		if !command.EqualFold(c.Args[i], "streams") {
			continue
		}
		for _, key := range c.Args[r.keys : r.keys+r.n] {
			if !c.G.Holds(c.G.Keyspace().ShardOf(key)) {
				return false
			}
		}
	}
	return true
}

// noGroupToRead is the error of a read from a missing group.
func noGroupToRead(key, group []byte) command.Error {
	const text = "NOGROUP No such key '%s' or consumer group '%s' in XREADGROUP with GROUP option"
	return command.Error(fmt.Sprintf(text, command.UntilNUL(key), command.UntilNUL(group)))
}

// positions appends the place to read from in each stream to dst. If a key or an ID is wrong, it writes an error and
// ok is false.
func (r streamRead) positions(c *command.Ctx, dst []streamPosition) (from []streamPosition, ok bool) {
	for i, key := range c.Args[r.keys : r.keys+r.n] {
		p := streamPosition{}
		read := c.ReadAs
		if r.group != 0 {
			read = c.ReadToWriteAs
		}
		if p.e, ok = read(key, engine.Stream); !ok {
			return nil, false
		}
		if r.group != 0 {
			name := c.Args[r.group]
			if p.e != nil {
				p.group = p.e.Entries().Stream().Group(name)
			}
			if p.group == nil {
				c.Err(noGroupToRead(key, name))
				return nil, false
			}
		}
		if p.after, ok = r.after(c, c.Args[r.keys+r.n+i], p.e); !ok {
			return nil, false
		}
		if p.e != nil {
			r.stream(c, p, &allowance{}) // before anything changes
		}
		dst = append(dst, p)
	}
	return dst, true
}

// stream returns the stream at p, with everything loaded that ready and deliver need.
func (r streamRead) stream(c *command.Ctx, p streamPosition, a *allowance) *streams.Stream {
	need := streams.Stretch{To: streams.MaxID, N: r.countOf(a)}
	switch {
	case !p.e.InParts(), r.claim:
		return p.e.Stream()
	case p.group == nil:
		need.From, _ = p.after.Next() // without a next ID the last one does no harm
	case p.after == streams.MaxID:
		need.From, _ = p.group.LastID.Next()
		return p.e.Entries(need, firstEntry).Stream() // the first entry is needed to count what the group has read
	default:
		return r.history(c, p, need.N)
	}
	return p.e.Entries(need).Stream()
}

// history is stream for the consumer's pending entries.
func (r streamRead) history(c *command.Ctx, p streamPosition, count int) *streams.Stream {
	start, _ := p.after.Next()
	var ids []streams.ID
	if consumer := p.group.Consumer(c.Args[r.group+1]); consumer != nil {
		consumer.Pending(start, streams.MaxID, func(n *streams.NACK) bool {
			ids = append(ids, n.ID)
			return len(ids) <= fewNamed && len(ids) != count
		})
	}
	return entriesNamed(p.e, ids).Stream()
}

// after reads the ID after which to read in the stream of e, which may be nil.
func (r streamRead) after(c *command.Ctx, arg []byte, e *engine.Entry) (id streams.ID, ok bool) {
	if len(arg) == 1 {
		switch arg[0] {
		case '$':
			if r.group != 0 {
				c.Err(errDollarInGroup)
				return id, false
			}
			if e != nil {
				id = e.Entries().Stream().LastID()
			}
			return id, true
		case '>':
			if r.group == 0 {
				c.Err(errNewNoGroup)
				return id, false
			}
			return streams.MaxID, true
		case '+':
			if r.group != 0 {
				c.Err(errPlusInGroup)
				return id, false
			}
			if e == nil {
				return id, true
			}
			s := e.Entries(lastEntry).Stream()
			last, ok := s.Last()
			if !ok {
				return s.LastID(), true // the next entry will be the last
			}
			id, _ = last.ID.Prev() // always exists: no entry has the ID 0-0
			return id, true
		}
	}
	return ParseID(c, arg)
}

// noteConsumers creates the consumer in groups that lack it, and records in all groups that it was seen. A consumer
// that was seen but read nothing is not journalled, because polling would fill the journal.
func (r streamRead) noteConsumers(c *command.Ctx, from []streamPosition) {
	for i, p := range from {
		if p.group == nil {
			continue
		}
		consumer, created := p.group.CreateConsumer(c.Args[r.group+1], c.Now())
		if now := c.Now(); consumer.SeenTime != now {
			consumer.Seen(now)
			c.G.Noted(p.e)
		}
		if created {
			GroupChanged(c, p.e, true)
			if r.forms() {
				c.Journal([]byte("XGROUP"), []byte("CREATECONSUMER"), c.Args[r.keys+i], c.Args[r.group], c.Args[r.group+1])
			}
		}
	}
}

// journalSeen journals that the consumer was seen, as a claim of an entry that cannot exist.
func (r streamRead) journalSeen(c *command.Ctx, key []byte) {
	c.Journal([]byte("XCLAIM"), key, c.Args[r.group], c.Args[r.group+1], []byte("0"), streams.MinID.Append(nil))
}

// ready reports whether there is anything to read at p. The history of a consumer always counts, even if it is
// empty.
func (r streamRead) ready(c *command.Ctx, p streamPosition, a *allowance) (ready bool) {
	if p.e == nil {
		return false
	}
	after := p.after
	if p.group != nil {
		if after != streams.MaxID || r.claim && p.group.Idle(p.e.Stream(), r.minIdle, c.Now()) {
			return true
		}
		after = p.group.LastID
	}
	if start, ok := after.Next(); ok {
		r.stream(c, p, a).Range(start, streams.MaxID, false, func(streams.Entry) bool {
			ready = true
			return false
		})
	}
	return ready
}

// deliver writes the key and the entries at p, and reports whether it wrote any: MAXSIZE may allow no entry of a
// stream.
func (r streamRead) deliver(c *command.Ctx, key []byte, p streamPosition, a *allowance) (given bool) {
	start, before := len(c.W.Buf), a.given
	if c.W.Proto != 3 {
		c.W.Array(2)
	}
	c.W.Bulk(key)
	if p.group != nil {
		r.deliverToGroup(c, key, p, a)
	} else {
		r.deliverAfter(c, p, a)
	}
	if a.given == before && before > 0 && r.size > 0 {
		c.W.Buf = c.W.Buf[:start]
		return false
	}
	return true
}

// deliverAfter writes the entries at p, which is in no group.
func (r streamRead) deliverAfter(c *command.Ctx, p streamPosition, a *allowance) {
	w := c.W
	start, ok := p.after.Next()
	if !ok {
		w.Array(0)
		return
	}
	mark, n, count := w.Defer(), 0, r.countOf(a)
	r.stream(c, p, a).Range(start, streams.MaxID, false, func(e streams.Entry) bool {
		at := len(w.Buf)
		writeStreamEntry(w, e)
		if !r.wrote(w, a, at) {
			return false
		}
		n++
		return n != count
	})
	w.EndArray(mark, n)
}

// deliverToGroup writes the entries at p, and records that the consumer has them.
func (r streamRead) deliverToGroup(c *command.Ctx, key []byte, p streamPosition, a *allowance) {
	w, now := c.W, c.Now()
	consumer, created := p.group.CreateConsumer(c.Args[r.group+1], now)
	consumer.Seen(now)
	mark, n := w.Defer(), 0
	switch {
	case p.after == streams.MaxID && r.claim:
		n = r.claimAndRead(c, key, p, consumer, a)
	case p.after == streams.MaxID:
		n = r.readNew(c, key, p, consumer, a, r.countOf(a), writeStreamEntry)
	default:
		n = r.readHistory(c, key, p, consumer, a)
	}
	w.EndArray(mark, n)
	GroupChanged(c, p.e, created)
}

// readNew delivers the new entries of the group at p to a consumer, at most count entries if count is positive. It
// first finds how many MAXSIZE allows, because a delivery is recorded at once.
func (r streamRead) readNew(c *command.Ctx, key []byte, p streamPosition, to *streams.Consumer, a *allowance, count int,
	write func(*resp.Writer, streams.Entry)) (n int) {
	w, s := c.W, r.stream(c, p, a)
	if r.size > 0 {
		start, ok := p.group.LastID.Next()
		if !ok {
			return 0
		}
		tried, from := *a, len(w.Buf)
		s.Range(start, streams.MaxID, false, func(e streams.Entry) bool {
			at := len(w.Buf)
			write(w, e)
			return r.wrote(w, &tried, at) && tried.given-a.given != count
		})
		w.Buf = w.Buf[:from]
		if count = tried.given - a.given; count == 0 {
			r.journalSeen(c, key)
			return 0
		}
	}
	n = p.group.ReadNew(s, to, count, r.noAck, c.Now(), func(e streams.Entry) { write(w, e) })
	if a.given += n; n > 0 && r.forms() {
		r.journal(c, key, NewEntriesID, n)
	}
	return n
}

// readHistory delivers a consumer's pending entries in the group at p again.
func (r streamRead) readHistory(c *command.Ctx, key []byte, p streamPosition, to *streams.Consumer,
	a *allowance) (n int) {
	w, s, count := c.W, r.stream(c, p, a), r.countOf(a)
	write := func(e streams.Entry, exists bool) {
		if exists {
			writeStreamEntry(w, e)
			return
		}
		w.Array(2)
		WriteID(w, e.ID)
		w.NullArray()
	}
	if r.size > 0 {
		start, ok := p.after.Next()
		if !ok {
			return 0
		}
		tried, from := *a, len(w.Buf)
		to.Pending(start, streams.MaxID, func(nack *streams.NACK) bool {
			at := len(w.Buf)
			e, exists := s.Get(nack.ID)
			e.ID = nack.ID
			write(e, exists)
			return r.wrote(w, &tried, at) && tried.given-a.given != count
		})
		w.Buf = w.Buf[:from]
		if count = tried.given - a.given; count == 0 {
			r.journalSeen(c, key)
			return 0
		}
	}
	n = p.group.ReadHistory(s, to, p.after, count, c.Now(), write)
	if a.given += n; r.forms() {
		r.journal(c, key, p.after.Append(nil), count)
	}
	return n
}

// claimAndRead writes the entries of the group at p that have been pending for long enough, and then, within the
// limits, new ones. It is journalled as a claim of these entries and a read of as many new ones, because other
// entries may be idle when it is repeated.
func (r streamRead) claimAndRead(c *command.Ctx, key []byte, p streamPosition, consumer *streams.Consumer,
	a *allowance) int {
	w, s, now, count := c.W, p.e.Stream(), c.Now(), r.countOf(a)
	var ids [][]byte
	full := false
	n := p.group.ClaimIdle(s, consumer, r.minIdle, now, count, func(e streams.Entry, idle, deliveries int64) bool {
		at := len(w.Buf)
		writeDelivery(w, e, idle, deliveries)
		if full = !r.wrote(w, a, at); full {
			return false
		}
		ids = append(ids, e.ID.Append(nil))
		return true
	})
	if n > 0 {
		c.Journal(append([][]byte{[]byte("XCLAIM"), key, c.Args[r.group], c.Args[r.group+1], []byte("0")},
			append(ids, []byte("TIME"), strconv.AppendInt(nil, now, 10))...)...)
	}
	if full && n == 0 {
		r.journalSeen(c, key)
	}
	if full || n == count && n > 0 {
		return n
	}
	return n + r.readNew(c, key, p, consumer, a, max(count-n, 0), func(w *resp.Writer, e streams.Entry) {
		writeDelivery(w, e, 0, 0)
	})
}

// writeDelivery writes an entry in the form of reads with CLAIM: with the time since its previous delivery in ms,
// and its number of deliveries. For a new entry both are 0.
func writeDelivery(w *resp.Writer, e streams.Entry, idle, deliveries int64) {
	w.Array(4)
	WriteID(w, e.ID)
	writeStreamFields(w, e)
	w.Int(idle)
	w.Int(deliveries)
}

// endStreams ends the reply at mark, which has n keys with their entries.
func endStreams(c *command.Ctx, mark resp.Mark, n int) {
	if c.W.Proto == 3 {
		c.W.EndMap(mark, n)
		return
	}
	c.W.EndArray(mark, n)
}

// block waits for entries at one of the positions.
func (r streamRead) block(c *command.Ctx, from []streamPosition) {
	after := make([]streams.ID, len(from))
	for i, p := range from {
		after[i] = p.after
	}
	var idle []int64 // for each stream the earliest time at which an entry can be claimed
	if r.claim {
		idle = make([]int64, len(from))
		for i, p := range from {
			idle[i] = r.claimable(c, p)
		}
	}
	b := command.Block{
		Keys: c.Args[r.keys : r.keys+r.n], OnRemoval: r.group != 0, Timeout: r.timeout, Empty: (*resp.Writer).NullArray,
		Try: func(c *command.Ctx, key []byte) bool {
			if r.runAgain(c, after) {
				return true
			}
			if r.claim {
				r.claimLater(c, key, idle)
			}
			return false
		},
	}
	if r.claim {
		b.Again = slices.Min(idle)
	}
	c.Block(b)
}

// claimAnew is the shortest pause in ms before a client with CLAIM checks again if nothing is pending. It limits the
// cost of a tiny CLAIM.
const claimAnew = 10

// claimable returns the time at which a pending entry of the group at p will be idle for long enough. If none is
// pending, it returns the earliest time at which an entry delivered from now on can be.
func (r streamRead) claimable(c *command.Ctx, p streamPosition) int64 {
	from, wait := c.Now(), max(r.minIdle, claimAnew)
	if delivered, ok := p.group.EarliestDelivery(p.e.Stream()); ok {
		from, wait = delivered, r.minIdle
	}
	if from > math.MaxInt64-wait {
		return math.MaxInt64
	}
	return from + wait
}

// claimLater makes a waiting client check again as soon as an entry can be claimed, after the stream of a key has
// changed. idle has the times of all streams.
func (r streamRead) claimLater(c *command.Ctx, key []byte, idle []int64) {
	e := c.G.Write(c.DB, key)
	at := r.claimable(c, streamPosition{e: e, group: e.Stream().Group(c.Args[r.group])})
	for i, other := range c.Args[r.keys : r.keys+r.n] {
		if bytes.Equal(other, key) {
			idle[i] = at
		}
	}
	c.TryAgain(slices.Min(idle))
}

// runAgain executes the command of a waiting client again, after a change of a stream or at the time of claimLater.
// It reports whether the client has its reply. A stream whose shard the guard does not hold has not changed, so
// there is nothing to read in it.
func (r streamRead) runAgain(c *command.Ctx, after []streams.ID) bool {
	keys := c.Args[r.keys : r.keys+r.n]
	var scratch [4]streamPosition
	from := scratch[:0]
	for i, key := range keys {
		p := streamPosition{after: after[i]}
		if c.G.Holds(c.G.Keyspace().ShardOf(key)) {
			if e := r.find(c, key, &p); e != "" {
				c.Err(e)
				return true
			}
		}
		from = append(from, p)
	}
	a := r.allowance(c.W)
	mark, n := c.W.Defer(), 0
	for i, p := range from {
		if r.spent(c, &a) || !r.ready(c, p, &a) || !r.deliver(c, keys[i], p, &a) {
			continue
		}
		if r.group != 0 && !r.forms() { // otherwise deliver has journalled it
			r.journal(c, keys[i], NewEntriesID, r.count)
		}
		n++
	}
	if n > 0 {
		endStreams(c, mark, n)
	}
	return n > 0
}

// find looks up the stream and the group that a waiting client reads at p. A client without a group gets no error if
// the key now has another type.
func (r streamRead) find(c *command.Ctx, key []byte, p *streamPosition) command.Error {
	e := c.G.Write(c.DB, key)
	if e != nil && e.Type() == engine.Stream {
		p.e = e
	}
	switch {
	case r.group == 0:
		return ""
	case e != nil && p.e == nil:
		return command.ErrWrongType
	case p.e != nil:
		p.group = e.Entries().Stream().Group(c.Args[r.group])
	}
	if p.group == nil {
		return noGroupToRead(key, c.Args[r.group])
	}
	return ""
}

// NewEntriesID stands for the new entries of a group.
var NewEntriesID = []byte(">")

// journal journals a delivery as a read of its one stream.
func (r streamRead) journal(c *command.Ctx, key, id []byte, count int) {
	args := [][]byte{[]byte("XREADGROUP"), []byte("GROUP"), c.Args[r.group], c.Args[r.group+1]}
	if count > 0 {
		args = append(args, []byte("COUNT"), strconv.AppendInt(nil, int64(count), 10))
	}
	if r.noAck {
		args = append(args, []byte("NOACK"))
	}
	c.Journal(append(args, []byte("STREAMS"), key, id)...)
}
