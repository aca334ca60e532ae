// Package effect changes ordinary keys as ordinary commands do, for protocols that keep their state in such keys.
// Events, WATCH, blocked clients, caches and followers see no difference, and the journal gets ordinary commands.
// The guard of the Ctx must hold the keys, which must be of the right types or missing.
package effect

import (
	"slices"
	"strconv"

	"github.com/atomredis/atomredis/engine"
	"github.com/atomredis/atomredis/engine/hashes"
	"github.com/atomredis/atomredis/engine/zsets"
	"github.com/atomredis/atomredis/internal/command"
)

// The commands as which changes are journalled.
var (
	delWord            = []byte("DEL")
	hdelWord, hsetWord = []byte("HDEL"), []byte("HSET")
	setWord            = []byte("SET")
	zaddWord, zremWord = []byte("ZADD"), []byte("ZREM")
)

// largestExact is the limit up to which a float64 represents every integer.
const largestExact = 1 << 53

// Is reports whether a key is of a type, or does not exist. If it is of another type, it writes an error.
func Is(c *command.Ctx, key []byte, typ engine.Type) bool {
	e := c.G.Peek(c.DB, key)
	if e != nil && e.Type() != typ {
		c.Err(command.ErrWrongType)
		return false
	}
	if e != nil {
		e.Load()
	}
	return true
}

// Hash returns the hash of a key to read; nil if there is none.
func Hash(c *command.Ctx, key []byte) *hashes.Hash {
	if e := c.G.Peek(c.DB, key); e != nil && e.Type() == engine.Hash {
		return e.Hash()
	}
	return nil
}

// HGet returns the value of a field; ok is false if there is none. It is valid until the hash changes.
func HGet(c *command.Ctx, key, field []byte) (value []byte, ok bool) {
	if h := Hash(c, key); h != nil {
		return h.Get(field)
	}
	return nil, false
}

// HLen returns the number of fields.
func HLen(c *command.Ctx, key []byte) int {
	if h := Hash(c, key); h != nil {
		return h.Len()
	}
	return 0
}

// HSet sets a field.
func HSet(c *command.Ctx, key, field, value []byte) {
	e := c.G.Write(c.DB, key)
	switch {
	case e == nil:
		e = c.G.Create(c.DB, key, new(hashes.Hash))
	case e.Type() != engine.Hash:
		return
	}
	e.Hash().Set(field, value, c.Host.HashLimits())
	c.G.Changed(e, engine.EventHash, "hset")
	c.Journal(hsetWord, key, field, value)
}

// HDel removes fields, and the key with its last one. It returns how many existed.
func HDel(c *command.Ctx, key []byte, fields ...[]byte) int {
	h := Hash(c, key)
	if h == nil || !slices.ContainsFunc(fields, h.Has) {
		return 0
	}
	e := c.G.Write(c.DB, key)
	n := 0
	for _, field := range fields {
		if e.Hash().Delete(field) {
			n++
		}
	}
	removed(c, e, e.Hash().Len(), engine.EventHash, "hdel")
	journalEach(c, hdelWord, key, fields)
	return n
}

// journalEach journals a command on a key and some elements. For very many elements it journals several commands.
func journalEach(c *command.Ctx, word, key []byte, elements [][]byte) {
	const most = 1000
	args := make([][]byte, 0, 2+min(len(elements), most))
	for some := range slices.Chunk(elements, most) {
		c.Journal(append(append(args, word, key), some...)...)
	}
}

// ZSet returns the sorted set of a key to read; nil if there is none.
func ZSet(c *command.Ctx, key []byte) *zsets.ZSet {
	if e := c.G.Peek(c.DB, key); e != nil && e.Type() == engine.ZSet {
		return e.ZSet()
	}
	return nil
}

// ZCard returns the number of members.
func ZCard(c *command.Ctx, key []byte) int {
	if z := ZSet(c, key); z != nil {
		return z.Len()
	}
	return 0
}

// ZAdd gives a member a score, an integer that a float64 represents exactly: larger ones are capped.
func ZAdd(c *command.Ctx, key, member []byte, score int64) {
	e := c.G.Write(c.DB, key)
	switch {
	case e == nil:
		e = c.G.Create(c.DB, key, zsets.New())
	case e.Type() != engine.ZSet:
		return
	}
	exact := min(score, largestExact)
	e.ZSet().Set(member, float64(exact), c.Host.ZSetLimits())
	c.G.Changed(e, engine.EventZSet, "zadd")
	c.Journal(zaddWord, key, strconv.AppendInt(nil, exact, 10), member)
}

// ZRem removes members, and the key with its last one. It returns how many existed.
func ZRem(c *command.Ctx, key []byte, members ...[]byte) int {
	z := ZSet(c, key)
	if z == nil || !slices.ContainsFunc(members, func(m []byte) bool { _, ok := z.Score(m); return ok }) {
		return 0
	}
	e := c.G.Write(c.DB, key)
	n := 0
	for _, member := range members {
		if _, ok := e.ZSet().Remove(member); ok {
			n++
		}
	}
	removed(c, e, e.ZSet().Len(), engine.EventZSet, "zrem")
	journalEach(c, zremWord, key, members)
	return n
}

// removed reports that elements of a collection were removed, and removes the key if none is left.
func removed(c *command.Ctx, e *engine.Entry, left int, class engine.EventClass, event string) {
	if left > 0 {
		c.G.Changed(e, class, event)
		return
	}
	c.G.Notify(class, event, c.DB, e.Key())
	c.G.Remove(e, engine.EventGeneric, "del")
}

// Integer returns the number under a key, or otherwise if there is none.
func Integer(c *command.Ctx, key []byte, otherwise int64) int64 {
	if e := c.G.Peek(c.DB, key); e != nil && e.Type() == engine.String {
		if n, err := strconv.ParseInt(string(e.Bytes()), 10, 64); err == nil {
			return n
		}
	}
	return otherwise
}

// Set makes a key a string without a deadline.
func Set(c *command.Ctx, key, value []byte) {
	e := c.G.Write(c.DB, key)
	switch {
	case e == nil:
		e = c.G.CreateString(c.DB, key, value)
	case e.Type() != engine.String:
		return
	default:
		e.SetBytes(value)
		c.G.SetDeadline(e, 0)
	}
	c.G.Changed(e, engine.EventString, "set")
	c.Journal(setWord, key, value)
}

// Del removes a key.
func Del(c *command.Ctx, key []byte) {
	if e := c.G.Write(c.DB, key); e != nil {
		c.G.Remove(e, engine.EventGeneric, "del")
		c.Journal(delWord, key)
	}
}
