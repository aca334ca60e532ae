package engine

import "time"

// LockReason is work that holds commands up although no command does it.
type LockReason uint8

// The kinds of work.
const (
	// LockForExpiry removes keys and fields whose time has come.
	LockedForExpiry LockReason = iota
	// LockForCheckpoint begins a checkpoint, or reads a batch for it.
	LockForCheckpoint
	// LockForLoading brings keys into memory after a start.
	LockForLoading
)

// tellLocked tells how long shards were locked for work that began at start and has just ended.
func (ks *Keyspace) tellLocked(by LockReason, start time.Time) {
	if ks.lockedFor != nil {
		ks.lockedFor(by, time.Since(start))
	}
}
