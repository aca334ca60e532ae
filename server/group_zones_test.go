package server

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/atomredis/atomredis/internal/replication/quorum"
	"github.com/atomredis/atomredis/internal/testing/freeport"
)

// becomes waits until the leader says that a node has a role.
func (g *testGroup) becomes(n *groupNode, role quorum.Role) {
	g.t.Helper()
	require.Eventually(g.t, func() bool {
		m := g.member(n)
		return m != nil && m.Role == role
	}, testTimeout, 10*time.Millisecond, "%s is no %s", n.addr, role)
}

// ask sends a command to the leader until it has done it: the lead may move.
func (g *testGroup) ask(command string) {
	g.t.Helper()
	require.Eventually(g.t, func() bool { return g.leader().client().do(command) == "+OK" }, testTimeout, 10*time.Millisecond, command)
}

// A server that is added as a learner has all data, and never votes until it is added again.
func TestALearnerThatStays(t *testing.T) {
	t.Parallel()
	g := startGroup(t, 3, "raft-join=auto")
	g.settled()
	g.ask("SET key value")
	n := &groupNode{addr: freeport.Addr(t), dir: t.TempDir(), g: g}
	g.ask("RAFT.ADD " + n.addr + " learner")
	n.start()
	t.Cleanup(func() { n.Close() })
	n.waitForState("learner")
	n.client().waitFor("GET key", "value")
	g.join() // a server that is added afterwards is promoted, and the learner would have been before
	g.settledBut(1)
	g.becomes(n, quorum.Learner)
	require.Eventually(t, func() bool { return g.leader().client().do("RAFT.CHECK") == "[]" }, testTimeout, 10*time.Millisecond)
	require.Contains(t, g.leader().client().do("RAFT.TRANSFER "+n.addr), "no other server can lead")

	// It also stays one when it loses its data.
	n.kill()
	n.dir = t.TempDir()
	n.start()
	n.waitForState("learner")
	n.client().waitFor("GET key", "value")
	g.becomes(n, quorum.Learner)

	g.ask("RAFT.ADD " + n.addr + " ONLINE")
	g.becomes(n, quorum.Voter)
	g.ask("RAFT.ADD " + n.addr + " ONLINE LEARNER")
	g.becomes(n, quorum.Learner)
	n.waitForState("learner")
	g.ask("SET key again")
	n.client().waitFor("GET key", "again")
	require.Contains(t, g.leader().client().do("RAFT.ADD "+n.addr+" LEARNER LEARNER"), "syntax error")
}

// A voter becomes a learner only if a majority of the others is online, and if it does not lead.
func TestAVoterBecomesALearner(t *testing.T) {
	t.Parallel()
	g := startGroup(t, 3, "raft-timeout=3000") // for answers of the leader, it must not change meanwhile
	leader := g.settled()
	c, followers := leader.client(), g.followers()
	require.Contains(t, c.do("RAFT.ADD "+leader.addr+" LEARNER"), "leads already")
	followers[0].kill()
	require.Contains(t, c.do("RAFT.ADD "+followers[1].addr+" LEARNER"), "only 1 of the 2 voters that are left would be online")
	require.Equal(t, "+OK", c.do("RAFT.ADD "+followers[0].addr+" LEARNER"))
	g.becomes(followers[0], quorum.Learner)
	require.Equal(t, "+OK", c.do("SET key value"))
	followers[0].start()
	followers[0].client().waitFor("GET key", "value")
	followers[0].waitForState("learner")
}

// The leader hands the lead to a server in a zone that is preferred, and says what the loss of a zone means.
func TestLeadersAreInPreferredZones(t *testing.T) {
	t.Parallel()
	g := startGroup(t, 3, "raft-timeout=500", "raft-leader-zones=south,north")
	g.settled()
	for i, zone := range []string{"north", "south", "north"} {
		require.Equal(t, "+OK", g.nodes[i].client().do("CONFIG SET raft-zone "+zone))
	}
	says := func(n *groupNode, want string) func() bool {
		return func() bool { return n.client().do("RAFT.CHECK") == want }
	}
	leads := func(n *groupNode) func() bool {
		return func() bool { return n.Server != nil && n.GroupStatus().State == "leader" }
	}
	require.Eventually(t, leads(g.nodes[1]), testTimeout, 10*time.Millisecond, "the server in the south does not lead")
	require.Eventually(t, says(g.nodes[1], `["without the zone north, 1 of 3 voters would be left, and 2 are needed"]`), testTimeout,
		10*time.Millisecond)
	g.nodes[1].client().waitFor("INFO replication", "raft_critical_zones:1")

	require.Equal(t, "+OK", g.nodes[2].client().do("CONFIG SET raft-zone west"))
	require.Eventually(t, says(g.nodes[1], "[]"), testTimeout, 10*time.Millisecond)
	g.nodes[1].kill()
	require.Eventually(t, leads(g.nodes[0]), testTimeout, 10*time.Millisecond, "the north comes second")
	g.nodes[1].start()
	require.Equal(t, "+OK", g.nodes[1].client().do("CONFIG SET raft-zone south"))
	require.Eventually(t, leads(g.nodes[1]), testTimeout, 10*time.Millisecond, "the lead goes back")
	require.Equal(t, "+OK", g.nodes[1].client().do("CONFIG SET raft-leader-zones south"))
	require.Eventually(t, func() bool {
		return strings.Contains(g.nodes[1].client().do("RAFT.CHECK"), g.nodes[0].addr+" has other raft-leader-zones")
	}, testTimeout, 10*time.Millisecond)
}
