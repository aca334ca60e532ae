package command

import (
	"math"
	"slices"
	"strconv"

	"github.com/atomredis/atomredis/engine"
	"github.com/atomredis/atomredis/engine/glob"
	"github.com/atomredis/atomredis/resp"
)

// This file is shared by SCAN, HSCAN, SSCAN and ZSCAN: the cursor, and the options that filter and limit the reply.

const (
	errNoValues Error = "ERR NOVALUES option can only be used in HSCAN"
	errScanSlot Error = "ERR Invalid or out of range slot"
)

// ScanOptions are the arguments of a command of the SCAN family.
type ScanOptions struct {
	// Cursor is the place to continue from.
	Cursor uint64
	// Count is about how many elements to visit, at least 1.
	Count int
	// TypeName is the argument of TYPE, a view; nil if there is none.
	TypeName []byte
	// Slot is the argument of SLOT; -1 if there is none.
	Slot int64
	// NoValues says that only names are wanted.
	NoValues bool

	Pattern []byte // a view; nil matches everything
}

// ScanAllow says which options a command knows beside COUNT and MATCH.
type ScanAllow uint8

// The options that only some commands have.
const (
	ScanType     ScanAllow = 1 << iota // TYPE
	ScanNoValues                       // NOVALUES
	ScanSlot                           // SLOT
)

// Match reports whether key matches the pattern. A lone "*" is no filter: unlike in glob.Match, the empty key passes
// too.
func (o *ScanOptions) Match(key []byte) bool {
	return o.Pattern == nil || glob.Match(o.Pattern, key, false)
}

// Matcher returns a function that reports whether a key matches the pattern; nil if there is no pattern.
func (o *ScanOptions) Matcher() func(key string) bool {
	if o.Pattern == nil {
		return nil
	}
	var scratch []byte
	return func(key string) bool {
		scratch = append(scratch[:0], key...)
		return o.Match(scratch)
	}
}

// ScanOptions reads the cursor, which is argument from, and the options after it; if they are wrong, it writes an
// error and ok is false.
func (c *Ctx) ScanOptions(from int, allow ScanAllow) (o ScanOptions, ok bool) {
	cursor, ok := c.ScanCursor(c.Args[from])
	if !ok {
		return o, false
	}
	o, ok = c.ScanFilter(from+1, allow)
	o.Cursor = cursor
	return o, ok
}

// ScanFilter is ScanOptions for a command with another kind of cursor: it reads the arguments from index from on.
func (c *Ctx) ScanFilter(from int, allow ScanAllow) (o ScanOptions, ok bool) {
	o.Count, o.Slot = 10, -1
	for p := c.Options(from); p.Next(); {
		switch {
		case p.Is("count") && p.More():
			n, ok := c.Int(p.Arg())
			if !ok {
				return o, false
			}
			if n < 1 {
				c.Err(ErrSyntax)
				return o, false
			}
			o.Count = AsInt(n)
		case p.Is("match") && p.More():
			if o.Pattern = p.Arg(); len(o.Pattern) == 1 && o.Pattern[0] == '*' {
				o.Pattern = nil
			}
		case p.Is("type") && p.More() && allow&ScanType != 0:
			o.TypeName = p.Arg()
		case p.Is("slot") && p.More() && allow&ScanSlot != 0 && o.Slot < 0:
			if o.Slot, ok = c.IntIn(p.Arg(), 0, math.MaxInt64, errScanSlot); !ok {
				return o, false
			}
		case p.Is("novalues") && allow&ScanNoValues != 0:
			o.NoValues = true
		case p.Is("novalues"):
			c.Err(errNoValues)
			return o, false
		default:
			c.Err(ErrSyntax)
			return o, false
		}
	}
	return o, true
}

// ScanCollection reads the arguments of a command that walks the collection of type typ under key argument 1. If an
// argument is wrong or the key does not exist, it writes the reply and ok is false. The key is read before the
// options: a missing key hides mistakes in them.
func (c *Ctx) ScanCollection(typ engine.Type, allow ScanAllow) (e *engine.Entry, o ScanOptions, ok bool) {
	if _, ok = c.ScanCursor(c.Args[2]); !ok {
		return nil, o, false
	}
	if c.Offload != nil { // the first call has counted the read
		e = c.G.Peek(c.DB, c.Args[1])
	}
	if e == nil || e.Type() != typ {
		if e, ok = c.ReadAs(c.Args[1], typ); !ok {
			return nil, o, false
		}
	}
	if e == nil {
		c.W.Array(2)
		c.W.BulkString("0")
		c.W.Array(0)
		return nil, o, false
	}
	o, ok = c.ScanOptions(2, allow)
	return e, o, ok
}

const (
	// scanStep is how many elements an offloaded command visits under one guard.
	scanStep = 256
	// scanRoom is the initial buffer for found elements in bytes, so that it rarely grows under the guard.
	scanRoom = 64 << 10
)

// ScanSteps visits as many elements as the options say, of a collection whose size is of, and returns the cursor for
// the reply. scan visits count elements from a cursor on, adds what it finds to found, and returns the next cursor.
// A long scan is offloaded, as if the client sent commands with small counts one after the other, with the
// guarantees of the SCAN family. No guard is held after an offloaded scan.
func (c *Ctx) ScanSteps(o *ScanOptions, of int, found *resp.Writer, scan func(cursor uint64, count int) (next uint64)) (next uint64) {
	c.Long(min(o.Count, of), 0)
	if c.Offload == nil {
		return scan(o.Cursor, o.Count)
	}
	next = o.Cursor
	for left := o.Count; ; {
		n := min(left, scanStep)
		next = scan(next, n)
		c.Offload.Unlock()
		if left -= n; next == 0 || left == 0 {
			return next
		}
		if cap(found.Buf)-len(found.Buf) < scanRoom {
			found.Buf = slices.Grow(found.Buf, max(scanRoom, len(found.Buf)))
		}
		if !c.Offload.Lock() {
			return next
		}
	}
}

// ScanValue is ScanSteps for the collection e, which ScanCollection has returned. scan gets its present state at
// each step. The walk ends if the key is gone.
func (c *Ctx) ScanValue(e *engine.Entry, o *ScanOptions, found *resp.Writer,
	scan func(e *engine.Entry, cursor uint64, count int) uint64) (next uint64) {
	typ := e.Type()
	return c.ScanSteps(o, e.Count(), found, func(cursor uint64, count int) uint64 {
		if c.Offload != nil {
			if e = c.G.Peek(c.DB, c.Args[1]); e == nil || e.Type() != typ {
				return 0
			}
		}
		return scan(e, cursor, count)
	})
}

// ScanCursor reads a cursor, or writes an error. It reads as C's strtoul reads numbers: signs, leading zeros and the
// empty text are accepted, a negative number that begins with zero counts back from 2^64, and a zero byte ends the
// text. Other negative numbers are refused, as since Redis 7.2, and so is any other text.
func (c *Ctx) ScanCursor(arg []byte) (cursor uint64, ok bool) {
	i, negative := 0, false
	if len(arg) > 0 && (arg[0] == '-' || arg[0] == '+') {
		negative = arg[0] == '-'
		i++
	}
	digits := i
	for ; i < len(arg) && arg[i] != 0; i++ {
		d := uint64(arg[i] - '0')
		if d > 9 || cursor > (math.MaxUint64-d)/10 {
			c.Err(ErrInvalidCursor)
			return 0, false
		}
		cursor = cursor*10 + d
	}
	if digits == 1 && i == digits || negative && arg[digits] != '0' && i == len(arg) { // only a sign, or a negative number such as -1
		c.Err(ErrInvalidCursor)
		return 0, false
	}
	if negative {
		cursor = -cursor
	}
	return cursor, true
}

// ScanReply replies with the next cursor and the n found elements, which are bulk strings.
func (c *Ctx) ScanReply(next uint64, n int, found *resp.Writer) {
	var scratch [20]byte
	c.W.Array(2)
	c.W.Bulk(strconv.AppendUint(scratch[:0], next, 10))
	c.W.Array(n)
	c.W.Raw(found.Buf)
}
