package membership

import (
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/atomredis/atomredis/doors/door"
	"github.com/atomredis/atomredis/internal/cluster/shards"
	"github.com/atomredis/atomredis/internal/config"
	"github.com/atomredis/atomredis/internal/replication"
	"github.com/atomredis/atomredis/internal/replication/quorum"
)

// fixedNode is a Node whose status a test sets.
type fixedNode struct {
	status quorum.Status
	heard  time.Time
	asked  int // calls of LastContact
}

func (n *fixedNode) Status() quorum.Status { return n.status }

func (n *fixedNode) LastContact() time.Time {
	n.asked++
	return n.heard
}

// member returns the second of three servers. leader is the raft-addr of the group's leader.
func member(leader string) (m *Membership, node *fixedNode, following *atomic.Bool) {
	node = &fixedNode{heard: time.UnixMilli(1e12), status: quorum.Status{
		Addr: "h:2", State: "follower", Leader: leader, Term: 7, Committed: 12, Applied: 11, LogBytes: 4711,
		Members: []quorum.Member{
			{Addr: "h:1", Role: quorum.Voter, Client: "h:6001", Online: true, Index: 12},
			{Addr: "h:2", Role: quorum.Voter, Client: "h:6002", Sentinel: "h:26002", Online: true, Index: 11},
			{Addr: "h:3", Role: quorum.Learner, Zone: "north", Client: "", Index: 3},
		}}}
	if leader == "h:1" {
		node.status.LeaderAt = "h:6001"
	}
	m, following = &Membership{}, &atomic.Bool{}
	m.Configure("h:2", false, following)
	following.Store(leader != node.status.Addr)
	m.Join(node)
	return m, node, following
}

func TestAServerWithoutAGroupHasNothingToShow(t *testing.T) {
	var m Membership
	require.False(t, m.Configured() || m.Leads() || m.Follows())
	_, _, ok := m.Leader()
	require.False(t, ok)
	_, ok = m.Link()
	require.False(t, ok)
	_, ok = m.Group()
	require.False(t, ok)
	followers, offset := m.Followers()
	require.Empty(t, followers)
	require.Zero(t, offset)
	m.Info(func(name, value string) { t.Fatal(name, value) })
}

func TestAFollowerShowsItsLeaderAsAMaster(t *testing.T) {
	m, node, _ := member("h:1")
	host, port, ok := m.Leader()
	require.True(t, ok)
	require.Equal(t, "h", host)
	require.Equal(t, 6001, port)
	contact := time.UnixMilli(1e12)
	want := replication.Link{Host: "h", Port: 6001, Offset: 11, State: replication.LinkConnected, Size: -1, Heard: contact,
		Down: contact}
	link, ok := m.Link()
	require.True(t, ok)
	require.Equal(t, want, link)
	followers, _ := m.Followers()
	require.Empty(t, followers, "only a leader has replicas")
	g, ok := m.Group()
	require.True(t, ok)
	require.Equal(t, "h:6001 h:6001 h:6002", g.String())

	node.status.Leader, node.status.LeaderAt, node.status.Err = "", "", errors.New("the disk is full")
	require.Empty(t, m.Refresh())
	link, ok = m.Link()
	require.True(t, ok)
	require.Equal(t, replication.Link{Offset: 11, State: replication.LinkConnect, Size: -1, Heard: contact, Down: contact,
		Problem: "the disk is full"}, link)
	fields := map[string]string{}
	m.Info(func(name, value string) { fields[name] = value })
	require.Equal(t, map[string]string{"raft_state": "follower", "raft_addr": "h:2", "raft_leader": "", "raft_term": "7",
		"raft_commit_index": "12", "raft_applied_index": "11", "raft_members": "h:1,h:2,h:3",
		"raft_has_leader": "0", "raft_leads": "0", "raft_failed": "1", "raft_voters": "2", "raft_voters_online": "2",
		"raft_learners": "1", "raft_critical_zones": "0", "raft_log_bytes": "4711", "raft_member0": "addr=h:1,voter=1,online=1,lag=0,role=voter,zone=",
		"raft_member1": "addr=h:2,voter=1,online=1,lag=1,role=voter,zone=",
		"raft_member2": "addr=h:3,voter=0,online=0,lag=9,role=learner,zone=north",
		"raft_problem": "the disk is full"}, fields)
}

func TestALeaderShowsTheOthersAsReplicas(t *testing.T) {
	m, _, _ := member("h:2")
	require.True(t, m.Leads())
	_, ok := m.Link()
	require.False(t, ok)
	followers, offset := m.Followers()
	require.EqualValues(t, 11, offset)
	require.Equal(t, []replication.Follower{{Host: "h", Port: 6001, State: replication.FollowerOnline, Acked: 12}}, followers,
		"where clients reach the third is not known")
	g, _ := m.Group()
	require.True(t, g.Leads)
}

// A cluster's clients keep the last leader until there is another one.
func TestTheLastLeaderStaysTheMasterOfAShard(t *testing.T) {
	m, node, _ := member("h:1")
	set := config.NewConfig().Get()
	leads := func() (addrs []int, online bool) {
		for _, c := range m.Cluster(set, nil) {
			addrs = append(addrs, c.Port)
			require.Equal(t, c.Port == 6002, c.Myself)
			if c.Leads {
				online = c.Online
			}
		}
		return addrs, online
	}
	order, online := leads()
	require.Equal(t, []int{6001, 6002, 0}, order)
	require.True(t, online)
	node.status.Leader = ""
	m.Refresh()
	order, online = leads()
	require.Equal(t, []int{6001, 6002, 0}, order)
	require.False(t, online)
	node.status.Leader = "h:2"
	m.Refresh()
	order, online = leads()
	require.Equal(t, []int{6002, 6001, 0}, order)
	require.True(t, online)

	node.status.Members = nil
	m.Refresh()
	list := m.Cluster(set, func() string { return "h:7000" })
	require.Len(t, list, 1)
	require.True(t, list[0].Myself)
	require.Equal(t, 7000, list[0].Port)
}

// Doors see no master before the server has begun to lead.
func TestDoorsSeeTheServerItselfFirst(t *testing.T) {
	m, node, following := member("h:2")
	set := config.NewConfig().Get()
	self := func() door.Member { return door.Member{Addr: "h:7000"} }
	masters := func() (n int) {
		for _, member := range m.Topology(set, self).Members {
			if member.Master {
				n++
			}
		}
		return n
	}
	first := m.Topology(set, self).Members[0]
	require.Equal(t, door.Member{ID: shards.Name("node", "h:2"), Addr: "h:6002", Sentinel: "h:26002", Master: true, Voter: true,
		Online: true, Offset: 11}, first)
	require.Equal(t, 1, masters())
	following.Store(true)
	require.Zero(t, masters())
	node.status.Members = node.status.Members[:1]
	m.Refresh()
	require.Equal(t, door.Member{ID: shards.Name("node", "h:2"), Addr: "h:7000"}, m.Topology(set, self).Members[0])
}

// A leader that is silent may have been deposed, so doors see none before an election begins.
func TestDoorsSeeALeaderOnlyWhileItIsHeard(t *testing.T) {
	m, node, _ := member("h:1")
	set := config.NewConfig().Get()
	named := func() bool {
		for _, member := range m.Topology(set, nil).Members {
			if member.Master {
				require.Equal(t, "h:6001", member.Addr)
				return true
			}
		}
		return false
	}
	require.False(t, named())
	node.heard = time.Now().Add(time.Hour)
	require.True(t, named())
}

// Clients may ask while the server reads its data, before it has joined.
func TestAServerThatHasNotJoinedFollows(t *testing.T) {
	var m Membership
	m.Configure("h:2", false, &atomic.Bool{})
	require.True(t, m.Follows() && !m.Leads())
	link, ok := m.Link()
	require.True(t, ok)
	require.Equal(t, replication.Link{State: replication.LinkConnect, Size: -1, Problem: "the group has no leader"}, link)
	set := config.NewConfig().Get()
	require.Equal(t, 6002, m.Cluster(set, func() string { return "h:6002" })[0].Port)
	require.Equal(t, "h:6002", m.Topology(set, func() door.Member { return door.Member{Addr: "h:6002"} }).Members[0].Addr)
	g, ok := m.Group()
	require.True(t, ok)
	require.False(t, g.Leads)
	m.Info(func(name, value string) {
		if name == "raft_state" {
			require.Equal(t, "joining", value)
		}
	})
}

// Reads at a follower ask the node, which has a lock, only when the contact that is known is too old.
func TestASilenceIsFoundWithoutAskingTheNodeEachTime(t *testing.T) {
	m, node, _ := member("h:1")
	node.heard, node.asked = time.Now(), 0
	for range 3 {
		require.False(t, m.SilentFor(time.Hour))
	}
	require.Equal(t, 1, node.asked)

	past := time.Now().Add(-time.Minute)
	node.heard = past
	m.contact.Store(&past)
	require.True(t, m.SilentFor(time.Second))
	require.True(t, m.SilentFor(time.Second), "each asks while the leader is silent")
	require.Equal(t, 3, node.asked)
	node.heard = time.Now()
	require.False(t, m.SilentFor(time.Second*30))
	require.Equal(t, 4, node.asked)
}
