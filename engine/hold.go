package engine

import "time"

// Hold is work that holds commands up although no command does it.
type Hold uint8

// The kinds of work.
const (
	// HoldExpiry removes keys and fields whose time has come.
	HoldExpiry Hold = iota
	// HoldCheckpoint begins a checkpoint, or reads what it stores.
	HoldCheckpoint
	// HoldLoading brings keys into memory after a start.
	HoldLoading
)

// tellHold tells how long shards were locked for work that began at start and has just ended.
func (ks *Keyspace) tellHold(by Hold, start time.Time) {
	if ks.held != nil {
		ks.held(by, time.Since(start))
	}
}
