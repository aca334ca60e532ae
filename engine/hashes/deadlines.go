package hashes

import (
	"iter"

	"github.com/atomredis/atomredis/engine/deadlines"
)

// This file has the deadlines of fields. A small hash whose fields have had any stores a third element for each field,
// empty if the field does not expire. A large hash has a deadlines.Index beside its fields. A hash without deadlines has
// neither.
//
// The hash knows no clock: an expired field stays until a call of Expire.

// withDeadlines is the bit of the Mark of a small hash whose elements include deadlines.
const withDeadlines = 1

// Deadline returns when a field expires, in ms since 1970; 0 means never. ok is false if there is no such field.
func (h *Hash) Deadline(field []byte) (at int64, ok bool) {
	if l := h.large(); l != nil {
		i, ok := l.fields.IndexOf(field)
		if !ok {
			return 0, false
		}
		return l.deadlines.At(i), true
	}
	p := h.find(field)
	if p == -1 {
		return 0, false
	}
	if !h.marked() {
		return 0, true
	}
	return deadlines.Decode(h.small.At(h.small.Next(h.small.Next(p)))), true
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
			l.index().Set(i, at)
		default:
			l.deadlines.Remove(i)
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
	b := deadlines.Append(buf[:0], at)
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
		return l.deadlines.Next()
	}
	if !h.marked() {
		return 0
	}
	return h.expiring().Next()
}

// Deadlines iterates over the fields that expire, in no order, with their deadlines. The hash must not change
// meanwhile.
func (h *Hash) Deadlines() iter.Seq2[[]byte, int64] {
	if l := h.large(); l != nil {
		return l.deadlines.All()
	}
	if !h.marked() {
		return func(func([]byte, int64) bool) {}
	}
	return h.expiring().All()
}

// AllExpired reports whether every field has a deadline of now or earlier.
func (h *Hash) AllExpired(now int64) bool {
	if l := h.large(); l != nil {
		return l.deadlines.AllBy(now)
	}
	return h.Len() == 0 || h.marked() && h.expiring().AllBy(now)
}

// Expire removes up to max fields whose deadline is now or earlier, and returns how many. It first calls fn with each
// field, which fn must not keep.
func (h *Hash) Expire(now int64, max int, fn func(field []byte)) int {
	n := 0
	if l := h.large(); l != nil {
		for ; n < max; n++ {
			i, ok := l.deadlines.Due(now)
			if !ok {
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
	return h.expiring().Expire(now, max, fn)
}

// expiring returns the deadlines of a marked hash.
func (h *Hash) expiring() deadlines.Small { return deadlines.Small{List: &h.small, Stride: h.stride()} }

// DeadlineIndex returns the deadlines of a large hash, for storage; nil if no field has ever had one, or if the hash is
// small.
func (h *Hash) DeadlineIndex() *deadlines.Index {
	if l := h.large(); l != nil {
		return l.deadlines
	}
	return nil
}

// index returns the deadlines of a large hash, and creates the index on first use.
func (l *large) index() *deadlines.Index {
	if l.deadlines == nil {
		l.deadlines = deadlines.New(l)
	}
	return l.deadlines
}

// A large is the Table of its deadlines.

func (l *large) Len() int                        { return l.fields.Len() }
func (l *large) IndexOf(name []byte) (int, bool) { return l.fields.IndexOf(name) }
func (l *large) Name(i int) string               { return l.fields.At(i).Key() }
func (l *large) KeptName(i int) string           { return l.fields.At(i).keptName() }
func (l *large) Scan(cursor uint64, count int, fn func(name string)) uint64 {
	return l.fields.Scan(cursor, count, func(f *field) { fn(f.Key()) })
}

// deleteField removes field i of a large hash. The last field takes its number.
func (l *large) deleteField(i int) field {
	l.deadlines.Deleting(i)
	f := l.fields.DeleteAt(i)
	l.bytes -= f.size()
	return f
}

// copyDeadlines copies the deadlines of another hash to the fields of the same name.
func (l *large) copyDeadlines(from *Hash) {
	for name, at := range from.Deadlines() {
		if i, ok := l.fields.IndexOf(name); ok {
			l.index().Set(i, at)
		}
	}
}

// marked reports whether the elements of a small hash include deadlines.
func (h *Hash) marked() bool { return h.small.Mark&withDeadlines != 0 }

// mark adds an empty deadline to every field of a small hash; it returns false if there is no room.
func (h *Hash) mark() bool {
	if !h.small.Fits(h.Len(), 0) {
		return false
	}
	var marked Hash
	marked.small.Mark = h.small.Mark | withDeadlines
	for field, value := range h.All() {
		marked.small.Append(field, value, nil)
	}
	h.small.Reset()
	h.small = marked.small
	return true
}
