package server

import (
	"fmt"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/atomredis/atomredis/internal/cluster"
)

// With cluster-rebalance auto, shards without slots take their part of the keys, and those with enough stay as they are.
func TestShardsTakeSlotsByThemselves(t *testing.T) {
	t.Parallel()
	list := startShards(t, 3, 1, "cluster-rebalance-by=keys", "cluster-slot-stats-enabled=mem")
	clients := make([]*testClient, len(list))
	for i, g := range list {
		clients[i] = g.leader().client()
	}
	const keys = 90
	for n := range keys {
		require.Equal(t, "+OK", clients[0].do(fmt.Sprintf("SET {%s}%d v", cluster.TagOf(n*100), n)))
	}
	// shares waits until each shard has its part of the keys, within the threshold and a slot.
	shares := func() {
		t.Helper()
		require.EventuallyWithT(t, func(c *assert.CollectT) {
			sum := 0
			for _, client := range clients {
				n, err := strconv.Atoi(client.do("DBSIZE"))
				require.NoError(c, err)
				require.InDelta(c, keys/3, n, keys/3/10+1)
				sum += n
			}
			require.Equal(c, keys, sum)
		}, testTimeout, 50*time.Millisecond)
	}
	for _, c := range clients[1:] {
		require.Equal(t, "+OK", c.do("CONFIG SET cluster-rebalance auto"))
	}
	shares()
	require.Contains(t, clients[0].do("INFO cluster"),
		"\r\ncluster_rebalance:no\r\ncluster_rebalance_by:keys\r\ncluster_rebalance_state:off\r\n")
	info := clients[1].do("INFO cluster")
	require.Contains(t, info, "\r\ncluster_rebalance:auto\r\ncluster_rebalance_by:keys\r\ncluster_rebalance_state:")
	require.Regexp(t, `\ncluster_rebalance_slots:[1-9]`, info)
	require.Regexp(t, `\ncluster_rebalance_last_time:[1-9]`, info)
	require.Contains(t, info, "\ncluster_rebalance_last_from:127.0.0.1:")
	require.Regexp(t, `"keys" [1-9]`, clients[0].do("CLUSTER MIGRATION STATUS ALL"))
	clients[1].waitFor("CLUSTER MIGRATION STATUS ALL", "completed")
	clients[2].waitFor("CLUSTER MIGRATION STATUS ALL", "completed")

	// By memory all shards are within their part.
	for _, c := range clients {
		require.Equal(t, "+OK", c.do("CONFIG SET cluster-rebalance-by memory cluster-rebalance auto"))
	}
	shares()
}

// A shard that does not answer neither gives nor takes, and the others share what they have.
func TestShardsTakeSlotsWithoutOneThatDoesNotAnswer(t *testing.T) {
	t.Parallel()
	list := startShards(t, 3, 1, "cluster-rebalance-by=keys")
	first, second, away := list[0].leader().client(), list[1].leader().client(), list[2].nodes[0]
	const keys = 60
	for n := range keys {
		require.Equal(t, "+OK", first.do(fmt.Sprintf("SET {%s}%d v", cluster.TagOf(n*100), n)))
	}
	away.kill()
	require.Equal(t, "+OK", second.do("CONFIG SET cluster-rebalance auto"))
	first.waitFor("DBSIZE", fmt.Sprint(keys/2))
	second.waitFor("DBSIZE", fmt.Sprint(keys/2))
	require.Contains(t, second.do("INFO cluster"), "cluster_rebalance_left_out:1\r\n")

	away.settings = []string{"cluster-rebalance=auto"}
	away.start()
	third := away.client()
	for _, c := range []*testClient{first, second, third} {
		c.waitFor("DBSIZE", fmt.Sprint(keys/3))
	}
}

// With cluster-rebalance-by time, the slots of one shard whose commands take long are shared with shards that have nothing to do.
func TestShardsTakeBusySlots(t *testing.T) {
	t.Parallel()
	list := startShards(t, 3, 1, "cluster-rebalance-by=time", "cluster-slot-stats-enabled=cpu")
	var nodes []*groupNode
	for _, g := range list {
		nodes = append(nodes, g.leader())
		nodes[len(nodes)-1].migrations.SetRateWindow(200 * time.Millisecond)
	}
	c := clusterClient(t, nodes)
	const busy = 12 // slots, each with a key
	key := func(n int) string { return fmt.Sprintf("{%s}", cluster.TagOf(n*500)) }
	for n := range busy {
		require.NoError(t, c.Set(t.Context(), key(n), n, 0).Err())
	}
	done := make(chan struct{})
	var working sync.WaitGroup
	defer working.Wait()
	defer close(done)
	working.Go(func() {
		for n := 0; ; n++ {
			select {
			case <-done:
				return
			default:
				c.Eval(t.Context(), "local n = 0 for i = 1, 20000 do n = n + i end return n", []string{key(n % busy)})
			}
		}
	})
	for _, n := range nodes {
		require.Equal(t, "+OK", n.client().do("CONFIG SET cluster-rebalance auto"))
	}
	require.Eventually(t, func() bool {
		for _, n := range nodes {
			if n.client().do("DBSIZE") == "0" {
				return false
			}
		}
		return true
	}, testTimeout, 50*time.Millisecond, "a shard has no busy slot")
}
