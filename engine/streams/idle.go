// Finding entries that have been pending for a long time.

package streams

import (
	"math"
	"unsafe"
)

// delivery records when a pending entry was delivered.
type delivery struct {
	time int64
	id   ID
}

func (d delivery) less(o delivery) bool {
	return d.time < o.time || d.time == o.time && d.id.Less(o.id)
}

// deliveries has the pending entries of a group in the order of delivery: a binary heap whose first record is the
// earliest. Every pending entry that is in the stream has a record. Stale records remain of entries that were delivered
// again or are no longer pending; they are skipped at the top of the heap, and are never more than a multiple of the
// pending entries.
//
// A group has it from its first request for idle entries on: other groups pay nothing.
type deliveries struct {
	heap []delivery
	// gone is the lowest pending ID that is above the stream's last ID and has no record: such an entry may be added
	// again. It is zero if there is none.
	gone ID
}

// keptDeliveries is the room kept in a group without pending entries, and the number of stale records that are not
// worth a rebuild.
const keptDeliveries = 64

// push adds a record. That takes constant time if the record is the latest, as usual while time moves forward.
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

// pop removes and returns the earliest record, which must exist.
func (d *deliveries) pop() delivery {
	first, last := d.heap[0], len(d.heap)-1
	d.heap[0] = d.heap[last]
	d.heap = d.heap[:last]
	d.down(0)
	return first
}

// down moves the record at i below earlier ones.
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

// build rebuilds the records from the pending entries of g.
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

// delivered records the delivery of n at the given time. The caller notes the change.
func (g *Group) delivered(n *NACK, time int64) {
	n.time = time
	if g.byDelivery != nil {
		g.byDelivery.push(delivery{time, n.ID})
		g.boundDeliveries()
	}
}

// boundDeliveries keeps the number of records in proportion to the pending entries. It must be called after a record
// was added, and after an entry has stopped being pending.
func (g *Group) boundDeliveries() {
	if d := g.byDelivery; d != nil && len(d.heap) > 2*g.pending.len()+keptDeliveries {
		d.build(g)
	}
}

// earliest returns the record of the entry of s that has been pending the longest, and leaves it in the heap. It
// removes stale records at the top, and those of entries that are no longer in the stream: they cannot be delivered.
// SetID, or the return of such an entry, causes a rebuild if such an ID can come back.
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

// EarliestDelivery returns the delivery time of the entry in the stream that has been pending the longest; ok is false
// if there is none.
func (g *Group) EarliestDelivery(s *Stream) (time int64, ok bool) {
	d, ok := g.earliest(s)
	return d.time, ok
}

// Idle reports whether ClaimIdle would find something.
func (g *Group) Idle(s *Stream, minIdle, now int64) bool {
	d, ok := g.earliest(s)
	return ok && d.time <= latestIdle(minIdle, now)
}

// latestIdle returns the latest delivery time of an entry that has been idle for minIdle. Without a minimum any time
// qualifies, even a future one after the clock was set back.
func latestIdle(minIdle, now int64) int64 {
	if minIdle <= 0 {
		return math.MaxInt64
	}
	return now - minIdle
}

// ClaimIdle delivers to c the entries of the stream that have been pending for at least minIdle, for any consumer:
// longest idle first, at most count if that is positive. It returns how many. Before each delivery it calls fn with the
// entry, its idle time and its earlier deliveries; fn returns false to stop before that entry, and must not change the
// stream.
func (g *Group) ClaimIdle(s *Stream, c *Consumer, minIdle, now int64, count int,
	fn func(e Entry, idle, deliveries int64) bool) int {
	latest := latestIdle(minIdle, now)
	// All are removed from the heap before any comes back with its new time, which may be idle enough again.
	var idle []ID
	for d, ok := g.earliest(s); ok && d.time <= latest; d, ok = g.earliest(s) {
		g.byDelivery.pop()
		if n := len(idle); n > 0 && idle[n-1] == d.id {
			continue // delivered twice at the same time
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
	for _, id := range idle[claimed:] { // these stay as they were
		g.byDelivery.push(delivery{g.pending.get(id).time, id})
	}
	return claimed
}
