package scripting

import (
	"fmt"
	"strconv"
	"strings"

	lua "github.com/yuin/gopher-lua"
)

// The functions below read arguments of library functions and raise Lua 5.1's errors.

const (
	// maxStack is the number of values that Lua 5.1 allows a library function, including its arguments.
	maxStack = 8000
	// anonymous is the name in messages for a function that was not called by a name.
	anonymous = "?"
)

// fail raises a message as an error. The message begins with the place of the call if Lua called the running function.
func fail(L *lua.LState, format string, args ...any) {
	message := format
	if len(args) > 0 {
		message = fmt.Sprintf(format, args...)
	}
	L.Error(lua.LString(where(L, 1)+message), 0)
}

// badArgument complains about argument n. function is the name of the running function, which messages use if they find
// no other name by which it was called.
func badArgument(L *lua.LState, n int, function, what string) {
	fail(L, "bad argument #%d to '%s' (%s)", n, calledName(L, function), what)
}

// calledName returns the name by which the running function was called.
func calledName(L *lua.LState, function string) string {
	if where(L, 1) == "" {
		return anonymous
	}
	frame, ok := L.GetStack(0)
	if !ok {
		return function
	}
	if _, err := L.GetInfo("n", frame, lua.LNil); err != nil || frame.Name == "" || frame.Name[0] == '(' {
		return function
	}
	if libraryMembers()[frame.Name] {
		return frame.Name[strings.IndexByte(frame.Name, '.')+1:]
	}
	return frame.Name
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

// argInteger reads a number and drops its fraction. Numbers that do not fit an int64 become its least value.
func argInteger(L *lua.LState, n int, function string) int64 {
	return truncate(argNumber(L, n, function))
}

// optInteger is argInteger for an argument that may be absent or nil.
func optInteger(L *lua.LState, n int, function string, otherwise int64) int64 {
	if L.Get(n) == lua.LNil {
		return otherwise
	}
	return argInteger(L, n, function)
}

// argInt is argInteger cut to limits so far from those of an int that sums of a few such values do not overflow.
func argInt(L *lua.LState, n int, function string) int {
	const limit = 1 << min(60, strconv.IntSize-4)
	return int(max(-limit, min(argInteger(L, n, function), limit)))
}

// optInt is argInt for an argument that may be absent or nil.
func optInt(L *lua.LState, n int, function string, otherwise int) int {
	if L.Get(n) == lua.LNil {
		return otherwise
	}
	return argInt(L, n, function)
}

// argInt32 reads a number like the functions that count with 32 bits: higher bits are lost.
func argInt32(L *lua.LState, n int, function string) int32 { return int32(argInteger(L, n, function)) }

// optInt32 is argInt32 for an argument that may be absent or nil.
func optInt32(L *lua.LState, n int, function string, otherwise int32) int32 {
	if L.Get(n) == lua.LNil {
		return otherwise
	}
	return argInt32(L, n, function)
}

// mustFitMemory refuses to make a string longer than maxString.
func mustFitMemory(L *lua.LState, length int) {
	if length > maxString {
		fail(L, "not enough memory")
	}
}
