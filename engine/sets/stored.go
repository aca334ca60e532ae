package sets

import (
	"encoding/binary"
	"errors"
	"unsafe"

	"github.com/atomredis/atomredis/engine/deadlines"
	"github.com/atomredis/atomredis/engine/delta"
	"github.com/atomredis/atomredis/engine/dict"
	"github.com/atomredis/atomredis/engine/listpack"
)

// This file has the stored forms. A set of integers is stored whole: the format, the width of a member in bytes, and
// the members, little-endian and ascending. So is a listpack: the format, then length (unsigned varint) and bytes of
// every member, in the third format with its deadline (unsigned varint, 0 is never) behind. A hash table is stored in
// parts: the name of a part is a member, and it has no data. Deadlines are parts under a number of their own.

// The first byte of a set stored whole.
const (
	blobIntset    = 1
	blobListpack  = 2
	blobDeadlines = 3
)

// Errors of stored data.
var (
	errFormat     = errors.New("set: unknown stored format")
	errIntset     = errors.New("set: stored integers are malformed")
	errCut        = errors.New("set: stored form ends within a member")
	errTwice      = errors.New("set: stored form has a member twice")
	errTooLong    = errors.New("set: stored form is too long for a compact set")
	errPartsOrder = errors.New("set: stored members are out of order")
	errPartData   = errors.New("set: a stored member has data")
)

// Large reports whether the set must be stored in parts.
func (s *Set) Large() bool { return s.large() != nil }

// Track makes a Large set note added and removed members in l from now on. All present members count as changed.
func (s *Set) Track(l *delta.Log) {
	s.Attach(l)
	for member := range s.large().members.All() {
		l.After(member.Key(), s.large().members.Len())
	}
}

// Attach makes a Large set note added and removed members in l from now on; nil ends that.
func (s *Set) Attach(l *delta.Log) { s.large().log = l }

// Walk calls fn with the names of about count parts of a Large set, as Scan does with its members. A name is a view.
func (s *Set) Walk(c delta.Cursor, count int, fn func(name string)) (next delta.Cursor, more bool) {
	c.Number = s.large().members.Scan(c.Number, count, func(member *dict.Text) { fn(member.Key()) })
	return c, c.Number != 0
}

// Log returns the record of changes, nil if the set has none.
func (s *Set) Log() *delta.Log {
	if l := s.large(); l != nil {
		return l.log
	}
	return nil
}

// AppendPart appends nothing to dst; ok reports whether name is a member of the set, which must be Large.
func (s *Set) AppendPart(dst []byte, name string) (out []byte, ok bool) {
	_, ok = s.large().members.GetString(name)
	return dst, ok
}

// AppendBlob appends the stored form of a set that is not Large.
func (s *Set) AppendBlob(dst []byte) []byte {
	if ints := s.ints(); ints != nil {
		dst = append(dst, blobIntset, byte(ints.width()))
		return append(dst, ints.buffer().Bytes()...)
	}
	if !s.marked() {
		dst = append(dst, blobListpack)
		for member := range s.All() {
			dst = appendMember(dst, member)
		}
		return dst
	}
	dst = append(dst, blobDeadlines)
	for p := s.elements.First(); p != -1; {
		member, deadline, next := s.elements.Pair(p)
		dst = deadlines.AppendStored(appendMember(dst, member), deadlines.Decode(deadline))
		p = next
	}
	return dst
}

// appendMember appends a member with its length.
func appendMember(dst, member []byte) []byte {
	return append(binary.AppendUvarint(dst, uint64(len(member))), member...)
}

// DecodeBlob returns the set that AppendBlob has stored, or an error if b is not one. It does not keep b.
func DecodeBlob(b []byte) (*Set, error) {
	switch {
	case len(b) > 0 && b[0] == blobIntset:
		return decodeIntset(b[1:])
	case len(b) > 0 && b[0] == blobListpack:
		return decodeListpack(b[1:], asListpack)
	case len(b) > 0 && b[0] == blobDeadlines:
		return decodeListpack(b[1:], withDeadlines)
	}
	return nil, errFormat
}

func decodeIntset(b []byte) (*Set, error) {
	if len(b) == 0 {
		return nil, errIntset
	}
	width, data := int(b[0]), b[1:]
	if width != 0 && width != 2 && width != 4 && width != 8 {
		return nil, errIntset
	}
	if len(data) > 0 && (width == 0 || len(data)%width != 0) {
		return nil, errIntset
	}
	if len(data) > listpack.MaxSize {
		return nil, errTooLong
	}
	s := new(Set)
	s.elements.Count = uint16(width)
	s.elements.Splice(0, 0, len(data))
	copy(s.elements.Bytes(), data)
	for ints, i := s.ints(), 1; i < ints.len(); i++ {
		if ints.at(i-1) >= ints.at(i) {
			return nil, errIntset
		}
	}
	return s, nil
}

// decodeListpack decodes a listpack with a Mark.
func decodeListpack(b []byte, mark uint8) (*Set, error) {
	s := new(Set)
	s.elements.Mark = mark
	seen := map[string]struct{}{} // views of b
	for len(b) > 0 {
		n, w := binary.Uvarint(b)
		if w <= 0 || n > uint64(len(b)-w) {
			return nil, errCut
		}
		end := w + int(n)
		member := b[w:end]
		b = b[end:]
		seen[unsafe.String(unsafe.SliceData(member), len(member))] = struct{}{}
		if !s.marked() {
			if !s.elements.Fits(1, len(member)) {
				return nil, errTooLong
			}
			s.elements.Append(member)
		} else {
			var at int64
			var err error
			if at, b, err = deadlines.CutStored(b); err != nil {
				return nil, err
			}
			var buf [8]byte
			deadline := deadlines.Append(buf[:0], at)
			if !s.elements.Fits(2, len(member)+len(deadline)) {
				return nil, errTooLong
			}
			s.elements.Append(member, deadline)
		}
		if len(seen) != s.Len() {
			return nil, errTwice
		}
	}
	return s, nil
}

// Loader builds a Large set from its parts.
type Loader struct {
	large *large
	last  string // the last member added
}

// NewLoader returns a Loader that has no parts.
func NewLoader() *Loader { return &Loader{large: new(large)} }

// Add adds the part with the given name, which it does not keep, and data, which must be empty. Parts come in the byte
// order of their names, each once; a part out of order is an error. After an error the Loader is useless.
func (l *Loader) Add(name, data []byte) error {
	if l.large.members.Len() > 0 && string(name) <= l.last {
		return errPartsOrder
	}
	if len(data) > 0 {
		return errPartData
	}
	l.last = l.large.members.Add(dict.NewText(name)).Key()
	l.large.bytes += textSize(name)
	return nil
}

// AddDeadline adds the part of a deadline with the given name and data, and keeps neither. All members must have been
// added before.
func (l *Loader) AddDeadline(name, data []byte) error { return l.large.index().AddPart(name, data) }

// Finish returns the set, which notes its changes in log. The error is always nil: any set of members is valid.
func (l *Loader) Finish(log *delta.Log) (*Set, error) {
	l.large.log = log
	return newLarge(l.large), nil
}

// FinishDeadlines is Finish for a set stored with deadlines. It notes their changes in deadlines.
func (l *Loader) FinishDeadlines(log, deadlines *delta.Log) (*Set, error) {
	l.large.index().Attach(deadlines)
	return l.Finish(log)
}

// PutPart adds a member to a Large set with its stored deadline (nil for none), without noting a change. The data must
// be empty.
func (s *Set) PutPart(name, data, deadline []byte) error {
	if len(data) > 0 {
		return errPartData
	}
	l := s.large()
	defer l.deadlines.Unnoted(&l.log)()
	s.addLarge(l, name)
	if i, ok := l.members.IndexOf(name); ok {
		l.deadlines.Remove(i)
	}
	if deadline == nil {
		return nil
	}
	return l.index().AddPart(name, deadline)
}

// DropPart removes a member from a Large set, without noting a change.
func (s *Set) DropPart(name []byte) {
	l := s.large()
	defer l.deadlines.Unnoted(&l.log)()
	s.removeLarge(l, name)
}
