package scripting

import (
	"math"
	"strconv"
	"strings"

	lua "github.com/yuin/gopher-lua"

	"github.com/atomredis/atomredis/resp"
)

// maxReplyDepth bounds the nesting of the tables that a script returns; a table may contain itself.
const maxReplyDepth = 7000

// errorTable returns the Lua form of an error reply.
func errorTable(L *lua.LState, text string) *lua.LTable {
	t := L.CreateTable(0, 1)
	t.RawSetString("err", lua.LString(text))
	return t
}

// fieldTable returns a table with one field.
func fieldTable(L *lua.LState, name string, v lua.LValue) *lua.LTable {
	t := L.CreateTable(0, 1)
	t.RawSetString(name, v)
	return t
}

// fromReply converts the encoded reply at the start of b. The server wrote the reply, so it is well formed. fromReply
// returns the bytes after it.
func (m *vm) fromReply(L *lua.LState, b []byte) (lua.LValue, []byte) {
	kind := b[0]
	end := 1
	for b[end] != '\r' {
		end++
	}
	line, rest := b[1:end], b[end+2:]
	switch kind {
	case '+':
		return fieldTable(L, "ok", lua.LString(line)), rest
	case '-':
		return errorTable(L, string(line)), rest
	case ':':
		if n, ok := resp.ParseInt(line); ok {
			return lua.LNumber(n), rest
		}
		return lua.LNumber(parseFloat(string(line))), rest // too large for an int64
	case ',':
		return fieldTable(L, "double", lua.LNumber(parseFloat(string(line)))), rest
	case '(':
		return fieldTable(L, "big_number", lua.LString(line)), rest
	case '#':
		return lua.LBool(line[0] == 't'), rest
	case '_':
		return lua.LNil, rest
	}
	n, _ := resp.ParseInt(line)
	if n < 0 {
		return lua.LFalse, rest // RESP2's nulls
	}
	size := int(n)
	switch kind {
	case '|': // attributes, which scripts do not see, and the reply that they describe
		for range 2 * size {
			_, rest = m.fromReply(L, rest)
		}
		return m.fromReply(L, rest)
	case '$':
		return lua.LString(rest[:size]), rest[size+2:]
	case '=':
		t := L.CreateTable(0, 2)
		t.RawSetString("format", lua.LString(rest[:3]))
		t.RawSetString("string", lua.LString(rest[4:size]))
		return fieldTable(L, "verbatim_string", t), rest[size+2:]
	case '%':
		t := L.CreateTable(0, size)
		for range size {
			var k, v lua.LValue
			k, rest = m.fromReply(L, rest)
			v, rest = m.fromReply(L, rest)
			if k != lua.LNil {
				t.RawSet(k, v)
			}
		}
		return fieldTable(L, "map", t), rest
	case '~':
		t := L.CreateTable(0, size)
		for range size {
			var k lua.LValue
			k, rest = m.fromReply(L, rest)
			if k != lua.LNil {
				t.RawSet(k, lua.LTrue)
			}
		}
		return fieldTable(L, "set", t), rest
	}
	t := L.CreateTable(size, 0)
	for i := range size {
		var v lua.LValue
		v, rest = m.fromReply(L, rest)
		t.RawSetInt(i+1, v)
	}
	return t, rest
}

// writeReply writes the reply that a script returned.
func (m *vm) writeReply(w *resp.Writer, v lua.LValue) { m.write(w, v, 0) }

func (m *vm) write(w *resp.Writer, v lua.LValue, depth int) {
	if m.interrupt.stops() {
		panic(errStopped) // tables that contain themselves can make an endless reply
	}
	switch v := v.(type) {
	case lua.LString:
		w.BulkString(string(v))
	case lua.LNumber:
		w.Int(truncate(float64(v)))
	case lua.LBool:
		switch {
		case m.proto == 3:
			w.Bool(bool(v))
		case bool(v):
			w.Int(1)
		default:
			w.Null()
		}
	case *lua.LTable:
		if depth >= maxReplyDepth {
			w.Error("ERR reached lua stack limit")
			return
		}
		m.writeTable(w, m.behind(v), depth+1)
	default:
		w.Null()
	}
}

// writeTable writes a table: the value of its special field if it has one, and otherwise a list.
func (m *vm) writeTable(w *resp.Writer, t *lua.LTable, depth int) {
	if s, ok := t.RawGetString("err").(lua.LString); ok {
		w.Error(string(s))
		return
	}
	if s, ok := t.RawGetString("ok").(lua.LString); ok {
		w.Simple(oneLine(string(s)))
		return
	}
	if n, ok := t.RawGetString("double").(lua.LNumber); ok {
		w.Double(float64(n))
		return
	}
	if pairs, ok := t.RawGetString("map").(*lua.LTable); ok {
		mark, n := w.Defer(), 0
		for k, v := next(pairs, lua.LNil); k != lua.LNil; k, v = next(pairs, k) {
			m.write(w, k, depth)
			m.write(w, v, depth)
			n++
		}
		w.EndMap(mark, n)
		return
	}
	if set, ok := t.RawGetString("set").(*lua.LTable); ok {
		mark, n := w.Defer(), 0
		for k, _ := next(set, lua.LNil); k != lua.LNil; k, _ = next(set, k) {
			m.write(w, k, depth)
			n++
		}
		w.EndSet(mark, n)
		return
	}
	if s, ok := t.RawGetString("big_number").(lua.LString); ok {
		w.BigNumber(oneLine(string(s)))
		return
	}
	if verbatim, ok := t.RawGetString("verbatim_string").(*lua.LTable); ok {
		format, ok1 := verbatim.RawGetString("format").(lua.LString)
		text, ok2 := verbatim.RawGetString("string").(lua.LString)
		if ok1 && ok2 {
			w.Verbatim((string(format) + "   ")[:3], string(text))
			return
		}
	}
	mark, n := w.Defer(), 0
	for {
		v := t.RawGetInt(n + 1)
		if v == lua.LNil {
			break
		}
		m.write(w, v, depth)
		n++
	}
	w.EndArray(mark, n)
}

// oneLine turns line breaks into spaces.
func oneLine(s string) string {
	if !strings.ContainsAny(s, "\r\n") {
		return s
	}
	return strings.NewReplacer("\r", " ", "\n", " ").Replace(s)
}

// truncate converts a number to an integer as the C language does on common machines.
func truncate(f float64) int64 {
	if !(f > -(1<<63) && f < 1<<63) {
		return math.MinInt64
	}
	return int64(f)
}

// truncate32 is truncate for integers of 32 bits.
func truncate32(f float64) int32 {
	if !(f > -1<<31-1 && f < 1<<31) {
		return math.MinInt32
	}
	return int32(f)
}

// unsigned converts a number to an unsigned integer as the C language does on common machines.
func unsigned(f float64) uint64 {
	if f >= 1<<63 {
		return uint64(truncate(f-1<<63)) ^ 1<<63
	}
	return uint64(truncate(f))
}

// appendNumber prints a number as Lua does: with 14 significant digits.
func appendNumber(dst []byte, f float64) []byte {
	if f > -1e14 && f < 1e14 {
		if n := int64(f); float64(n) == f && (n != 0 || !math.Signbit(f)) {
			return strconv.AppendInt(dst, n, 10)
		}
	}
	return appendG(dst, f, 14)
}

// appendArgument prints a number as an argument of a command: with 17 significant digits.
func appendArgument(dst []byte, f float64) []byte {
	if f > -1e15 && f < 1e15 {
		if n := int64(f); float64(n) == f && (n != 0 || !math.Signbit(f)) {
			return strconv.AppendInt(dst, n, 10)
		}
	}
	return appendG(dst, f, 17)
}

// appendG prints a number as C's %g does with the given precision.
func appendG(dst []byte, f float64, precision int) []byte {
	switch {
	case math.IsInf(f, 1):
		return append(dst, "inf"...)
	case math.IsInf(f, -1):
		return append(dst, "-inf"...)
	case math.IsNaN(f) && math.Signbit(f):
		return append(dst, "-nan"...)
	case math.IsNaN(f):
		return append(dst, "nan"...)
	}
	return strconv.AppendFloat(dst, f, 'g', precision, 64)
}

// toText returns a value as text: strings unchanged, numbers as Lua prints them.
func toText(v lua.LValue) string {
	switch v := v.(type) {
	case lua.LString:
		return string(v)
	case lua.LNumber:
		var scratch [32]byte
		return string(appendNumber(scratch[:0], float64(v)))
	case *lua.LUserData:
		if v == jsonNull {
			return "userdata: (nil)"
		}
	}
	return v.String()
}

// toNumber returns a number, also from a string that contains one.
func toNumber(v lua.LValue) (f float64, ok bool) {
	switch v := v.(type) {
	case lua.LNumber:
		return float64(v), true
	case lua.LString:
		return parseNumber(string(v))
	}
	return 0, false
}
