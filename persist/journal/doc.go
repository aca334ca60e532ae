// Package journal is the log of changes of a keyspace: records of commands, appended in the order of the changes, in
// files that are called segments. [Journal] is the contract; [File] implements it.
//
// # Records
//
// A record has the commands of one guard and the guard's time. Records hold effects that can be repeated independently
// of time and chance, except for the times at which a stream's entries were read: deadlines are absolute, stream IDs
// explicit, float sums are results. SPOP becomes SREM, EXPIRE becomes PEXPIREAT, a blocked pop becomes a pop from the
// key that served it; the guard adds a DEL for an expired key and an HDEL for an expired field. A handler whose effect
// does not follow from its arguments says what to journal (command.Ctx.Journal). Scripts and EXEC are journalled as the
// commands that they ran, in one record. Records of earlier versions are repeated at their time, as they need.
//
// The position of a record, its LSN, is the offset that it would have if all segments ever written were concatenated,
// without their headers.
//
// # Group commit
//
// Append only copies into a buffer. Commands of [LongRecord] bytes or more are not copied: the journal takes over their
// memory and writes it in pieces. A goroutine of the journal, or the caller of Commit, writes the collected records and
// syncs them by the policy. Meanwhile the next batch collects, so that one sync serves a whole batch.
//
// Under everysec and no, Commit writes amounts of 4 KiB or more, unless writing might wait for the disk
// (File.writeInline); a goroutine that needs the same processor would delay the event loop for longer. Under always a
// batch overwrites zeros that were written ahead (File.writeZeros): syncing a file that does not grow takes two thirds
// of the time. So a segment ends where the next one begins, and the last one where only zeros follow.
//
// # Torn tails and damage
//
// A segment is synced before the next one begins. A record has a CRC seeded by its segment, and the low half of its
// LSN. A batch begins with a mark if more is synced than the last mark says. Unsynced pages reach the disk in any
// order, but the marks let a reader distinguish a torn tail, which nothing confirms and which is cut off, from damage
// to synced data, which is refused with file and offset. No mark confirms the last batch. A record in it is torn only if
// a sector of it was not written, and has the zeros that were there before; otherwise it is damaged (reader.whole). A record
// that ends with a zero, or whose own bytes in a sector are all zeros, looks the same: damage to its payload is recognized if
// one byte is wrong and the record has at most 4 KiB; otherwise the record counts as torn and is cut off.
//
// The file positions (positions.go) durably names the last segment begun before anything is written into it, and the
// end if the journal was closed. In between it notes the synced position, without a sync of its own: under always every
// 10 ms and 5 ms after the last batch, otherwise after each sync. Headers of version 2 have the seed of the segment
// before; version 1 can be read too.
//
// # Readers
//
// A reader (follow.go) gets the durable records from a [Place] on, also while others are appended. Release keeps older segments
// for readers, as far as [Retention] says. A start keeps them if they continue up to the first one that it needs. Where the data
// was replaced without records (Break), and after a failure, no segment continues the one before, and no reader goes on.
//
// # A full disk
//
// Under everysec and no, replies are sent before their changes are written. So there is a reserve of 2 MiB
// (reserve.go). When the disk is full the reserve is removed, appending stops, the appended records are written and
// synced, and then the journal fails. A kill while the disk is full loses no acknowledged change. The journal continues
// only after there is room for a reserve again. Records are lost if they exceed 2 MiB, or if another program takes the
// room.
//
// Files that are no longer needed are truncated step by step before they are removed (package disk): on a file system
// with discard, removing 64 MiB at once delays every sync.
package journal
