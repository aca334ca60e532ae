package scripting

import (
	lua "github.com/yuin/gopher-lua"
)

// Limits of every script, besides those of time and memory, which the caller enforces. They bound a single instruction,
// which cannot be interrupted. See also maxFrames, maxString and the other limits of a virtual machine.
const (
	// maxSource is the most bytes of a source that is compiled. Compiling it takes about a second.
	maxSource = 4 << 20
	// maxList is the most elements of a table's list part, 64 MB of them. The length operator does not count elements
	// beyond.
	maxList = 1<<22 - 1
)

// The interpreter fills a list up to any assigned index, by default up to 2^26, a gigabyte, in one instruction.
func init() { lua.MaxArrayIndex = maxList + 1 }
