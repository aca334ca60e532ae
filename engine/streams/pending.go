// Pending entries: delivered to a consumer and not yet acknowledged.

package streams

import "github.com/tidwall/btree"

// NACK is the record of a pending entry. Callers read it; the group changes it.
type NACK struct {
	ID            ID
	Consumer      *Consumer
	DeliveryTime  int64 // of the latest delivery
	DeliveryCount int64
}

// pendingList is a set of NACKs in the order of their IDs.
type pendingList struct {
	tree *btree.BTreeG[pendingItem]
}

// pendingItem is a NACK in the tree, with its key beside the pointer.
type pendingItem struct {
	id ID
	*NACK
}

func newPendingList() pendingList {
	return pendingList{btree.NewBTreeGOptions(
		func(a, b pendingItem) bool { return a.id.Less(b.id) },
		btree.Options{NoLocks: true},
	)}
}

func (l pendingList) len() int { return l.tree.Len() }

func (l pendingList) get(id ID) *NACK {
	item, _ := l.tree.Get(pendingItem{id: id})
	return item.NACK
}

func (l pendingList) add(n *NACK) { l.tree.Set(pendingItem{n.ID, n}) }

func (l pendingList) remove(id ID) { l.tree.Delete(pendingItem{id: id}) }

// bounds returns the first and the last ID.
func (l pendingList) bounds() (first, last ID, ok bool) {
	lo, ok := l.tree.Min()
	hi, _ := l.tree.Max()
	return lo.id, hi.id, ok
}

// ascend calls fn with the NACKs from start to end until it returns false. fn
// must not change the list.
func (l pendingList) ascend(start, end ID, fn func(*NACK) bool) {
	l.tree.Ascend(pendingItem{id: start}, func(item pendingItem) bool {
		return !end.Less(item.id) && fn(item.NACK)
	})
}
