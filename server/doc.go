// Package server is the Redis server: it composes the parts, starts and stops them, and makes the text of INFO.
// Sessions, which turn bytes into commands, are package internal/session. The handlers are packages of their own,
// under commands and protocols; commands.go imports them.
//
// This package is not an API: programs import atomredis, and exported names here may change in any version.
//
// Calls go downward: transport → session → handler → engine. Replies for blocked clients and published messages go
// upward: they are left in the session's mailbox, and its transport is woken.
//
// # Sessions and commands
//
// The server makes the session.Shared of its sessions (New in server.go), sets its parts, and is their session.Host.
// It is also the command.Host of all handlers, and the Host that packages of handlers declare (host.go). Each method
// is in the file of the state that it uses.
//
// # Rooms
//
// The parts are packages of their own. Each uses the server through an interface of a few methods. Each file here
// implements the interface of one or two of them:
//
//   - transports.go: internal/transport has event loops, and goroutines for each connection. A connection that a program
//     hands over always has goroutines. A server without listeners has no loops, whose threads would keep a testing/synctest
//     bubble from being idle. Timers (blocked clients, pauses) follow the injected clock.
//   - doors.go: internal/doors opens and closes doors. The server opens them in Start and lets them serve once the
//     data is loaded. A door names the classes of events it needs, which are published while it is open. Classes
//     that notify-keyspace-events does not name are published only to clients of doors (pubsub.Hub.PublishToDoors).
//   - refuse.go: the limits of clients and connections, including those of doors, and protected-mode.
//   - replication.go: internal/replication/psync has both ends of Redis's replication. A session.Executor executes the
//     commands of a master.
//   - group.go: internal/replication/quorum agrees on a journal; the server is its Machine. Package
//     internal/replication/membership has the server's view of its group.
//   - shards.go, slots.go: internal/cluster/shards has the record of shards and learns of the others.
//   - migrate.go: internal/cluster/migrate moves slots that have keys between shards.
//   - forward.go: internal/cluster/forward sends commands of a follower's clients to the leader.
//   - broadcast.go: internal/cluster/peers has the requests between servers, and passes published messages on.
//   - transfer.go, snapshot.go: internal/transfer reads and writes the files of a Redis. An import at start runs
//     inside persist.Storage.Recover, so that the first checkpoint has all of it before anything is journalled.
//   - storage.go: persist stores the data; commands are refused while it cannot.
//   - services.go: a command.Service has the state of a protocol in addition to its commands. It receives keyspace
//     events and is told when clients disconnect. The commands of lists do not depend on it.
//
// Packages internal/listeners, internal/tlsconfig, internal/eviction and internal/process need only the arguments
// that New passes.
//
// # Configuration
//
// Directives are a table (internal/config/directives.go); those without effect are rows of data
// (internal/config/unused.go). [config.Settings] are immutable: a change makes new ones. Each part that must act on
// a change registers functions for its directives (Config.Apply, which can refuse and is undone, and Config.Follow).
// Files that directives name are read again when they are set, on SIGHUP, and for TLS by a timer
// (internal/tlsconfig).
//
// # Start and end
//
// A server that fails to start cleans up (Server.Discard): listeners are closed, goroutines have ended, and the
// store removes the files that it has made from the data directory. On closing, scripts stop first, then doors, then
// sessions, and the storage last (Server.end).
package server
