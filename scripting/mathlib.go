package scripting

import (
	"math"

	lua "github.com/yuin/gopher-lua"
)

// mathLibrary returns Lua's library of mathematics.
func (m *vm) mathLibrary() *lua.LTable {
	t := m.state.CreateTable(0, 0)
	for name, fn := range map[string]func(float64) float64{
		"acos": math.Acos, "asin": math.Asin, "atan": math.Atan, "ceil": math.Ceil, "cos": math.Cos,
		"cosh": math.Cosh, "exp": math.Exp, "floor": math.Floor, "log": math.Log, "log10": math.Log10, "sin": math.Sin,
		"sinh": math.Sinh, "sqrt": math.Sqrt, "tan": math.Tan, "tanh": math.Tanh,
		"deg": func(x float64) float64 { return x / (math.Pi / 180) },
		"rad": func(x float64) float64 { return x * (math.Pi / 180) },
	} {
		t.RawSetString(name, m.state.NewFunction(func(L *lua.LState) int {
			x := argNumber(L, 1, name)
			L.Push(lua.LNumber(resultNaN(fn(x), name != "acos" && name != "asin", x)))
			return 1
		}))
	}
	for name, fn := range map[string]func(a, b float64) float64{
		"atan2": math.Atan2, "fmod": math.Mod, "mod": math.Mod, "pow": math.Pow,
	} {
		t.RawSetString(name, m.state.NewFunction(func(L *lua.LState) int {
			y := argNumber(L, 2, name) // if both arguments are wrong, the second one is reported
			x := argNumber(L, 1, name)
			L.Push(lua.LNumber(resultNaN(fn(x, y), true, x, y)))
			return 1
		}))
	}
	m.functions(t, map[string]lua.LGFunction{
		"abs":        func(L *lua.LState) int { L.Push(lua.LNumber(math.Abs(argNumber(L, 1, "abs")))); return 1 },
		"frexp":      mathFrexp,
		"ldexp":      mathLdexp,
		"max":        mathMax,
		"min":        mathMin,
		"modf":       mathModf,
		"random":     m.mathRandom,
		"randomseed": m.mathRandomSeed,
	})
	t.RawSetString("pi", lua.LNumber(math.Pi))
	t.RawSetString("huge", lua.LNumber(math.Inf(1)))
	return t
}

// resultNaN returns f. A NaN gets the sign that it has on common machines, which scripts can see: the sign of the
// operand that is a NaN, or otherwise a minus if negative is set.
func resultNaN(f float64, negative bool, operands ...float64) float64 {
	if f == f {
		return f
	}
	for _, x := range operands {
		if x != x {
			return x
		}
	}
	if negative {
		return math.Copysign(f, -1)
	}
	return f
}

func mathFrexp(L *lua.LState) int {
	fraction, exponent := math.Frexp(argNumber(L, 1, "frexp"))
	L.Push(lua.LNumber(fraction))
	L.Push(lua.LNumber(exponent))
	return 2
}

func mathLdexp(L *lua.LState) int {
	exponent := argInt32(L, 2, "ldexp")
	L.Push(lua.LNumber(math.Ldexp(argNumber(L, 1, "ldexp"), int(max(-5000, min(exponent, 5000))))))
	return 1
}

func mathMax(L *lua.LState) int {
	best := argNumber(L, 1, "max")
	for i := 2; i <= L.GetTop(); i++ {
		if f := argNumber(L, i, "max"); f > best {
			best = f
		}
	}
	L.Push(lua.LNumber(best))
	return 1
}

func mathMin(L *lua.LState) int {
	best := argNumber(L, 1, "min")
	for i := 2; i <= L.GetTop(); i++ {
		if f := argNumber(L, i, "min"); f < best {
			best = f
		}
	}
	L.Push(lua.LNumber(best))
	return 1
}

func mathModf(L *lua.LState) int {
	f := argNumber(L, 1, "modf")
	whole, fraction := math.Trunc(f), 0.0
	if !math.IsInf(f, 0) {
		fraction = f - whole
	}
	L.Push(lua.LNumber(whole))
	L.Push(lua.LNumber(math.Copysign(fraction, f)))
	return 2
}

func (m *vm) mathRandom(L *lua.LState) int {
	f := m.random.float()
	low, high := int32(1), int32(0)
	switch L.GetTop() {
	case 0:
		L.Push(lua.LNumber(f))
		return 1
	case 1:
		high = argInt32(L, 1, "random")
		if high < 1 {
			badArgument(L, 1, "random", "interval is empty")
		}
	case 2:
		low, high = argInt32(L, 1, "random"), argInt32(L, 2, "random")
		if low > high {
			badArgument(L, 2, "random", "interval is empty")
		}
	default:
		fail(L, "wrong number of arguments")
	}
	size := high - low + 1 // as in Redis, it overflows for more than 2^31-1 integers
	L.Push(lua.LNumber(math.Floor(f*float64(size)) + float64(low)))
	return 1
}

func (m *vm) mathRandomSeed(L *lua.LState) int {
	m.random.seed(argInt32(L, 1, "randomseed"))
	return 0
}

// random generates the numbers of drand48, which are the same on every machine for a given seed.
type random struct{ state uint64 }

func (r *random) seed(n int32) { r.state = uint64(uint32(n))<<16 | 0x330e }

// float returns a number in [0, 1).
func (r *random) float() float64 {
	r.state = (r.state*0x5deece66d + 0xb) & (1<<48 - 1)
	const limit = 1<<31 - 1
	return float64(r.state>>17%limit) / limit
}
