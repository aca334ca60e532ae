// Package raft makes a journal that a group of servers shares: github.com/hashicorp/raft agrees on its records,
// package persist/raftlog stores them, and [Node] connects both with the server, which it sees as a [Machine].
//
// # How a record is committed
//
// The leader executes commands at once, as a single server does, and appends their effects. The proposer gathers the
// records that guards have appended meanwhile into one entry of Raft's log. When the entry is committed, Durable
// advances, and replies that wait for it are sent: it is like appendfsync always, with "committed" in place of
// "synced". The other servers execute the records of an entry when it is committed, under one hold.
//
// # The fence
//
// An entry has the term in which its commands were executed. Raft appends an entry in the term in which the entry
// reaches it. If the two differ, there was another leader in between, so the commands were executed on a state that
// is not the committed one, and every server skips the entry.
//
// # Losing the lead
//
// A leader that has lost the lead takes back its uncommitted changes: the keyspace returns to its stored state
// (Machine.Reset) and repeats the committed entries after that. Replies that waited for such changes are never sent
// (Epoch). This costs as much as a start.
//
// # Checkpoints and snapshots
//
// A checkpoint of the leader has the changes up to an instant. It becomes the stored state only once they are
// committed (Anchor). Raft's own snapshots are never taken: the stored state replaces them, and Raft gets its index
// at the start. A server that is too far behind for the log gets a copy of the keyspace at an instant, once that
// instant is committed. The copy is written to a file first, because its length precedes it.
//
// # Reading
//
// A reply must not be older than the request: no other leader may have been elected before it. A server that has heard
// of a leader elects no other for raft-timeout, less the possible error of clocks. A majority has heard of the leader
// after Raft got any entry that is now committed. So each commit extends a lease. Without a lease, and always with
// Options.Quorum, a reply waits for a later commit. If no entry is under way, it waits for a proof: the leader asks
// the others, and a majority answers that it still leads (Node.prove). A proof writes nothing to the log and trusts no
// clock. It extends the lease, too; while clients read, the leader makes one before the lease ends. A starting server
// waits for raft-timeout before it votes, because it does not know its earlier promises. There is no lease in a term
// in which the lead was to be handed over. (Raft's own check of leadership counts answers to earlier messages, and its
// heartbeats are answered beside an election that has begun.)
//
// # Witnesses
//
// A witness stores and confirms entries without their data (witness.go). The leader takes the data out of its requests to a
// witness, and keeps back entries that the other online voters have not got yet. The role is in Raft's configuration, at the
// end of the server's address.
//
// # One port
//
// Servers of a group use the same address for Raft and for a few questions of our own (peers.go); the first byte of
// a connection distinguishes them.
package raft
