package streams

import (
	"encoding/binary"
	"strconv"

	"github.com/zeebo/xxh3"

	"github.com/atomredis/atomredis/engine"
	"github.com/atomredis/atomredis/engine/streams"
	"github.com/atomredis/atomredis/internal/command"
)

// This file lets producers resend entries that may have arrived: XADD with IDMP and IDMPAUTO, XCFGSET and
// XIDMPRECORD.
//
// Such an XADD is journalled as an XADD without these options, and an XIDMPRECORD. If the stream begins to remember
// producers, an XCFGSET is between them, because the directives may have changed when the record is repeated.

func init() { command.Register(producerCommands) }

var producerCommands = []*command.Command{
	{Name: "xcfgset", Group: "stream", Since: "8.6.0", Arity: -2, Flags: command.Write | command.Fast,
		ACL: command.CatStream, Keys: command.Keys("i1+r0/1/0[RW,UPDATE]"),
		Summary:    "Sets how long a stream remembers the idempotent IDs of its producers, and how many",
		Syntax:     "key [IDMP-DURATION idmp-duration] [IDMP-MAXSIZE idmp-maxsize]",
		Complexity: "O(1), or O(N) if that changes, where N is the number of IDs remembered", Do: cmdXcfgset},
	{Name: "xidmprecord", Group: "stream", Since: "8.6.2", Arity: 5,
		Flags: command.Write | command.DenyOOM | command.Fast,
		ACL:   command.CatStream, Keys: command.Keys("i1+r0/1/0[RW,UPDATE]"),
		Summary: "Makes a stream remember the idempotent ID of an entry", Syntax: "key pid iid stream-id",
		Complexity: "O(1)", Do: cmdXidmprecord},
}

const (
	errTwoProducers  command.Error = "ERR IDMP/IDMPAUTO specified multiple times"
	errIdempotentID  command.Error = "ERR IDMP/IDMPAUTO can be used only with auto-generated IDs"
	errNoProducer    command.Error = "ERR IDMP requires a non-empty producer ID"
	errNoIID         command.Error = "ERR IDMP requires a non-empty idempotent ID"
	errAutoProducer  command.Error = "ERR IDMPAUTO requires a non-empty producer ID"
	errNoSetting     command.Error = "ERR At least one parameter must be specified"
	errDuration      command.Error = "ERR IDMP-DURATION must be between 1 and 86400 seconds"
	errMaxSize       command.Error = "ERR IDMP-MAXSIZE must be between 1 and 10000 entries"
	errEntryNotThere command.Error = "ERR No such message in stream"

	errRecordProducer command.Error = "ERR producer ID must be non-empty"
	errRecordIID      command.Error = "ERR idempotent ID must be non-empty"
)

// idempotentID is a producer's ID of an entry that it adds.
type idempotentID struct {
	producer, iid []byte // no producer means no idempotent ID
	byContent     bool   // the iid is computed from the fields
}

// option takes IDMP or IDMPAUTO, if o is at one. If its arguments are wrong, it writes an error and ok is false.
func (i *idempotentID) option(c *command.Ctx, o *command.OptionArgs) (taken, ok bool) {
	auto := o.Is("idmpauto") && o.More()
	if !auto && (!o.Is("idmp") || o.Left() < 2) {
		return false, true
	}
	if i.producer != nil {
		c.Err(errTwoProducers)
		return true, false
	}
	i.byContent = auto
	switch i.producer = o.Arg(); {
	case auto && len(i.producer) == 0:
		c.Err(errAutoProducer)
		return true, false
	case auto:
		return true, true
	case len(i.producer) == 0:
		c.Err(errNoProducer)
		return true, false
	}
	if i.iid = o.Arg(); len(i.iid) == 0 {
		c.Err(errNoIID)
		return true, false
	}
	return true, true
}

// contentID returns the idempotent ID of an entry with the given fields; their order does not matter.
func contentID(fields [][]byte) []byte {
	var sum xxh3.Uint128
	var h xxh3.Hasher
	var length [8]byte
	for i := 0; i < len(fields); i += 2 {
		h.Reset()
		binary.LittleEndian.PutUint64(length[:], uint64(len(fields[i])))
		_, _ = h.Write(length[:])
		_, _ = h.Write(fields[i])
		_, _ = h.Write(fields[i+1])
		pair := h.Sum128()
		sum.Hi += pair.Hi
		sum.Lo += pair.Lo
	}
	id := sum.Bytes()
	return id[:]
}

// defaultIdempotence returns the settings of streams without XCFGSET.
func defaultIdempotence(c *command.Ctx) streams.Idempotence {
	how := streams.DefaultIdempotence
	if n, err := strconv.Atoi(c.Host.Directive("stream-idmp-duration")); err == nil {
		how.Duration = n
	}
	if n, err := strconv.Atoi(c.Host.Directive("stream-idmp-maxsize")); err == nil {
		how.MaxSize = n
	}
	return how
}

// idempotence returns the settings for remembering producers of a stream, the defaults if it has none.
func idempotence(c *command.Ctx, s *streams.Stream) streams.Idempotence {
	if how := s.Idempotence(); how != (streams.Idempotence{}) {
		return how
	}
	return defaultIdempotence(c)
}

// setIdempotence sets how a stream remembers producers, and journals that.
func setIdempotence(c *command.Ctx, s *streams.Stream, how streams.Idempotence) {
	s.SetIdempotence(how)
	c.Journal([]byte("XCFGSET"), c.Args[1], []byte("IDMP-DURATION"), number(int64(how.Duration)), []byte("IDMP-MAXSIZE"),
		number(int64(how.MaxSize)))
}

// produced returns the entry that was added before under an idempotent ID. For a repeated command it ignores the
// time, and accepts only the entry with the command's ID.
func (n *newEntry) produced(c *command.Ctx, s *streams.Stream) (entry streams.ID, ok bool) {
	if n.as.byContent {
		n.as.iid = contentID(n.fields)
	}
	if n.auto {
		return s.Produced(n.as.producer, n.as.iid, c.Now())
	}
	entry, ok = s.Produced(n.as.producer, n.as.iid, streams.Always)
	return entry, ok && entry == n.id
}

// duplicate counts a duplicate that was not added.
func duplicate(c *command.Ctx, e *engine.Entry, as idempotentID, entry streams.ID) {
	e.Stream().Duplicate()
	c.G.ChangedBookkeeping(e, 0, "")
	journalProduced(c, as, entry)
}

// produce remembers the idempotent ID of an added entry.
func produce(c *command.Ctx, s *streams.Stream, as idempotentID, entry streams.ID) {
	if s.Idempotence() == (streams.Idempotence{}) {
		setIdempotence(c, s, defaultIdempotence(c))
	}
	s.Produce(as.producer, as.iid, entry)
	journalProduced(c, as, entry)
}

// journalProduced journals an idempotent ID; for one that is already known, the record counts a duplicate.
func journalProduced(c *command.Ctx, as idempotentID, entry streams.ID) {
	if c.G.Journals() {
		c.Journal([]byte("XIDMPRECORD"), c.Args[1], as.producer, as.iid, entry.Append(nil))
	}
}

func cmdXcfgset(c *command.Ctx) {
	duration, maxSize, ok := int64(0), int64(0), true
	o := c.Options(2)
	for o.Next() {
		switch {
		case o.Is("idmp-duration") && o.More():
			if duration, ok = c.Int(o.Arg()); ok && (duration < 1 || duration > streams.MaxDuration) {
				c.Err(errDuration)
				return
			}
		case o.Is("idmp-maxsize") && o.More():
			if maxSize, ok = c.Int(o.Arg()); ok && (maxSize < 1 || maxSize > streams.MaxSize) {
				c.Err(errMaxSize)
				return
			}
		default:
			c.Err(command.ErrSyntax)
			return
		}
		if !ok {
			return
		}
	}
	if duration == 0 && maxSize == 0 {
		c.Err(errNoSetting)
		return
	}
	e, ok := c.WriteAs(c.Args[1], engine.Stream)
	if !ok {
		return
	}
	if e == nil {
		c.Err(command.ErrNoKey)
		return
	}
	how := idempotence(c, e.Stream())
	if duration > 0 {
		how.Duration = int(duration)
	}
	if maxSize > 0 {
		how.MaxSize = int(maxSize)
	}
	if how != e.Stream().Idempotence() {
		setIdempotence(c, e.Stream(), how)
		c.G.ChangedBookkeeping(e, 0, "")
	}
	c.W.OK()
}

// cmdXidmprecord accepts repeated records even if the entry is gone by now, or has replaced one that was too old. A
// known ID counts as a duplicate.
func cmdXidmprecord(c *command.Ctx) {
	id, ok := ParseID(c, c.Args[4])
	if !ok {
		return
	}
	as, repeated := idempotentID{producer: c.Args[2], iid: c.Args[3]}, c.Origin.In(command.Accepted)
	switch {
	case len(as.producer) == 0:
		c.Err(errRecordProducer)
		return
	case len(as.iid) == 0:
		c.Err(errRecordIID)
		return
	}
	e, ok := c.WriteAs(c.Args[1], engine.Stream)
	if !ok {
		return
	}
	if e == nil {
		c.Err(command.ErrNoKey)
		return
	}
	s := e.Stream()
	entry, known := s.Produced(as.producer, as.iid, streams.Always)
	switch {
	case !repeated && !s.Has(id):
		c.Err(errEntryNotThere)
		return
	case known && entry == id:
		if repeated {
			duplicate(c, e, as, id)
		}
	case known && !repeated:
		c.Err(command.Error(streams.ErrOtherEntry.Error()))
		return
	default:
		produce(c, s, as, id)
		c.G.ChangedBookkeeping(e, 0, "")
	}
	c.W.OK()
}
