package sentinel

import (
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/atomredis/atomredis/doors/door"
)

// state is the clients' view of the servers. It is immutable.
type state struct {
	door.Topology
	known  bool        // a master is or was known
	master door.Member // the master, or the last one
	since  time.Time   // when it became the master

	sdown, odown bool
	agree        int // reachable servers of the group that see no leader, including this one

	replicas, sentinels    []door.Member
	usable, voters, quorum int

	demoted string               // address of the former master, until it is known as a replica
	down    map[string]time.Time // by address: since when a server is unreachable
}

// settled is how long after a change of the master the reachability of the others is known.
const settled = 4 * time.Second

// next returns the state after s for the topology t.
func (s *state) next(t door.Topology, now time.Time) *state {
	n := &state{Topology: t, known: s.known, master: s.master, since: s.since, demoted: s.demoted, down: map[string]time.Time{}}
	leads := false
	for _, m := range t.Members {
		if m.Master && m.Addr != "" {
			leads = t.InGroup || m.Online
			if m.Addr != n.master.Addr {
				n.demoted, n.since = n.master.Addr, now
			}
			n.master, n.known = m, true
		}
	}
	n.sdown = n.known && !leads
	for i, m := range t.Members {
		if m.Voter {
			n.voters++
		}
		if m.Voter && m.Online {
			n.usable++
			if m.Addr != n.master.Addr {
				n.agree++
			}
		}
		if m.Addr != "" && m.Addr != n.master.Addr && !m.Witness {
			n.replicas = append(n.replicas, m)
		}
		if i > 0 && m.Sentinel != "" {
			n.sentinels = append(n.sentinels, m)
		}
		if !m.Online || m.Addr == n.master.Addr && n.sdown {
			n.down[m.Addr] = now
			if at, ok := s.down[m.Addr]; ok {
				n.down[m.Addr] = at
			}
		}
	}
	n.quorum = 1
	if t.InGroup {
		n.quorum = n.voters/2 + 1
	}
	n.odown = n.sdown && t.InGroup && n.agree >= n.quorum
	if d := n.replica(n.demoted); d != nil && d.Online && n.demoted == s.demoted && (s.offline(d.Addr) || now.Sub(n.since) >= settled) {
		n.demoted = ""
	}
	return n
}

// replica returns the replica with an address.
func (s *state) replica(addr string) *door.Member {
	i := slices.IndexFunc(s.replicas, func(m door.Member) bool { return m.Addr == addr })
	if i < 0 {
		return nil
	}
	return &s.replicas[i]
}

// offline reports whether the server with an address is unreachable.
func (s *state) offline(addr string) bool {
	_, is := s.down[addr]
	return is
}

// split returns the host and the port of an address. An empty host is replaced by host, at which a peer has reached
// this server.
func split(addr, host string) (string, string) {
	h, port, _ := net.SplitHostPort(addr)
	if h == "" {
		h = host
	}
	return h, port
}

// words joins words in the form of events.
func words(list ...string) string { return strings.Join(list, " ") }

// events returns the events since the state old, for a peer that has reached this server at host.
func (s *state) events(old *state, name, host string) (list []event) {
	add := func(channel string, payload ...string) { list = append(list, event{channel, words(payload...)}) }
	address := func(addr string) string { return words(split(addr, host)) }
	master := words("master", name, address(s.master.Addr))
	named := func(kind, called, addr string) string {
		return words(kind, called, address(addr), "@", name, address(s.master.Addr))
	}
	slave := func(m door.Member) string { return named("slave", net.JoinHostPort(split(m.Addr, host)), m.Addr) }
	down := func(is, was bool, channel string, payload ...string) {
		switch {
		case is && !was:
			add("+"+channel, payload...)
		case was && !is:
			add("-"+channel, payload[0])
		}
	}
	if s.Epoch > old.Epoch && old.known {
		add("+new-epoch", strconv.FormatUint(s.Epoch, 10))
	}
	if !s.known {
		return list
	}
	switched := false
	switch {
	case !old.known:
		add("+monitor", master, "quorum", strconv.Itoa(s.quorum))
	case s.master.Addr != old.master.Addr:
		switched = true
		add("+switch-master", name, address(old.master.Addr), address(s.master.Addr))
	}
	down(s.sdown, old.sdown && !switched, "sdown", master)
	down(s.odown, old.odown && !switched, "odown", master, fmt.Sprintf("#quorum %d/%d", s.agree, s.quorum))
	for _, m := range s.replicas {
		known := old.known && old.replica(m.Addr) != nil && !switched
		if !known {
			add("+slave", slave(m))
		}
		down(s.offline(m.Addr), known && old.offline(m.Addr), "sdown", slave(m))
		if m.Addr == old.demoted && s.demoted == "" {
			add("+convert-to-slave", slave(m))
		}
	}
	for _, m := range s.sentinels {
		payload := named("sentinel", m.ID, m.Sentinel)
		known := old.known && slices.ContainsFunc(old.sentinels, func(o door.Member) bool { return o.ID == m.ID })
		if !known {
			add("+sentinel", payload)
		}
		down(!m.Online, known && old.offline(m.Addr), "sdown", payload)
	}
	return list
}

// pairs has names and values in turn.
type pairs []string

func (p *pairs) add(name, value string)          { *p = append(*p, name, value) }
func (p *pairs) number(name string, n int64)     { p.add(name, strconv.FormatInt(n, 10)) }
func (p *pairs) ms(name string, d time.Duration) { p.number(name, d.Milliseconds()) }
func (s *state) age(at, now time.Time) (d time.Duration) {
	if !at.IsZero() {
		d = now.Sub(at)
	}
	return d
}

// head begins the description of a server.
func (s *state) head(m door.Member, addr, name, role, host string, now time.Time) (p pairs) {
	ip, port := split(addr, host)
	flags := role
	since, down := s.down[m.Addr]
	silence := s.age(since, now)
	isMaster := m.Addr == s.master.Addr && role == "master"
	switch {
	case isMaster && s.odown:
		flags = "s_down,o_down,master"
	case isMaster && s.sdown:
		flags = "s_down,master"
	case down && !isMaster:
		flags = "s_down," + role + ",disconnected"
	}
	p.add("name", name)
	p.add("ip", ip)
	p.add("port", port)
	p.add("runid", m.ID)
	p.add("flags", flags)
	p.number("link-pending-commands", 0)
	p.number("link-refcount", 1)
	p.ms("last-ping-sent", silence)
	p.ms("last-ok-ping-reply", silence)
	p.ms("last-ping-reply", silence)
	if down {
		p.ms("s-down-time", silence)
	}
	if isMaster && s.odown {
		p.ms("o-down-time", silence)
	}
	p.ms("down-after-milliseconds", s.Timeout)
	return p
}

// role appends the fields about the role that a server reports.
func (s *state) role(p *pairs, role string, now time.Time) {
	p.number("info-refresh", 0)
	p.add("role-reported", role)
	p.ms("role-reported-time", s.age(s.since, now))
}

// describeMaster returns the fields of the master.
func (s *state) describeMaster(name, host string, now time.Time) pairs {
	p := s.head(s.master, s.master.Addr, name, "master", host, now)
	s.role(&p, "master", now)
	p.add("config-epoch", strconv.FormatUint(s.Epoch, 10))
	p.number("num-slaves", int64(len(s.replicas)))
	p.number("num-other-sentinels", int64(len(s.sentinels)))
	p.number("quorum", int64(s.quorum))
	p.ms("failover-timeout", 2*s.Timeout)
	p.number("parallel-syncs", 1)
	return p
}

// describeReplica returns the fields of a replica.
func (s *state) describeReplica(m door.Member, host string, now time.Time) pairs {
	p := s.head(m, m.Addr, net.JoinHostPort(split(m.Addr, host)), "slave", host, now)
	s.role(&p, "slave", now)
	link, ip, port := "ok", "?", "0"
	if ip, port = split(s.master.Addr, host); s.sdown || !m.Online {
		link = "err"
	}
	p.ms("master-link-down-time", s.age(s.down[s.master.Addr], now))
	p.add("master-link-status", link)
	p.add("master-host", ip)
	p.add("master-port", port)
	p.number("slave-priority", 100)
	p.number("slave-repl-offset", m.Offset)
	p.number("replica-announced", 1)
	return p
}

// describeSentinel returns the fields of another server of the group that clients of Sentinel reach.
func (s *state) describeSentinel(m door.Member, host string, now time.Time) pairs {
	p := s.head(m, m.Sentinel, m.ID, "sentinel", host, now)
	p.ms("last-hello-message", s.age(s.down[m.Addr], now))
	p.add("voted-leader", "?")
	p.number("voted-leader-epoch", 0)
	return p
}

// status returns the word of INFO for the state of the master.
func (s *state) status() string {
	switch {
	case s.odown:
		return "odown"
	case s.sdown:
		return "sdown"
	}
	return "ok"
}
