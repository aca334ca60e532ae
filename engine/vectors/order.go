package vectors

import "sort"

// order has the ids of all elements, sorted by name, in blocks. It also finds elements by name.
type order struct {
	blocks [][]uint32 // none is empty
	names  func(id uint32) string
}

// blockSize is the number of ids in a full block.
const blockSize = 256

// find returns the place of the first name that is at least name: the block and the index in it. If there is none, the
// place is after the end of the last block.
func (o *order) find(name string) (block, i int) {
	// The place is in the last block that begins with name or below, or at the start of the next block.
	b := sort.Search(len(o.blocks), func(b int) bool { return o.names(o.blocks[b][0]) > name }) - 1
	if b < 0 {
		return 0, 0
	}
	ids := o.blocks[b]
	return b, sort.Search(len(ids), func(i int) bool { return o.names(ids[i]) >= name })
}

// get returns the id of the element with a name.
func (o *order) get(name string) (id uint32, ok bool) {
	b, i := o.find(name)
	if b >= len(o.blocks) || i == len(o.blocks[b]) || o.names(o.blocks[b][i]) != name {
		return 0, false
	}
	return o.blocks[b][i], true
}

// insert adds an element, whose name must be new.
func (o *order) insert(name string, id uint32) {
	if len(o.blocks) == 0 {
		o.blocks = append(o.blocks, append(make([]uint32, 0, 4), id))
		return
	}
	b, i := o.find(name)
	ids := o.blocks[b]
	if len(ids) == blockSize {
		half := blockSize / 2
		if b == len(o.blocks)-1 && i == blockSize {
			half = blockSize - 1 // ascending names leave full blocks
		}
		right := append(make([]uint32, 0, blockSize), ids[half:]...)
		ids = ids[:half]
		o.blocks[b] = ids
		o.blocks = append(o.blocks, nil)
		copy(o.blocks[b+2:], o.blocks[b+1:])
		o.blocks[b+1] = right
		if i > half {
			b, i, ids = b+1, i-half, right
		}
	}
	ids = append(ids, 0)
	copy(ids[i+1:], ids[i:])
	ids[i] = id
	o.blocks[b] = ids
}

// remove removes an element, which must exist.
func (o *order) remove(name string) {
	b, i := o.find(name)
	ids := append(o.blocks[b][:i], o.blocks[b][i+1:]...)
	o.blocks[b] = ids
	switch {
	case len(ids) == 0:
		o.drop(b)
	case b+1 < len(o.blocks) && len(ids)+len(o.blocks[b+1]) <= blockSize/2:
		o.blocks[b] = append(ids, o.blocks[b+1]...)
		o.drop(b + 1)
	case b > 0 && len(ids)+len(o.blocks[b-1]) <= blockSize/2:
		o.blocks[b-1] = append(o.blocks[b-1], ids...)
		o.drop(b)
	}
}

func (o *order) drop(b int) {
	copy(o.blocks[b:], o.blocks[b+1:])
	o.blocks[len(o.blocks)-1] = nil
	o.blocks = o.blocks[:len(o.blocks)-1]
}

// renumber changes the id of an element, which must exist.
func (o *order) renumber(name string, id uint32) {
	b, i := o.find(name)
	o.blocks[b][i] = id
}

// from calls fn with the ids from the first name that is at least name on, until fn returns false.
func (o *order) from(name string, fn func(id uint32) bool) {
	b, i := o.find(name)
	for ; b < len(o.blocks); b, i = b+1, 0 {
		for _, id := range o.blocks[b][i:] {
			if !fn(id) {
				return
			}
		}
	}
}
