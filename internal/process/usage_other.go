//go:build !unix

package process

// CPUSeconds returns the processor time that the process has used, where the system tells it.
func CPUSeconds() (system, user float64, ok bool) { return 0, 0, false }

// FileLimit returns how many files and sockets the process may have open, where the system tells it.
func FileLimit() (n int64, ok bool) { return 0, false }
