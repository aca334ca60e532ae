// Package raftlog keeps the log and the stable values of a Raft node (github.com/hashicorp/raft) in the segments of a
// journal. [Log] is a raft.LogStore and a raft.StableStore; entries and values have one file and one sync.
//
// # What is durable
//
// StoreLogs, Set and DeleteRange return after their effect is synced. If they return an error the log has failed, until
// it is reopened: their writes may then be there, completely or partly, as an entry that nobody has acknowledged, a
// vote that nobody received, or a suffix that is cut. Raft permits all three.
//
// # Segments
//
// A new segment begins with a record of the state: all stable values and the commit index. So a log can be read from
// the beginning of any segment. Entries are removed by whole segments: a checkpoint that has the effects of everything
// before an index asks for the Anchor of that index, notes it durably, and calls Release. A DeleteRange of a prefix,
// with which Raft compacts its log, does nothing: Raft then has only a snapshot, which may be older than it assumes.
//
// # Damage
//
// The journal distinguishes a torn tail, which was never acknowledged and is cut off, from damage to acknowledged data;
// then Open returns a *journal.DamageError. A file beside the directory shows if the end is missing. A node with such a
// log must not vote with the rest of it.
package raftlog
