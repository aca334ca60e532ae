// Package server is the Redis server: it composes the parts, starts and stops them, and says INFO. Sessions, which turn
// bytes into commands, are package internal/session. The handlers are packages of their own, under commands and protocols;
// commands.go imports them.
//
// This package is no API: programs import atomredis, and what is exported here may change in any version.
//
// Calls go downward: transport → session → handler → engine. A reply for a blocked client or a published message, which goes
// upward, is left in the session's mailbox, and its transport is woken.
//
// # Sessions and commands
//
// The server makes what its sessions share (New in server.go), sets the parts, and is their session.Host. It is the
// command.Host of all handlers, and the Host that packages of handlers declare (host.go). A method stands in the file of the
// state that it is about.
//
// # Rooms
//
// The parts are packages of their own. Each sees the server through an interface of a few methods. A file here has what
// one of them needs:
//
//   - transports.go: internal/transport has event loops, and goroutines for each connection. A connection that a program
//     hands over always has goroutines. A server without listeners has no loops, whose threads would keep a testing/synctest
//     bubble from being idle. Timers (blocked clients, pauses) follow the injected clock.
//   - doors.go: internal/doors opens and closes doors. The server opens them in Start and has them serve once the data is
//     there. A door names the classes of events it needs. They are published while it is open. Classes that
//     notify-keyspace-events does not name go to subscribers behind doors only (pubsub.Hub.PublishToDoors).
//   - refuse.go: the limits of clients and connections, those of doors among them, and protected-mode.
//   - replication.go: internal/replication/psync has both ends of Redis's replication. A session.Executor executes the
//     commands of a master.
//   - group.go: internal/replication/quorum agrees on a journal; the server is its Machine. What the server then knows of
//     its group is internal/replication/membership.
//   - shards.go, slots.go: internal/cluster/shards has the record of shards and learns of the others.
//   - migrate.go: internal/cluster/migrate moves slots that have keys between shards.
//   - forward.go: internal/cluster/forward sends commands of a follower's clients to the leader.
//   - broadcast.go: internal/cluster/peers has the questions that servers ask each other, and passes published messages on.
//   - transfer.go, snapshot.go: internal/transfer reads and writes the files of a Redis. What it imports at start is read
//     inside persist.Storage.Recover: it is in the first checkpoint, as a whole, before anything is journalled.
//   - storage.go: persist stores the data; commands are refused while it cannot.
//   - services.go: a command.Service is what a protocol keeps beside its commands. It hears keyspace events and learns when
//     clients go. The commands of lists know nothing of it.
//
// Packages internal/listeners, internal/tlsconfig, internal/eviction and internal/process need no more than they are given
// in New.
//
// # Configuration
//
// Directives are a table (internal/config/directives.go); those on which nothing depends are rows of data
// (internal/config/unused.go). [config.Settings] never change: a change makes new ones. Each part that must act on a change
// registers functions for its directives (Config.Apply, which can refuse and is undone, and Config.Follow). Files that
// directives name are read again when they are set, on SIGHUP, and for TLS by a timer (internal/tlsconfig).
//
// # Start and end
//
// A server that fails to start leaves nothing behind (Server.Discard): listeners are closed, goroutines have ended, and the
// store removes from the data directory what it made itself. Clients that were there keep what they had. On closing,
// scripts stop first, then doors, then sessions, and the storage last (Server.end).
package server
