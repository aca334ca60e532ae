//go:build !unix

package process

// CPUSeconds returns the processor time of the process, where the system reports it.
func CPUSeconds() (system, user float64, ok bool) { return 0, 0, false }

// FileLimit returns how many files and sockets the process may have open, where the system reports it.
func FileLimit() (n int64, ok bool) { return 0, false }
