// Package expiry keeps items in the order of their deadlines: the keys of a shard, the blocked clients of an event
// loop. It knows no clock.
package expiry

import "unsafe"

// Item is an element of an Index. The index tells each item its position, so that it can be moved or removed without a
// search.
type Item interface {
	// SetSlot stores the item's position in the index; 0 means that it is in none.
	SetSlot(slot int)
	// Slot returns the last value of SetSlot.
	Slot() int
}

// arity of the heap: four children share a cache line of deadlines.
const arity = 4

// Index orders items by deadline. It is a heap: the next deadline is available at once, and adding, moving and removing
// cost O(log n). The zero value is empty and ready.
type Index[T Item] struct {
	// nodes is a heap: no node has a later deadline than its children. The item in nodes[i] has slot i+1.
	nodes []node[T]
}

type node[T Item] struct {
	at   int64
	item T
}

// Len returns the number of items.
func (x *Index[T]) Len() int { return len(x.nodes) }

// Set gives the item the deadline at, adding it if it is not in the index.
func (x *Index[T]) Set(item T, at int64) {
	i := item.Slot() - 1
	if i < 0 {
		i = len(x.nodes)
		x.nodes = append(x.nodes, node[T]{})
		x.up(i, node[T]{at, item})
		return
	}
	x.place(i, node[T]{at, item})
}

// Remove removes the item from the index, if it is there.
func (x *Index[T]) Remove(item T) {
	i := item.Slot() - 1
	if i < 0 {
		return
	}
	item.SetSlot(0)
	last := len(x.nodes) - 1
	moved := x.nodes[last]
	x.nodes[last] = node[T]{}
	x.nodes = x.nodes[:last]
	if i < last {
		x.place(i, moved)
	}
	if c := cap(x.nodes); c > minKept && last < c/4 {
		x.nodes = append(make([]node[T], 0, c/2), x.nodes...)
	}
}

// minKept is the number of items for which room is always kept.
const minKept = 64

// Min returns the item with the earliest deadline.
func (x *Index[T]) Min() (item T, at int64, ok bool) {
	if len(x.nodes) == 0 {
		return item, 0, false
	}
	return x.nodes[0].item, x.nodes[0].at, true
}

// At returns the deadline of an item, which must be in the index.
func (x *Index[T]) At(item T) int64 { return x.nodes[item.Slot()-1].at }

// AllBy reports whether every item's deadline is at or earlier. It scans the leaves from the end, where late deadlines
// tend to be.
func (x *Index[T]) AllBy(at int64) bool {
	for i := len(x.nodes) - 1; i >= 0 && i*arity+1 >= len(x.nodes); i-- {
		if x.nodes[i].at > at {
			return false
		}
	}
	return true
}

// MemoryUsage returns how many bytes the index takes, without its items.
func (x *Index[T]) MemoryUsage() int { return cap(x.nodes) * int(unsafe.Sizeof(node[T]{})) }

// Item returns item i, from 0 to Len-1, in no particular order.
func (x *Index[T]) Item(i int) T { return x.nodes[i].item }

// Each calls fn for every item, in no order, until fn returns false. The index must not change meanwhile.
func (x *Index[T]) Each(fn func(item T, at int64) bool) {
	for _, n := range x.nodes {
		if !fn(n.item, n.at) {
			return
		}
	}
}

// Clear removes every item. It does not reset their slots: the caller is expected to drop the items too.
func (x *Index[T]) Clear() { x.nodes = nil }

func (x *Index[T]) place(i int, n node[T]) {
	if i > 0 && n.at < x.nodes[(i-1)/arity].at {
		x.up(i, n)
		return
	}
	x.down(i, n)
}

func (x *Index[T]) up(i int, n node[T]) {
	for i > 0 {
		parent := (i - 1) / arity
		if x.nodes[parent].at <= n.at {
			break
		}
		x.put(i, x.nodes[parent])
		i = parent
	}
	x.put(i, n)
}

func (x *Index[T]) down(i int, n node[T]) {
	for {
		first := i*arity + 1
		if first >= len(x.nodes) {
			break
		}
		least := first
		for c := first + 1; c < min(first+arity, len(x.nodes)); c++ {
			if x.nodes[c].at < x.nodes[least].at {
				least = c
			}
		}
		if x.nodes[least].at >= n.at {
			break
		}
		x.put(i, x.nodes[least])
		i = least
	}
	x.put(i, n)
}

func (x *Index[T]) put(i int, n node[T]) {
	x.nodes[i] = n
	n.item.SetSlot(i + 1)
}
