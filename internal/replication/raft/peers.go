package raft

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	consensus "github.com/hashicorp/raft"

	"github.com/atomredis/atomredis/internal/replication/quorum"
	"github.com/atomredis/atomredis/internal/wire/peer"
)

// Servers of a group, and those that want to join it, ask each other a few questions in JSON. Each question has its
// own connection of peer.Members.

// question is a question of one server to another.
type question struct {
	// Join asks the leader to add the empty server with this address to the group, and Remove asks it to remove one.
	// Without them the question is for news.
	Join   string `json:",omitempty"`
	Remove string `json:",omitempty"`
	// Witness says that the server that Join names is a witness.
	Witness bool `json:",omitempty"`
	// From is the address of the asking server, and may be "".
	From string `json:",omitempty"`
}

// changes reports whether the question asks for a change of the members.
func (q question) changes() bool { return q.Join != "" || q.Remove != "" }

// news is the answer of a server about itself.
type news struct {
	Client string // its address for clients
	// Sentinel is the address for clients of Redis Sentinel; "" without one.
	Sentinel string `json:",omitempty"`
	// Established says that the server's group has committed something; Leader is the group's leader.
	Established bool
	Leader      string
	HasData     bool
	Index       uint64
	LogBytes    int64         `json:",omitempty"`
	Now         int64         // ns since 1970
	Timeout     time.Duration // raft-timeout
	Zone        string        `json:",omitempty"`
	Witness     bool          `json:",omitempty"`
	LeaderZones []string      `json:",omitempty"`
	Level       int           // the highest level of entries that it knows
	// Recovery and Group are those of its group: see recoveryKey and groupKey.
	Recovery uint64 `json:",omitempty"`
	Group    uint64 `json:",omitempty"`
	// Problem says why the server takes no part in the group any more.
	Problem string `json:",omitempty"`
	// WriteProblem says why the server refuses changes at the moment.
	WriteProblem string `json:",omitempty"`
	// Membership is the leader's answer about the asking server.
	Membership *membership `json:",omitempty"`
	// Joined says that Join has succeeded, to servers that do not know peer.Failed.
	Joined bool
}

// peers are the other servers of the group, as far as the node knows.
type peers struct {
	n    *Node
	may  atomic.Bool // the node may take part
	wake chan struct{}

	preference preference // used by watch

	mu   sync.Mutex
	seen map[string]contact
}

// contact is the last answer of a peer, and its time.
type contact struct {
	news
	at time.Time
}

const (
	answerTimeout = 2 * time.Second // for an answer
	maxAnswer     = 64 << 10        // bytes
	newsEvery     = 500 * time.Millisecond
	fresh         = 3 * time.Second // how long a peer counts as online after it has answered
	// closeBy is how many entries a learner may be behind when it begins to count for majorities.
	closeBy = 1000
)

// admitted reports whether the node may take part in the group: it has data, or the leader has allowed it.
func (p *peers) admitted() bool { return p.may.Load() }

// ask asks a server.
func (p *peers) ask(addr string, q question) (a news, err error) {
	c, err := p.n.mux.dial(addr, peer.Members, answerTimeout)
	if err != nil {
		return a, err
	}
	defer c.Close()
	c.SetDeadline(time.Now().Add(answerTimeout))
	if q.changes() {
		c.SetDeadline(time.Now().Add(10 * answerTimeout))
	}
	c.SetLimit(maxAnswer)
	if err := c.Call(q, &a); err != nil {
		return a, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.seen == nil {
		p.seen = map[string]contact{}
	}
	p.seen[addr] = contact{a, time.Now()}
	return a, nil
}

// answer answers a question.
func (p *peers) answer(c *peer.Conn) {
	var q question
	c.SetLimit(maxAnswer)
	if c.ReadRequest(&q) != nil {
		return
	}
	a := p.own()
	a.Membership = p.n.membershipOf(q.From)
	if q.changes() {
		c.SetDeadline(time.Now().Add(10 * answerTimeout))
		var err error
		if q.Remove != "" {
			err = p.n.Remove(q.Remove)
		} else {
			err = p.take(q.Join, q.Witness)
		}
		if err != nil {
			_ = c.Fail(coded(err))
			return
		}
		a.Joined = q.Join != ""
	}
	_ = c.Reply(a)
}

// coded gives an error the code by which other servers know it.
func coded(err error) error {
	if errors.Is(err, quorum.ErrNotLeader) {
		return &peer.Error{Code: peer.NotLeading, Text: err.Error()}
	}
	return err
}

// own is the news of the node.
func (p *peers) own() news {
	n := p.n
	a := news{Client: n.o.Client, Sentinel: n.o.Sentinel, HasData: n.o.HasData, Established: n.o.State != nil,
		Now: time.Now().UnixNano(), Timeout: n.o.Timeout, Level: entryLevel, Recovery: n.recovery(),
		LogBytes: n.log.Size(), Group: n.number(groupKey), Zone: n.zone(), LeaderZones: n.leaderZones(), Witness: n.o.Witness}
	if err := n.problem(); err != nil {
		a.Problem = err.Error()
	}
	if last, err := n.log.LastIndex(); err == nil && last > 1 {
		a.Established = true
	}
	if r := n.consensus(); r != nil {
		_, id := r.LeaderWithID()
		a.Leader, a.Index, a.WriteProblem = string(id), r.AppliedIndex(), n.writeProblem()
	}
	return a
}

// find searches for the group among the peers. If all peers have answered and none belongs to a group, it returns
// the configuration of a new one.
func (p *peers) find() (first *consensus.Configuration, err error) {
	n := p.n
	others := n.others()
	for told := false; !n.stopped(); told = true {
		answers, established, leader := 0, false, ""
		var withData []string
		witnesses := map[string]bool{n.o.Addr: n.o.Witness}
		if n.o.HasData {
			withData = append(withData, n.o.Addr)
		}
		var missing error
		for _, addr := range others {
			a, err := p.ask(addr, question{})
			if err != nil {
				missing = errors.Join(missing, fmt.Errorf("%s: %w", addr, err))
				continue
			}
			answers++
			witnesses[addr] = a.Witness
			established = established || a.Established
			if a.Leader != "" {
				leader = a.Leader
			}
			if a.HasData {
				withData = append(withData, addr)
			}
		}
		switch {
		case established && n.o.HasData:
			return nil, errors.New("the group exists, and this server has data that does not belong to it: " +
				"give it an empty directory")
		case established && leader != "":
			a, err := p.ask(leader, question{Join: n.o.Addr, Witness: n.o.Witness, From: n.o.Addr})
			if err == nil && a.Recovery != 0 {
				err = n.log.SetUint64(recoveryKey, a.Recovery)
			}
			if err == nil {
				p.may.Store(true)
				return nil, nil
			}
			missing = fmt.Errorf("join at %s: %w", leader, err)
		case established:
			missing = errors.New("the group has no leader")
		case len(withData) > 1:
			return nil, fmt.Errorf("more than one server has data, and the group can begin with one's only: %q", withData)
		case answers == len(others) && len(withData) == 1 && !n.o.HasData:
			missing = fmt.Errorf("waiting for %s to begin with its data", withData[0])
		case answers == len(others):
			first := p.first(witnesses)
			if !slices.ContainsFunc(first.Servers, func(s consensus.Server) bool { return roleOf(s) == quorum.Voter }) {
				return nil, errors.New("all servers are witnesses: one without raft-witness must have the data")
			}
			p.may.Store(true)
			return first, nil
		}
		if !told && missing != nil {
			n.o.Log.Info("looking for the group", "waiting for", missing.Error())
		}
		if !n.pause(200 * time.Millisecond) {
			break
		}
	}
	return nil, nil
}

// first returns the configuration of a new group. A group that begins with a server's data has only that server: the
// others get the data when they join. witnesses says which are witnesses.
func (p *peers) first(witnesses map[string]bool) *consensus.Configuration {
	addrs := slices.Clone(p.n.o.Peers)
	if p.n.o.HasData {
		addrs = []string{p.n.o.Addr}
	}
	if !slices.Contains(addrs, p.n.o.Addr) {
		addrs = append(addrs, p.n.o.Addr)
	}
	slices.Sort(addrs)
	c := new(consensus.Configuration)
	for _, a := range slices.Compact(addrs) {
		c.Servers = append(c.Servers, consensus.Server{Suffrage: consensus.Voter, ID: consensus.ServerID(a),
			Address: addressAs(quorum.Voter, witnesses[a], a)})
	}
	return c
}

// take adds an empty server to the group, also a former member that has lost its data. It does not count for
// majorities until it has all data. A server that nobody has named never counts: it waits until it is added.
func (p *peers) take(addr string, witness bool) error {
	if !isAddress(addr) {
		return errAddress
	}
	return p.n.asLeader(func(r *consensus.Raft) error {
		as := quorum.Waiting
		if slices.Contains(p.n.o.Peers, addr) || p.autoJoin() {
			as = quorum.Joining
		}
		f := r.GetConfiguration()
		if err := f.Error(); err != nil {
			return err
		}
		for _, s := range f.Configuration().Servers {
			if string(s.ID) != addr {
				continue
			}
			switch roleOf(s) {
			case quorum.Learner:
				if as = quorum.Learner; witness {
					return errWitnessLearns
				}
			case quorum.Joining, quorum.Voter, quorum.Witness:
				as = quorum.Joining
			}
			if s.Suffrage == consensus.Voter {
				p.n.o.Log.Warn("a server of the group has lost what it had; it learns again", "server", addr)
				if err := p.n.outcome(r.DemoteVoter(s.ID, 0, answerTimeout)); err != nil {
					return err
				}
			}
		}
		if as == quorum.Waiting {
			p.n.o.Log.Info("a server has joined to learn; RAFT.ADD makes it count for majorities", "server", addr)
		}
		defer p.kick()
		return p.n.outcome(r.AddNonvoter(consensus.ServerID(addr), addressAs(as, witness, addr), 0, answerTimeout))
	})
}

func (p *peers) kick() {
	select {
	case p.wake <- struct{}{}:
	default:
	}
}

// watch asks the servers of the group for news, and promotes learners that have enough data.
func (p *peers) watch() {
	p.may.Store(true)
	n := p.n
	for !n.stopped() {
		f := n.consensus().GetConfiguration()
		next := newsEvery
		if f.Error() == nil {
			if slices.ContainsFunc(f.Configuration().Servers, p.mayVote) {
				next /= 10 // soon, because without this vote the group tolerates fewer failures
			}
			var asking sync.WaitGroup
			var group atomic.Uint64
			for _, s := range f.Configuration().Servers {
				if string(s.ID) != n.o.Addr {
					asking.Go(func() {
						if a, err := p.ask(string(s.ID), question{From: n.o.Addr}); err == nil {
							n.heed(a.Membership)
							group.CompareAndSwap(0, a.Group)
						}
					})
				}
			}
			asking.Wait()
			p.forget(f.Configuration())
			if n.leading.Load() {
				_ = n.identify(group.Load()) // if it fails, it is tried again
				c, index := n.config()
				p.promote(c, index)
				p.prefer(c)
			}
			n.machine.Changed()
		}
		select {
		case <-p.wake:
		case <-time.After(next):
		case <-n.stop:
		}
	}
}

func isLearner(s consensus.Server) bool { return s.Suffrage != consensus.Voter }

// Raft's configuration knows voters and learners. The end of a learner's address there says what kind of learner it is.
// Servers are dialled at their names, which are addresses too. A leader of an earlier version takes learners that stay for
// servers that wait, and does not let them vote. It does not reach them, nor witnesses.
const (
	waits   = "?"
	stays   = "/learner" + waits
	watches = "/witness" // also of a voter
)

// addressAs returns the address of a server with a role in Raft's configuration. A witness is a Voter there, or will be.
func addressAs(r quorum.Role, witness bool, addr string) consensus.ServerAddress {
	if witness {
		addr += watches
	}
	switch r {
	case quorum.Waiting:
		addr += waits
	case quorum.Learner:
		addr += stays
	}
	return consensus.ServerAddress(addr)
}

// nameAt returns the name of the server with an address in Raft's configuration.
func nameAt(addr consensus.ServerAddress) string {
	name, _, _ := strings.Cut(strings.TrimSuffix(string(addr), waits), "/")
	return name
}

// roleOf returns the role of a server of Raft's configuration.
func roleOf(s consensus.Server) quorum.Role {
	switch addr := string(s.Address); {
	case !isLearner(s) && isWitnessAt(s.Address):
		return quorum.Witness
	case !isLearner(s):
		return quorum.Voter
	case strings.HasSuffix(addr, stays):
		return quorum.Learner
	case strings.HasSuffix(addr, waits):
		return quorum.Waiting
	}
	return quorum.Joining
}

// mayVote reports whether a learner is to count for majorities once it has all data. One that waits is let in by AutoJoin, also
// if that changed after it had joined.
func (p *peers) mayVote(s consensus.Server) bool {
	r := roleOf(s)
	return r == quorum.Joining || r == quorum.Waiting && p.autoJoin()
}

func (p *peers) autoJoin() bool { return p.n.o.AutoJoin != nil && p.n.o.AutoJoin() }

// promote makes a learner of a configuration count for majorities if it has nearly all data. It promotes one at a time, because
// a change of a configuration that is not the latest is refused.
func (p *peers) promote(c consensus.Configuration, index uint64) {
	for _, s := range c.Servers {
		if m := p.known(string(s.ID)); !p.mayVote(s) || !m.Online || !p.hasAll(s.ID, m) {
			continue
		}
		if err := p.n.outcome(p.n.consensus().AddVoter(s.ID, addressAs(quorum.Voter, isWitnessAt(s.Address), string(s.ID)), index, answerTimeout)); err == nil {
			p.n.o.Log.Info("a server counts for the group's majorities from now on", "server", string(s.ID))
		}
		return
	}
}

// asked returns the addresses of the servers that have answered.
func (p *peers) asked() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Collect(maps.Keys(p.seen))
}

// forget forgets the answers of servers that are no members. A server that has no configuration yet forgets none.
func (p *peers) forget(c consensus.Configuration) {
	if len(c.Servers) == 0 {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	maps.DeleteFunc(p.seen, func(addr string, _ contact) bool { return !isMember(c, addr) })
}

// known returns the last known state of a server.
func (p *peers) known(addr string) quorum.Member {
	p.mu.Lock()
	defer p.mu.Unlock()
	s, ok := p.seen[addr]
	return quorum.Member{Client: s.Client, Sentinel: s.Sentinel, Zone: s.Zone, Index: s.Index, LogBytes: s.LogBytes,
		WriteProblem: s.WriteProblem, Online: ok && s.Problem == "" && time.Since(s.at) < fresh}
}
