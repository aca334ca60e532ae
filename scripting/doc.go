// Package scripting runs Redis's Lua scripts on gopher-lua. It knows no server: commands that a script calls go to a
// [Host], and replies travel in both directions as encoded RESP.
//
// This package is no API: programs import atomredis, and what is exported here may change in any version.
//
// # Compiling
//
// A script is compiled once per SHA1 and runs on a pooled VM. The parser is our own (parser.go): Lua 5.1 by recursive
// descent, with its limits and messages, so that what Lua refuses is refused at the same token, before it has cost
// more than reading up to there. What gopher-lua's compiler would search for long (thousands of constants in one
// function or of branches in one chain) is counted while it is read, and refused beyond a second's work.
//
// The syntax tree is changed before gopher-lua's compiler gets it (rewriter, compile.go), so that scripts may rely on
// Lua 5.1 where gopher-lua departs from it:
//
//   - Members of libraries, which do not change, become globals of their own, read from a table that no script sees.
//   - Concatenation becomes a call, because gopher-lua prints numbers differently.
//   - Assignments to several variables evaluate everything before they store anything.
//   - Bounds of loops may be strings.
//
// # Interruption
//
// All threads of a VM have one context of our own (interrupt.go), which gopher-lua asks before each instruction
// whether it is done. While nobody wants anything of the script that is the load of one word. A script that is
// stopped raises an error again at every instruction, so no pcall or coroutine catches it. Library functions in Go
// that may run long look at the same word (checkInterrupt, effort), and so does the conversion of the reply. What one
// instruction can do is bounded: strings of 128 MiB, lists of 2^22 elements, sources of 4 MiB.
//
// # Functions
//
// All libraries live in one VM (functions.go), so their local variables last between calls, as in Redis. They read
// globals from a table that shows redis.register_function while a library loads, and everything else when a function
// runs. A call that is stopped, or breaks the VM, discards the VM. Each library is loaded into a new one when one of
// its functions is next called, and is never lost because that fails.
//
// FUNCTION LOAD, DELETE, FLUSH and RESTORE are journalled as they were sent. A checkpoint keeps the sources in the
// store's meta record, in the form of FUNCTION DUMP, taken while the whole keyspace is locked. They are no changes
// for save points.
package scripting
