// Package membership has a server's knowledge of its group, as replication (ROLE, INFO, REPLCONF GROUP), clusters
// and doors need it. It takes no part in the group itself; package quorum has the contract with the implementation
// that does.
package membership

import (
	"fmt"
	"net"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/atomredis/atomredis/internal/command"
	"github.com/atomredis/atomredis/internal/replication"
	"github.com/atomredis/atomredis/internal/replication/quorum"
)

// Node is the source of a Membership; quorum.Node is one.
type Node interface {
	Status() quorum.Status
	// LastContact returns when a follower has last heard of the leader.
	LastContact() time.Time
}

// Membership is a server's knowledge of its group. The zero value is that of a server without a group. Any goroutine may
// call its methods, after Configure.
type Membership struct {
	node      atomic.Pointer[Node] // nil before Join
	following *atomic.Bool         // whether another server leads; nil without a group
	witness   bool
	status    atomic.Pointer[quorum.Status]
	// lastLeader is the address of the leader, or without one of the last leader; nil if no leader is known yet.
	lastLeader atomic.Pointer[string]
	// contact is a past result of lastContact: see SilentFor.
	contact atomic.Pointer[time.Time]
}

// Configure says that the server belongs to a group, or will join one, and has an address there. It leads nothing yet. following
// says at any time whether another server leads, or none. witness says that the server has no data.
func (m *Membership) Configure(addr string, witness bool, following *atomic.Bool) {
	following.Store(true)
	m.following, m.witness = following, witness
	m.status.Store(&quorum.Status{Addr: addr, State: "joining"})
}

// Join begins the server's part in the group.
func (m *Membership) Join(node Node) {
	m.node.Store(&node)
	m.Refresh()
}

// Configured reports whether the server belongs to a group, although it may still be starting.
func (m *Membership) Configured() bool { return m.following != nil }

// Follows reports whether the server belongs to a group that another server leads.
func (m *Membership) Follows() bool { return m.Configured() && m.following.Load() }

// Leads reports whether the server leads a group.
func (m *Membership) Leads() bool { return m.Configured() && !m.following.Load() }

// Witness reports whether the server is a witness of its group, which has no data.
func (m *Membership) Witness() bool { return m.witness }

// Refresh reads the node's status anew and returns the address of the leader, "" without one.
func (m *Membership) Refresh() (leader string) {
	st := (*m.node.Load()).Status()
	if st.Leader != "" {
		m.lastLeader.Store(&st.Leader)
	}
	m.status.Store(&st)
	return st.Leader
}

// Status returns the status as of the last Refresh; nil without a group.
func (m *Membership) Status() *quorum.Status { return m.status.Load() }

// lastContact returns when a follower has last heard of the leader; zero before that.
func (m *Membership) lastContact() time.Time {
	if node := m.node.Load(); node != nil {
		return (*node).LastContact()
	}
	return time.Time{}
}

// Silence returns the time since the last contact with the leader.
func (m *Membership) Silence() time.Duration { return time.Since(m.lastContact()) }

// SilentFor reports whether the last contact with the leader is longer ago than d. Followers ask for each read, and reading
// the last contact takes a lock: while a contact that is already known is recent enough, no other is read.
func (m *Membership) SilentFor(d time.Duration) bool {
	if known := m.contact.Load(); known != nil && time.Since(*known) <= d {
		return false
	}
	last := m.lastContact()
	m.contact.Store(&last)
	return time.Since(last) > d
}

// Leader returns the leader's address for clients, if it is another server.
func (m *Membership) Leader() (host string, port int, ok bool) {
	if !m.Follows() {
		return "", 0, false
	}
	host, text, err := net.SplitHostPort(m.Status().LeaderAt)
	if err != nil {
		return "", 0, false
	}
	port, err = strconv.Atoi(text)
	return host, port, err == nil
}

// Link shows a follower's leader as the master of a replica; ok is false at a leader.
func (m *Membership) Link() (link replication.Link, ok bool) {
	if !m.Follows() {
		return link, false
	}
	st, heard := m.Status(), m.lastContact()
	link.Host, link.Port, _ = m.Leader()
	link.Offset, link.Heard, link.Down = int64(st.Applied), heard, heard
	link.State, link.Size = replication.LinkConnected, -1
	if st.Leader == "" {
		link.State, link.Problem = replication.LinkConnect, "the group has no leader"
	}
	if st.Err != nil {
		link.Problem = st.Err.Error()
	}
	return link, true
}

// Followers shows the other servers of the group as a leader's replicas, and its offset; there are none at a follower.
func (m *Membership) Followers() (list []replication.Follower, offset int64) {
	if !m.Leads() {
		return nil, 0
	}
	st := m.Status()
	for _, other := range st.Members {
		host, text, err := net.SplitHostPort(other.Client)
		port, _ := strconv.Atoi(text)
		if other.Addr == st.Addr || err != nil || other.Role == quorum.Witness {
			continue
		}
		f := replication.Follower{Host: host, Port: int64(port), State: replication.FollowerOnline, Acked: int64(other.Index)}
		if !other.Online {
			f.State = replication.FollowerWaiting
		}
		list = append(list, f)
	}
	return list, int64(st.Applied)
}

// Group returns the answer to REPLCONF GROUP; ok is false without a group.
func (m *Membership) Group() (g replication.Group, ok bool) {
	if !m.Configured() {
		return g, false
	}
	g.Leads = m.Leads()
	if host, port, known := m.Leader(); known {
		g.Leader = net.JoinHostPort(host, strconv.Itoa(port))
	}
	for _, member := range m.Status().Members {
		if host, _, err := net.SplitHostPort(member.Client); err == nil && host != "" && member.Role != quorum.Witness {
			g.Members = append(g.Members, member.Client)
		}
	}
	return g, true
}

// Info writes the group's fields of INFO replication.
func (m *Membership) Info(text func(name, value string)) {
	if !m.Configured() {
		return
	}
	st := m.Status()
	text("raft_state", st.State)
	text("raft_addr", st.Addr)
	text("raft_leader", st.Leader)
	text("raft_term", strconv.FormatUint(st.Term, 10))
	text("raft_commit_index", strconv.FormatUint(st.Committed, 10))
	text("raft_applied_index", strconv.FormatUint(st.Applied, 10))
	addrs := make([]string, 0, len(st.Members))
	for _, member := range st.Members {
		addrs = append(addrs, member.Addr)
	}
	text("raft_members", strings.Join(addrs, ","))
	m.infoNumbers(st, text)
	if st.Err != nil {
		text("raft_problem", command.OneLine(st.Err.Error()))
	}
}

// infoNumbers writes the fields from which metrics and alerts follow: how many servers may still fail, and how far each
// is behind.
func (m *Membership) infoNumbers(st *quorum.Status, text func(name, value string)) {
	voters, online := 0, 0
	for _, member := range st.Members {
		if member.Role.Votes() {
			voters++
			online += number(member.Online)
		}
	}
	for _, f := range []struct {
		name  string
		value int64
	}{
		{"raft_has_leader", int64(number(st.Leader != ""))}, {"raft_leads", int64(number(m.Leads()))},
		{"raft_failed", int64(number(st.Err != nil))}, {"raft_voters", int64(voters)}, {"raft_voters_online", int64(online)},
		{"raft_learners", int64(len(st.Members) - voters)}, {"raft_critical_zones", int64(len(st.CriticalZones()))},
		{"raft_log_bytes", st.LogBytes},
	} {
		text(f.name, strconv.FormatInt(f.value, 10))
	}
	for i, member := range st.Members {
		text("raft_member"+strconv.Itoa(i), fmt.Sprintf("addr=%s,voter=%d,online=%d,lag=%d,role=%s,zone=%s", member.Addr,
			number(member.Role.Votes()), number(member.Online), st.Committed-min(member.Index, st.Committed), member.Role,
			member.Zone))
	}
}

func number(is bool) int {
	if is {
		return 1
	}
	return 0
}
