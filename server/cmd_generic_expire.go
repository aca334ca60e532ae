package server

import (
	"bytes"
	"math"

	"github.com/atomredis/atomredis/engine"
)

// This file has the commands on the deadlines of keys.

var expireCommands = []*Command{
	{Name: "expire", Group: "generic", Since: "1.0.0", Arity: -3, Flags: Write | Fast, ACL: CatKeyspace, Keys: keys("i1+r0/1/0[RW,UPDATE]"),
		Summary: "Makes a key expire after some seconds", Syntax: "key seconds [NX | XX | GT | LT]", Complexity: "O(1)", Do: cmdExpire},
	{Name: "expireat", Group: "generic", Since: "1.2.0", Arity: -3, Flags: Write | Fast, ACL: CatKeyspace, Keys: keys("i1+r0/1/0[RW,UPDATE]"),
		Summary: "Makes a key expire at a time, in seconds since 1970", Syntax: "key unix-time-seconds [NX | XX | GT | LT]", Complexity: "O(1)", Do: cmdExpireat},
	{Name: "expiretime", Group: "generic", Since: "7.0.0", Arity: 2, Flags: ReadOnly | Fast, ACL: CatKeyspace, Keys: keys("i1+r0/1/0[RO,ACCESS]"),
		Summary: "Tells when a key expires, in seconds since 1970", Syntax: "key", Complexity: "O(1)", Do: cmdExpiretime},
	{Name: "persist", Group: "generic", Since: "2.2.0", Arity: 2, Flags: Write | Fast, ACL: CatKeyspace, Keys: keys("i1+r0/1/0[RW,UPDATE]"),
		Summary: "Keeps a key from expiring", Syntax: "key", Complexity: "O(1)", Do: cmdPersist},
	{Name: "pexpire", Group: "generic", Since: "2.6.0", Arity: -3, Flags: Write | Fast, ACL: CatKeyspace, Keys: keys("i1+r0/1/0[RW,UPDATE]"),
		Summary: "Makes a key expire after some milliseconds", Syntax: "key milliseconds [NX | XX | GT | LT]", Complexity: "O(1)", Do: cmdPexpire},
	{Name: "pexpireat", Group: "generic", Since: "2.6.0", Arity: -3, Flags: Write | Fast, ACL: CatKeyspace, Keys: keys("i1+r0/1/0[RW,UPDATE]"),
		Summary: "Makes a key expire at a time, in milliseconds since 1970", Syntax: "key unix-time-milliseconds [NX | XX | GT | LT]", Complexity: "O(1)", Do: cmdPexpireat},
	{Name: "pexpiretime", Group: "generic", Since: "7.0.0", Arity: 2, Flags: ReadOnly | Fast, ACL: CatKeyspace, Keys: keys("i1+r0/1/0[RO,ACCESS]"),
		Summary: "Tells when a key expires, in milliseconds since 1970", Syntax: "key", Complexity: "O(1)", Do: cmdPexpiretime},
	{Name: "pttl", Group: "generic", Since: "2.6.0", Arity: 2, Flags: ReadOnly | Fast, ACL: CatKeyspace, Keys: keys("i1+r0/1/0[RO,ACCESS]"),
		Summary: "Tells how many milliseconds a key has left to live", Syntax: "key", Complexity: "O(1)", Do: cmdPttl},
	{Name: "ttl", Group: "generic", Since: "1.0.0", Arity: 2, Flags: ReadOnly | Fast, ACL: CatKeyspace, Keys: keys("i1+r0/1/0[RO,ACCESS]"),
		Summary: "Tells how many seconds a key has left to live", Syntax: "key", Complexity: "O(1)", Do: cmdTtl},
}

const (
	errExpireNX   Error = "ERR NX and XX, GT or LT options at the same time are not compatible"
	errExpireGTLT Error = "ERR GT and LT options at the same time are not compatible"
)

// timeUnit is how a command gives a time: in units of so many ms, from now on or since 1970.
type timeUnit struct {
	ms       int64
	absolute bool
}

var (
	inSeconds = timeUnit{ms: 1000}
	inMillis  = timeUnit{ms: 1}
	atSeconds = timeUnit{ms: 1000, absolute: true}
	atMillis  = timeUnit{ms: 1, absolute: true}
)

// deadline returns in ms since 1970 what n units mean at the time now; ok is false if that exceeds 64 bits.
func (u timeUnit) deadline(now, n int64) (at int64, ok bool) {
	if n > math.MaxInt64/u.ms || n < math.MinInt64/u.ms {
		return 0, false
	}
	n *= u.ms
	if u.absolute {
		return n, true
	}
	if n > math.MaxInt64-now {
		return 0, false
	}
	return n + now, true
}

// badExpireTime is the error of a time that cannot be a deadline.
func (c *Ctx) badExpireTime() Error {
	return Error("ERR invalid expire time in '" + c.Cmd.Name + "' command")
}

func cmdExpire(c *Ctx)    { c.expire(inSeconds) }
func cmdExpireat(c *Ctx)  { c.expire(atSeconds) }
func cmdPexpire(c *Ctx)   { c.expire(inMillis) }
func cmdPexpireat(c *Ctx) { c.expire(atMillis) }

// expire gives the key argument 1 the deadline argument 2.
func (c *Ctx) expire(unit timeUnit) {
	cond, ok := c.expireConditions(3)
	if !ok {
		return
	}
	n, ok := c.Int(c.Args[2])
	if !ok {
		return
	}
	at, ok := unit.deadline(c.Now(), n)
	if !ok {
		c.Err(c.badExpireTime())
		return
	}
	e := c.G.Write(c.DB, c.Args[1])
	switch {
	case e == nil || !cond.allow(e.Deadline(), at):
		c.W.Int(0)
		return
	case at <= c.Now():
		c.G.Remove(e, engine.EventGeneric, "del")
	default:
		c.G.SetDeadline(e, at)
		c.G.Changed(e, engine.EventGeneric, "expire")
	}
	c.W.Int(1)
}

// expireConditions say which deadlines EXPIRE and its like replace.
type expireConditions struct{ nx, xx, gt, lt bool }

// expireConditions reads the options from argument from on; if they are wrong an error is written and ok is false.
func (c *Ctx) expireConditions(from int) (cond expireConditions, ok bool) {
	for o := c.Options(from); o.Next(); {
		switch {
		case o.Is("nx"):
			cond.nx = true
		case o.Is("xx"):
			cond.xx = true
		case o.Is("gt"):
			cond.gt = true
		case o.Is("lt"):
			cond.lt = true
		default:
			word, _, _ := bytes.Cut(o.Word(), []byte{0}) // Redis shows it as a C string
			c.Err(Error("ERR Unsupported option " + string(word)))
			return cond, false
		}
	}
	switch {
	case cond.nx && (cond.xx || cond.gt || cond.lt):
		c.Err(errExpireNX)
		return cond, false
	case cond.gt && cond.lt:
		c.Err(errExpireGTLT)
		return cond, false
	}
	return cond, true
}

// allow reports whether the deadline at may replace old, which is 0 if the key never expires: that is later than any time.
func (cond expireConditions) allow(old, at int64) bool {
	switch {
	case cond.nx && old != 0, cond.xx && old == 0:
		return false
	case cond.gt:
		return old != 0 && at > old
	case cond.lt:
		return old == 0 || at < old
	}
	return true
}

func cmdPersist(c *Ctx) {
	e := c.G.Write(c.DB, c.Args[1])
	if e == nil || e.Deadline() == 0 {
		c.W.Int(0)
		return
	}
	c.G.SetDeadline(e, 0)
	c.G.Changed(e, engine.EventGeneric, "persist")
	c.W.Int(1)
}

func cmdExpiretime(c *Ctx)  { c.replyDeadline(atSeconds) }
func cmdPexpiretime(c *Ctx) { c.replyDeadline(atMillis) }
func cmdTtl(c *Ctx)         { c.replyDeadline(inSeconds) }
func cmdPttl(c *Ctx)        { c.replyDeadline(inMillis) }

// replyDeadline replies when the key argument 1 expires, rounded to the unit, -1 if it does not, -2 if it does not exist.
func (c *Ctx) replyDeadline(unit timeUnit) {
	e := c.look(c.Args[1], false)
	switch {
	case e == nil:
		c.W.Int(-2)
		return
	case e.Deadline() == 0:
		c.W.Int(-1)
		return
	}
	at := e.Deadline()
	if !unit.absolute {
		at -= c.Now()
	}
	if unit.ms > 1 {
		at = int64((uint64(at) + uint64(unit.ms/2)) / uint64(unit.ms)) // unsigned: the last deadline of all is in use
	}
	c.W.Int(at)
}
