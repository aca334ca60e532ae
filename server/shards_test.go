package server

import (
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/atomredis/atomredis/internal/cluster"
)

// startShards starts groups of n servers that know each other; the first has all slots.
func startShards(t *testing.T, shards, n int, settings ...string) (list []*testGroup) {
	for i := range shards {
		slots := "cluster-slots=none"
		if i == 0 {
			slots = "cluster-slots=0-16383"
		}
		list = append(list, startGroup(t, n, append([]string{"cluster-enabled=yes", slots}, settings...)...))
	}
	c := list[0].settled().client()
	for _, g := range list[1:] {
		g.settled()
		c.waitUntil("CLUSTER MEET "+g.meetArgs(), "+OK")
	}
	for _, g := range list {
		for _, n := range g.nodes {
			n.client().waitFor("CLUSTER INFO", "cluster_state:ok")
			n.client().waitFor("CLUSTER INFO", fmt.Sprint("cluster_known_nodes:", shards*len(g.nodes)))
		}
	}
	return list
}

// meetArgs are those of CLUSTER MEET for the leader of the group.
func (g *testGroup) meetArgs() string {
	l := g.leader()
	_, port, _ := net.SplitHostPort(l.clientAddr())
	_, bus, _ := net.SplitHostPort(l.addr)
	return "127.0.0.1 " + port + " " + bus
}

// waitUntil repeats a command until it gets the wanted reply.
func (c *testClient) waitUntil(command, want string) {
	c.t.Helper()
	var last string
	require.Eventually(c.t, func() bool {
		last = c.do(command)
		return last == want
	}, testTimeout, 5*time.Millisecond, "%s: %s", command, &last)
}

func TestShardsKnowEachOtherAndTheirSlots(t *testing.T) {
	t.Parallel()
	list := startShards(t, 3, 1)
	a, b, c := list[0].leader().client(), list[1].leader().client(), list[2].leader().client()
	slot := cluster.SlotOf([]byte("a"))
	require.Equal(t, "+OK", a.do("SET a 1"))
	moved := fmt.Sprintf("-MOVED %d ", slot)
	b.waitUntil("GET a", moved+list[0].leader().clientAddr())
	c.waitUntil("GET a", moved+list[0].leader().clientAddr())
	require.Equal(t, "-ERR Slot 1 is already busy", b.do("CLUSTER ADDSLOTS 1 2"))
	require.Equal(t, "-ERR Slot 1 is already unassigned", b.do("CLUSTER DELSLOTS 1"))

	require.Equal(t, "+OK", a.do("CLUSTER DELSLOTSRANGE 0 100 200 300"))
	require.Equal(t, "-CLUSTERDOWN Hash slot not served", a.do("GET {"+cluster.TagOf(100)+"}"))
	require.Contains(t, a.do("CLUSTER INFO"), "cluster_state:fail")
	b.waitUntil("CLUSTER ADDSLOTSRANGE 0 100", "+OK")
	c.waitUntil("CLUSTER ADDSLOTSRANGE 200 300", "+OK")
	require.Equal(t, "+OK", b.do("SET {"+cluster.TagOf(100)+"} x"))
	a.waitUntil("GET {"+cluster.TagOf(100)+"}", "-MOVED 100 "+list[1].leader().clientAddr())
	a.waitUntil("GET {"+cluster.TagOf(300)+"}", "-MOVED 300 "+list[2].leader().clientAddr())
	a.waitFor("CLUSTER INFO", "cluster_state:ok")
	lines := nodeLines(a)
	require.Equal(t, []string{"101-199", "301-16383"}, lines[list[0].leader().clientAddr()][8:])
	require.Equal(t, []string{"0-100"}, lines[list[1].leader().clientAddr()][8:])
	require.Equal(t, []string{"200-300"}, lines[list[2].leader().clientAddr()][8:])

	require.Contains(t, a.do("EVAL return(redis.call('GET',KEYS[1])) 1 {"+cluster.TagOf(100)+"}"), "MOVED")
	require.Contains(t, a.do("EVAL return(redis.call('GET','{"+cluster.TagOf(100)+"}')) 0"), "non local key")
	require.Contains(t, a.do("PRESSURE.CREATE q"), "CROSSSLOT")
	require.NotContains(t, a.do("PRESSURE.CREATE q{a}"), "CROSSSLOT")

	id := lines[list[1].leader().clientAddr()][0]
	require.Equal(t, "-ERR the shard has slots", a.do("CLUSTER FORGET "+id))
	require.Contains(t, b.do("CLUSTER FLUSHSLOTS"), "DB must be empty")
	require.Contains(t, a.do("CLUSTER SYNCSLOTS RECORD {}"), "only allowed for internal clients")

	// The record exists after a start, also from a checkpoint.
	require.Equal(t, "+OK", b.do("SAVE"))
	n := list[1].nodes[0]
	n.kill()
	n.start()
	list[1].leader()
	b = n.client()
	b.waitUntil("GET {"+cluster.TagOf(100)+"}", "x")
	b.waitUntil("GET a", moved+list[0].leader().clientAddr())
	a.waitUntil("GET {"+cluster.TagOf(100)+"}", "-MOVED 100 "+n.clientAddr())
}

func TestShardsThatHaveTheSameSlotsDoNotMeet(t *testing.T) {
	t.Parallel()
	a, b := startGroup(t, 1, "cluster-enabled=yes"), startGroup(t, 1, "cluster-enabled=yes")
	c := a.settled().client()
	b.settled()
	require.Eventually(t, func() bool { return strings.Contains(c.do("CLUSTER MEET "+b.meetArgs()), "both shards have slot 0") },
		testTimeout, 5*time.Millisecond)
	require.Equal(t, "+OK", b.leader().client().do("CLUSTER FLUSHSLOTS"))
	c.waitUntil("CLUSTER MEET "+b.meetArgs(), "+OK")
	b.leader().client().waitFor("CLUSTER INFO", "cluster_known_nodes:2\r\ncluster_size:1\r\n")
}
