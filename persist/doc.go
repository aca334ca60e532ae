// Package persist makes a keyspace durable. A journal (package journal) records what every guard did, in order.
// Checkpoints write the changes since the last one to the store (package store), together with the position in the
// journal from which it must be repeated. After a start the keyspace is the store's content plus the journal from
// there.
//
// This package is no API: programs import atomredis, and exported names here may change in any version.
//
// # What must stay true
//
//   - Under always, an acknowledged change survives a kill and a power loss at any instant.
//   - A record is repeated whole or not at all.
//   - A checkpoint is the keyspace at one instant, and a failed one leaves nothing behind.
//   - Damaged and missing data is always detected.
//
// The tests: server/powerloss_test.go (a copy of the disk at many file-system calls, an error at every call),
// damage_test.go (bit flips and truncation), missing_test.go (removed files), engine/freeze_test.go (random changes
// between the batches of a checkpoint), conformance/crash (SIGKILL under load).
//
// # Recovery
//
// The store opens, the ordinary handlers repeat the journal, and the server serves. If the journal is long for the
// number of keys, all keys are read first; otherwise they are read afterwards, in the background. Clients never wait
// for a checkpoint or a snapshot, only for the instant in which it begins and for the lock of one batch.
//
// # Failures
//
// A journal that cannot write or sync has failed: nothing more is appended, sessions with delayed output or with a
// change just made are closed, and changes are refused. Four times a second the storage tries a checkpoint of
// everything, at a position beyond all that were handed out. When it succeeds the journal continues there. Errors that
// are fatal to Pebble close a fence around its files, and the store is reopened (store/fence.go).
//
// A full disk is a failure with which the server also starts (disk.Full). Then the store is opened read-only
// (lsm.Store.openToRead), and the journal has failed from the start. Data is served, changes get MISCONF, and the
// retried checkpoint restores everything once there is room.
//
// # What must exist
//
// Three records say which part of the journal must exist. The store's meta record has the seed of the segment in which
// the journal continues (Meta.JournalSeed); a checkpoint is committed after that segment exists. The file positions
// beside the segments names the last segment begun, and the end if the journal was closed. The header of a segment has
// the seed of the one before. A missing, truncated, renamed, zeroed or foreign segment, and a store older or newer than
// the journal, are damage: the server does not start, check says why, and check --repair accepts the loss and reports
// its size in bytes.
//
// While a store is open its file LOCK is locked, and so is the directory itself, so that removing the file lets no
// second server in. A copy of a running server's directory, made file by file, may be refused: use backup instead.
//
// # Known limits
//
// On two processors, a garbage collection during a checkpoint makes more threads ready to run than there are
// processors. Unless the journal is long, repeating it looks up keys one by one.
package persist
