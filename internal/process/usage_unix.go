//go:build unix

package process

import "golang.org/x/sys/unix"

// CPUSeconds returns the processor time of the process, where the system reports it.
func CPUSeconds() (system, user float64, ok bool) {
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		return 0, 0, false
	}
	seconds := func(t unix.Timeval) float64 { return float64(t.Sec) + float64(t.Usec)/1e6 }
	return seconds(u.Stime), seconds(u.Utime), true
}

// FileLimit returns how many files and sockets the process may have open, where the system reports it.
func FileLimit() (n int64, ok bool) {
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		return 0, false
	}
	return int64(limit.Cur), true
}
