package arrays

import (
	"github.com/atomredis/atomredis/engine"
	"github.com/atomredis/atomredis/engine/arrays"
	"github.com/atomredis/atomredis/internal/command"
)

// change calls do with the array that a command changes, and creates the array if needed.
func change(c *command.Ctx, event string, do func(a *arrays.Array)) {
	e, ok := c.WriteAs(c.Args[1], engine.Array)
	if !ok {
		return
	}
	if e == nil {
		e = c.G.Create(c.DB, c.Args[1], arrays.New())
	}
	do(e.Array())
	c.G.Changed(e, engine.EventArray, event)
}

func cmdSet(c *command.Ctx) {
	at, ok := index(c, c.Args[2])
	if !ok {
		return
	}
	values := c.Args[3:]
	if uint64(len(values)-1) > arrays.MaxIndex-at {
		c.Err(errOverflow)
		return
	}
	change(c, "arset", func(a *arrays.Array) {
		added := 0
		for i, v := range values {
			if a.Set(at+uint64(i), v) {
				added++
			}
		}
		c.W.Int(int64(added))
	})
}

func cmdMset(c *command.Ctx) {
	if len(c.Args)%2 == 1 {
		c.Err(command.WrongArity(c.Cmd))
		return
	}
	indices, ok := indicesIn(c, c.Args[2:], 2)
	if !ok {
		return
	}
	change(c, "armset", func(a *arrays.Array) {
		added := 0
		for i, at := range indices {
			if a.Set(at, c.Args[2*i+3]) {
				added++
			}
		}
		c.W.Int(int64(added))
	})
}

func cmdInsert(c *command.Ctx) {
	e, ok := c.ReadToWriteAs(c.Args[1], engine.Array)
	if !ok {
		return
	}
	values := c.Args[2:]
	if e != nil && !e.Array().MayInsert(len(values)) {
		c.Err(errInsert)
		return
	}
	change(c, "arinsert", func(a *arrays.Array) { c.W.Uint(a.Insert(values)) })
}

func cmdRing(c *command.Ctx) {
	size, ok := c.IntIn(c.Args[2], -1<<63, 1<<63-1, errSize)
	if !ok {
		return
	}
	if size <= 0 {
		c.Err(errSizeSign)
		return
	}
	change(c, "arring", func(a *arrays.Array) { c.W.Uint(a.Ring(uint64(size), c.Args[3:])) })
}

func cmdSeek(c *command.Ctx) {
	next, ok := parseIndex(c.Args[2], arrays.MaxIndex+1)
	if !ok {
		c.Err(errIndex)
		return
	}
	e, ok := c.WriteAs(c.Args[1], engine.Array)
	switch {
	case !ok:
	case e == nil:
		c.W.Int(0)
	default:
		e.Array().Seek(next)
		c.G.Changed(e, engine.EventArray, "arseek")
		c.W.Int(1)
	}
}

func cmdDel(c *command.Ctx) {
	if indices, ok := indicesIn(c, c.Args[2:], 1); ok {
		deleteRanges(c, "ardel", len(indices), func(i int) (from, to uint64) { return indices[i], indices[i] })
	}
}

func cmdDelRange(c *command.Ctx) {
	if len(c.Args)%2 == 1 {
		c.Err(command.WrongArity(c.Cmd))
		return
	}
	if indices, ok := indicesIn(c, c.Args[2:], 1); ok {
		deleteRanges(c, "ardelrange", len(indices)/2, func(i int) (from, to uint64) { return indices[2*i], indices[2*i+1] })
	}
}

// deleteRanges removes the elements in n ranges, and the key with the last element.
func deleteRanges(c *command.Ctx, event string, n int, of func(i int) (from, to uint64)) {
	e, ok := c.WriteAs(c.Args[1], engine.Array)
	if !ok {
		return
	}
	deleted := 0
	if e != nil {
		a := e.Array()
		for i := range n {
			from, to := of(i)
			deleted += a.DeleteRange(min(from, to), max(from, to))
		}
		if deleted > 0 {
			c.G.Changed(e, engine.EventArray, event)
		}
		if a.Count() == 0 {
			c.G.Remove(e, engine.EventGeneric, "del")
		}
	}
	c.W.Int(int64(deleted))
}
