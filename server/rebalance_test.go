package server

import (
	"fmt"
	"strconv"
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
	clients[1].waitFor("CLUSTER MIGRATION STATUS ALL", "completed")
	clients[2].waitFor("CLUSTER MIGRATION STATUS ALL", "completed")

	// By memory all shards are within their part.
	for _, c := range clients {
		require.Equal(t, "+OK", c.do("CONFIG SET cluster-rebalance-by memory cluster-rebalance auto"))
	}
	shares()
}
