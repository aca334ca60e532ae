// Package peers has the questions that servers of a group and of a cluster's shards ask each other, and [Broadcast],
// which passes published messages on to the other servers. Package internal/wire/peer has the connections.
package peers

import (
	"time"

	"github.com/atomredis/atomredis/internal/cluster"
	"github.com/atomredis/atomredis/internal/wire/peer"
)

const (
	// Timeout is the timeout for a connection to another server, and for a short answer.
	Timeout = 2 * time.Second
	// TaskTimeout is the timeout for answers that need the agreement of a shard.
	TaskTimeout = 5 * Timeout
)

// The values of Question.Ask.
const (
	AskNews = "news" // asks for the committed record of the shard
	AskMeet = "meet" // makes the shard learn of another one
	AskEnd  = "end"  // ends a migration, unless the slots are exported
	AskLoad = "load" // asks what the shard has, compared with others
)

// Question is the request of a connection of peer.Shards. News is the reply.
type Question struct {
	Ask string
	// Shard is the shard that asks, with the addresses of its servers; only for AskMeet.
	Shard *cluster.Other `json:",omitempty"`
	// Task is the migration; only for AskEnd.
	Task string `json:",omitempty"`
	// By is a measure, of cluster-rebalance-by, and Slots asks for the load of each slot; only for AskLoad.
	By    string `json:",omitempty"`
	Slots bool   `json:",omitempty"`
	// Addr is the server that a quorum.Change is about; only for those, which other servers of the group ask for.
	Addr string `json:",omitempty"`
}

// News answers questions.
type News struct {
	Shard   cluster.Other
	Known   []cluster.Other
	Members []Member
	Leader  string // the raft-addr of the leader; "" without a leader
	Leads   bool   // this server leads
	Term    uint64 `json:",omitempty"` // of the leader
	// Definitions is a digest of the shard's search indexes; "" if it has none.
	Definitions string `json:",omitempty"`
	// Load is what the shard has, Loads that of each slot if it was asked for, and Takes says that the shard takes slots of others
	// if it has less than they; only for AskLoad.
	Load  int64   `json:",omitempty"`
	Loads []int64 `json:",omitempty"`
	Takes bool    `json:",omitempty"`
}

// Member is a server of a shard.
type Member struct {
	Addr, Client  string
	Leads, Online bool
	Index         uint64
}

// Node connects to other servers; quorum.Node is one.
type Node interface {
	Dial(addr string, purpose peer.Purpose, timeout time.Duration) (*peer.Conn, error)
}
