package server

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/atomredis/atomredis/internal/cluster"
)

// nodeLines returns the lines of CLUSTER NODES, by the addresses in them.
func nodeLines(c *testClient) map[string][]string {
	lines := map[string][]string{}
	for line := range strings.Lines(c.do("CLUSTER NODES")) {
		f := strings.Fields(line)
		addr, _, _ := strings.Cut(f[1], "@")
		lines[addr] = f
	}
	return lines
}

func (n *groupNode) clientAddr() string { return n.Addrs()[0].String() }

func TestAGroupIsAShardOfACluster(t *testing.T) {
	t.Parallel()
	g := startGroup(t, 3, "cluster-enabled=yes")
	leader := g.settled()
	follower := g.followers()[0]
	c, fc := leader.client(), follower.client()
	fc.waitFor("CLUSTER NODES", leader.clientAddr())
	slot := cluster.SlotOf([]byte("a"))
	moved := fmt.Sprintf("-MOVED %d %s", slot, leader.clientAddr())

	require.Equal(t, "+OK", c.do("SET a 1"))
	require.Equal(t, moved, fc.do("SET a 2"))
	require.Equal(t, moved, fc.do("GET a"))
	require.Equal(t, moved, fc.do("EVAL return(1) 1 a"))
	require.Equal(t, moved, fc.do("WATCH a"))
	require.Equal(t, "+OK", fc.do("READONLY"))
	fc.waitFor("GET a", "1")
	require.Equal(t, moved, fc.do("SET a 2"))
	require.Contains(t, fc.do("MGET a b"), "CROSSSLOT")
	require.Equal(t, "+OK", fc.do("MULTI"))
	require.Equal(t, "+QUEUED", fc.do("GET a"))
	require.Equal(t, "[\"1\"]", fc.do("EXEC"))
	require.Equal(t, "+OK", fc.do("MULTI"))
	require.Equal(t, moved, fc.do("SET a 2"))
	require.Contains(t, fc.do("EXEC"), "EXECABORT")
	require.Equal(t, "+RESET", fc.do("RESET"))
	require.Equal(t, moved, fc.do("GET a"))
	require.Equal(t, "+OK", fc.do("READONLY"))
	require.Equal(t, "+OK", fc.do("READWRITE"))
	require.Equal(t, moved, fc.do("GET a"))
	require.Equal(t, "+OK", fc.do("ASKING"))
	require.Equal(t, "1", c.do(fmt.Sprint("CLUSTER COUNTKEYSINSLOT ", slot)))

	id := strings.Trim(c.do("CLUSTER MYID"), `"`)
	require.Equal(t, c.do("CLUSTER MYSHARDID"), fc.do("CLUSTER MYSHARDID"))
	for _, from := range []*testClient{c, fc} {
		lines := nodeLines(from)
		require.Len(t, lines, 3)
		require.Contains(t, lines[leader.clientAddr()][2], "master")
		require.Equal(t, id, lines[leader.clientAddr()][0])
		require.Equal(t, "0-16383", lines[leader.clientAddr()][8])
		for _, f := range g.followers() {
			require.Contains(t, lines[f.clientAddr()][2], "slave")
			require.Equal(t, id, lines[f.clientAddr()][3])
		}
		require.Contains(t, from.do("CLUSTER INFO"), "cluster_state:ok\r\ncluster_slots_assigned:16384\r\n")
		require.Contains(t, from.do("CLUSTER INFO"), "\r\ncluster_known_nodes:3\r\ncluster_size:1\r\n")
		require.Equal(t, 2, strings.Count(from.do("CLUSTER REPLICAS "+id), "slave "))
	}
	require.Equal(t, "-ERR The specified node is not a master", c.do("CLUSTER REPLICAS "+strings.Trim(fc.do("CLUSTER MYID"), `"`)))

	name := fc.do("CLUSTER MYID")
	follower.kill()
	follower.start()
	require.Equal(t, name, follower.client().do("CLUSTER MYID"), "the names of servers stay as they are")
}

// CLUSTER LINKS has the connections of both directions, until they are closed.
func TestTheLinksOfAServer(t *testing.T) {
	t.Parallel()
	g := startGroup(t, 3, "cluster-enabled=yes")
	leader, follower := g.settled(), g.followers()[0]
	c, fc := leader.client(), follower.client()
	link := func(direction string, to *testClient) *regexp.Regexp {
		return regexp.MustCompile(fmt.Sprintf(`\["direction" "%s" "node" "%s" "create-time" [0-9]{13} "events" "r" `+
			`"send-buffer-allocated" 0 "send-buffer-used" 0\]`, direction, to.do("CLUSTER MYID")))
	}
	to, from := link("to", fc), link("from", c)
	require.Eventually(t, func() bool {
		return to.MatchString(c.do("CLUSTER LINKS")) && from.MatchString(fc.do("CLUSTER LINKS"))
	}, testTimeout, 10*time.Millisecond)
	leader.kill()
	require.Eventually(t, func() bool { return !from.MatchString(fc.do("CLUSTER LINKS")) }, testTimeout, 10*time.Millisecond)
}

func clusterClient(t *testing.T, nodes []*groupNode) *redis.ClusterClient {
	var addrs []string
	for _, n := range nodes {
		addrs = append(addrs, n.clientAddr())
	}
	// If a server does not answer any more, this client reads the slots again only when its view has this age, by
	// default 60 s.
	c := redis.NewClusterClient(&redis.ClusterOptions{Addrs: addrs, MaxRedirects: 20, MaxRetryBackoff: 50 * time.Millisecond,
		ClusterStateReloadInterval: 200 * time.Millisecond})
	t.Cleanup(func() { c.Close() })
	return c
}

// Clients of clusters continue when a leader fails, and find all acknowledged changes.
func TestClientsOfClustersFollowTheLead(t *testing.T) {
	t.Parallel()
	g := startGroup(t, 3, "cluster-enabled=yes")
	first := g.settled()
	ctx := context.Background()
	c := clusterClient(t, g.nodes)
	var acked sync.Map
	var count atomic.Int64
	done := make(chan struct{})
	var running sync.WaitGroup
	for w := range 4 {
		running.Go(func() {
			for i := 0; ; i++ {
				select {
				case <-done:
					return
				default:
				}
				key := fmt.Sprintf("key:%d:%d", w, i)
				if c.Set(ctx, key, i, 0).Err() == nil {
					acked.Store(key, fmt.Sprint(i))
					count.Add(1)
				}
			}
		})
	}
	more := func() {
		from := count.Load()
		require.Eventually(t, func() bool { return count.Load() > from+100 }, testTimeout, time.Millisecond)
	}
	more()
	first.kill()
	second := g.leader()
	more()
	first.start()
	g.settled()
	second.kill()
	g.leader()
	more()
	close(done)
	running.Wait()
	require.NotSame(t, first, second)
	acked.Range(func(key, value any) bool {
		got, err := c.Get(ctx, key.(string)).Result()
		require.NoError(t, err)
		require.Equal(t, value, got, key)
		return true
	})
}
