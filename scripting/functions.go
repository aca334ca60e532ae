package scripting

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	lua "github.com/yuin/gopher-lua"

	"github.com/atomredis/atomredis/resp"
)

// Functions are the libraries of functions of a server, as in Redis 7. All of them live in one virtual machine, so that
// the local variables of a library keep their values from one call to the next, until a call is stopped from outside.
// The caller must ensure that Load, Delete, Flush, Replace and Run exclude each other. The other methods may be called
// at any time.
type Functions struct {
	options *Options

	mu        sync.Mutex // protects these fields; only one goroutine at a time changes them, and it reads them unlocked
	m         *vm        // nil before a library is loaded
	libraries map[string]*Library
	functions map[string]*Function // by name in lower case
}

// Library is a library of functions. Its exported fields do not change.
type Library struct {
	// Name is the name in the first line of the source.
	Name string
	// Code is the source, including the first line.
	Code string
	// Functions are the registered functions, ordered by name.
	Functions []*Function

	chunk *chunk
}

// Function is a function of a library.
type Function struct {
	// Name is unique among all libraries, whatever its case.
	Name string
	// Description is the library's description of it; nil if there is none.
	Description *string
	// Flags are the flags the library gave it.
	Flags Flags

	names   *names
	library *Library
	fn      *lua.LFunction // nil if the library must be loaded again first; see restart
}

// Names returns the names of the flags that are set, as Redis lists them.
func (f Flags) Names() []string {
	var list []string
	for i := range flagOrder {
		if f&(1<<i) != 0 {
			list = append(list, flagOrder[i])
		}
	}
	return list
}

// flagOrder has the names of the flags in the order of their bits.
var flagOrder = [...]string{"no-writes", "allow-oom", "allow-stale", "no-cluster", "allow-cross-slot-keys"}

// loadTimeout is the most time a library may take to register its functions.
const loadTimeout = 500 * time.Millisecond

// functionsName is the name of a library's source in messages.
const functionsName = "user_function"

// NewFunctions returns Functions without libraries.
func NewFunctions(options Options) *Functions {
	if options.Interrupt == nil {
		options.Interrupt = new(Interrupt)
	}
	return &Functions{options: &options, libraries: map[string]*Library{}, functions: map[string]*Function{}}
}

// Load compiles a library and lets it register its functions. If replace is set, it replaces a library of the same
// name. The error is the text of an error reply; nothing has changed then.
func (f *Functions) Load(code string, replace bool) (*Library, error) {
	l, err := f.parse(code)
	if err != nil {
		return nil, err
	}
	old := f.libraries[l.Name]
	if old != nil && !replace {
		return nil, fmt.Errorf("ERR Library '%s' already exists", l.Name)
	}
	if l.chunk, err = compile(l.chunkSource(), functionsName); err != nil {
		return nil, fmt.Errorf("ERR Error compiling function: %w", err)
	}
	f.options.Interrupt.Reset()
	defer f.options.Interrupt.Reset() // after a timeout
	if err := f.register(l); err != nil {
		return nil, err
	}
	for _, fn := range l.Functions {
		if f.functions[strings.ToLower(fn.Name)] != nil && (old == nil || !old.has(fn.Name)) {
			return nil, fmt.Errorf("ERR Function %s already exists", fn.Name)
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.remove(old)
	f.add(l)
	return l, nil
}

// Replace replaces all libraries by those with the given sources. If that fails nothing has changed.
func (f *Functions) Replace(codes []string) error {
	other := NewFunctions(*f.options)
	for _, code := range codes {
		if _, err := other.Load(code, false); err != nil {
			return err
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.m, f.libraries, f.functions = other.m, other.libraries, other.functions
	return nil
}

// Delete removes a library, and reports whether there was one of that name.
func (f *Functions) Delete(name string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	l := f.libraries[name]
	f.remove(l)
	return l != nil
}

// Flush removes all libraries.
func (f *Functions) Flush() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.m = nil
	clear(f.libraries)
	clear(f.functions)
}

// Find returns the function of that name, in any case, or nil.
func (f *Functions) Find(name []byte) *Function {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.functions[strings.ToLower(string(name))]
}

// Count returns the numbers of libraries and functions.
func (f *Functions) Count() (libraries, functions int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.libraries), len(f.functions)
}

// VMs returns the number of virtual machines.
func (f *Functions) VMs() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.m == nil {
		return 0
	}
	return 1
}

// Libraries returns all libraries, ordered by name.
func (f *Functions) Libraries() []*Library {
	f.mu.Lock()
	defer f.mu.Unlock()
	list := make([]*Library, 0, len(f.libraries))
	for _, l := range f.libraries {
		list = append(list, l)
	}
	slices.SortFunc(list, func(a, b *Library) int { return strings.Compare(a.Name, b.Name) })
	return list
}

// Run calls a function and writes exactly one reply to w. keys and args are not kept.
func (f *Functions) Run(fn *Function, host Host, keys, args [][]byte, w *resp.Writer) {
	if fn.fn == nil {
		if err := f.reload(fn); err != nil {
			w.Error(err.Error())
			return
		}
	}
	m := f.m
	m.libraryGlobals.RawSetString("__index", m.environment)
	m.script = fn.names
	reusable := m.execute(fn.Name, host, w, func(L *lua.LState) int {
		L.Push(fn.fn)
		L.Push(stringsTable(L, keys))
		L.Push(stringsTable(L, args))
		return 2
	})
	if !reusable {
		f.restart()
	}
}

// restart discards the virtual machine. The libraries stay: each is loaded into a new one when one of its functions is
// next called. Loading them now may be impossible, for example while the server is being closed.
func (f *Functions) restart() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.m = nil
	for _, fn := range f.functions {
		fn.fn = nil
	}
}

// reload loads the library of a function into the present virtual machine.
func (f *Functions) reload(fn *Function) error {
	l := fn.library
	again := &Library{Name: l.Name, chunk: l.chunk}
	if err := f.register(again); err != nil {
		return err
	}
	for _, loaded := range again.Functions {
		for _, known := range l.Functions {
			if known.Name == loaded.Name {
				known.fn = loaded.fn
			}
		}
	}
	if fn.fn == nil { // the library registers other functions each time
		return fmt.Errorf("ERR Error registering functions: library '%s' has not registered function '%s' again", l.Name,
			fn.Name)
	}
	return nil
}

func (f *Functions) add(l *Library) {
	f.libraries[l.Name] = l
	for _, fn := range l.Functions {
		f.functions[strings.ToLower(fn.Name)] = fn
	}
}

func (f *Functions) remove(l *Library) {
	if l == nil {
		return
	}
	delete(f.libraries, l.Name)
	for _, fn := range l.Functions {
		delete(f.functions, strings.ToLower(fn.Name))
	}
}

func (l *Library) has(name string) bool {
	return slices.ContainsFunc(l.Functions, func(fn *Function) bool { return strings.EqualFold(fn.Name, name) })
}

// chunkSource returns the source without the first line, whose line break stays to keep the line numbers.
func (l *Library) chunkSource() string { return l.Code[strings.IndexByte(l.Code, '\n'):] }

// errLibraryName is the error for an invalid name of a library or function.
const errLibraryName = "ERR Library names can only contain letters, numbers, or underscores(_) and must be at least one character long"

// parse reads the first line of a library, "#!lua name=library".
func (f *Functions) parse(code string) (*Library, error) {
	if !strings.HasPrefix(code, "#!") {
		return nil, fmt.Errorf("ERR Missing library metadata")
	}
	line, _, ok := strings.Cut(code, "\n")
	if !ok {
		return nil, fmt.Errorf("ERR Invalid library metadata")
	}
	words, err := resp.SplitArgs([]byte(line), nil)
	if err != nil || len(words) == 0 {
		return nil, fmt.Errorf("ERR Invalid library metadata")
	}
	l := &Library{Code: code}
	named := false
	for _, word := range words[1:] {
		name, ok := cutPrefixFold(string(word), "name=")
		switch {
		case !ok:
			return nil, fmt.Errorf("ERR Invalid metadata value given: %s", word)
		case named:
			return nil, fmt.Errorf("ERR Invalid metadata value, name argument was given multiple times")
		}
		l.Name, named = name, true
	}
	switch {
	case !named:
		return nil, fmt.Errorf("ERR Library name was not given")
	case !validName(l.Name):
		return nil, errors.New(errLibraryName)
	case !strings.EqualFold(string(words[0]), "#!lua"):
		return nil, fmt.Errorf("ERR Engine '%s' not found", words[0][2:])
	}
	return l, nil
}

func cutPrefixFold(s, prefix string) (rest string, ok bool) {
	if len(s) < len(prefix) || !strings.EqualFold(s[:len(prefix)], prefix) {
		return "", false
	}
	return s[len(prefix):], true
}

// validName reports whether a name is valid for a library or a function.
func validName(name string) bool {
	for i := range len(name) {
		c := name[i]
		if (c|0x20 < 'a' || c|0x20 > 'z') && (c < '0' || c > '9') && c != '_' {
			return false
		}
	}
	return name != ""
}

// register runs a library's source, which registers its functions, unless the interrupt stops it. After a timeout it
// leaves the interrupt stopped: if the library was loaded for a call, the call then ends too.
func (f *Functions) register(l *Library) error {
	m := f.m
	if m == nil {
		m = newVM(f.options)
		m.openFunctions()
		f.mu.Lock()
		f.m = m
		f.mu.Unlock()
	}
	late := make(chan struct{})
	timer := time.AfterFunc(loadTimeout, func() {
		m.interrupt.Stop("FUNCTION LOAD timeout")
		close(late)
	})
	m.libraryGlobals.RawSetString("__index", m.loadGlobals)
	m.loading, m.script = l, l.chunk.names
	fn := m.state.NewFunctionFromProto(l.chunk.proto)
	fn.Env = m.libraryEnvironment
	m.state.Push(fn)
	err := m.state.PCall(0, 0, nil)
	if !timer.Stop() {
		<-late // it must not stop another script
	}
	m.loading = nil
	defer m.rest()
	stoppedWhy := ""
	if m.interrupt.Stopped() {
		stoppedWhy = m.interrupt.why
	}
	if err != nil {
		value, reusable := m.translate(err)
		text := toText(value)
		if t, ok := value.(*lua.LTable); ok {
			text = tableText(t)
		} else {
			text = "ERR " + text
		}
		if stoppedWhy != "" {
			text = "ERR " + stoppedWhy
		}
		if !reusable {
			defer f.restart()
		}
		return fmt.Errorf("ERR Error registering functions: %s", text)
	}
	if len(l.Functions) == 0 {
		return fmt.Errorf("ERR No functions registered")
	}
	slices.SortFunc(l.Functions, func(a, b *Function) int { return strings.Compare(a.Name, b.Name) })
	return nil
}

// openFunctions prepares the virtual machine for libraries. Their functions read globals from a table that shows
// different things while the library is loaded and when the function is called.
func (m *vm) openFunctions() {
	L := m.state
	m.libraryGlobals, m.libraryEnvironment = L.NewTable(), L.NewTable()
	m.libraryEnvironment.Metatable = m.libraryGlobals

	missing := L.CreateTable(0, 1)
	missing.RawSetString("__index", L.NewFunction(func(L *lua.LState) int {
		name := toText(L.Get(2))
		if name == callName {
			name = memberName("redis", "call")
		}
		if library, member, ok := strings.Cut(name, "."); ok { // see memberName
			if name = library; library == "redis" {
				name = member
			}
		}
		L.RaiseError("Script attempted to access nonexistent global variable '%s'", name)
		return 0
	}))
	redis := m.functions(L.NewTable(), map[string]lua.LGFunction{"register_function": m.registerFunction})
	full := m.behind(m.globals.RawGetString("redis").(*lua.LTable))
	full.ForEach(func(name, v lua.LValue) {
		if v.Type() != lua.LTFunction && !strings.HasPrefix(name.String(), "REPL_") || name == lua.LString("log") {
			redis.RawSet(name, v)
		}
	})
	redis.Metatable = missing
	m.loadGlobals = L.NewTable()
	m.loadGlobals.Metatable = missing
	for _, name := range []string{concatName, concatListName, globalsName, numberName} {
		m.loadGlobals.RawSetString(name, m.environment.RawGetString(name))
	}
	m.loadGlobals.RawSetString("redis", m.protect(redis))
	redis.ForEach(func(name, v lua.LValue) { m.loadGlobals.RawSetString(memberName("redis", name.String()), v) })
}

// registerFunction is redis.register_function: a name and a function, or a table with named arguments.
func (m *vm) registerFunction(L *lua.LState) int {
	if m.loading == nil {
		// A function may have kept a reference that only a loading library is meant to see.
		m.raiseReply(L, "ERR redis.register_function can only be called on FUNCTION LOAD command")
	}
	fn := &Function{names: m.loading.chunk.names, library: m.loading}
	switch L.GetTop() {
	case 1:
		t, ok := L.Get(1).(*lua.LTable)
		if !ok {
			m.raiseReply(L, "ERR calling redis.register_function with a single argument is only applicable to Lua table (representing named arguments).")
		}
		m.readNamed(L, fn, t)
	case 2:
		if !lua.LVCanConvToString(L.Get(1)) {
			m.raiseReply(L, "ERR first argument to redis.register_function must be a string")
		}
		fn.Name = toText(L.Get(1))
		callback, ok := L.Get(2).(*lua.LFunction)
		if !ok {
			m.raiseReply(L, "ERR second argument to redis.register_function must be a function")
		}
		fn.fn = callback
	default:
		m.raiseReply(L, "ERR wrong number of arguments to redis.register_function")
	}
	switch {
	case !validName(fn.Name):
		m.raiseReply(L, errLibraryName)
	case m.loading.has(fn.Name):
		m.raiseReply(L, "ERR Function already exists in the library")
	}
	m.loading.Functions = append(m.loading.Functions, fn)
	return 0
}

// readNamed reads the named arguments of redis.register_function.
func (m *vm) readNamed(L *lua.LState, fn *Function, t *lua.LTable) {
	named := false
	for k, v := next(t, lua.LNil); k != lua.LNil; k, v = next(t, k) {
		text, isText := "", lua.LVCanConvToString(v)
		if isText {
			text = toText(v)
		}
		name, _ := k.(lua.LString)
		switch strings.ToLower(string(name)) {
		case "function_name":
			if !isText {
				m.raiseReply(L, "ERR function_name argument given to redis.register_function must be a string")
			}
			fn.Name, named = text, true
		case "description":
			if !isText {
				m.raiseReply(L, "ERR description argument given to redis.register_function must be a string")
			}
			fn.Description = &text
		case "callback":
			callback, ok := v.(*lua.LFunction)
			if !ok {
				m.raiseReply(L, "ERR callback argument given to redis.register_function must be a function")
			}
			fn.fn = callback
		case "flags":
			list, ok := v.(*lua.LTable)
			if !ok {
				m.raiseReply(L, "ERR flags argument to redis.register_function must be a table representing function flags")
			}
			for i := 1; list.RawGetInt(i) != lua.LNil; i++ {
				flag, ok := flagNames[list.RawGetInt(i).String()]
				if !ok {
					m.raiseReply(L, "ERR unknown flag given")
				}
				fn.Flags |= flag
			}
		default:
			m.raiseReply(L, "ERR unknown argument given to redis.register_function")
		}
	}
	switch {
	case !named:
		m.raiseReply(L, "ERR redis.register_function must get a function name argument")
	case fn.fn == nil:
		m.raiseReply(L, "ERR redis.register_function must get a callback argument")
	}
}
