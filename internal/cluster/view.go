package cluster

import (
	"strconv"
	"time"
)

// View is the cluster as clients see it.
type View struct {
	Shards []ShardView // the server's own shard first
}

// ShardView is a shard as clients see it: servers with the same data.
type ShardView struct {
	ID    string
	Epoch uint64
	Slots SlotSet
	// Members has at least one server, the leader first. Without a leader, nobody serves the slots.
	Members []Member
}

// Member is a server of a shard.
type Member struct {
	ID string
	Announcement
	Myself, Leads, Online bool
	Offset                int64 // the position in the shard's journal that it has applied
}

// Link is a connection between the server and another node.
type Link struct {
	Node    string // the ID of the other node
	Dialled bool   // the server has opened it
	Since   time.Time
}

// Served reports whether a server serves the slots of the shard.
func (s *ShardView) Served() bool { return s.Members[0].Leads && s.Members[0].Online }

// Find returns the server with an ID, and its shard; nil if there is none.
func (v *View) Find(id string) (*ShardView, *Member) {
	for i := range v.Shards {
		s := &v.Shards[i]
		for j := range s.Members {
			if s.Members[j].ID == id {
				return s, &s.Members[j]
			}
		}
	}
	return nil, nil
}

// Leads reports whether the server itself leads its shard.
func (v *View) Leads() bool {
	m := &v.Shards[0].Members[0]
	return m.Myself && m.Leads
}

// Range is the slots from First to Last, both included.
type Range struct{ First, Last int }

// String returns the range as CLUSTER NODES shows it.
func (r Range) String() string {
	if r.First == r.Last {
		return strconv.Itoa(r.First)
	}
	return strconv.Itoa(r.First) + "-" + strconv.Itoa(r.Last)
}
