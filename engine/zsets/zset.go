// Package zsets holds the sorted set data structure: byte strings with scores, ordered by score and
// then by the bytes of the member.
//
// A small set is one listpack in order. A large one is a dictionary from member to score beside a
// tree that counts: every rank, and therefore every count and every place to begin a range, takes
// O(log n).
//
// Scores are never NaN: callers refuse it before. -0 and +0 are the same score. Members passed in are
// copied when they are stored and may die afterwards; they must not be views of the same set. Members
// handed out are views: read-only, and valid until the next change of the set.
package zsets

import (
	"encoding/binary"
	"math"
	"unsafe"

	"github.com/atomredis/atomredis/engine/delta"
	"github.com/atomredis/atomredis/engine/dict"
	"github.com/atomredis/atomredis/engine/listpack"
)

// ZSet is a sorted set. The zero value is empty and ready to use. It has no lock.
type ZSet struct {
	small listpack.Listpack // elements are a score, 8 bytes, and its member
	large *large            // nil while the set is small
	log   *delta.Log        // the changes of a large set that is stored in parts; nil otherwise
}

// large is the form of a set beyond the limits.
type large struct {
	scores *dict.Dict[float64]
	order  tree // an item for every entry of scores
	bytes  int  // length of all members
}

// Limits is the size up to which a set is small: zset-max-listpack-entries members of
// zset-max-listpack-value bytes each. A set that has become large stays so.
type Limits struct{ Entries, Value int }

// DefaultLimits is what Redis uses unless configured otherwise.
var DefaultLimits = Limits{Entries: 128, Value: 64}

// scoreLen is the length of a score in the listpack.
const scoreLen = 8

// New returns an empty set.
func New() *ZSet { return new(ZSet) }

// Len is the number of members.
func (z *ZSet) Len() int {
	if z.large != nil {
		return z.large.order.len
	}
	return z.small.Len()
}

// Encoding is the name Redis has for the form of the set: "listpack" or "skiplist".
func (z *ZSet) Encoding() string {
	if z.large != nil {
		return "skiplist"
	}
	return "listpack"
}

// Size is about the memory in use, in bytes.
func (z *ZSet) Size() int {
	// A member of a large set costs a dictionary entry with its slot and, in the tree, an item with
	// its share of free room and of inner nodes.
	const overhead = 80
	if z.large != nil {
		return z.large.bytes + overhead*z.large.order.len
	}
	return z.small.Size()
}

// Score returns the score of a member.
func (z *ZSet) Score(member []byte) (float64, bool) {
	if z.large != nil {
		if v, ok := z.large.scores.Get(member); ok {
			return *v, true
		}
		return 0, false
	}
	p, _ := z.find(member)
	if p < 0 {
		return 0, false
	}
	score, _ := z.decode(p)
	return score, true
}

// Set gives a member a score, adding the member if it is new. It returns the score that the member
// had before, if it had one.
func (z *ZSet) Set(member []byte, score float64, lim Limits) (old float64, existed bool) {
	if z.large != nil {
		return z.setLarge(member, score)
	}
	if p, _ := z.find(member); p >= 0 {
		if old, _ = z.decode(p); old != score {
			z.small.Delete(p, 1)
			z.insert(member, score)
		}
		return old, true
	}
	if z.small.Len() >= lim.Entries || len(member) > lim.Value {
		z.grow()
		return z.setLarge(member, score)
	}
	z.insert(member, score)
	return 0, false
}

// Incr adds delta to the score of a member, 0 if it is new, and returns the sum. If the sum is not a
// number, which happens to opposite infinities, it changes nothing and returns false.
func (z *ZSet) Incr(member []byte, delta float64, lim Limits) (float64, bool) {
	score, _ := z.Score(member)
	score += delta
	if math.IsNaN(score) {
		return score, false
	}
	z.Set(member, score, lim)
	return score, true
}

// Remove removes a member. It returns the score that it had, if it was there.
func (z *ZSet) Remove(member []byte) (float64, bool) {
	if z.large != nil {
		return z.removeLarge(member)
	}
	p, _ := z.find(member)
	if p < 0 {
		return 0, false
	}
	score, _ := z.decode(p)
	z.small.Delete(p, 1)
	return score, true
}

// Rank returns the number of members before this one, and its score. From the other end the rank is
// Len - 1 - rank.
func (z *ZSet) Rank(member []byte) (rank int, score float64, ok bool) {
	if z.large != nil {
		v, ok := z.large.scores.Get(member)
		if !ok {
			return 0, 0, false
		}
		return z.large.order.rank(item{*v, text(member)}), *v, true
	}
	p, rank := z.find(member)
	if p < 0 {
		return 0, 0, false
	}
	score, _ = z.decode(p)
	return rank, score, true
}

// At returns the member at a rank, which must be from 0 to Len-1. Large sets take O(log n).
func (z *ZSet) At(rank int) (member []byte, score float64) {
	if z.large != nil {
		it := z.large.order.at(rank)
		return view(it.member), it.score
	}
	score, member = z.decode(z.small.Seek(rank))
	return member, score
}

// Scan calls fn for some members and returns the cursor to go on with; 0 begins and ends. A small set
// is visited at once. A large one behaves as dict.Dict.Scan: a member that is there from the first
// call to the last is visited at least once.
func (z *ZSet) Scan(cursor uint64, count int, fn func(member []byte, score float64)) uint64 {
	if z.large == nil {
		z.RangeByRank(0, z.Len()-1, false, func(member []byte, score float64) bool {
			fn(member, score)
			return true
		})
		return 0
	}
	return z.large.scores.Scan(cursor, count, func(key string, v *float64) { fn(view(key), *v) })
}

// Clone returns an independent copy, which does not note its changes.
func (z *ZSet) Clone() *ZSet {
	c := &ZSet{small: z.small.Clone()}
	if l := z.large; l != nil {
		c.large = &large{
			scores: l.scores.Clone(func(v *float64) float64 { return *v }),
			order:  l.order.clone(),
			bytes:  l.bytes,
		}
	}
	return c
}

// find returns the position and the rank of a member of a small set, or -1, -1.
func (z *ZSet) find(member []byte) (listpack.Pos, int) {
	rank := 0
	for p := z.small.First(); p >= 0; p = z.small.Next(p) {
		if e := z.small.At(p); len(e) == scoreLen+len(member) && string(e[scoreLen:]) == string(member) {
			return p, rank
		}
		rank++
	}
	return -1, -1
}

// decode returns the score and the member at a position of a small set.
func (z *ZSet) decode(p listpack.Pos) (float64, []byte) {
	e := z.small.At(p)
	return math.Float64frombits(binary.LittleEndian.Uint64(e)), e[scoreLen:]
}

// insert puts a new member in its place in a small set.
func (z *ZSet) insert(member []byte, score float64) {
	var room [128]byte // most members fit, and take no allocation
	e := binary.LittleEndian.AppendUint64(room[:0], math.Float64bits(score))
	e = append(e, member...)
	it := item{score, text(member)}
	p := z.small.Last()
	if p >= 0 && z.precedes(p, &it) {
		z.small.Append(e)
		return
	}
	for p = z.small.First(); p >= 0 && z.precedes(p, &it); {
		p = z.small.Next(p)
	}
	z.small.InsertBefore(p, e)
}

// precedes tells whether the member at a position of a small set comes before it.
func (z *ZSet) precedes(p listpack.Pos, it *item) bool {
	score, member := z.decode(p)
	at := item{score, text(member)}
	return at.less(it)
}

// grow makes a small set large.
func (z *ZSet) grow() {
	l := newLarge()
	for p := z.small.First(); p >= 0; p = z.small.Next(p) {
		score, member := z.decode(p)
		l.add(string(member), score)
	}
	z.large = l
	z.small.Reset()
}

func newLarge() *large { return &large{scores: dict.New[float64]()} }

// add puts in a member that is not there. The string is kept.
func (l *large) add(member string, score float64) {
	l.scores.SetString(member, score)
	l.order.insert(item{score, member})
	l.bytes += len(member)
}

// setLarge is Set for a large set. The checks of log spare a set that is not tracked the calls, which would show.
func (z *ZSet) setLarge(member []byte, score float64) (old float64, existed bool) {
	l := z.large
	kept, v, ok := l.scores.Lookup(member)
	if !ok {
		kept = string(member)
		if z.log != nil {
			z.log.Before(view(kept), z)
		}
		l.add(kept, score)
		if z.log != nil {
			z.log.After(kept)
		}
		return 0, false
	}
	if old = *v; old != score {
		z.log.Before(view(kept), z)
		*v = score
		l.order.remove(l.order.rank(item{old, kept}), 1, func(item) {})
		l.order.insert(item{score, kept})
		z.log.After(kept)
	}
	return old, true
}

// removeLarge is Remove for a large set.
func (z *ZSet) removeLarge(member []byte) (float64, bool) {
	l := z.large
	var kept string
	if z.log != nil {
		var ok bool
		if kept, _, ok = l.scores.Lookup(member); !ok {
			return 0, false
		}
		z.log.Before(view(kept), z)
	}
	score, ok := l.scores.Delete(member)
	if ok {
		l.bytes -= len(member)
		l.order.remove(l.order.rank(item{score, text(member)}), 1, func(item) {})
	}
	if z.log != nil {
		z.log.After(kept)
	}
	return score, ok
}

// text is the bytes as a string, valid as long as they are unchanged.
func text(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }

// view is the string as bytes, which must not be written to.
func view(s string) []byte { return unsafe.Slice(unsafe.StringData(s), len(s)) }
