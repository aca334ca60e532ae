package perper

import (
	"bytes"
	"math"
	"strconv"

	"github.com/atomredis/atomredis/internal/command"
	"github.com/atomredis/atomredis/internal/protocols/internal/effect"
	"github.com/atomredis/atomredis/resp"
)

// This file has the commands on the keys and values of a cache.

func get(c *command.Ctx) {
	if a, ok := readExpiring(c, 1); ok {
		a.showOr(a.get(a.objects[0]))
		a.accessed(a.objects[0])
	}
}

func has(c *command.Ctx) {
	if a, ok := read(c, 1); ok {
		_, has := a.get(a.objects[0])
		yes(c, has)
	}
}

func put(c *command.Ctx) {
	if a, ok := readExpiring(c, 2); ok {
		a.put(a.objects[0], a.objects[1])
		c.W.OK()
	}
}

func putNX(c *command.Ctx) {
	a, ok := readExpiring(c, 2)
	if !ok {
		return
	}
	_, has := a.get(a.objects[0])
	if !has {
		a.put(a.objects[0], a.objects[1])
	}
	yes(c, !has)
}

func replace(c *command.Ctx) {
	a, ok := readExpiring(c, 2)
	if !ok {
		return
	}
	_, has := a.get(a.objects[0])
	if has {
		a.put(a.objects[0], a.objects[1])
	}
	yes(c, has)
}

func replaceIf(c *command.Ctx) {
	a, ok := readExpiring(c, 3)
	if !ok {
		return
	}
	v, has := a.get(a.objects[0])
	if has = has && bytes.Equal(v, a.objects[1]); has {
		a.put(a.objects[0], a.objects[2])
	}
	yes(c, has)
}

func remove(c *command.Ctx) {
	if a, ok := read(c, 1); ok {
		yes(c, a.remove(a.objects[0]))
	}
}

func removeIf(c *command.Ctx) {
	a, ok := read(c, 2)
	if !ok {
		return
	}
	v, has := a.get(a.objects[0])
	yes(c, has && bytes.Equal(v, a.objects[1]) && a.remove(a.objects[0]))
}

func getPut(c *command.Ctx) {
	if a, ok := readExpiring(c, 2); ok {
		a.showOr(a.get(a.objects[0]))
		a.put(a.objects[0], a.objects[1])
	}
}

func getPutNX(c *command.Ctx) {
	a, ok := readExpiring(c, 2)
	if !ok {
		return
	}
	v, has := a.get(a.objects[0])
	a.showOr(v, has)
	if !has {
		a.put(a.objects[0], a.objects[1])
	} else {
		a.accessed(a.objects[0])
	}
}

func getReplace(c *command.Ctx) {
	a, ok := readExpiring(c, 2)
	if !ok {
		return
	}
	v, has := a.get(a.objects[0])
	a.showOr(v, has)
	if has {
		a.put(a.objects[0], a.objects[1])
	}
}

func getRemove(c *command.Ctx) {
	if a, ok := read(c, 1); ok {
		a.showOr(a.get(a.objects[0]))
		a.remove(a.objects[0])
	}
}

func mget(c *command.Ctx) {
	a, ok := readMany(c, 1, true)
	if !ok {
		return
	}
	c.W.Array(len(a.objects))
	for _, k := range a.objects {
		a.showOr(a.get(k))
		a.accessed(k)
	}
}

func mhas(c *command.Ctx) {
	a, ok := readMany(c, 1, false)
	if !ok {
		return
	}
	n := int64(0)
	for _, k := range a.objects {
		if _, has := a.get(k); has {
			n++
		}
	}
	c.W.Int(n)
}

func mput(c *command.Ctx) {
	a, ok := readMany(c, 2, true)
	if !ok {
		return
	}
	for i := 0; i < len(a.objects); i += 2 {
		a.put(a.objects[i], a.objects[i+1])
	}
	c.W.OK()
}

func mremove(c *command.Ctx) {
	a, ok := readMany(c, 1, false)
	if !ok {
		return
	}
	n := int64(0)
	for _, k := range a.objects {
		if a.remove(k) {
			n++
		}
	}
	c.W.Int(n)
}

func length(c *command.Ctx) {
	if ca := cacheOf(c, c.Args[1]); ca.check() {
		c.W.Int(int64(ca.len()))
	}
}

func clearCache(c *command.Ctx) {
	if ca := cacheOf(c, c.Args[1]); ca.check() {
		c.W.Int(int64(ca.clear()))
	}
}

// scan iterates as HSCAN does: keys that exist all the time are returned, possibly twice.
func scan(c *command.Ctx) {
	cursor, err := strconv.ParseUint(string(c.Args[2]), 10, 64)
	if err != nil {
		c.Err(command.ErrInvalidCursor)
		return
	}
	a, count := arguments{cache: cacheOf(c, c.Args[1])}, 10
	for o := c.Options(3); o.Next(); {
		switch {
		case o.Is("count") && o.More():
			n, ok := c.IntIn(o.Arg(), 1, math.MaxInt64, command.ErrSyntax)
			if !ok {
				return
			}
			count = command.AsInt(n)
		case o.Is(rawWord) && !o.More():
			a.raw = true
		default:
			c.Err(command.ErrSyntax)
			return
		}
	}
	if !a.check() {
		return
	}
	var found resp.Writer
	n, next := 0, uint64(0)
	if h := effect.Hash(c, a.names[valuesKey]); h != nil {
		next = h.Scan(cursor, count, func(k, v []byte) {
			a.show(&found, k)
			a.show(&found, v)
			n += 2
		})
	}
	c.ScanReply(next, n, &found)
}

// bound reads an end of a range of keys: "-", "+", a number, or an excluded number after "(". If it is wrong, it
// writes an error and ok is false; none says that the range is empty.
func bound(c *command.Ctx, arg []byte, step int64) (n int64, none, ok bool) {
	switch {
	case len(arg) == 1 && arg[0] == '-':
		return math.MinInt64, step < 0, true
	case len(arg) == 1 && arg[0] == '+':
		return math.MaxInt64, step > 0, true
	case len(arg) > 0 && arg[0] == '(':
		if n, ok = c.Int(arg[1:]); !ok {
			return 0, false, false
		}
		end := int64(math.MaxInt64)
		if step < 0 {
			end = math.MinInt64
		}
		if n == end {
			return 0, true, true
		}
		return n + step, false, true
	}
	n, ok = c.Int(arg)
	return n, false, ok
}

// orderedKeys replies with numbers.
func orderedKeys(c *command.Ctx) {
	from, empty, ok := bound(c, c.Args[2], 1)
	if !ok {
		return
	}
	to, none, ok := bound(c, c.Args[3], -1)
	if !ok {
		return
	}
	most, reverse := -1, false
	for o := c.Options(4); o.Next(); {
		switch {
		case o.Is("count") && o.More():
			n, ok := c.IntIn(o.Arg(), 0, math.MaxInt64, command.ErrSyntax)
			if !ok {
				return
			}
			most = command.AsInt(n)
		case o.Is("rev"):
			reverse = true
		default:
			c.Err(command.ErrSyntax)
			return
		}
	}
	ca := cacheOf(c, c.Args[1])
	if !ca.check() {
		return
	}
	mark, count := c.W.Defer(), 0
	if !empty && !none {
		ca.ordered(from, to, reverse, most, func(n int64) bool {
			c.W.Int(n)
			count++
			return true
		})
	}
	c.W.EndArray(mark, count)
}

func oldestKeys(c *command.Ctx) {
	most := -1
	for o := c.Options(2); o.Next(); {
		if !o.Is("count") || !o.More() {
			c.Err(command.ErrSyntax)
			return
		}
		n, ok := c.IntIn(o.Arg(), 0, math.MaxInt64, command.ErrSyntax)
		if !ok {
			return
		}
		most = command.AsInt(n)
	}
	ca := cacheOf(c, c.Args[1])
	if !ca.check() {
		return
	}
	mark, count := c.W.Defer(), 0
	ca.oldest(most, func(n int64) bool {
		c.W.Int(n)
		count++
		return true
	})
	c.W.EndArray(mark, count)
}
