package scripting

import (
	"sort"

	lua "github.com/yuin/gopher-lua"
)

// tableLibrary returns Lua's library of tables.
func (m *vm) tableLibrary() *lua.LTable {
	return m.functions(m.state.CreateTable(0, 8), map[string]lua.LGFunction{
		"concat":   m.tableConcat,
		"foreach":  m.tableForeach,
		"foreachi": m.tableForeachI,
		"getn":     func(L *lua.LState) int { L.Push(lua.LNumber(m.behind(argTable(L, 1, "getn")).Len())); return 1 },
		"insert":   m.tableInsert,
		"maxn":     m.tableMaxN,
		"remove":   m.tableRemove,
		"setn":     func(L *lua.LState) int { argTable(L, 1, "setn"); fail(L, "'setn' is obsolete"); return 0 },
		"sort":     m.tableSort,
	})
}

func (m *vm) tableConcat(L *lua.LState) int {
	t := m.behind(argTable(L, 1, "concat"))
	separator := ""
	if L.Get(2) != lua.LNil {
		separator = argString(L, 2, "concat")
	}
	from := int(optInt32(L, 3, "concat", 1))
	to := int(optInt32(L, 4, "concat", int32(t.Len())))
	var buf []byte
	for i := from; i <= to; i++ {
		v := t.RawGet(lua.LNumber(i))
		if !lua.LVCanConvToString(v) {
			fail(L, "invalid value (%s) at index %d in table for 'concat'", v.Type(), i)
		}
		buf = appendText(buf, v)
		if i < to {
			buf = append(buf, separator...)
		}
		if len(buf) > maxString {
			fail(L, "not enough memory")
		}
	}
	L.Push(lua.LString(buf))
	return 1
}

func (m *vm) tableForeach(L *lua.LState) int {
	t, fn := m.behind(argTable(L, 1, "foreach")), argFunction(L, 2, "foreach")
	for k, v := next(t, lua.LNil); k != lua.LNil; k, v = next(t, k) {
		if answer := call(L, fn, k, v); answer != lua.LNil {
			L.Push(answer)
			return 1
		}
	}
	return 0
}

func (m *vm) tableForeachI(L *lua.LState) int {
	t, fn := m.behind(argTable(L, 1, "foreachi")), argFunction(L, 2, "foreachi")
	for i, n := 1, t.Len(); i <= n; i++ {
		if answer := call(L, fn, lua.LNumber(i), t.RawGetInt(i)); answer != lua.LNil {
			L.Push(answer)
			return 1
		}
	}
	return 0
}

// call calls a function and returns its first result.
func call(L *lua.LState, fn lua.LValue, args ...lua.LValue) lua.LValue {
	checkInterrupt(L) // fn may not be Lua, and the caller may be a loop
	L.Push(fn)
	for _, a := range args {
		L.Push(a)
	}
	L.Call(len(args), 1)
	v := L.Get(-1)
	L.Pop(1)
	return v
}

func (m *vm) tableInsert(L *lua.LState) int {
	t := argTable(L, 1, "insert")
	switch L.GetTop() {
	case 2:
		m.mustBeOurs(L, t)
		t.Append(L.Get(2))
	case 3:
		at := int(argInt32(L, 2, "insert"))
		m.mustBeOurs(L, t)
		switch {
		case at < 1 || at > t.Len():
			t.RawSet(lua.LNumber(at), L.Get(3))
		default:
			t.Insert(at, L.Get(3))
		}
	default:
		fail(L, "wrong number of arguments to 'insert'")
	}
	return 0
}

func (m *vm) tableMaxN(L *lua.LState) int {
	t := m.behind(argTable(L, 1, "maxn"))
	most := float64(t.MaxN())
	for k, _ := next(t, lua.LNumber(most)); k != lua.LNil; k, _ = next(t, k) {
		if n, ok := k.(lua.LNumber); ok && float64(n) > most {
			most = float64(n)
		}
	}
	L.Push(lua.LNumber(most))
	return 1
}

func (m *vm) tableRemove(L *lua.LState) int {
	t := m.behind(argTable(L, 1, "remove"))
	n := t.Len()
	at := int(optInt32(L, 2, "remove", int32(n)))
	if at < 1 || at > n {
		return 0
	}
	m.mustBeOurs(L, t)
	L.Push(t.Remove(at))
	return 1
}

func (m *vm) tableSort(L *lua.LState) int {
	t := argTable(L, 1, "sort")
	n := m.behind(t).Len()
	s := sorter{m: m, L: L, values: make([]lua.LValue, n)}
	if L.Get(2) != lua.LNil {
		s.less = argFunction(L, 2, "sort")
	}
	if n < 2 {
		return 0
	}
	m.mustBeOurs(L, t)
	for i := range s.values {
		s.values[i] = t.RawGetInt(i + 1)
	}
	sort.Sort(&s)
	for i, v := range s.values {
		t.RawSetInt(i+1, v)
	}
	return 0
}

// sorter sorts values with a Lua function, or in Lua's own order.
type sorter struct {
	m      *vm
	L      *lua.LState
	less   *lua.LFunction
	values []lua.LValue
	effort
}

func (s *sorter) Len() int      { return len(s.values) }
func (s *sorter) Swap(i, j int) { s.values[i], s.values[j] = s.values[j], s.values[i] }

func (s *sorter) Less(i, j int) bool {
	s.spend(s.L, 1)
	a, b := s.values[i], s.values[j]
	if s.less != nil {
		return lua.LVAsBool(call(s.L, s.less, a, b))
	}
	switch x := a.(type) {
	case lua.LNumber:
		if y, ok := b.(lua.LNumber); ok {
			return x < y
		}
	case lua.LString:
		if y, ok := b.(lua.LString); ok {
			return x < y
		}
	case *lua.LTable, *lua.LUserData:
		fn := s.L.GetMetaField(a, "__lt")
		if fn != lua.LNil && fn == s.L.GetMetaField(b, "__lt") {
			return lua.LVAsBool(call(s.L, fn, a, b))
		}
	}
	if a.Type() == b.Type() {
		s.m.raise(s.L, lua.LString("attempt to compare two "+a.Type().String()+" values"))
	}
	s.m.raise(s.L, lua.LString("attempt to compare "+a.Type().String()+" with "+b.Type().String()))
	return false
}
