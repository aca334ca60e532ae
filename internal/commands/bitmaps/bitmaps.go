// Package bitmaps has the commands on strings as sequences of bits.
package bitmaps

import (
	"bytes"
	"math"

	"github.com/atomredis/atomredis/engine"
	"github.com/atomredis/atomredis/engine/bitmap"
	"github.com/atomredis/atomredis/internal/buffers"
	"github.com/atomredis/atomredis/internal/command"
	"github.com/atomredis/atomredis/resp"
)

func init() { command.Register(bitmapCommands) }

var bitmapCommands = []*command.Command{
	{Name: "bitcount", Group: "bitmap", Since: "2.6.0", Arity: -2, Flags: command.ReadOnly, ACL: command.CatBitmap,
		Keys:    command.Keys("i1+r0/1/0[RO,ACCESS]"),
		Summary: "Counts the bits that are set in a string or in a part of it", Syntax: "key [start end [BYTE | BIT]]",
		Complexity: "O(N), where N is the length of the part", Do: cmdBitcount},
	{Name: "bitfield", Group: "bitmap", Since: "3.2.0", Arity: -2, Flags: command.Write | command.DenyOOM,
		ACL:        command.CatBitmap,
		Keys:       command.Keys("i1+r0/1/0[RW,ACCESS,UPDATE,VARIABLE_FLAGS]"),
		KeyUse:     bitfieldUse,
		Summary:    "Reads, writes and increments integers of any width inside a string",
		Syntax:     "key [GET encoding offset | [OVERFLOW <WRAP | SAT | FAIL>] <SET encoding offset value | INCRBY encoding offset increment>] [[GET encoding offset | [OVERFLOW <WRAP | SAT | FAIL>] <SET encoding offset value | INCRBY encoding offset increment>] ...]",
		Complexity: "O(1) for each operation", Do: cmdBitfield},
	{Name: "bitfield_ro", Group: "bitmap", Since: "6.0.0", Arity: -2, Flags: command.ReadOnly | command.Fast,
		ACL: command.CatBitmap, Keys: command.Keys("i1+r0/1/0[RO,ACCESS]"),
		Summary:    "Reads integers of any width inside a string",
		Syntax:     "key [GET encoding offset] [[GET encoding offset] ...]",
		Complexity: "O(1) for each integer", Do: cmdBitfieldRO},
	{Name: "bitop", Group: "bitmap", Since: "2.6.0", Arity: -4, Flags: command.Write | command.DenyOOM,
		ACL:        command.CatBitmap,
		Keys:       command.Keys("i2+r0/1/0[OW,UPDATE] i3+r-1/1/0[RO,ACCESS]"),
		Summary:    "Combines strings bit by bit and stores the result",
		Syntax:     "<AND | OR | XOR | NOT | DIFF | DIFF1 | ANDOR | ONE> destkey key [key ...]",
		Complexity: "O(N), where N is the length of all strings together", Do: cmdBitop},
	{Name: "bitpos", Group: "bitmap", Since: "2.8.7", Arity: -3, Flags: command.ReadOnly, ACL: command.CatBitmap,
		Keys:       command.Keys("i1+r0/1/0[RO,ACCESS]"),
		Summary:    "Finds the first bit that is set, or not set, in a string or in a part of it",
		Syntax:     "key bit [start [end [BYTE | BIT]]]",
		Complexity: "O(N), where N is the length of the part", Do: cmdBitpos},
	{Name: "bitrangeintarray", Group: "bitmap", Since: "8.12.0", Arity: -4, Flags: command.ReadOnly, ACL: command.CatBitmap,
		Keys:       command.Keys("i1+r0/1/0[RO,ACCESS]"),
		Summary:    "Returns the offsets of the bits that are set, or are not, in a part of a string",
		Syntax:     "key start end [BYTE | BIT] [LIMIT count] [ZEROS]",
		Complexity: "O(N+M), where N is the length of the part and M the number of offsets returned", Do: cmdBitrangeintarray},
	{Name: "getbit", Group: "bitmap", Since: "2.2.0", Arity: 3, Flags: command.ReadOnly | command.Fast,
		ACL:     command.CatBitmap,
		Keys:    command.Keys("i1+r0/1/0[RO,ACCESS]"),
		Summary: "Reads a bit of a string", Syntax: "key offset", Complexity: "O(1)", Do: cmdGetbit},
	{Name: "setbit", Group: "bitmap", Since: "2.2.0", Arity: 4, Flags: command.Write | command.DenyOOM,
		ACL:     command.CatBitmap,
		Keys:    command.Keys("i1+r0/1/0[RW,ACCESS,UPDATE]"),
		Summary: "Sets or clears a bit of a string, padding it with zero bytes", Syntax: "key offset value",
		Complexity: "O(1), and the growth of the string", Do: cmdSetbit},
}

// bitfieldUse returns how BITFIELD uses its key: it only reads if all operations are GET or OVERFLOW.
func bitfieldUse(args [][]byte) []string {
	o := command.OptionsIn(args[min(2, len(args)):])
	for o.Next() {
		switch {
		case o.Is("get") && o.Left() >= 2:
			o.Skip(2)
		case o.Is("overflow") && o.More():
			o.Skip(1)
		default:
			return nil
		}
	}
	return []string{"RO", "access"}
}

const (
	errBitOffset     command.Error = "ERR bit offset is not an integer or out of range"
	errBit           command.Error = "ERR bit is not an integer or out of range"
	errBitArgument   command.Error = "ERR The bit argument must be 1 or 0."
	errBitopNot      command.Error = "ERR BITOP NOT must be called with a single source key."
	errFieldType     command.Error = "ERR Invalid bitfield type. Use something like i16 u8. Note that u64 is not supported but i64 is."
	errOverflowType  command.Error = "ERR Invalid OVERFLOW type specified"
	errFieldReadOnly command.Error = "ERR BITFIELD_RO only supports the GET subcommand"
)

// bitOffset reads the offset of a bit; if it is invalid or beyond the longest string, it writes an error and ok is
// false.
func bitOffset(c *command.Ctx, arg []byte) (offset int, ok bool) {
	n, ok := resp.ParseInt(arg)
	return offsetAllowed(c, n, ok)
}

// fieldOffset is bitOffset for a field of size bits: "#3" is the offset of field 3.
func fieldOffset(c *command.Ctx, arg []byte, size int) (offset int, ok bool) {
	number, numbered := bytes.CutPrefix(arg, []byte("#"))
	n, ok := resp.ParseInt(number)
	if numbered {
		n *= int64(size)
	}
	return offsetAllowed(c, n, ok)
}

func offsetAllowed(c *command.Ctx, n int64, ok bool) (int, bool) {
	if !ok || n < 0 || n>>3 >= int64(c.Host.MaxBulk()) && !c.Origin.In(command.Accepted) {
		c.Err(errBitOffset)
		return 0, false
	}
	return int(n), true
}

// bitString returns the string under key argument 1 in a form that may be changed, long enough to have the bit at an
// offset; grown says that it was not. If it is of another type, it writes an error and e is nil.
func bitString(c *command.Ctx, offset int) (e *engine.Entry, b []byte, grown bool) {
	e, ok := c.WriteAs(c.Args[1], engine.String)
	if !ok {
		return nil, nil, false
	}
	if e == nil {
		e = c.G.CreateString(c.DB, c.Args[1], nil)
	}
	n := len(e.Bytes())
	need := offset>>3 + 1
	return e, e.Resize(max(n, need)), n < need
}

func cmdSetbit(c *command.Ctx) {
	offset, ok := bitOffset(c, c.Args[2])
	if !ok {
		return
	}
	bit, ok := c.IntIn(c.Args[3], 0, 1, errBit)
	if !ok {
		return
	}
	e, b, grown := bitString(c, offset)
	if e == nil {
		return
	}
	old := bitmap.Get(b, offset)
	if grown || old != int(bit) {
		bitmap.Set(b, offset, int(bit))
		c.G.Changed(e, engine.EventString, "setbit")
	}
	c.W.Int(int64(old))
}

func cmdGetbit(c *command.Ctx) {
	offset, ok := bitOffset(c, c.Args[2])
	if !ok {
		return
	}
	if e, ok := c.ReadAs(c.Args[1], engine.String); ok {
		c.W.Int(int64(bitmap.Get(bytesOf(e), offset)))
	}
}

// bytesOf returns the value of a string, which is empty if e is nil.
func bytesOf(e *engine.Entry) []byte {
	if e == nil {
		return nil
	}
	return e.Bytes()
}

func cmdBitcount(c *command.Ctx) {
	var start, end int64
	var inBits, ok bool
	switch len(c.Args) {
	case 2:
	case 4, 5:
		if start, ok = c.Int(c.Args[2]); !ok {
			return
		}
		if end, ok = c.Int(c.Args[3]); !ok {
			return
		}
		if inBits, ok = bitUnit(c, 4); !ok {
			return
		}
	default:
		c.Err(command.ErrSyntax)
		return
	}
	e, ok := c.ReadAs(c.Args[1], engine.String)
	switch {
	case !ok:
		return
	case e == nil, start < 0 && end < 0 && start > end: // both may lie before the string, where both become 0
		c.W.Int(0)
		return
	}
	b := e.Bytes()
	from, to := 0, 8*len(b)
	if len(c.Args) > 2 {
		from, to = bitRange(len(b), start, end, inBits)
	}
	c.LongBytes((to - from) / 8)
	c.W.Int(int64(bitmap.Count(b, from, to)))
}

func cmdBitrangeintarray(c *command.Ctx) {
	start, ok := c.Int(c.Args[2])
	if !ok {
		return
	}
	end, ok := c.Int(c.Args[3])
	if !ok {
		return
	}
	inBits, limit, bit := false, int64(math.MaxInt64), 1
	for o := c.Options(4); o.Next(); {
		switch {
		case o.Is("byte"):
			inBits = false
		case o.Is("bit"):
			inBits = true
		case o.Is("zeros"):
			bit = 0
		case o.Is("limit") && o.More():
			if limit, ok = c.IntIn(o.Arg(), 1, math.MaxInt64, command.ErrCountPositive); !ok {
				return
			}
		default:
			c.Err(command.ErrSyntax)
			return
		}
	}
	e, ok := c.ReadAs(c.Args[1], engine.String)
	switch {
	case !ok:
		return
	case e == nil, start < 0 && end < 0 && start > end: // as in BITCOUNT
		c.W.Array(0)
		return
	}
	b := e.Bytes()
	from, to := bitRange(len(b), start, end, inBits)
	c.LongBytes((to - from) / 8)
	n := bitmap.Count(b, from, to)
	if bit == 0 {
		n = to - from - n
	}
	n = int(min(int64(n), limit))
	// The reply can be a hundred times as long as the string.
	most, shortest := c.MaxRepeated(), int64(len(":0\r\n"))
	if int64(n) > most/shortest {
		c.Err(command.ErrOutOfRange)
		return
	}
	c.Long(n, n)
	before := len(c.W.Buf)
	c.W.Array(n)
	for at := from; n > 0; n-- {
		at = bitmap.Find(b, bit, at, to)
		c.W.Int(int64(at))
		at++
		if int64(len(c.W.Buf)-before) > most {
			c.W.Buf = c.W.Buf[:before]
			c.Err(command.ErrOutOfRange)
			return
		}
	}
}

// bitUnit reads argument i, BIT or BYTE; BYTE is the default. If it is neither, it writes an error and ok is false.
func bitUnit(c *command.Ctx, i int) (inBits, ok bool) {
	switch {
	case len(c.Args) <= i || command.EqualFold(c.Args[i], "byte"):
		return false, true
	case command.EqualFold(c.Args[i], "bit"):
		return true, true
	}
	c.Err(command.ErrSyntax)
	return false, false
}

// bitRange returns the bits from (included) to to (excluded) between two indices into a string of n bytes: of bits or
// of bytes, from the end if they are negative.
func bitRange(n int, start, end int64, inBits bool) (from, to int) {
	length, unit := int64(n), int64(8)
	if inBits {
		length, unit = 8*length, 1
	}
	if start < 0 {
		start = max(start+length, 0)
	}
	if end < 0 {
		end = max(end+length, 0)
	}
	if end = min(end, length-1); start > end {
		return 0, 0
	}
	return int(start * unit), int((end + 1) * unit)
}

// nearBits is how many bits BITPOS examines before it calls Ctx.LongBytes.
const nearBits = 8 << 20

func cmdBitpos(c *command.Ctx) {
	bit, ok := c.Int(c.Args[2])
	switch {
	case !ok:
		return
	case bit != 0 && bit != 1:
		c.Err(errBitArgument)
		return
	}
	if len(c.Args) > 6 {
		c.Err(command.ErrSyntax)
		return
	}
	start, end, inBits, endGiven := int64(0), int64(-1), false, len(c.Args) > 4
	if len(c.Args) > 3 {
		if start, ok = c.Int(c.Args[3]); !ok {
			return
		}
		if inBits, ok = bitUnit(c, 5); !ok {
			return
		}
	}
	if endGiven {
		if end, ok = c.Int(c.Args[4]); !ok {
			return
		}
	}
	e, ok := c.ReadAs(c.Args[1], engine.String)
	switch {
	case !ok:
		return
	case e == nil: // a missing key is full of zeros
		c.W.Int(-bit)
		return
	}
	b := e.Bytes()
	from, to := 0, 8*len(b)
	if len(c.Args) > 3 {
		from, to = bitRange(len(b), start, end, inBits)
	}
	near := min(to, from+nearBits) // the bit is usually here
	pos := bitmap.Find(b, int(bit), from, near)
	if pos < 0 && near < to {
		c.LongBytes((to - from) / 8)
		pos = bitmap.Find(b, int(bit), near, to)
	}
	if pos < 0 && bit == 0 && !endGiven && from < to {
		pos = to // zeros follow the string
	}
	c.W.Int(int64(pos))
}

// bitOps are the operations of BITOP.
var bitOps = [...]struct {
	name string
	op   bitmap.Op
	// tooFew is the error if there is only one string; "" if one is enough.
	tooFew command.Error
}{
	{"and", bitmap.And, ""},
	{"or", bitmap.Or, ""},
	{"xor", bitmap.Xor, ""},
	{"not", bitmap.Not, ""},
	{"diff", bitmap.Diff, "ERR BITOP DIFF must be called with at least two source keys."},
	{"diff1", bitmap.Diff1, "ERR BITOP DIFF1 must be called with at least two source keys."},
	{"andor", bitmap.AndOr, "ERR BITOP ANDOR must be called with at least two source keys."},
	{"one", bitmap.One, ""},
}

func cmdBitop(c *command.Ctx) {
	for _, o := range bitOps {
		if !command.EqualFold(c.Args[1], o.name) {
			continue
		}
		switch {
		case o.op == bitmap.Not && len(c.Args) != 4:
			c.Err(errBitopNot)
		case o.tooFew != "" && len(c.Args) < 5:
			c.Err(o.tooFew)
		default:
			bitop(c, o.op)
		}
		return
	}
	c.Err(command.ErrSyntax)
}

func bitop(c *command.Ctx, op bitmap.Op) {
	strings, n := make([][]byte, 0, len(c.Args)-3), 0
	for _, key := range c.Args[3:] {
		e, ok := c.ReadAs(key, engine.String)
		if !ok {
			return
		}
		b := bytesOf(e)
		strings, n = append(strings, b), max(n, len(b))
	}
	c.LongBytes(n)
	result := command.Result(c, func() []byte {
		result := buffers.GetFitting(n)[:n]
		bitmap.Combine(result, op, strings)
		return result
	})
	e := c.G.Write(c.DB, c.Args[2])
	switch {
	case len(result) > 0:
		e, spare := c.SetOwnString(e, c.Args[2], result)
		e.SetStringForm(engine.FormRaw)
		buffers.Put(spare)
	case e != nil:
		c.G.Remove(e, engine.EventGeneric, "del")
	}
	c.W.Int(int64(len(result)))
}

func cmdBitfield(c *command.Ctx)   { bitfield(c, false) }
func cmdBitfieldRO(c *command.Ctx) { bitfield(c, true) }

// fieldOp is one operation of BITFIELD.
type fieldOp struct {
	action       fieldAction
	signed       bool
	size, offset int
	value        int64
	overflow     bitmap.Overflow
}

type fieldAction uint8

const (
	fieldGet fieldAction = iota
	fieldSet
	fieldIncrby
)

func bitfield(c *command.Ctx, readOnly bool) {
	var room [8]fieldOp
	ops, last, ok := fieldOps(c, room[:0])
	switch {
	case !ok:
	case last < 0:
		e, ok := c.ReadAs(c.Args[1], engine.String)
		if !ok {
			return
		}
		b := bytesOf(e)
		c.W.Array(len(ops))
		for i := range ops {
			c.W.Int(ops[i].read(b))
		}
	case readOnly:
		c.Err(errFieldReadOnly)
	default:
		changeFields(c, ops, last)
	}
}

// fieldOps reads the operations; last is the last bit that any of them may change, or -1. If an operation is wrong,
// it writes an error and ok is false.
func fieldOps(c *command.Ctx, ops []fieldOp) (_ []fieldOp, last int, ok bool) {
	last = -1
	var overflow bitmap.Overflow
	for o := c.Options(2); o.Next(); {
		op := fieldOp{overflow: overflow}
		switch {
		case o.Is("get") && o.Left() >= 2:
		case o.Is("set") && o.Left() >= 3:
			op.action = fieldSet
		case o.Is("incrby") && o.Left() >= 3:
			op.action = fieldIncrby
		case o.Is("overflow") && o.More():
			switch o.Arg(); {
			case o.Is("wrap"):
				overflow = bitmap.Wrap
			case o.Is("sat"):
				overflow = bitmap.Saturate
			case o.Is("fail"):
				overflow = bitmap.Fail
			default:
				c.Err(errOverflowType)
				return nil, 0, false
			}
			continue
		default:
			c.Err(command.ErrSyntax)
			return nil, 0, false
		}
		if op.signed, op.size, ok = fieldType(o.Arg()); !ok {
			c.Err(errFieldType)
			return nil, 0, false
		}
		if op.offset, ok = fieldOffset(c, o.Arg(), op.size); !ok {
			return nil, 0, false
		}
		if op.action != fieldGet {
			last = max(last, op.offset+op.size-1)
			if op.value, ok = c.Int(o.Arg()); !ok {
				return nil, 0, false
			}
		}
		ops = append(ops, op)
	}
	return ops, last, true
}

// fieldType reads the type of a field, such as i8 or u63.
func fieldType(arg []byte) (signed bool, size int, ok bool) {
	if len(arg) == 0 {
		return false, 0, false
	}
	largest := int64(63)
	if signed = arg[0] == 'i'; signed {
		largest = 64
	}
	n, ok := resp.ParseInt(command.UntilNUL(arg[1:]))
	return signed, int(n), ok && n >= 1 && n <= largest && (signed || arg[0] == 'u')
}

// read returns the present number.
func (op *fieldOp) read(b []byte) int64 {
	if op.signed {
		return bitmap.SignedField(b, op.offset, op.size)
	}
	return int64(bitmap.Field(b, op.offset, op.size))
}

// changeFields executes operations that change bits up to last.
func changeFields(c *command.Ctx, ops []fieldOp, last int) {
	e, b, grown := bitString(c, last)
	if e == nil {
		return
	}
	changed := false
	c.W.Array(len(ops))
	for i := range ops {
		op := &ops[i]
		old := op.read(b)
		if op.action == fieldGet {
			c.W.Int(old)
			continue
		}
		value, by := old, op.value
		if op.action == fieldSet {
			value, by = op.value, 0
		}
		var fits bool
		if op.signed {
			value, fits = bitmap.AddSigned(value, by, op.size, op.overflow)
		} else {
			var v uint64
			v, fits = bitmap.AddUnsigned(uint64(value), by, op.size, op.overflow)
			value = int64(v)
		}
		if !fits && op.overflow == bitmap.Fail {
			c.W.Null()
			continue
		}
		if grown || value != old {
			bitmap.SetField(b, op.offset, op.size, uint64(value))
			changed = true
		}
		if op.action == fieldSet {
			value = old
		}
		c.W.Int(value)
	}
	switch {
	case changed:
		c.G.Changed(e, engine.EventString, "setbit")
	case grown: // as in Redis, zeros alone are no change for WATCH and for events
		c.G.ChangedBookkeeping(e, 0, "")
	}
}
