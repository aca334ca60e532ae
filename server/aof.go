package server

import (
	"slices"
	"strconv"

	"github.com/atomredis/atomredis/engine"
	"github.com/atomredis/atomredis/engine/hashes"
	"github.com/atomredis/atomredis/engine/streams"
	"github.com/atomredis/atomredis/resp"
)

// aofWriter encodes keys as the commands that make them, in the form of an append-only file that Redis 7 loads. It is the only place that knows
// how.
type aofWriter struct {
	// emit takes what has been encoded, whole commands, now and then. It does not keep it.
	emit func(commands []byte)

	buf []byte
}

const (
	aofElements = 64       // at most that many elements are in one command,
	aofBytes    = 64 << 10 // and as many as make about so many bytes
	aofChunk    = 1 << 20  // bytes from which on emit is called
)

// command encodes one command.
func (a *aofWriter) command(args ...[]byte) {
	a.buf = appendRequest(a.buf, args)
	if len(a.buf) >= aofChunk {
		a.flush()
	}
}

// flush gives what has been encoded to emit.
func (a *aofWriter) flush() {
	if len(a.buf) > 0 {
		a.emit(a.buf)
		a.buf = a.buf[:0]
	}
}

// appendRequest appends a command as a client sends it.
func appendRequest(dst []byte, args [][]byte) []byte {
	w := resp.Writer{Buf: dst}
	w.Array(len(args))
	for _, arg := range args {
		w.Bulk(arg)
	}
	return w.Buf
}

// selectDB makes a database that of the commands that follow.
func (a *aofWriter) selectDB(db int) { a.command([]byte("SELECT"), intArg(int64(db))) }

// entry encodes a key with its value and deadline. A value that is not in memory is brought in.
func (a *aofWriter) entry(e *engine.Entry) {
	key := []byte(e.Key())
	switch e.Type() {
	case engine.String:
		a.command([]byte("SET"), key, e.Bytes())
	case engine.List:
		c := a.collection("RPUSH", key)
		e.List().Range(0, e.List().Len()-1, func(v []byte) bool {
			c.add(v)
			return true
		})
		c.end()
	case engine.Set:
		c := a.collection("SADD", key)
		for member := range e.Set().All() {
			c.add(member)
		}
		c.end()
	case engine.ZSet:
		c := a.collection("ZADD", key)
		e.ZSet().RangeByRank(0, e.ZSet().Len()-1, false, func(member []byte, score float64) bool {
			c.add(resp.AppendFloat(nil, score), member)
			return true
		})
		c.end()
	case engine.Hash:
		c := a.collection("HSET", key)
		for field, value := range e.Hash().All() {
			c.add(field, value)
		}
		c.end()
		a.fieldDeadlines(key, e.Hash())
	case engine.Stream:
		a.stream(key, e.Stream())
	}
	if at := e.Deadline(); at != 0 {
		a.command([]byte("PEXPIREAT"), key, intArg(at))
	}
}

// fieldDeadlines encodes when fields of a hash expire. Redis knows these commands from 7.4 on.
func (a *aofWriter) fieldDeadlines(key []byte, h *hashes.Hash) {
	for field, at := range h.Deadlines() {
		a.command([]byte("HPEXPIREAT"), key, intArg(at), []byte("FIELDS"), []byte("1"), field)
	}
}

// aofCollection distributes elements over commands.
type aofCollection struct {
	a        *aofWriter
	head     int      // how many of args are not elements
	args     [][]byte // copies
	elements int
	bytes    int
}

func (a *aofWriter) collection(name string, key []byte) *aofCollection {
	return &aofCollection{a: a, head: 2, args: [][]byte{[]byte(name), key}}
}

// add adds an element, of one or more arguments, which are copied.
func (c *aofCollection) add(element ...[]byte) {
	for _, arg := range element {
		c.args = append(c.args, append([]byte(nil), arg...))
		c.bytes += len(arg)
	}
	if c.elements++; c.elements == aofElements || c.bytes >= aofBytes {
		c.end()
	}
}

// end encodes what has gathered.
func (c *aofCollection) end() {
	if c.elements > 0 {
		c.a.command(c.args...)
	}
	c.args = c.args[:c.head]
	c.elements, c.bytes = 0, 0
}

// stream encodes a stream with its groups. XCLAIM does not take entries that do not exist, and a group can have such pending that were
// deleted since they were delivered. They are added, in their place, and removed again once they are claimed: with XDEL if they were deleted
// one by one, which shows in MaxDeletedID, and otherwise with XTRIM, because then they precede all that are left.
func (a *aofWriter) stream(key []byte, s *streams.Stream) {
	ghosts := missingEntries(s)
	add := func(id streams.ID, fields ...[]byte) {
		a.command(append([][]byte{[]byte("XADD"), key, id.Append(nil)}, fields...)...)
	}
	rest := ghosts
	s.Range(streams.MinID, streams.MaxID, false, func(e streams.Entry) bool {
		for len(rest) > 0 && rest[0].Less(e.ID) {
			add(rest[0], ghostField, ghostField)
			rest = rest[1:]
		}
		fields := make([][]byte, 0, 2*e.Len())
		for f, v := range e.Fields() {
			fields = append(fields, f, v)
		}
		add(e.ID, fields...)
		return true
	})
	for _, id := range rest {
		add(id, ghostField, ghostField)
	}
	if s.Len() == 0 && len(ghosts) == 0 {
		id := s.LastID()
		if id.IsZero() {
			id.Seq = 1 // there is no entry 0-0; XSETID follows
		}
		a.command([]byte("XADD"), key, []byte("MAXLEN"), []byte("0"), id.Append(nil), ghostField, ghostField)
	}
	for _, g := range s.Groups() {
		a.group(key, g)
	}
	a.removeGhosts(key, s, ghosts)
	a.command([]byte("XSETID"), key, s.LastID().Append(nil), []byte("ENTRIESADDED"), intArg(s.EntriesAdded()),
		[]byte("MAXDELETEDID"), s.MaxDeletedID().Append(nil))
}

// ghostField is the field, and the value, of entries that do not stay.
var ghostField = []byte("x")

// missingEntries returns the IDs, in order and each once, of entries that are pending in a group and not in the stream.
func missingEntries(s *streams.Stream) []streams.ID {
	var ids []streams.ID
	for _, g := range s.Groups() {
		g.Pending(streams.MinID, streams.MaxID, func(n *streams.NACK) bool {
			if !s.Has(n.ID) {
				ids = append(ids, n.ID)
			}
			return true
		})
	}
	slices.SortFunc(ids, streams.ID.Compare)
	return slices.Compact(ids)
}

// removeGhosts removes entries that were added for their groups' sake.
func (a *aofWriter) removeGhosts(key []byte, s *streams.Stream, ghosts []streams.ID) {
	c := a.collection("XDEL", key)
	trim := false
	for _, id := range ghosts {
		if s.MaxDeletedID().Less(id) {
			trim = true
		} else {
			c.add(id.Append(nil))
		}
	}
	c.end()
	switch {
	case !trim:
	case s.Len() == 0:
		a.command([]byte("XTRIM"), key, []byte("MAXLEN"), []byte("0"))
	default:
		a.command([]byte("XTRIM"), key, []byte("MINID"), s.FirstID().Append(nil))
	}
}

// group encodes a consumer group: pending entries that follow one another and were delivered together are claimed together.
func (a *aofWriter) group(key []byte, g *streams.Group) {
	name := []byte(g.Name)
	a.command([]byte("XGROUP"), []byte("CREATE"), key, name, g.LastID.Append(nil), []byte("ENTRIESREAD"), intArg(g.EntriesRead))
	for _, c := range g.Consumers() {
		a.command([]byte("XGROUP"), []byte("CREATECONSUMER"), key, name, []byte(c.Name))
	}
	var run streams.NACK // what those in ids have in common
	var ids [][]byte
	claim := func() {
		if len(ids) == 0 {
			return
		}
		args := append([][]byte{[]byte("XCLAIM"), key, name, []byte(run.Consumer.Name), []byte("0")}, ids...)
		a.command(append(args, []byte("TIME"), intArg(run.DeliveryTime), []byte("RETRYCOUNT"), intArg(run.DeliveryCount),
			[]byte("FORCE"), []byte("JUSTID"))...)
		ids = ids[:0]
	}
	g.Pending(streams.MinID, streams.MaxID, func(n *streams.NACK) bool {
		if len(ids) == aofElements || n.Consumer != run.Consumer || n.DeliveryTime != run.DeliveryTime || n.DeliveryCount != run.DeliveryCount {
			claim()
			run = *n
		}
		ids = append(ids, n.ID.Append(nil))
		return true
	})
	claim()
}

// intArg returns n as an argument.
func intArg(n int64) []byte { return strconv.AppendInt(nil, n, 10) }
