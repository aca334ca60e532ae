package server

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/atomredis/atomredis/internal/testing/freeport"
)

// join starts one more node, which joins the group.
func (g *testGroup) join() *groupNode {
	n := &groupNode{addr: freeport.Addr(g.t), dir: g.t.TempDir(), g: g}
	require.Equal(g.t, "+OK", g.leader().client().do("RAFT.ADD "+n.addr))
	g.nodes = append(g.nodes, n)
	n.start()
	return n
}

// forget removes a node from the list of the group's nodes, and returns it.
func (g *testGroup) forget(n *groupNode) *groupNode {
	for i, other := range g.nodes {
		if other == n {
			g.nodes = append(g.nodes[:i:i], g.nodes[i+1:]...)
		}
	}
	g.t.Cleanup(func() {
		if n.Server != nil {
			n.Close()
		}
	})
	return n
}

func (n *groupNode) waitForState(state string) {
	n.g.t.Helper()
	require.Eventually(n.g.t, func() bool { return n.GroupStatus().State == state }, testTimeout, time.Millisecond,
		"not %s", state)
}

// A fourth server joins, and the first one is removed while it leads; it stays away until it is added again.
func TestAServerIsAddedToAGroupAndTheLeaderRemoved(t *testing.T) {
	t.Parallel()
	g := startGroup(t, 3)
	first := g.settled()
	require.Equal(t, "+OK", first.client().do("SET key value"))
	fourth := g.join()
	g.settled()
	fourth.client().waitFor("GET key", "value")
	removed := g.leader()
	c := removed.client()
	require.Equal(t, "+OK", c.do("RAFT.REMOVE "+g.forget(removed).addr))
	removed.waitForState("removed")
	removed.client().waitFor("INFO replication", "raft_problem:it was removed from its group")
	leader := g.settled()
	require.Len(t, leader.GroupStatus().Members, 3)
	require.Equal(t, "+OK", leader.client().do("SET key other"))
	require.Contains(t, leader.client().do("RAFT.REMOVE "+removed.addr), "no server of the group has that address")

	// Its raft-peers still name the group, but its directory has the removal.
	removed.kill()
	removed.start()
	removed.waitForState("removed")
	require.Contains(t, removed.client().do("SET key x"), "READONLY")
	require.Len(t, g.settled().GroupStatus().Members, 3)
	require.Equal(t, "+OK", g.leader().client().do("RAFT.ADD "+removed.addr))
	g.nodes = append(g.nodes, removed)
	g.settled()
	removed.client().waitFor("GET key", "other")
}

// A server is removed while it is down, and does not disturb the others when it comes back.
func TestADeadServerIsRemovedFromItsGroup(t *testing.T) {
	t.Parallel()
	g := startGroup(t, 3)
	g.settled()
	dead, other := g.followers()[0], g.followers()[1]
	dead.kill()
	leader := g.leader()
	c := leader.client()
	require.Eventually(t, func() bool { return strings.Contains(c.do("RAFT.CHECK"), "does not answer") }, testTimeout,
		time.Millisecond)
	require.Contains(t, c.do("RAFT.CHECK"), "2 of 3 voters are online: no other may fail")
	require.Contains(t, c.do("RAFT.REMOVE "+other.addr), "only 1 of the 2 voters that are left would be online")
	require.Equal(t, "+OK", c.do("RAFT.REMOVE "+g.forget(dead).addr))
	require.Len(t, g.settled().GroupStatus().Members, 2)
	dead.start()
	dead.waitForState("removed")

	require.Equal(t, "+OK", c.do("RAFT.REMOVE "+g.forget(other).addr))
	other.waitForState("removed")
	require.Contains(t, c.do("RAFT.REMOVE "+leader.addr), "the last server that counts for majorities")
	require.Equal(t, "+OK", c.do("SET alone yes"))
	require.Equal(t, `["1 of 1 voters are online: no other may fail"]`, c.do("RAFT.CHECK"))
	require.Contains(t, c.do("RAFT.TRANSFER"), "no other server can lead")

	// With an empty directory it is a new server.
	dead.kill()
	require.NoError(t, os.RemoveAll(dead.dir))
	dead.start()
	g.nodes = append(g.nodes, dead)
	g.settled()
	dead.client().waitFor("GET alone", "yes")
}

func TestRaftCommands(t *testing.T) {
	t.Parallel()
	alone := startTestServer(t, Options{}).connect()
	require.Contains(t, alone.do("RAFT.STATUS"), "belongs to no group")
	require.Contains(t, alone.do("RAFT.HELP"), "REMOVE")
	g := startGroup(t, 3, "raft-timeout=3000") // for answers that name the leader, it must not change meanwhile
	leader := g.settled()
	f := g.followers()[0]
	for command, says := range map[string]string{
		"RAFT.ADD here":                  "is a host and a port",
		"RAFT.REMOVE 127.0.0.1:1":        "no server of the group has that address",
		"RAFT.TRANSFER 127.0.0.1:1":      "no server of the group has that address",
		"RAFT.TRANSFER " + leader.addr:   "leads already",
		"RAFT.TRANSFER " + f.addr + " x": "syntax error",
		"RAFT.STATUS":                    `"state" "leader" "leader" "` + leader.addr + `"`,
	} {
		require.Contains(t, leader.client().do(command), says, command)
		if !strings.Contains(command, "STATUS") {
			require.Contains(t, f.client().do(command), says, "a follower asks the leader: %s", command)
		}
	}
	lengths := regexp.MustCompile(`"log-bytes" [1-9]`)
	require.Eventually(t, func() bool { return len(lengths.FindAllString(f.client().do("RAFT.STATUS"), -1)) == 3 },
		testTimeout, 10*time.Millisecond)
	require.Equal(t, "+OK", leader.client().do("RAFT.ADD "+f.addr), "it belongs to the group already")
	for _, n := range g.nodes {
		require.Eventually(t, func() bool { return n.client().do("RAFT.CHECK") == "[]" }, testTimeout, 10*time.Millisecond)
	}
	require.Equal(t, "+OK", f.client().do("RAFT.TRANSFER "+f.addr))
	f.waitForState("leader")
	require.Equal(t, "+OK", f.client().do(fmt.Sprint("SET", " key", " value")))

	// A server that is added before it is started.
	late := freeport.Addr(t)
	require.Equal(t, "+OK", f.client().do("RAFT.ADD "+late))
	require.Contains(t, f.client().do("RAFT.CHECK"), late+" does not count for majorities yet")
	n := &groupNode{addr: late, dir: t.TempDir(), g: g}
	g.nodes = append(g.nodes, n)
	n.start()
	g.settled()
	n.client().waitFor("GET key", "value")
}

// What tools send to the nodes of a Redis cluster has the same meaning in a group.
func TestANodeTakesTheLeadOfItsShard(t *testing.T) {
	t.Parallel()
	g := startGroup(t, 3, "cluster-enabled=yes")
	leader := g.settled()
	f, other := g.followers()[0], g.followers()[1]
	c := f.client()
	id := func(n *groupNode) string { return n.client().do("CLUSTER MYID") }
	for command, want := range map[string]string{
		"CLUSTER REPLICATE " + id(leader): "+OK",
		"CLUSTER REPLICATE " + id(f):      "-ERR Can't replicate myself",
		"CLUSTER REPLICATE " + id(other):  "-ERR I can only replicate a master, not a replica.",
		"CLUSTER SAVECONFIG":              "+OK",
		"CLUSTER FAILOVER NOW":            "-ERR syntax error",
	} {
		require.Equal(t, want, c.do(command), command)
	}
	require.Equal(t, "+OK", c.do("CLUSTER FAILOVER"))
	f.waitForState("leader")
	require.Equal(t, "-ERR You should send CLUSTER FAILOVER to a replica", f.client().do("CLUSTER FAILOVER FORCE"))
	f.client().waitFor("CLUSTER BUMPEPOCH", "+STILL 1")
}
