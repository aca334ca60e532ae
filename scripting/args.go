package scripting

import (
	"fmt"

	lua "github.com/yuin/gopher-lua"
)

// The functions below read arguments of library functions and raise Lua 5.1's errors.

func badArgument(L *lua.LState, n int, function, what string) {
	L.RaiseError("bad argument #%d to '%s' (%s)", n, function, what)
}

func badType(L *lua.LState, n int, function, expected string) {
	got := "no value"
	if n <= L.GetTop() {
		got = L.Get(n).Type().String()
	}
	badArgument(L, n, function, fmt.Sprintf("%s expected, got %s", expected, got))
}

func argAny(L *lua.LState, n int, function string) lua.LValue {
	if n > L.GetTop() {
		badArgument(L, n, function, "value expected")
	}
	return L.Get(n)
}

func argTable(L *lua.LState, n int, function string) *lua.LTable {
	t, ok := L.Get(n).(*lua.LTable)
	if !ok {
		badType(L, n, function, "table")
	}
	return t
}

func argFunction(L *lua.LState, n int, function string) *lua.LFunction {
	fn, ok := L.Get(n).(*lua.LFunction)
	if !ok {
		badType(L, n, function, "function")
	}
	return fn
}

func argString(L *lua.LState, n int, function string) string {
	switch v := L.Get(n).(type) {
	case lua.LString:
		return string(v)
	case lua.LNumber:
		return toText(v)
	}
	badType(L, n, function, "string")
	return ""
}

func argNumber(L *lua.LState, n int, function string) float64 {
	f, ok := toNumber(L.Get(n))
	if !ok {
		badType(L, n, function, "number")
	}
	return f
}

// argInt reads a number and drops its fraction. Numbers beyond an int are cut to its limits.
func argInt(L *lua.LState, n int, function string) int {
	return clampInt(argNumber(L, n, function))
}

// optInt is argInt for an argument that may be absent or nil.
func optInt(L *lua.LState, n int, function string, otherwise int) int {
	if L.Get(n) == lua.LNil {
		return otherwise
	}
	return argInt(L, n, function)
}

// clampInt keeps numbers so far from the limits of an int that sums of a few of them do not overflow.
func clampInt(f float64) int {
	const limit = 1 << 60
	switch {
	case f != f:
		return -limit
	case f > limit:
		return limit
	case f < -limit:
		return -limit
	}
	return int(f)
}
