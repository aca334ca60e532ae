package engine

import (
	"time"

	"github.com/atomredis/atomredis/engine/clock"
)

// The clocks of package clock, which the keyspace and everything around it use.
type (
	Clock       = clock.Clock
	Timer       = clock.Timer
	SystemClock = clock.System
	ManualClock = clock.Manual
)

// NewManualClock returns a clock for tests that shows start and moves only by Advance.
func NewManualClock(start time.Time) *ManualClock { return clock.NewManual(start) }
