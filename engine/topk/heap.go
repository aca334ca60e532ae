package topk

import (
	"encoding/binary"
	"iter"
)

// The heap has k places from the start. Place 0 has the item with the lowest count; the children of place i are 2i+1
// and 2i+2. A free place counts as an item with count 0. A new item takes place 0 and sinks. So items with equal counts
// are listed, and expelled, in the order of Redis.
//
// The second array stores the places, four bytes each: the item's slot plus 1, or 0 for a free place.

const (
	placeSize  = 4
	inHeapPage = 1024
	heapArray  = 1
)

// slotAt returns the slot of the item in a place, -1 if the place is free.
func (l *List) slotAt(i int) int32 {
	b := l.Array(heapArray).Page(i / inHeapPage)
	if b == nil {
		return -1
	}
	return int32(binary.LittleEndian.Uint32(b[i%inHeapPage*placeSize:])) - 1
}

// countAt returns the count of the item in a place, 0 if it is free.
func (l *List) countAt(i int) uint32 {
	slot := l.slotAt(i)
	if slot < 0 {
		return 0
	}
	return l.nodes[slot].count
}

// put moves the item of a slot into a place; slot -1 frees the place.
func (l *List) put(i int, slot int32) {
	if l.slotAt(i) == slot {
		return
	}
	binary.LittleEndian.PutUint32(l.Write(heapArray, i/inHeapPage)[i%inHeapPage*placeSize:], uint32(slot+1))
	if slot >= 0 {
		l.nodes[slot].at = int32(i)
	}
}

// sink moves the item in a place down: first past a child with at most its count, then past children with lower counts.
func (l *List) sink(i int) {
	slot := l.slotAt(i)
	count := l.nodes[slot].count
	for first := true; ; first = false {
		child := 2*i + 1
		if child >= int(l.k) {
			break
		}
		least := l.countAt(child)
		if child+1 < int(l.k) {
			if right := l.countAt(child + 1); right < least {
				child, least = child+1, right
			}
		}
		if least > count || least == count && !first {
			break
		}
		l.put(i, l.slotAt(child))
		i = child
	}
	l.put(i, slot)
}

// places iterates over the occupied places in order, and the slots of their items.
func (l *List) places() iter.Seq2[int, int32] {
	return func(yield func(i int, slot int32) bool) {
		for page, b := range l.Array(heapArray).All() {
			for j := 0; j < len(b); j += placeSize {
				if slot := binary.LittleEndian.Uint32(b[j:]); slot != 0 && !yield(page*inHeapPage+j/placeSize, int32(slot-1)) {
					return
				}
			}
		}
	}
}

// heapIsEmpty reports whether no place was ever used.
func (l *List) heapIsEmpty() bool {
	for range l.Array(heapArray).All() {
		return false
	}
	return true
}

// hasPlaces reports whether each item has exactly one place, and records it. Lists of the module may violate the order
// of the heap.
func (l *List) hasPlaces() bool {
	n := 0
	for i, slot := range l.places() {
		if i >= int(l.k) || slot < 0 || int(slot) >= len(l.nodes) || l.nodes[slot].at >= 0 {
			return false
		}
		l.nodes[slot].at = int32(i)
		n++
	}
	return n == len(l.nodes)
}

// noteHeap marks the whole heap as changed, for a list stored without one.
func (l *List) noteHeap() {
	l.heapless = false
	for page := range l.Array(heapArray).All() {
		l.Write(heapArray, page)
	}
}
