//go:build !unix

package server

// cpuSeconds returns how long the process has used processors, where the system tells.
func cpuSeconds() (system, user float64, ok bool) { return 0, 0, false }

// fileLimit returns how many files and sockets the process may have open, where the system tells.
func fileLimit() (n int64, ok bool) { return 0, false }
