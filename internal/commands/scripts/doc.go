// Package scripts has scripts and functions: their state in the server (Scripts), and the commands EVAL, SCRIPT, FCALL and
// FUNCTION. Lua itself is package scripting. The client's session executes the commands that a script calls.
//
// # Scripts that run for long
//
// A script holds the whole keyspace, and at most one runs (run.go). While scripts are in use a timer looks every ten
// milliseconds whether the script is still the same one; a short script costs no clock. A script that runs beyond
// busy-reply-threshold makes the server busy: commands without the flag AllowBusy are refused before they take a guard
// (Scripts.Refusal), and so are those that wait for the keyspace when the limit passes (Scripts.Lock). SCRIPT KILL
// and FUNCTION KILL stop a script that has not called a command that writes. Both sides take the same mutex, so a killed
// script has written nothing. Closing the server stops any script, which keeps what it wrote. Beyond script-memory-limit
// bytes of heap growth the script is held up, garbage is collected, and the script is stopped if it is still beyond
// (memory.go).
//
// The watcher also has the transport relieve those of its goroutines that the script holds up. WATCH, UNWATCH and
// DISCARD are answered at once; the script's guard puts them into effect at its end (Scripts.Under).
package scripts
