package scripting

import (
	"encoding/binary"
	"math"

	lua "github.com/yuin/gopher-lua"
)

// The library cmsgpack converts values to and from MessagePack. It is our own because scripts observe more than the
// format: which of several encodings a number or a table gets, where the nesting ends, and the errors.

// msgpackLibrary returns the functions that scripts see as cmsgpack.
func (m *vm) msgpackLibrary() *lua.LTable {
	t := m.functions(m.state.CreateTable(0, 8), map[string]lua.LGFunction{
		"pack":         m.msgpackPack,
		"unpack":       m.msgpackUnpack,
		"unpack_limit": m.msgpackUnpackLimit,
		"unpack_one":   m.msgpackUnpackOne,
	})
	t.RawSetString("_NAME", lua.LString("cmsgpack"))
	t.RawSetString("_VERSION", lua.LString("lua-cmsgpack 0.4.0"))
	t.RawSetString("_COPYRIGHT", lua.LString("Copyright (C) 2012, Salvatore Sanfilippo"))
	t.RawSetString("_DESCRIPTION", lua.LString("MessagePack C implementation for Lua"))
	return t
}

// maxPackDepth is how deep packed tables may be nested. Deeper values become nil.
const maxPackDepth = 16

// The first bytes of values longer than one byte.
const (
	packNil, packFalse, packTrue                         = 0xc0, 0xc2, 0xc3
	packFloat32, packFloat64                             = 0xca, 0xcb
	packUint8, packUint16, packUint32, packUint64        = 0xcc, 0xcd, 0xce, 0xcf
	packInt8, packInt16, packInt32, packInt64            = 0xd0, 0xd1, 0xd2, 0xd3
	packString8, packString16, packString32              = 0xd9, 0xda, 0xdb
	packArray16, packArray32, packMap16, packMap32       = 0xdc, 0xdd, 0xde, 0xdf
	packShortMap, packShortArray, packShortString        = 0x80, 0x90, 0xa0
	maxShortTable, maxShortString, packNegative, maxTiny = 15, 31, 0xe0, 0x7f
)

// msgpackPack appends all arguments to one string.
func (m *vm) msgpackPack(L *lua.LState) int {
	n := L.GetTop()
	if n == 0 {
		badArgument(L, 0, "pack", "MessagePack pack needs input.")
	}
	p := packer{m: m, L: L, buf: m.scratch.buf}
	for i := 1; i <= n; i++ {
		p.value(L.Get(i), 0)
	}
	L.Push(lua.LString(p.buf))
	m.scratch.keepBuf(p.buf)
	return 1
}

// packer appends values to buf.
type packer struct {
	effort
	m   *vm
	L   *lua.LState
	buf []byte
}

func (p *packer) value(v lua.LValue, depth int) {
	switch v := v.(type) {
	case lua.LString:
		p.string(string(v))
	case lua.LNumber:
		p.number(float64(v))
	case lua.LBool:
		if v {
			p.buf = append(p.buf, packTrue)
		} else {
			p.buf = append(p.buf, packFalse)
		}
	case *lua.LTable:
		if depth < maxPackDepth {
			p.table(p.m.behind(v), depth)
			return
		}
		p.buf = append(p.buf, packNil)
	default:
		p.buf = append(p.buf, packNil)
	}
}

func (p *packer) string(s string) {
	mustFitMemory(p.L, len(p.buf)+len(s))
	switch n := len(s); {
	case n <= maxShortString:
		p.buf = append(p.buf, packShortString|byte(n))
	case n <= math.MaxUint8:
		p.buf = append(p.buf, packString8, byte(n))
	default:
		p.length(n, packString16, packString32)
	}
	p.buf = append(p.buf, s...)
}

// length appends a length that needs two or four bytes.
func (p *packer) length(n int, short, long byte) {
	if n <= math.MaxUint16 {
		p.buf = binary.BigEndian.AppendUint16(append(p.buf, short), uint16(n))
		return
	}
	p.buf = binary.BigEndian.AppendUint32(append(p.buf, long), uint32(n))
}

// number packs an integer as an integer, in as few bytes as possible, and other numbers as the shorter kind of float
// that represents them exactly.
func (p *packer) number(f float64) {
	if f < -1<<63 || f >= 1<<63 || f != math.Trunc(f) {
		if single := float32(f); float64(single) == f {
			p.buf = binary.BigEndian.AppendUint32(append(p.buf, packFloat32), math.Float32bits(single))
			return
		}
		p.buf = binary.BigEndian.AppendUint64(append(p.buf, packFloat64), math.Float64bits(f))
		return
	}
	n := int64(f)
	switch {
	case n >= -32 && n <= maxTiny:
		p.buf = append(p.buf, byte(n))
	case n >= 0 && n <= math.MaxUint8:
		p.buf = append(p.buf, packUint8, byte(n))
	case n >= 0 && n <= math.MaxUint16:
		p.buf = binary.BigEndian.AppendUint16(append(p.buf, packUint16), uint16(n))
	case n >= 0 && n <= math.MaxUint32:
		p.buf = binary.BigEndian.AppendUint32(append(p.buf, packUint32), uint32(n))
	case n >= 0:
		p.buf = binary.BigEndian.AppendUint64(append(p.buf, packUint64), uint64(n))
	case n >= math.MinInt8:
		p.buf = append(p.buf, packInt8, byte(n))
	case n >= math.MinInt16:
		p.buf = binary.BigEndian.AppendUint16(append(p.buf, packInt16), uint16(n))
	case n >= math.MinInt32:
		p.buf = binary.BigEndian.AppendUint32(append(p.buf, packInt32), uint32(n))
	default:
		p.buf = binary.BigEndian.AppendUint64(append(p.buf, packInt64), uint64(n))
	}
}

// table packs a table whose keys are 1 to the number of its elements as an array, and any other as a map.
func (p *packer) table(t *lua.LTable, depth int) {
	mustFitMemory(p.L, len(p.buf))
	p.spend(p.L, 1+t.MaxN())
	items, largest := positions(t)
	if items >= 0 && float64(items) == largest {
		if items <= maxShortTable {
			p.buf = append(p.buf, packShortArray|byte(items))
		} else {
			p.length(items, packArray16, packArray32)
		}
		for i := 1; i <= items; i++ {
			p.value(t.RawGet(lua.LNumber(i)), depth+1)
		}
		return
	}
	p.pairs(t, depth)
}

// pairs packs a map. Its length precedes the elements, and is known only after them.
func (p *packer) pairs(t *lua.LTable, depth int) {
	start := len(p.buf)
	p.buf = append(p.buf, packShortMap)
	n := 0
	for k, v := t.Next(lua.LNil); k != lua.LNil; k, v = t.Next(k) {
		p.value(k, depth+1)
		p.value(v, depth+1)
		n++
	}
	if n <= maxShortTable {
		p.buf[start] |= byte(n)
		return
	}
	end := len(p.buf)
	p.length(n, packMap16, packMap32)
	header := string(p.buf[end:])
	copy(p.buf[start+len(header):], p.buf[start+1:end])
	copy(p.buf[start:], header)
	p.buf = p.buf[:end+len(header)-1]
}

func (m *vm) msgpackUnpack(L *lua.LState) int { return m.unpackValues(L, "unpack", 0, 0) }

func (m *vm) msgpackUnpackOne(L *lua.LState) int {
	return m.unpackValues(L, "unpack_one", 1, optInteger(L, 2, "unpack_one", 0))
}

func (m *vm) msgpackUnpackLimit(L *lua.LState) int {
	limit := argInteger(L, 2, "unpack_limit")
	return m.unpackValues(L, "unpack_limit", limit, optInteger(L, 3, "unpack_limit", 0))
}

// unpackValues pushes at most limit values, and before them the offset of the bytes after them, -1 at the end. If both
// limit and offset are 0 it pushes all values, without an offset.
func (m *vm) unpackValues(L *lua.LState, function string, limit, offset int64) int {
	data := argString(L, 1, function)
	switch {
	case offset < 0 || limit < 0:
		fail(L, "Invalid request to unpack with offset of %d and limit of %d.", int32(offset), int32(len(data)))
	case offset > int64(len(data)):
		fail(L, "Start offset %d greater than input length %d.", int32(offset), int32(len(data)))
	}
	all := limit == 0 && offset == 0
	if all {
		limit = math.MaxInt32
	}
	L.SetTop(0)
	u := unpacker{m: m, L: L, data: data[offset:]}
	for n := int64(0); n < limit && u.data != ""; n++ {
		L.Push(u.value(1 + int(n)))
	}
	if all {
		return L.GetTop()
	}
	if 1+L.GetTop() >= maxStack {
		fail(L, "stack overflow (in function mp_unpack_full)")
	}
	after := -1
	if u.data != "" {
		after = len(data) - len(u.data)
	}
	L.Insert(lua.LNumber(after), 1)
	return L.GetTop()
}

// unpacker reads values from the start of data.
type unpacker struct {
	effort
	m    *vm
	L    *lua.LState
	data string
}

// value reads a value. used is how much of Lua's stack is in use there, which bounds the nesting.
func (u *unpacker) value(used int) lua.LValue {
	u.spend(u.L, valueEffort)
	c := u.uint(1)
	if used+1 > maxStack {
		fail(u.L, "stack overflow (too many return values at once; use unpack_one or unpack_limit instead.)")
	}
	switch {
	case c <= maxTiny || c >= packNegative:
		return lua.LNumber(int8(c))
	case c&0xf0 == packShortMap:
		return u.table(int(c&0x0f), used)
	case c&0xf0 == packShortArray:
		return u.array(int(c&0x0f), used)
	case c&0xe0 == packShortString:
		return u.string(int(c & 0x1f))
	}
	switch c {
	case packNil:
		return lua.LNil
	case packFalse:
		return lua.LFalse
	case packTrue:
		return lua.LTrue
	case packFloat32:
		return lua.LNumber(math.Float32frombits(uint32(u.uint(4))))
	case packFloat64:
		return lua.LNumber(math.Float64frombits(u.uint(8)))
	case packUint8:
		return lua.LNumber(u.uint(1))
	case packUint16:
		return lua.LNumber(u.uint(2))
	case packUint32:
		return lua.LNumber(u.uint(4))
	case packInt8:
		return lua.LNumber(int8(u.uint(1)))
	case packInt16:
		return lua.LNumber(int16(u.uint(2)))
	case packInt32:
		return lua.LNumber(int32(u.uint(4)))
	case packInt64, packUint64: // Redis reads both with a sign
		return lua.LNumber(int64(u.uint(8)))
	case packString8:
		return u.string(u.length(1))
	case packString16:
		return u.string(u.length(2))
	case packString32:
		return u.string(u.length(4))
	case packArray16:
		return u.array(u.length(2), used)
	case packArray32:
		return u.array(u.length(4), used)
	case packMap16:
		return u.table(u.length(2), used)
	case packMap32:
		return u.table(u.length(4), used)
	}
	fail(u.L, "Bad data format in input.")
	return lua.LNil
}

// length reads a length of n bytes. One too large for an int of 32 bits becomes another that exceeds any data.
func (u *unpacker) length(n int) int { return int(min(u.uint(n), math.MaxInt)) }

// take removes n bytes from the start of the data.
func (u *unpacker) take(n int) string {
	if n > len(u.data) {
		fail(u.L, "Missing bytes in input.")
	}
	s := u.data[:n]
	u.data = u.data[n:]
	return s
}

// uint reads an unsigned integer of size bytes.
func (u *unpacker) uint(size int) uint64 {
	n := uint64(0)
	for _, c := range []byte(u.take(size)) {
		n = n<<8 | uint64(c)
	}
	return n
}

func (u *unpacker) string(n int) lua.LValue { return lua.LString(u.take(n)) }

// array reads n values. It reserves no memory by the length that the data claims.
func (u *unpacker) array(n, used int) lua.LValue {
	if used+2 > maxStack {
		fail(u.L, "stack overflow (in function mp_decode_to_lua_array)")
	}
	t := u.L.CreateTable(min(n, len(u.data)), 0)
	for i := 1; i <= n; i++ {
		if v := u.value(used + 2); v != lua.LNil {
			t.RawSetInt(i, v)
		}
	}
	return t
}

// table reads n pairs of a key and a value.
func (u *unpacker) table(n, used int) lua.LValue {
	t := u.L.CreateTable(0, min(n, len(u.data)/2))
	for range n {
		k := u.value(used + 1)
		v := u.value(used + 2)
		u.m.checkKey(u.L, k)
		t.RawSet(k, v)
	}
	return t
}
