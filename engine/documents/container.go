package documents

import "sort"

// container is what an array or an object contains. It is in one piece while it is small.
type container struct {
	vals []Value
	keys []string // of an object: the names of its members, as vals
	// takes is how much the container takes, while it is part of a document and has no pages: in its low 16 bits where it
	// is stored, in the others in memory beside the Value that points to it.
	takes uint64
	big   *pages // if it is not nil, vals and keys are nil
}

const takesShift = 16

func (c *container) size() int { return int(c.takes & (1<<takesShift - 1)) }
func (c *container) mem() int  { return int(c.takes >> takesShift) }

func (c *container) setTakes(size, mem int) { c.takes = uint64(mem)<<takesShift | uint64(size) }

// pages is a container that is divided.
type pages struct {
	id     uint64 // the first half of the names of its parts; see stored.go
	object bool
	gone   bool // no part of the document any more
	chunks []*chunk
	count  int // of elements
	mem    int // that it takes in all, beside the Value that points to it
	// starts[k] is the index of the first element of chunk k, for k < known.
	starts []int
	known  int
	index  map[string]*chunk // by the names of an object's members, if there are several chunks
}

// chunk is a page of a container.
type chunk struct {
	vals []Value
	keys []string
	size int    // that it takes where it is stored
	key  uint64 // the second half of the name of its part: ascending from chunk to chunk
}

const (
	// maxFlat is the stored size in bytes from which on a container is divided.
	maxFlat = 2048
	// maxChunk is the stored size in bytes from which on a chunk of several elements is divided, and fullChunk how much a
	// new one gets.
	maxChunk  = 4096
	fullChunk = 3 * maxChunk / 4
	// firstKey is the key of the first chunk, and keyStep the distance to the next one.
	firstKey = 1 << 63
	keyStep  = 1 << 36
)

func (c *container) len() int {
	if c.big != nil {
		return c.big.count
	}
	return len(c.vals)
}

// pages returns how many pieces there are.
func (c *container) pages() int {
	if c.big != nil {
		return len(c.big.chunks)
	}
	return 1
}

// page returns what is in a piece.
func (c *container) page(k int) (vals []Value, keys []string) {
	if c.big != nil {
		return c.big.chunks[k].vals, c.big.chunks[k].keys
	}
	return c.vals, c.keys
}

// search returns where the member with a name is; j is -1 if there is none.
func (c *container) search(name string) (k, j int) {
	if c.big == nil {
		return 0, indexOf(c.keys, name)
	}
	b := c.big
	if b.index == nil {
		if len(b.chunks) == 0 {
			return 0, -1
		}
		return 0, indexOf(b.chunks[0].keys, name)
	}
	ch := b.index[name]
	if ch == nil {
		return 0, -1
	}
	k, _ = b.find(ch.key)
	return k, indexOf(ch.keys, name)
}

// find returns the place of the chunk with a key.
func (b *pages) find(key uint64) (k int, ok bool) {
	k = sort.Search(len(b.chunks), func(k int) bool { return b.chunks[k].key >= key })
	return k, k < len(b.chunks) && b.chunks[k].key == key
}

// locate returns where the element with an index is, which must be less than count.
func (b *pages) locate(i int) (k, j int) {
	if cap(b.starts) < len(b.chunks) {
		b.starts = append(make([]int, 0, len(b.chunks)*5/4), b.starts[:b.known]...)
	}
	b.starts = b.starts[:len(b.chunks)]
	next := 0 // index behind the chunks whose start is known
	if b.known > 0 {
		next = b.starts[b.known-1] + len(b.chunks[b.known-1].vals)
	}
	for ; i >= next; b.known++ {
		b.starts[b.known] = next
		next += len(b.chunks[b.known].vals)
	}
	k = sort.Search(b.known, func(k int) bool { return b.starts[k] > i }) - 1
	return k, i - b.starts[k]
}

// changed notes that the number of elements of chunk k has changed, or that of the chunks behind.
func (b *pages) changed(k int) { b.known = min(b.known, k+1) }

// restarted is changed for chunks that come or go at k.
func (b *pages) restarted(k int) { b.known = min(b.known, k) }

// place returns where an element is found by the name or index of a Place; ok is false if there is none.
func (v Value) place(p *Place) (k, j int, ok bool) {
	c := v.container()
	if c == nil {
		return 0, 0, false
	}
	if v.Kind() == Object {
		if p.Index >= 0 {
			return 0, 0, false
		}
		k, j = c.search(p.Name)
		return k, j, j >= 0
	}
	if p.Index < 0 || p.Index >= c.len() {
		return 0, 0, false
	}
	if c.big == nil {
		return 0, p.Index, true
	}
	k, j = c.big.locate(p.Index)
	return k, j, true
}

// itemSize and itemMemory are what an element takes in its container.
func itemSize(v Value, keys []string, j int) int {
	if keys == nil {
		return v.size()
	}
	return v.size() + 1 + len(keys[j])
}

func itemMemory(v Value, keys []string, j int) int {
	if keys == nil {
		return v.Memory()
	}
	return v.Memory() + nameSize + len(keys[j])
}
