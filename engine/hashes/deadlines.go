package hashes

import (
	"encoding/binary"
	"iter"
	"unsafe"

	"github.com/atomredis/atomredis/engine/delta"
	"github.com/atomredis/atomredis/engine/dict"
	"github.com/atomredis/atomredis/engine/expiry"
)

// This file has the deadlines of fields. A small hash whose fields have had any keeps a third element for each field,
// which is empty if the field does not expire; a large one has a DeadlineIndex beside its fields. A hash without
// deadlines has neither.
//
// The hash knows no clock: a field is there until somebody calls Expire.

// withDeadlines is the Mark of a small hash that has deadlines among its elements.
const withDeadlines = 1

// DeadlineIndex orders the fields of a large hash that expire, and is what is stored of their deadlines: the name of
// a part is a field and its data the deadline.
type DeadlineIndex struct {
	fields dict.Table[*volatile]
	order  expiry.Index[*volatile]
	log    *delta.Log // the changes of a hash that is stored in parts; nil otherwise
}

// volatile is a field that expires.
type volatile struct {
	name string // mostly shares the memory of the field
	slot int
}

// Key implements dict.Keyed.
func (v *volatile) Key() string { return v.name }

// SetSlot implements expiry.Item.
func (v *volatile) SetSlot(slot int) { v.slot = slot }

// Slot implements expiry.Item.
func (v *volatile) Slot() int { return v.slot }

// Deadline returns when a field expires, in ms since 1970; 0 means never. ok is false if there is no such field.
func (h *Hash) Deadline(field []byte) (at int64, ok bool) {
	if l := h.large(); l != nil {
		if _, ok := l.fields.IndexOf(field); !ok {
			return 0, false
		}
		if l.deadlines == nil {
			return 0, true
		}
		return l.deadlines.at(field), true
	}
	p := h.find(field)
	if p == -1 {
		return 0, false
	}
	if !h.marked() {
		return 0, true
	}
	return decodeDeadline(h.small.At(h.small.Next(h.small.Next(p)))), true
}

// SetDeadline makes a field expire at a time in ms since 1970, which must be positive; 0 means never. It says whether
// there is such a field.
func (h *Hash) SetDeadline(field []byte, at int64) bool {
	if l := h.large(); l != nil {
		f, ok := l.fields.Get(field)
		switch {
		case !ok:
			return false
		case at != 0:
			l.setDeadline(f, at)
		case l.deadlines != nil:
			l.deadlines.remove(field)
		}
		return true
	}
	p := h.find(field)
	switch {
	case p == -1:
		return false
	case h.marked():
	case at == 0:
		return true
	case !h.mark():
		h.enlarge()
		return h.SetDeadline(field, at)
	default:
		p = h.find(field)
	}
	var buf [8]byte
	b := appendDeadline(buf[:0], at)
	if !h.small.Fits(0, len(b)) {
		h.enlarge()
		return h.SetDeadline(field, at)
	}
	h.small.Replace(h.small.Next(h.small.Next(p)), b)
	return true
}

// NextDeadline returns the earliest deadline of a field, 0 if no field expires.
func (h *Hash) NextDeadline() int64 {
	if l := h.large(); l != nil {
		if l.deadlines == nil {
			return 0
		}
		_, at, _ := l.deadlines.order.Min()
		return at
	}
	if !h.marked() {
		return 0
	}
	next := int64(0)
	for _, at := range h.Deadlines() {
		if next == 0 || at < next {
			next = at
		}
	}
	return next
}

// Deadlines iterates over the fields that expire, in no order, with their deadlines. The hash must not change
// meanwhile.
func (h *Hash) Deadlines() iter.Seq2[[]byte, int64] {
	return func(yield func(field []byte, at int64) bool) {
		if l := h.large(); l != nil {
			if l.deadlines != nil {
				l.deadlines.order.Each(func(v *volatile, at int64) bool { return yield(bytesOf(v.name), at) })
			}
			return
		}
		if !h.marked() {
			return
		}
		for p := h.small.First(); p != -1; {
			field, _, third := h.small.Pair(p)
			if at := decodeDeadline(h.small.At(third)); at != 0 && !yield(field, at) {
				return
			}
			p = h.small.Next(third)
		}
	}
}

// AllExpired reports whether every field has a deadline that is now or earlier.
func (h *Hash) AllExpired(now int64) bool {
	if l := h.large(); l != nil {
		d := l.deadlines
		return d != nil && d.fields.Len() == l.fields.Len() && d.order.AllBy(now)
	}
	expired := 0
	for _, at := range h.Deadlines() {
		if at > now {
			return false
		}
		expired++
	}
	return expired == h.Len()
}

// Expire removes fields whose deadline is now or earlier, up to max of them, and returns how many. Before, fn is
// called with each; it keeps neither the field nor a view of it.
func (h *Hash) Expire(now int64, max int, fn func(field []byte)) int {
	n := 0
	if l := h.large(); l != nil {
		if l.deadlines == nil {
			return 0
		}
		for ; n < max; n++ {
			v, at, ok := l.deadlines.order.Min()
			if !ok || at > now {
				break
			}
			fn(bytesOf(v.name))
			h.deleteLarge(l, bytesOf(v.name))
		}
		return n
	}
	if !h.marked() {
		return 0
	}
	for p := h.small.First(); p != -1 && n < max; {
		field, _, third := h.small.Pair(p)
		if at := decodeDeadline(h.small.At(third)); at == 0 || at > now {
			p = h.small.Next(third)
			continue
		}
		fn(field)
		h.small.Delete(p, 3)
		n++
		if int(p) == len(h.small.Bytes()) {
			break
		}
	}
	return n
}

// DeadlineIndex returns what is to be stored of the deadlines of a large hash; nil if no field has ever had one, or
// the hash is small.
func (h *Hash) DeadlineIndex() *DeadlineIndex {
	if l := h.large(); l != nil {
		return l.deadlines
	}
	return nil
}

// Track makes the index note in l from now on which deadlines change. All that it has count as changed.
func (d *DeadlineIndex) Track(l *delta.Log) {
	d.Attach(l)
	for v := range d.fields.All() {
		l.After((*v).name, d.fields.Len())
	}
}

// Attach makes the index note in l from now on which deadlines change; nil ends that.
func (d *DeadlineIndex) Attach(l *delta.Log) { d.log = l }

// Walk calls fn with the names of about count parts, as Hash.Walk does.
func (d *DeadlineIndex) Walk(c delta.Cursor, count int, fn func(name string)) (next delta.Cursor, more bool) {
	c.Number = d.fields.Scan(c.Number, count, func(v **volatile) { fn((*v).name) })
	return c, c.Number != 0
}

// Log returns the record of changes, nil if there is none.
func (d *DeadlineIndex) Log() *delta.Log { return d.log }

// AppendPart appends the stored deadline of a field to dst; ok is false if the field has none.
func (d *DeadlineIndex) AppendPart(dst []byte, name string) (out []byte, ok bool) {
	v, ok := d.fields.GetString(name)
	if !ok {
		return dst, false
	}
	return binary.AppendUvarint(dst, uint64(d.order.At(*v))), true
}

// at returns the deadline of a field, 0 if it has none.
func (d *DeadlineIndex) at(field []byte) int64 {
	if v, ok := d.fields.Get(field); ok {
		return d.order.At(*v)
	}
	return 0
}

// set gives a field, which the hash has, a deadline.
func (d *DeadlineIndex) set(f *field, at int64) {
	d.log.Before(f.name(), d)
	_, v, hash := d.fields.Find(f.name())
	if v == nil {
		v = d.fields.Insert(hash, &volatile{name: f.keptName()})
	}
	d.order.Set(*v, at)
	d.log.After((*v).name, d.fields.Len())
}

// remove takes away the deadline of a field, if it has one.
func (d *DeadlineIndex) remove(field []byte) {
	i, ok := d.fields.IndexOf(field)
	if !ok {
		return
	}
	d.log.Before(field, d)
	v := d.fields.DeleteAt(i)
	d.order.Remove(v)
	d.log.After(v.name, d.fields.Len())
}

// moved notes that the name of a field lies elsewhere in memory.
func (d *DeadlineIndex) moved(f *field) {
	if v, ok := d.fields.Get(f.name()); ok {
		(*v).name = f.keptName()
	}
}

// memoryUsage returns how many bytes the index takes, which may be nil.
func (d *DeadlineIndex) memoryUsage() int {
	if d == nil {
		return 0
	}
	return int(unsafe.Sizeof(*d)) + d.fields.MemoryUsage() + d.order.MemoryUsage() +
		d.fields.Len()*int(unsafe.Sizeof(volatile{}))
}

// setDeadline gives a field of a large hash a deadline.
func (l *large) setDeadline(f *field, at int64) {
	if l.deadlines == nil {
		l.deadlines = new(DeadlineIndex)
	}
	l.deadlines.set(f, at)
}

// copyDeadlines gives the fields those deadlines that they have in another hash.
func (l *large) copyDeadlines(from *Hash) {
	for name, at := range from.Deadlines() {
		if f, ok := l.fields.Get(name); ok {
			l.setDeadline(f, at)
		}
	}
}

// marked says whether a small hash has deadlines among its elements.
func (h *Hash) marked() bool { return h.small.Mark == withDeadlines }

// mark gives every field of a small hash a deadline, which is empty; it reports false if there is no room for them.
func (h *Hash) mark() bool {
	if !h.small.Fits(h.Len(), 0) {
		return false
	}
	var marked Hash
	marked.small.Mark = withDeadlines
	for field, value := range h.All() {
		marked.small.Append(field, value, nil)
	}
	h.small.Reset()
	h.small = marked.small
	return true
}

// appendDeadline appends a deadline as a small hash has it: its bytes, the most significant first, without zeros in
// front.
func appendDeadline(dst []byte, at int64) []byte {
	var b [8]byte
	binary.BigEndian.PutUint64(b[:], uint64(at))
	i := 0
	for i < len(b) && b[i] == 0 {
		i++
	}
	return append(dst, b[i:]...)
}

// decodeDeadline reads what appendDeadline wrote.
func decodeDeadline(b []byte) (at int64) {
	for _, c := range b {
		at = at<<8 | int64(c)
	}
	return at
}
