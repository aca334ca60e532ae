// Pending entries: delivered to a consumer and not yet acknowledged, or released by one.

package streams

import (
	"cmp"
	"math"
	"slices"
)

// NACK is the record of a pending entry. Callers read it; the group changes it. It is valid until an entry starts or
// stops being pending in the group.
type NACK struct {
	ID       ID
	Consumer *Consumer // nil if the entry was released
	// time is the time of the latest delivery. A released entry has a time long before all others, later ones for later
	// releases, so that released entries are claimed first, in the order of release.
	time          int64
	DeliveryCount int64
}

// DeliveryTime returns when the entry was delivered, 0 if it was released afterwards.
func (n *NACK) DeliveryTime() int64 {
	if n.Consumer == nil {
		return 0
	}
	return n.time
}

// Idle returns how long the entry has been pending at the given time. For a released one that is forever.
func (n *NACK) Idle(now int64) int64 {
	if n.Consumer == nil {
		return math.MaxInt64
	}
	return now - n.time
}

// Owner returns the name of the consumer, empty if the entry was released.
func (n *NACK) Owner() string {
	if n.Consumer == nil {
		return ""
	}
	return n.Consumer.Name
}

// count adds a delivery. The counter stops at its maximum.
func (n *NACK) count() {
	if n.DeliveryCount < math.MaxInt64 {
		n.DeliveryCount++
	}
}

// Release takes a pending entry from its consumer, and sets its number of deliveries. It will be claimed before all
// others except those released earlier. The caller has found n in the group.
func (g *Group) Release(n *NACK, deliveries int64) {
	g.notePending(n.ID)
	if n.Consumer != nil {
		n.Consumer.pending.delete(n.ID)
		n.Consumer = nil
		g.released++
	}
	n.DeliveryCount = deliveries
	g.delivered(n, g.nextRelease())
}

// AddReleased adds a pending entry without a consumer. It must not be pending.
func (g *Group) AddReleased(id ID, deliveries int64) {
	g.notePending(id)
	n := g.pending.add(id)
	n.ID = id
	n.DeliveryCount = deliveries
	g.released++
	g.delivered(n, g.nextRelease())
}

// nextRelease returns the time for an entry released now.
func (g *Group) nextRelease() int64 {
	if g.released <= 1 { // it is the only one
		g.lastRelease = firstRelease
	}
	g.lastRelease++
	return g.lastRelease
}

// Times in this range belong to released entries, and only to these.
const (
	firstRelease = math.MinInt64
	endOfRelease = math.MinInt64 / 2
)

// Released returns the number of pending entries without a consumer.
func (g *Group) Released() int { return g.released }

// EachReleased calls fn with the pending entries without a consumer, in the order of their release. fn must not change
// the group.
func (g *Group) EachReleased(fn func(*NACK)) {
	if g.released == 0 {
		return
	}
	list := make([]*NACK, 0, g.released)
	g.pending.ascend(MinID, MaxID, func(n *NACK) bool {
		if n.Consumer == nil {
			list = append(list, n)
		}
		return true
	})
	slices.SortFunc(list, func(a, b *NACK) int { return cmp.Compare(a.time, b.time) })
	for _, n := range list {
		fn(n)
	}
}

// forget removes n from its consumer or from the released ones. The caller notes the change.
func (g *Group) forget(n *NACK) {
	if n.Consumer == nil {
		g.released--
	} else {
		n.Consumer.pending.delete(n.ID)
	}
}

func (n *NACK) key() ID { return n.ID }

// key lets a sorted set hold the IDs of a consumer's pending entries.
func (id *ID) key() ID { return *id }
