// Package hashes is the hash data type: fields and values, in one flat buffer while they are few and short, else in a
// hash table.
//
// A hash beyond the limits for lengths counts as a hash table, but stays in the buffer while that is small: it is wide. A
// table of five fields with a value of 250 bytes takes 480 bytes beside them, and each field is elsewhere.
//
// A small hash is a listpack whose buffer has exactly an allocator size class. Outgrown buffers are reused: a view is
// valid only until the hash changes. In a table a field has one pointer, to its memory with the name.
//
// # Deadlines of fields
//
// A small hash gets a third element for each field once a field gets a deadline. A large one has an index beside its
// fields, a heap of their numbers in the table, which takes about 16 bytes per field in it (deadlines.go). Hashes
// without deadlines have neither. The index is stored as parts under a number of its own, with its own delta.Log: data
// stored without deadlines stays valid, and a changed deadline rewrites one part of a few bytes. A key's head has the
// earliest deadline, so that fields of a value outside memory expire on time. It may be too early, never too late.
package hashes

import (
	"iter"
	"math/rand/v2"
	"unsafe"

	"github.com/atomredis/atomredis/engine/deadlines"
	"github.com/atomredis/atomredis/engine/delta"
	"github.com/atomredis/atomredis/engine/dict"
	"github.com/atomredis/atomredis/engine/listpack"
)

// Hash maps fields to values. The zero value is empty and ready to use.
//
// A small hash keeps its fields in order of insertion. A hash that was large once stays large. A []byte that a method
// returns is a read-only view, valid until the hash changes. A []byte argument is copied if it is kept; it must not be
// a view of the same hash.
type Hash struct {
	// field, value, field, value, …, with a deadline after each value if marked; or the pointer to a large
	small listpack.Listpack
}

// large is a hash beyond the limits.
type large struct {
	fields dict.Table[field]
	bytes  int        // memory of the fields outside the table
	log    *delta.Log // changes of a hash stored in parts; else nil

	deadlines *deadlines.Index // nil if no field ever had a deadline
}

// large returns the large form, nil if the hash is small.
func (h *Hash) large() *large { return (*large)(h.small.Other()) }

// Limits bound a small hash: the number of fields, and the bytes of any field or value.
type Limits struct {
	Entries int
	Value   int
}

// isWide is the bit of the Mark of a small hash that is wide.
const isWide = 2

// maxWide is the size in bytes of the buffer up to which a hash beyond the limits for lengths stays in it.
const maxWide = 1024

// wide reports whether a small hash is beyond the limits for lengths.
func (h *Hash) wide() bool { return h.small.Mark&isWide != 0 }

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

// stride returns the number of elements per field of a small hash.
func (h *Hash) stride() int {
	if h.marked() {
		return 3
	}
	return 2
}

// find returns the position of a field of a small hash, -1 if it is absent.
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

// Encoding returns the representation's name as in OBJECT ENCODING.
func (h *Hash) Encoding() string {
	switch {
	case h.large() != nil, h.wide():
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
	return n + int(unsafe.Sizeof(*l)) + l.fields.MemoryUsage() + l.bytes + l.deadlines.MemoryUsage()
}

// Get returns the value of a field.
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

// Has reports whether a field exists.
func (h *Hash) Has(field []byte) bool {
	_, ok := h.Get(field)
	return ok
}

// Set sets a field's value without a deadline, and reports whether the field is new. A hash that exceeds lim becomes
// large.
func (h *Hash) Set(field, value []byte, lim Limits) (created bool) {
	return h.set(field, value, lim, false)
}

// Update is Set, but an existing field keeps its deadline.
func (h *Hash) Update(field, value []byte, lim Limits) (created bool) {
	return h.set(field, value, lim, true)
}

func (h *Hash) set(field, value []byte, lim Limits, keepDeadline bool) (created bool) {
	if l := h.large(); l != nil {
		return h.setLarge(l, field, value, keepDeadline)
	}
	p := h.find(field)
	if !h.fits(p, field, value, lim) {
		return h.setLarge(h.enlarge(), field, value, keepDeadline)
	}
	if p != -1 {
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

// fits reports whether a small hash stays small with a value for the field, whose position is p, -1 for a new one. It
// makes the hash wide if a length is beyond the limits.
func (h *Hash) fits(p listpack.Pos, field, value []byte, lim Limits) bool {
	if !h.small.Fits(h.stride(), len(field)+len(value)) {
		return false
	}
	if len(field) <= lim.Value && len(value) <= lim.Value && !h.wide() {
		return true
	}
	size := len(h.small.Bytes()) + len(value)
	if p == -1 {
		size += len(field)
	} else {
		size -= len(h.small.At(h.small.Next(p)))
	}
	if size > maxWide {
		return false
	}
	h.small.Mark |= isWide
	return true
}

// Delete removes a field and reports whether it existed.
func (h *Hash) Delete(field []byte) bool {
	if l := h.large(); l != nil {
		if l.log == nil && l.deadlines == nil { // hash the name only once
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

// Scan calls fn for about count fields and returns the next cursor, as dict.Table.Scan does: a field that is present
// throughout is visited at least once. A small hash is visited whole, whatever the cursor and the count.
func (h *Hash) Scan(cursor uint64, count int, fn func(field, value []byte)) uint64 {
	if l := h.large(); l != nil {
		return l.fields.Scan(cursor, count, func(f *field) { fn(f.name(), f.value()) })
	}
	for field, value := range h.All() {
		fn(field, value)
	}
	return 0
}

// Random calls fn for count fields, each drawn from all, so fields may repeat. For an empty hash it does nothing.
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

// Clone returns an independent copy, which does not track its changes.
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

// enlarge converts a small hash into a large one.
func (h *Hash) enlarge() *large {
	l := new(large)
	for name, value := range h.All() {
		l.add(name, value)
	}
	l.copyDeadlines(h)
	h.small.SetOther(unsafe.Pointer(l))
	return l
}

// add adds a field, which must be absent.
func (l *large) add(name, value []byte) *field {
	f := l.fields.Add(newField(name, value))
	l.bytes += f.size()
	return f
}

// setLarge sets a field of a large hash, and reports whether the field is new. The checks for nil avoid calls in hashes
// that are not tracked or have no deadlines; the calls would cost measurable time.
func (h *Hash) setLarge(l *large, name, value []byte, keepDeadline bool) (created bool) {
	i, f, hash := l.fields.Find(name)
	created = f == nil
	moved := false // whether the name is at a new address
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
			l.deadlines.Remove(i)
		}
	}
	if l.log != nil && (l.fields.Mark(i, l.log.Epoch()) || moved) {
		l.log.After(f.keptName(), l.fields.Len())
	}
	return created
}

// deleteLarge removes field i of a large hash.
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
