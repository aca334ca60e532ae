// Package durable links storage on disk, archives and groups of servers into a program that imports it. A server without it keeps
// its data in memory, and refuses a data directory.
package durable

import (
	_ "github.com/atomredis/atomredis/internal/archive/objects"  // registers with internal/archive
	_ "github.com/atomredis/atomredis/internal/replication/raft" // registers with internal/replication/quorum
	_ "github.com/atomredis/atomredis/persist/store/lsm"         // registers with persist/store
)
