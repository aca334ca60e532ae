package server

import (
	"math"
	"strconv"

	"github.com/atomredis/atomredis/engine"
)

// This file has the commands that remove members at the ends of sorted sets, at once or as soon as there are any.

// zend is an end of a sorted set.
type zend bool

const (
	lowest  zend = false
	highest zend = true
)

// The commands that pop at the two ends, as they are journalled.
var popMinWord, popMaxWord = []byte("ZPOPMIN"), []byte("ZPOPMAX")

func (end zend) popWord() []byte {
	if end == highest {
		return popMaxWord
	}
	return popMinWord
}

// pop removes count members, of which there must be as many, at the end of a sorted set, reports it, and writes each of
// them to out.
func (end zend) pop(c *Ctx, e *engine.Entry, count int, out zsetReply) {
	z, event := e.ZSet(), "zpopmin"
	if end == highest {
		event = "zpopmax"
	}
	if count == 1 {
		rank := 0
		if end == highest {
			rank = z.Len() - 1
		}
		out.add(z.At(rank))
		z.RemoveRangeByRank(rank, rank, nil) // without a function value, which would be an allocation
	} else {
		add := func(member []byte, score float64) { out.add(member, score) }
		if end == highest {
			z.PopMax(count, add)
		} else {
			z.PopMin(count, add)
		}
	}
	c.zremoved(e, count, event)
}

func cmdZpopmax(c *Ctx) { c.zpop(highest) }
func cmdZpopmin(c *Ctx) { c.zpop(lowest) }

// zpop is ZPOPMIN and ZPOPMAX.
func (c *Ctx) zpop(end zend) {
	if len(c.Args) > 3 {
		c.Err(ErrSyntax)
		return
	}
	count, out := int64(1), c.members(true)
	if len(c.Args) == 3 {
		var ok bool
		if count, ok = c.IntIn(c.Args[2], 0, math.MaxInt64, ErrNotPositive); !ok {
			return
		}
	} else {
		out.pairs = false // a count makes pairs, even if it is 1
	}
	e, ok := c.WriteAs(c.Args[1], engine.ZSet)
	if !ok {
		return
	}
	if e == nil || count == 0 {
		c.W.Array(0)
		return
	}
	n := int(min(count, int64(e.ZSet().Len())))
	c.W.Array(out.length(n))
	end.pop(c, e, n, out)
}

func cmdBzpopmax(c *Ctx) { c.bzpop(highest) }
func cmdBzpopmin(c *Ctx) { c.bzpop(lowest) }

// bzpop is BZPOPMIN and BZPOPMAX.
func (c *Ctx) bzpop(end zend) {
	last := len(c.Args) - 1
	timeout, ok := c.Timeout(c.Args[last])
	if !ok {
		return
	}
	c.popFirst(engine.ZSet, c.Args[1:last], timeout, true, func(c *Ctx, key []byte, e *engine.Entry) {
		c.W.Array(3)
		c.W.Bulk(key)
		end.pop(c, e, 1, zsetReply{w: c.W, scores: true})
		c.Journal(end.popWord(), key)
	})
}

func cmdBzmpop(c *Ctx) { c.zmpop(2, true) }
func cmdZmpop(c *Ctx)  { c.zmpop(1, false) }

// zmpop is ZMPOP, and if wait is set BZMPOP, with the number of keys in argument at.
func (c *Ctx) zmpop(at int, wait bool) {
	m, ok := c.multiPop(at, wait, "min", "max")
	if !ok {
		return
	}
	end := zend(m.second)
	c.popFirst(engine.ZSet, m.keys, m.timeout, wait, func(c *Ctx, key []byte, e *engine.Entry) {
		n := int(min(m.count, int64(e.ZSet().Len())))
		c.W.Array(2)
		c.W.Bulk(key)
		c.W.Array(n)
		end.pop(c, e, n, zsetReply{w: c.W, scores: true, pairs: true})
		var scratch [20]byte
		c.Journal(end.popWord(), key, strconv.AppendInt(scratch[:0], int64(n), 10))
	})
}
