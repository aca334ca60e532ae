package strings

import (
	"math"
	"math/big"
	"strconv"

	"github.com/atomredis/atomredis/engine"
	"github.com/atomredis/atomredis/internal/command"
	"github.com/atomredis/atomredis/resp"
)

// INCREX increments a number within bounds, and sets its deadline.

func init() {
	command.Register([]*command.Command{{Name: "increx", Group: "string", Since: "8.8.0", Arity: -2,
		Flags: command.Write | command.DenyOOM | command.Fast, ACL: command.CatString,
		Keys:    command.Keys("i1+r0/1/0[RW,ACCESS,UPDATE]"),
		Summary: "Increments a number within bounds, and sets when it expires",
		Syntax: "key [BYFLOAT float | BYINT integer] [SATURATE] [LBOUND lowerbound] [UBOUND upperbound] " +
			"[EX seconds | PX milliseconds | EXAT unix-time-seconds | PXAT unix-time-milliseconds | PERSIST] [ENX]",
		Complexity: "O(1)", Do: cmdIncrex}})
}

// Errors of INCREX.
const (
	errIncrexInt        command.Error = "ERR Increment is not an integer or out of range"
	errIncrexFloat      command.Error = "ERR Increment is not a valid float"
	errIncrexInfinite   command.Error = "ERR BYFLOAT increment cannot be Infinity"
	errIncrexValue      command.Error = "ERR value cannot be Infinity"
	errIncrexLowerInt   command.Error = "ERR LBOUND is not an integer or out of range"
	errIncrexUpperInt   command.Error = "ERR UBOUND is not an integer or out of range"
	errIncrexLowerFloat command.Error = "ERR LBOUND is not a valid float"
	errIncrexUpperFloat command.Error = "ERR UBOUND is not a valid float"
	errIncrexBounds     command.Error = "ERR LBOUND can't be greater than UBOUND"
	errIncrexENX        command.Error = "ERR ENX flag requires an expiration"
	errIncrexApplied    command.Error = "ERR applied increment would overflow"
)

// increx has the arguments of INCREX.
type increx struct {
	byFloat, byInt   []byte // nil if not given
	lower, upper     []byte
	saturate, ifNone bool
	expires          setOptions // only setExpire and setPersist
}

// read reads the arguments. If they are wrong, it writes an error and returns false.
func (x *increx) read(c *command.Ctx) bool {
	// value takes the argument of an option that may occur once.
	value := func(o *command.OptionArgs, into *[]byte) bool {
		if *into != nil || !o.More() {
			return false
		}
		*into = o.Arg()
		return true
	}
	flag := func(into *bool) bool {
		was := *into
		*into = true
		return !was
	}
	for o := c.Options(2); o.Next(); {
		ok := false
		switch {
		case o.Is("byfloat"):
			ok = x.byInt == nil && value(&o, &x.byFloat)
		case o.Is("byint"):
			ok = x.byFloat == nil && value(&o, &x.byInt)
		case o.Is("lbound"):
			ok = value(&o, &x.lower)
		case o.Is("ubound"):
			ok = value(&o, &x.upper)
		case o.Is("saturate"):
			ok = flag(&x.saturate)
		case o.Is("enx"):
			ok = x.expires.flags&setPersist == 0 && flag(&x.ifNone)
		case x.expires.flags != 0:
		case o.Is("persist"):
			ok, x.expires.flags = !x.ifNone, setPersist
		case o.Is("ex"):
			ok, x.expires.unit = value(&o, &x.expires.time), command.InSeconds
		case o.Is("px"):
			ok, x.expires.unit = value(&o, &x.expires.time), command.InMillis
		case o.Is("exat"):
			ok, x.expires.unit = value(&o, &x.expires.time), command.AtSeconds
		case o.Is("pxat"):
			ok, x.expires.unit = value(&o, &x.expires.time), command.AtMillis
		}
		if !ok {
			c.Err(command.ErrSyntax)
			return false
		}
		if x.expires.time != nil {
			x.expires.flags = setExpire
		}
	}
	if x.ifNone && x.expires.flags != setExpire {
		c.Err(errIncrexENX)
		return false
	}
	return true
}

func cmdIncrex(c *command.Ctx) {
	var x increx
	if !x.read(c) {
		return
	}
	if x.byFloat != nil {
		x.float(c)
	} else {
		x.int(c)
	}
}

// int executes INCREX on an integer.
func (x *increx) int(c *command.Ctx) {
	by, lower, upper := int64(1), int64(math.MinInt64), int64(math.MaxInt64)
	for _, arg := range []struct {
		text      []byte
		into      *int64
		otherwise command.Error
	}{{x.byInt, &by, errIncrexInt}, {x.lower, &lower, errIncrexLowerInt}, {x.upper, &upper, errIncrexUpperInt}} {
		var ok bool
		if arg.text == nil {
			continue
		}
		if *arg.into, ok = resp.ParseInt(arg.text); !ok {
			c.Err(arg.otherwise)
			return
		}
	}
	if lower > upper {
		c.Err(errIncrexBounds)
		return
	}
	e, at, ok := x.entry(c)
	if !ok {
		return
	}
	n := int64(0)
	if e != nil {
		if n, ok = c.Int(e.Bytes()); !ok {
			return
		}
	}
	result := n + by
	above := by > 0 && result < n || !(by < 0 && result > n) && result > upper
	below := !above && (by < 0 && result > n || result < lower)
	reply := func(result, by int64) {
		c.W.Array(2)
		c.W.Int(result)
		c.W.Int(by)
	}
	switch {
	case !above && !below:
	case !x.saturate:
		reply(n, 0)
		return
	case above:
		result = upper
	default:
		result = lower
	}
	by = result - n
	if (by < 0) != (result < n) {
		c.Err(errIncrexApplied)
		return
	}
	x.store(c, e, strconv.AppendInt(nil, result, 10), "incrby", at)
	reply(result, by)
}

// largest is the largest number that is finite.
var largest = new(big.Float).SetMantExp(new(big.Float).SetPrec(64).SetInt(new(big.Int).SetUint64(math.MaxUint64)), 16384-64)

// float executes INCREX on a number of any kind.
func (x *increx) float(c *command.Ctx) {
	by, ok := command.ParseLongDouble(x.byFloat)
	switch {
	case !ok:
		c.Err(errIncrexFloat)
		return
	case by.IsInf():
		c.Err(errIncrexInfinite)
		return
	}
	upper := largest
	lower := new(big.Float).Neg(largest)
	for _, bound := range []struct {
		text      []byte
		into      **big.Float
		otherwise command.Error
	}{{x.lower, &lower, errIncrexLowerFloat}, {x.upper, &upper, errIncrexUpperFloat}} {
		if bound.text == nil {
			continue
		}
		limit, ok := command.ParseLongDouble(bound.text)
		if !ok || limit.IsInf() {
			c.Err(bound.otherwise)
			return
		}
		*bound.into = limit
	}
	if lower.Cmp(upper) > 0 {
		c.Err(errIncrexBounds)
		return
	}
	e, at, ok := x.entry(c)
	if !ok {
		return
	}
	n := new(big.Float)
	if e != nil {
		if n, ok = command.ParseLongDouble(e.Bytes()); !ok {
			c.Err(command.ErrNotFloat)
			return
		}
		if n.IsInf() {
			c.Err(errIncrexValue)
			return
		}
	}
	reply := func(result, by *big.Float) {
		c.W.Array(2)
		for _, number := range []*big.Float{result, by} {
			if c.W.Proto == 3 {
				f, _ := number.Float64()
				c.W.Double(f)
			} else {
				c.W.Bulk(command.AppendLongDouble(nil, number))
			}
		}
	}
	result, finite := command.AddLongDouble(n, by)
	above := !finite && by.Sign() > 0 || finite && result.Cmp(upper) > 0
	below := !finite && by.Sign() < 0 || finite && result.Cmp(lower) < 0
	switch {
	case !above && !below:
	case !x.saturate:
		reply(n, new(big.Float))
		return
	default:
		if result = lower; above {
			result = upper
		}
		if by, ok = command.AddLongDouble(result, new(big.Float).Neg(n)); !ok {
			c.Err(errIncrexApplied)
			return
		}
	}
	x.store(c, e, command.AppendLongDouble(nil, result), "incrbyfloat", at)
	reply(result, by)
}

// entry returns the string under key argument 1, nil if there is none, and its new deadline, 0 for none or
// unchanged. On an error it writes the reply and ok is false.
func (x *increx) entry(c *command.Ctx) (e *engine.Entry, at int64, ok bool) {
	if at, ok = setDeadline(c, &x.expires); !ok {
		return nil, 0, false
	}
	if e, ok = c.WriteAs(c.Args[1], engine.String); ok && e != nil && x.ifNone && e.Deadline() != 0 {
		at = 0
	}
	return e, at, ok
}

// store makes a text the value of e, or of a new entry if e is nil. It sets the deadline at unless at is 0.
func (x *increx) store(c *command.Ctx, e *engine.Entry, text []byte, event string, at int64) {
	key := c.Args[1]
	if at != 0 && c.Over(at) {
		if e != nil {
			c.G.Remove(e, engine.EventGeneric, "del")
			c.JournalDelete(key)
		}
		return
	}
	e = c.Store(e, key, text, event)
	if x.byFloat != nil {
		e.SetStringForm(engine.FormText)
	}
	switch {
	case at != 0:
		c.G.SetDeadline(e, at)
		c.G.Changed(e, engine.EventGeneric, "expire")
		c.Journal(setWord, key, text, pxatWord, strconv.AppendInt(nil, at, 10))
	case x.expires.flags == setPersist:
		if e.Deadline() != 0 {
			c.G.SetDeadline(e, 0)
			c.G.Changed(e, engine.EventGeneric, "persist")
		}
		c.Journal(setWord, key, text)
	default:
		c.Journal(setWord, key, text, keepTTLWord)
	}
}
