package scripting

import (
	"math"
	"math/bits"

	lua "github.com/yuin/gopher-lua"
)

// bitLibrary returns the functions that scripts see as bit: operations on signed 32-bit integers, like those of Lua
// BitOp.
func (m *vm) bitLibrary() *lua.LTable {
	t := m.state.CreateTable(0, 12)
	for name, fn := range map[string]func(b uint32) uint32{
		"tobit": func(b uint32) uint32 { return b },
		"bnot":  func(b uint32) uint32 { return ^b },
		"bswap": bits.ReverseBytes32,
	} {
		t.RawSetString(name, m.state.NewFunction(func(L *lua.LState) int { return pushBits(L, fn(argBits(L, 1, name))) }))
	}
	for name, fn := range map[string]func(a, b uint32) uint32{
		"band": func(a, b uint32) uint32 { return a & b },
		"bor":  func(a, b uint32) uint32 { return a | b },
		"bxor": func(a, b uint32) uint32 { return a ^ b },
	} {
		t.RawSetString(name, m.state.NewFunction(func(L *lua.LState) int {
			b := argBits(L, 1, name)
			for i := L.GetTop(); i > 1; i-- { // from the last: if several arguments are wrong, its error is reported
				b = fn(b, argBits(L, i, name))
			}
			return pushBits(L, b)
		}))
	}
	for name, fn := range map[string]func(b uint32, n uint32) uint32{
		"lshift":  func(b, n uint32) uint32 { return b << n },
		"rshift":  func(b, n uint32) uint32 { return b >> n },
		"arshift": func(b, n uint32) uint32 { return uint32(int32(b) >> n) },
		"rol":     func(b, n uint32) uint32 { return bits.RotateLeft32(b, int(n)) },
		"ror":     func(b, n uint32) uint32 { return bits.RotateLeft32(b, -int(n)) },
	} {
		t.RawSetString(name, m.state.NewFunction(func(L *lua.LState) int {
			b := argBits(L, 1, name)
			return pushBits(L, fn(b, argBits(L, 2, name)&31))
		}))
	}
	t.RawSetString("tohex", m.state.NewFunction(bitToHex))
	return t
}

// bitToHex prints the lowest digits of a number. The second argument is their number; if it is negative they are in
// upper case.
func bitToHex(L *lua.LState) int {
	b, n := argBits(L, 1, "tohex"), int32(8)
	if L.GetTop() >= 2 {
		n = int32(argBits(L, 2, "tohex"))
	}
	digits := "0123456789abcdef"
	if n < 0 {
		n, digits = -max(n, -8), "0123456789ABCDEF"
	}
	var text [8]byte
	n = min(n, 8)
	for i := n - 1; i >= 0; i-- {
		text[i] = digits[b&15]
		b >>= 4
	}
	L.Push(lua.LString(text[:n]))
	return 1
}

func pushBits(L *lua.LState, b uint32) int {
	L.Push(lua.LNumber(int32(b)))
	return 1
}

// argBits reads a number modulo 2^32.
func argBits(L *lua.LState, n int, function string) uint32 { return toBits(argNumber(L, n, function)) }

// toBits rounds a number to an integer, halves to even, and returns its lowest 32 bits. The sum has that integer in the
// low bits of its mantissa. For numbers beyond 2^51 the result is whatever this computation yields, and scripts expect
// it.
func toBits(f float64) uint32 {
	const shift = 1<<52 + 1<<51
	return uint32(math.Float64bits(f + shift))
}
