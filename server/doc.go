// Package server is the Redis server: it composes the parts, starts and stops them. Sessions, which turn bytes into
// commands, are package internal/session. The handlers are packages of their own, under commands and protocols;
// commands.go imports them.
//
// This package is no API: programs import atomredis, and what is exported here may change in any version.
//
// Calls go downward: transport → session → handler → engine. What goes upward, a reply for a blocked client or a
// published message, is left in the session's mailbox, and its transport is woken.
//
// # Sessions
//
// The server makes what its sessions share (New in server.go), sets the parts, and is their session.Host. The methods of
// that interface stand where the state is that they ask for: group.go, shards.go, storage.go, refuse.go,
// rates.go, forward.go.
//
// # Transports
//
// Package transport has two: event loops, and goroutines for each connection. transports.go is what they see of the
// server. A connection that a program hands over always has goroutines. A server without listeners has no loops, whose
// threads would keep a testing/synctest bubble from being idle.
//
// Listeners (package internal/listeners) can change while the server runs. Timers (blocked clients, pauses) follow the injected clock.
//
// # Configuration
//
// Directives are a table (internal/config/directives.go); those on which nothing depends are rows of data (internal/config/unused.go).
// [config.Settings] never change: a change makes new ones. Each part that must act on a change registers functions for its
// directives (Config.Apply, which can refuse and is undone, and Config.Follow): followStorage and others.
// Files that directives name are read again when they are set, on SIGHUP, and for TLS by a timer (package
// internal/tlsconfig).
//
// # Doors
//
// Package internal/doors opens and closes them; doors.go is what it sees of the server. The server opens doors in Start
// and has them serve once the data is there. On closing, scripts stop first, then doors, then sessions. maxclients counts
// their connections and clients; protected-mode keeps remote peers from doors without credentials. A door names the
// classes of events it needs. They exist while it is open, and those that notify-keyspace-events does not ask for
// reach the subscriptions of doors only (pubsub.Hub.PublishToDoors).
//
// # Services
//
// A command.Service is what a protocol keeps beside its commands (services.go): it hears keyspace events and learns
// when clients go. The commands of lists know nothing of it.
//
// # Followers and masters
//
// Package internal/replication/psync has both ends of Redis's replication. replication.go is what that package needs of the server;
// a session.Executor executes the commands of a master.
//
// # Other servers
//
// Package internal/cluster/shards has the record of shards and learns of the others; shards.go is what it sees of the server.
// Package internal/cluster/forward sends commands of a follower's clients to the leader; forward.go is what it sees of the server.
// Package internal/cluster/migrate moves slots that have keys between shards; migrate.go is what it sees of the server, hold.go
// what sessions do whose slots leave. Package internal/cluster/peers has the questions that servers of a group or a cluster ask
// each other, and passes published messages on to them; broadcast.go is what it sees of the server.
//
// # Files of a Redis
//
// Package transfer reads and writes them; transfer.go is what it sees of the server. What it imports at start is read
// inside persist.Storage.Recover: it is in the first checkpoint, as a whole, before anything is journalled.
//
// # Start
//
// A server that fails to start leaves nothing behind (Server.abandon): listeners are closed, goroutines have ended,
// and the store removes from the data directory what it made itself. Clients that were there keep what they had.
package server
