// Package dict is a hash table from byte-string keys to values that never pauses to grow and can be
// walked with a cursor that survives changes. It holds the keyspace and every large hash and set.
//
// Entries lie densely, numbered from 0, in chunks of fixed size; a deletion moves the last entry into
// the hole. That makes a random entry one array access, and a scan from the end towards 0 complete
// (see Scan). An index of 32 hash bits and an entry number per slot leads from a key to its entry; it
// grows one small segment at a time.
package dict

import (
	"hash/maphash"
	"iter"
	"strings"
	"unsafe"
)

// Dict maps keys to values. The zero value is empty and ready to use. It holds up to 2^32 - 2 entries.
type Dict[V any] struct {
	n      int
	chunks [][]entry[V] // all of chunkSize, but the first while it is the only one
	index  index
}

// entry has its value in front, because Go pads a struct that ends in a value without size.
type entry[V any] struct {
	val V
	key string
}

// chunkSize is the number of entries in a chunk: growth copies at most this many.
const chunkSize = 256

// minChunk is the size of the first chunk when it begins.
const minChunk = 4

// seed is one for the process, so that nobody outside can choose colliding keys.
var seed = maphash.MakeSeed()

// New returns an empty Dict.
func New[V any]() *Dict[V] { return new(Dict[V]) }

// Len returns the number of entries.
func (d *Dict[V]) Len() int { return d.n }

// Get returns the value of key. The pointer is valid until the next Set of a new key or deletion.
func (d *Dict[V]) Get(key []byte) (*V, bool) { return d.GetString(view(key)) }

// GetString is Get for a key that is a string.
func (d *Dict[V]) GetString(key string) (*V, bool) {
	i := d.find(hashOf(key), key)
	if i < 0 {
		return nil, false
	}
	return &d.entry(i).val, true
}

// Lookup is Get, and returns the key as the Dict keeps it: a string that stays valid when the entry has gone.
func (d *Dict[V]) Lookup(key []byte) (kept string, v *V, ok bool) {
	k := view(key)
	i := d.find(hashOf(k), k)
	if i < 0 {
		return "", nil, false
	}
	e := d.entry(i)
	return e.key, &e.val, true
}

// IndexOf returns the number of key's entry, for At and DeleteAt. It changes as entries are deleted.
func (d *Dict[V]) IndexOf(key []byte) (int, bool) {
	k := view(key)
	i := d.find(hashOf(k), k)
	return i, i >= 0
}

// At returns entry number i, which must be from 0 to Len-1. The pointer is valid as that of Get.
func (d *Dict[V]) At(i int) (key string, v *V) {
	e := d.entry(i)
	return e.key, &e.val
}

// Set gives key the value v, and says whether it replaced another. The key is copied if it is new.
func (d *Dict[V]) Set(key []byte, v V) (replaced bool) {
	k := view(key)
	hash := hashOf(k)
	if i := d.find(hash, k); i >= 0 {
		d.entry(i).val = v
		return true
	}
	d.add(hash, strings.Clone(k), v)
	return false
}

// SetString is Set for a key that may be kept as it is, without a copy.
func (d *Dict[V]) SetString(key string, v V) (replaced bool) {
	hash := hashOf(key)
	if i := d.find(hash, key); i >= 0 {
		d.entry(i).val = v
		return true
	}
	d.add(hash, key, v)
	return false
}

// Delete removes key and returns the value it had.
func (d *Dict[V]) Delete(key []byte) (V, bool) {
	k := view(key)
	hash := hashOf(k)
	i := d.find(hash, k)
	if i < 0 {
		var zero V
		return zero, false
	}
	_, v := d.deleteAt(hash, i)
	return v, true
}

// DeleteAt removes entry number i, which must be from 0 to Len-1, and returns it. The last entry
// takes its number.
func (d *Dict[V]) DeleteAt(i int) (key string, v V) {
	return d.deleteAt(hashOf(d.entry(i).key), i)
}

// Scan calls fn for about count entries, at least one if any are left, and returns the cursor to go on
// with. Cursor 0 begins; a returned 0 means that all entries have been visited. Any other cursor is
// the number of entries that are still to be visited, which are the first ones; one that is too large
// (entries were deleted, or a client made it up) stands for all.
//
// An entry that is there from the first call to the last is visited at least once, whatever is added
// and deleted between the calls: an entry that is added comes last, and an entry that moves takes a
// lower number, so none that is unvisited can pass the cursor. fn may delete the entry that it is
// given, and must change the Dict in no other way.
func (d *Dict[V]) Scan(cursor uint64, count int, fn func(key string, v *V)) uint64 {
	left := d.n
	if cursor != 0 && cursor < uint64(d.n) {
		left = int(cursor)
	}
	for count = max(count, 1); left > 0 && count > 0; count-- {
		left--
		fn(d.At(left))
	}
	return uint64(left)
}

// All iterates over the entries by their numbers. The Dict must not gain or lose keys meanwhile.
func (d *Dict[V]) All() iter.Seq2[string, *V] {
	return func(yield func(string, *V) bool) {
		for i := range d.n {
			if !yield(d.At(i)) {
				return
			}
		}
	}
}

// Clone returns an independent copy with the same numbering. copyValue makes the copy's values; nil
// means that plain assignment does.
func (d *Dict[V]) Clone(copyValue func(*V) V) *Dict[V] {
	c := &Dict[V]{n: d.n, chunks: make([][]entry[V], len(d.chunks)), index: d.index.clone()}
	for i, chunk := range d.chunks {
		c.chunks[i] = append(make([]entry[V], 0, len(chunk)), chunk...)
	}
	if copyValue != nil {
		for i := range c.n {
			e := c.entry(i)
			e.val = copyValue(&e.val)
		}
	}
	return c
}

// entry returns entry number i, valid until the first chunk is replaced or the entry deleted.
func (d *Dict[V]) entry(i int) *entry[V] {
	return &d.chunks[uint(i)/chunkSize][uint(i)%chunkSize]
}

// find returns the number of key's entry, or -1. It looks at keys only where all hash bits agree.
func (d *Dict[V]) find(hash uint32, key string) int {
	if d.n == 0 {
		return -1
	}
	slots := d.index.segment(hash).slots
	mask := uint32(len(slots) - 1)
	for p := hash & mask; ; p++ {
		s := slots[p&mask]
		if s == 0 {
			return -1
		}
		if slotHash(s) == hash {
			if i := slotEntry(s); d.entry(i).key == key {
				return i
			}
		}
	}
}

// Probe returns the number of an entry that is probably that of key, or -1, and reads nothing but the index to do so. With
// At, it lets somebody who is about to look up several keys have their memory fetched side by side.
func (d *Dict[V]) Probe(key []byte) int {
	if d.n == 0 {
		return -1
	}
	hash := hashOf(view(key))
	slots := d.index.segment(hash).slots
	mask := uint32(len(slots) - 1)
	for p := hash & mask; ; p++ {
		switch s := slots[p&mask]; {
		case s == 0:
			return -1
		case slotHash(s) == hash:
			return slotEntry(s)
		}
	}
}

// add appends an entry for a key that is not there.
func (d *Dict[V]) add(hash uint32, key string, v V) {
	if c := d.n / chunkSize; c == len(d.chunks) {
		size := chunkSize
		if c == 0 {
			size = minChunk
		}
		d.chunks = append(d.chunks, make([]entry[V], size))
	} else if c == 0 && d.n == len(d.chunks[0]) {
		d.resizeFirst(2 * d.n)
	}
	*d.entry(d.n) = entry[V]{v, key}
	d.index.insert(hash, d.n)
	d.n++
}

// deleteAt removes entry number i, whose key has the given hash.
func (d *Dict[V]) deleteAt(hash uint32, i int) (string, V) {
	last := d.n - 1
	d.index.remove(hash, i)
	deleted, moved := d.entry(i), d.entry(last)
	e := *deleted
	if i != last {
		d.index.renumber(hashOf(moved.key), last, i)
		*deleted = *moved
	}
	*moved = entry[V]{}
	d.n = last
	d.release()
	return e.key, e.val
}

// release gives back room that is no longer needed, at a distance from where it was taken, so that a
// Dict whose size swings around a boundary does not allocate each time.
func (d *Dict[V]) release() {
	if k := len(d.chunks); k > 1 {
		if d.n <= (k-1)*chunkSize-chunkSize/2 {
			d.chunks[k-1] = nil
			d.chunks = d.chunks[:k-1]
		}
	} else if size := len(d.chunks[0]); size > minChunk && d.n <= size/4 {
		d.resizeFirst(size / 2)
	}
}

// resizeFirst replaces the first chunk, which is the only one, by one of another size.
func (d *Dict[V]) resizeFirst(size int) {
	chunk := make([]entry[V], size)
	copy(chunk, d.chunks[0][:d.n])
	d.chunks[0] = chunk
}

// hashOf returns the hash bits that the index uses.
func hashOf(key string) uint32 { return uint32(maphash.String(seed, key) >> 32) }

// view returns a string that shares the bytes of b, for lookups that do not outlive the call.
func view(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }
