// Package scripts has scripts and functions: their state in the server (Scripts), and the commands EVAL, SCRIPT,
// FCALL and FUNCTION. Package scripting has Lua itself. The client's session executes the commands that a script
// calls.
//
// # Scripts that run for long
//
// A script holds the whole keyspace, and at most one runs (run.go). While scripts are in use, a timer checks every
// ten milliseconds whether the same script still runs; a short script reads no clock. A script that runs beyond
// busy-reply-threshold makes the server busy: commands without the flag AllowBusy are refused before they take a
// guard (Scripts.Refusal), and so are those that wait for the keyspace when the limit passes (Scripts.Lock). SCRIPT
// KILL and FUNCTION KILL stop a script that has not called a command that writes. Both sides take the same mutex, so
// a killed script has written nothing. Closing the server stops any script, which keeps what it wrote. When the heap
// has grown by script-memory-limit bytes, the script is suspended and garbage is collected; if the growth is still
// too large, the script is stopped (memory.go).
//
// The watcher also makes the transport relieve its goroutines that wait for the script. WATCH, UNWATCH and DISCARD
// get their reply at once, and take effect at the end of the script's guard (Scripts.Under).
package scripts
