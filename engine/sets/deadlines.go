package sets

import (
	"iter"

	"github.com/atomredis/atomredis/engine/deadlines"
	"github.com/atomredis/atomredis/engine/dict"
	"github.com/atomredis/atomredis/engine/listpack"
)

// This file has the deadlines of members. Once a member of a listpack gets one, each member is followed by a second
// element, empty if the member does not expire. A hash table has a deadlines.Index beside its members. Integers have no
// deadlines: they become a listpack or a hash table first.
//
// The set knows no clock: an expired member stays until a call of Expire.

// Deadline returns when a member expires, in ms since 1970; 0 means never. ok is false if there is no such member.
func (s *Set) Deadline(member []byte) (at int64, ok bool) {
	if s == nil {
		return 0, false
	}
	if l := s.large(); l != nil {
		i, ok := l.members.IndexOf(member)
		if !ok {
			return 0, false
		}
		return l.deadlines.At(i), true
	}
	if !s.marked() {
		return 0, s.Contains(member)
	}
	p := s.find(member)
	if p == -1 {
		return 0, false
	}
	return deadlines.Decode(s.elements.At(s.elements.Next(p))), true
}

// SetDeadline makes a member expire at a time in ms since 1970, which must be positive, or never if at is 0. It reports
// whether the member exists. lim determines the representation of a set of integers.
func (s *Set) SetDeadline(member []byte, at int64, lim Limits) bool {
	l := s.large()
	if l == nil && !s.marked() {
		if at == 0 || !s.Contains(member) {
			return s.Contains(member)
		}
		l = s.mark(lim)
	}
	if l == nil {
		p := s.find(member)
		if p == -1 {
			return false
		}
		var buf [8]byte
		b := deadlines.Append(buf[:0], at)
		if s.elements.Fits(0, len(b)) {
			s.elements.Replace(s.elements.Next(p), b)
			return true
		}
		l = s.toHashtable()
	}
	i, ok := l.members.IndexOf(member)
	switch {
	case !ok:
	case at != 0:
		l.index().Set(i, at)
	default:
		l.deadlines.Remove(i)
	}
	return ok
}

// NextDeadline returns the earliest deadline of a member, 0 if no member expires.
func (s *Set) NextDeadline() int64 {
	if l := s.large(); l != nil {
		return l.deadlines.Next()
	}
	if !s.marked() {
		return 0
	}
	return s.expiring().Next()
}

// Deadlines iterates over the members that expire, in no order, with their deadlines. The set must not change meanwhile.
func (s *Set) Deadlines() iter.Seq2[[]byte, int64] {
	if l := s.large(); l != nil {
		return l.deadlines.All()
	}
	if !s.marked() {
		return func(func([]byte, int64) bool) {}
	}
	return s.expiring().All()
}

// AllExpired reports whether every member has a deadline of now or earlier.
func (s *Set) AllExpired(now int64) bool {
	if l := s.large(); l != nil {
		return l.deadlines.AllBy(now)
	}
	return s.Len() == 0 || s.marked() && s.expiring().AllBy(now)
}

// Expire removes up to max members whose deadline is now or earlier, and returns how many. It first calls fn with each
// member, which fn must not keep.
func (s *Set) Expire(now int64, max int, fn func(member []byte)) int {
	n := 0
	if l := s.large(); l != nil {
		for ; n < max; n++ {
			i, ok := l.deadlines.Due(now)
			if !ok {
				break
			}
			fn(bytesOf(l.members.At(i).Key()))
			s.removeAt(l, i)
		}
		return n
	}
	if !s.marked() {
		return 0
	}
	return s.expiring().Expire(now, max, fn)
}

// expiring returns the deadlines of a marked listpack.
func (s *Set) expiring() deadlines.Small {
	return deadlines.Small{List: &s.elements, Stride: s.stride()}
}

// DeadlineIndex returns the deadlines of a Large set, for storage; nil if no member has ever had one, or if the set is
// not Large.
func (s *Set) DeadlineIndex() *deadlines.Index {
	if l := s.large(); l != nil {
		return l.deadlines
	}
	return nil
}

// index returns the deadlines of a hash table, and creates the index on first use.
func (l *large) index() *deadlines.Index {
	if l.deadlines == nil {
		l.deadlines = deadlines.New(l)
	}
	return l.deadlines
}

// A large is the Table of its deadlines.

func (l *large) Len() int                        { return l.members.Len() }
func (l *large) IndexOf(name []byte) (int, bool) { return l.members.IndexOf(name) }
func (l *large) Name(i int) string               { return l.members.At(i).Key() }
func (l *large) KeptName(i int) string           { return l.members.At(i).Key() }
func (l *large) Scan(cursor uint64, count int, fn func(name string)) uint64 {
	return l.members.Scan(cursor, count, func(member *dict.Text) { fn(member.Key()) })
}

// copyDeadlines copies the deadlines of another set to the same members.
func (l *large) copyDeadlines(from *Set) {
	for member, at := range from.Deadlines() {
		if i, ok := l.members.IndexOf(member); ok {
			l.index().Set(i, at)
		}
	}
}

// marked reports whether a deadline follows each member of a listpack.
func (s *Set) marked() bool { return s.elements.Mark == withDeadlines }

// stride returns the number of elements per member of a listpack.
func (s *Set) stride() int {
	if s.marked() {
		return 2
	}
	return 1
}

// mark makes integers or a listpack a listpack with deadlines, all empty, or a hash table, which it returns, if there is
// no room.
func (s *Set) mark(lim Limits) *large {
	if ints := s.ints(); ints != nil && (ints.len() > lim.ListpackEntries || ints.longest() > lim.ListpackValue) {
		return s.toHashtable()
	}
	size := 0
	for member := range s.All() {
		size += len(member)
	}
	var marked listpack.Listpack
	if !marked.Fits(2*s.Len(), size) {
		return s.toHashtable()
	}
	for member := range s.All() {
		marked.Append(member, nil)
	}
	marked.Mark = withDeadlines
	s.elements.Reset()
	s.elements = marked
	return nil
}
