package strings

import (
	"math"
	"strconv"

	"github.com/atomredis/atomredis/engine"
	"github.com/atomredis/atomredis/internal/command"
	"github.com/atomredis/atomredis/resp"
)

// CL.THROTTLE limits a rate, as the module redis-cell and Dragonfly do. The string under the key is the theoretical
// arrival time of the generic cell rate algorithm, in ns since 1970: the time when all tokens will be back. The key
// expires at that time, so an unused limit needs no memory.

func init() {
	command.Register([]*command.Command{{Name: "cl.throttle", Group: "string", Since: "0.2.0", Arity: -5,
		Flags: command.Write | command.DenyOOM | command.Fast, ACL: command.CatString,
		Keys:    command.Keys("i1+r0/1/0[RW,ACCESS,UPDATE]"),
		Summary: "Takes tokens of a limit if there are as many, and says how many are left and when there are more",
		Syntax:  "key max_burst count period [quantity]", Complexity: "O(1)", Do: cmdThrottle}})
}

// Units of the times of a limit, in ns.
const (
	nsPerMs     = 1_000_000
	nsPerSecond = 1_000_000_000
)

// throttle has the limit of CL.THROTTLE.
type throttle struct {
	limit     int64 // the number of tokens when none is taken
	interval  int64 // time in which one token comes back, in ns
	tolerance int64 // time in which all tokens come back, in ns
	cost      int64 // time in which the taken tokens come back, in ns
}

// readThrottle reads the arguments; ok is false if one is no integer, is negative, or means a time beyond 64 bits of
// ns.
func readThrottle(args [][]byte) (t throttle, ok bool) {
	var numbers [4]int64 // the burst, the count, the period and the quantity
	numbers[3] = 1
	for i, arg := range args {
		if numbers[i], ok = resp.ParseInt(arg); !ok || numbers[i] < 0 {
			return t, false
		}
	}
	burst, count, period, quantity := numbers[0], numbers[1], numbers[2], numbers[3]
	if count == 0 || period > math.MaxInt64/nsPerSecond || burst == math.MaxInt64 {
		return t, false
	}
	t.limit, t.interval = burst+1, period*nsPerSecond/count
	if t.interval == 0 || t.limit > math.MaxInt64/t.interval || quantity > math.MaxInt64/t.interval {
		return t, false
	}
	t.tolerance, t.cost = t.limit*t.interval, quantity*t.interval
	return t, true
}

// take takes the tokens at the time now if the limit allows that. full is the time when all tokens will be back, not
// before now; then is that time afterwards. If the limit forbids it, wait is the time until it will be allowed,
// negative for never.
func (t *throttle) take(now, full int64) (then, wait int64, limited bool) {
	then = full + t.cost
	if wait = then - now - t.tolerance; wait <= 0 {
		return then, -1, false
	}
	if t.cost > t.tolerance {
		wait = -1
	}
	return full, wait, true
}

// left returns the number of tokens if all of them will be back after some time.
func (t *throttle) left(after int64) int64 { return max(t.tolerance-after, 0) / t.interval }

// throttleSeconds converts ns to seconds. It rounds up, so that a client does not come back too early, but ignores a
// rest of less than a ms; a negative time is -1.
func throttleSeconds(ns int64) int64 {
	if ns < 0 {
		return -1
	}
	seconds := ns / nsPerSecond
	if ns%nsPerSecond >= nsPerMs {
		seconds++
	}
	return seconds
}

func cmdThrottle(c *command.Ctx) {
	if len(c.Args) > 6 {
		c.Err(command.WrongArity(c.Cmd))
		return
	}
	t, ok := readThrottle(c.Args[2:])
	if !ok {
		c.Err(command.ErrNotInteger)
		return
	}
	key := c.Args[1]
	e, ok := c.WriteAs(key, engine.String)
	if !ok {
		return
	}
	now := c.Now() * nsPerMs
	full := now
	if e != nil {
		stored, ok := c.Int(e.Bytes())
		if !ok {
			return
		}
		full = max(full, stored)
	}
	if full > math.MaxInt64-nsPerMs-t.cost {
		c.Err(command.ErrNotInteger)
		return
	}
	then, wait, limited := t.take(now, full)
	if !limited && t.cost > 0 {
		text := strconv.AppendInt(nil, then, 10)
		at := (then + nsPerMs - 1) / nsPerMs // not before the tokens are back
		e = c.Store(e, key, text, "set")
		c.G.SetDeadline(e, at)
		c.G.Changed(e, engine.EventGeneric, "expire")
		c.Journal(setWord, key, text, pxatWord, strconv.AppendInt(nil, at, 10))
	}
	c.W.Array(5)
	refused := int64(0)
	if limited {
		refused = 1
	}
	for _, n := range []int64{refused, t.limit, t.left(then - now), throttleSeconds(wait), throttleSeconds(then - now)} {
		c.W.Int(n)
	}
}
