// Package sets is the set data type: sorted integers while all members are integers and not too many,
// one flat buffer while they are few and short, a hash table otherwise.
package sets

import (
	"iter"
	"math/rand/v2"
	"unsafe"

	"github.com/atomredis/atomredis/engine/delta"
	"github.com/atomredis/atomredis/engine/dict"
	"github.com/atomredis/atomredis/engine/listpack"
)

// Set is a set of byte strings. The zero value is empty and ready to use. A nil *Set may be read and
// is empty, so that a key that does not exist needs no special case.
//
// Representations only ever change from integers to a listpack to a hash table. Every []byte that is
// passed in is copied if it is kept, and must not be a view that the same set handed out. What is
// handed out must not be modified; how long it is valid is said at each method.
type Set struct {
	encoding encoding
	ints     intset
	small    listpack.Listpack
	large    *dict.Dict[struct{}]
	log      *delta.Log // the changes of a hash table that is stored in parts; nil otherwise
}

// Limits bounds the compact representations: the number of members of a set of integers, and the
// number of members and the bytes in any of them for a listpack.
type Limits struct {
	IntsetEntries   int
	ListpackEntries int
	ListpackValue   int
}

type encoding uint8

// The representations, which say what field of a Set is in use.
const (
	asIntset encoding = iota
	asListpack
	asHashtable
)

// Encoding returns the name of the representation as OBJECT ENCODING tells it.
func (s *Set) Encoding() string {
	return [...]string{"intset", "listpack", "hashtable"}[s.encoding]
}

// Len returns the number of members.
func (s *Set) Len() int {
	if s == nil {
		return 0
	}
	switch s.encoding {
	case asIntset:
		return s.ints.len()
	case asListpack:
		return s.small.Len()
	default:
		return s.large.Len()
	}
}

// Contains says whether member is in the set.
func (s *Set) Contains(member []byte) bool {
	if s == nil {
		return false
	}
	switch s.encoding {
	case asIntset:
		v, ok := parseInt(member)
		if ok {
			_, ok = s.ints.search(v)
		}
		return ok
	case asListpack:
		return s.small.Find(member, 0) != -1
	default:
		_, ok := s.large.Get(member)
		return ok
	}
}

// Add puts member into the set, and says whether it is new. The representation changes as lim demands.
func (s *Set) Add(member []byte, lim Limits) bool {
	if s.encoding == asIntset {
		if v, ok := parseInt(member); ok {
			added := s.ints.add(v)
			if added && s.ints.len() > lim.IntsetEntries {
				s.toHashtable()
			}
			return added
		}
		if s.fitsListpack(member, lim) && s.longestInt() <= lim.ListpackValue {
			s.toListpack()
			s.small.Append(member)
			return true
		}
		s.toHashtable()
	}
	if s.encoding == asListpack {
		if s.small.Find(member, 0) != -1 {
			return false
		}
		if s.fitsListpack(member, lim) {
			s.small.Append(member)
			return true
		}
		s.toHashtable()
	}
	return s.addLarge(member)
}

// Remove takes member out of the set, and says whether it was there.
func (s *Set) Remove(member []byte) bool {
	switch s.encoding {
	case asIntset:
		v, ok := parseInt(member)
		return ok && s.ints.remove(v)
	case asListpack:
		p := s.small.Find(member, 0)
		if p != -1 {
			s.small.Delete(p, 1)
		}
		return p != -1
	default:
		return s.removeLarge(member)
	}
}

// Pop removes a random member and returns it, or returns false if the set is empty. The member is
// valid until scratch is used again; scratch may be nil.
func (s *Set) Pop(scratch []byte) ([]byte, bool) {
	n := s.Len()
	if n == 0 {
		return nil, false
	}
	i := rand.IntN(n)
	switch s.encoding {
	case asIntset:
		scratch = appendInt(scratch[:0], s.ints.at(i))
		s.ints.removeAt(i)
		return scratch, true
	case asListpack:
		p := s.small.Seek(i)
		scratch = append(scratch[:0], s.small.At(p)...)
		s.small.Delete(p, 1)
		return scratch, true
	default:
		return bytesOf(s.removeAt(i)), true
	}
}

// Random calls fn for count members, each chosen at random from all of them, so that members may come
// up repeatedly. An empty set has none to offer. A member is valid during the call.
func (s *Set) Random(count int, fn func(member []byte)) {
	n := s.Len()
	if n == 0 {
		return
	}
	switch s.encoding {
	case asIntset:
		scratch := make([]byte, 0, maxDigits)
		for range count {
			scratch = appendInt(scratch[:0], s.ints.at(rand.IntN(n)))
			fn(scratch)
		}
	case asListpack:
		if count == 1 {
			fn(s.small.At(s.small.Seek(rand.IntN(n))))
			return
		}
		members := make([]listpack.Pos, 0, n)
		for p := s.small.First(); p != -1; p = s.small.Next(p) {
			members = append(members, p)
		}
		for range count {
			fn(s.small.At(members[rand.IntN(n)]))
		}
	default:
		for range count {
			key, _ := s.large.At(rand.IntN(n))
			fn(bytesOf(key))
		}
	}
}

// Sample calls fn for count different members, chosen at random; for all if count is larger. A member
// is valid during the call.
func (s *Set) Sample(count int, fn func(member []byte)) {
	left := s.Len()
	if left > 0 && s.encoding == asHashtable {
		dict.Sample(left, count, func(i int) {
			key, _ := s.large.At(i)
			fn(bytesOf(key))
		})
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

// All iterates over the members. A member is valid until the iteration goes on. The set must not
// change meanwhile.
func (s *Set) All() iter.Seq[[]byte] {
	return func(yield func(member []byte) bool) {
		if s == nil {
			return
		}
		switch s.encoding {
		case asIntset:
			scratch := make([]byte, 0, maxDigits)
			for i := range s.ints.len() {
				scratch = appendInt(scratch[:0], s.ints.at(i))
				if !yield(scratch) {
					return
				}
			}
		case asListpack:
			for p := s.small.First(); p != -1; p = s.small.Next(p) {
				if !yield(s.small.At(p)) {
					return
				}
			}
		default:
			for key := range s.large.All() {
				if !yield(bytesOf(key)) {
					return
				}
			}
		}
	}
}

// Scan calls fn for about count members and returns the cursor to go on with, as dict.Scan does: a
// member that is there throughout is visited at least once. A set that is not a hash table is visited
// whole, whatever the cursor and the count. A member is valid during the call.
func (s *Set) Scan(cursor uint64, count int, fn func(member []byte)) uint64 {
	if s != nil && s.encoding == asHashtable {
		return s.large.Scan(cursor, count, func(key string, _ *struct{}) { fn(bytesOf(key)) })
	}
	for member := range s.All() {
		fn(member)
	}
	return 0
}

// Clone returns an independent copy, which does not note its changes.
func (s *Set) Clone() *Set {
	c := &Set{encoding: s.encoding}
	switch s.encoding {
	case asIntset:
		c.ints = s.ints.clone()
	case asListpack:
		c.small = s.small.Clone()
	default:
		c.large = s.large.Clone(nil)
	}
	return c
}

// addLarge puts member into a hash table, and says whether it is new.
func (s *Set) addLarge(member []byte) bool {
	if s.log == nil {
		return !s.large.Set(member, struct{}{})
	}
	if _, ok := s.large.Get(member); ok {
		return false
	}
	key := string(member)
	s.log.Before(bytesOf(key), s)
	s.large.SetString(key, struct{}{})
	s.log.After(key)
	return true
}

// removeLarge takes member out of a hash table, and says whether it was there.
func (s *Set) removeLarge(member []byte) bool {
	if s.log == nil {
		_, ok := s.large.Delete(member)
		return ok
	}
	i, ok := s.large.IndexOf(member)
	if ok {
		s.removeAt(i)
	}
	return ok
}

// removeAt takes entry number i out of a hash table and returns the member that it was.
func (s *Set) removeAt(i int) string {
	if s.log == nil {
		key, _ := s.large.DeleteAt(i)
		return key
	}
	key, _ := s.large.At(i)
	s.log.Before(bytesOf(key), s)
	s.large.DeleteAt(i)
	s.log.After(key)
	return key
}

// fitsListpack says whether a listpack may have member beside those that are there.
func (s *Set) fitsListpack(member []byte, lim Limits) bool {
	return s.Len() < lim.ListpackEntries && len(member) <= lim.ListpackValue
}

// longestInt returns the length of the longest member of a set of integers: the smallest or the
// largest of them.
func (s *Set) longestInt() int {
	n := s.ints.len()
	if n == 0 {
		return 0
	}
	var scratch [maxDigits]byte
	return max(len(appendInt(scratch[:0], s.ints.at(0))), len(appendInt(scratch[:0], s.ints.at(n-1))))
}

func (s *Set) toListpack() {
	var small listpack.Listpack
	for member := range s.All() {
		small.Append(member)
	}
	*s = Set{encoding: asListpack, small: small}
}

func (s *Set) toHashtable() {
	large := dict.New[struct{}]()
	for member := range s.All() {
		large.Set(member, struct{}{})
	}
	*s = Set{encoding: asHashtable, large: large}
}

// bytesOf returns the bytes of a string, which must not be modified.
func bytesOf(s string) []byte { return unsafe.Slice(unsafe.StringData(s), len(s)) }
