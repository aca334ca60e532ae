// Package engine is the keyspace: databases of entries split into shards, guards under which commands reach them, and
// everything that follows a change: expiry, WATCH versions, blocked clients, keyspace events, storage. It knows
// neither protocol nor connections.
//
// This package is no API: programs import atomredis, and exported names here may change in any version.
//
// # Guards
//
// A key's shard follows from its hash. A [Guard] locks a set of shards and is the unit of atomicity, journalling and
// wake-ups: one command, one EXEC (the union of its commands' shards), one script (all shards). Nothing reaches an
// entry except through a guard that holds its shard.
//
// Locks are taken downward only: the evictor, then shards in index order (by a Guard), then a [Waiter], then the locks
// of an [Observer] or of a waiter's callbacks (hub, tracking table, mailboxes). Code that holds a later one never takes
// an earlier one.
//
// # Changes
//
// An entry to be changed comes from Guard.Write, Guard.ReadToWrite or a function that creates it. Guard.Changed and
// Guard.Remove notify WATCH, events, client-side caches and storage. Guard.ChangedBookkeeping is for consumer groups:
// as in Redis, WATCH and caches ignore such changes. WATCH versions belong to the watchers, so an unwatched entry pays
// nothing.
//
// # Slots
//
// In a cluster each database has an index of its keys by slot, in each shard (slots.go, package slots): a slot is
// counted, scanned and moved without touching other keys. Only Keyspace.insert and deleteAt, which change a table,
// maintain it.
//
// # Types
//
// The keyspace knows types only through kinds.go. The data structures are packages below this one: no locks, no
// protocol, no I/O. An [Entry] has 48 bytes. Its key, and a string of up to 1 KiB behind it, are one piece of memory
// without pointers. That memory is never reused, so references to keys stay valid.
//
// # Expiry
//
// A key with deadline d is gone for every access when the time is d or later. A timer per shard removes keys at the
// earliest deadline and emits "expired" (expire.go). When more than a hundred deadlines fall within ten seconds, the
// timers of all shards wait for the next full 100 ms, because a wake-up costs more than removing a key (pacer). A hash
// is in the same index by its own deadline or the earliest of its fields, and a lookup removes its due fields, so no
// command sees one. The index is a four-ary heap; each entry has its position: half the memory of a B-tree, and moving
// a deadline needs no search.
//
// # Waiters
//
// A blocked command stands in a FIFO queue for each of its keys, from its arrival to its end (wait.go). When a guard
// ends, it serves the queues of keys that appeared, went or changed their type before any other command runs; XADD and
// XGROUP DESTROY wake readers of streams (Guard.Wake). Serving may make further keys ready. A waiter whose destination
// is in a shard outside the guard stops its queue: nobody behind it is served before it, and a guard that holds the
// shard serves the queue right afterwards. A client that disconnects is withdrawn first and consumes nothing. A waiter
// that only needs time to pass says when to try again (Keyspace.ServeKeys).
//
// # Memory and eviction
//
// Memory is counted, not measured: the heap also has garbage and the rest of the program, and lags behind (memory.go).
// Every data structure knows its size in constant time. A guard subtracts entries that it may change from the count and
// adds them back at its end, so handlers need not report changes of size. Tables and deadline indexes count too. The
// server counts the buffers of clients. The journal, the store, and unwritten data of a checkpoint do not count.
// Without maxmemory nothing is counted.
//
// Eviction happens before a command takes its guard, under guards of its own (evict.go). An evicted key is a DEL in the
// journal. A few keys are drawn; the best among them and a pool of sixteen is evicted, unless it was used meanwhile.
// volatile-ttl takes the head of the deadline indexes. Nothing is evicted while the journal is repeated. A timer of the
// server continues evictions for which a command has no time.
//
// # Strings that are lent
//
// A long string can be read beyond the end of a guard (Guard.Lend, loan.go). It counts its readers, and while there are
// any, a change allocates new memory. Readers are released without a guard. A lent string counts as its key's value;
// without a key it counts once for all its readers.
//
// # Images
//
// Checkpoints and snapshots read the keyspace as of one instant while commands continue, by the same means (image.go).
// Entries are read in batches of 64 under a lock. A command that changes an entry before its turn first leaves an image
// of it (preserve). Long strings are lent, and large values are read part by part: package delta keeps the old content
// of parts that change first. The reading thread has low priority, prefetches memory before it takes the lock, and
// sleeps now and then so that the system does not suspend it under the lock.
//
// # Checkpoints
//
// Freeze (freeze.go) locks everything just long enough to swap lists: changed entries (a flag bit per epoch and a list
// per shard), removed keys, dropped values (changes.go). They are written in the order of the keys (heads.go).
//
// A large value is stored in parts (a field, a member, a list node, a stream block, a pending entry) under a number of
// its own. So a changed field costs one small key, and renaming a hash of a million fields one head. Package delta
// records changed parts. A checkpoint that fails leaves no trace, and all its changes count as unsaved again.
//
// # Snapshots
//
// A snapshot (snapshot.go) is the whole keyspace at one instant, with or without storage. When it begins, one
// assignment under a lock over everything inverts the meaning of flagCopied in all entries. Tables are read as SCAN
// does; FLUSHDB leaves its tables to the snapshot; SWAPDB only renames spaces. Large values are copied under the locks
// and encoded outside of them. Values that are not in memory are read from the store as of that instant
// (Source.Snapshot), so checkpoints continue too. There is one snapshot at a time, and an aborted one still visits
// every entry, so that all flags agree.
//
// # Views
//
// A command that takes long can continue without its guard on a view of its keys (view.go): some keys, or the names of
// all, as of one instant. Long strings are lent to it, small values are copied, and large ones are copied piece by
// piece later, as for a snapshot (copy.go). There may be several views at a time, but only one of all names. A computed
// value is prepared for storage before it becomes a key's value (Keyspace.Prepare).
//
// # Followers
//
// From one guard over everything on, all journalled commands can also go to a second receiver (Guard.Follow,
// follow.go): the stream of changes for followers, which begins at the instant of their snapshot. The engine knows the
// journal and the store only as the interfaces Journal and Source (storage.go).
//
// # Values in the store
//
// After a start keys that are not in memory are looked up in the store until a background pass has read all of them
// (directory.go). Values beyond 256 bytes are loaded on first use. When they equal their stored form, they can leave
// memory again (Guard.Unload), and do so by themselves when memory is short (tier.go). Failure to read a value panics
// with a [LoadError], which the server turns into an error reply, so handlers access what they read before they change
// anything. For the same reason a command can end early and run again once the value has been read outside of its guard
// ([Guard.OnAway], fetch.go).
//
// # Limits
//
// A value of more than 256 bytes is a store entry of its own, and freezing copies it under a lock, unless it is a
// string of 32 KiB or more, which is lent. A string of more than 1 MiB is stored in pieces (text.go); every change
// rewrites all of them. While such a string is lent to a checkpoint and has left its key, maxmemory counts it. A lookup
// of a hash removes all its due fields, at about a microsecond each.
package engine
