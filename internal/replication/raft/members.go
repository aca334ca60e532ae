package raft

import (
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	consensus "github.com/hashicorp/raft"

	"github.com/atomredis/atomredis/internal/wire/peer"
)

// Membership: adding, removing and checking servers of the group.

var (
	errRemoved   = errors.New("it was removed from its group: add it again and restart it, or give it an empty directory")
	errLastVoter = errors.New("it is the last server that counts for majorities")
	errNoMember  = errors.New("no server of the group has that address")
	errAddress   = errors.New("the address of a server is a host and a port")
)

// removedKey is set in the log of a removed server, so that it does not come back by itself.
var removedKey = []byte("Removed")

// Add adds a server to the group, which need not run yet. It is a learner, and counts for majorities once it has all
// data. Add does nothing if the server already belongs to the group.
func (n *Node) Add(addr string) error {
	if host, port, err := net.SplitHostPort(addr); err != nil || host == "" || port == "" {
		return errAddress
	}
	return n.changeMembers(func(r *consensus.Raft) error {
		c, index := n.config()
		if isMember(c, addr) {
			return nil
		}
		defer n.peers.kick()
		return r.AddNonvoter(consensus.ServerID(addr), consensus.ServerAddress(addr), index, answerTimeout).Error()
	})
}

// changeMembers changes the members as the leader, and tries again if another change, such as a learner that becomes a voter,
// came first.
func (n *Node) changeMembers(change func(r *consensus.Raft) error) error {
	for end := time.Now().Add(answerTimeout); ; {
		err := n.asLeader(change)
		// Raft has no name for this error.
		if err == nil || !strings.Contains(err.Error(), "configuration changed since") || time.Now().After(end) ||
			!n.pause(n.o.Timeout/20) {
			return err
		}
	}
}

// Remove removes a server from the group. A leader that must remove itself hands the lead over, and the next one
// removes it. Remove fails unless a majority of the remaining servers is online.
func (n *Node) Remove(addr string) error {
	return n.changeMembers(func(r *consensus.Raft) error {
		c, index := n.config()
		at := slices.IndexFunc(c.Servers, func(s consensus.Server) bool { return string(s.ID) == addr })
		if at < 0 {
			return errNoMember
		}
		if !isLearner(c.Servers[at]) {
			var left []string
			for i, s := range c.Servers {
				if i != at && !isLearner(s) {
					left = append(left, string(s.ID))
				}
			}
			online := n.online(left)
			switch {
			case len(left) == 0:
				return errLastVoter
			case online <= len(left)/2:
				return fmt.Errorf("only %d of the %d voters that are left would be online", online, len(left))
			}
		}
		if addr == n.o.Addr {
			return n.removeSelf()
		}
		defer n.peers.kick()
		return r.RemoveServer(consensus.ServerID(addr), index, answerTimeout).Error()
	})
}

// online asks servers, and returns how many take part in the group.
func (n *Node) online(addrs []string) int {
	var count atomic.Int64
	var asking sync.WaitGroup
	for _, addr := range addrs {
		if addr == n.o.Addr {
			count.Add(1)
			continue
		}
		asking.Go(func() {
			if a, err := n.peers.ask(addr, question{}); err == nil && a.Problem == "" {
				count.Add(1)
			}
		})
	}
	asking.Wait()
	return int(count.Load())
}

// removeSelf hands the lead to another server, and asks it to remove this one.
func (n *Node) removeSelf() error {
	if err := n.Transfer(""); err != nil {
		return err
	}
	for end := time.Now().Add(answerTimeout + 4*n.o.Timeout); time.Now().Before(end) && n.pause(n.o.Timeout/20); {
		_, id := n.raft.LeaderWithID()
		if id == "" || string(id) == n.o.Addr {
			continue
		}
		_, err := n.peers.ask(string(id), question{Remove: n.o.Addr})
		if !errors.Is(err, peer.NotLeading) { // otherwise it is elected but does not lead yet
			return err
		}
	}
	return errors.New("the lead was handed over, and nobody leads yet")
}

func isMember(c consensus.Configuration, addr string) bool {
	return slices.ContainsFunc(c.Servers, func(s consensus.Server) bool { return string(s.ID) == addr })
}

// membership is the leader's answer to a server about itself.
type membership struct {
	Term   uint64 // the leader's term
	Member bool
}

// membershipOf returns the membership of a server if the node leads, nil otherwise.
func (n *Node) membershipOf(addr string) *membership {
	if addr == "" || !n.leading.Load() {
		return nil
	}
	c, _ := n.config()
	return &membership{n.termOf(), isMember(c, addr)}
}

// config returns the latest committed configuration of the group, and its index.
func (n *Node) config() (consensus.Configuration, uint64) {
	n.held.Lock()
	defer n.held.Unlock()
	return n.applied.config, n.applied.configIndex
}

// heed ends the node's part in the group if the leader says that it was removed. It ignores an older leader: a
// server that joined later knows the newer term.
func (n *Node) heed(m *membership) {
	if m == nil || m.Member || m.Term < n.raft.CurrentTerm() {
		return
	}
	if f := n.raft.GetConfiguration(); f.Error() != nil || len(f.Configuration().Servers) == 0 || n.removed.Swap(true) {
		return
	}
	err := errRemoved
	if noted := n.log.SetUint64(removedKey, 1); noted != nil {
		err = errors.Join(err, noted)
	}
	n.giveUp(err)
}

// readmitted makes a removed server wait until the leader says that it belongs to the group again. It reports
// whether it does.
func (n *Node) readmitted() (bool, error) {
	n.removed.Store(true)
	n.o.Log.Warn("the server was removed from its group and waits until it is added again")
	n.machine.Changed()
	for n.pause(newsEvery) {
		for _, addr := range n.others() {
			a, err := n.peers.ask(addr, question{From: n.o.Addr})
			if err != nil || a.Membership == nil || !a.Membership.Member {
				continue
			}
			if err := n.log.SetUint64(removedKey, 0); err != nil {
				return false, err
			}
			n.removed.Store(false)
			return true, nil
		}
	}
	return false, nil
}

// others returns the addresses at which the server searches for the group: Peers and the last known members.
func (n *Node) others() (addrs []string) {
	addrs = slices.Clone(n.o.Peers)
	c, _ := n.config()
	for _, s := range c.Servers {
		addrs = append(addrs, string(s.ID))
	}
	slices.Sort(addrs)
	return slices.DeleteFunc(slices.Compact(addrs), func(a string) bool { return a == n.o.Addr })
}

// maxSkew is the difference of clocks that Check tolerates: a new leader's clock decides what has expired.
const maxSkew = time.Second

// Check asks all servers of the group for their state, and returns the problems as sentences; none if all is well.
func (n *Node) Check() (problems []string) {
	say := func(format string, args ...any) { problems = append(problems, fmt.Sprintf(format, args...)) }
	st := n.Status()
	if st.Err != nil {
		say("%s takes no part: %s", st.Addr, strings.ReplaceAll(st.Err.Error(), "\n", "; "))
	}
	if st.Leader == "" {
		say("the group has no leader")
	}
	voters, online := 0, 0
	type answer struct {
		news
		err  error
		skew time.Duration
	}
	answers := make([]chan answer, len(st.Members))
	for i, m := range st.Members {
		answers[i] = make(chan answer, 1)
		if m.Addr == st.Addr {
			answers[i] <- answer{news: n.peers.own()}
			continue
		}
		go func() {
			asked := time.Now()
			a, err := n.peers.ask(m.Addr, question{})
			took := time.Since(asked)
			skew := time.Unix(0, a.Now).Sub(asked.Add(took/2)).Abs() - took/2
			answers[i] <- answer{a, err, skew}
		}()
	}
	for i, m := range st.Members {
		a := <-answers[i]
		if m.Voter {
			voters++
		} else {
			say("%s does not count for majorities yet", m.Addr)
		}
		switch {
		case a.err != nil:
			say("%s does not answer: %s", m.Addr, a.err)
			continue
		case a.Problem != "":
			if m.Addr != st.Addr {
				say("%s takes no part: %s", m.Addr, a.Problem)
			}
			continue
		}
		if m.Voter {
			online++
		}
		if a.Leader != st.Leader {
			say("%s takes %q for the leader, and %s takes %q", m.Addr, a.Leader, st.Addr, st.Leader)
		}
		if a.Index+closeBy < st.Committed {
			say("%s is %d entries behind", m.Addr, st.Committed-a.Index)
		}
		if a.Now != 0 && a.skew > maxSkew {
			say("the clock of %s is wrong by %s, or that of %s is", m.Addr, a.skew.Round(time.Millisecond), st.Addr)
		}
		if a.Level != 0 && a.Level != entryLevel {
			say("%s is of another version: it knows entries up to level %d, not %d", m.Addr, a.Level, entryLevel)
		}
		if a.Timeout != 0 && a.Timeout != n.o.Timeout {
			say("%s has another raft-timeout: %d ms, not %d ms", m.Addr, a.Timeout.Milliseconds(), n.o.Timeout.Milliseconds())
		}
	}
	switch need := voters/2 + 1; {
	case voters == 0:
	case online < need:
		say("%d of %d voters are online, and %d are needed", online, voters, need)
	case online == need:
		say("%d of %d voters are online: no other may fail", online, voters)
	}
	return problems
}
