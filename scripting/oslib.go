package scripting

import (
	"time"

	lua "github.com/yuin/gopher-lua"
)

// processStart is when the process began, or nearly so.
var processStart = time.Now()

// osLibrary returns the functions that scripts see as os: the one that does no harm.
func (m *vm) osLibrary() *lua.LTable {
	return m.functions(m.state.CreateTable(0, 8), map[string]lua.LGFunction{"clock": osClock})
}

// osClock returns the seconds since the start of the process. C's clock counts the processor time of all threads
// instead, which for a server with several of them tells a script less about how long it takes.
func osClock(L *lua.LState) int {
	L.Push(lua.LNumber(time.Since(processStart).Seconds()))
	return 1
}
