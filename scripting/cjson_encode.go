package scripting

import (
	"math"
	"strconv"

	lua "github.com/yuin/gopher-lua"
)

func (j *jsonLibrary) encode(L *lua.LState) int {
	oneArgument(L, "encode")
	e := jsonEncoder{L: L, m: j.m, config: &j.config, buf: j.m.scratch.buf}
	e.value(L.Get(1), 0, 1)
	L.Push(lua.LString(e.buf))
	if j.config.keepBuffer {
		j.m.scratch.keepBuf(e.buf)
	} else {
		j.m.scratch.buf = nil
	}
	return 1
}

// jsonEncoder appends values to buf. Its methods take the number of tables around the value, and how much of Lua's
// stack is in use there, which bounds the nesting too.
type jsonEncoder struct {
	effort
	L      *lua.LState
	m      *vm
	config *jsonConfig
	buf    []byte
}

func (e *jsonEncoder) value(v lua.LValue, depth int32, used int) {
	switch v := v.(type) {
	case lua.LString:
		e.string(string(v))
	case lua.LNumber:
		e.number(float64(v))
	case lua.LBool:
		e.buf = strconv.AppendBool(e.buf, bool(v))
	case *lua.LTable:
		e.table(e.m.behind(v), depth+1, used)
	case *lua.LNilType:
		e.buf = append(e.buf, "null"...)
	default:
		if v != lua.LValue(jsonNull) {
			e.refuse(v, "type not supported")
		}
		e.buf = append(e.buf, "null"...)
	}
}

func (e *jsonEncoder) refuse(v lua.LValue, why string) {
	fail(e.L, "Cannot serialise %s: %s", v.Type(), why)
}

func (e *jsonEncoder) table(t *lua.LTable, depth int32, used int) {
	if depth > e.config.encodeDepth || used+3 > maxStack {
		fail(e.L, "Cannot serialise, excessive nesting (%d)", depth)
	}
	mustFitMemory(e.L, len(e.buf))
	isArray := e.m.isArray(t)
	var length int
	if isArray {
		length = t.Len()
	} else {
		length = e.arrayLength(t)
	}
	e.spend(e.L, 1+length)
	if length > 0 || isArray {
		e.buf = append(e.buf, '[')
		for i := 1; i <= length; i++ {
			if i > 1 {
				e.buf = append(e.buf, ',')
			}
			v := t.RawGet(lua.LNumber(i))
			if v == lua.LNil {
				mustFitMemory(e.L, len(e.buf))
			}
			e.value(v, depth, used+1)
		}
		e.buf = append(e.buf, ']')
		return
	}
	e.buf = append(e.buf, '{')
	first := true
	for k, v := t.Next(lua.LNil); k != lua.LNil; k, v = t.Next(k) {
		if !first {
			e.buf = append(e.buf, ',')
		}
		first = false
		switch k := k.(type) {
		case lua.LString:
			e.string(string(k))
			e.buf = append(e.buf, ':')
		case lua.LNumber:
			e.buf = append(e.buf, '"')
			e.number(float64(k))
			e.buf = append(e.buf, '"', ':')
		default:
			e.refuse(k, "table key must be a number or string")
		}
		e.value(v, depth, used+2)
	}
	e.buf = append(e.buf, '}')
}

// arrayLength returns the length if a table is an array, and 0 if it is an object.
func (e *jsonEncoder) arrayLength(t *lua.LTable) int {
	items, largest := positions(t)
	if items <= 0 || largest > math.MaxInt32 {
		return 0
	}
	ratio := float64(e.config.sparseRatio)
	if ratio > 0 && largest > float64(items)*ratio && largest > float64(e.config.sparseSafe) {
		if !e.config.sparseConvert {
			e.refuse(t, "excessively sparse array")
		}
		return 0
	}
	return int(largest)
}

// positions returns the number of a table's elements and the largest of their keys if all keys are positive integers,
// and otherwise -1.
func positions(t *lua.LTable) (items int, largest float64) {
	last := t.MaxN()
	for i := 1; i <= last; i++ {
		if t.RawGetInt(i) != lua.LNil {
			items++
		}
	}
	largest = float64(last)
	var k lua.LValue = lua.LNil
	if last > 0 {
		k = lua.LNumber(last)
	}
	for k, _ = t.Next(k); k != lua.LNil; k, _ = t.Next(k) {
		n, ok := k.(lua.LNumber)
		if !ok || n < 1 || float64(n) != math.Trunc(float64(n)) {
			return -1, 0
		}
		items++
		largest = max(largest, float64(n))
	}
	return items, largest
}

func (e *jsonEncoder) number(f float64) {
	if math.IsInf(f, 0) || f != f {
		switch {
		case e.config.encodeInvalid == refuseInvalid:
			e.refuse(lua.LNumber(f), "must not be NaN or Inf")
		case e.config.encodeInvalid == nullInvalid:
			e.buf = append(e.buf, "null"...)
			return
		case f != f:
			e.buf = append(e.buf, "nan"...)
			return
		}
	}
	if e.config.precision == jsonPrecision {
		e.buf = appendNumber(e.buf, f)
		return
	}
	e.buf = appendG(e.buf, f, int(e.config.precision))
}

// jsonEscapes holds the text that replaces a byte in a string; empty for bytes that stand for themselves.
var jsonEscapes = func() (escapes [256]string) {
	for c := range 0x20 {
		escapes[c] = "\\u00" + string("0123456789abcdef"[c>>4]) + string("0123456789abcdef"[c&15])
	}
	escapes['\b'], escapes['\t'], escapes['\n'], escapes['\f'], escapes['\r'] = `\b`, `\t`, `\n`, `\f`, `\r`
	escapes['"'], escapes['\\'], escapes['/'], escapes[0x7f] = `\"`, `\\`, `\/`, `\u007f`
	return escapes
}()

func (e *jsonEncoder) string(s string) {
	mustFitMemory(e.L, len(e.buf)+len(s))
	buf := append(e.buf, '"')
	start := 0
	for i := range len(s) {
		if escape := jsonEscapes[s[i]]; escape != "" {
			buf = append(buf, s[start:i]...)
			buf = append(buf, escape...)
			start = i + 1
		}
	}
	buf = append(buf, s[start:]...)
	e.buf = append(buf, '"')
}
