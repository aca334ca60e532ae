package raft

import (
	"slices"
	"time"

	consensus "github.com/hashicorp/raft"

	"github.com/atomredis/atomredis/internal/replication/quorum"
)

// preference has since when a leader leads, or has last tried to hand the lead to a better server.
type preference struct {
	term  uint64
	since time.Time
}

// steady is how many times raft-timeout a leader leads before it hands the lead to a server in a better zone, and waits after an
// attempt: servers whose raft-leader-zones differ do not hand the lead back and forth all the time.
const steady = 5

func (n *Node) zone() string {
	if n.o.Zone == nil {
		return ""
	}
	return n.o.Zone()
}

func (n *Node) leaderZones() []string {
	if n.o.LeaderZones == nil {
		return nil
	}
	return n.o.LeaderZones()
}

// writeProblem returns why the server refuses changes at the moment, "" if it does not.
func (n *Node) writeProblem() string {
	if n.o.WriteProblem == nil {
		return ""
	}
	return n.o.WriteProblem()
}

// prefer hands the lead to the server of a configuration whose zone comes before the leader's in LeaderZones, if it has
// nearly all data. A leader that refuses changes hands the lead to any server that does not, also soon after its election.
func (p *peers) prefer(c consensus.Configuration) {
	n := p.n
	if term := n.termOf(); term != p.preference.term {
		p.preference = preference{term, time.Now()}
	}
	problem, wait := n.writeProblem(), steady*n.o.Timeout
	better := p.better(c, problem != "")
	if problem != "" {
		wait = n.o.Timeout
	}
	if better == "" || time.Since(p.preference.since) < wait {
		return
	}
	p.preference.since = time.Now()
	if problem != "" {
		n.o.Log.Warn("the lead goes to a server that can execute changes", "server", better, "error", problem)
	} else {
		n.o.Log.Info("the lead goes to a server in a better zone", "server", better, "zone", p.known(better).Zone)
	}
	if err := n.Transfer(better); err != nil {
		n.o.Log.Warn("the lead was not handed over", "server", better, "error", err.Error())
	}
}

// better returns the server that prefer hands the lead to, or an empty address. Without anyZone its zone comes before this server's
// zone.
func (p *peers) better(c consensus.Configuration, anyZone bool) (addr string) {
	zones := p.n.leaderZones()
	rank := func(zone string) int {
		if at := slices.Index(zones, zone); at >= 0 {
			return at
		}
		return len(zones)
	}
	best := rank(p.n.zone())
	if anyZone {
		best = len(zones) + 1
	}
	for _, s := range c.Servers {
		m := p.known(string(s.ID))
		if r := rank(m.Zone); roleOf(s) == quorum.Voter && r < best && m.Online && m.WriteProblem == "" && p.hasAll(s.ID, m) {
			best, addr = r, string(s.ID)
		}
	}
	return addr
}

// hasAll reports whether a server has nearly all data: it has executed it, and has confirmed to this leader that its log is the
// same.
func (p *peers) hasAll(id consensus.ServerID, m quorum.Member) bool {
	least := p.n.consensus().CommitIndex()
	least -= min(least, closeBy)
	f, ok := p.n.progress.known(id, p.n.termOf())
	return ok && m.Index != 0 && m.Index >= least && f.has >= least
}
