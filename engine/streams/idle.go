// Finding the entries that have been pending for long.

package streams

import (
	"math"
	"unsafe"
)

// delivery is when a pending entry was delivered.
type delivery struct {
	time int64
	id   ID
}

func (d delivery) less(o delivery) bool {
	return d.time < o.time || d.time == o.time && d.id.Less(o.id)
}

// deliveries has the pending entries of a group in the order of their delivery: a binary heap, whose first record is
// the earliest. There is one for every pending entry that is in the stream. Others are left over of entries that have
// been delivered again, or are not pending any more; they are passed over when they come up, and are never more than
// a multiple of the pending ones.
//
// A group has it from the first time that somebody asks for idle entries: groups in which nobody does pay nothing.
type deliveries struct {
	heap []delivery
	// gone is the least pending ID that is above the stream's last one and has no record: an entry with it may be added again.
	// It is zero if no ID is.
	gone ID
}

// keptDeliveries is how many records a group has room for that has nothing pending, and how many left over are not
// worth a rebuild.
const keptDeliveries = 64

// push adds a record. It takes no time if the record is the latest, as it is while time goes forward.
func (d *deliveries) push(r delivery) {
	d.heap = append(d.heap, r)
	for i := len(d.heap) - 1; i > 0; {
		parent := (i - 1) / 2
		if !d.heap[i].less(d.heap[parent]) {
			return
		}
		d.heap[i], d.heap[parent] = d.heap[parent], d.heap[i]
		i = parent
	}
}

// pop takes the earliest record out, which there must be.
func (d *deliveries) pop() delivery {
	first, last := d.heap[0], len(d.heap)-1
	d.heap[0] = d.heap[last]
	d.heap = d.heap[:last]
	d.down(0)
	return first
}

// down moves the record at i behind those that are earlier.
func (d *deliveries) down(i int) {
	for {
		child := 2*i + 1
		if child >= len(d.heap) {
			return
		}
		if right := child + 1; right < len(d.heap) && d.heap[right].less(d.heap[child]) {
			child = right
		}
		if !d.heap[child].less(d.heap[i]) {
			return
		}
		d.heap[i], d.heap[child] = d.heap[child], d.heap[i]
		i = child
	}
}

// build makes the records of what is pending in g.
func (d *deliveries) build(g *Group) {
	d.gone = ID{}
	if d.heap = d.heap[:0]; cap(d.heap) > keptDeliveries {
		d.heap = make([]delivery, 0, g.pending.len()+g.pending.len()/8)
	}
	g.pending.ascend(MinID, MaxID, func(n *NACK) bool {
		d.heap = append(d.heap, delivery{n.time, n.ID})
		return true
	})
	for i := len(d.heap)/2 - 1; i >= 0; i-- {
		d.down(i)
	}
}

// memory returns how many bytes the records take.
func (d *deliveries) memory() int {
	if d == nil {
		return 0
	}
	return cap(d.heap) * int(unsafe.Sizeof(delivery{}))
}

// delivered notes that n is delivered at the given time. The caller notes the change.
func (g *Group) delivered(n *NACK, time int64) {
	n.time = time
	if g.byDelivery != nil {
		g.byDelivery.push(delivery{time, n.ID})
		g.boundDeliveries()
	}
}

// boundDeliveries keeps the records in proportion to what is pending. It must be called when a record was added, and
// when something is not pending any more.
func (g *Group) boundDeliveries() {
	if d := g.byDelivery; d != nil && len(d.heap) > 2*g.pending.len()+keptDeliveries {
		d.build(g)
	}
}

// earliest returns the record of the entry in s that has been pending for longest, which stays where it is. Records
// that come up and are left over go, and so do those of entries that are not in the stream any more: they cannot be
// delivered. SetID has the records made anew if such an ID could come back, and so does an entry that has come back.
func (g *Group) earliest(s *Stream) (d delivery, ok bool) {
	if g.pending.len() == 0 {
		return delivery{}, false
	}
	if g.byDelivery == nil {
		g.byDelivery = &deliveries{}
		g.byDelivery.build(g)
	}
	records := g.byDelivery
	if !records.gone.IsZero() && !s.lastID.Less(records.gone) {
		records.build(g)
	}
	for len(records.heap) > 0 {
		d = records.heap[0]
		if n := g.pending.get(d.id); n != nil && n.time == d.time {
			if s.Has(d.id) {
				return d, true
			}
			if s.lastID.Less(d.id) && (records.gone.IsZero() || d.id.Less(records.gone)) {
				records.gone = d.id
			}
		}
		records.pop()
	}
	return delivery{}, false
}

// EarliestDelivery returns when the entry was delivered that has been pending for longest of those that are in the
// stream; ok is false if there is none.
func (g *Group) EarliestDelivery(s *Stream) (time int64, ok bool) {
	d, ok := g.earliest(s)
	return d.time, ok
}

// Idle reports whether ClaimIdle would find something.
func (g *Group) Idle(s *Stream, minIdle, now int64) bool {
	d, ok := g.earliest(s)
	return ok && d.time <= latestIdle(minIdle, now)
}

// latestIdle returns when an entry must have been delivered, at the latest, to have been idle for minIdle. Without a
// minimum all have, also those whose time is in the future because the clock was set back.
func latestIdle(minIdle, now int64) int64 {
	if minIdle <= 0 {
		return math.MaxInt64
	}
	return now - minIdle
}

// ClaimIdle delivers to c what has been pending for at least minIdle, for whatever consumer, and is in the stream:
// those that have been idle for longest first, and at most count of them if count is positive. It returns how many.
// fn is called with each before that, how long it has been idle and how often it had been delivered; it returns false
// to have no more delivered, neither this one, and must not change the stream.
func (g *Group) ClaimIdle(s *Stream, c *Consumer, minIdle, now int64, count int,
	fn func(e Entry, idle, deliveries int64) bool) int {
	latest := latestIdle(minIdle, now)
	// All are taken out before any comes back with its new time, which may be idle enough, too.
	var idle []ID
	for d, ok := g.earliest(s); ok && d.time <= latest; d, ok = g.earliest(s) {
		g.byDelivery.pop()
		if n := len(idle); n > 0 && idle[n-1] == d.id {
			continue // it was delivered twice at the same time
		}
		if idle = append(idle, d.id); len(idle) == count {
			break
		}
	}
	claimed := 0
	for ; claimed < len(idle); claimed++ {
		id := idle[claimed]
		n := g.pending.get(id)
		e, _ := s.Get(id)
		if !fn(e, max(now-n.DeliveryTime(), 0), n.DeliveryCount) {
			break
		}
		g.notePending(id)
		n.assign(c)
		n.count()
		g.delivered(n, now)
	}
	if claimed > 0 {
		c.active(now)
	}
	for _, id := range idle[claimed:] { // which stay as they were
		g.byDelivery.push(delivery{g.pending.get(id).time, id})
	}
	return claimed
}
