// Package zsets holds the sorted set data structure: byte strings with scores, ordered by score and
// then by the bytes of the member.
//
// A small set is one sorted listpack. A large one is a hash table of its members beside a counting tree: every rank,
// and therefore every count and every start of a range, takes O(log n).
//
// Scores are never NaN: callers refuse it first. -0 and +0 are the same score. Member arguments are copied when they
// are stored and may change afterwards; they must not be views of the same set. Returned members are views: read-only,
// and valid until the next change of the set.
//
// The tree is a B+tree of our own, because it shares its records with the table and knows the sizes of its subtrees.
// With tidwall/btree, finding a rank would need a binary search.
package zsets

import (
	"math"
	"unsafe"

	"github.com/atomredis/atomredis/engine/delta"
	"github.com/atomredis/atomredis/engine/dict"
	"github.com/atomredis/atomredis/engine/listpack"
)

// ZSet is a sorted set. The zero value is empty and ready to use. It has no lock.
type ZSet struct {
	small listpack.Listpack // see small.go; or the pointer to a large
}

// large is a set beyond the limits.
type large struct {
	members dict.Table[member]
	order   tree       // an item for every member
	bytes   int        // memory of the members
	log     *delta.Log // changes of a set stored in parts; else nil
	shared  bool       // a copy of the set may share members, so they must not change
}

// large returns the large form, nil if the set is small.
func (z *ZSet) large() *large { return (*large)(z.small.Other()) }

// Limits are the limits of a small set: zset-max-listpack-entries members of zset-max-listpack-value bytes each. A set
// that was large once stays large.
type Limits struct{ Entries, Value int }

// DefaultLimits are Redis's defaults.
var DefaultLimits = Limits{Entries: 128, Value: 64}

// scoreLen is the length of a score.
const scoreLen = 8

// New returns an empty set.
func New() *ZSet { return new(ZSet) }

// Len returns the number of members.
func (z *ZSet) Len() int {
	if l := z.large(); l != nil {
		return l.order.len
	}
	return z.small.Len() / 2
}

// Encoding returns Redis's name for the form of the set: "listpack" or "skiplist".
func (z *ZSet) Encoding() string {
	if z.large() != nil {
		return "skiplist"
	}
	return "listpack"
}

// MemoryUsage returns how many bytes the set takes, in constant time.
func (z *ZSet) MemoryUsage() int {
	n := int(unsafe.Sizeof(*z))
	l := z.large()
	if l == nil {
		return n + z.small.MemoryUsage()
	}
	return n + int(unsafe.Sizeof(*l)) + l.members.MemoryUsage() + l.order.memoryUsage() + l.bytes
}

// Score returns the score of a member.
func (z *ZSet) Score(member []byte) (float64, bool) {
	if l := z.large(); l != nil {
		if m, ok := l.members.Get(member); ok {
			return *m.score(), true
		}
		return 0, false
	}
	p, _ := z.small.Find(member, 1)
	if p < 0 {
		return 0, false
	}
	_, score, _ := z.pair(p)
	return score, true
}

// Set sets the score of a member, and adds the member if it is new. It returns the old score, if there was one.
func (z *ZSet) Set(member []byte, score float64, lim Limits) (old float64, existed bool) {
	if l := z.large(); l != nil {
		return z.setLarge(l, member, score)
	}
	if p, _ := z.small.Find(member, 1); p >= 0 {
		if _, old, _ = z.pair(p); old != score {
			z.small.Delete(p, 2)
			z.insert(member, score)
		}
		return old, true
	}
	if z.Len() >= lim.Entries || len(member) > lim.Value || !z.small.Fits(2, len(member)+maxScore) {
		return z.setLarge(z.grow(), member, score)
	}
	z.insert(member, score)
	return 0, false
}

// Incr adds delta to the score of a member, 0 if it is new, and returns the sum. If the sum is NaN, which opposite
// infinities cause, it changes nothing and returns false.
func (z *ZSet) Incr(member []byte, delta float64, lim Limits) (float64, bool) {
	score, _ := z.Score(member)
	score += delta
	if math.IsNaN(score) {
		return score, false
	}
	z.Set(member, score, lim)
	return score, true
}

// Remove removes a member. It returns its score, if it existed.
func (z *ZSet) Remove(member []byte) (float64, bool) {
	if l := z.large(); l != nil {
		return z.removeLarge(l, member)
	}
	p, _ := z.small.Find(member, 1)
	if p < 0 {
		return 0, false
	}
	_, score, _ := z.pair(p)
	z.small.Delete(p, 2)
	return score, true
}

// Rank returns the number of members before this one, and its score. From the other end the rank is
// Len - 1 - rank.
func (z *ZSet) Rank(member []byte) (rank int, score float64, ok bool) {
	if l := z.large(); l != nil {
		m, ok := l.members.Get(member)
		if !ok {
			return 0, 0, false
		}
		return l.order.rank(item{*m.score(), *m}), *m.score(), true
	}
	p, rank := z.small.Find(member, 1)
	if p < 0 {
		return 0, 0, false
	}
	_, score, _ = z.pair(p)
	return rank, score, true
}

// At returns the member at a rank, which must be from 0 to Len-1. Large sets take O(log n).
func (z *ZSet) At(rank int) (member []byte, score float64) {
	if l := z.large(); l != nil {
		it := l.order.at(rank)
		return it.member.name(), it.score
	}
	member, score, _ = z.pair(z.seek(rank))
	return member, score
}

// Scan calls fn for some members and returns the next cursor; 0 begins and ends. A small set is visited at once. A
// large one behaves like dict.Table.Scan: a member that exists from the first call to the last is visited at least
// once.
func (z *ZSet) Scan(cursor uint64, count int, fn func(member []byte, score float64)) uint64 {
	if l := z.large(); l != nil {
		return l.members.Scan(cursor, count, func(m *member) { fn(m.name(), *m.score()) })
	}
	z.RangeByRank(0, z.Len()-1, false, func(member []byte, score float64) bool {
		fn(member, score)
		return true
	})
	return 0
}

// Ahead returns the members for lookups ahead, nil if the sorted set is small.
func (z *ZSet) Ahead() dict.Ahead {
	if l := z.large(); l != nil {
		return &l.members
	}
	return nil
}

// Clone returns an independent copy, which does not track its changes.
func (z *ZSet) Clone() *ZSet {
	l := z.large()
	if l == nil {
		return &ZSet{z.small.Clone()}
	}
	l.shared = true
	return newLarge(&large{members: l.members.Clone(nil), order: l.order.clone(), bytes: l.bytes, shared: true})
}

// newLarge returns a set that is large.
func newLarge(l *large) *ZSet {
	z := New()
	z.small.SetOther(unsafe.Pointer(l))
	return z
}

// grow converts a small set into a large one.
func (z *ZSet) grow() *large {
	l := new(large)
	z.walk(span{0, z.Len()}, false, func(name []byte, score float64) bool {
		l.add(newMember(name, score))
		return true
	})
	z.small.SetOther(unsafe.Pointer(l))
	return l
}

// add adds a new member.
func (l *large) add(m member) {
	l.members.Add(m)
	l.bytes += m.size()
	l.order.insert(item{*m.score(), m})
}

// setLarge is Set for a large set. The checks of log avoid calls in a set that is not tracked; the calls would cost
// measurable time.
func (z *ZSet) setLarge(l *large, name []byte, score float64) (old float64, existed bool) {
	i, m, hash := l.members.Find(name)
	if m != nil {
		if old = *m.score(); old != score {
			l.log.Before(m.name(), z)
			was := item{old, *m}
			if l.shared {
				*m = newMember(name, score)
			}
			*m.score() = score
			l.order.move(was, item{score, *m})
			if l.log != nil && (l.members.Mark(i, l.log.Epoch()) || l.shared) { // if shared, the name is at a new address
				l.log.After(m.Key(), l.members.Len())
			}
		}
		return old, true
	}
	added := newMember(name, score)
	if l.log != nil {
		l.log.Before(added.name(), z)
	}
	l.members.Insert(hash, added)
	l.bytes += added.size()
	l.order.insert(item{score, added})
	if l.log != nil {
		l.members.Mark(l.members.Len()-1, l.log.Epoch())
		l.log.After(added.Key(), l.members.Len())
	}
	return 0, false
}

// removeLarge is Remove for a large set.
func (z *ZSet) removeLarge(l *large, name []byte) (float64, bool) {
	if l.log != nil {
		m, ok := l.members.Get(name)
		if !ok {
			return 0, false
		}
		l.log.Before(m.name(), z)
	}
	m, ok := l.members.Delete(name)
	if !ok {
		return 0, false
	}
	l.bytes -= m.size()
	l.order.delete(item{*m.score(), m})
	l.log.After(m.Key(), l.members.Len())
	return *m.score(), true
}

// text returns the bytes as a string, valid as long as they do not change.
func text(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }

// view returns the string as bytes, which must not be changed.
func view(s string) []byte { return unsafe.Slice(unsafe.StringData(s), len(s)) }
