// Package journal is the log of what was done to a keyspace: records of commands, appended in the order of the
// changes, in files that are called segments. [Journal] is the contract; [File] implements it.
//
// # Records
//
// A record holds the commands of one guard and the guard's time. Records hold effects that need neither time nor
// chance to be repeated, but for when a stream's entries were read: deadlines are absolute, stream IDs explicit, sums
// of floats results. SPOP is SREM, EXPIRE is PEXPIREAT, a blocked pop is a pop from the key that served it, an
// expired key is a DEL by the guard, an expired field an HDEL. A handler whose effect does not follow from its
// arguments says what to journal (command.Ctx.Journal). Scripts and EXEC are journalled by the commands that they
// ran, in one record. Records of earlier versions are repeated at their time, as they need.
//
// The position of a record, its LSN, is where it would begin if all segments there ever were stood one after the
// other, without their headers.
//
// # Group commit
//
// Append only copies into a buffer. Commands of [LongRecord] bytes or more are not copied: the journal takes their
// memory and writes it in pieces. A goroutine of the journal, or the caller of Commit, writes the gathered records and
// syncs them by the policy. The next batch gathers meanwhile, so that one sync serves all of a batch.
//
// Under everysec and no, Commit writes what is 4 KiB or more, unless writing might mean waiting for the disk
// (File.writeInline); a goroutine that needs the same processor would hold the event loop up for longer. Under always
// a batch overwrites zeros that were written ahead (File.writeZeros): syncing a file that does not grow takes two
// thirds of the time. So a segment ends where the next one begins, and the last one where only zeros follow.
//
// # Torn tails and damage
//
// Segments are synced before the next one begins. A record has a CRC seeded by its segment and the low half of its
// LSN. At the beginning of a batch there is a mark if more is known to be synced than at the last one. By the marks a
// reader tells a torn tail, which nothing vouches for and which is cut, from damage to what was synced, which is
// refused with file and offset, although unsynced pages reach the disk in any order.
//
// The file positions (positions.go) names the segment that was begun last, durably, before anything is written into
// it, and the end when the journal was closed. In between it notes what was synced, without a sync of its own: every
// 10 ms under always and 5 ms after the last batch, after each sync otherwise. Headers of version 2 have the seed of
// the segment before; version 1 is read too.
//
// # A full disk
//
// Under everysec and no, replies are sent before their changes are written. So there is a reserve of 2 MiB (reserve.go).
// When the disk is full the reserve is removed, appending stops, the appended records are written and synced, and then the
// journal fails. A kill while the disk is full loses no acknowledged change. The journal continues only when there is room
// for a reserve again. Records that do not fit can be lost: more than 2 MiB of them, or if another program takes the room.
//
// Files that are not needed any more become shorter step by step before they are removed (package disk): removing 64
// MiB at once keeps every sync waiting on a file system that discards.
package journal
