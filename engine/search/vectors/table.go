package vectors

import (
	"math/bits"
	"sync/atomic"

	"github.com/atomredis/atomredis/engine/vectors/graph"
)

// table finds the first node of a document. It has nodes plus firstNode, at the slot to which a document's number
// hashes or after it. Removal leaves a mark, so that concurrent readers find all others; a full table is replaced by a
// new one.
type table struct {
	slots []uint32 // accessed atomically
	used  int      // slots that are not empty
}

// The values of a slot without a node.
const (
	empty     = 0
	gone      = 1
	firstNode = 2
)

// newTable returns a table with room for twice n nodes.
func newTable(n int) *table { return &table{slots: make([]uint32, max(4, 1<<bits.Len(uint(2*n))))} }

// place returns the slot where the search for a document starts.
func (t *table) place(doc uint64) int { return int(graph.Mix(doc)) & (len(t.slots) - 1) }

// slotOf returns the slot and the first node of a document.
func (x *Index) slotOf(t *table, doc uint64) (slot int, node uint32, ok bool) {
	for i := t.place(doc); ; i = (i + 1) & (len(t.slots) - 1) {
		switch s := atomic.LoadUint32(&t.slots[i]); {
		case s == empty:
			return 0, 0, false
		case s != gone && x.doc(s-firstNode) == doc:
			return i, s - firstNode, true
		}
	}
}

// find returns the first node of a document.
func (x *Index) find(doc uint64) (node uint32, ok bool) {
	_, node, ok = x.slotOf(x.table.Load(), doc)
	return node, ok
}

// enter adds a document to the table.
func (x *Index) enter(doc uint64, node uint32) {
	t := x.table.Load()
	if 4*(t.used+1) > 3*len(t.slots) {
		grown := newTable(x.Len() + 1)
		for _, s := range t.slots {
			if s >= firstNode {
				grown.put(x.doc(s-firstNode), s)
			}
		}
		grown.put(doc, node+firstNode)
		x.table.Store(grown)
		return
	}
	t.put(doc, node+firstNode)
}

func (t *table) put(doc uint64, s uint32) {
	i := t.place(doc)
	for t.slots[i] != empty {
		i = (i + 1) & (len(t.slots) - 1)
	}
	atomic.StoreUint32(&t.slots[i], s)
	t.used++
}

// leave frees the slot of a document.
func (t *table) leave(slot int) { atomic.StoreUint32(&t.slots[slot], gone) }
