// Package bitmaps has the commands on sequences of bits: strings, and compressed bitmaps (engine/roaring), which are a
// type of their own. See bits for how commands read either, and change for when a string becomes a bitmap.
package bitmaps

import (
	"bytes"
	"math"

	"github.com/atomredis/atomredis/engine"
	"github.com/atomredis/atomredis/engine/bitmap"
	"github.com/atomredis/atomredis/engine/roaring"
	"github.com/atomredis/atomredis/internal/buffers"
	"github.com/atomredis/atomredis/internal/command"
	"github.com/atomredis/atomredis/resp"
)

func init() { command.Register(bitmapCommands) }

var bitmapCommands = []*command.Command{
	{Name: "bitconvert", Group: "bitmap", Since: "8.12.0", Arity: 2, Flags: command.Write | command.DenyOOM | command.NoScript,
		ACL:        command.CatBitmap,
		Keys:       command.Keys("i1+r0/1/0[RW,ACCESS,UPDATE]"),
		Summary:    "Makes a string a compressed bitmap; only in journals",
		Syntax:     "key",
		Complexity: "O(N), where N is the length of the string", Do: cmdBitconvert},
	{Name: "bitcount", Group: "bitmap", Since: "2.6.0", Arity: -2, Flags: command.ReadOnly, ACL: command.CatBitmap,
		Keys:    command.Keys("i1+r0/1/0[RO,ACCESS]"),
		Summary: "Counts the bits that are set in a string or bitmap, or in a part of it", Syntax: "key [start end [BYTE | BIT]]",
		Complexity: "O(N), where N is the length of the part", Do: cmdBitcount},
	{Name: "bitfield", Group: "bitmap", Since: "3.2.0", Arity: -2, Flags: command.Write | command.DenyOOM,
		ACL:        command.CatBitmap,
		Keys:       command.Keys("i1+r0/1/0[RW,ACCESS,UPDATE,VARIABLE_FLAGS]"),
		KeyUse:     bitfieldUse,
		Summary:    "Reads, writes and increments integers of any width inside a string or bitmap",
		Syntax:     "key [GET encoding offset | [OVERFLOW <WRAP | SAT | FAIL>] <SET encoding offset value | INCRBY encoding offset increment>] [[GET encoding offset | [OVERFLOW <WRAP | SAT | FAIL>] <SET encoding offset value | INCRBY encoding offset increment>] ...]",
		Complexity: "O(1) for each operation", Do: cmdBitfield},
	{Name: "bitfield_ro", Group: "bitmap", Since: "6.0.0", Arity: -2, Flags: command.ReadOnly | command.Fast,
		ACL: command.CatBitmap, Keys: command.Keys("i1+r0/1/0[RO,ACCESS]"),
		Summary:    "Reads integers of any width inside a string or bitmap",
		Syntax:     "key [GET encoding offset] [[GET encoding offset] ...]",
		Complexity: "O(1) for each integer", Do: cmdBitfieldRO},
	{Name: "bitop", Group: "bitmap", Since: "2.6.0", Arity: -4, Flags: command.Write | command.DenyOOM,
		ACL:        command.CatBitmap,
		Keys:       command.Keys("i2+r0/1/0[OW,UPDATE] i3+r-1/1/0[RO,ACCESS]"),
		Summary:    "Combines strings and bitmaps bit by bit and stores the result",
		Syntax:     "<AND | OR | XOR | NOT | DIFF | DIFF1 | ANDOR | ONE> destkey key [key ...]",
		Complexity: "O(N), where N is the length of all strings together", Do: cmdBitop},
	{Name: "bitpos", Group: "bitmap", Since: "2.8.7", Arity: -3, Flags: command.ReadOnly, ACL: command.CatBitmap,
		Keys:       command.Keys("i1+r0/1/0[RO,ACCESS]"),
		Summary:    "Finds the first bit that is set, or not set, in a string or bitmap, or in a part of it",
		Syntax:     "key bit [start [end [BYTE | BIT]]]",
		Complexity: "O(N), where N is the length of the part", Do: cmdBitpos},
	{Name: "bitrangeintarray", Group: "bitmap", Since: "8.12.0", Arity: -4, Flags: command.ReadOnly, ACL: command.CatBitmap,
		Keys:       command.Keys("i1+r0/1/0[RO,ACCESS]"),
		Summary:    "Returns the offsets of the bits that are set, or are not, in a part of a string or bitmap",
		Syntax:     "key start end [BYTE | BIT] [LIMIT count] [ZEROS]",
		Complexity: "O(N+M), where N is the length of the part and M the number of offsets returned", Do: cmdBitrangeintarray},
	{Name: "bitroarop", Group: "bitmap", Since: "8.12.0", Arity: -4, Flags: command.Write | command.DenyOOM | command.NoScript,
		ACL:        command.CatBitmap,
		Keys:       command.Keys("i2+r0/1/0[OW,UPDATE] i3+r-1/1/0[RO,ACCESS]"),
		Summary:    "Combines strings and bitmaps bit by bit and stores a compressed bitmap; only in journals",
		Syntax:     "<AND | OR | XOR | NOT | DIFF | DIFF1 | ANDOR | ONE> destkey key [key ...]",
		Complexity: "O(N), where N is the length of all together", Do: cmdBitroarop},
	{Name: "getbit", Group: "bitmap", Since: "2.2.0", Arity: 3, Flags: command.ReadOnly | command.Fast,
		ACL:     command.CatBitmap,
		Keys:    command.Keys("i1+r0/1/0[RO,ACCESS]"),
		Summary: "Reads a bit of a string or bitmap", Syntax: "key offset", Complexity: "O(1)", Do: cmdGetbit},
	{Name: "setbit", Group: "bitmap", Since: "2.2.0", Arity: 4, Flags: command.Write | command.DenyOOM,
		ACL:     command.CatBitmap,
		Keys:    command.Keys("i1+r0/1/0[RW,ACCESS,UPDATE]"),
		Summary: "Sets or clears a bit of a string or bitmap, padding it with zero bytes", Syntax: "key offset value",
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

func cmdSetbit(c *command.Ctx) {
	offset, ok := bitOffset(c, c.Args[2])
	if !ok {
		return
	}
	bit, ok := c.IntIn(c.Args[3], 0, 1, errBit)
	if !ok {
		return
	}
	w, ok := change(c, offset)
	if !ok {
		return
	}
	old := w.get(offset)
	if w.grown || old != int(bit) {
		w.set(offset, int(bit))
		w.changed(c)
	}
	c.W.Int(int64(old))
}

func cmdGetbit(c *command.Ctx) {
	offset, ok := bitOffset(c, c.Args[2])
	if !ok {
		return
	}
	if v, ok := readBits(c, c.Args[1]); ok {
		c.W.Int(int64(v.get(offset)))
	}
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
	v, ok := readBits(c, c.Args[1])
	switch {
	case !ok:
		return
	case start < 0 && end < 0 && start > end: // both may lie before the string, where both become 0
		c.W.Int(0)
		return
	}
	from, to := 0, 8*v.len()
	if len(c.Args) > 2 {
		from, to = bitRange(v.len(), start, end, inBits)
	}
	c.LongBytes(v.work(from, to))
	c.W.Int(int64(v.count(from, to)))
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
	v, ok := readBits(c, c.Args[1])
	switch {
	case !ok:
		return
	case start < 0 && end < 0 && start > end: // as in BITCOUNT
		c.W.Array(0)
		return
	}
	from, to := bitRange(v.len(), start, end, inBits)
	c.LongBytes(v.work(from, to))
	n := v.count(from, to)
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
		at = v.find(bit, at, to)
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
	v, ok := readBits(c, c.Args[1])
	switch {
	case !ok:
		return
	case v.missing: // a missing key is full of zeros
		c.W.Int(-bit)
		return
	}
	from, to := 0, 8*v.len()
	if len(c.Args) > 3 {
		from, to = bitRange(v.len(), start, end, inBits)
	}
	near := to
	if v.compressed == nil {
		near = min(to, from+nearBits) // the bit is usually here
	}
	pos := v.find(int(bit), from, near)
	if pos < 0 && near < to {
		c.LongBytes((to - from) / 8)
		pos = v.find(int(bit), near, to)
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
	if op, ok := bitOperation(c); ok {
		bitop(c, op, prefersBitmaps(c))
	}
}

// bitOperation reads the operation of BITOP, and checks the number of keys. If it is wrong, it writes an error and ok is
// false.
func bitOperation(c *command.Ctx) (op bitmap.Op, ok bool) {
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
			return o.op, true
		}
		return 0, false
	}
	c.Err(command.ErrSyntax)
	return 0, false
}

// bitop combines the values of keys. The result is a compressed bitmap if one of them is one or the caller wants it, else
// a string.
func bitop(c *command.Ctx, op bitmap.Op, wanted bool) {
	strings, n := make([][]byte, 0, len(c.Args)-3), 0
	var of []roaring.Source
	compressed, work := wanted, 0
	for _, key := range c.Args[3:] {
		v, ok := readBits(c, key)
		if !ok {
			return
		}
		strings, of = append(strings, v.bytes), append(of, roaring.Source{Bytes: v.bytes, Bitmap: v.compressed})
		compressed = compressed || v.compressed != nil
		n, work = max(n, v.len()), work+v.work(0, 8*v.len())
	}
	if op == bitmap.Not && of[0].Bitmap != nil && n > c.Host.MaxBulk() && !c.Origin.In(command.Accepted) {
		c.Err(command.ErrStringTooLong) // the ones that zeros become take memory
		return
	}
	c.LongBytes(max(n, work))
	if compressed {
		storeBitmap(c, command.Result(c, func() *roaring.Bitmap { return roaring.Combine(op, of) }), wanted)
		return
	}
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
		v, ok := readBits(c, c.Args[1])
		if !ok {
			return
		}
		c.W.Array(len(ops))
		for i := range ops {
			c.W.Int(ops[i].read(v))
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
func (op *fieldOp) read(v bits) int64 {
	n := v.field(op.offset, op.size)
	if op.signed {
		return int64(n<<(64-op.size)) >> (64 - op.size)
	}
	return int64(n)
}

// changeFields executes operations that change bits up to last.
func changeFields(c *command.Ctx, ops []fieldOp, last int) {
	w, ok := change(c, last)
	if !ok {
		return
	}
	changed := false
	c.W.Array(len(ops))
	for i := range ops {
		op := &ops[i]
		old := op.read(w.bits)
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
		if w.grown || value != old {
			w.setField(op.offset, op.size, uint64(value))
			changed = true
		}
		if op.action == fieldSet {
			value = old
		}
		c.W.Int(value)
	}
	switch {
	case changed:
		w.changed(c)
	case w.grown: // as in Redis, zeros alone are no change for WATCH and for events
		c.G.ChangedBookkeeping(w.entry, 0, "")
	}
}
