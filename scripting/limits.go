package scripting

import (
	lua "github.com/yuin/gopher-lua"
)

// Limits of every script, beside its time and its memory, which the caller watches: they bound a single instruction, which
// cannot be interrupted. See also maxFrames, maxString and the other limits of a
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
