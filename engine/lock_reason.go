package engine

import "time"

// LockReason is work that locks shards although no command asked for it.
type LockReason uint8

// The kinds of work.
const (
	// LockedForExpiry removes expired keys and fields.
	LockedForExpiry LockReason = iota
	// LockForCheckpoint begins a checkpoint, or reads a batch for it.
	LockForCheckpoint
	// LockForLoading loads keys into memory after a start.
	LockForLoading
)

// tellLocked reports how long shards were locked for work that began at start and has just ended.
func (ks *Keyspace) tellLocked(by LockReason, start time.Time) {
	if ks.lockedFor != nil {
		ks.lockedFor(by, time.Since(start))
	}
}
