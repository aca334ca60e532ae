// Package dict is a hash table of elements that never pauses to grow and can be walked with a cursor
// that survives changes. It holds the keyspace and every large hash, set and sorted set.
//
// Elements lie densely, numbered from 0, in chunks of fixed size; a deletion moves the last element into the hole. A
// random element is thus one array access, and a scan from the end towards 0 is complete (see Scan). An index leads
// from a key to its element; a slot has 32 hash bits and an element number.
//
// The index is an extendible directory of segments of up to 1024 slots, each with open addressing: no operation
// rehashes more than one segment.
package dict

import (
	"hash/maphash"
	"iter"
	"unsafe"
)

// Keyed is an element of a Table: it knows its own key, which must not change while it is in the Table.
type Keyed interface{ Key() string }

// Table is a hash table of elements by their keys. The zero value is empty and ready to use. It holds up to 2^32 - 2
// elements.
type Table[E Keyed] struct {
	n      int
	chunks [][]E // all of chunkSize, except the first while it is the only one
	index  index
	marks  marks
}

// chunkSize is the number of elements in a chunk: growth copies at most this many. With the word that the allocator
// adds, 255 elements with pointers fill one of its size classes; 256 would not.
const chunkSize = 255

// minChunk is the size of the first chunk when it begins.
const minChunk = 4

// seed is random for the process, so that clients cannot choose colliding keys.
var seed = maphash.MakeSeed()

// Len returns the number of elements.
func (t *Table[E]) Len() int { return t.n }

// MemoryUsage returns how many bytes the table takes, without the memory that its elements point to and without the
// bits of Mark.
func (t *Table[E]) MemoryUsage() int {
	var e E
	n := int(unsafe.Sizeof(t.index)) + cap(t.chunks)*int(unsafe.Sizeof([]E(nil))) + t.index.memoryUsage()
	switch k := len(t.chunks); {
	case k == 1:
		n += len(t.chunks[0]) * int(unsafe.Sizeof(e))
	case k > 1:
		n += k * chunkSize * int(unsafe.Sizeof(e))
	}
	return n
}

// Get returns the element with a key. The caller may replace it through the pointer by another one with the same key.
// The pointer is valid until the next Add or deletion.
func (t *Table[E]) Get(key []byte) (*E, bool) {
	k := view(key)
	_, e := t.find(hashOf(k), k)
	return e, e != nil
}

// GetString is Get for a key that is a string.
func (t *Table[E]) GetString(key string) (*E, bool) {
	_, e := t.find(hashOf(key), key)
	return e, e != nil
}

// Hash is the hash of a key, which one lookup computes for the next call.
type Hash uint32

// Find is Get for a caller that will add an absent element: hash is for Insert. i is the element's number, -1 if it is
// absent.
func (t *Table[E]) Find(key []byte) (i int, e *E, hash Hash) {
	k := view(key)
	h := hashOf(k)
	i, e = t.find(h, k)
	return i, e, Hash(h)
}

// IndexOf returns the number of the element with a key, for At and DeleteAt. It changes as elements are deleted.
func (t *Table[E]) IndexOf(key []byte) (int, bool) {
	k := view(key)
	i, e := t.find(hashOf(k), k)
	return i, e != nil
}

// At returns element i, which must be from 0 to Len-1. The pointer is valid as long as that of Get.
func (t *Table[E]) At(i int) *E { return t.at(i) }

// Add adds an element whose key is absent, and returns its location. The pointer is valid as long as that of Get.
func (t *Table[E]) Add(e E) *E { return t.Insert(Hash(hashOf(e.Key())), e) }

// Insert is Add for an element whose key Find has not found.
func (t *Table[E]) Insert(hash Hash, e E) *E {
	if c := t.n / chunkSize; c == len(t.chunks) {
		size := chunkSize
		if c == 0 {
			size = minChunk
		}
		t.chunks = append(t.chunks, make([]E, size))
	} else if c == 0 && t.n == len(t.chunks[0]) {
		t.resizeFirst(min(2*t.n, chunkSize))
	}
	at := t.at(t.n)
	*at = e
	t.index.insert(uint32(hash), t.n)
	t.n++
	return at
}

// Delete removes the element with a key and returns it.
func (t *Table[E]) Delete(key []byte) (E, bool) {
	k := view(key)
	hash := hashOf(k)
	i, e := t.find(hash, k)
	if e == nil {
		var zero E
		return zero, false
	}
	return t.deleteAt(hash, i), true
}

// DeleteAt removes element i, which must be from 0 to Len-1, and returns it. The last element takes its number.
func (t *Table[E]) DeleteAt(i int) E { return t.deleteAt(hashOf((*t.at(i)).Key()), i) }

// Scan calls fn for about count elements, at least one if any are left, and returns the next cursor. Cursor 0 begins; a
// returned 0 means that all elements have been visited. Any other cursor is the number of elements still to be visited,
// which are the first ones. One that is too large (elements were deleted, or a client made it up) means all.
//
// An element that is present from the first call to the last is visited at least once, whatever is added and deleted
// between the calls: new elements come last, and a moved element takes a lower number, so no unvisited one can pass the
// cursor. fn may delete its element, and must not change the Table in any other way.
func (t *Table[E]) Scan(cursor uint64, count int, fn func(*E)) uint64 {
	left := t.n
	if cursor != 0 && cursor < uint64(t.n) {
		left = int(cursor)
	}
	for count = max(count, 1); left > 0 && count > 0; count-- {
		left--
		fn(t.at(left))
	}
	return uint64(left)
}

// All iterates over the elements by their numbers. The Table must not gain or lose elements meanwhile.
func (t *Table[E]) All() iter.Seq[*E] {
	return func(yield func(*E) bool) {
		for i := range t.n {
			if !yield(t.at(i)) {
				return
			}
		}
	}
}

// Clone returns an independent copy with the same numbering and no marks. copyElement makes the copy's elements; nil
// means plain assignment.
func (t *Table[E]) Clone(copyElement func(E) E) Table[E] {
	c := Table[E]{n: t.n, chunks: make([][]E, len(t.chunks)), index: t.index.clone()}
	for i, chunk := range t.chunks {
		c.chunks[i] = append(make([]E, 0, len(chunk)), chunk...)
	}
	if copyElement != nil {
		for i := range c.n {
			e := c.at(i)
			*e = copyElement(*e)
		}
	}
	return c
}

// at returns element i, valid until the first chunk is replaced or the element deleted.
func (t *Table[E]) at(i int) *E { return &t.chunks[uint(i)/chunkSize][uint(i)%chunkSize] }

// find returns the element with a key and its number, or nil. It compares keys only where all hash bits agree.
func (t *Table[E]) find(hash uint32, key string) (int, *E) {
	if t.n == 0 {
		return -1, nil
	}
	slots := t.index.segment(hash).slots
	mask := uint32(len(slots) - 1)
	for p := hash & mask; ; p++ {
		s := slots[p&mask]
		if s == 0 {
			return -1, nil
		}
		if slotHash(s) == hash {
			i := slotEntry(s)
			if e := t.at(i); (*e).Key() == key {
				return i, e
			}
		}
	}
}

// Ahead is a Table for a caller that will look up several keys and first prefetches the memory of all of them side by
// side. Its methods are the steps of a lookup; each reads memory whose address the previous step returned. The Table
// must not change between them.
type Ahead interface {
	// Slot returns the address where the index search for a key begins, 0 if the Table is empty.
	Slot(key []byte) (Hash, uintptr)
	// Element reads the index. It returns the number and the address of the element that probably has the key, or -1
	// and 0.
	Element(hash Hash) (int, uintptr)
	// Word reads element i and returns its first word, which in every element type is an address.
	Word(i int) uintptr
}

// Slot implements Ahead.
func (t *Table[E]) Slot(key []byte) (Hash, uintptr) {
	if t.n == 0 {
		return 0, 0
	}
	hash := hashOf(view(key))
	slots := t.index.segment(hash).slots
	return Hash(hash), uintptr(unsafe.Pointer(&slots[hash&uint32(len(slots)-1)]))
}

// Element implements Ahead.
func (t *Table[E]) Element(hash Hash) (int, uintptr) {
	if t.n == 0 {
		return -1, 0
	}
	slots := t.index.segment(uint32(hash)).slots
	mask := uint32(len(slots) - 1)
	for p := uint32(hash) & mask; ; p++ {
		switch s := slots[p&mask]; {
		case s == 0:
			return -1, 0
		case slotHash(s) == uint32(hash):
			i := slotEntry(s)
			return i, uintptr(unsafe.Pointer(t.at(i)))
		}
	}
}

// Word implements Ahead.
func (t *Table[E]) Word(i int) uintptr { return *(*uintptr)(unsafe.Pointer(t.at(i))) }

// deleteAt removes element i, whose key has the given hash.
func (t *Table[E]) deleteAt(hash uint32, i int) E {
	last := t.n - 1
	t.index.remove(hash, i)
	deleted, moved := t.at(i), t.at(last)
	e := *deleted
	t.marks.move(last, i)
	if i != last {
		t.index.renumber(hashOf((*moved).Key()), last, i)
		*deleted = *moved
	}
	var zero E
	*moved = zero
	t.n = last
	t.release()
	return e
}

// release frees unused room. Its thresholds differ from those of growth, so that a Table whose size swings around a
// boundary does not allocate each time.
func (t *Table[E]) release() {
	if k := len(t.chunks); k > 1 {
		if t.n <= (k-1)*chunkSize-chunkSize/2 {
			t.chunks[k-1] = nil
			t.chunks = t.chunks[:k-1]
		}
	} else if size := len(t.chunks[0]); size > minChunk && t.n <= size/4 {
		t.resizeFirst(size / 2)
	}
}

// resizeFirst replaces the only chunk by one of another size.
func (t *Table[E]) resizeFirst(size int) {
	chunk := make([]E, size)
	copy(chunk, t.chunks[0][:t.n])
	t.chunks[0] = chunk
}

// hashOf returns the hash bits that the index uses.
func hashOf(key string) uint32 { return uint32(maphash.String(seed, key) >> 32) }

// view returns a string that shares the bytes of b, for lookups that do not outlive the call.
func view(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }
