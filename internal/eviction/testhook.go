package eviction

import "math"

// This file is for tests that must control when values leave memory.

// HoldValues(true) keeps all values in memory until HoldValues(false).
func (e *Eviction) HoldValues(hold bool) {
	until := int64(0)
	if hold {
		until = math.MaxInt64
	}
	e.later.Store(until)
}

// WithoutCheckpoints prevents the checkpoints that would make room.
func (e *Eviction) WithoutCheckpoints() { e.asked.Store(math.MaxInt64) }
