package arrays

import (
	"github.com/atomredis/atomredis/engine"
	"github.com/atomredis/atomredis/engine/arrays"
	"github.com/atomredis/atomredis/internal/command"
)

// array returns the array that a command reads, an empty one for a missing key.
func array(c *command.Ctx) (a *arrays.Array, ok bool) {
	e, ok := c.ReadAs(c.Args[1], engine.Array)
	switch {
	case !ok:
		return nil, false
	case e == nil:
		return new(arrays.Array), true
	}
	return e.Array(), true
}

// element writes the element at an index.
func element(c *command.Ctx, v []byte, ok bool) {
	if ok {
		c.W.Bulk(v)
	} else {
		c.W.Null()
	}
}

// long must be called before a walk through the elements of a range, in any order, or through limit of them if limit
// is less and not negative.
func long(c *command.Ctx, a *arrays.Array, from, to uint64, limit int64) {
	n := uint64(a.Count())
	n = min(n, max(from, to)-min(from, to)+1)
	if limit >= 0 {
		n = min(n, uint64(limit))
	}
	c.Long(int(n), a.Count())
}

func cmdCount(c *command.Ctx) {
	if a, ok := array(c); ok {
		c.W.Int(int64(a.Count()))
	}
}

func cmdLen(c *command.Ctx) {
	if a, ok := array(c); ok {
		c.W.Uint(a.Len())
	}
}

func cmdNext(c *command.Ctx) {
	a, ok := array(c)
	switch {
	case !ok:
	case a.MayInsert(1):
		c.W.Uint(a.Next())
	default:
		c.W.Null()
	}
}

func cmdGet(c *command.Ctx) {
	a, ok := array(c)
	if !ok {
		return
	}
	if at, ok := index(c, c.Args[2]); ok {
		v, ok := a.Get(at)
		element(c, v, ok)
	}
}

func cmdMget(c *command.Ctx) {
	a, ok := array(c)
	if !ok {
		return
	}
	indices, ok := indicesIn(c, c.Args[2:], 1)
	if !ok {
		return
	}
	c.W.Array(len(indices))
	for _, at := range indices {
		v, ok := a.Get(at)
		element(c, v, ok)
	}
}

func cmdGetRange(c *command.Ctx) {
	from, to, ok := twoIndices(c, c.Args[2:])
	if !ok {
		return
	}
	if max(from, to)-min(from, to) >= maxItems {
		c.Err(errRange)
		return
	}
	a, ok := array(c)
	if !ok {
		return
	}
	long(c, a, from, to, -1)
	n := int(max(from, to)-min(from, to)) + 1
	c.W.Array(n)
	written := 0
	upTo := func(n int) {
		for ; written < n; written++ {
			c.W.Null()
		}
	}
	a.Each(from, to, func(at uint64, v []byte) bool {
		upTo(int(max(at, from) - min(at, from)))
		c.W.Bulk(v)
		written++
		return true
	})
	upTo(n)
}

func cmdScan(c *command.Ctx) {
	from, to, ok := twoIndices(c, c.Args[2:])
	if !ok {
		return
	}
	left := int64(-1)
	switch {
	case len(c.Args) == 4:
	case len(c.Args) != 6:
		c.Err(command.WrongArity(c.Cmd))
		return
	case !command.EqualFold(c.Args[4], "limit"):
		c.Err(command.ErrSyntax)
		return
	default:
		if left, ok = limit(c, c.Args[5]); !ok {
			return
		}
	}
	a, ok := array(c)
	if !ok {
		return
	}
	long(c, a, from, to, left)
	mark, n := c.W.Defer(), 0
	a.Each(from, to, func(at uint64, v []byte) bool {
		pair(c, at, v)
		n++
		left--
		return left != 0
	})
	c.W.EndArray(mark, n)
}

// pair writes an index and the element there.
func pair(c *command.Ctx, at uint64, v []byte) {
	c.W.Array(2)
	c.W.Uint(at)
	c.W.Bulk(v)
}

func cmdLastItems(c *command.Ctx) {
	count, ok := c.IntIn(c.Args[2], -1<<63, 1<<63-1, errCount)
	switch {
	case !ok:
		return
	case len(c.Args) > 4:
		c.Err(command.WrongArity(c.Cmd))
		return
	case len(c.Args) == 4 && !command.EqualFold(c.Args[3], "rev"):
		c.Err(command.ErrSyntax)
		return
	}
	a, ok := array(c)
	if !ok {
		return
	}
	n := min(uint64(max(count, 0)), a.Len())
	if n > maxItems {
		c.Err(errTooMany)
		return
	}
	c.Long(int(min(n, uint64(a.Count()))), a.Count())
	c.W.Array(int(n))
	a.LastItems(n, len(c.Args) == 4, func(v []byte, ok bool) { element(c, v, ok) })
}

func cmdInfo(c *command.Ctx) {
	full := len(c.Args) == 3 && command.EqualFold(c.Args[2], "full")
	if len(c.Args) > 3 || len(c.Args) == 3 && !full {
		c.Err(command.ErrSyntax)
		return
	}
	e, ok := c.ReadAs(c.Args[1], engine.Array)
	if !ok {
		return
	}
	if e == nil {
		c.Err(command.ErrNoKey)
		return
	}
	a := e.Array()
	info, next := a.Info(full), a.Next()
	if !a.MayInsert(1) {
		next = 0
	}
	number := func(name string, n uint64) {
		c.W.BulkString(name)
		c.W.Uint(n)
	}
	// average writes part/whole, 0 if whole is 0.
	average := func(name string, part, whole int) {
		c.W.BulkString(name)
		c.W.Double(float64(part) / float64(max(whole, 1)))
	}
	if full {
		c.W.Map(12)
	} else {
		c.W.Map(7)
	}
	number("count", uint64(a.Count()))
	number("len", a.Len())
	number("next-insert-index", next)
	number("slices", uint64(info.Slices))
	number("directory-size", uint64(info.Room))
	number("super-dir-entries", uint64(info.Groups))
	number("slice-size", arrays.SliceSize)
	if full {
		number("dense-slices", uint64(info.Dense))
		number("sparse-slices", uint64(info.Sparse))
		average("avg-dense-size", info.DenseRoom, info.Dense)
		average("avg-dense-fill", info.DenseCount, info.DenseRoom)
		average("avg-sparse-size", info.SparseCount, info.Sparse)
	}
}
