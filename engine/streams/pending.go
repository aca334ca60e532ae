// Pending entries: delivered to a consumer and not yet acknowledged, or given back by one.

package streams

import (
	"cmp"
	"math"
	"slices"
)

// NACK is the record of a pending entry. Callers read it; the group changes it. It is valid until an entry begins or
// ceases to be pending in the group.
type NACK struct {
	ID       ID
	Consumer *Consumer // nil if the entry was released, and so is nobody's
	// time is that of the latest delivery. A released entry has one long before all others, which is later for what was
	// released later, so that those are claimed first that were released first, and before all others.
	time          int64
	DeliveryCount int64
}

// DeliveryTime returns when the entry was delivered, 0 if it was released since.
func (n *NACK) DeliveryTime() int64 {
	if n.Consumer == nil {
		return 0
	}
	return n.time
}

// Idle returns for how long the entry has been pending at the given time. A released one has been forever.
func (n *NACK) Idle(now int64) int64 {
	if n.Consumer == nil {
		return math.MaxInt64
	}
	return now - n.time
}

// Owner returns the name of the consumer, which is empty if the entry was released.
func (n *NACK) Owner() string {
	if n.Consumer == nil {
		return ""
	}
	return n.Consumer.Name
}

// count notes one more delivery. What was delivered too often to be counted stays so.
func (n *NACK) count() {
	if n.DeliveryCount < math.MaxInt64 {
		n.DeliveryCount++
	}
}

// Release ends that a pending entry is its consumer's, and sets how often it counts as delivered. It is first to be
// claimed, after what was released before. The caller has found n in the group.
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

// AddReleased makes an entry pending that is not, and is nobody's.
func (g *Group) AddReleased(id ID, deliveries int64) {
	g.notePending(id)
	n := g.pending.add(id)
	n.ID = id
	n.DeliveryCount = deliveries
	g.released++
	g.delivered(n, g.nextRelease())
}

// nextRelease returns the time of what is released now.
func (g *Group) nextRelease() int64 {
	if g.released <= 1 { // nothing else is
		g.lastRelease = firstRelease
	}
	g.lastRelease++
	return g.lastRelease
}

// Times between these are of released entries, and others are not.
const (
	firstRelease = math.MinInt64
	endOfRelease = math.MinInt64 / 2
)

// Released returns how many of the pending entries are nobody's.
func (g *Group) Released() int { return g.released }

// EachReleased calls fn with the pending entries that are nobody's, in the order in which they were released. fn must
// not change the group.
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

// forget notes that n goes, or gets a consumer. The caller notes the change.
func (g *Group) forget(n *NACK) {
	if n.Consumer == nil {
		g.released--
	} else {
		n.Consumer.pending.delete(n.ID)
	}
}

func (n *NACK) key() ID { return n.ID }

// key makes the IDs of a consumer's pending entries a sorted set.
func (id *ID) key() ID { return *id }
