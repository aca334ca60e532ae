// Delivery through a group: reading, acknowledging, claiming.

package streams

import "math"

// ReadNew delivers the entries after the group's LastID to c, at most count if that is positive, and returns how many.
// They become pending unless noAck. fn is called with each; it must not change the stream.
func (g *Group) ReadNew(s *Stream, c *Consumer, count int, noAck bool, now int64, fn func(Entry)) int {
	start, ok := g.LastID.Next()
	if !ok {
		return 0
	}
	read := 0
	s.Range(start, MaxID, false, func(e Entry) bool {
		if read == 0 {
			s.note(g.part)
			if !noAck {
				c.active(now)
			}
		}
		g.advance(s, e.ID)
		if !noAck {
			g.AddPending(e.ID, c, now, 1)
		}
		fn(e)
		read++
		return read != count
	})
	return read
}

// ReadHistory delivers again c's pending entries after the given ID, at most count if that is positive, and returns how
// many. fn is called with each. If an entry is no longer in the stream, exists is false and e has only an ID. fn must
// not change the stream.
func (g *Group) ReadHistory(s *Stream, c *Consumer, after ID, count int, now int64, fn func(e Entry, exists bool)) int {
	start, ok := after.Next()
	if !ok {
		return 0
	}
	read := 0
	c.pending.ascend(start, MaxID, func(id *ID) bool {
		e, exists := s.Get(*id)
		if exists {
			g.notePending(*id)
			n := g.pending.get(*id)
			n.count()
			g.delivered(n, now)
		}
		e.ID = *id
		fn(e, exists)
		read++
		return read != count
	})
	return read
}

// AddPending makes id pending for c with the given values, even if it was already pending for c or another consumer.
func (g *Group) AddPending(id ID, c *Consumer, deliveryTime, deliveryCount int64) *NACK {
	g.notePending(id)
	n := g.pending.get(id)
	if n == nil {
		n = g.pending.add(id)
		n.ID = id
		g.released++ // until assign
	}
	n.assign(c)
	n.DeliveryCount = deliveryCount
	g.delivered(n, deliveryTime)
	return n
}

// assign gives n, a NACK of the group, to c. The caller notes the change.
func (n *NACK) assign(c *Consumer) {
	if n.Consumer == c {
		return
	}
	c.group.forget(n)
	n.Consumer = c
	*c.pending.add(n.ID) = n.ID
}

// Ack removes a pending entry, and reports whether there was one.
func (g *Group) Ack(id ID) bool {
	n := g.pending.get(id)
	if n == nil {
		return false
	}
	g.notePending(id)
	g.forget(n)
	g.pending.delete(id)
	g.boundDeliveries()
	return true
}

// PendingLen returns the number of pending entries.
func (g *Group) PendingLen() int { return g.pending.len() }

// PendingBounds returns the first and the last pending ID.
func (g *Group) PendingBounds() (first, last ID, ok bool) {
	if g.pending.len() == 0 {
		return ID{}, ID{}, false
	}
	return g.pending.at(g.pending.first()).ID, g.pending.last().ID, true
}

// Pending calls fn with the pending entries from start to end until fn returns false. fn must not change the group.
func (g *Group) Pending(start, end ID, fn func(*NACK) bool) { g.pending.ascend(start, end, fn) }

// FindPending returns the record of a pending entry, or nil.
func (g *Group) FindPending(id ID) *NACK { return g.pending.get(id) }

// PendingLen returns the number of the consumer's pending entries.
func (c *Consumer) PendingLen() int { return c.pending.len() }

// Pending calls fn with the consumer's pending entries from start to end until fn returns false. fn must not change the
// group.
func (c *Consumer) Pending(start, end ID, fn func(*NACK) bool) {
	c.pending.ascend(start, end, func(id *ID) bool { return fn(c.group.pending.get(*id)) })
}

// ClaimOptions says which entries to claim, and what to record.
type ClaimOptions struct {
	Now           int64
	MinIdle       int64 // skip entries delivered more recently than this
	DeliveryTime  int64 // the new value; Now unless the command sets it
	DeliveryCount int64 // the new value; if negative, add one unless JustID
	JustID        bool
	Force         bool // also claim an entry of the stream that is not pending
}

// Claim makes id pending for c. If it cannot, n is nil; dropped reports whether id was pending although it is no longer
// in the stream: such a record is removed.
func (g *Group) Claim(s *Stream, id ID, c *Consumer, opt ClaimOptions) (n *NACK, dropped bool) {
	if !s.Has(id) {
		return nil, g.Ack(id)
	}
	n = g.pending.get(id)
	switch {
	case n == nil && !opt.Force:
		return nil, false
	case n == nil:
		n = g.AddPending(id, c, opt.DeliveryTime, 1)
	case opt.MinIdle > 0 && n.Idle(opt.Now) < opt.MinIdle:
		return nil, false
	default:
		g.notePending(id)
	}
	n.assign(c)
	g.delivered(n, opt.DeliveryTime)
	if opt.DeliveryCount >= 0 {
		n.DeliveryCount = opt.DeliveryCount
	} else if !opt.JustID {
		n.count()
	}
	c.active(opt.Now)
	return n, false
}

// attemptsPerCount limits how many pending entries AutoClaim examines for each one that it may return.
const attemptsPerCount = 10

// AutoClaim gives c the entries from start on that have been pending for at least minIdle, and calls fn with each; fn
// must not change the stream. It removes records of entries that are no longer in the stream, and returns their IDs in
// dropped. At most count entries are claimed or dropped. next is where to continue, 0-0 at the end.
func (g *Group) AutoClaim(s *Stream, c *Consumer, start ID, minIdle, now int64, count int, justID bool,
	fn func(*NACK, Entry)) (next ID, dropped []ID) {
	attempts := math.MaxInt
	if count < math.MaxInt/attemptsPerCount {
		attempts = count * attemptsPerCount
	}
	g.pending.ascend(start, MaxID, func(n *NACK) bool {
		if attempts <= 0 || count <= 0 {
			next = n.ID
			return false
		}
		attempts--
		e, ok := s.Get(n.ID)
		switch {
		case !ok:
			dropped = append(dropped, n.ID)
			count--
		case minIdle <= 0 || n.Idle(now) >= minIdle:
			g.notePending(n.ID)
			n.assign(c)
			g.delivered(n, now)
			if !justID {
				n.count()
			}
			c.active(now)
			fn(n, e)
			count--
		}
		return true
	})
	for _, id := range dropped {
		g.Ack(id)
	}
	return next, dropped
}
