package strings

import (
	"github.com/atomredis/atomredis/engine"
	"github.com/atomredis/atomredis/internal/command"
)

// This file has LCS: the longest common subsequence of two strings, by dynamic programming.

const (
	errLCSNotStrings command.Error = "ERR The specified keys must contain string values"
	errLCSLenAndIdx  command.Error = "ERR If you want both the length and indexes, please just use IDX."
	errLCSTooLarge   command.Error = "ERR Insufficient memory, transient memory for LCS exceeds proto-max-bulk-len"
)

func cmdLcs(c *command.Ctx) {
	a, aOK := lcsOperand(c.Read(c.Args[1]))
	b, bOK := lcsOperand(c.Read(c.Args[2]))
	if !aOK || !bOK {
		c.Err(errLCSNotStrings)
		return
	}
	var onlyLen, indexes, withLen bool
	minMatch := int64(0)
	for o := c.Options(3); o.Next(); {
		switch {
		case o.Is("len"):
			onlyLen = true
		case o.Is("idx"):
			indexes = true
		case o.Is("withmatchlen"):
			withLen = true
		case o.Is("minmatchlen") && o.More():
			var ok bool
			if minMatch, ok = c.Int(o.Arg()); !ok {
				return
			}
		default:
			c.Err(command.ErrSyntax)
			return
		}
	}
	if onlyLen && indexes {
		c.Err(errLCSLenAndIdx)
		return
	}
	// Redis needs 4 bytes for each pair of positions. The same limit here bounds the time, too.
	if cells := uint64(len(a)+1) * uint64(len(b)+1); cells > uint64(c.Host.MaxBulk())/4 {
		c.Err(errLCSTooLarge)
		return
	}
	c.Long(len(a)*len(b)/cellsAsOne, (len(a)+len(b))/cellsAsOne)
	if onlyLen {
		c.W.Int(int64(lcsLength(a, b, nil)))
		return
	}
	up := make(bitset, (len(a)*len(b)+63)/64)
	n := lcsLength(a, b, up)
	if indexes {
		replyMatches(c, a, b, up, n, int(minMatch), withLen)
		return
	}
	common := make([]byte, n)
	lcsMatches(a, b, up, func(i, _, size int) {
		n -= size
		copy(common[n:], a[i:i+size])
	})
	c.W.Bulk(common)
}

// cellsAsOne is the number of pairs of positions that take as long as one element in command.LongFrom.
const cellsAsOne = 64

// lcsOperand returns the value of an entry; a missing one counts as the empty string.
func lcsOperand(e *engine.Entry) (v []byte, ok bool) {
	switch {
	case e == nil:
		return nil, true
	case e.Type() != engine.String:
		return nil, false
	}
	return e.Bytes(), true
}

// replyMatches replies with the ranges of the matches of at least minMatch bytes, and the length of the subsequence.
func replyMatches(c *command.Ctx, a, b []byte, up bitset, length, minMatch int, withLen bool) {
	c.W.Map(2)
	c.W.BulkString("matches")
	mark, found := c.W.Defer(), 0
	lcsMatches(a, b, up, func(i, j, size int) {
		if size < minMatch {
			return
		}
		found++
		if withLen {
			c.W.Array(3)
		} else {
			c.W.Array(2)
		}
		for _, start := range [2]int{i, j} {
			c.W.Array(2)
			c.W.Int(int64(start))
			c.W.Int(int64(start + size - 1))
		}
		if withLen {
			c.W.Int(int64(size))
		}
	})
	c.W.EndArray(mark, found)
	c.W.BulkString("len")
	c.W.Int(int64(length))
}

// bitset is a set of small numbers.
type bitset []uint64

func (s bitset) add(i int)      { s[i/64] |= 1 << (i % 64) }
func (s bitset) has(i int) bool { return s[i/64]&(1<<(i%64)) != 0 }

// lcsLength returns the length of the longest common subsequence of a and b. If up is not nil, it gets the bit
// i*len(b)+j for every pair of positions (i, j) for which dropping a[i], and not b[j], leads to the longest one of
// a[:i+1] and b[:j+1]. The bit has no meaning where the two bytes are equal.
func lcsLength(a, b []byte, up bitset) int {
	row := make([]uint32, len(b)+1) // row[j] is the length for b[:j] and the part of a so far
	for i, x := range a {
		diagonal := uint32(0)
		for j, y := range b {
			above := row[j+1]
			switch {
			case x == y:
				row[j+1] = diagonal + 1
			case above > row[j]:
				if up != nil {
					up.add(i*len(b) + j)
				}
			default:
				row[j+1] = row[j]
			}
			diagonal = above
		}
	}
	return int(row[len(b)])
}

// lcsMatches walks over the subsequence from its end to its beginning and calls fn for every run of bytes that are
// consecutive in both strings: size bytes from a[i] and b[j] on.
func lcsMatches(a, b []byte, up bitset, fn func(i, j, size int)) {
	i, j := len(a), len(b)
	for i > 0 && j > 0 {
		size := 0
		for i > 0 && j > 0 && a[i-1] == b[j-1] {
			i, j, size = i-1, j-1, size+1
		}
		switch {
		case size > 0:
			fn(i, j, size)
		case up.has((i-1)*len(b) + j - 1):
			i--
		default:
			j--
		}
	}
}
