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

// This file has the deadlines of fields. A small hash whose fields have had any keeps a third element for each field,
// which is empty if the field does not expire; a large one has a DeadlineIndex beside its fields. A hash without
// deadlines has neither.
//
// The hash knows no clock: a field is there until somebody calls Expire.

// withDeadlines is the Mark of a small hash that has deadlines among its elements.
const withDeadlines = 1

// DeadlineIndex orders the fields of a large hash that expire, by their numbers in its table, and is what is stored of
// their deadlines: the name of a part is a field and its data the deadline.
type DeadlineIndex struct {
	fields *dict.Table[field] // of the hash
	order  expiry.Numbered
	log    *delta.Log // the changes of a hash that is stored in parts; nil otherwise
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

// SetDeadline makes a field expire at a time in ms since 1970, which must be positive; 0 means never. It says whether
// there is such a field.
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

// AllExpired reports whether every field has a deadline that is now or earlier.
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

// Expire removes fields whose deadline is now or earlier, up to max of them, and returns how many. Before, fn is
// called with each; it keeps neither the field nor a view of it.
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
	d.order.Each(func(i int, _ int64) bool {
		l.After(d.fields.At(i).keptName(), d.order.Len())
		return true
	})
}

// Attach makes the index note in l from now on which deadlines change; nil ends that.
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

// set gives field number i a deadline.
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

// remove takes away the deadline of field number i, if it has one.
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

// memoryUsage returns how many bytes the index takes, which may be nil.
func (d *DeadlineIndex) memoryUsage() int {
	if d == nil {
		return 0
	}
	return int(unsafe.Sizeof(*d)) + d.order.MemoryUsage()
}

// index returns the index of a large hash, and creates it for the first deadline.
func (l *large) index() *DeadlineIndex {
	if l.deadlines == nil {
		l.deadlines = &DeadlineIndex{fields: &l.fields}
	}
	return l.deadlines
}

// setDeadline gives field number i of a large hash a deadline.
func (l *large) setDeadline(i int, at int64) { l.index().set(i, at) }

// deleteField removes field number i of a large hash. The last one takes its number.
func (l *large) deleteField(i int) field {
	if d := l.deadlines; d != nil {
		d.remove(i)
		d.order.Renumber(l.fields.Len()-1, i)
	}
	f := l.fields.DeleteAt(i)
	l.bytes -= f.size()
	return f
}

// copyDeadlines gives the fields those deadlines that they have in another hash.
func (l *large) copyDeadlines(from *Hash) {
	for name, at := range from.Deadlines() {
		if i, ok := l.fields.IndexOf(name); ok {
			l.setDeadline(i, at)
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
