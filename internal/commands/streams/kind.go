package streams

import (
	"slices"
	"strconv"

	"github.com/atomredis/atomredis/engine"
	"github.com/atomredis/atomredis/engine/streams"
	"github.com/atomredis/atomredis/internal/command"
)

// This file describes streams for commands on keys of any type.

func init() {
	command.RegisterKind(engine.Stream, command.Kind{
		Number:   6,
		Encoding: func(*engine.Entry) string { return "stream" },
		Rebuild:  rebuild,
		Digest: func(d *command.Digest, e *engine.Entry) {
			e.Stream().Range(streams.MinID, streams.MaxID, false, func(entry streams.Entry) bool {
				id := strconv.AppendUint(nil, entry.ID.Ms, 10)
				id = strconv.AppendUint(append(id, '.'), entry.ID.Seq, 10)
				d.Mix(id)
				for field, value := range entry.Fields() {
					d.Mix(field)
					d.Mix(value)
				}
				return true
			})
		},
	})
}

// number returns n as an argument.
func number(n int64) []byte { return strconv.AppendInt(nil, n, 10) }

// rebuild encodes a stream with its groups and producers. XCLAIM, XNACK and XIDMPRECORD do not accept deleted
// entries, but a group can have such entries pending. Placeholders are added for them, and removed once they are
// claimed: with XDEL if the entries were deleted one by one, which shows in MaxDeletedID, and otherwise with XTRIM,
// because then they precede all present entries.
func rebuild(r *command.Rebuilder, key []byte, e *engine.Entry) {
	s := e.Stream()
	ghosts := missingEntries(s)
	add := func(id streams.ID, fields ...[]byte) {
		r.Command(append([][]byte{[]byte("XADD"), key, id.Append(nil)}, fields...)...)
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
		r.Command([]byte("XADD"), key, []byte("MAXLEN"), []byte("0"), id.Append(nil), ghostField, ghostField)
	}
	for _, g := range s.Groups() {
		rebuildGroup(r, key, g)
	}
	rebuildProducers(r, key, s)
	removeGhosts(r, key, s, ghosts)
	r.Command([]byte("XSETID"), key, s.LastID().Append(nil), []byte("ENTRIESADDED"), number(s.EntriesAdded()),
		[]byte("MAXDELETEDID"), s.MaxDeletedID().Append(nil))
}

// ghostField is the field and the value of placeholders.
var ghostField = []byte("x")

// missingEntries returns the sorted IDs, without duplicates, of entries that a group or a producer refers to and
// that are not in the stream.
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
	s.Productions(func(_, _ []byte, entry streams.ID) {
		if !s.Has(entry) {
			ids = append(ids, entry)
		}
	})
	slices.SortFunc(ids, streams.ID.Compare)
	return slices.Compact(ids)
}

// removeGhosts removes placeholders.
func removeGhosts(r *command.Rebuilder, key []byte, s *streams.Stream, ghosts []streams.ID) {
	c := r.Collection("XDEL", key)
	trim := false
	for _, id := range ghosts {
		if s.MaxDeletedID().Less(id) {
			trim = true
		} else {
			c.Add(id.Append(nil))
		}
	}
	c.End()
	switch {
	case !trim:
	case s.Len() == 0:
		r.Command([]byte("XTRIM"), key, []byte("MAXLEN"), []byte("0"))
	default:
		r.Command([]byte("XTRIM"), key, []byte("MINID"), s.FirstID().Append(nil))
	}
}

// rebuildGroup encodes a consumer group. A run of pending entries that were delivered together is claimed together.
func rebuildGroup(r *command.Rebuilder, key []byte, g *streams.Group) {
	name := []byte(g.Name)
	r.Command([]byte("XGROUP"), []byte("CREATE"), key, name, g.LastID.Append(nil), []byte("ENTRIESREAD"),
		number(g.EntriesRead))
	for _, c := range g.Consumers() {
		r.Command([]byte("XGROUP"), []byte("CREATECONSUMER"), key, name, []byte(c.Name))
	}
	var run streams.NACK // the common properties of ids
	var ids [][]byte
	claim := func() {
		if len(ids) == 0 {
			return
		}
		args := append([][]byte{[]byte("XCLAIM"), key, name, []byte(run.Consumer.Name), []byte("0")}, ids...)
		r.Command(append(args, []byte("TIME"), number(run.DeliveryTime()), []byte("RETRYCOUNT"), number(run.DeliveryCount),
			[]byte("FORCE"), []byte("JUSTID"))...)
		ids = ids[:0]
	}
	g.Pending(streams.MinID, streams.MaxID, func(n *streams.NACK) bool {
		if n.Consumer == nil {
			return true
		}
		if len(ids) == command.RebuildElements || n.Consumer != run.Consumer || n.DeliveryTime() != run.DeliveryTime() ||
			n.DeliveryCount != run.DeliveryCount {
			claim()
			run = *n
		}
		ids = append(ids, n.ID.Append(nil))
		return true
	})
	claim()
	rebuildReleased(r, key, g)
}

// rebuildReleased encodes the pending entries without a consumer, in order. A run of entries with the same number of
// deliveries is released together.
func rebuildReleased(r *command.Rebuilder, key []byte, g *streams.Group) {
	count := int64(0)
	var ids [][]byte
	release := func() {
		if len(ids) == 0 {
			return
		}
		args := append([][]byte{[]byte("XNACK"), key, []byte(g.Name), []byte("FAIL"), []byte("IDS"), number(int64(len(ids)))},
			ids...)
		r.Command(append(args, []byte("RETRYCOUNT"), number(count), []byte("FORCE"))...)
		ids = ids[:0]
	}
	g.EachReleased(func(n *streams.NACK) {
		if len(ids) == command.RebuildElements || n.DeliveryCount != count {
			release()
			count = n.DeliveryCount
		}
		ids = append(ids, n.ID.Append(nil))
	})
	release()
}

// rebuildProducers encodes a stream's producers, without their counts of duplicates.
func rebuildProducers(r *command.Rebuilder, key []byte, s *streams.Stream) {
	how := s.Idempotence()
	if how == (streams.Idempotence{}) {
		return
	}
	r.Command([]byte("XCFGSET"), key, []byte("IDMP-DURATION"), number(int64(how.Duration)), []byte("IDMP-MAXSIZE"),
		number(int64(how.MaxSize)))
	s.Productions(func(producer, iid []byte, entry streams.ID) {
		r.Command([]byte("XIDMPRECORD"), key, producer, iid, entry.Append(nil))
	})
}
