//go:build !linux

package atom

import "time"

// monotonicSeconds returns the time of day, because the clock of Python elements is not available here.
func monotonicSeconds() float64 { return float64(time.Now().UnixNano()) / 1e9 }
