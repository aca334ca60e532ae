// Package scripting runs Redis's Lua scripts on gopher-lua. It has no server of its own: the commands that a script
// calls go to a [Host], and replies travel in both directions as encoded RESP.
//
// This package is no API: programs import atomredis, and what is exported here may change in any version.
//
// # Compiling
//
// A script is compiled once per SHA1 and runs on a pooled VM. The parser is our own (parser.go): Lua 5.1 by recursive
// descent, with its limits and messages. It refuses a source at the same token as Lua does, having read it only up to
// there. Some sources would keep gopher-lua's compiler searching for long (thousands of constants in one function or of
// branches in one chain). That work is counted while the source is read, and refused beyond about a second.
//
// The syntax tree is changed before gopher-lua's compiler gets it (rewriter, compile.go), so that scripts can rely on
// Lua 5.1 where gopher-lua departs from it:
//
//   - Members of libraries, which do not change, become globals of their own, read from a table that no script sees.
//   - Concatenation becomes a call, because gopher-lua prints numbers differently.
//   - Assignments to several variables evaluate everything before they store anything.
//   - Bounds of loops may be strings.
//
// # Interruption
//
// All threads of a VM share one context of our own (interrupt.go). Before each instruction gopher-lua asks the context
// whether it is done; while nobody wants anything of the script, that is the load of one word. A stopped script raises
// an error again at every instruction, so no pcall or coroutine can catch it. Library functions in Go that may run long
// look at the same word (checkInterrupt, effort), and so does the conversion of the reply. The work of a single
// instruction is bounded: strings of 128 MiB, lists of 2^22 elements, sources of 4 MiB.
//
// # Functions
//
// All libraries live in one VM (functions.go), so their local variables keep their values between calls, as in Redis.
// They read globals from a table that shows redis.register_function while a library loads, and everything else when a
// function runs. A call that is stopped, or breaks the VM, discards the VM. Each library is then loaded into a new VM
// when one of its functions is next called, and a failure to load it does not lose it.
//
// FUNCTION LOAD, DELETE, FLUSH and RESTORE are journalled as they were sent. A checkpoint keeps the sources in the
// store's meta record, in the form of FUNCTION DUMP, taken while the whole keyspace is locked. They do not count as
// changes for save points.
package scripting
