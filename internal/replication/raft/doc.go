// Package raft makes the journal of a server one that a group of servers shares: github.com/hashicorp/raft agrees on
// its records, package persist/raftlog keeps them, and [Node] puts both together with the server, which it knows as a
// [Machine].
//
// # How a record becomes agreed on
//
// The leader executes commands at once, as a single server does, and appends their effects. The proposer gathers the records
// that guards have appended meanwhile into one entry of Raft's log. When the entry is committed, Durable moves on, and
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
// A leader that has lost the lead takes back changes that were executed and not committed: the keyspace returns to its stored
// state (Machine.Reset) and repeats the committed entries behind that. Replies that waited for changes which are taken back
// are never sent (Epoch). This costs as much as a start.
//
// # Checkpoints and snapshots
//
// A checkpoint of the leader has the changes that were executed at an instant. Before it becomes the stored state it waits
// until they are committed (Anchor). Raft's own snapshots are never taken: the stored state stands for them, and Raft gets its
// index at the start. A server that is too far behind for the log gets a copy of the keyspace as of an
// instant, once that instant is committed; it is written to a file first, because its length precedes it.
//
// # Reading
//
// What a leader tells must have been the latest at some moment before: no other may have been elected by then. For the
// length of raft-timeout after they have heard of a leader, less what clocks may differ by, a majority elects no other,
// and it has heard of it after Raft got an entry that is committed. So each commitment extends a lease, and while
// clients read an entry of nothing is proposed if there is no other. Without a lease a reply waits for an entry that
// Raft gets later; with Options.Quorum always, and no clock is trusted. A server that starts waits for raft-timeout
// before it votes, because it does not know whom it promised to. In a term in which the lead was to be handed over
// there is no lease. (Raft's own question whether a leader leads counts answers to what was sent before.)
//
// # One port
//
// Servers of a group speak Raft and a few questions of ours (peers.go) over the same address; the first byte of a
// connection says which.
package raft
