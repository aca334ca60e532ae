// Has a live Redis, and a server of ours, follow a server that is being written to, and compares them.

package conformance

import (
	"context"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/atomredis/atomredis/internal/testing/oracle"
)

func TestARedisFollowsUnderLoad(t *testing.T) {
	follow(t, func() *redis.Client { return redisClient(t, oracle.Start(t)) })
}

func TestAtomredisFollowsUnderLoad(t *testing.T) {
	follow(t, func() *redis.Client {
		_, c := startReplica(t, t.TempDir())
		return c
	})
}

// follow checks that the server that start returns follows a server of ours.
func follow(t *testing.T, start func() *redis.Client) {
	ctx := context.Background()
	first, second := start(), start()
	_, master := startReplica(t, t.TempDir())
	for _, command := range everyEncoding() {
		require.NoError(t, master.Do(ctx, command...).Err(), "%v", command[:2])
	}
	require.NoError(t, master.Do(ctx, "DEBUG", "POPULATE", 20_000, "many", 200).Err())
	proxy := newBrittleProxy(t, master.Options().Addr)
	stop := writers(t, master.Options().Addr, 8)
	for _, replica := range []*redis.Client{first, second} {
		require.NoError(t, replica.Do(ctx, proxy.hostPort()...).Err())
	}
	up := func() bool {
		return infoField(t, first, "replication", "master_link_status") == "up" &&
			infoField(t, second, "replication", "master_link_status") == "up"
	}
	require.Eventually(t, up, followTimeout, followTick)
	require.Equal(t, "2", infoField(t, master, "replication", "connected_slaves"))
	time.Sleep(500 * time.Millisecond) // some time under load
	proxy.cut(false)
	require.Eventually(t, up, followTimeout, followTick)
	time.Sleep(500 * time.Millisecond)
	stop()
	requireEqualSoon(t, master, first)
	requireEqualSoon(t, master, second)
	require.NoError(t, master.Do(ctx, "CONFIG", "SET", "repl-ping-replica-period", 1).Err())
	before := infoField(t, master, "replication", "master_repl_offset")
	require.Eventually(t, func() bool { return infoField(t, master, "replication", "master_repl_offset") != before },
		followTimeout, followTick)
}
