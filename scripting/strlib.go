package scripting

import (
	"math"
	"strings"

	lua "github.com/yuin/gopher-lua"
)

// openStrings adds the library of strings, and makes its functions methods of every string.
func (m *vm) openStrings() {
	L := m.state
	gmatch := L.NewFunction(m.stringGmatch)
	t := m.functions(L.CreateTable(0, 20), map[string]lua.LGFunction{
		"byte": stringByte,
		"char": stringChar,
		"dump": func(L *lua.LState) int {
			argFunction(L, 1, "dump")
			fail(L, "unable to dump given function")
			return 0
		},
		"find":    stringFind,
		"format":  stringFormat,
		"gsub":    m.stringGsub,
		"len":     func(L *lua.LState) int { L.Push(lua.LNumber(len(argString(L, 1, "len")))); return 1 },
		"lower":   stringMap("lower", 'A', 'Z'),
		"match":   stringMatch,
		"rep":     stringRep,
		"reverse": stringReverse,
		"sub":     stringSub,
		"upper":   stringMap("upper", 'a', 'z'),
	})
	t.RawSetString("gmatch", gmatch)
	t.RawSetString("gfind", gmatch)
	m.library("string", t)

	meta := L.CreateTable(0, 8)
	meta.RawSetString("__index", t)
	for event, fn := range map[string]func(a, b float64) float64{
		"add": func(a, b float64) float64 { return a + b },
		"sub": func(a, b float64) float64 { return a - b },
		"mul": func(a, b float64) float64 { return a * b },
		"div": func(a, b float64) float64 { return a / b },
		"mod": func(a, b float64) float64 { return a - math.Floor(a/b)*b },
		"pow": math.Pow,
	} {
		meta.RawSetString("__"+event, L.NewFunction(stringArithmetic(event, fn)))
	}
	meta.RawSetString("__unm", L.NewFunction(stringArithmetic("unm", func(a, _ float64) float64 { return -a })))
	L.SetMetatable(lua.LString(""), meta)

	shown := L.CreateTable(0, 1)
	shown.RawSetString("__index", m.globals.RawGetString("string"))
	m.stringMeta = m.protect(shown)
}

// stringArithmetic returns the metamethod for arithmetic with strings that contain numbers.
func stringArithmetic(event string, fn func(a, b float64) float64) lua.LGFunction {
	return func(L *lua.LState) int {
		a, ok1 := toNumber(L.Get(1))
		b, ok2 := 0.0, true
		if event != "unm" {
			b, ok2 = toNumber(L.Get(2))
		}
		if ok1 && ok2 {
			L.Push(lua.LNumber(fn(a, b)))
			return 1
		}
		for i := 1; i <= 2; i++ { // the other operand may have a metamethod
			if meta := L.GetMetaField(L.Get(i), "__"+event); meta != lua.LNil && L.Get(i).Type() != lua.LTString {
				L.Push(call(L, meta, L.Get(1), L.Get(2)))
				return 1
			}
		}
		left := L.Get(1).Type().String()
		if ok1 {
			left = "number"
		}
		fail(L, "cannot perform %s operation between %s and %s", event, left, L.Get(2).Type())
		return 0
	}
}

// span turns Lua's first and last position into a half-open range within a string of n bytes.
func span(first, last, n int) (from, to int) {
	if first < 0 {
		first = max(first+n+1, 1)
	}
	if last < 0 {
		last += n + 1
	}
	first, last = max(first, 1), min(last, n)
	if first > last {
		return 0, 0
	}
	return first - 1, last
}

func stringByte(L *lua.LState) int {
	s := argString(L, 1, "byte")
	first := optInt(L, 2, "byte", 1)
	from, to := span(first, optInt(L, 3, "byte", first), len(s))
	if L.GetTop()+to-from > maxStack {
		fail(L, "stack overflow (string slice too long)")
	}
	for i := from; i < to; i++ {
		L.Push(lua.LNumber(s[i]))
	}
	return to - from
}

func stringChar(L *lua.LState) int {
	buf := make([]byte, L.GetTop())
	for i := range buf {
		n := argInt32(L, i+1, "char")
		if n < 0 || n > 255 {
			badArgument(L, i+1, "char", "invalid value")
		}
		buf[i] = byte(n)
	}
	L.Push(lua.LString(buf))
	return 1
}

// stringMap returns a function that changes the case of the ASCII letters from first to last.
func stringMap(name string, first, last byte) lua.LGFunction {
	return func(L *lua.LState) int {
		buf := []byte(argString(L, 1, name))
		for i, c := range buf {
			if c >= first && c <= last {
				buf[i] = c ^ 0x20
			}
		}
		L.Push(lua.LString(buf))
		return 1
	}
}

func stringRep(L *lua.LState) int {
	s, n := argString(L, 1, "rep"), int(argInt32(L, 2, "rep"))
	if n <= 0 || s == "" {
		L.Push(lua.LString(""))
		return 1
	}
	if n > maxString/len(s) {
		fail(L, "resulting string too large")
	}
	L.Push(lua.LString(strings.Repeat(s, n)))
	return 1
}

func stringReverse(L *lua.LState) int {
	s := argString(L, 1, "reverse")
	buf := make([]byte, len(s))
	for i := range len(s) {
		buf[len(s)-1-i] = s[i]
	}
	L.Push(lua.LString(buf))
	return 1
}

func stringSub(L *lua.LState) int {
	s := argString(L, 1, "sub")
	from, to := span(argInt(L, 2, "sub"), optInt(L, 3, "sub", -1), len(s))
	L.Push(lua.LString(s[from:to]))
	return 1
}

// startAt reads the position where a search begins, and returns it as an index.
func startAt(L *lua.LState, n int, function string, length int) int {
	at := optInt(L, n, function, 1)
	if at < 0 {
		at += length + 1
	}
	return max(0, min(at-1, length))
}

func stringFind(L *lua.LState) int {
	s, p := argString(L, 1, "find"), argString(L, 2, "find")
	start := startAt(L, 3, "find", len(s))
	if lua.LVAsBool(L.Get(4)) || !strings.ContainsAny(cString(p), "^$*+?.([%-") {
		at := strings.Index(s[start:], p)
		if at < 0 {
			L.Push(lua.LNil)
			return 1
		}
		L.Push(lua.LNumber(start + at + 1))
		L.Push(lua.LNumber(start + at + len(p)))
		return 2
	}
	ms := matcher{L: L, s: s, p: cString(p)}
	from, to, ok := ms.search(start)
	if !ok {
		L.Push(lua.LNil)
		return 1
	}
	L.Push(lua.LNumber(from + 1))
	L.Push(lua.LNumber(to))
	for i := range ms.level {
		L.Push(ms.capture(i, from, to))
	}
	return 2 + ms.level
}

func stringMatch(L *lua.LState) int {
	s, p := argString(L, 1, "match"), argString(L, 2, "match")
	ms := matcher{L: L, s: s, p: cString(p)}
	from, to, ok := ms.search(startAt(L, 3, "match", len(s)))
	if !ok {
		L.Push(lua.LNil)
		return 1
	}
	return ms.pushCaptures(from, to)
}

func (m *vm) stringGmatch(L *lua.LState) int {
	ms := matcher{s: argString(L, 1, "gmatch"), p: cString(argString(L, 2, "gmatch"))}
	at := 0
	L.Push(L.NewFunction(func(L *lua.LState) int {
		ms.L = L
		for ; at <= len(ms.s); at++ {
			ms.reset()
			if to := ms.match(at, 0); to >= 0 {
				from := at
				at = to
				if to == from {
					at++
				}
				return ms.pushCaptures(from, to)
			}
		}
		L.Push(lua.LNil)
		return 1
	}))
	return 1
}

func (m *vm) stringGsub(L *lua.LState) int {
	s, p := argString(L, 1, "gsub"), argString(L, 2, "gsub")
	limit := int(optInt32(L, 4, "gsub", int32(len(s)+1)))
	replacement := L.Get(3)
	switch v := replacement.(type) {
	case lua.LNumber:
		replacement = lua.LString(toText(v))
	case lua.LString, *lua.LTable, *lua.LFunction:
	default:
		badArgument(L, 3, "gsub", "string/function/table expected")
	}
	ms := matcher{L: L, s: s, p: cString(p)}
	anchored := strings.HasPrefix(p, "^")
	if anchored {
		ms.p = ms.p[1:]
	}
	var buf []byte
	at, count := 0, 0
	for count < limit {
		ms.reset()
		to := ms.match(at, 0)
		if to >= 0 {
			count++
			buf = m.replace(L, buf, &ms, at, to, replacement)
			if len(buf) > maxString {
				fail(L, "resulting string too large")
			}
		}
		switch {
		case to > at:
			at = to
		case at < len(s):
			buf = append(buf, s[at])
			at++
		default:
			at++
		}
		if at > len(s) || anchored {
			break
		}
	}
	if at < len(s) {
		buf = append(buf, s[at:]...)
	}
	L.Push(lua.LString(buf))
	L.Push(lua.LNumber(count))
	return 2
}

// replace appends the replacement of the match s[from:to].
func (m *vm) replace(L *lua.LState, buf []byte, ms *matcher, from, to int, replacement lua.LValue) []byte {
	var v lua.LValue
	switch r := replacement.(type) {
	case lua.LString:
		for rest := string(r); ; {
			plain, escape, escaped := strings.Cut(rest, "%")
			buf = append(buf, plain...)
			switch {
			case !escaped:
				return buf
			case escape == "":
				return append(buf, 0) // as Lua 5.1 does
			}
			switch c := escape[0]; {
			case c == '0':
				buf = append(buf, ms.s[from:to]...)
			case c >= '1' && c <= '9':
				buf = appendText(buf, ms.capture(int(c-'1'), from, to))
			default:
				buf = append(buf, c)
			}
			rest = escape[1:]
		}
	case *lua.LTable:
		v = L.GetTable(r, ms.capture(0, from, to))
	case *lua.LFunction:
		L.Push(r)
		n := ms.pushCaptures(from, to)
		L.Call(n, 1)
		v = L.Get(-1)
		L.Pop(1)
	}
	switch {
	case !lua.LVAsBool(v):
		return append(buf, ms.s[from:to]...)
	case !lua.LVCanConvToString(v):
		fail(L, "invalid replacement value (a %s)", v.Type())
	}
	return appendText(buf, v)
}
