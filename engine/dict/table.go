// Package dict is a hash table of elements that never pauses to grow and can be walked with a cursor
// that survives changes. It holds the keyspace and every large hash, set and sorted set.
//
// Elements lie densely, numbered from 0, in chunks of fixed size; a deletion moves the last element into
// the hole. That makes a random element one array access, and a scan from the end towards 0 complete
// (see Scan). An index of 32 hash bits and an element number per slot leads from a key to its element; it
// grows one small segment at a time.
//
// The index is an extendible directory of segments of 1024 slots, each with open addressing: no operation rehashes more
// than one segment.
package dict

import (
	"hash/maphash"
	"iter"
	"unsafe"
)

// Keyed is what a Table holds: something that knows its own key, which stays the same while it is in the Table.
type Keyed interface{ Key() string }

// Table is a hash table of elements by their keys. The zero value is empty and ready to use. It holds up to 2^32 - 2
// elements.
type Table[E Keyed] struct {
	n      int
	chunks [][]E // all of chunkSize, but the first while it is the only one
	index  index
	marks  marks
}

// chunkSize is the number of elements in a chunk: growth copies at most this many. Together with the word that the
// allocator adds, 255 elements with pointers fill a size in which it gives memory, and 256 would not.
const chunkSize = 255

// minChunk is the size of the first chunk when it begins.
const minChunk = 4

// seed is one for the process, so that nobody outside can choose colliding keys.
var seed = maphash.MakeSeed()

// Len returns the number of elements.
func (t *Table[E]) Len() int { return t.n }

// MemoryUsage returns how many bytes the table takes, without what its elements point to and the bits of Mark.
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

// Get returns the element with a key. It may be replaced through the pointer by another one with the same key. The
// pointer is valid until the next Add or deletion.
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

// Hash is what a Table knows of a key that it has looked up.
type Hash uint32

// Find is Get for somebody who will add the element if it is not there: hash is for Insert. i is the element's
// number, -1 if it is not there.
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

// At returns element number i, which must be from 0 to Len-1. The pointer is valid as that of Get.
func (t *Table[E]) At(i int) *E { return t.at(i) }

// Add adds an element whose key is not there, and returns where it is. The pointer is valid as that of Get.
func (t *Table[E]) Add(e E) *E { return t.Insert(Hash(hashOf(e.Key())), e) }

// Insert is Add for an element with the key that Find has not found.
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

// DeleteAt removes element number i, which must be from 0 to Len-1, and returns it. The last element takes its number.
func (t *Table[E]) DeleteAt(i int) E { return t.deleteAt(hashOf((*t.at(i)).Key()), i) }

// Scan calls fn for about count elements, at least one if any are left, and returns the cursor to go on with. Cursor
// 0 begins; a returned 0 means that all elements have been visited. Any other cursor is the number of elements that
// are still to be visited, which are the first ones; one that is too large (elements were deleted, or a client made
// it up) stands for all.
//
// An element that is there from the first call to the last is visited at least once, whatever is added and deleted
// between the calls: an element that is added comes last, and one that moves takes a lower number, so none that is
// unvisited can pass the cursor. fn may delete the element that it is given, and must change the Table in no other
// way.
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

// Clone returns an independent copy with the same numbering, in which no element is marked. copyElement makes the
// copy's elements; nil means that plain assignment does.
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

// at returns element number i, valid until the first chunk is replaced or the element deleted.
func (t *Table[E]) at(i int) *E { return &t.chunks[uint(i)/chunkSize][uint(i)%chunkSize] }

// find returns the element with a key and its number, or nil. It looks at keys only where all hash bits agree.
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

// Ahead is a Table for somebody who is about to look up several keys, and has the memory of all of them fetched side
// by side before: the steps of a lookup, each of which reads what the step before has told the address of. The Table
// must not change between them.
type Ahead interface {
	// Slot returns the address of the place in the index where the search for a key begins, 0 if the Table is empty.
	Slot(key []byte) (Hash, uintptr)
	// Element reads the index. It returns the number and the address of an element that is probably that of the key, or
	// -1 and 0.
	Element(hash Hash) (int, uintptr)
	// Word reads element number i and returns its first word, which in all that Tables hold is the address of more.
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

// deleteAt removes element number i, whose key has the given hash.
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

// release gives back room that is no longer needed, at a distance from where it was taken, so that a Table whose size
// swings around a boundary does not allocate each time.
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

// resizeFirst replaces the first chunk, which is the only one, by one of another size.
func (t *Table[E]) resizeFirst(size int) {
	chunk := make([]E, size)
	copy(chunk, t.chunks[0][:t.n])
	t.chunks[0] = chunk
}

// hashOf returns the hash bits that the index uses.
func hashOf(key string) uint32 { return uint32(maphash.String(seed, key) >> 32) }

// view returns a string that shares the bytes of b, for lookups that do not outlive the call.
func view(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }
