// Package hashes is the hash data type: fields and their values, in one flat buffer while they are
// few and short, in a hash table otherwise.
package hashes

import (
	"iter"
	"math/rand/v2"
	"unsafe"

	"github.com/atomredis/atomredis/engine/delta"
	"github.com/atomredis/atomredis/engine/dict"
	"github.com/atomredis/atomredis/engine/listpack"
)

// Hash maps fields to values. The zero value is empty and ready to use.
//
// A small hash keeps the order in which its fields were added. A hash that has become large stays
// large. Every []byte that a method hands out is a view that must not be modified and is valid until
// the hash changes. Every []byte that is passed in is copied if it is kept; it must not be such a
// view of the same hash.
type Hash struct {
	small listpack.Listpack // field, value, field, value, … while large is nil
	large *dict.Dict[[]byte]
	log   *delta.Log // the changes of a large hash that is stored in parts; nil otherwise
}

// Limits bounds a small hash: how many fields, and how many bytes in any field or value.
type Limits struct {
	Entries int
	Value   int
}

// Len returns the number of fields.
func (h *Hash) Len() int {
	if h.large != nil {
		return h.large.Len()
	}
	return h.small.Len() / 2
}

// Encoding returns the name of the representation as OBJECT ENCODING tells it.
func (h *Hash) Encoding() string {
	if h.large != nil {
		return "hashtable"
	}
	return "listpack"
}

// Get returns the value of field.
func (h *Hash) Get(field []byte) ([]byte, bool) {
	if h.large != nil {
		v, ok := h.large.Get(field)
		if !ok {
			return nil, false
		}
		return *v, true
	}
	p := h.small.Find(field, 1)
	if p == -1 {
		return nil, false
	}
	return h.small.At(h.small.Next(p)), true
}

// Has says whether there is such a field.
func (h *Hash) Has(field []byte) bool {
	_, ok := h.Get(field)
	return ok
}

// Set gives field a value, and says whether the field is new. A hash that goes beyond lim becomes large.
func (h *Hash) Set(field, value []byte, lim Limits) (created bool) {
	if h.large == nil && (len(field) > lim.Value || len(value) > lim.Value) {
		h.enlarge()
	}
	if h.large != nil {
		return h.setLarge(field, value)
	}
	if p := h.small.Find(field, 1); p != -1 {
		h.small.Replace(h.small.Next(p), value)
	} else {
		h.small.Append(field)
		h.small.Append(value)
		created = true
	}
	if h.Len() > lim.Entries {
		h.enlarge()
	}
	return created
}

// Delete removes field, and says whether it was there.
func (h *Hash) Delete(field []byte) bool {
	if h.large != nil {
		return h.deleteLarge(field)
	}
	p := h.small.Find(field, 1)
	if p == -1 {
		return false
	}
	h.small.Delete(p, 2)
	return true
}

// All iterates over fields and values. The hash must not change meanwhile.
func (h *Hash) All() iter.Seq2[[]byte, []byte] {
	return func(yield func(field, value []byte) bool) {
		if h.large != nil {
			for k, v := range h.large.All() {
				if !yield(bytesOf(k), *v) {
					return
				}
			}
			return
		}
		for p := h.small.First(); p != -1; {
			v := h.small.Next(p)
			if !yield(h.small.At(p), h.small.At(v)) {
				return
			}
			p = h.small.Next(v)
		}
	}
}

// Scan calls fn for about count fields and returns the cursor to go on with, as dict.Scan does: a
// field that is there throughout is visited at least once. A small hash is visited whole, whatever
// the cursor and the count.
func (h *Hash) Scan(cursor uint64, count int, fn func(field, value []byte)) uint64 {
	if h.large != nil {
		return h.large.Scan(cursor, count, func(k string, v *[]byte) { fn(bytesOf(k), *v) })
	}
	for field, value := range h.All() {
		fn(field, value)
	}
	return 0
}

// Random calls fn for count fields, each chosen at random from all of them, so that fields may come
// up repeatedly. An empty hash has none to offer.
func (h *Hash) Random(count int, fn func(field, value []byte)) {
	n := h.Len()
	if n == 0 {
		return
	}
	if h.large != nil {
		for range count {
			k, v := h.large.At(rand.IntN(n))
			fn(bytesOf(k), *v)
		}
		return
	}
	if count == 1 {
		p := h.small.Seek(2 * rand.IntN(n))
		fn(h.small.At(p), h.small.At(h.small.Next(p)))
		return
	}
	fields := make([]listpack.Pos, 0, n)
	for p := h.small.First(); p != -1; p = h.small.Next(h.small.Next(p)) {
		fields = append(fields, p)
	}
	for range count {
		p := fields[rand.IntN(n)]
		fn(h.small.At(p), h.small.At(h.small.Next(p)))
	}
}

// Sample calls fn for count different fields, chosen at random; for all if count is larger.
func (h *Hash) Sample(count int, fn func(field, value []byte)) {
	if h.large != nil {
		dict.Sample(h.large.Len(), count, func(i int) {
			k, v := h.large.At(i)
			fn(bytesOf(k), *v)
		})
		return
	}
	left := h.Len()
	for field, value := range h.All() {
		if count <= 0 {
			return
		}
		if rand.IntN(left) < count {
			fn(field, value)
			count--
		}
		left--
	}
}

// Clone returns an independent copy, which does not note its changes.
func (h *Hash) Clone() *Hash {
	if h.large == nil {
		return &Hash{small: h.small.Clone()}
	}
	return &Hash{large: h.large.Clone(func(v *[]byte) []byte { return append([]byte{}, *v...) })}
}

// enlarge turns a small hash into a large one.
func (h *Hash) enlarge() {
	large := dict.New[[]byte]()
	for field, value := range h.All() {
		large.SetString(keep(field, value))
	}
	h.large = large
	h.small.Reset()
}

const (
	sharedValue = 64 // a value up to this long begins in one allocation with its field
	spareValue  = 64 // room that a shorter value may leave unused
)

// setLarge gives field a value in a large hash, and says whether the field is new. A value that fits where the old one was is
// written there. The checks of log spare a hash that is not tracked the calls, which would show.
func (h *Hash) setLarge(field, value []byte) (created bool) {
	key, old, ok := h.large.Lookup(field)
	if !ok {
		key, value = keep(field, value)
		if h.log != nil {
			h.log.Before(bytesOf(key), h)
		}
		h.large.SetString(key, value)
		if h.log != nil {
			h.log.After(key)
		}
		return true
	}
	if h.log != nil {
		h.log.Before(bytesOf(key), h)
	}
	if n := len(value); n <= cap(*old) && cap(*old) <= 2*n+spareValue {
		*old = append((*old)[:0], value...)
	} else {
		*old = append(make([]byte, 0, n), value...)
	}
	if h.log != nil {
		h.log.After(key)
	}
	return false
}

// deleteLarge removes field from a large hash, and says whether it was there.
func (h *Hash) deleteLarge(field []byte) bool {
	if h.log == nil {
		_, ok := h.large.Delete(field)
		return ok
	}
	i, ok := h.large.IndexOf(field)
	if !ok {
		return false
	}
	key, _ := h.large.At(i)
	h.log.Before(bytesOf(key), h)
	h.large.DeleteAt(i)
	h.log.After(key)
	return true
}

// keep copies a field and its value for a large hash.
func keep(field, value []byte) (key string, v []byte) {
	if len(value) > sharedValue {
		return string(field), append(make([]byte, 0, len(value)), value...)
	}
	both := make([]byte, len(field)+len(value))
	n := copy(both, field)
	copy(both[n:], value)
	return unsafe.String(unsafe.SliceData(both), n), both[n:]
}

// bytesOf returns the bytes of a string, which must not be modified.
func bytesOf(s string) []byte { return unsafe.Slice(unsafe.StringData(s), len(s)) }
