package atom

import "golang.org/x/sys/unix"

// monotonicSeconds returns the time since the machine was started. Python elements on the same machine order their
// queues by this clock.
func monotonicSeconds() float64 {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &t); err != nil {
		panic(err) // every kernel that Go supports has this clock
	}
	return float64(t.Sec) + float64(t.Nsec)/1e9
}
