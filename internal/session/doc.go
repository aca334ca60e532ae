// Package session is one client of a server as a state machine: bytes in, bytes out. It parses commands, decides whether
// they may run, calls their handlers, and keeps what belongs to a client: its transaction, what it waits for, its output.
//
// A session is a transport.Session. It reaches the server in two ways. [Shared] is what all sessions of one server
// share, as concrete parts: the keyspace, the table of commands, users, scripts, the hub of messages, statistics,
// the register of clients. Sessions use them for every command, so there is no interface in between. [Host] is the
// rest, in seven methods: the operations that need the whole server. The server makes a Shared with [New], sets its
// parts and is its Host. This package knows neither listeners nor files, nor how servers find each other.
//
// # Sessions
//
// A [Session] is one client as a state machine: bytes in, bytes out. It does no I/O and never blocks. Its fields
// belong to the goroutine of its transport. Other goroutines reach it through post only, which leaves messages and
// mail (served, kill, …) in the mailbox and wakes the transport. post may be called under any lock, because it takes
// the mailbox's lock alone.
//
// The parts of a session are structs in files of their own: input.go (what was received), pipeline.go
// (parsing ahead and executing), transaction.go, wait.go, block.go, mail.go, delay.go (output that waits for
// the journal), long.go (long arguments), modes.go (subscribed, monitor, tracking, …),
// subscriber.go and client.go (what packages pubsub, tracking and internal/commands/connection ask).
//
// # From bytes to a handler
//
// A session parses up to sixteen commands ahead. A command of the same form as the one before is recognized by
// comparing the bytes around its arguments (resp.Template). Before it executes them it has the memory of their keys
// fetched (engine.Keyspace.TryWarm): a lookup is a chain of cache misses, and those of several keys overlap. An event
// loop has the same done for single commands of several clients (Shared.Prefetch).
//
// [Session.admit] (admission.go) decides whether a command may run, whatever its origin: client, transaction queue,
// script, custom command, master, journal, imported file or Restore. Each rule is written once and names the origins
// it applies to. If several rules refuse a command, the first one gives the error. A command that this server or the
// master has accepted before is not refused again.
//
// execute (dispatch.go) then queues the command in MULTI, or takes a guard and calls [Session.run]. Nothing else
// calls handlers. A handler parses, acts and replies. run journals the command afterwards if it changed something,
// unless the handler called Ctx.Journal with other commands that repeat its effect. For the journal and imported
// files run neither counts nor journals.
//
// Successive commands of a pipeline that use the same shards in the same millisecond share a guard and a journal
// record, as long as no goroutine waits for the guard's end (Session.sharesGuard). Code that takes another guard, or
// a lock under which others take one, calls Session.endGuard first.
//
// # Clients that are part of the program
//
// A [Direct] (direct.go) is a session without a transport: its commands run on the goroutine that calls it.
// Arguments reach the handler without being encoded. DB.Do and the clients of doors use it; [Directs] is their pool.
//
// # Memory of a client
//
// A client keeps a buffer of 1 to 16 KiB for replies; its largest replies of the last seconds decide the size
// (reply_buffer.go). Larger buffers are borrowed from package buffers and given back once sent, so idle connections
// need little memory.
//
// A last argument of 64 KiB or more is received into memory of its own (long.go). SET and its like keep that memory
// as the value (Ctx.Overwrite, engine.Guard.Exchange), and the old value's memory receives the next one. MULTI
// queues it without copying. The slow log may look at it after the guard has ended; until then the session is one of
// the string's readers. An argument of more than 1 MiB is received in parts until a quarter has arrived, because a
// client may announce more than it sends.
//
// Strings of more than 32 KiB are lent to the output of event loops instead of copied (Ctx.Bulk,
// resp.Writer.BulkLent), and written with one writev. The engine counts the readers of such a string; see package
// engine. Lengths of output and the limits of clients include lent strings; positions in the writer's buffer do not.
// Messages that pile up for a client that does not read become parts from 64 KiB on, which are not moved as more
// come (resp.Writer.RawPart). Output that a slow reader has not read is not moved until half as much was sent
// (resp.Writer.Sent).
//
// # Replies and the disk
//
// Under appendfsync always the output of a session waits for the journal position that was appended when it was
// written (delay.go). Under everysec it waits only while something older than a second is not synced. The
// event loop writes the journal between executing and sending, and under always syncs it if nobody else does, so a
// round costs one sync.
//
// # Waiting
//
// A session that waits executes nothing. The field Session.wait (wait.go) has the reason of the wait and its
// deadline. Only beginWait begins a wait, and only endWait ends it:
//
//	reason      begins when                                       ends by
//	forKeys     a handler calls Ctx.Block or Ctx.Await (block.go)  mail of who serves or withdraws the waiter; its time
//	forPause    CLIENT PAUSE or FAILOVER holds it (pause.go)       mailResume, or its time
//	forSlots    its slot is about to be exported (hold.go)         mailResume, or its time
//	forMemory   values must leave memory first (tier.go)           its time
//	forValues   it needs values from the store (tier.go)           mailFetched
//	forLeader   forwarded commands have no reply yet (forward.go)  mailLeader
//	forOffload  it is offloaded, or has no place yet (offload.go)  mailOffload
//
// A session waits for one reason at a time: only executing a command begins a wait, and execute is not called during
// one. Mail for another reason than the current one comes too late and has no effect.
//
// A waiting session keeps input up to its limits, reads mail, sends its output and others' pushes, and checks
// timers. It can be killed, and it can disconnect: Close withdraws a blocked client and gives up an offload. A
// client of the program whose context ends gives up its command (abandonWait), or withdraws its waiter if it is
// blocked.
//
// Except with forKeys, the waiting command has not been executed. It stays in the input and has changed nothing.
// When the wait has ended the command starts again with its admission, so it may have to wait for another reason, or
// be refused.
//
// If a handler cannot continue, its call ends early with a command.Retry: see package command. run drops the output
// and counts of the call, and returns the Retry. By then Session.Offload has begun the wait for an offload;
// callTiered begins the wait for values, unless they have come meanwhile.
//
// Output that waits for the journal does not make the session wait: it executes more commands meanwhile (Replies and
// the disk).
//
// # Blocking commands
//
// Ctx.Block suspends a client (block.go). The engine calls its Try under the guard that changed a key; the reply
// goes to a separate writer, and mail tells the session about it. A command may work in stages: Try returns false
// after a part of the work, and Cancel undoes that part. Scripts and transactions do not block: Ctx.NoBlock replies
// as after a timeout.
//
// # Scripts
//
// Scripts and functions are package internal/commands/scripts, which also watches those that run for long. The
// commands that a script calls are executed by its session (script.go), on an event loop's goroutine. When the
// script makes the server busy, new goroutines take over that loop, and other loops that wait for the script's
// shards (transport.Loops.Relieve). If the interpreter served the loop instead, all code that takes a guard would
// wait for itself.
//
// # Time
//
// Counters are kept per run of equal commands in a batch (timing.go): a pipeline of sixteen GETs reads the clock
// once. Commands whose cost is not constant (Command.Slow) are measured one by one, and so is the only command of a
// batch. When a run of several is slow, LATENCY shows the run, SLOWLOG nothing, and the session's next 256 commands
// are measured one by one. Limits under a millisecond measure everything. Histograms (package stats) are laid out as
// Redis's. Delays that no command causes are measured where shards are locked (engine.Options.LockedFor) and where
// replies wait for the disk (journal.Options.Waited).
//
// # Users
//
// The users are package acl. A session refers to the account of its user (users.go), which holds the current
// acl.User; an acl.User never changes. For users who may do everything a check is two loads. Sessions without an
// account are the program's and the journal's. Commands are checked on entry, again in EXEC, and when a script calls
// them (Session.denied).
//
// rename-command gives a server a table of its own over the shared entries. Lookup replaces the name that the client
// has sent by the command's own name, so later code sees only own names, and so does the journal
// (command.Table.Original).
//
// In cluster mode (packages cluster and internal/cluster/shards) Session.refuseSlots compares the slots of keys with those that the
// shard serves. Session.hashSlot is the slot of the running command or transaction; the commands of a script must use it.
//
// # Custom commands
//
// Programs add commands (DB.Handle, custom.go). They are an extension of the table that is read only when no built-in
// command has the name. Their handlers call commands as scripts do, and only those are journalled. A handler that
// uses the server from outside gets an error instead of waiting for itself: its goroutine is known by its stack
// (custom_within.go).
//
// # What was accepted before
//
// A [Replayer] executes the commands of journals and files, and an [Executor] those of a master, each command or
// transaction under one guard, through Session.run. They are journalled, so a replica is as durable as a master.
// Keys expire only when the master sends their removal (Guard.SetReplica): before that readers do not find them, but
// the master's commands do (Guard.FromMaster). Nothing is evicted. A command that sets a deadline which has passed
// here is executed at a time before it (Ctx.Over), which the journal keeps.
//
// # Commands for the leader
//
// With replicated-proxy a follower forwards commands that only the leader can execute. forward.go decides which ones. The
// connection is a [Forwarder], of package internal/cluster/forward.
//
// # Tests
//
// Tests inspect sessions of a complete server. The external tests, which can import package server, provide it
// (NewTestServer).
package session
