package atom

import "golang.org/x/sys/unix"

// monotonicSeconds is the time since the machine was started, the clock by which Python elements on it order their
// queues.
func monotonicSeconds() float64 {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &t); err != nil {
		panic(err) // the kernel has had this clock for as long as Go runs on it
	}
	return float64(t.Sec) + float64(t.Nsec)/1e9
}
