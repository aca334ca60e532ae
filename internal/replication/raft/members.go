package raft

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	consensus "github.com/hashicorp/raft"

	"github.com/atomredis/atomredis/internal/replication/quorum"
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

// Add adds a server to the group, or gives a member another role: one that has joined by itself, or is a learner, votes once it
// has all data; with o.Learner a member stays a learner, also one that votes. Add does nothing if the server has that role.
func (n *Node) Add(addr string, o quorum.AddOptions) error {
	if !isAddress(addr) {
		return errAddress
	}
	err := n.asLeader(func(*consensus.Raft) error {
		c, _ := n.config()
		if is := role(c, addr); is != "" && is != quorum.Waiting {
			return nil
		}
		return n.addable(addr, o.Online) // once, before the index is read: other changes can come while the server is asked
	})
	if err != nil {
		return err
	}
	return n.changeMembers(func(r *consensus.Raft) error {
		c, index := n.config()
		is, witness := role(c, addr), slices.ContainsFunc(c.Servers, func(s consensus.Server) bool {
			return string(s.ID) == addr && isWitnessAt(s.Address)
		})
		defer n.peers.kick()
		switch {
		case o.Learner && witness:
			return errWitnessLearns
		case o.Learner && is == quorum.Voter:
			return n.demote(r, c, addr, index)
		case o.Learner && is != quorum.Learner:
			return n.outcome(r.AddNonvoter(consensus.ServerID(addr), addressAs(quorum.Learner, false, addr), index, answerTimeout))
		case !o.Learner && !is.Votes() && is != quorum.Joining:
			return n.outcome(r.AddNonvoter(consensus.ServerID(addr), addressAs(quorum.Joining, witness, addr), index, answerTimeout))
		}
		return nil
	})
}

// demote makes a voter of a configuration, which has an index, a learner that stays one.
func (n *Node) demote(r *consensus.Raft, c consensus.Configuration, addr string, index uint64) error {
	if addr == n.o.Addr {
		return errLeads
	}
	if err := n.spares(c, addr); err != nil {
		return err
	}
	// The address has the role as a learner, and comes first: as soon as the server does not vote, nobody promotes it.
	f := r.AddNonvoter(consensus.ServerID(addr), addressAs(quorum.Learner, false, addr), index, answerTimeout)
	if err := n.outcome(f); err != nil {
		return err
	}
	return n.outcome(r.DemoteVoter(consensus.ServerID(addr), f.Index(), answerTimeout))
}

// addable returns nil if the server at an address may be added: it belongs to no other group. With online set, it must answer.
func (n *Node) addable(addr string, online bool) error {
	a, err := n.peers.ask(addr, question{})
	c, _ := n.config()
	own := n.number(groupKey)
	switch {
	case err != nil && online:
		return fmt.Errorf("no server of a group answers at %s: %w", addr, err)
	case err != nil:
		return nil
	case a.Leader != "" && !isMember(c, a.Leader):
		return fmt.Errorf("%s belongs to another group, which %s leads: give it an empty directory", addr, a.Leader)
	case a.Group != 0 && own != 0 && a.Group != own, a.Established && a.Recovery != n.recovery():
		return fmt.Errorf("%s belongs to another group: give it an empty directory", addr)
	}
	return nil
}

// isAddress reports whether a text is a host and a port.
func isAddress(addr string) bool {
	host, port, err := net.SplitHostPort(addr)
	_, bad := strconv.ParseUint(port, 10, 16)
	return err == nil && host != "" && bad == nil
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
		at := slices.IndexFunc(c.Servers, called(addr))
		if at < 0 {
			return errNoMember
		}
		if !isLearner(c.Servers[at]) {
			if err := n.spares(c, addr); err != nil {
				return err
			}
		}
		if addr == n.o.Addr {
			return n.removeSelf()
		}
		defer n.peers.kick()
		return n.outcome(r.RemoveServer(consensus.ServerID(addr), index, answerTimeout))
	})
}

// spares returns nil if a majority of the voters of a configuration without the one with an address is online.
func (n *Node) spares(c consensus.Configuration, addr string) error {
	var left []string
	for _, s := range c.Servers {
		if string(s.ID) != addr && !isLearner(s) {
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
	return nil
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
		_, id := n.consensus().LeaderWithID()
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
	return slices.ContainsFunc(c.Servers, called(addr))
}

// role returns the role of the server with an address in a configuration, "" if it is no member.
func role(c consensus.Configuration, addr string) quorum.Role {
	at := slices.IndexFunc(c.Servers, called(addr))
	if at < 0 {
		return ""
	}
	return roleOf(c.Servers[at])
}

// called returns a function that reports whether a server has a name.
func called(addr string) func(consensus.Server) bool {
	return func(s consensus.Server) bool { return string(s.ID) == addr }
}

// membership is the leader's answer to a server about itself.
type membership struct {
	Term   uint64 // the leader's term
	Member bool
	// Recovery and Group are those of the leader's group: see recoveryKey and groupKey.
	Recovery uint64 `json:",omitempty"`
	Group    uint64 `json:",omitempty"`
}

// membershipOf returns the membership of a server if the node leads, nil otherwise.
func (n *Node) membershipOf(addr string) *membership {
	if addr == "" || !n.leading.Load() {
		return nil
	}
	c, _ := n.config()
	return &membership{n.termOf(), isMember(c, addr), n.recovery(), n.number(groupKey)}
}

// recoveryKey has a number of its own in the log of each member of a recovered group, 0 or none in that of others: a
// former member, whose group may still exist, does not count as removed because a recovered group does not know it.
var recoveryKey = []byte("Recovery")

func (n *Node) recovery() uint64 { return n.number(recoveryKey) }

// groupKey has the identity of the group in the log of each member: a random number, which the leader chooses if no member
// that answers has one, and which the others take over from the leader whose members they are. 0 is unknown.
var groupKey = []byte("Group")

// number returns the number that the log stores under a key, 0 without one.
func (n *Node) number(key []byte) uint64 {
	number, _ := n.log.GetUint64(key)
	return number
}

// identify gives a leader's group its identity: known, which another member has, or a new one if that is 0.
func (n *Node) identify(known uint64) error {
	if n.number(groupKey) != 0 {
		return nil
	}
	if known == 0 {
		known = 1 + rand.Uint64N(math.MaxUint64)
	}
	return n.log.SetUint64(groupKey, known)
}

// config returns the latest committed configuration of the group, and its index.
func (n *Node) config() (consensus.Configuration, uint64) {
	n.held.Lock()
	defer n.held.Unlock()
	return n.applied.config, n.applied.configIndex
}

// heed learns from the leader's answer. It ends the node's part in the group if the leader says that it was removed. It
// ignores an older leader: a server that joined later knows the newer term.
func (n *Node) heed(m *membership) {
	if m == nil || m.Term < n.consensus().CurrentTerm() || !n.learn(m) {
		return
	}
	if f := n.consensus().GetConfiguration(); f.Error() != nil || len(f.Configuration().Servers) == 0 || n.removed.Swap(true) {
		return
	}
	err := errRemoved
	if noted := n.log.SetUint64(removedKey, 1); noted != nil {
		err = errors.Join(err, noted)
	}
	n.giveUp(err)
}

// learn takes over the identity of the group from a leader whose member the node is. That leader may lead another group
// than the node's log says: RAFT.ADD cannot ask a server that is down. learn reports whether the node was removed: a leader
// of its own group says that it is no member.
func (n *Node) learn(m *membership) (removed bool) {
	own, recovery := n.number(groupKey), n.recovery()
	if !m.Member {
		return m.Recovery == recovery && (m.Group == own || m.Group == 0 || own == 0)
	}
	// If a value is not written, the next answer repeats it. A leader without an identity has just begun to lead, or is
	// older.
	if m.Group != 0 && m.Recovery != recovery {
		_ = n.log.SetUint64(recoveryKey, m.Recovery)
	}
	if m.Group != 0 && m.Group != own {
		_ = n.log.SetUint64(groupKey, m.Group)
	}
	return false
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
			n.learn(a.Membership) // the group may have been recovered since
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
		switch {
		case m.Role.Votes():
			voters++
		case m.Role == quorum.Joining:
			say("%s does not count for majorities yet", m.Addr)
		case m.Role == quorum.Waiting:
			say("%s has joined by itself and does not count for majorities: RAFT.ADD %s lets it", m.Addr, m.Addr)
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
		if m.Role.Votes() {
			online++
		}
		if a.WriteProblem != "" {
			say("%s refuses changes: %s", m.Addr, a.WriteProblem)
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
		if !slices.Equal(a.LeaderZones, n.leaderZones()) {
			say("%s has other raft-leader-zones: %q, not %q", m.Addr, a.LeaderZones, n.leaderZones())
		}
	}
	switch need := voters/2 + 1; {
	case voters == 0:
	case online < need:
		say("%d of %d voters are online, and %d are needed", online, voters, need)
	case online == need:
		say("%d of %d voters are online: no other may fail", online, voters)
	}
	for _, zone := range st.CriticalZones() {
		left := 0
		for _, m := range st.Members {
			if m.Role.Votes() && m.Zone != zone {
				left++
			}
		}
		say("without the zone %s, %d of %d voters would be left, and %d are needed", zone, left, voters, voters/2+1)
	}
	return problems
}
