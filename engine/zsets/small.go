package zsets

import (
	"encoding/binary"
	"math"
	"math/bits"

	"github.com/atomredis/atomredis/engine/listpack"
)

// This file has the form of a small set: a listpack of sorted pairs, a member and its score. The score is big-endian
// without trailing zero bytes, which leaves two or three bytes for most integers. The last byte of its element is the
// size of the whole pair, for walking backwards; it is 0 if the size does not fit.

// maxScore is the largest size of a score and the byte that follows it.
const maxScore = scoreLen + 1

// pair returns the member at a position of a small set, its score, and the position of the next member, or -1.
func (z *ZSet) pair(p listpack.Pos) (member []byte, score float64, next listpack.Pos) {
	member, stored, next := z.small.Pair(p)
	return member, decodeSmall(stored), next
}

// before returns the position of the member before the one at p, -1 if there is none. p may be the end.
func (z *ZSet) before(p listpack.Pos) listpack.Pos {
	if p == 0 {
		return -1
	}
	if size := z.small.Bytes()[p-1]; size != 0 {
		return p - listpack.Pos(size)
	}
	q := z.small.First()
	for {
		_, _, next := z.small.Pair(q)
		if next == p || next < 0 {
			return q
		}
		q = next
	}
}

// end returns the position after the last member of a small set.
func (z *ZSet) end() listpack.Pos { return listpack.Pos(len(z.small.Bytes())) }

// seek returns the position of the member at a rank of a small set, which must exist. It walks from the nearer end.
func (z *ZSet) seek(rank int) listpack.Pos {
	n := z.Len()
	if rank <= n/2 {
		return z.small.Seek(2 * rank)
	}
	p := z.end()
	for ; rank < n; rank++ {
		p = z.before(p)
	}
	return p
}

// insert inserts a new member into a small set.
func (z *ZSet) insert(member []byte, score float64) {
	place := listpack.Pos(-1)
	if last := z.before(z.end()); last >= 0 {
		if m, s, _ := z.pair(last); ordered(member, score, m, s) {
			place = z.firstAfter(member, score)
		}
	}
	var room [maxScore]byte
	z.small.Insert(place, member, appendSmall(room[:0], score, listpack.EncodedLen(member)))
}

// firstAfter returns the position of the first member of a small set that sorts after the given one. There must be one.
func (z *ZSet) firstAfter(member []byte, score float64) listpack.Pos {
	for p := z.small.First(); ; {
		m, s, next := z.pair(p)
		if ordered(member, score, m, s) {
			return p
		}
		p = next
	}
}

// ordered reports whether one member sorts before another.
func ordered(member []byte, score float64, next []byte, nextScore float64) bool {
	if score != nextScore {
		return score < nextScore
	}
	return string(member) < string(next)
}

// appendSmall appends the form of a score in a small set. size is the size of the member's element.
func appendSmall(dst []byte, score float64, size int) []byte {
	number := math.Float64bits(score)
	n := scoreLen - bits.TrailingZeros64(number)/8
	dst = binary.BigEndian.AppendUint64(dst, number)
	dst = dst[:len(dst)-scoreLen+n]
	if size += n + 2; size > math.MaxUint8 {
		size = 0
	}
	return append(dst, byte(size))
}

// decodeSmall reads the output of appendSmall.
func decodeSmall(stored []byte) float64 {
	number, shift := uint64(0), 8*scoreLen
	for _, c := range stored[:len(stored)-1] {
		shift -= 8
		number |= uint64(c) << (shift & 63)
	}
	return math.Float64frombits(number)
}
