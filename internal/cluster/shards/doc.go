// Package shards has the record of a cluster's shards at run time. A group of servers is a shard. Its servers agree
// on a cluster.Record in their journal: their own slots, and what they have learned of other shards. Which shard
// serves a slot follows from the record alone. The leader changes it, under a guard over everything. Every server
// asks the other shards twice a second for their records; the answer is always a committed record.
//
// The package sees the server as [Host], and the group's journal as [Node].
package shards
