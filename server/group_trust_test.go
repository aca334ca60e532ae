package server

import (
	"bytes"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/atomredis/atomredis/internal/replication/quorum"
	"github.com/atomredis/atomredis/internal/testing/freeport"
	"github.com/atomredis/atomredis/internal/wire/peer"
)

// stranger starts a node whose raft-peers name the group, which the group does not name.
func (g *testGroup) stranger(settings ...string) *groupNode {
	before := g.settings
	g.settings = append(append([]string{}, before...), settings...)
	log := &refusals{refused: make(chan struct{})}
	n := &groupNode{addr: freeport.Addr(g.t), dir: g.t.TempDir(), g: g, refused: log.refused, log: slog.New(slog.NewTextHandler(log, nil))}
	n.start()
	g.settings = before
	g.t.Cleanup(func() {
		if n.Server != nil {
			n.Close()
		}
	})
	return n
}

// member returns what the leader knows of a node; nil if nothing.
func (g *testGroup) member(n *groupNode) *quorum.Member {
	for _, m := range g.leader().GroupStatus().Members {
		if m.Addr == n.addr {
			return &m
		}
	}
	return nil
}

// refusals is the log of a server. It closes refused when the server, as it looks for its group, has been refused.
type refusals struct {
	refused chan struct{}
	once    sync.Once
}

func (r *refusals) Write(line []byte) (int, error) {
	if bytes.Contains(line, []byte("looking for the group")) && bytes.Contains(line, []byte("raft-secret")) {
		r.once.Do(func() { close(r.refused) })
	}
	return len(line), nil
}

// A server that does not know the secret neither joins nor asks anything, and one that learns it does.
func TestAServerWithoutTheSecretOfAGroup(t *testing.T) {
	t.Parallel()
	g := startGroup(t, 3, "raft-secret=s3cret")
	leader := g.settled()
	require.Equal(t, "+OK", leader.client().do("SET key value"))
	for _, secret := range []string{"", "guessed"} {
		n := g.stranger("raft-secret="+secret, "replica-max-lag=0")
		select {
		case <-n.refused:
		case <-time.After(testTimeout):
			require.Fail(t, "it does not look for the group")
		}
		for _, purpose := range []peer.Purpose{peer.Members, peer.Raft, peer.Forward, peer.Shards, peer.Broadcast} {
			_, err := n.group.node().Dial(leader.addr, purpose, testTimeout)
			require.ErrorIs(t, err, peer.Untrusted)
		}
		require.Equal(t, "joining", n.GroupStatus().State)
		require.Equal(t, "0", n.client().do("DBSIZE"))
		require.Nil(t, g.member(n))
		require.Equal(t, "+OK", n.client().do("CONFIG SET raft-secret s3cret"))
		n.waitForState("learner")
		n.client().waitFor("GET key", "value")
	}
}

// Servers whose secret is changed while they run speak with each other again once all have it.
func TestTheSecretOfAGroupIsChanged(t *testing.T) {
	t.Parallel()
	g := startGroup(t, 3)
	g.settled()
	for _, n := range g.nodes {
		require.Equal(t, "+OK", n.client().do("CONFIG SET raft-secret new"))
	}
	for _, n := range g.nodes {
		require.Eventually(t, func() bool { return n.client().do("RAFT.CHECK") == "[]" }, testTimeout, 10*time.Millisecond)
	}
	first := g.leader()
	first.kill()
	require.NotSame(t, first, g.leader())
	first.start() // its configuration has no secret
	require.Eventually(t, func() bool {
		return strings.Contains(g.leader().client().do("RAFT.CHECK"), first.addr+" does not answer")
	},
		testTimeout, 10*time.Millisecond)
	require.Equal(t, "+OK", first.client().do("CONFIG SET raft-secret new"))
	g.settled()
}

// A server that joins by itself has all data, and votes only once it is added.
func TestAServerThatJoinsByItselfLearns(t *testing.T) {
	t.Parallel()
	g := startGroup(t, 3)
	require.Equal(t, "+OK", g.settled().client().do("SET key value"))
	n := g.stranger()
	n.waitForState("learner")
	n.client().waitFor("GET key", "value")
	require.Contains(t, g.leader().client().do("RAFT.CHECK"), n.addr+" has joined by itself")
	// A server that was added afterwards is promoted, and this one would have been before.
	g.join()
	g.settledBut(1)
	require.Equal(t, quorum.Waiting, g.member(n).Role)
	require.Equal(t, "learner", n.GroupStatus().State)
	require.Equal(t, "+OK", g.leader().client().do("RAFT.ADD "+n.addr+" ONLINE"))
	g.nodes = append(g.nodes, n)
	g.settled()

	// A voter that has lost its data votes again when it has learned.
	n.kill()
	n.dir = t.TempDir()
	n.start()
	g.settled()
}

// settledBut waits until all nodes count for majorities; others of the group do not.
func (g *testGroup) settledBut(others int) {
	g.t.Helper()
	require.Eventually(g.t, func() bool {
		members, voters := g.leader().group.members.Status().Members, 0
		for _, m := range members {
			if m.Role.Votes() && m.Online {
				voters++
			}
		}
		return len(members) == len(g.nodes)+others && voters == len(g.nodes)
	}, testTimeout, time.Millisecond, "the group is not whole")
}

func TestServersJoinByThemselvesIfTheGroupLetsThem(t *testing.T) {
	t.Parallel()
	g := startGroup(t, 3, "raft-join=auto")
	g.settled()
	g.nodes = append(g.nodes, g.stranger())
	g.settled()
}

// A server that has joined before votes, too.
func TestAServerThatWaitsIsLetInAtRunTime(t *testing.T) {
	t.Parallel()
	g := startGroup(t, 3)
	g.settled()
	n := g.stranger()
	n.waitForState("learner")
	require.Contains(t, g.leader().client().do("RAFT.CHECK"), n.addr+" has joined by itself")
	for _, n := range g.nodes { // the leader's setting counts, and the lead may change
		require.Equal(t, "+OK", n.client().do("CONFIG SET raft-join auto"))
	}
	g.nodes = append(g.nodes, n)
	g.settled()
	require.Equal(t, quorum.Voter, g.member(n).Role)
}

// A server that is to run is asked before it is added.
func TestOnlyARunningServerIsAdded(t *testing.T) {
	t.Parallel()
	g := startGroup(t, 3)
	leader := g.settled()
	c := leader.client()
	nobody := freeport.Addr(t)
	require.Contains(t, c.do("RAFT.ADD "+nobody+" ONLINE"), "-ERR no server of a group answers at "+nobody)
	forClients := g.followers()[0].Addrs()[0].String()
	require.Contains(t, c.do("RAFT.ADD "+forClients+" ONLINE"), "-ERR no server of a group answers at "+forClients)
	other := startGroup(t, 1)
	require.Contains(t, c.do("RAFT.ADD "+other.settled().addr), "belongs to another group, which "+other.leader().addr+" leads")
	require.Len(t, leader.GroupStatus().Members, 3)
	require.Equal(t, "-ERR syntax error", c.do("RAFT.ADD "+nobody+" OFFLINE"))
	require.Equal(t, "-ERR syntax error", c.do("RAFT.ADD "+nobody+" ONLINE x"))
}

// A member of another group is refused while that has no leader, too.
func TestAMemberOfAGroupWithoutALeaderIsNotAdded(t *testing.T) {
	t.Parallel()
	c := startGroup(t, 1).settled().client()
	other := startGroup(t, 3)
	last := other.settled()
	for _, n := range other.followers() {
		n.kill()
	}
	require.Eventually(t, func() bool { return last.GroupStatus().Leader == "" }, testTimeout, time.Millisecond)
	require.Contains(t, c.do("RAFT.ADD "+last.addr), last.addr+" belongs to another group: give it an empty directory")
}
