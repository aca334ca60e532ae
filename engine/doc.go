// Package engine is the keyspace: databases of entries split into shards, guards under which commands reach them, and
// everything that follows a change: expiry, WATCH versions, blocked clients, keyspace events, storage. It knows
// neither protocol nor connections.
//
// This package is no API: programs import atomredis, and what is exported here may change in any version.
//
// # Guards
//
// A key's shard follows from its hash. A [Guard] locks a set of shards and is the unit of atomicity, journalling and
// wake-ups: one command, one EXEC (the union of its commands' shards), one script (all shards). Nothing reaches an
// entry except through a guard that holds its shard.
//
// Locks are taken downward only: the evictor, then shards in index order (by a Guard), then a [Waiter], then whatever
// an [Observer] or a waiter's callbacks take (hub, tracking table, mailboxes). No code that holds a later one takes
// an earlier one.
//
// # Changes
//
// Entries that are changed come from Guard.Write, Guard.ReadToWrite or a function that creates them. Guard.Changed
// and Guard.Remove tell everybody: WATCH, events, client-side caches, storage. Guard.ChangedBookkeeping is for
// consumer groups: as in Redis it is no change for WATCH and caches. WATCH versions live with the watchers, so an
// entry that nobody watches pays nothing.
//
// # Slots
//
// In a cluster each database has an index of its keys by slot, in each shard (slots.go, package slots): so a slot is
// counted, walked through and moved without a look at other keys. It takes part in what changes a table, in
// Keyspace.insert and deleteAt, and nowhere else.
//
// # Types
//
// kinds.go is all that the keyspace knows of types. The data structures are packages below this one: no locks, no
// protocol, no I/O. An [Entry] has 48 bytes. Its key, and a string of up to 1 KiB behind it, are one piece of memory
// without pointers. That memory is never reused, so keys that others keep stay valid.
//
// # Expiry
//
// A key with deadline d is gone for every access when the time is d or later. A timer per shard removes keys at the
// earliest deadline and emits "expired" (expire.go). When more than a hundred deadlines come within ten seconds the
// timers of all shards wait for the next full 100 ms, because waking up costs more than removing a key (pacer). A
// hash lies in the same index by its own deadline or the earliest of its fields, and a lookup removes the fields that
// are due, so no command meets one. The index is a four-ary heap whose places are kept in the entries: half the
// memory of a B-tree, and a moved deadline needs no search.
//
// # Waiters
//
// A blocked command stands in a FIFO queue for each of its keys, from its arrival to its end (wait.go). When a guard
// ends, the queues whose keys appeared, went or changed their type are served under it, before anyone else's command;
// XADD and XGROUP DESTROY wake readers of streams (Guard.Wake). Serving may make further keys ready. A waiter whose
// destination lies in a shard that the guard does not hold stops its queue, which is served right afterwards under a
// guard that holds it. Nobody behind such a waiter is served before it. A client that hangs up is withdrawn first and
// consumes nothing. A waiter that time alone can satisfy says when to try again (Keyspace.ServeKeys).
//
// # Memory and eviction
//
// Memory is counted, not measured: the heap has garbage and the rest of the program in it, and lags behind
// (memory.go). Every data structure knows its size in constant time. A guard takes entries that it may change out of
// the count and puts them back at its end, so handlers need not say what they added. Tables and deadline indexes
// count too. Buffers of clients are the server's. The journal, the store, and what a checkpoint still has to write
// are not counted. Without maxmemory nothing is.
//
// Eviction happens before a command takes its guard, under guards of its own (evict.go). An evicted key is a DEL in
// the journal. A few keys are drawn, and the best of them and of a pool of sixteen goes, unless it was used
// meanwhile. volatile-ttl takes the head of the deadline indexes. Nothing is evicted while the journal is repeated.
// A timer of the server continues what a command has no time for.
//
// # Strings that are lent
//
// A long string can be read beyond the end of a guard (Guard.Lend, loan.go). It counts its readers, and while there
// are any, a change gives it new memory. Readers are released without a guard. A lent string counts as its
// key's value, and once it is no key's value, once for all its readers.
//
// # Images
//
// Checkpoints and snapshots read the keyspace as it was at one instant while commands go on, with the same means
// (image.go). Entries are read in batches of 64 under a lock. Whoever wants to change an entry before its turn leaves
// an image of it first (preserve). Long strings are lent, and large values are read part by part: package delta keeps
// the old content of parts that change before. The thread that reads has low priority, has memory fetched before it
// takes the lock, and sleeps now and then so that the system does not put it aside under the lock.
//
// # Checkpoints
//
// Freeze (freeze.go) locks everything for as long as it takes to swap lists: changed entries (a flag bit per epoch
// and a list per shard), removed keys, dropped values (changes.go). It is written in the order of the keys (heads.go).
//
// A large value is stored in parts (a field, a member, a list node, a stream block, a pending entry) under a number
// of its own. So a changed field costs one small key, and renaming a hash of a million fields one head. Package delta
// notes changed parts. A checkpoint that fails leaves no trace, and all of it counts as changed again.
//
// # Snapshots
//
// A snapshot (snapshot.go) is the whole keyspace at one instant, with or without storage. flagCopied of an entry
// changes its meaning when a snapshot begins, which is one assignment under a lock over everything. Tables are read as
// SCAN walks them; FLUSHDB leaves its tables to the snapshot; SWAPDB only renames spaces. Large values are copied
// under the locks and encoded outside of them. Values that are not in memory are read from the store as it was at that
// instant (Source.Snapshot), so checkpoints go on too. There is one snapshot at a time, and one that is given up still
// visits every entry, so that all flags agree.
//
// # Views
//
// A command that takes long can go on without its guard on a view of its keys (view.go): some keys, or the names of all,
// as they are at one instant. Long strings are lent to it, small values are copied, and large ones are copied piece by
// piece later, as for a snapshot (copy.go). There may be several views at a time, and one of all names. What a command
// computes so is prepared for storage before it becomes a key's value (Keyspace.Prepare).
//
// # Followers
//
// Whatever is journalled can go to a second taker, from one guard over everything on (Guard.Follow, follow.go): the
// stream of changes for followers, which begins at the instant of their snapshot. The engine knows the journal and
// the store only as the interfaces Journal and Source (storage.go).
//
// # Values in the store
//
// After a start keys that are not in memory are looked up in the store until a background pass has read all of them
// (directory.go). Values beyond 256 bytes are loaded on first use and can leave memory again when they are as stored
// (Guard.Unload), which they do by themselves if there is no room for them (tier.go). A value that cannot be read
// panics with a [LoadError], which the server turns into an error reply, so handlers touch what they read before they
// change anything. For the same reason a command can end early and run again when the value has been read outside of
// its guard ([Guard.OnAway], fetch.go).
//
// # Limits
//
// A value beyond 256 bytes is one entry in the store and one copy under a lock when it is frozen, unless it is a
// string of 32 KiB or more, which is lent. A string of more than 1 MiB is stored in pieces (text.go), all of them
// anew whenever it has changed. While such a string is lent to a checkpoint and no key has it any more, maxmemory
// counts it. A lookup of a hash removes all its fields that are due, about a microsecond each.
package engine
