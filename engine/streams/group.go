// Consumer groups: a group's position in the stream, and its consumers.

package streams

import (
	"cmp"
	"slices"
)

// UnknownEntriesRead is the EntriesRead of a group with an unknown count.
const UnknownEntriesRead = -1

// Group is a consumer group. Its exported fields are read-only.
//
// The group has every NACK. Its ID is also with exactly one consumer, the one it names, or with none if it was
// released.
type Group struct {
	Name        string
	LastID      ID    // of the last entry delivered
	EntriesRead int64 // number of entries ever added up to LastID, or UnknownEntriesRead
	stream      *Stream
	part        string // its part's name
	pending     sorted[NACK, *NACK]
	byDelivery  *deliveries // nil until the first request for idle entries
	released    int         // number of pending entries without a consumer
	lastRelease int64       // the time of the last released one
	consumers   []*Consumer // by name
}

// Consumer is a member of a group. Its exported fields are read-only.
type Consumer struct {
	Name       string
	SeenTime   int64 // of the latest command in its name: see Seen
	ActiveTime int64 // of the latest delivery or claim, -1 if none
	group      *Group
	part       string          // its part's name
	pending    sorted[ID, *ID] // the IDs of its NACKs, which the group has
}

// newGroup returns a group that is not yet in the list of its stream.
func newGroup(s *Stream, name string, last ID, entriesRead int64) *Group {
	part := groupPart(name)
	return &Group{Name: part[1:], LastID: last, EntriesRead: entriesRead, stream: s, part: part}
}

// newConsumer returns a consumer that is not yet in the list of its group.
func newConsumer(g *Group, name string, seen, active int64) *Consumer {
	part := consumerPart(g.Name, name)
	return &Consumer{
		Name: part[len(part)-len(name):], SeenTime: seen, ActiveTime: active, group: g, part: part,
	}
}

// Groups returns the groups in the byte order of their names. The slice is valid until a group is created or destroyed.
func (s *Stream) Groups() []*Group { return s.groups }

// Group returns the group with the given name, or nil.
func (s *Stream) Group(name []byte) *Group {
	if i, ok := search(s.groups, name); ok {
		return s.groups[i]
	}
	return nil
}

// CreateGroup adds a group. If the name is taken, created is false and g is the existing group.
func (s *Stream) CreateGroup(name []byte, last ID, entriesRead int64) (g *Group, created bool) {
	i, taken := search(s.groups, name)
	if taken {
		return s.groups[i], false
	}
	g = newGroup(s, string(name), last, entriesRead)
	s.note(g.part)
	s.groups = slices.Insert(s.groups, i, g)
	return g, true
}

// DestroyGroup removes a group and reports whether it existed.
func (s *Stream) DestroyGroup(name []byte) bool {
	i, ok := search(s.groups, name)
	if ok {
		s.noteGone(s.groups[i])
		s.groups = slices.Delete(s.groups, i, i+1)
	}
	return ok
}

// SetID sets the last delivered ID, and the number of entries added up to it, or UnknownEntriesRead.
func (g *Group) SetID(last ID, entriesRead int64) {
	g.stream.note(g.part)
	g.LastID, g.EntriesRead = last, entriesRead
}

// Consumers returns the consumers in the byte order of their names. The slice is valid until a consumer is created or
// deleted.
func (g *Group) Consumers() []*Consumer { return g.consumers }

// Consumer returns the consumer with the given name, or nil.
func (g *Group) Consumer(name []byte) *Consumer {
	if i, ok := search(g.consumers, name); ok {
		return g.consumers[i]
	}
	return nil
}

// CreateConsumer returns the consumer with the given name, and creates it if it is new.
func (g *Group) CreateConsumer(name []byte, now int64) (c *Consumer, created bool) {
	i, taken := search(g.consumers, name)
	if taken {
		return g.consumers[i], false
	}
	c = newConsumer(g, string(name), now, -1)
	g.stream.note(c.part)
	g.consumers = slices.Insert(g.consumers, i, c)
	return c, true
}

// DeleteConsumer removes a consumer with all its pending entries, and returns their number; ok is false if there is no
// such consumer.
func (g *Group) DeleteConsumer(name []byte) (pending int, ok bool) {
	i, ok := search(g.consumers, name)
	if !ok {
		return 0, false
	}
	c := g.consumers[i]
	g.stream.note(c.part)
	c.pending.ascend(MinID, MaxID, func(id *ID) bool {
		g.notePending(*id)
		g.pending.delete(*id)
		return true
	})
	g.boundDeliveries()
	g.consumers = slices.Delete(g.consumers, i, i+1)
	return c.pending.len(), true
}

// Seen records the time of a command in the consumer's name.
func (c *Consumer) Seen(now int64) {
	c.group.stream.note(c.part)
	c.SeenTime = now
}

// active records the time of a delivery or claim for the consumer.
func (c *Consumer) active(now int64) {
	c.group.stream.note(c.part)
	c.ActiveTime = now
}

// Lag returns how many entries of s the group has not received; ok is false if deletions make that unknown.
func (s *Stream) Lag(g *Group) (lag int64, ok bool) {
	if s.length == 0 {
		return 0, true
	}
	if first := s.FirstID(); g.LastID.Less(first) && s.maxDeletedID.Less(first) {
		return int64(s.length), true
	}
	if g.EntriesRead != UnknownEntriesRead && !s.deletedSince(g.LastID) {
		return s.entriesAdded - g.EntriesRead, true
	}
	read := s.countUpTo(g.LastID)
	return s.entriesAdded - read, read != UnknownEntriesRead
}

// deletedSince reports whether an entry at or after id was deleted between the remaining ones.
func (s *Stream) deletedSince(id ID) bool {
	return s.length > 0 && !s.maxDeletedID.IsZero() &&
		!s.maxDeletedID.Less(s.FirstID()) && !s.maxDeletedID.Less(id)
}

// countUpTo returns how many entries were ever added up to id, or UnknownEntriesRead. It is known at the end of the
// stream, and up to its first entry if nothing was deleted after that.
func (s *Stream) countUpTo(id ID) int64 {
	if s.entriesAdded == 0 {
		return 0
	}
	if s.length == 0 && !s.lastID.Less(id) || id == s.lastID {
		return s.entriesAdded
	}
	if s.lastID.Less(id) || !id.IsZero() && id.Less(s.maxDeletedID) {
		return UnknownEntriesRead
	}
	first := s.FirstID()
	if s.maxDeletedID.IsZero() || s.maxDeletedID.Less(first) {
		if id.Less(first) {
			return s.entriesAdded - int64(s.length)
		}
		if id == first {
			return s.entriesAdded - int64(s.length) + 1
		}
	}
	return UnknownEntriesRead
}

// advance moves the group's position to an entry being delivered. The caller notes the change.
func (g *Group) advance(s *Stream, id ID) {
	if g.EntriesRead != UnknownEntriesRead && !g.LastID.Less(s.FirstID()) && !s.deletedSince(g.LastID) {
		g.EntriesRead++
	} else if s.entriesAdded > 0 {
		g.EntriesRead = s.countUpTo(id)
	}
	g.LastID = id
}

// clone returns a deep copy, for stream s.
func (g *Group) clone(s *Stream) *Group {
	c := newGroup(s, g.Name, g.LastID, g.EntriesRead)
	for _, from := range g.consumers {
		to := newConsumer(c, from.Name, from.SeenTime, from.ActiveTime)
		c.consumers = append(c.consumers, to)
	}
	g.pending.ascend(MinID, MaxID, func(n *NACK) bool {
		at := c.pending.add(n.ID)
		if *at = *n; n.Consumer != nil {
			at.Consumer = c.Consumer(raw(n.Consumer.Name))
			*at.Consumer.pending.add(n.ID) = n.ID
		}
		return true
	})
	c.released, c.lastRelease = g.released, g.lastRelease
	return c
}

func (g *Group) name() string { return g.Name }

func (c *Consumer) name() string { return c.Name }

// search returns the index that the given name has or would have.
func search[T interface{ name() string }](list []T, name []byte) (int, bool) {
	return slices.BinarySearchFunc(list, name, func(e T, name []byte) int {
		return cmp.Compare(e.name(), string(name))
	})
}

// AckAll removes a pending entry from all groups, and reports whether any had it.
func (s *Stream) AckAll(id ID) bool {
	any := false
	for _, g := range s.groups {
		any = g.Ack(id) || any
	}
	return any
}

// Needed reports whether some group has not received an entry yet, or has it pending.
func (s *Stream) Needed(id ID) bool {
	for _, g := range s.groups {
		if g.LastID.Less(id) || g.pending.get(id) != nil {
			return true
		}
	}
	return false
}
