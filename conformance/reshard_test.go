package conformance

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/atomredis/atomredis/internal/cluster"
	"github.com/atomredis/atomredis/internal/config"
	"github.com/atomredis/atomredis/internal/testing/freeport"
	"github.com/atomredis/atomredis/internal/testing/oracle"
	"github.com/atomredis/atomredis/server"
)

// startShard starts a server that is a shard by itself, and returns its port and the port for other shards.
func startShard(t *testing.T, slots string) (port, bus string, c *redis.Client) {
	port, bus = freeport.Port(t), freeport.Port(t)
	conf := config.NewConfig()
	for name, value := range map[string]string{"port": port, "bind": "127.0.0.1", "dir": t.TempDir(), "cluster-enabled": "yes",
		"cluster-slots": slots, "raft-addr": "127.0.0.1:" + bus, "raft-peers": "127.0.0.1:" + bus, "raft-timeout": "300"} {
		require.NoError(t, conf.Set(name, value, false), name)
	}
	srv, err := server.New(conf, slog.New(slog.DiscardHandler), server.Options{})
	require.NoError(t, err)
	require.NoError(t, srv.Start())
	t.Cleanup(func() { require.NoError(t, srv.Close()) })
	c = redis.NewClient(&redis.Options{Addr: "127.0.0.1:" + port})
	t.Cleanup(func() { require.NoError(t, c.Close()) })
	require.Eventually(t, func() bool { return infoField(t, c, "replication", "raft_state") == "leader" }, followTimeout, followTick)
	return port, bus, c
}

// redis-cli reshards and rebalances while go-redis counts: nothing is lost, and nothing is counted twice.
func TestRedisCliReshardsUnderLoad(t *testing.T) {
	if os.Getenv(oracle.Variable) != "1" {
		t.Skipf("%s is not 1", oracle.Variable)
	}
	ctx := context.Background()
	const moved = 8 // slots
	from, _, a := startShard(t, "0-16383")
	to, bus, b := startShard(t, "none")
	require.NoError(t, a.Do(ctx, "CLUSTER", "MEET", "127.0.0.1", to, bus).Err())
	cli := func(args ...string) string {
		out, err := exec.Command("redis-cli", append([]string{"--cluster"}, args...)...).CombinedOutput()
		require.NoError(t, err, "%s", out)
		return string(out)
	}
	require.Eventually(t, func() bool { return strings.Contains(b.ClusterInfo(ctx).Val(), "cluster_slots_assigned:16384") },
		followTimeout, followTick)

	client := redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{"127.0.0.1:" + from, "127.0.0.1:" + to}, MaxRedirects: 20})
	defer client.Close()
	var counting sync.WaitGroup
	stop, counted := make(chan struct{}), make([]int64, moved)
	for slot := range counted {
		key := "{" + cluster.TagOf(slot) + "}"
		counting.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				if !assert.NoError(t, client.Incr(ctx, key).Err()) ||
					!assert.NoError(t, client.RPush(ctx, "list"+key, counted[slot]).Err()) {
					return
				}
				counted[slot]++
			}
		})
	}
	idA, idB := a.ClusterMyID(ctx).Val(), b.ClusterMyID(ctx).Val()
	reshard := func(from, to string) string {
		return cli("reshard", a.Options().Addr, "--cluster-from", from, "--cluster-to", to, "--cluster-slots", fmt.Sprint(moved),
			"--cluster-yes")
	}
	out := reshard(idA, idB)
	require.NotContains(t, out, "ERR", out)
	settled := func() {
		require.Eventually(t, func() bool {
			out, err := exec.Command("redis-cli", "--cluster", "check", b.Options().Addr).CombinedOutput()
			return err == nil && strings.Contains(string(out), "All nodes agree") && strings.Contains(string(out), "All 16384 slots covered")
		}, followTimeout, 100*time.Millisecond)
	}
	settled()
	require.EqualValues(t, 2*moved, b.DBSize(ctx).Val())
	require.EqualValues(t, 0, a.DBSize(ctx).Val())
	reshard(idB, idA)
	settled()
	close(stop)
	counting.Wait()
	require.EqualValues(t, 2*moved, a.DBSize(ctx).Val())
	for slot, n := range counted {
		key := "{" + cluster.TagOf(slot) + "}"
		require.Equal(t, fmt.Sprint(n), client.Get(ctx, key).Val())
		list := client.LRange(ctx, "list"+key, 0, -1).Val()
		require.Len(t, list, int(n))
		for i, item := range list {
			require.Equal(t, fmt.Sprint(i), item)
		}
		require.NotZero(t, n)
	}
}
