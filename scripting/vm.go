package scripting

import (
	"fmt"
	"strings"

	lua "github.com/yuin/gopher-lua"

	"github.com/atomredis/atomredis/resp"
)

// vm is a Lua virtual machine with Redis's sandbox. It runs one script at a time. Nothing that a script does outlives
// it: globals and libraries are read-only, so everything a script made is garbage when it ends.
type vm struct {
	options *Options
	state   *lua.LState
	// env is the table that scripts see as their globals: an empty table that reads from globals and refuses writes.
	env, globals *lua.LTable
	// environment is the table that functions read globals from: a copy of globals, with the members of the libraries
	// and other values the compiler needs. Scripts can neither write to it nor obtain it: see rewriter.
	environment *lua.LTable
	// protected maps the read-only tables that scripts see to the tables behind them.
	protected map[*lua.LTable]*lua.LTable
	refuse    *lua.LFunction // __newindex of read-only views
	// stringMeta is what scripts see as the metatable of strings, globalsMeta as that of the globals.
	stringMeta, globalsMeta *lua.LTable
	random                  random
	json                    *jsonLibrary
	arrays                  *lua.LTable // see arrayMetatable; nil before the first use
	scratch                 scratch
	threads                 []*lua.LState // idle, for protected calls
	depth                   int           // nested calls that use Go's stack
	interrupt               *Interrupt    // shared by all scripts of the engine
	raised                  raised
	last                    struct { // the script that ran last
		chunk *chunk
		fn    *lua.LFunction
	}

	// The tables KEYS and ARGV; nil before the first script. No script outlives its run, so the next one can reuse
	// them.
	keys, argv *lua.LTable

	// In the machine of the functions: the table that their libraries see as their globals. Its metatable,
	// libraryGlobals, leads to environment or, while a library is loaded, to loadGlobals.
	libraryEnvironment, libraryGlobals, loadGlobals *lua.LTable
	loading                                         *Library // the library being loaded

	// The fields below belong to the running script.

	host   Host
	proto  int
	args   [][]byte // of the command that the script calls; views of arena
	arena  []byte
	script *names            // of the script itself
	names  map[string]*names // of what it has loaded, by chunk name
}

// raised remembers where an error value was raised that does not contain the place.
type raised struct {
	value  lua.LValue
	source string
	line   int
}

const (
	// maxFrames is how deep Lua functions may call each other.
	maxFrames = 8 * 1024
	// maxRegisters bounds the number of values on a stack.
	maxRegisters = 256 * 1024
	// maxDepth bounds the nesting of calls that use Go's stack: protected calls and coroutines.
	maxDepth = 190
	// maxString is the longest string that a library function makes.
	maxString = 128 << 20
	// keepArena is the largest argument buffer kept for the next script.
	keepArena = 64 << 10
)

// lookedUp are the libraries whose members are looked up in two steps (see memberName): their functions take so much
// longer than the lookup that saving memory matters more.
var lookedUp = map[string]bool{"cjson": true, "cmsgpack": true, "struct": true, "coroutine": true, "os": true}

func newVM(options *Options) *vm {
	m := &vm{options: options, protected: map[*lua.LTable]*lua.LTable{}, names: map[string]*names{}}
	L := lua.NewState(lua.Options{SkipOpenLibs: true, CallStackSize: maxFrames, MinimizeStackMemory: true,
		RegistrySize: 128, RegistryMaxSize: maxRegisters, RegistryGrowStep: 2048})
	m.state = L
	if m.interrupt = options.Interrupt; m.interrupt == nil {
		m.interrupt = new(Interrupt)
	}
	L.SetContext((*vmContext)(m))
	m.random.seed(0)
	lua.OpenCoroutine(L)
	coroutines := L.GetGlobal("coroutine").(*lua.LTable)

	m.refuse = L.NewFunction(func(L *lua.LState) int {
		L.RaiseError("%s", readOnlyTable)
		return 0
	})
	m.globals = L.CreateTable(0, 0)
	m.env = m.protect(m.globals)
	m.openBase()
	m.openCoroutines(coroutines)
	m.library("math", m.mathLibrary())
	m.library("table", m.tableLibrary())
	m.openStrings()
	m.openJSON()
	m.library("cmsgpack", m.msgpackLibrary())
	m.library("struct", m.structLibrary())
	m.library("bit", m.bitLibrary())
	m.library("os", m.osLibrary())
	m.library("redis", m.redisLibrary())
	m.globals.RawSetString("_G", m.env)
	m.globals.RawSetString("_VERSION", lua.LString(lua.LuaVersion))

	missing := L.CreateTable(0, 1)
	missing.RawSetString("__index", L.NewFunction(func(L *lua.LState) int {
		L.RaiseError("Script attempted to access nonexistent global variable '%s'", toText(L.Get(2)))
		return 0
	}))
	m.globals.Metatable = missing
	m.globalsMeta = m.protect(missing)

	m.environment = L.CreateTable(0, 0)
	m.environment.Metatable = missing
	m.environment.RawSetString(concatName, L.NewFunction(concatenate))
	m.environment.RawSetString(concatListName, L.NewFunction(concatenateList))
	m.environment.RawSetString(numberName, L.NewFunction(loopNumber))
	m.environment.RawSetString(callName, L.NewFunction(m.redisCallStatement))
	m.environment.RawSetString(globalsName, m.env)
	m.globals.ForEach(func(name, v lua.LValue) {
		m.environment.RawSet(name, v)
		view, ok := v.(*lua.LTable)
		if !ok || v == m.env || lookedUp[name.String()] {
			return
		}
		m.protected[view].ForEach(func(key, member lua.LValue) {
			m.environment.RawSetString(memberName(name.String(), key.String()), member)
		})
	})
	return m
}

// protect returns a read-only view of a table.
func (m *vm) protect(t *lua.LTable) *lua.LTable {
	meta := m.state.CreateTable(0, 2)
	meta.RawSetString("__index", t)
	meta.RawSetString("__newindex", m.refuse)
	view := m.state.CreateTable(0, 0)
	view.Metatable = meta
	m.protected[view] = t
	return view
}

const readOnlyTable = "Attempt to modify a readonly table"

// behind returns the table behind a read-only view, or t itself.
func (m *vm) behind(t *lua.LTable) *lua.LTable {
	if t.Metatable != lua.LNil {
		if real := m.protected[t]; real != nil {
			return real
		}
	}
	return t
}

// mustBeOurs raises an error if t is read-only.
func (m *vm) mustBeOurs(L *lua.LState, t *lua.LTable) {
	if m.behind(t) != t {
		m.raise(L, lua.LString(readOnlyTable))
	}
}

// library adds a read-only table of functions to the globals.
func (m *vm) library(name string, t *lua.LTable) {
	m.globals.RawSetString(name, m.protect(t))
}

// functions adds Go functions to a table.
func (m *vm) functions(t *lua.LTable, functions map[string]lua.LGFunction) *lua.LTable {
	for name, fn := range functions {
		t.RawSetString(name, m.state.NewFunction(fn))
	}
	return t
}

// load makes a function from compiled code.
func (m *vm) load(c *chunk) *lua.LFunction {
	fn := m.state.NewFunctionFromProto(c.proto)
	fn.Env = m.environment
	return fn
}

// run executes a script and writes its reply. It reports whether the machine may be used again.
func (m *vm) run(script *Script, host Host, keys, args [][]byte, w *resp.Writer) (reusable bool) {
	m.script = script.code.names
	return m.execute(script.SHA, host, w, func(L *lua.LState) int {
		if m.keys == nil {
			m.keys, m.argv = L.NewTable(), L.NewTable()
			m.variable("KEYS", m.keys)
			m.variable("ARGV", m.argv)
		}
		fillTable(L, m.keys, keys)
		fillTable(L, m.argv, args)
		if m.last.chunk != script.code {
			m.last.chunk, m.last.fn = script.code, m.load(script.code)
		}
		L.Push(m.last.fn)
		return 0
	})
}

// execute calls the function that prepare pushes, followed by its arguments, and writes the reply. prepare returns the
// number of arguments. name is the script's name in errors. execute reports whether the machine may be used again.
func (m *vm) execute(name string, host Host, w *resp.Writer, prepare func(L *lua.LState) int) (reusable bool) {
	mark := len(w.Buf)
	defer func() {
		if p := recover(); p != nil {
			w.Buf = w.Buf[:mark]
			if p == errStopped {
				m.writeStopped(w, name, lua.LNil)
			} else {
				w.Error(fmt.Sprintf("ERR %v script: %s", p, name))
			}
			reusable = false
		}
	}()
	L := m.state
	m.host, m.proto = host, 2
	err := L.PCall(prepare(L), 1, nil)
	if err == nil {
		m.writeReply(w, L.Get(-1))
		reusable = true
	} else {
		var value lua.LValue
		value, reusable = m.translate(err)
		if m.interrupt.Stopped() {
			m.writeStopped(w, name, value)
			reusable = false
		} else {
			m.writeError(w, name, value)
		}
	}
	m.rest()
	return reusable
}

// rest makes the machine ready for the next script.
func (m *vm) rest() {
	m.state.SetTop(0)
	m.state.G.CurrentThread = m.state
	m.host = nil
	if len(m.names) > 0 {
		clear(m.names)
	}
	m.raised = raised{}
	m.json.config = jsonDefaults
	m.depth = 0
	for i := range m.args {
		m.args[i] = nil
	}
	if cap(m.arena) > keepArena {
		m.arena = nil
	}
}

// variable sets a global.
func (m *vm) variable(name string, v lua.LValue) {
	m.globals.RawSetString(name, v)
	m.environment.RawSetString(name, v)
}

// stringsTable returns a Lua list of strings.
func stringsTable(L *lua.LState, list [][]byte) *lua.LTable {
	t := L.NewTable()
	fillTable(L, t, list)
	return t
}

// fillTable replaces the content of a table by a list of strings.
func fillTable(L *lua.LState, t *lua.LTable, list [][]byte) {
	*t = *L.CreateTable(len(list), 0)
	if len(list) == 0 {
		return
	}
	size := 0
	for _, b := range list {
		size += len(b)
	}
	var all strings.Builder // one allocation for all
	all.Grow(size)
	for _, b := range list {
		all.Write(b)
	}
	rest := all.String()
	for i, b := range list {
		t.RawSetInt(i+1, lua.LString(rest[:len(b)]))
		rest = rest[len(b):]
	}
}

// translate returns the error value of a failed call in the wording of Lua 5.1. It reports false if the call left its
// stack unusable.
func (m *vm) translate(err error) (value lua.LValue, reusable bool) {
	e, ok := err.(*lua.ApiError)
	if !ok {
		return lua.LString(err.Error()), false
	}
	if e.Type == lua.ApiErrorPanic {
		text := e.Object.String()
		if text == callOverflow {
			return lua.LString(overflow(e)), true
		}
		return lua.LString(text), false
	}
	if text, ok := e.Object.(lua.LString); ok && e.Object != m.raised.value {
		return lua.LString(m.reword(string(text))), true
	}
	return e.Object, true
}

// callOverflow is the whole message of the interpreter when calls are nested too deeply.
const callOverflow = "lua callstack overflow"

// overflow is the message for callOverflow, with the place of the innermost function.
func overflow(e *lua.ApiError) string {
	for line := range strings.Lines(e.StackTrace) {
		line = strings.TrimPrefix(line, "\t")
		if source, at := position(line); source != "" && at > 0 {
			return fmt.Sprintf("%s:%d: stack overflow", source, at)
		}
	}
	return "stack overflow"
}

// raise raises a value without a place as an error, and remembers the place for the script's reply.
func (m *vm) raise(L *lua.LState, value lua.LValue) {
	source, line, ok := caller(L)
	if ok {
		m.raised = raised{value, source, line}
	}
	L.Error(value, 0)
}

// raiseReply raises an error that a script's caller sees as an error reply.
func (m *vm) raiseReply(L *lua.LState, text string) {
	m.raise(L, errorTable(L, text))
}

// caller returns the source and line in Lua that called the running Go function.
func caller(L *lua.LState) (source string, line int, ok bool) {
	for level := 0; ; level++ {
		frame, ok := L.GetStack(level)
		if !ok {
			return "", 0, false
		}
		if _, err := L.GetInfo("Sl", frame, lua.LNil); err != nil {
			return "", 0, false
		}
		if frame.What != "G" && frame.Source != "" {
			return frame.Source, frame.CurrentLine, true
		}
	}
}

// tableText returns the text of an error that is a table. Like Redis it accepts numbers as text, and nothing else.
func tableText(t *lua.LTable) string {
	switch v := t.RawGetString("err").(type) {
	case lua.LString, lua.LNumber:
		return toText(v)
	}
	return "ERR unknown error"
}

// writeError writes the reply of a script that ended in an error.
func (m *vm) writeError(w *resp.Writer, name string, value lua.LValue) {
	source, line := "", 0
	if value == m.raised.value {
		source, line = m.raised.source, m.raised.line
	}
	var text string
	switch v := value.(type) {
	case *lua.LTable:
		text = tableText(v)
	default:
		text = "ERR " + toText(v)
		if source == "" {
			source, line = position(toText(v))
		}
	}
	text += " script: " + name
	if source != "" {
		text += fmt.Sprintf(", on %s:%d.", chunkSource(source), line)
	}
	w.Error(text)
}

// writeStopped writes the reply of a stopped script. value is the error that it ended with.
func (m *vm) writeStopped(w *resp.Writer, name string, value lua.LValue) {
	text := "ERR " + m.interrupt.why + " script: " + name
	if source, line := position(value.String()); source != "" {
		text += fmt.Sprintf(", on %s:%d.", chunkSource(source), line)
	}
	w.Error(text)
}

// position reads the source and line at the start of a message.
func position(text string) (source string, line int) {
	rest := text
	offset := 0
	if strings.HasPrefix(text, `[string "`) {
		if offset = strings.Index(text, `"]:`); offset < 0 {
			return "", 0
		}
		offset += 2
	} else if offset = strings.IndexByte(text, ':'); offset < 0 {
		return "", 0
	}
	source, rest = text[:offset], text[offset+1:]
	digits := 0
	for digits < len(rest) && digits < 9 && rest[digits] >= '0' && rest[digits] <= '9' {
		line = line*10 + int(rest[digits]-'0')
		digits++
	}
	if digits == 0 || !strings.HasPrefix(rest[digits:], ":") {
		return "", 0
	}
	return source, line
}

// chunkSource returns a chunk's name as error replies show it, from the form shown in messages.
func chunkSource(shown string) string {
	if s, ok := strings.CutPrefix(shown, `[string "`); ok {
		return strings.TrimSuffix(s, `"]`)
	}
	return "@" + shown
}
