// Package hashes has the commands on hashes.
package hashes

import (
	"math"
	"slices"
	"strconv"

	"github.com/atomredis/atomredis/engine"
	"github.com/atomredis/atomredis/engine/hashes"
	"github.com/atomredis/atomredis/internal/command"
	"github.com/atomredis/atomredis/resp"
)

func init() { command.Register(hashCommands) }

var hashCommands = slices.Concat(hashExpireCommands, []*command.Command{
	importCommand,
	{Name: "hdel", Group: "hash", Since: "2.0.0", Arity: -3, Flags: command.Write | command.Fast, ACL: command.CatHash,
		Keys: command.Keys("i1+r0/1/0[RW,DELETE]"), Element: 2,
		Summary: "Deletes fields",
		Syntax:  "key field [field ...]", Complexity: "O(N), where N is the number of fields to remove", Do: cmdHdel},
	{Name: "hexists", Group: "hash", Since: "2.0.0", Arity: 3, Flags: command.ReadOnly | command.Fast,
		ACL:  command.CatHash,
		Keys: command.Keys("i1+r0/1/0[RO]"), Element: 2,
		Summary: "Checks whether a hash has a field", Syntax: "key field", Complexity: "O(1)", Do: cmdHexists},
	{Name: "hget", Group: "hash", Since: "2.0.0", Arity: 3, Flags: command.ReadOnly | command.Fast, ACL: command.CatHash,
		Keys: command.Keys("i1+r0/1/0[RO,ACCESS]"), Element: 2,
		Summary: "Returns the value of a field", Syntax: "key field", Complexity: "O(1)", Do: cmdHget},
	{Name: "hgetall", Group: "hash", Since: "2.0.0", Arity: 2, Flags: command.ReadOnly, ACL: command.CatHash,
		Keys:    command.Keys("i1+r0/1/0[RO,ACCESS]"),
		Summary: "Returns all fields and their values",
		Syntax:  "key", Complexity: "O(N), where N is the size of the hash", Do: cmdHgetall},
	{Name: "hincrby", Group: "hash", Since: "2.0.0", Arity: 4, Flags: command.Write | command.DenyOOM | command.Fast,
		ACL: command.CatHash, Keys: command.Keys("i1+r0/1/0[RW,ACCESS,UPDATE]"), Element: 2,
		Summary: "Increments the integer in a field", Syntax: "key field increment",
		Complexity: "O(1)", Do: cmdHincrby},
	{Name: "hincrbyfloat", Group: "hash", Since: "2.6.0", Arity: 4, Flags: command.Write | command.DenyOOM | command.Fast,
		ACL: command.CatHash, Keys: command.Keys("i1+r0/1/0[RW,ACCESS,UPDATE]"), Element: 2,
		Summary: "Increments the floating-point number in a field", Syntax: "key field increment",
		Complexity: "O(1)", Do: cmdHincrbyfloat},
	{Name: "hkeys", Group: "hash", Since: "2.0.0", Arity: 2, Flags: command.ReadOnly, ACL: command.CatHash,
		Keys:    command.Keys("i1+r0/1/0[RO,ACCESS]"),
		Summary: "Returns all fields",
		Syntax:  "key", Complexity: "O(N), where N is the size of the hash", Do: cmdHkeys},
	{Name: "hlen", Group: "hash", Since: "2.0.0", Arity: 2, Flags: command.ReadOnly | command.Fast, ACL: command.CatHash,
		Keys:    command.Keys("i1+r0/1/0[RO]"),
		Summary: "Counts the fields of a hash", Syntax: "key", Complexity: "O(1)", Do: cmdHlen},
	{Name: "hmget", Group: "hash", Since: "2.0.0", Arity: -3, Flags: command.ReadOnly | command.Fast, ACL: command.CatHash,
		Keys: command.Keys("i1+r0/1/0[RO,ACCESS]"), Element: 2,
		Summary: "Returns the values of several fields", Syntax: "key field [field ...]",
		Complexity: "O(N), where N is the number of fields asked for", Do: cmdHmget},
	{Name: "hmset", Group: "hash", Since: "2.0.0", Deprecated: "4.0.0", Instead: "`HSET` with multiple field-value pairs",
		Arity: -4, Flags: command.Write | command.DenyOOM | command.Fast, ACL: command.CatHash,
		Keys: command.Keys("i1+r0/1/0[RW,UPDATE]"), Element: 2,
		Summary: "Sets the values of fields", Syntax: "key field value [field value ...]",
		Complexity: "O(N), where N is the number of fields to set", Do: cmdHmset},
	{Name: "hrandfield", Group: "hash", Since: "6.2.0", Arity: -2, Flags: command.ReadOnly, ACL: command.CatHash,
		Keys:    command.Keys("i1+r0/1/0[RO,ACCESS]"),
		Summary: "Returns random fields", Syntax: "key [count [WITHVALUES]]",
		Complexity: "O(N), where N is the number of fields returned", Do: cmdHrandfield},
	{Name: "hscan", Group: "hash", Since: "2.8.0", Arity: -3, Flags: command.ReadOnly, ACL: command.CatHash,
		Keys:    command.Keys("i1+r0/1/0[RO,ACCESS]"),
		Summary: "Iterates over the fields of a hash", Syntax: "key cursor [MATCH pattern] [COUNT count] [NOVALUES]",
		Complexity: "O(1) for every call, O(N) for a complete walk, where N is the size of the hash", Do: cmdHscan, InSteps: true},
	{Name: "hset", Group: "hash", Since: "2.0.0", Arity: -4, Flags: command.Write | command.DenyOOM | command.Fast,
		ACL: command.CatHash, Keys: command.Keys("i1+r0/1/0[RW,UPDATE]"), Element: 2,
		Summary: "Sets the values of fields and counts the new ones", Syntax: "key field value [field value ...]",
		Complexity: "O(N), where N is the number of fields to set", Do: cmdHset},
	{Name: "hsetnx", Group: "hash", Since: "2.0.0", Arity: 4, Flags: command.Write | command.DenyOOM | command.Fast,
		ACL: command.CatHash, Keys: command.Keys("i1+r0/1/0[RW,INSERT]"), Element: 2,
		Summary: "Sets the value of a field that does not exist",
		Syntax:  "key field value", Complexity: "O(1)", Do: cmdHsetnx},
	{Name: "hstrlen", Group: "hash", Since: "3.2.0", Arity: 3, Flags: command.ReadOnly | command.Fast,
		ACL:  command.CatHash,
		Keys: command.Keys("i1+r0/1/0[RO]"), Element: 2,
		Summary: "Returns the length of the value of a field", Syntax: "key field", Complexity: "O(1)", Do: cmdHstrlen},
	{Name: "hvals", Group: "hash", Since: "2.0.0", Arity: 2, Flags: command.ReadOnly, ACL: command.CatHash,
		Keys:    command.Keys("i1+r0/1/0[RO,ACCESS]"),
		Summary: "Returns all values",
		Syntax:  "key", Complexity: "O(N), where N is the size of the hash", Do: cmdHvals},
})

// Errors of HINCRBY and HINCRBYFLOAT.
const (
	errHashNotInteger command.Error = "ERR hash value is not an integer"
	errHashNotFloat   command.Error = "ERR hash value is not a float"
	errNotFinite      command.Error = "ERR value is NaN or Infinity"
)

// readHash returns the hash under key argument 1, or an empty one, which must not be changed, for a missing key. If
// the key is of another type, it writes an error and ok is false.
func readHash(c *command.Ctx) (h *hashes.Hash, ok bool) {
	e, ok := c.ReadAs(c.Args[1], engine.Hash)
	if e == nil {
		return new(hashes.Hash), ok
	}
	return e.Hash(), true
}

// readFields is readHash for a command that uses only these fields.
func readFields(c *command.Ctx, fields [][]byte) (h *hashes.Hash, ok bool) {
	e, ok := c.ReadAs(c.Args[1], engine.Hash)
	if e == nil {
		return new(hashes.Hash), ok
	}
	return e.Elements(fields, 1).Hash(), true
}

// fieldsToChange returns the entry under key argument 1, and its hash for a command that uses only the first of
// every step items of list as fields. For a missing key both are nil. If the key is of another type, it writes an
// error and ok is false.
func fieldsToChange(c *command.Ctx, list [][]byte, step int) (e *engine.Entry, h *hashes.Hash, ok bool) {
	e, ok = c.WriteAs(c.Args[1], engine.Hash)
	if e == nil {
		return nil, nil, ok
	}
	return e, e.Elements(list, step).Hash(), true
}

// orNew returns an entry and its hash; if e is nil, it creates an empty hash under key argument 1.
func orNew(c *command.Ctx, e *engine.Entry, h *hashes.Hash) (*engine.Entry, *hashes.Hash) {
	if e == nil {
		h = new(hashes.Hash)
		e = c.G.Create(c.DB, c.Args[1], h)
	}
	return e, h
}

func cmdHdel(c *command.Ctx) {
	e, h, ok := fieldsToChange(c, c.Args[2:], 1)
	if !ok {
		return
	}
	removed := 0
	var gone [][]byte // for the event
	if e != nil {
		wanted := c.G.WantsFields(engine.Hash)
		for _, field := range c.Args[2:] {
			if h.Delete(field) {
				removed++
				if wanted {
					gone = append(gone, field)
				}
			}
		}
	}
	if removed > 0 {
		fields.Removed(c, e, gone)
	}
	c.W.Int(int64(removed))
}

func cmdHexists(c *command.Ctx) {
	h, ok := readFields(c, c.Args[2:3])
	switch {
	case !ok:
	case h.Has(c.Args[2]):
		c.W.Int(1)
	default:
		c.W.Int(0)
	}
}

func cmdHget(c *command.Ctx) {
	if h, ok := readFields(c, c.Args[2:3]); ok {
		hget(c, h, c.Args[2])
	}
}

// hget replies with the value of a field.
func hget(c *command.Ctx, h *hashes.Hash, field []byte) {
	if value, ok := h.Get(field); ok {
		c.W.Bulk(value)
	} else {
		c.W.Null()
	}
}

func cmdHgetall(c *command.Ctx) {
	h, ok := readHash(c)
	if !ok {
		return
	}
	c.Long(h.Len(), h.Len())
	c.W.Map(h.Len())
	for field, value := range h.All() {
		c.W.Bulk(field)
		c.W.Bulk(value)
	}
}

func cmdHincrby(c *command.Ctx) {
	field := c.Args[2]
	by, ok := c.Int(c.Args[3])
	if !ok {
		return
	}
	e, h, ok := fieldsToChange(c, c.Args[2:3], 1)
	if !ok {
		return
	}
	n := int64(0)
	if e != nil {
		if value, ok := h.Get(field); ok {
			if n, ok = resp.ParseInt(value); !ok {
				c.Err(errHashNotInteger)
				return
			}
		}
	}
	if by > 0 && n > math.MaxInt64-by || by < 0 && n < math.MinInt64-by {
		c.Err(command.ErrOverflow)
		return
	}
	n += by
	var scratch [20]byte
	e, h = orNew(c, e, h)
	h.Update(field, strconv.AppendInt(scratch[:0], n, 10), c.Host.HashLimits())
	c.G.ChangedFields(e, "hincrby", c.Args[2:3], 1)
	c.W.Int(n)
}

func cmdHincrbyfloat(c *command.Ctx) {
	field := c.Args[2]
	by, ok := command.ParseLongDouble(c.Args[3])
	if !ok {
		c.Err(command.ErrNotFloat)
		return
	}
	if by.IsInf() {
		c.Err(errNotFinite)
		return
	}
	e, h, ok := fieldsToChange(c, c.Args[2:3], 1)
	if !ok {
		return
	}
	sum := by
	if e != nil {
		if value, ok := h.Get(field); ok {
			x, ok := command.ParseLongDouble(value)
			if !ok {
				c.Err(errHashNotFloat)
				return
			}
			if sum, ok = command.AddLongDouble(x, by); !ok {
				c.Err(command.ErrNaN)
				return
			}
		}
	}
	text := command.AppendLongDouble(nil, sum)
	e, h = orNew(c, e, h)
	h.Update(field, text, c.Host.HashLimits())
	c.G.ChangedFields(e, "hincrbyfloat", c.Args[2:3], 1)
	journalFields(c, h, [][]byte{field, text})
	c.W.Bulk(text)
}

func cmdHkeys(c *command.Ctx) {
	h, ok := readHash(c)
	if !ok {
		return
	}
	c.Long(h.Len(), h.Len())
	c.W.Array(h.Len())
	for field := range h.All() {
		c.W.Bulk(field)
	}
}

func cmdHlen(c *command.Ctx) { c.ReplyCount(c.Args[1], engine.Hash) }

func cmdHmget(c *command.Ctx) {
	h, ok := readFields(c, c.Args[2:])
	if !ok {
		return
	}
	c.W.Array(len(c.Args) - 2)
	for _, field := range c.Args[2:] {
		hget(c, h, field)
	}
}

func cmdHmset(c *command.Ctx) {
	if _, ok := hset(c); ok {
		c.W.OK()
	}
}

// hset gives fields the values that follow them among the arguments and returns how many are new. If it cannot, it
// writes an error and ok is false.
func hset(c *command.Ctx) (created int, ok bool) {
	if len(c.Args)%2 != 0 {
		c.Err(command.WrongArity(c.Cmd))
		return 0, false
	}
	e, h, ok := fieldsToChange(c, c.Args[2:], 2)
	if !ok {
		return 0, false
	}
	e, h = orNew(c, e, h)
	lim := c.Host.HashLimits()
	for i := 2; i < len(c.Args); i += 2 {
		if h.Set(c.Args[i], c.Args[i+1], lim) {
			created++
		}
	}
	c.G.ChangedFields(e, "hset", c.Args[2:], 2)
	return created, true
}

func cmdHrandfield(c *command.Ctx) {
	if len(c.Args) == 2 {
		h, ok := readHash(c)
		switch {
		case !ok:
		case h.Len() == 0:
			c.W.Null()
		default:
			h.Random(1, func(field, _ []byte) { c.W.Bulk(field) })
		}
		return
	}
	count, ok := c.OppositeInt(c.Args[2])
	if !ok {
		return
	}
	withValues := len(c.Args) == 4 && command.EqualFold(c.Args[3], "withvalues")
	switch {
	case len(c.Args) > 3 && !withValues:
		c.Err(command.ErrSyntax)
		return
	case withValues && (count < -math.MaxInt64/2 || count > math.MaxInt64/2):
		c.Err(command.ErrOutOfRange)
		return
	}
	h, ok := readHash(c)
	if !ok {
		return
	}
	if h.Len() == 0 || count == 0 {
		c.W.Array(0)
		return
	}
	pairs := withValues && c.W.Proto == 3
	add := func(field, value []byte) {
		if pairs {
			c.W.Array(2)
		}
		c.W.Bulk(field)
		if withValues {
			c.W.Bulk(value)
		}
	}
	begin := func(n int) {
		if withValues && !pairs {
			n *= 2
		}
		c.W.Array(n)
	}
	if count < 0 {
		c.Repeat(count, begin, func(n int, room func() bool) {
			h.Random(n, func(field, value []byte) {
				if room() {
					add(field, value)
				}
			})
		})
		return
	}
	n := int(min(count, int64(h.Len())))
	begin(n)
	h.Sample(n, add)
}

func cmdHscan(c *command.Ctx) {
	e, o, ok := c.ScanCollection(engine.Hash, command.ScanNoValues)
	if !ok {
		return
	}
	var found resp.Writer
	n := 0
	visit := func(field, value []byte) {
		if !o.Match(field) {
			return
		}
		found.Bulk(field)
		n++
		if !o.NoValues {
			found.Bulk(value)
			n++
		}
	}
	next := c.ScanValue(e, &o, &found, func(e *engine.Entry, cursor uint64, count int) uint64 {
		return e.Hash().Scan(cursor, count, visit)
	})
	c.ScanReply(next, n, &found)
}

func cmdHset(c *command.Ctx) {
	if created, ok := hset(c); ok {
		c.W.Int(int64(created))
	}
}

func cmdHsetnx(c *command.Ctx) {
	e, h, ok := fieldsToChange(c, c.Args[2:3], 1)
	if !ok {
		return
	}
	if e != nil && h.Has(c.Args[2]) {
		c.W.Int(0)
		return
	}
	e, h = orNew(c, e, h)
	h.Set(c.Args[2], c.Args[3], c.Host.HashLimits())
	c.G.ChangedFields(e, "hset", c.Args[2:3], 1)
	c.W.Int(1)
}

func cmdHstrlen(c *command.Ctx) {
	if h, ok := readFields(c, c.Args[2:3]); ok {
		value, _ := h.Get(c.Args[2])
		c.W.Int(int64(len(value)))
	}
}

func cmdHvals(c *command.Ctx) {
	h, ok := readHash(c)
	if !ok {
		return
	}
	c.Long(h.Len(), h.Len())
	c.W.Array(h.Len())
	for _, value := range h.All() {
		c.W.Bulk(value)
	}
}
