package scripting

import (
	lua "github.com/yuin/gopher-lua"
)

// Limits that hold for every script, beside its time and its memory, which whoever runs it watches: they bound what
// one instruction can do, for nobody can interrupt that. See also maxFrames, maxString and the other limits of a
// virtual machine.
const (
	// maxSource is the longest source in bytes that is compiled. Compiling it takes about a second.
	maxSource = 4 << 20
	// maxList is how many elements the list part of a table can have, 64 MB of them. The length operator counts no
	// elements behind that.
	maxList = 1<<22 - 1
)

// The interpreter fills a list up to whatever index is assigned, and would do so up to 2^26, a gigabyte, in one
// instruction.
func init() { lua.MaxArrayIndex = maxList + 1 }
