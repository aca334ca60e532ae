package command

import "math"

// This file reads deadlines, and the conditions for replacing a deadline.

// TimeUnit is the form of a command's time: its unit in ms, relative to now or to 1970.
type TimeUnit struct {
	MS       int64
	Absolute bool // since 1970
}

// The units of EXPIRE, PEXPIRE, EXPIREAT and PEXPIREAT.
var (
	InSeconds = TimeUnit{MS: 1000}
	InMillis  = TimeUnit{MS: 1}
	AtSeconds = TimeUnit{MS: 1000, Absolute: true}
	AtMillis  = TimeUnit{MS: 1, Absolute: true}
)

// Deadline converts n units at the time now to ms since 1970; ok is false if the result exceeds 64 bits.
func (u TimeUnit) Deadline(now, n int64) (at int64, ok bool) {
	if n > math.MaxInt64/u.MS || n < math.MinInt64/u.MS {
		return 0, false
	}
	n *= u.MS
	if u.Absolute {
		return n, true
	}
	if n > math.MaxInt64-now {
		return 0, false
	}
	return n + now, true
}

// BadExpireTime is the error of a time that cannot be a deadline.
func (c *Ctx) BadExpireTime() Error {
	return Error("ERR invalid expire time in '" + c.Cmd.Name + "' command")
}

const (
	errExpireNX   Error = "ERR NX and XX, GT or LT options at the same time are not compatible"
	errExpireGTLT Error = "ERR GT and LT options at the same time are not compatible"
)

// ExpireConditions are the options of EXPIRE and its variants: which deadlines they replace.
type ExpireConditions struct{ NX, XX, GT, LT bool }

// ExpireConditions reads the options from argument from on; if they are wrong, it writes an error and ok is false.
func (c *Ctx) ExpireConditions(from int) (cond ExpireConditions, ok bool) {
	for o := c.Options(from); o.Next(); {
		switch {
		case o.Is("nx"):
			cond.NX = true
		case o.Is("xx"):
			cond.XX = true
		case o.Is("gt"):
			cond.GT = true
		case o.Is("lt"):
			cond.LT = true
		default:
			c.Err(Error("ERR Unsupported option " + string(UntilNUL(o.Word()))))
			return cond, false
		}
	}
	switch {
	case cond.NX && (cond.XX || cond.GT || cond.LT):
		c.Err(errExpireNX)
		return cond, false
	case cond.GT && cond.LT:
		c.Err(errExpireGTLT)
		return cond, false
	}
	return cond, true
}

// Allow reports whether the deadline at may replace old. If old is 0, the key never expires, which counts as later
// than any deadline.
func (cond ExpireConditions) Allow(old, at int64) bool {
	switch {
	case cond.NX && old != 0, cond.XX && old == 0:
		return false
	case cond.GT:
		return old != 0 && at > old
	case cond.LT:
		return old == 0 || at < old
	}
	return true
}
