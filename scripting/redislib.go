package scripting

import (
	"crypto/sha1"
	"encoding/hex"
	"strings"

	lua "github.com/yuin/gopher-lua"
)

// redisLibrary returns the functions and constants that scripts see as redis.
func (m *vm) redisLibrary() *lua.LTable {
	t := m.functions(m.state.CreateTable(0, 24), map[string]lua.LGFunction{
		"call":               m.redisCall,
		"pcall":              m.redisPcall,
		"acl_check_cmd":      m.redisACLCheckCmd,
		"debug":              func(*lua.LState) int { return 0 }, // there is no debugger
		"error_reply":        redisErrorReply,
		"status_reply":       redisStatusReply,
		"sha1hex":            m.redisSHA1Hex,
		"log":                m.redisLog,
		"setresp":            m.redisSetResp,
		"set_repl":           m.redisSetRepl,
		"replicate_commands": func(L *lua.LState) int { L.Push(lua.LTrue); return 1 },
		"breakpoint":         func(L *lua.LState) int { L.Push(lua.LFalse); return 1 },
	})
	for name, n := range map[string]int{
		"LOG_DEBUG": int(LevelDebug), "LOG_VERBOSE": int(LevelVerbose), "LOG_NOTICE": int(LevelNotice),
		"LOG_WARNING": int(LevelWarning),
		"REPL_NONE":   0, "REPL_AOF": 1, "REPL_SLAVE": 2, "REPL_REPLICA": 2, "REPL_ALL": replAll,
		"REDIS_VERSION_NUM": m.options.VersionNum,
	} {
		t.RawSetString(name, lua.LNumber(n))
	}
	t.RawSetString("REDIS_VERSION", lua.LString(m.options.Version))
	return t
}

const replAll = 3

// redisCall executes a command and raises its error reply as an error.
func (m *vm) redisCall(L *lua.LState) int {
	v := m.command(L)
	if t, ok := v.(*lua.LTable); ok && t.RawGetString("err") != lua.LNil {
		m.raise(L, t)
	}
	L.Push(v)
	return 1
}

// redisCallStatement is redisCall for statements: the reply is not used, so it need not be converted.
func (m *vm) redisCallStatement(L *lua.LState) int {
	if text := m.readArgs(L); text != "" {
		m.raiseReply(L, text)
	}
	if reply := m.host.Call(m.args, m.proto); reply[0] == '-' {
		failure, _ := m.fromReply(L, reply)
		m.raise(L, failure)
	}
	return 0
}

// redisPcall executes a command and returns its error reply as a value.
func (m *vm) redisPcall(L *lua.LState) int {
	L.Push(m.command(L))
	return 1
}

// command executes the command given by the arguments. An error is a table with the field err.
func (m *vm) command(L *lua.LState) lua.LValue {
	if text := m.readArgs(L); text != "" {
		return errorTable(L, text)
	}
	v, _ := m.fromReply(L, m.host.Call(m.args, m.proto))
	return v
}

// Errors of redis.acl_check_cmd.
const (
	UnknownToCheck    = "Invalid command passed to"
	WrongArityToCheck = "Wrong number of args for"
)

// redisACLCheckCmd reports whether a command may be executed.
func (m *vm) redisACLCheckCmd(L *lua.LState) int {
	if text := m.readArgs(L); text != "" {
		m.raiseReply(L, text)
	}
	allowed, wrong := m.host.Check(m.args)
	if wrong != "" {
		m.raiseReply(L, "ERR "+wrong+" redis.acl_check_cmd()")
	}
	L.Push(lua.LBool(allowed))
	return 1
}

// readArgs turns the arguments of the running function into those of a command. If that is impossible it returns why.
func (m *vm) readArgs(L *lua.LState) (failure string) {
	n := L.GetTop()
	if n == 0 {
		return "ERR Please specify at least one argument for this redis lib call"
	}
	m.arena, m.args = m.arena[:0], m.args[:0]
	for i := 1; i <= n; i++ {
		start := len(m.arena)
		switch v := L.Get(i).(type) {
		case lua.LString:
			m.arena = append(m.arena, v...)
		case lua.LNumber:
			m.arena = appendArgument(m.arena, float64(v))
		default:
			return "ERR Lua redis lib command arguments must be strings or integers"
		}
		m.args = append(m.args, m.arena[start:len(m.arena):len(m.arena)])
	}
	return "" // an argument added before the arena moved keeps the old memory, which stays valid and unchanged
}

func redisErrorReply(L *lua.LState) int {
	text, ok := L.Get(1).(lua.LString)
	if !ok || L.GetTop() != 1 {
		L.Push(errorTable(L, "ERR wrong number or type of arguments"))
		return 1
	}
	s := strings.TrimPrefix(string(text), "-")
	if !strings.Contains(s, " ") {
		s = "ERR " + s
	}
	L.Push(errorTable(L, s))
	return 1
}

func redisStatusReply(L *lua.LState) int {
	text, ok := L.Get(1).(lua.LString)
	if !ok || L.GetTop() != 1 {
		L.Push(errorTable(L, "ERR wrong number or type of arguments"))
		return 1
	}
	t := L.CreateTable(0, 1)
	t.RawSetString("ok", text)
	L.Push(t)
	return 1
}

func (m *vm) redisSHA1Hex(L *lua.LState) int {
	if L.GetTop() != 1 {
		m.raiseReply(L, "ERR wrong number of arguments")
	}
	var s string
	switch v := L.Get(1).(type) {
	case lua.LString, lua.LNumber:
		s = toText(v)
	}
	digest := sha1.Sum([]byte(s))
	L.Push(lua.LString(hex.EncodeToString(digest[:])))
	return 1
}

func (m *vm) redisLog(L *lua.LState) int {
	if L.GetTop() < 2 {
		m.raiseReply(L, "ERR redis.log() requires two arguments or more.")
	}
	level, ok := toNumber(L.Get(1))
	if !ok {
		m.raiseReply(L, "ERR First argument must be a number (log level).")
	}
	if level < float64(LevelDebug) || level > float64(LevelWarning) {
		m.raiseReply(L, "ERR Invalid log level.")
	}
	var words []string
	for i := 2; i <= L.GetTop(); i++ {
		switch v := L.Get(i).(type) {
		case lua.LString, lua.LNumber:
			words = append(words, toText(v))
		}
	}
	if m.options.Log != nil {
		m.options.Log(Level(level), strings.Join(words, " "))
	}
	return 0
}

func (m *vm) redisSetResp(L *lua.LState) int {
	if L.GetTop() != 1 {
		m.raiseReply(L, "ERR redis.setresp() requires one argument.")
	}
	n, ok := toNumber(L.Get(1))
	if !ok || n != 2 && n != 3 {
		m.raiseReply(L, "ERR RESP version must be 2 or 3.")
	}
	m.proto = int(n)
	return 0
}

// redisSetRepl checks its argument, and does nothing else: the journal does not depend on the script.
func (m *vm) redisSetRepl(L *lua.LState) int {
	if L.GetTop() != 1 {
		m.raiseReply(L, "ERR redis.set_repl() requires one argument.")
	}
	n, _ := toNumber(L.Get(1))
	if n < 0 || n > replAll {
		m.raiseReply(L, "ERR Invalid replication flags. Use REPL_AOF, REPL_REPLICA, REPL_ALL or REPL_NONE.")
	}
	return 0
}
