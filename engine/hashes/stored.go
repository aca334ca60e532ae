package hashes

import (
	"encoding/binary"
	"errors"
	"slices"
	"unsafe"

	"github.com/atomredis/atomredis/engine/deadlines"
	"github.com/atomredis/atomredis/engine/delta"
)

// This file has the stored forms. A small hash is stored whole: the format, then length (unsigned varint) and bytes of
// every field and value in turn, in the order of the hash; in the second format each value is followed by its deadline
// (unsigned varint, 0 is never). A large one is stored in parts: a part's name is a field and its data the value. Its
// deadlines (unsigned varints) are parts under a number of their own, so that a hash without deadlines stores nothing
// for them, and a changed deadline is one small part.
//
// A wide hash is stored whole too. The length of its first field has one byte more than it needs, a zero: earlier
// versions read the hash as a small one.

// The first byte of a hash stored whole.
const (
	blobFormat          = 1
	blobFormatDeadlines = 2
)

// Errors of stored data.
var (
	errFormat     = errors.New("hash: unknown stored format")
	errCut        = errors.New("hash: stored form ends within an element")
	errTwice      = errors.New("hash: stored form has a field twice")
	errTooLong    = errors.New("hash: stored form is too long for a small hash")
	errPartsOrder = errors.New("hash: stored fields are out of order")
)

// Large reports whether the hash must be stored in parts.
func (h *Hash) Large() bool { return h.large() != nil }

// Track makes a large hash note changed fields in l from now on. All present fields count as changed.
func (h *Hash) Track(l *delta.Log) {
	h.Attach(l)
	fields := &h.large().fields
	for i := range fields.Len() {
		fields.Mark(i, l.Epoch())
		l.After(fields.At(i).keptName(), fields.Len())
	}
}

// Attach makes a large hash note changed fields in l from now on; nil ends that.
func (h *Hash) Attach(l *delta.Log) {
	h.large().log = l
	h.large().fields.Unmark()
}

// Walk calls fn with the names of about count parts of a large hash, as Scan does with its fields. A name is a view.
func (h *Hash) Walk(c delta.Cursor, count int, fn func(name string)) (next delta.Cursor, more bool) {
	c.Number = h.large().fields.Scan(c.Number, count, func(f *field) { fn(f.Key()) })
	return c, c.Number != 0
}

// Log returns the record of changes, nil if the hash has none.
func (h *Hash) Log() *delta.Log {
	if l := h.large(); l != nil {
		return l.log
	}
	return nil
}

// AppendPart appends the value of a field of a large hash to dst; ok is false if there is no such field.
func (h *Hash) AppendPart(dst []byte, name string) (out []byte, ok bool) {
	f, ok := h.large().fields.GetString(name)
	if !ok {
		return dst, false
	}
	return append(dst, f.value()...), true
}

// AppendBlob appends the stored form of a small hash to dst.
func (h *Hash) AppendBlob(dst []byte) []byte {
	first := len(dst) + 1
	if !h.marked() {
		dst = append(dst, blobFormat)
		for field, value := range h.All() {
			dst = appendElement(appendElement(dst, field), value)
		}
	} else {
		dst = append(dst, blobFormatDeadlines)
		for p := h.small.First(); p != -1; {
			field, value, third := h.small.Pair(p)
			dst = appendElement(appendElement(dst, field), value)
			dst = deadlines.AppendStored(dst, deadlines.Decode(h.small.At(third)))
			p = h.small.Next(third)
		}
	}
	if h.wide() && first < len(dst) {
		_, w := binary.Uvarint(dst[first:])
		dst = slices.Insert(dst, first+w, 0)
		dst[first+w-1] |= 0x80
	}
	return dst
}

// appendElement appends an element with its length.
func appendElement(dst, element []byte) []byte {
	return append(binary.AppendUvarint(dst, uint64(len(element))), element...)
}

// DecodeBlob returns the hash that AppendBlob has stored, or an error if b is not one. It does not keep b.
func DecodeBlob(b []byte) (*Hash, error) {
	if len(b) == 0 || b[0] != blobFormat && b[0] != blobFormatDeadlines {
		return nil, errFormat
	}
	h := new(Hash)
	if b[0] == blobFormatDeadlines {
		h.small.Mark = withDeadlines
	}
	if _, w := binary.Uvarint(b[1:]); w > 1 && b[w] == 0 {
		h.small.Mark |= isWide
	}
	seen := map[string]struct{}{} // views of b
	for b = b[1:]; len(b) > 0; {
		var field, value []byte
		var ok bool
		if field, b, ok = cut(b); !ok {
			return nil, errCut
		}
		if value, b, ok = cut(b); !ok {
			return nil, errCut
		}
		seen[unsafe.String(unsafe.SliceData(field), len(field))] = struct{}{}
		if !h.marked() {
			if !h.small.Fits(2, len(field)+len(value)) {
				return nil, errTooLong
			}
			h.small.Append(field, value)
		} else {
			var at int64
			var err error
			if at, b, err = deadlines.CutStored(b); err != nil {
				return nil, err
			}
			var buf [8]byte
			deadline := deadlines.Append(buf[:0], at)
			if !h.small.Fits(3, len(field)+len(value)+len(deadline)) {
				return nil, errTooLong
			}
			h.small.Append(field, value, deadline)
		}
		if len(seen) != h.Len() {
			return nil, errTwice
		}
	}
	return h, nil
}

// cut removes an element with its length from the front of b.
func cut(b []byte) (element, rest []byte, ok bool) {
	n, w := binary.Uvarint(b)
	if w <= 0 || n > uint64(len(b)-w) {
		return nil, nil, false
	}
	end := w + int(n)
	return b[w:end], b[end:], true
}

// Loader builds a large hash from its parts.
type Loader struct {
	large *large
	last  string // the last field added
}

// NewLoader returns a Loader that has no parts.
func NewLoader() *Loader { return &Loader{large: new(large)} }

// Add adds the part with the given name and data, and keeps neither. Parts come in the byte order of their names, each
// once; a part out of order is an error. After an error the Loader is useless.
func (l *Loader) Add(name, data []byte) error {
	if l.large.fields.Len() > 0 && string(name) <= l.last {
		return errPartsOrder
	}
	l.last = l.large.add(name, data).Key()
	return nil
}

// AddDeadline adds the part of a deadline with the given name and data, and keeps neither. All fields must have been
// added before.
func (l *Loader) AddDeadline(name, data []byte) error { return l.large.index().AddPart(name, data) }

// Finish returns the hash, which notes its changes in log. The error is always nil: any set of fields is valid.
func (l *Loader) Finish(log *delta.Log) (*Hash, error) {
	l.large.log = log
	return newLarge(l.large), nil
}

// FinishDeadlines is Finish for a hash stored with deadlines. It notes their changes in deadlines.
func (l *Loader) FinishDeadlines(log, deadlines *delta.Log) (*Hash, error) {
	l.large.index().Attach(deadlines)
	return l.Finish(log)
}

// PutPart sets a field of a large hash to its stored value and deadline (nil for none), without noting a change.
func (h *Hash) PutPart(name, data, deadline []byte) error {
	l := h.large()
	defer l.deadlines.Unnoted(&l.log)()
	h.setLarge(l, name, data, false)
	if deadline == nil {
		return nil
	}
	return l.index().AddPart(name, deadline)
}

// DropPart removes a field of a large hash, without noting a change.
func (h *Hash) DropPart(name []byte) {
	l := h.large()
	defer l.deadlines.Unnoted(&l.log)()
	h.Delete(name)
}
