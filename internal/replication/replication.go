// Package replication has the visible state of masters and replicas, and the stream of commands that followers
// execute. Package psync has both ends of the connection.
package replication

import (
	"sync/atomic"
	"time"
)

// LinkState is the state of a replica's link to its master.
type LinkState uint8

// The states of a link.
const (
	LinkConnect LinkState = iota // it waits, or is about to connect
	LinkConnecting
	LinkHandshake
	LinkSync
	LinkConnected
)

// String returns its word in ROLE.
func (s LinkState) String() string {
	return [...]string{"connect", "connecting", "handshake", "sync", "connected"}[s]
}

// Link is the visible state of the link to a master.
type Link struct {
	Host           string
	Port           int
	State          LinkState
	Offset         int64     // in the master's history, of what has been executed; -1 before the first copy
	Heard          time.Time // when the master sent something
	Down           time.Time // since when the link is not connected
	Problem        string    // why it broke last; "" once it is connected
	Size, Received int64     // of the copy under way, in bytes; an unknown size is -1
}

// FollowerState is the state of a follower.
type FollowerState uint8

// The states of a follower.
const (
	FollowerWaiting FollowerState = iota // for the copy to begin
	FollowerCopy                         // the copy is being made or sent
	FollowerOnline
)

// String returns its word in INFO.
func (s FollowerState) String() string { return [...]string{"wait_bgsave", "send_bulk", "online"}[s] }

// Follower is the visible state of a follower.
type Follower struct {
	Host  string
	Port  int64 // 0 if it has announced none
	State FollowerState
	Acked int64 // the offset that it has executed
	Lag   int64 // seconds since that acknowledgement
}

// Written is the place of a client's changes.
type Written struct {
	Offset   int64  // in the stream for followers
	Position uint64 // in the journal of the group; 0 without a group, or before the first change
}

// Capabilities are what a follower has announced with REPLCONF. Only the client's goroutine uses them, except the
// atomic fields.
type Capabilities struct {
	// Port is where the follower listens (listening-port), 0 without one, and Host its address (ip-address), nil without one.
	Port atomic.Int64
	Host atomic.Pointer[string]
	// EOF (capa eof): the follower reads an RDB file of unknown length, up to a mark.
	EOF bool
	// PSYNC2 (capa psync2): the follower accepts a new replication ID when it continues.
	PSYNC2 bool
	// Ours (group): the follower is one of this program.
	Ours bool
	// Valkey (version) is the version of a Valkey, with a byte for each part; 0 if the follower does not tell it.
	Valkey int
	// CopyOnly (rdb-only): the follower wants the data, without the stream.
	CopyOnly bool
	// Filtered (rdb-filter-only): the follower wants no keys, and functions only with Functions.
	Filtered, Functions bool
}

// Pristine reports whether nothing was announced.
func (c *Capabilities) Pristine() bool {
	return c.Port.Load() == 0 && c.Host.Load() == nil && !c.EOF && !c.PSYNC2 && !c.CopyOnly && !c.Filtered
}
