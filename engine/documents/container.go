package documents

import (
	"encoding/binary"
	"hash/maphash"
	"slices"
	"sort"
)

// pages is a divided container.
type pages struct {
	id     uint64 // the first half of the names of its parts, see stored.go; 0 outside of a document
	object bool
	gone   bool // removed from the document
	chunks []*chunk
	count  int // of elements
	mem    int // memory in all
	depth  int // as Value.Depth; 0 if unknown
	// starts[k] is the index of the first element of chunk k, for k < known.
	starts []int
	known  int
	// index leads from the hash of a member's name to its chunk, if an object has several chunks. It is nil if mixed,
	// which says that two names had the same hash.
	index map[uint64]*chunk
	mixed bool
}

// chunk is a page of a container, or the root of a document with its one element. An element may be divided, but no
// container further inside one is.
type chunk struct {
	enc  []byte   // its divided elements; nil in unused places
	refs []*pages // the elements that are divided; nil where there is none any more
	n    int      // of elements
	key  uint64   // the second half of the name of its part: ascending from chunk to chunk
}

const (
	// maxFlat is the size of its elements from which a container is divided. It fits sizeBits.
	maxFlat = 2048
	// maxChunk is the size from which a chunk of several elements is divided, fullChunk the size of the new chunks.
	maxChunk  = 4096
	fullChunk = 3 * maxChunk / 4
	// firstKey is the key of the first chunk, and keyStep the distance to the next.
	firstKey = 1 << 63
	keyStep  = 1 << 36
)

var seed = maphash.MakeSeed()

func hashOf(name string) uint64 { return maphash.String(seed, name) }

func (b *pages) value() Value {
	if b.object {
		return Value{ptr(b), formPages | formObject}
	}
	return Value{ptr(b), formPages}
}

// settle computes the container's totals and keys from its chunks, whose refs are settled.
func (b *pages) settle() {
	b.count, b.mem = 0, pagesSize
	for k, ch := range b.chunks {
		ch.key = firstKey + uint64(k)*keyStep
		b.count += ch.n
		b.mem += ch.memory()
	}
	b.mem += b.reindex()
}

// memory returns the memory of a chunk and of what it refers to.
func (ch *chunk) memory() int {
	n := chunkSize + allocated(cap(ch.enc)) + cap(ch.refs)*wordSize
	for _, b := range ch.refs {
		if b != nil {
			n += b.mem
		}
	}
	return n
}

// item is the location of an element in a chunk or in an undivided container.
type item struct {
	at, value, end int // of the element, which for a member begins with its name; and of its value
}

// itemAt returns the element that begins at an offset.
func itemAt(enc []byte, at int, object bool) item {
	it := item{at: at, value: at}
	if object {
		_, n := nameAt(enc[at:])
		it.value += n
	}
	it.end = it.value + sizeAt(enc[it.value:])
	return it
}

// nth returns encoded element j; the first begins at from.
func nth(enc []byte, from, j int, object bool) item {
	it := itemAt(enc, from, object)
	for range j {
		it = itemAt(enc, it.end, object)
	}
	return it
}

// member returns the member with a name among those encoded in [from, to), and its index.
func member(enc []byte, from, to int, name string) (it item, j int, ok bool) {
	for it.end = from; it.end < to; j++ {
		found, n := nameAt(enc[it.end:])
		it.at, it.value = it.end, it.end+n
		it.end = it.value + sizeAt(enc[it.value:])
		if found == name {
			return it, j, true
		}
	}
	return it, 0, false
}

// search returns the location of the member with a name; ok is false if there is none.
func (b *pages) search(name string) (k int, it item, ok bool) {
	switch {
	case b.index != nil:
		ch := b.index[hashOf(name)]
		if ch == nil {
			return 0, it, false
		}
		it, _, ok = member(ch.enc, 0, len(ch.enc), name)
		if ok {
			k, _ = b.find(ch.key)
		}
		return k, it, ok
	default:
		for k, ch := range b.chunks {
			if it, _, ok = member(ch.enc, 0, len(ch.enc), name); ok {
				return k, it, true
			}
		}
		return 0, it, false
	}
}

// find returns the index of the chunk with a key.
func (b *pages) find(key uint64) (k int, ok bool) {
	k = sort.Search(len(b.chunks), func(k int) bool { return b.chunks[k].key >= key })
	return k, k < len(b.chunks) && b.chunks[k].key == key
}

// locate returns the chunk of the element with an index, which must be less than count, and the index in the chunk.
func (b *pages) locate(i int) (k, j int) {
	if cap(b.starts) < len(b.chunks) {
		b.starts = append(make([]int, 0, len(b.chunks)*5/4), b.starts[:b.known]...)
	}
	b.starts = b.starts[:len(b.chunks)]
	next := 0 // index of the first element after the chunks with a known start
	if b.known > 0 {
		next = b.starts[b.known-1] + b.chunks[b.known-1].n
	}
	for ; i >= next; b.known++ {
		b.starts[b.known] = next
		next += b.chunks[b.known].n
	}
	k = sort.Search(b.known, func(k int) bool { return b.starts[k] > i }) - 1
	return k, i - b.starts[k]
}

// changed notes that the number of elements of chunk k, or of later ones, has changed.
func (b *pages) changed(k int) { b.known = min(b.known, k+1) }

// restarted notes that chunks were added or removed at k.
func (b *pages) restarted(k int) { b.known = min(b.known, k) }

// reindex builds the index of an object with several chunks, and returns its memory.
func (b *pages) reindex() int {
	if !b.object || b.index != nil || b.mixed || len(b.chunks) < 2 {
		return 0
	}
	b.index = make(map[uint64]*chunk, b.count)
	for _, ch := range b.chunks {
		b.point(ch)
	}
	if len(b.index) < b.count {
		b.index, b.mixed = nil, true
		return 0
	}
	return indexedSize * b.count
}

// point adds the members of a chunk to the index.
func (b *pages) point(ch *chunk) {
	if b.index == nil {
		return
	}
	for at := 0; at < len(ch.enc); {
		name, n := nameAt(ch.enc[at:])
		b.index[hashOf(name)] = ch
		at += n
		at += sizeAt(ch.enc[at:])
	}
}

// named adds a new member of a chunk to the index, and returns by how much the memory grows.
func (b *pages) named(name string, ch *chunk) int {
	if b.index == nil {
		return 0
	}
	h := hashOf(name)
	if b.index[h] != nil {
		n := len(b.index)
		b.index, b.mixed = nil, true
		return -n * indexedSize
	}
	b.index[h] = ch
	return indexedSize
}

// unnamed removes a member from the index.
func (b *pages) unnamed(name string) int {
	if b.index == nil {
		return 0
	}
	delete(b.index, hashOf(name))
	return -indexedSize
}

// piece returns a new chunk, with memory of its own, that has n elements of this one.
func (ch *chunk) piece(from, to, n int, object bool) *chunk {
	p := &chunk{enc: append(make([]byte, 0, to-from), ch.enc[from:to]...), n: n}
	p.adoptRefs(p.enc, ch.refs, object)
	return p
}

// adoptRefs makes the references in encoded elements at the end of the chunk, which were indices into refs, refer to
// the chunk's own list.
func (ch *chunk) adoptRefs(enc []byte, refs []*pages, object bool) {
	for at := 0; at < len(enc) && len(refs) > 0; {
		it := itemAt(enc, at, object)
		if i, ok := refAt(enc[it.value:]); ok {
			putRef(enc[it.value:], ch.refer(refs[i]))
		}
		at = it.end
	}
}

// refAt returns the index in the reference that b begins with; ok is false if b begins with another value.
func refAt(b []byte) (i int, ok bool) {
	if b[0] != tagArrayRef && b[0] != tagObjectRef {
		return 0, false
	}
	return int(binary.LittleEndian.Uint16(b[1:])), true
}

func putRef(b []byte, i int) { binary.LittleEndian.PutUint16(b[1:], uint16(i)) }

// refer adds a container to refs and returns its index.
func (ch *chunk) refer(b *pages) int {
	i := slices.Index(ch.refs, nil)
	if i < 0 {
		i = len(ch.refs)
		ch.refs = append(ch.refs, nil)
	}
	ch.refs[i] = b
	return i
}

// cut divides a chunk into full chunks, each with memory of its own.
func (ch *chunk) cut(object bool) (pieces []*chunk) {
	from, n := 0, 0
	for at := 0; at < len(ch.enc); n++ {
		it := itemAt(ch.enc, at, object)
		if n > 0 && it.end-from > fullChunk {
			pieces = append(pieces, ch.piece(from, at, n, object))
			from, n = at, 0
		}
		at = it.end
	}
	return append(pieces, ch.piece(from, len(ch.enc), n, object))
}
