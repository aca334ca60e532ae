package lists

import (
	"math"
	"strconv"

	"github.com/atomredis/atomredis/engine"
	"github.com/atomredis/atomredis/engine/lists"
	"github.com/atomredis/atomredis/internal/command"
	"github.com/atomredis/atomredis/resp"
)

// This file has the commands that pop from the ends of lists, with or without waiting.

func cmdLpop(c *command.Ctx) { pop(c, Left) }
func cmdRpop(c *command.Ctx) { pop(c, Right) }

func pop(c *command.Ctx, s Side) {
	if len(c.Args) > 3 {
		c.Err(command.WrongArity(c.Cmd))
		return
	}
	count, counted := int64(1), len(c.Args) == 3
	if counted {
		var ok bool
		if count, ok = c.IntIn(c.Args[2], 0, math.MaxInt64, command.ErrNotPositive); !ok {
			return
		}
	}
	e, ok := c.WriteAs(c.Args[1], engine.List)
	switch {
	case !ok:
	case e == nil:
		c.G.NotifyEmpty(c.DB, c.Args[1])
		if counted {
			c.W.NullArray()
		} else {
			c.W.Null()
		}
	case !counted:
		popOne(c, e, s)
	case count == 0:
		c.W.Array(0)
	default:
		popMany(c, e, s, count)
	}
}

// popOne pops the element at an end of the list and replies with it.
func popOne(c *command.Ctx, e *engine.Entry, s Side) {
	l := s.list(e, 2) // one more, which stays
	c.W.Bulk(s.Peek(l))
	s.drop(l)
	Removed(c, e, s.PopEvent())
}

// popMany pops up to count elements at an end of the list and replies with them.
func popMany(c *command.Ctx, e *engine.Entry, s Side, count int64) {
	n := int(min(count, int64(e.Count())))
	l := s.list(e, n+1) // one more, which stays
	c.W.Array(n)
	for range n {
		c.W.Bulk(s.Peek(l))
		s.drop(l)
	}
	Removed(c, e, s.PopEvent())
}

func cmdBlpop(c *command.Ctx) { blockingPop(c, Left) }
func cmdBrpop(c *command.Ctx) { blockingPop(c, Right) }

func blockingPop(c *command.Ctx, s Side) {
	last := len(c.Args) - 1
	timeout, ok := c.Timeout(c.Args[last])
	if !ok {
		return
	}
	c.PopFirst(engine.List, c.Args[1:last], timeout, true, func(c *command.Ctx, key []byte, e *engine.Entry) {
		c.W.Array(2)
		c.W.Bulk(key)
		popOne(c, e, s)
		c.Journal(s.popWord(), key)
	})
}

func cmdLmpop(c *command.Ctx)  { lmpop(c, 1, false) }
func cmdBlmpop(c *command.Ctx) { lmpop(c, 2, true) }

// lmpop is LMPOP, and if wait is set BLMPOP, with the number of keys in argument at.
func lmpop(c *command.Ctx, at int, wait bool) {
	m, ok := c.MultiPop(at, wait, "left", "right")
	if !ok {
		return
	}
	s := Side(m.Second)
	c.PopFirst(engine.List, m.Keys, m.Timeout, wait, func(c *command.Ctx, key []byte, e *engine.Entry) {
		c.W.Array(2)
		c.W.Bulk(key)
		popMany(c, e, s, m.Count)
		var scratch [20]byte
		c.Journal(s.popWord(), key, strconv.AppendInt(scratch[:0], m.Count, 10))
	})
}

func cmdRpoplpush(c *command.Ctx) { move(c, Right, Left) }

func cmdLmove(c *command.Ctx) {
	if from, to, ok := moveSides(c); ok {
		move(c, from, to)
	}
}

// moveSides reads the two ends of LMOVE and BLMOVE.
func moveSides(c *command.Ctx) (from, to Side, ok bool) {
	from, ok = parseSide(c.Args[3])
	if ok {
		to, ok = parseSide(c.Args[4])
	}
	if !ok {
		c.Err(command.ErrSyntax)
	}
	return from, to, ok
}

// move moves an element of the list in argument 1 to the one in argument 2.
func move(c *command.Ctx, from, to Side) {
	src, ok := c.WriteAs(c.Args[1], engine.List)
	if !ok {
		return
	}
	if src == nil {
		c.G.NotifyEmpty(c.DB, c.Args[1])
		c.W.Null()
		return
	}
	moveFrom(c, src, from, to)
}

// moveFrom moves an element of src, the list in argument 1, to the list in argument 2, which may be the same. It
// replies with the element, or with an error if the destination is no list.
func moveFrom(c *command.Ctx, src *engine.Entry, from, to Side) {
	dst, ok := c.WriteAs(c.Args[2], engine.List)
	if !ok {
		return
	}
	if dst == src {
		l := listToMove(src, from, to, 1)
		v := append([]byte(nil), from.Peek(l)...) // a copy, because a list must not store a view of itself
		from.drop(l)
		to.Push(l, v)
		c.W.Bulk(v)
		c.G.Changed(src, engine.EventList, to.PushEvent())
		c.G.Notify(engine.EventList, from.PopEvent(), c.DB, src.Key())
		journalMove(c, from, to)
		return
	}
	taken := from.list(src, 2) // one more, which stays
	if dst == nil {
		dst = c.G.Create(c.DB, c.Args[2], lists.New(c.Host.ListLimit()))
	}
	added := to.list(dst, 1)
	v := from.Peek(taken)
	to.Push(added, v)
	c.W.Bulk(v)
	from.drop(taken)
	Grown(c, dst, to.PushEvent())
	Removed(c, src, from.PopEvent())
	journalMove(c, from, to)
}

// journalMove journals a move as its form that does not wait.
func journalMove(c *command.Ctx, from, to Side) {
	c.Journal([]byte("LMOVE"), c.Args[1], c.Args[2], from.word(), to.word())
}

func cmdBlmove(c *command.Ctx) {
	if from, to, ok := moveSides(c); ok {
		blockingMove(c, from, to, c.Args[5])
	}
}

func cmdBrpoplpush(c *command.Ctx) { blockingMove(c, Right, Left, c.Args[3]) }

func blockingMove(c *command.Ctx, from, to Side, timeoutArg []byte) {
	timeout, ok := c.Timeout(timeoutArg)
	if !ok {
		return
	}
	src, ok := c.WriteAs(c.Args[1], engine.List)
	if !ok {
		return
	}
	if src != nil {
		moveFrom(c, src, from, to)
		return
	}
	c.G.NotifyEmpty(c.DB, c.Args[1])
	if c.NoBlock {
		c.W.Null() // although the reply at the timeout is a null array
		return
	}
	c.Block(command.Block{
		Keys:    c.Args[1:2],
		Shards:  c.Host.Keyspace().ShardOf(c.Args[2]),
		Timeout: timeout,
		Empty:   (*resp.Writer).NullArray,
		Try: func(c *command.Ctx, key []byte) bool {
			src := c.G.Write(c.DB, key)
			if src == nil || src.Type() != engine.List {
				return false
			}
			moveFrom(c, src, from, to)
			return true
		},
	})
}
