// Package raftlog keeps the log and the stable values of a Raft node (github.com/hashicorp/raft) in the segments of a
// journal. [Log] is a raft.LogStore and a raft.StableStore; entries and values have one file and one sync.
//
// # What is durable
//
// StoreLogs, Set and DeleteRange return when what they did is synced. If they return an error the log has failed, and
// stays so until it is opened anew: what they wrote may be there then, as a whole or in part, as an entry that nobody
// has acknowledged, a vote that nobody was given, or a suffix that is cut. Raft allows all three.
//
// # Segments
//
// A new segment begins with a record of the state: all stable values and the commit index. So a log can be read from
// the beginning of any segment. Entries leave in whole segments: a checkpoint that has the effects of everything
// before an index asks for the Anchor of that index, notes it durably, and calls Release. A DeleteRange of a prefix,
// which is how Raft compacts its log, does nothing: Raft has only a snapshot then, perhaps an older one than it thinks.
//
// # Damage
//
// The journal tells a torn tail, which was never acknowledged and is cut off, from damage to what was; then Open
// returns a *journal.DamageError. It also knows, from a file beside the directory, if the end is missing. A node with
// such a log must not vote with what is left of it.
package raftlog
