// Package sets is the set data type: sorted integers if all members are integers and not too many, one flat buffer if
// they are few and short, otherwise a hash table.
//
// In a hash table a member has one pointer, to its name. Members can have deadlines, as the fields of hashes: see
// deadlines.go.
package sets

import (
	"iter"
	"math/rand/v2"
	"unsafe"

	"github.com/atomredis/atomredis/engine/deadlines"
	"github.com/atomredis/atomredis/engine/delta"
	"github.com/atomredis/atomredis/engine/dict"
	"github.com/atomredis/atomredis/engine/listpack"
)

// Set is a set of byte strings. The zero value is empty and ready to use. A nil *Set may be read and is empty, so that
// a missing key needs no special case.
//
// The representation only changes from integers to a listpack to a hash table. A []byte argument is copied if it is
// kept, and must not be a view that the same set returned. Returned slices are read-only; each method says how long
// they are valid.
type Set struct {
	// elements has the members in a listpack or an intset, according to its Mark, or the pointer to a large. If the Mark
	// is withDeadlines, a deadline follows each member.
	elements listpack.Listpack
}

// The Marks of elements.
const (
	asIntset uint8 = iota
	asListpack
	withDeadlines
)

// large is a hash table.
type large struct {
	members dict.Table[dict.Text]
	bytes   int        // memory of the members outside the table
	log     *delta.Log // changes of a set stored in parts; else nil

	deadlines *deadlines.Index // nil if no member ever had a deadline
}

// large returns the hash table, nil in other representations.
func (s *Set) large() *large { return (*large)(s.elements.Other()) }

// ints returns the integers, nil in other representations.
func (s *Set) ints() *intset {
	if s.elements.Mark != asIntset {
		return nil
	}
	return (*intset)(&s.elements.Buffer)
}

// Limits bound the compact representations: the number of members of a set of integers, and the number of members and
// the bytes of each for a listpack.
type Limits struct {
	IntsetEntries   int
	ListpackEntries int
	ListpackValue   int
}

// Encoding returns the representation's name as in OBJECT ENCODING.
func (s *Set) Encoding() string {
	switch {
	case s.large() != nil:
		return "hashtable"
	case s.ints() != nil:
		return "intset"
	case s.marked():
		return "listpackex"
	}
	return "listpack"
}

// Len returns the number of members.
func (s *Set) Len() int {
	if s == nil {
		return 0
	}
	if l := s.large(); l != nil {
		return l.members.Len()
	}
	if ints := s.ints(); ints != nil {
		return ints.len()
	}
	return s.elements.Len() / s.stride()
}

// MemoryUsage returns how many bytes the set takes, in constant time.
func (s *Set) MemoryUsage() int {
	n := int(unsafe.Sizeof(*s))
	l := s.large()
	if l == nil {
		return n + s.elements.MemoryUsage()
	}
	return n + int(unsafe.Sizeof(*l)) + l.members.MemoryUsage() + l.bytes + l.deadlines.MemoryUsage()
}

// find returns the position of a member of a listpack, -1 if it is absent.
func (s *Set) find(member []byte) listpack.Pos {
	p, _ := s.elements.Find(member, s.stride()-1)
	return p
}

// next returns the position of the member of a listpack after the one at p, or -1.
func (s *Set) next(p listpack.Pos) listpack.Pos {
	if s.marked() {
		p = s.elements.Next(p)
	}
	return s.elements.Next(p)
}

// Contains reports whether member is in the set.
func (s *Set) Contains(member []byte) bool {
	if s == nil {
		return false
	}
	if l := s.large(); l != nil {
		_, ok := l.members.Get(member)
		return ok
	}
	if ints := s.ints(); ints != nil {
		v, ok := parseInt(member)
		if ok {
			_, ok = ints.search(v)
		}
		return ok
	}
	return s.find(member) != -1
}

// Add adds a member, and reports whether it is new; one that exists keeps its deadline. lim determines the
// representation.
func (s *Set) Add(member []byte, lim Limits) bool {
	if l := s.large(); l != nil {
		return s.addLarge(l, member)
	}
	if ints := s.ints(); ints != nil {
		if v, ok := parseInt(member); ok {
			if !ints.fits(v) {
				return s.addLarge(s.toHashtable(), member)
			}
			added := ints.add(v)
			if added && ints.len() > lim.IntsetEntries {
				s.toHashtable()
			}
			return added
		}
		if !s.listpackFits(member, lim) {
			return s.addLarge(s.toHashtable(), member)
		}
		s.toListpack()
		s.elements.Append(member)
		return true
	}
	if s.find(member) != -1 {
		return false
	}
	if !s.listpackFits(member, lim) {
		return s.addLarge(s.toHashtable(), member)
	}
	if s.marked() {
		s.elements.Append(member, nil)
	} else {
		s.elements.Append(member)
	}
	return true
}

// Remove removes a member, and reports whether it existed.
func (s *Set) Remove(member []byte) bool {
	if l := s.large(); l != nil {
		return s.removeLarge(l, member)
	}
	if ints := s.ints(); ints != nil {
		v, ok := parseInt(member)
		return ok && ints.remove(v)
	}
	p := s.find(member)
	if p != -1 {
		s.elements.Delete(p, s.stride())
	}
	return p != -1
}

// Pop removes and returns a random member; ok is false if the set is empty. The member is valid until scratch is used
// again; scratch may be nil.
func (s *Set) Pop(scratch []byte) ([]byte, bool) {
	n := s.Len()
	if n == 0 {
		return nil, false
	}
	i := rand.IntN(n)
	if l := s.large(); l != nil {
		return bytesOf(s.removeAt(l, i)), true
	}
	if ints := s.ints(); ints != nil {
		scratch = appendInt(scratch[:0], ints.at(i))
		ints.removeAt(i)
		return scratch, true
	}
	p := s.elements.Seek(i * s.stride())
	scratch = append(scratch[:0], s.elements.At(p)...)
	s.elements.Delete(p, s.stride())
	return scratch, true
}

// Random calls fn for count members, each drawn from all, so members may repeat. For an empty set it does nothing. A
// member is valid during the call.
func (s *Set) Random(count int, fn func(member []byte)) {
	n := s.Len()
	if n == 0 {
		return
	}
	if l := s.large(); l != nil {
		for range count {
			fn(bytesOf(l.members.At(rand.IntN(n)).Key()))
		}
		return
	}
	if ints := s.ints(); ints != nil {
		scratch := make([]byte, 0, maxDigits)
		for range count {
			scratch = appendInt(scratch[:0], ints.at(rand.IntN(n)))
			fn(scratch)
		}
		return
	}
	if count == 1 {
		fn(s.elements.At(s.elements.Seek(rand.IntN(n) * s.stride())))
		return
	}
	members := make([]listpack.Pos, 0, n)
	for p := s.elements.First(); p != -1; p = s.next(p) {
		members = append(members, p)
	}
	for range count {
		fn(s.elements.At(members[rand.IntN(n)]))
	}
}

// Sample calls fn for count different members, chosen at random; for all if count is larger. A member
// is valid during the call.
func (s *Set) Sample(count int, fn func(member []byte)) {
	left := s.Len()
	if left == 0 {
		return
	}
	if l := s.large(); l != nil {
		dict.Sample(left, count, func(i int) { fn(bytesOf(l.members.At(i).Key())) })
		return
	}
	for member := range s.All() {
		if count <= 0 {
			return
		}
		if rand.IntN(left) < count {
			fn(member)
			count--
		}
		left--
	}
}

// All iterates over the members. A member is valid until the next step. The set must not change meanwhile.
func (s *Set) All() iter.Seq[[]byte] {
	return func(yield func(member []byte) bool) {
		if s == nil {
			return
		}
		if l := s.large(); l != nil {
			for member := range l.members.All() {
				if !yield(bytesOf(member.Key())) {
					return
				}
			}
			return
		}
		if ints := s.ints(); ints != nil {
			scratch := make([]byte, 0, maxDigits)
			for i := range ints.len() {
				scratch = appendInt(scratch[:0], ints.at(i))
				if !yield(scratch) {
					return
				}
			}
			return
		}
		for p := s.elements.First(); p != -1; p = s.next(p) {
			if !yield(s.elements.At(p)) {
				return
			}
		}
	}
}

// Scan calls fn for about count members and returns the next cursor, as dict.Table.Scan does: a member that is present
// throughout is visited at least once. A set that is not a hash table is visited whole, whatever the cursor and the
// count. A member is valid during the call.
func (s *Set) Scan(cursor uint64, count int, fn func(member []byte)) uint64 {
	if s != nil {
		if l := s.large(); l != nil {
			return l.members.Scan(cursor, count, func(member *dict.Text) { fn(bytesOf(member.Key())) })
		}
	}
	for member := range s.All() {
		fn(member)
	}
	return 0
}

// Ahead returns the members for lookups ahead, nil if the set is small.
func (s *Set) Ahead() dict.Ahead {
	if l := s.large(); l != nil {
		return &l.members
	}
	return nil
}

// Clone returns an independent copy, which does not track its changes.
func (s *Set) Clone() *Set {
	if l := s.large(); l != nil {
		c := &large{members: l.members.Clone(nil), bytes: l.bytes} // shares the members, which never change
		c.copyDeadlines(s)
		return newLarge(c)
	}
	return &Set{s.elements.Clone()}
}

// newLarge returns a set that is a hash table.
func newLarge(l *large) *Set {
	s := new(Set)
	s.elements.SetOther(unsafe.Pointer(l))
	return s
}

// textSize returns the memory of a hash table's member outside the table.
func textSize(member []byte) int { return listpack.Allocated(dict.TextLen(member)) }

// addLarge adds a member to a hash table, and reports whether it is new.
func (s *Set) addLarge(l *large, member []byte) bool {
	_, there, hash := l.members.Find(member)
	if there != nil {
		return false
	}
	added := dict.NewText(member)
	if l.log != nil {
		l.log.Before(bytesOf(added.Key()), s)
	}
	l.members.Insert(hash, added)
	l.bytes += textSize(member)
	if l.log != nil {
		l.log.After(added.Key(), l.members.Len())
	}
	return true
}

// removeLarge removes a member from a hash table, and reports whether it existed.
func (s *Set) removeLarge(l *large, member []byte) bool {
	if l.log == nil && l.deadlines == nil { // hash the member only once
		_, ok := l.members.Delete(member)
		if ok {
			l.bytes -= textSize(member)
		}
		return ok
	}
	i, ok := l.members.IndexOf(member)
	if ok {
		s.removeAt(l, i)
	}
	return ok
}

// removeAt removes member i from a hash table and returns it.
func (s *Set) removeAt(l *large, i int) string {
	member := l.members.At(i).Key()
	if l.log != nil {
		l.log.Before(bytesOf(member), s)
	}
	l.deadlines.Deleting(i)
	l.members.DeleteAt(i)
	l.bytes -= textSize(bytesOf(member))
	if l.log != nil {
		l.log.After(member, l.members.Len())
	}
	return member
}

// listpackFits reports whether the set, not a hash table, can be a listpack with one more member.
func (s *Set) listpackFits(member []byte, lim Limits) bool {
	n := s.Len()
	if n >= lim.ListpackEntries || len(member) > lim.ListpackValue {
		return false
	}
	if ints := s.ints(); ints != nil {
		longest := ints.longest()
		return longest <= lim.ListpackValue && new(listpack.Listpack).Fits(n+1, n*longest+len(member))
	}
	return s.elements.Fits(s.stride(), len(member))
}

// toListpack converts a set of integers to a listpack.
func (s *Set) toListpack() {
	var members listpack.Listpack
	for member := range s.All() {
		members.Append(member)
	}
	members.Mark = asListpack
	s.elements.Reset()
	s.elements = members
}

// toHashtable converts another representation to a hash table.
func (s *Set) toHashtable() *large {
	l := new(large)
	for member := range s.All() {
		l.members.Add(dict.NewText(member))
		l.bytes += textSize(member)
	}
	l.copyDeadlines(s)
	s.elements.SetOther(unsafe.Pointer(l))
	return l
}

// bytesOf returns the bytes of a string, which must not be modified.
func bytesOf(s string) []byte { return unsafe.Slice(unsafe.StringData(s), len(s)) }
