// Cuts the links between a live Redis and a server of ours again and again, in both directions and in a chain, and
// makes them change places.

package conformance

import (
	"context"
	"net"
	"strconv"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/atomredis/atomredis/internal/testing/oracle"
)

func TestLinksThatBreakAreGoneOnWith(t *testing.T) {
	ctx := context.Background()
	for _, ours := range []bool{true, false} {
		t.Run("ours is the master: "+strconv.FormatBool(ours), func(t *testing.T) {
			theirs := redisClient(t, oracle.Start(t, "--repl-backlog-size", "64mb", "--repl-diskless-sync-delay", "0"))
			_, mine := startReplica(t, t.TempDir())
			_, leaf := startReplica(t, t.TempDir())
			require.NoError(t, mine.Do(ctx, "CONFIG", "SET", "repl-backlog-size", "64mb").Err())
			master, replica := theirs, mine
			if ours {
				master, replica = mine, theirs
			}
			first, second := newBrittleProxy(t, master.Options().Addr), newBrittleProxy(t, replica.Options().Addr)
			require.NoError(t, replica.Do(ctx, first.hostPort()...).Err())
			up := func(c *redis.Client) {
				require.Eventually(t, func() bool { return infoField(t, c, "replication", "master_link_status") == "up" },
					followTimeout, followTick)
			}
			up(replica)
			require.NoError(t, leaf.Do(ctx, second.hostPort()...).Err())
			up(leaf)
			stop := writers(t, master.Options().Addr, 4)
			const cuts = 6
			for i := range cuts {
				first.cut(false)
				if i%2 == 0 {
					second.cut(false)
				}
				require.Eventually(t, func() bool {
					n, err := strconv.Atoi(infoField(t, master, "stats", "sync_partial_ok"))
					return err == nil && n > i
				}, followTimeout, followTick)
				up(leaf)
			}
			stop()
			requireEqualSoon(t, master, replica)
			requireEqualSoon(t, master, leaf)
			require.Equal(t, "1", infoField(t, master, "stats", "sync_full"))
			require.Equal(t, "1", infoField(t, replica, "stats", "sync_full"))
		})
	}
}

func TestServersChangePlacesWithARedis(t *testing.T) {
	ctx := context.Background()
	theirs := redisClient(t, oracle.Start(t, "--repl-diskless-sync-delay", "0"))
	_, mine := startReplica(t, t.TempDir())
	announce := func(c *redis.Client) string { // the address at which others find it
		host, port, err := net.SplitHostPort(newBrittleProxy(t, c.Options().Addr).Addr().String())
		require.NoError(t, err)
		require.NoError(t, c.Do(ctx, "CONFIG", "SET", "replica-announce-ip", host, "replica-announce-port", port).Err())
		return port
	}
	port, at := announce(mine), announce(theirs)
	for _, command := range everyEncoding() {
		require.NoError(t, mine.Do(ctx, command...).Err(), "%v", command[:2])
	}
	require.NoError(t, theirs.Do(ctx, "REPLICAOF", "127.0.0.1", port).Err())
	requireEqualSoon(t, mine, theirs)
	n, err := mine.Do(ctx, "WAIT", 1, 0).Int()
	require.NoError(t, err)
	require.Equal(t, 1, n)
	for i, c := range []struct{ from, to *redis.Client }{{mine, theirs}, {theirs, mine}, {mine, theirs}} {
		target := at
		if c.to == mine {
			target = port
		}
		require.NoError(t, c.from.Set(ctx, "turn", i, 0).Err())
		require.NoError(t, c.from.Do(ctx, "FAILOVER", "TO", "127.0.0.1", target).Err())
		require.Eventually(t, func() bool {
			return infoField(t, c.to, "replication", "connected_slaves") == "1" &&
				infoField(t, c.from, "replication", "master_failover_state") == "no-failover"
		}, followTimeout, followTick)
		require.NoError(t, c.to.Incr(ctx, "turn").Err())
		requireEqualSoon(t, c.to, c.from)
	}
	require.Equal(t, "0", infoField(t, theirs, "stats", "sync_full"))
	require.Equal(t, "1", infoField(t, mine, "stats", "sync_full"))
}
