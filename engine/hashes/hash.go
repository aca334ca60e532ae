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
	small listpack.Listpack // field, value, field, value, …; or else the pointer to a large
}

// large is the form of a hash beyond the limits.
type large struct {
	fields dict.Table[field]
	log    *delta.Log // the changes of a hash that is stored in parts; nil otherwise
}

// large returns the form of a large hash, nil if the hash is small.
func (h *Hash) large() *large { return (*large)(h.small.Other()) }

// Limits bounds a small hash: how many fields, and how many bytes in any field or value.
type Limits struct {
	Entries int
	Value   int
}

// Len returns the number of fields.
func (h *Hash) Len() int {
	if l := h.large(); l != nil {
		return l.fields.Len()
	}
	return h.small.Len() / 2
}

// Encoding returns the name of the representation as OBJECT ENCODING tells it.
func (h *Hash) Encoding() string {
	if h.large() != nil {
		return "hashtable"
	}
	return "listpack"
}

// MemoryUsage estimates how many bytes the hash takes. Of a large one it looks at so many fields, at all if samples is 0.
func (h *Hash) MemoryUsage(samples int) int {
	n := int(unsafe.Sizeof(*h))
	l := h.large()
	if l == nil {
		return n + h.small.MemoryUsage()
	}
	sum, seen := 0, 0
	for f := range l.fields.All() {
		_, _, size := f.bounds()
		sum += size
		if seen++; seen == samples {
			break
		}
	}
	return n + int(unsafe.Sizeof(*l)) + l.fields.MemoryUsage() + sum*l.fields.Len()/max(seen, 1)
}

// Get returns the value of field.
func (h *Hash) Get(field []byte) ([]byte, bool) {
	if l := h.large(); l != nil {
		f, ok := l.fields.Get(field)
		if !ok {
			return nil, false
		}
		return f.value(), true
	}
	p, _ := h.small.Find(field, 1)
	if p == -1 {
		return nil, false
	}
	_, value, _ := h.small.Pair(p)
	return value, true
}

// Has says whether there is such a field.
func (h *Hash) Has(field []byte) bool {
	_, ok := h.Get(field)
	return ok
}

// Set gives field a value, and says whether the field is new. A hash that goes beyond lim becomes large.
func (h *Hash) Set(field, value []byte, lim Limits) (created bool) {
	l := h.large()
	if l == nil && (len(field) > lim.Value || len(value) > lim.Value || !h.small.Fits(2, len(field)+len(value))) {
		l = h.enlarge()
	}
	if l != nil {
		return h.setLarge(l, field, value)
	}
	if p, _ := h.small.Find(field, 1); p != -1 {
		h.small.Replace(h.small.Next(p), value)
		return false
	}
	h.small.Append(field, value)
	if h.Len() > lim.Entries {
		h.enlarge()
	}
	return true
}

// Delete removes field, and says whether it was there.
func (h *Hash) Delete(field []byte) bool {
	if l := h.large(); l != nil {
		return h.deleteLarge(l, field)
	}
	p, _ := h.small.Find(field, 1)
	if p == -1 {
		return false
	}
	h.small.Delete(p, 2)
	return true
}

// All iterates over fields and values. The hash must not change meanwhile.
func (h *Hash) All() iter.Seq2[[]byte, []byte] {
	return func(yield func(field, value []byte) bool) {
		if l := h.large(); l != nil {
			for f := range l.fields.All() {
				if !yield(f.name(), f.value()) {
					return
				}
			}
			return
		}
		for p := h.small.First(); p != -1; {
			var field, value []byte
			field, value, p = h.small.Pair(p)
			if !yield(field, value) {
				return
			}
		}
	}
}

// Scan calls fn for about count fields and returns the cursor to go on with, as dict.Table.Scan does: a
// field that is there throughout is visited at least once. A small hash is visited whole, whatever
// the cursor and the count.
func (h *Hash) Scan(cursor uint64, count int, fn func(field, value []byte)) uint64 {
	if l := h.large(); l != nil {
		return l.fields.Scan(cursor, count, func(f *field) { fn(f.name(), f.value()) })
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
	if l := h.large(); l != nil {
		for range count {
			f := l.fields.At(rand.IntN(n))
			fn(f.name(), f.value())
		}
		return
	}
	if count == 1 {
		field, value, _ := h.small.Pair(h.small.Seek(2 * rand.IntN(n)))
		fn(field, value)
		return
	}
	fields := make([]listpack.Pos, 0, n)
	for p := h.small.First(); p != -1; _, _, p = h.small.Pair(p) {
		fields = append(fields, p)
	}
	for range count {
		field, value, _ := h.small.Pair(fields[rand.IntN(n)])
		fn(field, value)
	}
}

// Sample calls fn for count different fields, chosen at random; for all if count is larger.
func (h *Hash) Sample(count int, fn func(field, value []byte)) {
	if l := h.large(); l != nil {
		dict.Sample(l.fields.Len(), count, func(i int) {
			f := l.fields.At(i)
			fn(f.name(), f.value())
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

// Probe returns the number of a field that is probably the one of this name, and -1 if there is none or the hash is small. See
// dict.Table.Probe.
func (h *Hash) Probe(name []byte) int {
	l := h.large()
	if l == nil {
		return -1
	}
	return l.fields.Probe(name)
}

// Warm reads the memory of what Probe has found, and returns something that depends on it.
func (h *Hash) Warm(i int) byte { return h.large().fields.Warm(i) }

// Clone returns an independent copy, which does not note its changes.
func (h *Hash) Clone() *Hash {
	if l := h.large(); l != nil {
		return newLarge(&large{fields: l.fields.Clone(func(f field) field { return newField(f.name(), f.value()) })})
	}
	return &Hash{h.small.Clone()}
}

// newLarge returns a hash that is large.
func newLarge(l *large) *Hash {
	h := new(Hash)
	h.small.SetOther(unsafe.Pointer(l))
	return h
}

// enlarge turns a small hash into a large one.
func (h *Hash) enlarge() *large {
	l := new(large)
	for name, value := range h.All() {
		l.fields.Add(newField(name, value))
	}
	h.small.SetOther(unsafe.Pointer(l))
	return l
}

// setLarge gives a field of a large hash a value, and says whether the field is new. The checks of log spare a hash that is not
// tracked the calls, which would show.
func (h *Hash) setLarge(l *large, name, value []byte) (created bool) {
	f, hash := l.fields.Find(name)
	created = f == nil
	if created {
		added := newField(name, value)
		if l.log != nil {
			l.log.Before(added.name(), h)
		}
		f = l.fields.Insert(hash, added)
	} else {
		if l.log != nil {
			l.log.Before(f.name(), h)
		}
		if !f.overwrite(value) {
			*f = newField(name, value)
		}
	}
	if l.log != nil {
		l.log.After(f.keptName())
	}
	return created
}

// deleteLarge removes a field from a large hash, and says whether it was there.
func (h *Hash) deleteLarge(l *large, name []byte) bool {
	if l.log == nil {
		_, ok := l.fields.Delete(name)
		return ok
	}
	i, ok := l.fields.IndexOf(name)
	if !ok {
		return false
	}
	l.log.Before(l.fields.At(i).name(), h)
	f := l.fields.DeleteAt(i)
	l.log.After(f.keptName())
	return true
}

// bytesOf returns the bytes of a string, which must not be modified.
func bytesOf(s string) []byte { return unsafe.Slice(unsafe.StringData(s), len(s)) }
