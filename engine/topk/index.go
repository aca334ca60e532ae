package topk

// An index is a hash table of the items' slots with linear probing: each element is a slot plus 1, or 0. A list with
// few items has none.
type index []int32

// fewItems is the number of items up to which find compares all.
const fewItems = 16

// find returns the slot of an item, -1 if it is not in the list.
func (l *List) find(item []byte) int32 {
	if l.index == nil {
		for slot := range l.nodes {
			if l.nodes[slot].item == string(item) {
				return int32(slot)
			}
		}
		return -1
	}
	for i := l.index.at(Print(item)); l.index[i] != 0; i = l.index.next(i) {
		if slot := l.index[i] - 1; l.nodes[slot].item == string(item) {
			return slot
		}
	}
	return -1
}

// at returns the position of a hash.
func (x index) at(hash uint32) int { return int(uint64(hash) * uint64(len(x)) >> 32) }

func (x index) next(i int) int {
	if i++; i < len(x) {
		return i
	}
	return 0
}

// add adds the slot of the last node, or of a node with a new item.
func (x *index) add(l *List, slot int32) {
	switch {
	case len(l.nodes) <= fewItems:
		return
	case 5*len(l.nodes) > 4*len(*x):
		*x = make(index, min(3*len(l.nodes), 4+int(l.k)*4/3))
		for slot := range l.nodes {
			x.insert(l, int32(slot))
		}
		return
	}
	x.insert(l, slot)
}

func (x index) insert(l *List, slot int32) {
	i := x.at(Print([]byte(l.nodes[slot].item)))
	for x[i] != 0 {
		i = x.next(i)
	}
	x[i] = slot + 1
}

// remove removes a slot. The node must still have the item.
func (x index) remove(l *List, slot int32) {
	if x == nil {
		return
	}
	i := x.at(Print([]byte(l.nodes[slot].item)))
	for x[i] != slot+1 {
		i = x.next(i)
	}
	x[i] = 0
	// The following slots may have been displaced by this one.
	for i = x.next(i); x[i] != 0; i = x.next(i) {
		moved := x[i] - 1
		x[i] = 0
		x.insert(l, moved)
	}
}
