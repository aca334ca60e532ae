package scripting

import (
	"math"
	"runtime/metrics"
	"strings"

	lua "github.com/yuin/gopher-lua"
)

// openBase adds Lua's basic functions to the globals.
func (m *vm) openBase() {
	m.functions(m.globals, map[string]lua.LGFunction{
		"assert":         baseAssert,
		"collectgarbage": baseCollectGarbage,
		"error":          m.baseError,
		"gcinfo":         func(L *lua.LState) int { L.Push(lua.LNumber(memoryInUse())); return 1 },
		"getmetatable":   m.baseGetMetatable,
		"ipairs":         m.baseIpairs(),
		"load":           m.baseLoad,
		"loadstring":     m.baseLoadString,
		"next":           m.baseNext,
		"pairs":          m.basePairs(),
		"pcall":          m.basePcall,
		"rawequal":       baseRawEqual,
		"rawget":         m.baseRawGet,
		"rawset":         m.baseRawSet,
		"select":         baseSelect,
		"setmetatable":   m.baseSetMetatable,
		"tonumber":       baseToNumber,
		"tostring":       baseToString,
		"type":           baseType,
		"unpack":         m.baseUnpack,
		"xpcall":         m.baseXpcall,
	})
}

func baseAssert(L *lua.LState) int {
	if lua.LVAsBool(argAny(L, 1, "assert")) {
		return L.GetTop()
	}
	text := "assertion failed!"
	if L.Get(2) != lua.LNil {
		text = argString(L, 2, "assert")
	}
	fail(L, "%s", text)
	return 0
}

// baseCollectGarbage answers questions only; scripts do not control the garbage collector.
func baseCollectGarbage(L *lua.LState) int {
	switch option := L.Get(1); {
	case option == lua.LString("count"):
		L.Push(lua.LNumber(memoryInUse()))
	case option == lua.LString("step"):
		L.Push(lua.LTrue)
	default:
		L.Push(lua.LNumber(0))
	}
	return 1
}

// memoryInUse is the size of the server's heap in KB.
func memoryInUse() float64 {
	sample := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	metrics.Read(sample)
	if sample[0].Value.Kind() != metrics.KindUint64 {
		return 0
	}
	return float64(sample[0].Value.Uint64()) / 1024
}

func (m *vm) baseError(L *lua.LState) int {
	v := L.Get(1)
	level := optInt(L, 2, "error", 1)
	switch v.(type) {
	case lua.LString, lua.LNumber:
		if level > 0 {
			v = lua.LString(where(L, level) + toText(v))
		}
	}
	m.raise(L, v)
	return 0
}

// where returns the place of the function at a level of the stack, in the form that begins messages; empty if the
// function is not Lua.
func where(L *lua.LState, level int) string {
	frame, ok := L.GetStack(level)
	if !ok {
		return ""
	}
	if _, err := L.GetInfo("Sl", frame, lua.LNil); err != nil || frame.Source == "" {
		return ""
	}
	return frame.Source + ":" + toText(lua.LNumber(frame.CurrentLine)) + ": "
}

func (m *vm) baseGetMetatable(L *lua.LState) int {
	switch v := argAny(L, 1, "getmetatable").(type) {
	case lua.LString:
		L.Push(m.stringMeta)
	case *lua.LTable:
		switch {
		case v == m.env:
			L.Push(m.globalsMeta)
		case m.protected[v] != nil:
			L.Push(lua.LNil)
		default:
			if meta, ok := v.Metatable.(*lua.LTable); ok {
				if locked := meta.RawGetString("__metatable"); locked != lua.LNil {
					L.Push(locked)
					return 1
				}
			}
			L.Push(v.Metatable)
		}
	default:
		L.Push(lua.LNil)
	}
	return 1
}

func (m *vm) baseSetMetatable(L *lua.LState) int {
	t := argTable(L, 1, "setmetatable")
	meta := L.Get(2)
	if _, ok := meta.(*lua.LTable); !ok && (meta != lua.LNil || L.GetTop() < 2) {
		badArgument(L, 2, "setmetatable", "nil or table expected")
	}
	m.mustBeOurs(L, t)
	if old, ok := t.Metatable.(*lua.LTable); ok && old.RawGetString("__metatable") != lua.LNil {
		fail(L, "cannot change a protected metatable")
	}
	t.Metatable = meta
	L.Push(t)
	return 1
}

func (m *vm) baseIpairs() lua.LGFunction {
	step := m.state.NewFunction(func(L *lua.LState) int {
		t, ok := L.Get(1).(*lua.LTable)
		if !ok {
			badType(L, 1, "ipairs", "table")
		}
		i := optInt(L, 2, "ipairs", 0) + 1
		v := m.behind(t).RawGetInt(i)
		if v == lua.LNil {
			L.Push(lua.LNil)
			return 1
		}
		L.Push(lua.LNumber(i))
		L.Push(v)
		return 2
	})
	return func(L *lua.LState) int {
		t := argTable(L, 1, "ipairs")
		L.Push(step)
		L.Push(t)
		L.Push(lua.LNumber(0))
		return 3
	}
}

func (m *vm) basePairs() lua.LGFunction {
	step := m.state.NewFunction(m.baseNext)
	return func(L *lua.LState) int {
		t := argTable(L, 1, "pairs")
		L.Push(step)
		L.Push(t)
		L.Push(lua.LNil)
		return 3
	}
}

func (m *vm) baseNext(L *lua.LState) int {
	t := argTable(L, 1, "next")
	k, v := next(m.behind(t), L.Get(2))
	L.Push(k)
	if k == lua.LNil {
		return 1
	}
	L.Push(v)
	return 2
}

// next returns the key after key in a table, and its value. Unlike LTable.Next it keeps to the order even if the list
// part became shorter since key was visited.
func next(t *lua.LTable, key lua.LValue) (k, v lua.LValue) {
	n, ok := key.(lua.LNumber)
	if !ok || n < 1 || n >= lua.LNumber(lua.MaxArrayIndex) || float64(n) != math.Trunc(float64(n)) {
		return t.Next(key)
	}
	last := t.MaxN()
	for i := int(n) + 1; i <= last; i++ {
		if v := t.RawGetInt(i); v != lua.LNil {
			return lua.LNumber(i), v
		}
	}
	if last == 0 {
		return t.Next(lua.LNil)
	}
	return t.Next(lua.LNumber(last))
}

func baseRawEqual(L *lua.LState) int {
	L.Push(lua.LBool(L.RawEqual(argAny(L, 1, "rawequal"), argAny(L, 2, "rawequal"))))
	return 1
}

func (m *vm) baseRawGet(L *lua.LState) int {
	t := argTable(L, 1, "rawget")
	L.Push(m.behind(t).RawGet(argAny(L, 2, "rawget")))
	return 1
}

func (m *vm) baseRawSet(L *lua.LState) int {
	t := argTable(L, 1, "rawset")
	k, v := argAny(L, 2, "rawset"), argAny(L, 3, "rawset")
	m.mustBeOurs(L, t)
	m.checkKey(L, k)
	t.RawSet(k, v)
	L.Push(t)
	return 1
}

// checkKey refuses values that cannot be a table's key.
func (m *vm) checkKey(L *lua.LState, k lua.LValue) {
	n, isNumber := k.(lua.LNumber)
	switch {
	case k == lua.LNil:
		m.raise(L, lua.LString("table index is nil"))
	case isNumber && n != n:
		m.raise(L, lua.LString("table index is NaN"))
	}
}

func baseSelect(L *lua.LState) int {
	top := L.GetTop()
	if s, ok := L.Get(1).(lua.LString); ok && strings.HasPrefix(string(s), "#") {
		L.Push(lua.LNumber(top - 1))
		return 1
	}
	n := int(argInt32(L, 1, "select"))
	switch {
	case n < 0:
		n += top
	case n > top:
		n = top
	}
	if n < 1 {
		badArgument(L, 1, "select", "index out of range")
	}
	return top - n
}

func baseToNumber(L *lua.LState) int {
	base := optInt32(L, 2, "tonumber", 10)
	if base == 10 {
		f, ok := toNumber(argAny(L, 1, "tonumber"))
		if !ok {
			L.Push(lua.LNil)
			return 1
		}
		L.Push(lua.LNumber(f))
		return 1
	}
	s := argString(L, 1, "tonumber")
	if base < 2 || base > 36 {
		badArgument(L, 2, "tonumber", "base out of range")
	}
	if n, ok := parseUnsigned(s, uint64(base)); ok {
		L.Push(lua.LNumber(n))
	} else {
		L.Push(lua.LNil)
	}
	return 1
}

func baseToString(L *lua.LState) int {
	v := argAny(L, 1, "tostring")
	if fn, ok := L.GetMetaField(v, "__tostring").(*lua.LFunction); ok {
		L.Push(fn)
		L.Push(v)
		L.Call(1, 1)
		return 1
	}
	L.Push(lua.LString(toText(v)))
	return 1
}

func baseType(L *lua.LState) int {
	L.Push(lua.LString(argAny(L, 1, "type").Type().String()))
	return 1
}

func (m *vm) baseUnpack(L *lua.LState) int {
	t := m.behind(argTable(L, 1, "unpack"))
	from := int(optInt32(L, 2, "unpack", 1))
	to := int(optInt32(L, 3, "unpack", int32(t.Len())))
	if from > to {
		return 0
	}
	if L.GetTop()+to-from+1 > maxStack {
		fail(L, "too many results to unpack")
	}
	for i := from; i <= to; i++ {
		L.Push(t.RawGet(lua.LNumber(i)))
	}
	return to - from + 1
}

func (m *vm) baseLoadString(L *lua.LState) int {
	source := argString(L, 1, "loadstring")
	name := source
	if L.Get(2) != lua.LNil {
		name = argString(L, 2, "loadstring")
	}
	return m.pushLoaded(L, source, name)
}

func (m *vm) baseLoad(L *lua.LState) int {
	reader := argFunction(L, 1, "load")
	name := "=(load)"
	if L.Get(2) != lua.LNil {
		name = argString(L, 2, "load")
	}
	var source strings.Builder
	for {
		L.Push(reader)
		L.Call(0, 1)
		piece := L.Get(-1)
		L.Pop(1)
		if piece == lua.LNil || piece == lua.LString("") {
			break
		}
		text, ok := piece.(lua.LString)
		if !ok {
			L.Push(lua.LNil)
			L.Push(lua.LString("reader function must return a string"))
			return 2
		}
		if source.Len()+len(text) > maxString {
			fail(L, "not enough memory")
		}
		source.WriteString(string(text))
	}
	return m.pushLoaded(L, source.String(), name)
}

func (m *vm) pushLoaded(L *lua.LState, source, name string) int {
	shown := shownChunkName(name)
	c, err := compile(source, shown)
	if err != nil {
		L.Push(lua.LNil)
		L.Push(lua.LString(err.Error()))
		return 2
	}
	m.names[shown] = c.names
	L.Push(m.load(c))
	return 1
}

// shownChunkName is the form of a chunk's name in messages.
func shownChunkName(name string) string {
	const longest = 59
	if rest, ok := strings.CutPrefix(name, "="); ok {
		return rest[:min(len(rest), longest)]
	}
	if rest, ok := strings.CutPrefix(name, "@"); ok {
		return rest[max(0, len(rest)-longest):]
	}
	line, _, cut := strings.Cut(strings.ReplaceAll(name, "\r", "\n"), "\n")
	if room := longest - len(`[string "..."]`); len(line) > room {
		line, cut = line[:room], true
	}
	if cut {
		line += "..."
	}
	return `[string "` + line + `"]`
}

// concatenate joins its arguments. The compiler puts a call of it in the place of the operator "..".
func concatenate(L *lua.LState) int {
	n := L.GetTop()
	right := L.Get(n)
	for n--; n > 0; n-- {
		left := L.Get(n)
		if !lua.LVCanConvToString(left) || !lua.LVCanConvToString(right) {
			right = concatenateByMetatable(L, n, right)
			continue
		}
		first := n // join as many consecutive strings as possible at once
		for first > 1 && lua.LVCanConvToString(L.Get(first-1)) {
			first--
		}
		var buf []byte
		for i := first; i <= n; i++ {
			buf = appendText(buf, L.Get(i))
		}
		buf = appendText(buf, right)
		if len(buf) > maxString {
			fail(L, "not enough memory")
		}
		right, n = lua.LString(buf), first
	}
	L.Push(right)
	return 1
}

// concatenateList is concatenate for operands in a list, whose number is its first argument.
func concatenateList(L *lua.LState) int {
	n, list := L.CheckInt(1), L.CheckTable(2)
	L.SetTop(0)
	for i := range n {
		L.Push(list.RawGetInt(i + 1))
	}
	return concatenate(L)
}

func appendText(dst []byte, v lua.LValue) []byte {
	switch v := v.(type) {
	case lua.LString:
		return append(dst, v...)
	case lua.LNumber:
		return appendNumber(dst, float64(v))
	}
	return dst
}

// concatFailure is the message of a failed concatenation before it is reworded: which operand of how many is to blame.
const concatFailure = "attempt to concatenate operand %d of %d (a %s value)"

// concatenateByMetatable joins argument n and the result for the arguments after it.
func concatenateByMetatable(L *lua.LState, n int, right lua.LValue) lua.LValue {
	left := L.Get(n)
	op := L.GetMetaField(left, "__concat")
	if op == lua.LNil {
		op = L.GetMetaField(right, "__concat")
	}
	if op == lua.LNil {
		culprit, at := left, n
		if lua.LVCanConvToString(left) {
			culprit, at = right, n+1
		}
		fail(L, concatFailure, at, L.GetTop(), culprit.Type())
	}
	L.Push(op)
	L.Push(left)
	L.Push(right)
	L.Call(2, 1)
	v := L.Get(-1)
	L.Pop(1)
	return v
}
