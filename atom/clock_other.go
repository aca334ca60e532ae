//go:build !linux

package atom

import "time"

// monotonicSeconds is the time of day where the clock by which Python elements order their queues is not at hand.
func monotonicSeconds() float64 { return float64(time.Now().UnixNano()) / 1e9 }
