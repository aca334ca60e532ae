// Package server is the Redis server: it composes the parts, starts and stops them, and has the sessions, which turn bytes
// into commands. The handlers are packages of their own, under commands and protocols; commands.go imports them.
//
// This package is no API: programs import atomredis, and what is exported here may change in any version.
//
// Calls go downward: transport → session → handler → engine. What goes upward, a reply for a blocked client or a
// published message, is left in the session's mailbox, and its transport is woken.
//
// # Sessions
//
// A [Session] is one client as a state machine: bytes in, bytes out. It does no I/O and never blocks. Its fields
// belong to the goroutine of its transport. Other goroutines reach it through post only, which leaves messages and
// mail (served, kill, …) in the mailbox and wakes the transport. post may be called under any lock, because it takes
// the mailbox's lock alone.
//
// The parts of a session are structs in files of their own: session_input.go (what was received), session_pipeline.go
// (parsing ahead and executing), transaction.go, block.go, session_mail.go, session_delay.go (output that waits for
// the journal), session_long.go (long arguments), session_modes.go (subscribed, monitor, tracking, …),
// session_subscriber.go and session_client.go (what packages pubsub, tracking and internal/commands/connection ask).
//
// # From bytes to a handler
//
// A session parses up to sixteen commands ahead. A command of the same form as the one before is recognized by
// comparing the bytes around its arguments (resp.Template). Before it executes them it has the memory of their keys
// fetched (engine.Keyspace.TryWarm): a lookup is a chain of cache misses, and those of several keys overlap. An event
// loop has the same done for single commands of several clients (transportHost.Prefetch).
//
// [Session.admit] (admission.go) decides whether a command may run, whatever its origin: client, transaction queue,
// script, custom command, master, journal, imported file or Restore. A rule stands once and names the origins it
// holds for. The order of the rules decides which of several errors is told. What was accepted before, by this server
// or by the master, is not refused again.
//
// execute (dispatch.go) then queues the command in MULTI, or takes a guard and calls [Session.run]. Nothing else
// calls handlers. A handler parses, acts and replies. run journals the command afterwards if it changed something,
// unless the handler called Ctx.Journal with other commands that repeat its effect. For the journal and imported
// files run neither counts nor journals.
//
// Commands of a pipeline that follow each other over the same shards, at the same time, share a guard and a journal
// record, as long as nobody waits for its end (Session.sharesGuard). Whatever takes another guard, or a lock under
// which others take one, calls Session.endGuard first.
//
// # Transports
//
// Package transport has two: event loops, and goroutines for each connection. transports.go is what they see of the
// server. A connection that a program hands over always has goroutines. A server without listeners has no loops, whose
// threads would keep a testing/synctest bubble from being idle.
//
// A [Direct] (direct.go) is a session without a transport: the goroutine that calls it drives it. Arguments reach the
// handler without being encoded. DB.Do and the clients of doors use it.
//
// Listeners (listen.go) can change while the server runs. Timers (blocked clients, pauses) follow the injected clock.
//
// # Memory of a client
//
// A client keeps 1 to 16 KiB for replies, by its largest replies of the last seconds (reply_buffer.go). More is
// borrowed from package buffers and given back once sent, so idle connections stay cheap.
//
// A last argument of 64 KiB or more is received into memory of its own (session_long.go). SET and its like keep that
// memory as the value (Ctx.Overwrite, engine.Guard.Exchange), and the old value's memory receives the next one. MULTI
// queues it without copying. The slow log may look at it after the guard has ended; until then the session is one of
// the string's readers. What is longer than 1 MiB is received in parts until a quarter has arrived, because a client
// may claim what it never sends.
//
// Strings of more than 32 KiB are lent to the output of event loops instead of copied (Ctx.Bulk,
// resp.Writer.BulkLent), and written with one writev. The engine counts the readers of such a string; see package
// engine. Lengths of output and the limits of clients include what is lent; positions in the writer's buffer do not.
// Messages that pile up for a client that does not read become parts from 64 KiB on, which are not moved as more come
// (resp.Writer.RawPart). What a slow reader has left stays where it is until half as much was sent
// (resp.Writer.Sent).
//
// # Replies and the disk
//
// Under appendfsync always the output of a session waits for the journal position that was appended when it was
// written (session_delay.go). Under everysec it waits only while something older than a second is not synced. The
// event loop writes the journal between executing and sending, and under always syncs it if nobody else does, so a
// round costs one sync.
//
// # Blocking commands
//
// Ctx.Block suspends a client (block.go). The engine calls its Try under the guard of whoever changed a key; the
// reply goes to a writer of its own and reaches the session by mail. A command may work in stages: Try returns false
// after a part, and Cancel takes it back. Scripts and transactions do not block: Ctx.NoBlock answers as if time were
// up.
//
// # Scripts
//
// Scripts and functions are package internal/commands/scripts, which also watches those that run for long. What a script calls
// is executed by its session (script.go), on an event loop's goroutine. When the script makes the server busy, new
// goroutines go on with that loop, and with others that wait for the script's shards (transport.Loops.Relieve). The
// alternative, to serve the loop from within the interpreter, would make every place that takes a guard wait for itself.
//
// # Time
//
// Counters are kept per run of equal commands in a batch (timing.go): a pipeline of sixteen GETs reads the clock
// once. Commands whose cost is not constant (Command.Slow) are measured one by one, and so is the only command of a
// batch. When a run of several is slow, LATENCY shows the run, SLOWLOG nothing, and the session's next 256 commands
// are measured one by one. Limits under a millisecond measure everything. Histograms (package stats) are laid out as
// Redis's. What holds clients up without a command is timed where shards are locked (engine.Options.LockedFor) and
// where replies wait for the disk (journal.Options.Waited).
//
// # Configuration
//
// Directives are a table (internal/config/directives.go); those on which nothing depends are rows of data (internal/config/unused.go).
// [config.Settings] never change: a change makes new ones. Each part that must act on a change registers functions for its
// directives (Config.Apply, which can refuse and is undone, and Config.Follow): followTLS, followStorage and others. Files that directives name are read again when they are set, on
// SIGHUP, and for TLS by a timer (files.go, tls.go). What was loaded knows its settings and files, so a timer cannot
// undo a change.
//
// # Users
//
// The users are package acl. A session refers to the account of its user (users.go), which holds the present acl.User;
// an acl.User never changes. For users who may do everything a check is two loads. Sessions without an account are the program's and
// the journal's. Commands are checked on entry, again in EXEC, and when a script calls them (Session.denied).
//
// rename-command gives a server a table of its own over the shared entries. Lookup replaces the client's word by the
// command's own name, so nothing behind it knows any other; the journal has own names (command.Table.Original).
//
// In cluster mode (packages cluster and internal/cluster/shards) Session.refuseSlots compares the slots of keys with those that the
// shard serves. Session.hashSlot is the slot of the running command or transaction; the commands of a script must use it.
//
// # Doors and custom commands
//
// The server opens doors in Start and has them serve once the data is there (doors.go). A change of an address opens
// the new one first, then closes the old listener at once and the old door in the background, because a client of
// that door may be who waits for the change. Nothing that may wait for a command happens under doors.mu, which INFO
// takes under a guard over everything. On closing, scripts stop first, then doors, then sessions. maxclients counts
// their connections and clients; protected-mode keeps remote peers from doors without credentials. A door names the
// classes of events it needs. They exist while it is open, and those that notify-keyspace-events does not ask for
// reach the subscriptions of doors only (pubsub.Hub.PublishToDoors).
//
// Programs add commands (DB.Handle, custom.go). They are an extension of the table that is read only when no built-in
// command has the name. Their handlers call commands as scripts do, and only those are journalled. A handler that
// uses the server from outside gets an error instead of waiting for itself: its goroutine is known by its stack
// (custom_within.go).
//
// # Services
//
// A command.Service is what a protocol keeps beside its commands (services.go): it hears keyspace events and learns
// when clients go. The commands of lists know nothing of it.
//
// # Followers and masters
//
// Package internal/replication/psync has both ends of Redis's replication. replication.go is what that package needs of the server;
// masterExecutor there executes the commands of a master, each command or transaction under one guard, through Session.run.
// They are journalled, so a replica is as durable as a master. Keys expire only when the master says so
// (Guard.SetReplica): readers do not find them, the master's commands do (Guard.FromMaster). Nothing is evicted. A command
// that sets a deadline which has passed here is executed at a time before it (Ctx.Over), which the journal keeps.
//
// # Other servers
//
// Package internal/cluster/shards has the record of shards and learns of the others; shards.go is what it sees of the server.
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
