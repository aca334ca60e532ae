package scripting

import (
	lua "github.com/yuin/gopher-lua"
)

// basePcall calls a function and turns an error into a value.
func (m *vm) basePcall(L *lua.LState) int {
	argAny(L, 1, "pcall")
	n := L.GetTop()
	args := make([]lua.LValue, n)
	for i := range n {
		args[i] = L.Get(i + 1)
	}
	results, failure := m.protectedCall(L, args)
	if failure == nil {
		L.SetTop(0)
		L.Push(lua.LTrue)
		for _, v := range results {
			L.Push(v)
		}
		return len(results) + 1
	}
	if t, ok := failure.(*lua.LTable); ok {
		if text, ok := t.RawGetString("err").(lua.LString); ok {
			failure = text
		}
	}
	L.SetTop(0)
	L.Push(lua.LFalse)
	L.Push(failure)
	return 2
}

// baseXpcall calls a function, and a handler with the error if there is one.
func (m *vm) baseXpcall(L *lua.LState) int {
	argAny(L, 2, "xpcall")
	handler := L.Get(2)
	results, failure := m.protectedCall(L, []lua.LValue{L.Get(1)})
	ok := failure == nil
	if !ok {
		var again lua.LValue
		if results, again = m.protectedCall(L, []lua.LValue{handler, failure}); again != nil {
			results = []lua.LValue{again}
		}
	}
	L.SetTop(0)
	L.Push(lua.LBool(ok))
	for _, v := range results {
		L.Push(v)
	}
	return len(results) + 1
}

// protectedCall calls args[0] with the other args. It returns the results, or the error value.
//
// The call runs on a stack of its own: when an error passes, the interpreter detaches closures from all variables on
// the same stack, and that must not happen to the variables of functions that continue.
func (m *vm) protectedCall(L *lua.LState, args []lua.LValue) (results []lua.LValue, failure lua.LValue) {
	m.enter(L)
	defer m.leave()
	var th *lua.LState
	if n := len(m.threads); n > 0 {
		th = m.threads[n-1]
		m.threads = m.threads[:n-1]
	} else {
		th = m.newThread(L)
	}
	for _, v := range args {
		th.Push(v)
	}
	reusable, current := true, L.G.CurrentThread
	if err := th.PCall(len(args)-1, lua.MultRet, nil); err != nil {
		failure, reusable = m.translate(err)
	} else {
		results = make([]lua.LValue, th.GetTop())
		for i := range results {
			results[i] = th.Get(i + 1)
		}
	}
	L.G.CurrentThread = current // a coroutine that failed has not restored it
	th.SetTop(0)
	if reusable && len(m.threads) < maxDepth {
		m.threads = append(m.threads, th)
	}
	return results, failure
}

// enter counts a nested call; leave must follow.
func (m *vm) enter(L *lua.LState) {
	if m.depth >= maxDepth {
		fail(L, "C stack overflow")
	}
	m.depth++
}

func (m *vm) leave() { m.depth-- }

// openCoroutines adds the library of coroutines, with a limit to their nesting.
func (m *vm) openCoroutines(t *lua.LTable) {
	bounded := func(fn lua.LGFunction) lua.LGFunction {
		return func(L *lua.LState) int {
			m.enter(L)
			defer m.leave()
			return fn(L)
		}
	}
	create := t.RawGetString("create").(*lua.LFunction)
	create.GFunction = m.interruptible(create.GFunction)
	resume := t.RawGetString("resume").(*lua.LFunction)
	resume.GFunction = bounded(resume.GFunction)
	wrap := t.RawGetString("wrap").(*lua.LFunction)
	original := m.interruptible(wrap.GFunction)
	wrap.GFunction = func(L *lua.LState) int {
		n := original(L)
		if fn, ok := L.Get(-1).(*lua.LFunction); ok {
			fn.GFunction = bounded(m.placed(fn.GFunction))
		}
		return n
	}
	yield := t.RawGetString("yield").(*lua.LFunction)
	leave := yield.GFunction
	yield.GFunction = func(L *lua.LState) int {
		if L.Parent == nil {
			m.raise(L, lua.LString("attempt to yield across metamethod/C-call boundary"))
		}
		return leave(L)
	}
	m.library("coroutine", t)
}

// interruptible wraps a function that creates a coroutine so that the coroutine can be interrupted.
func (m *vm) interruptible(create lua.LGFunction) lua.LGFunction {
	return func(L *lua.LState) (n int) {
		if _, ok := L.Get(1).(*lua.LFunction); !ok {
			return create(L) // which raises an error
		}
		m.withoutContext(L, func() { n = create(L) })
		th := L.Get(-1)
		if fn, ok := th.(*lua.LFunction); ok { // from coroutine.wrap
			th = fn.Upvalues[0].Value()
		}
		th.(*lua.LState).SetContext((*vmContext)(m))
		return n
	}
}

// placed wraps the resuming function of coroutine.wrap so that errors begin with the place where it was called.
func (m *vm) placed(resume lua.LGFunction) lua.LGFunction {
	return func(L *lua.LState) int {
		defer func() {
			p := recover()
			if p == nil {
				return
			}
			e, ok := p.(*lua.ApiError)
			if !ok {
				panic(p)
			}
			L.G.CurrentThread = L
			if text, ok := e.Object.(lua.LString); ok && text == callOverflow {
				m.raise(L, lua.LString(where(L, 1)+overflow(e)))
			} else if ok {
				m.raise(L, lua.LString(where(L, 1)+m.reword(string(text))))
			}
			m.raise(L, e.Object)
		}()
		return resume(L)
	}
}
