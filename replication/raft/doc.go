// Package raft makes the journal of a server one that a group of servers shares: github.com/hashicorp/raft agrees on
// its records, package persist/raftlog keeps them, and [Node] puts both together with the server, which it knows as a
// [Machine].
//
// # How a record becomes agreed on
//
// The leader executes commands at once, as a server of its own does, and appends what they did. The proposer gathers
// what guards have appended meanwhile into one entry of Raft's log. When the entry is committed, Durable moves on, and
// replies may be sent that waited for it: it is appendfsync always, with "committed" in place of "synced". The other
// servers do the records of an entry when it is committed, under one hold.
//
// # The fence
//
// An entry says in which term its commands were executed. Raft appends an entry in the term that it has when the entry
// reaches it; where the two differ the leader had been another one in between, the commands were executed on a state
// that is not the agreed one, and every server passes the entry over.
//
// # Losing the lead
//
// A leader that is none any more takes back what was executed and not committed: the keyspace goes back to what its
// store has (Machine.Reset) and does the committed entries behind that again. Who waited for what is taken back is not
// told (Epoch). It costs as much as a start.
//
// # Checkpoints and snapshots
//
// A checkpoint of the leader shows what was executed at an instant, and waits before it becomes the stored state until
// all of that is committed (Anchor). Raft's own snapshots are never taken: the stored state stands for them, and Raft
// is told its index when it starts. A server that is too far behind for the log gets a copy of the keyspace as of an
// instant, once that instant is committed; it is written to a file first, because its length is told before it.
//
// # Reading
//
// A leader answers while it knows that no other can have been elected: it asks its peers several times in a lease, and
// for the length of a lease, less what clocks may differ by, after the moment of a question that a majority has
// answered none of them elects another. A server that starts waits for one lease before it votes, because it does not
// know whom it promised to. With Options.Quorum every reply waits for an entry of its own instead, and no clock is
// trusted.
//
// # One port
//
// Servers of a group speak Raft and a few questions of ours (peers.go) over the same address; the first byte of a
// connection says which.
package raft
