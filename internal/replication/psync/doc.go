// Package psync has both ends of Redis's replication. [Followers] is the master's end: the history of the data, and the
// clients that receive it (SYNC, PSYNC, WAIT, FAILOVER). [Replica] is the replica's end: the link to its master. A server
// has both: a replica passes the stream of its master on to its own followers, and REPLICAOF or FAILOVER change the role.
//
// The package sees the server as [MasterHost] and [ReplicaHost], a follower's connection as [Client], and the execution of
// the master's commands as [Executor].
//
// # Followers
//
// A follower (feed.go) receives a full synchronization, an RDB file made from a snapshot (feed_copy.go), and after it the
// stream since that snapshot. The stream is kept in memory until the file is sent. The goroutine that writes the file
// waits for a slow connection; commands never do. The stream (replication.Stream) is made of the journal's records; a
// record of several commands becomes a transaction.
//
// The end of the stream is the backlog (replication.History). A follower that was disconnected continues from it
// with PSYNC. history.go explains how it survives a restart. The stream of a master is a function of the journal's
// records in their order: [Followers.Follow] appends to both under one lock. Whatever else enters the stream (PING),
// and the offset at which it begins, is a note in the journal. After a crash the backlog is therefore made again
// from the journal since the last checkpoint. The stream of a replica is the bytes of its master; its records end
// with their offset instead. A killed master may have sent changes that its journal has lost: it takes a new
// replication ID, and accepts the old one up to its own offset. All servers of a group make this stream from the log
// and send it to their own followers. The leader decides where it begins and when it has a PING; the others report
// to the leader that they have followers.
//
// # Replicas
//
// After REPLICAOF one goroutine, the link (link.go), copies the master's data and executes its commands. The offset counts
// whole transactions. A full synchronization is received into a file and checked before it replaces the data by
// Storage.Replace: a crash leaves the old data or the new. Roles change under a guard over everything, and the executor
// checks the role once it has its own guard: after REPLICAOF NO ONE no command of the former master runs.
package psync

import (
	"log/slog"

	"github.com/atomredis/atomredis/engine"
	"github.com/atomredis/atomredis/internal/config"
	"github.com/atomredis/atomredis/persist/disk"
)

// Options is what both ends need of the server.
type Options struct {
	Config   *config.Config
	Log      *slog.Logger
	Keyspace *engine.Keyspace
	FS       disk.FS // for the file of the backlog
	Storage  Storage // nil if the data is in memory only
	Exporter Exporter
	Master   MasterHost
	Replica  ReplicaHost
}

// Start prepares both ends. It is called once, before the server executes commands.
func Start(f *Followers, r *Replica, o Options) {
	f.start(&o, r)
	r.start(&o, f)
}
