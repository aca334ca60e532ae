// Package persist makes a keyspace durable. A journal (package journal) takes what every guard did, in order.
// Checkpoints bring what has changed since the last one into the store (package store), together with the position in
// the journal from which it has to be repeated. After a start the keyspace is what the store has, plus the journal
// from there.
//
// This package is no API: programs import atomredis, and what is exported here may change in any version.
//
// # What must stay true
//
//   - Under always, an acknowledged change survives a kill and a power loss at any instant.
//   - A record is repeated whole or not at all.
//   - A checkpoint is the keyspace at one instant, and nothing is left of one that failed.
//   - No damage goes unnoticed, and nothing that is missing.
//
// The tests: server/powerloss_test.go (a copy of the disk at many file-system calls, an error at every call),
// damage_test.go (bit flips and cuts), missing_test.go (files that are gone), engine/freeze_test.go (random changes
// between the batches of a checkpoint), conformance/crash (SIGKILL under load).
//
// # Recovery
//
// The store opens, the journal is repeated through the ordinary handlers, the server serves. If the journal is long
// for the number of keys, all keys are read first; otherwise afterwards, in the background. Clients never wait for a
// checkpoint or a snapshot, only for the instant in which it begins and for the lock of one batch.
//
// # Failures
//
// A journal that cannot write or sync has failed: nothing is appended any more, sessions with delayed output or with
// a change just made are closed, and changes are refused. Four times a second the storage tries a checkpoint of
// everything, at a position beyond all that were handed out. When it succeeds the journal continues there. What Pebble
// treats as fatal closes a fence in front of its files, and the store is opened anew (store/fence.go).
//
// A full disk is a failure that the server also starts with (disk.Full). The store is then opened to be read
// (lsm.Store.openToRead), and the journal has failed from the beginning. Data is served, changes get MISCONF, and
// the checkpoint that is tried brings everything back when there is room.
//
// # What must exist
//
// Three things say which part of the journal must be there. The store's meta record has the seed of the segment in
// which the journal goes on (Meta.JournalSeed); a checkpoint is committed when that segment exists. The file
// positions beside the segments names the segment that was begun last, and the end when the journal was closed. The
// header of a segment has the seed of the one before. A segment that is missing, cut, renamed, zeroed or foreign, and
// a store that is older or newer than the journal, are damage: the server does not start, check says why, and check
// --repair accepts the loss and says how many bytes it was.
//
// While a store is open its file LOCK is locked, and so is the directory itself, so that removing the file lets no
// second server in. A copy of a running server's directory made file by file may be refused: backup is for that.
//
// # Known limits
//
// On two processors a collection of garbage on top of a checkpoint makes more threads with work than processors.
// Repeating the journal looks keys up one by one unless it is long.
package persist
