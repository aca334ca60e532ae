package zsets

import (
	"math"
	"strconv"

	"github.com/atomredis/atomredis/engine"
	"github.com/atomredis/atomredis/internal/command"
)

// This file has the commands that pop from the ends of sorted sets, with or without waiting.

// zend is an end of a sorted set.
type zend bool

const (
	lowest  zend = false
	highest zend = true
)

// The journalled commands that pop at the two ends.
var popMinWord, popMaxWord = []byte("ZPOPMIN"), []byte("ZPOPMAX")

func (end zend) popWord() []byte {
	if end == highest {
		return popMaxWord
	}
	return popMinWord
}

// pop removes count members, which must exist, at an end of a sorted set, reports it, and writes them to out.
func (end zend) pop(c *command.Ctx, e *engine.Entry, count int, out zsetReply) {
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
		z.RemoveRangeByRank(rank, rank, nil) // nil, because a function value would be an allocation
	} else {
		add := func(member []byte, score float64) { out.add(member, score) }
		if end == highest {
			z.PopMax(count, add)
		} else {
			z.PopMin(count, add)
		}
	}
	zremoved(c, e, count, event)
}

func cmdZpopmax(c *command.Ctx) { zpop(c, highest) }
func cmdZpopmin(c *command.Ctx) { zpop(c, lowest) }

// zpop is ZPOPMIN and ZPOPMAX.
func zpop(c *command.Ctx, end zend) {
	if len(c.Args) > 3 {
		c.Err(command.ErrSyntax)
		return
	}
	count, out := int64(1), members(c, true)
	if len(c.Args) == 3 {
		var ok bool
		if count, ok = c.IntIn(c.Args[2], 0, math.MaxInt64, command.ErrNotPositive); !ok {
			return
		}
	} else {
		out.pairs = false // with a count the reply has pairs, even if the count is 1
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

func cmdBzpopmax(c *command.Ctx) { bzpop(c, highest) }
func cmdBzpopmin(c *command.Ctx) { bzpop(c, lowest) }

// bzpop is BZPOPMIN and BZPOPMAX.
func bzpop(c *command.Ctx, end zend) {
	last := len(c.Args) - 1
	timeout, ok := c.Timeout(c.Args[last])
	if !ok {
		return
	}
	c.PopFirst(engine.ZSet, c.Args[1:last], timeout, true, func(c *command.Ctx, key []byte, e *engine.Entry) {
		c.W.Array(3)
		c.W.Bulk(key)
		end.pop(c, e, 1, zsetReply{w: c.W, scores: true})
		c.Journal(end.popWord(), key)
	})
}

func cmdBzmpop(c *command.Ctx) { zmpop(c, 2, true) }
func cmdZmpop(c *command.Ctx)  { zmpop(c, 1, false) }

// zmpop is ZMPOP, and if wait is set BZMPOP, with the number of keys in argument at.
func zmpop(c *command.Ctx, at int, wait bool) {
	m, ok := c.MultiPop(at, wait, "min", "max")
	if !ok {
		return
	}
	end := zend(m.Second)
	c.PopFirst(engine.ZSet, m.Keys, m.Timeout, wait, func(c *command.Ctx, key []byte, e *engine.Entry) {
		n := int(min(m.Count, int64(e.ZSet().Len())))
		c.W.Array(2)
		c.W.Bulk(key)
		c.W.Array(n)
		end.pop(c, e, n, zsetReply{w: c.W, scores: true, pairs: true})
		var scratch [20]byte
		c.Journal(end.popWord(), key, strconv.AppendInt(scratch[:0], int64(n), 10))
	})
}
