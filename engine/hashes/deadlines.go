package hashes

import (
	"encoding/binary"
	"iter"
	"math"
	"unsafe"

	"github.com/atomredis/atomredis/engine/delta"
	"github.com/atomredis/atomredis/engine/dict"
	"github.com/atomredis/atomredis/engine/expiry"
)

// This file has the deadlines of fields. A small hash whose fields have had any stores a third element for each field,
// empty if the field does not expire. A large hash has a DeadlineIndex beside its fields. A hash without deadlines has
// neither.
//
// The hash knows no clock: an expired field stays until a call of Expire.

// withDeadlines is the Mark of a small hash whose elements include deadlines.
const withDeadlines = 1

// DeadlineIndex orders the expiring fields of a large hash, by their numbers in its table. It is also the stored form
// of the deadlines: a part's name is a field and its data the deadline.
type DeadlineIndex struct {
	fields *dict.Table[field] // the hash's table
	order  expiry.Numbered
	log    *delta.Log // changes of a hash stored in parts; else nil
}

// Deadline returns when a field expires, in ms since 1970; 0 means never. ok is false if there is no such field.
func (h *Hash) Deadline(field []byte) (at int64, ok bool) {
	if l := h.large(); l != nil {
		i, ok := l.fields.IndexOf(field)
		if !ok || l.deadlines == nil {
			return 0, ok
		}
		return l.deadlines.order.At(i), true
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

// SetDeadline makes a field expire at a time in ms since 1970, which must be positive, or never if at is 0. It reports
// whether the field exists.
func (h *Hash) SetDeadline(field []byte, at int64) bool {
	if l := h.large(); l != nil {
		i, ok := l.fields.IndexOf(field)
		switch {
		case !ok:
			return false
		case at != 0:
			l.setDeadline(i, at)
		case l.deadlines != nil:
			l.deadlines.remove(i)
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
				l.deadlines.order.Each(func(i int, at int64) bool { return yield(l.fields.At(i).name(), at) })
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

// AllExpired reports whether every field has a deadline of now or earlier.
func (h *Hash) AllExpired(now int64) bool {
	if l := h.large(); l != nil {
		d := l.deadlines
		return d != nil && d.order.Len() == l.fields.Len() && d.order.AllBy(now)
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

// Expire removes up to max fields whose deadline is now or earlier, and returns how many. It first calls fn with each
// field, which fn must not keep.
func (h *Hash) Expire(now int64, max int, fn func(field []byte)) int {
	n := 0
	if l := h.large(); l != nil {
		if l.deadlines == nil {
			return 0
		}
		for ; n < max; n++ {
			i, at, ok := l.deadlines.order.Min()
			if !ok || at > now {
				break
			}
			fn(l.fields.At(i).name())
			h.deleteLarge(l, i)
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

// DeadlineIndex returns the stored form of a large hash's deadlines; nil if no field has ever had one, or if the hash
// is small.
func (h *Hash) DeadlineIndex() *DeadlineIndex {
	if l := h.large(); l != nil {
		return l.deadlines
	}
	return nil
}

// Track makes the index note changed deadlines in l from now on. All present deadlines count as changed.
func (d *DeadlineIndex) Track(l *delta.Log) {
	d.Attach(l)
	d.order.Each(func(i int, _ int64) bool {
		l.After(d.fields.At(i).keptName(), d.order.Len())
		return true
	})
}

// Attach makes the index note changed deadlines in l from now on; nil ends that.
func (d *DeadlineIndex) Attach(l *delta.Log) { d.log = l }

// Walk calls fn with the names of the parts among count fields, as Hash.Walk does.
func (d *DeadlineIndex) Walk(c delta.Cursor, count int, fn func(name string)) (next delta.Cursor, more bool) {
	i := d.fields.Len()
	if c.Number != 0 {
		i = min(i, int(min(c.Number, math.MaxInt)))
	}
	c.Number = d.fields.Scan(c.Number, count, func(f *field) {
		if i--; d.order.At(i) != 0 {
			fn(f.Key())
		}
	})
	return c, c.Number != 0
}

// Log returns the record of changes, nil if there is none.
func (d *DeadlineIndex) Log() *delta.Log { return d.log }

// AppendPart appends the stored deadline of a field to dst; ok is false if the field has none.
func (d *DeadlineIndex) AppendPart(dst []byte, name string) (out []byte, ok bool) {
	i, ok := d.fields.IndexOf(bytesOf(name))
	if !ok {
		return dst, false
	}
	at := d.order.At(i)
	if at == 0 {
		return dst, false
	}
	return binary.AppendUvarint(dst, uint64(at)), true
}

// set sets the deadline of field i.
func (d *DeadlineIndex) set(i int, at int64) {
	if d.log == nil {
		d.order.Set(i, at)
		return
	}
	f := d.fields.At(i)
	d.log.Before(f.name(), d)
	d.order.Set(i, at)
	d.log.After(f.keptName(), d.order.Len())
}

// remove removes the deadline of field i, if it has one.
func (d *DeadlineIndex) remove(i int) {
	if d.order.At(i) == 0 {
		return
	}
	if d.log == nil {
		d.order.Remove(i)
		return
	}
	f := d.fields.At(i)
	d.log.Before(f.name(), d)
	d.order.Remove(i)
	d.log.After(f.keptName(), d.order.Len())
}

// memoryUsage returns how many bytes the index takes. d may be nil.
func (d *DeadlineIndex) memoryUsage() int {
	if d == nil {
		return 0
	}
	return int(unsafe.Sizeof(*d)) + d.order.MemoryUsage()
}

// index returns the index of a large hash, and creates it on first use.
func (l *large) index() *DeadlineIndex {
	if l.deadlines == nil {
		l.deadlines = &DeadlineIndex{fields: &l.fields}
	}
	return l.deadlines
}

// setDeadline sets the deadline of field i of a large hash.
func (l *large) setDeadline(i int, at int64) { l.index().set(i, at) }

// deleteField removes field i of a large hash. The last field takes its number.
func (l *large) deleteField(i int) field {
	if d := l.deadlines; d != nil {
		d.remove(i)
		d.order.Renumber(l.fields.Len()-1, i)
	}
	f := l.fields.DeleteAt(i)
	l.bytes -= f.size()
	return f
}

// copyDeadlines copies the deadlines of another hash to the fields of the same name.
func (l *large) copyDeadlines(from *Hash) {
	for name, at := range from.Deadlines() {
		if i, ok := l.fields.IndexOf(name); ok {
			l.setDeadline(i, at)
		}
	}
}

// marked reports whether the elements of a small hash include deadlines.
func (h *Hash) marked() bool { return h.small.Mark == withDeadlines }

// mark adds an empty deadline to every field of a small hash; it returns false if there is no room.
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

// appendDeadline appends a deadline in the form of a small hash: big-endian, without leading zeros.
func appendDeadline(dst []byte, at int64) []byte {
	var b [8]byte
	binary.BigEndian.PutUint64(b[:], uint64(at))
	i := 0
	for i < len(b) && b[i] == 0 {
		i++
	}
	return append(dst, b[i:]...)
}

// decodeDeadline reads the output of appendDeadline.
func decodeDeadline(b []byte) (at int64) {
	for _, c := range b {
		at = at<<8 | int64(c)
	}
	return at
}
