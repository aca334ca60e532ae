// Package hashes is the hash data type: fields and their values, in one flat buffer while they are
// few and short, in a hash table otherwise.
//
// A small hash is a listpack in a buffer of exactly a size that the allocator gives. A buffer that it has outgrown is
// used again: a view is valid until the hash changes, and no longer. In a table a field has one pointer, to a record
// that holds its name.
//
// # Deadlines of fields
//
// A small hash has a third element for each field, which does not exist until a field gets a deadline. A large one
// has an index beside its fields, a heap of their numbers in the table, of about 16 bytes for each field in it
// (deadlines.go). Hashes without deadlines have neither. The index is stored as parts under a number of its own, with
// its own delta.Log: what was stored without deadlines stays as it is, and a changed deadline is one part of a few
// bytes. The head of a key has the earliest deadline, so that fields of a value that is not in memory expire on time.
// It may be too early, never too late.
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
	// field, value, field, value, …, with a deadline behind each value if it is marked; or else the pointer to a large
	small listpack.Listpack
}

// large is the form of a hash beyond the limits.
type large struct {
	fields dict.Table[field]
	bytes  int        // what the fields take beside the table
	log    *delta.Log // the changes of a hash that is stored in parts; nil otherwise

	deadlines *DeadlineIndex // nil if no field has ever had a deadline
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
	if h.marked() {
		return h.small.Len() / 3
	}
	return h.small.Len() / 2
}

// stride returns how many elements a small hash has for each field.
func (h *Hash) stride() int {
	if h.marked() {
		return 3
	}
	return 2
}

// find returns the position of a field of a small hash, -1 if there is none of this name.
func (h *Hash) find(field []byte) listpack.Pos {
	p, _ := h.small.Find(field, h.stride()-1)
	return p
}

// pair returns the field at p of a small hash with its value, and the position of the next field, or -1.
func (h *Hash) pair(p listpack.Pos) (field, value []byte, next listpack.Pos) {
	field, value, next = h.small.Pair(p)
	if h.marked() {
		next = h.small.Next(next)
	}
	return field, value, next
}

// Encoding returns the name of the representation as OBJECT ENCODING tells it.
func (h *Hash) Encoding() string {
	switch {
	case h.large() != nil:
		return "hashtable"
	case h.marked():
		return "listpackex"
	}
	return "listpack"
}

// MemoryUsage returns how many bytes the hash takes, in constant time.
func (h *Hash) MemoryUsage() int {
	n := int(unsafe.Sizeof(*h))
	l := h.large()
	if l == nil {
		return n + h.small.MemoryUsage()
	}
	return n + int(unsafe.Sizeof(*l)) + l.fields.MemoryUsage() + l.bytes + l.deadlines.memoryUsage()
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
	p := h.find(field)
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

// Set gives field a value, which does not expire, and says whether the field is new. A hash that goes beyond lim
// becomes large.
func (h *Hash) Set(field, value []byte, lim Limits) (created bool) {
	return h.set(field, value, lim, false)
}

// Update is Set for a field that keeps its deadline.
func (h *Hash) Update(field, value []byte, lim Limits) (created bool) {
	return h.set(field, value, lim, true)
}

func (h *Hash) set(field, value []byte, lim Limits, keepDeadline bool) (created bool) {
	l := h.large()
	if l == nil && (len(field) > lim.Value || len(value) > lim.Value || !h.small.Fits(h.stride(), len(field)+len(value))) {
		l = h.enlarge()
	}
	if l != nil {
		return h.setLarge(l, field, value, keepDeadline)
	}
	if p := h.find(field); p != -1 {
		p = h.small.Next(p)
		h.small.Replace(p, value)
		if h.marked() && !keepDeadline {
			h.small.Replace(h.small.Next(p), nil)
		}
		return false
	}
	if h.marked() {
		h.small.Append(field, value, nil)
	} else {
		h.small.Append(field, value)
	}
	if h.Len() > lim.Entries {
		h.enlarge()
	}
	return true
}

// Delete removes field, and says whether it was there.
func (h *Hash) Delete(field []byte) bool {
	if l := h.large(); l != nil {
		if l.log == nil && l.deadlines == nil { // the name is hashed once
			f, ok := l.fields.Delete(field)
			if ok {
				l.bytes -= f.size()
			}
			return ok
		}
		i, ok := l.fields.IndexOf(field)
		if ok {
			h.deleteLarge(l, i)
		}
		return ok
	}
	p := h.find(field)
	if p == -1 {
		return false
	}
	h.small.Delete(p, h.stride())
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
			field, value, p = h.pair(p)
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
		field, value, _ := h.small.Pair(h.small.Seek(h.stride() * rand.IntN(n)))
		fn(field, value)
		return
	}
	fields := make([]listpack.Pos, 0, n)
	for p := h.small.First(); p != -1; _, _, p = h.pair(p) {
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

// Ahead returns the fields for lookups ahead, nil if the hash is small.
func (h *Hash) Ahead() dict.Ahead {
	if l := h.large(); l != nil {
		return &l.fields
	}
	return nil
}

// Clone returns an independent copy, which does not note its changes.
func (h *Hash) Clone() *Hash {
	if l := h.large(); l != nil {
		c := new(large)
		c.fields = l.fields.Clone(func(f field) field {
			f = newField(f.name(), f.value())
			c.bytes += f.size()
			return f
		})
		c.copyDeadlines(h)
		return newLarge(c)
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
		l.add(name, value)
	}
	l.copyDeadlines(h)
	h.small.SetOther(unsafe.Pointer(l))
	return l
}

// add adds a field that is not there.
func (l *large) add(name, value []byte) *field {
	f := l.fields.Add(newField(name, value))
	l.bytes += f.size()
	return f
}

// setLarge gives a field of a large hash a value, and says whether the field is new. The checks for nil spare a hash
// that is not tracked, or has no deadlines, the calls, which would show.
func (h *Hash) setLarge(l *large, name, value []byte, keepDeadline bool) (created bool) {
	i, f, hash := l.fields.Find(name)
	created = f == nil
	moved := false // the name lies somewhere else now
	if created {
		added := newField(name, value)
		if l.log != nil {
			l.log.Before(added.name(), h)
		}
		f = l.fields.Insert(hash, added)
		i = l.fields.Len() - 1
		l.bytes += f.size()
	} else {
		if l.log != nil {
			l.log.Before(f.name(), h)
		}
		if moved = !f.overwrite(value); moved {
			l.bytes -= f.size()
			*f = newField(name, value)
			l.bytes += f.size()
		}
		if l.deadlines != nil && !keepDeadline {
			l.deadlines.remove(i)
		}
	}
	if l.log != nil && (l.fields.Mark(i, l.log.Epoch()) || moved) {
		l.log.After(f.keptName(), l.fields.Len())
	}
	return created
}

// deleteLarge removes field number i from a large hash.
func (h *Hash) deleteLarge(l *large, i int) {
	if l.log == nil {
		l.deleteField(i)
		return
	}
	l.log.Before(l.fields.At(i).name(), h)
	f := l.deleteField(i)
	l.log.After(f.keptName(), l.fields.Len())
}

// bytesOf returns the bytes of a string, which must not be modified.
func bytesOf(s string) []byte { return unsafe.Slice(unsafe.StringData(s), len(s)) }
