// Package stats counts what a server does, and how long it takes: the calls and durations of commands, error
// replies, the slow log, and the latency monitor. Everything may be used by any goroutine. Durations are in ns
// unless a name says otherwise.
package stats
