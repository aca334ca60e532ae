package membership

import (
	"slices"
	"time"

	"github.com/atomredis/atomredis/doors/door"
	"github.com/atomredis/atomredis/internal/cluster"
	"github.com/atomredis/atomredis/internal/cluster/shards"
	"github.com/atomredis/atomredis/internal/config"
	"github.com/atomredis/atomredis/internal/replication/quorum"
)

// Cluster returns the servers of the group as nodes of a cluster, the leader first. The last leader still counts as the
// leader, though offline, until there is another one. client returns where clients reach this server; it is called only
// before the server is a member.
func (m *Membership) Cluster(set *config.Settings, client func() string) []cluster.Member {
	st, leader := m.Status(), m.lastLeader.Load()
	var list []cluster.Member
	for _, member := range st.Members {
		if member.Role == quorum.Witness {
			continue
		}
		c := cluster.Member{ID: shards.Name("node", member.Addr), Announcement: shards.AnnouncementAt(member.Client, member.Addr),
			Myself: member.Addr == st.Addr, Online: member.Online, Offset: int64(member.Index),
			Leads: leader != nil && member.Addr == *leader}
		c.Preferred = set.Cluster.PreferredEndpoint
		if c.Myself {
			c.Hostname = set.Cluster.AnnounceHostname
		}
		if c.Leads && st.Leader == "" {
			c.Online = false
		}
		list = append(list, c)
	}
	if len(list) == 0 { // it has not joined yet
		list = []cluster.Member{{ID: shards.Name("node", st.Addr), Announcement: shards.AnnouncementAt(client(), st.Addr), Myself: true,
			Online: true}}
	}
	shards.LeaderFirst(list)
	return list
}

// Topology returns the servers of the group as doors see them, this one first. It shows a leader only while that is known to
// lead: a follower must have heard of it within half of raft-timeout, before which no leader gives up. self returns this
// server with its addresses; it is called only while the server is no member.
func (m *Membership) Topology(set *config.Settings, self func() door.Member) door.Topology {
	st := m.Status()
	t := door.Topology{InGroup: true, Epoch: st.Term, Timeout: time.Duration(set.Raft.Timeout) * time.Millisecond}
	certain := m.Leads() // that st.Leader leads
	if st.Leader != st.Addr {
		certain = !m.Leads() && m.Silence() < t.Timeout/2
	}
	for _, member := range st.Members {
		t.Members = append(t.Members, door.Member{ID: shards.Name("node", member.Addr), Addr: member.Client,
			Sentinel: member.Sentinel, Master: certain && member.Addr == st.Leader,
			Voter: member.Role.Votes(), Witness: member.Role == quorum.Witness, Online: member.Online, Offset: int64(member.Index)})
	}
	id := shards.Name("node", st.Addr)
	i := slices.IndexFunc(t.Members, func(member door.Member) bool { return member.ID == id })
	if i < 0 { // it has not joined yet, or does not belong to the group any more
		first := self()
		first.ID = id
		t.Members = slices.Insert(t.Members, 0, first)
	} else {
		t.Members[0], t.Members[i] = t.Members[i], t.Members[0]
	}
	return t
}
