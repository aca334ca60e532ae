package scripting

import (
	"time"

	lua "github.com/yuin/gopher-lua"
)

// processStart is approximately when the process began.
var processStart = time.Now()

// osLibrary returns the functions that scripts see as os: only the harmless one.
func (m *vm) osLibrary() *lua.LTable {
	return m.functions(m.state.CreateTable(0, 8), map[string]lua.LGFunction{"clock": osClock})
}

// osClock returns the seconds since the start of the process. C's clock counts the processor time of all threads
// instead, which in a server with several threads says less about how long a script takes.
func osClock(L *lua.LState) int {
	L.Push(lua.LNumber(time.Since(processStart).Seconds()))
	return 1
}
