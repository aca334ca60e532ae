package server

import "math"

// This file reads deadlines, and the conditions under which they replace others.

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

const (
	errExpireNX   Error = "ERR NX and XX, GT or LT options at the same time are not compatible"
	errExpireGTLT Error = "ERR GT and LT options at the same time are not compatible"
)

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
			c.Err(Error("ERR Unsupported option " + string(untilNUL(o.Word()))))
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
