package server

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/atomredis/atomredis/internal/session"
)

func startForwarding(t *testing.T, settings ...string) (g *testGroup, leader *groupNode, followers []*groupNode) {
	g = startGroup(t, 3, append(settings, "replicated-proxy=yes")...)
	leader = g.settled()
	return g, leader, g.followers()
}

func (n *groupNode) goClient(o redis.Options) *redis.Client {
	o.Addr = n.Addrs()[0].String()
	c := redis.NewClient(&o)
	n.g.t.Cleanup(func() { c.Close() })
	return c
}

// A client gets the same service from all servers of a group.
func TestAClientIsServedAtAnyServerOfAGroup(t *testing.T) {
	t.Parallel()
	g, leader, _ := startForwarding(t)
	ctx := context.Background()
	for i, n := range g.nodes {
		for _, proto := range []int{2, 3} {
			t.Run(fmt.Sprint(i, " RESP", proto), func(t *testing.T) {
				c := n.goClient(redis.Options{Protocol: proto, DB: 1, ClientName: "me", MaxRetries: -1})
				key := fmt.Sprint("key:", i, proto)
				require.NoError(t, c.Set(ctx, key, "v", 0).Err())
				require.Equal(t, "v", c.Get(ctx, key).Val(), "it reads what it has written")
				require.EqualValues(t, 3, c.RPush(ctx, key+"l", "a", "b", "c").Val())
				require.Equal(t, "me", c.ClientGetName(ctx).Val())
				require.Equal(t, 1, c.ClientInfo(ctx).Val().DB)

				cmds, err := c.Pipelined(ctx, func(p redis.Pipeliner) error {
					for range 1000 {
						p.Incr(ctx, key+"n")
					}
					return nil
				})
				require.NoError(t, err)
				for i, cmd := range cmds {
					require.EqualValues(t, i+1, cmd.(*redis.IntCmd).Val())
				}

				cmds, err = c.TxPipelined(ctx, func(p redis.Pipeliner) error {
					p.Incr(ctx, key+"n")
					p.HSet(ctx, key+"h", "f", "1")
					p.HGetAll(ctx, key+"h")
					return nil
				})
				require.NoError(t, err)
				require.Equal(t, map[string]string{"f": "1"}, cmds[2].(*redis.MapStringStringCmd).Val())

				err = c.Watch(ctx, func(tx *redis.Tx) error {
					require.NoError(t, c.Incr(ctx, key+"n").Err())
					_, err := tx.TxPipelined(ctx, func(p redis.Pipeliner) error { p.Set(ctx, key, "lost", 0); return nil })
					return err
				}, key+"n")
				require.ErrorIs(t, err, redis.TxFailedErr)

				popped := make(chan []string, 1)
				go func() { popped <- c.BLPop(ctx, 0, key+"q").Val() }()
				leaderHasBlocked(t, leader)
				require.NoError(t, c.RPush(ctx, key+"q", "x").Err())
				require.Equal(t, []string{key + "q", "x"}, <-popped)

				script := redis.NewScript("redis.call('SET', KEYS[1], ARGV[1]) return redis.call('GET', KEYS[1])")
				require.Equal(t, "s", script.Run(ctx, c, []string{key}, "s").Val())

				other := g.nodes[(i+1)%3].goClient(redis.Options{Protocol: proto})
				sub := c.Subscribe(ctx, key+"c")
				_, err = sub.Receive(ctx)
				require.NoError(t, err)
				require.EqualValues(t, 1, other.Publish(ctx, key+"c", "hello").Val(), "whichever servers they are at")
				m, err := sub.ReceiveMessage(ctx)
				require.NoError(t, err)
				require.Equal(t, "hello", m.Payload)
				require.NoError(t, sub.Close())
			})
		}
	}
}

func leaderHasBlocked(t *testing.T, leader *groupNode) {
	require.Eventually(t, func() bool { return leader.sessions.Counters.Blocked.Load() == 1 }, testTimeout, time.Millisecond)
}

func TestWhatIsOfOneServerIsNotForwarded(t *testing.T) {
	t.Parallel()
	_, leader, followers := startForwarding(t, "cluster-enabled=yes", "databases=4")
	c := followers[0].client()
	require.Equal(t, "+OK", c.do("SET key value"))
	require.Contains(t, c.do("INFO replication"), "role:slave")
	require.Contains(t, c.do("ROLE"), "slave")
	require.Equal(t, "4", c.do("RPUSH list a b c d"))
	require.Equal(t, "+OK", c.do("READONLY"))
	c.waitFor("LLEN list", "4")
	require.Equal(t, "5", c.do("RPUSH list e"), "writes are forwarded")
	c.waitFor("LLEN list", "5")
	require.Equal(t, "+OK", c.do("READWRITE"))
	require.Equal(t, "+OK", c.do("MULTI"))
	require.Equal(t, "+QUEUED", c.do("PING"))
	require.Contains(t, c.do("NOSUCH"), "unknown command")
	require.Contains(t, c.do("EXEC"), "EXECABORT")
	require.Equal(t, "+PONG", c.do("PING"))
	require.Contains(t, c.do("INFO replication"), "role:slave")
	require.Equal(t, "+OK", c.do("CLIENT SETNAME here"))
	require.Equal(t, "5", c.do("LLEN list"))
	require.Contains(t, leader.client().do("CLIENT LIST"), "name=here")
}

func TestTheLeaderDecidesWhatAForwardedClientMayDo(t *testing.T) {
	t.Parallel()
	g, leader, followers := startForwarding(t, "enable-debug-command=local")
	for _, n := range g.nodes {
		require.Equal(t, "+OK", n.client().do("ACL SETUSER limited on >secret ~a* +@all -del"))
	}
	c := followers[0].client()
	require.Equal(t, "+OK", c.do("AUTH limited secret"))
	require.Equal(t, "+OK", c.do("SET abc 1"))
	require.Contains(t, c.do("SET b 1"), "NOPERM")
	require.Contains(t, c.do("DEL abc"), "NOPERM")
	require.Contains(t, leader.client().do("ACL LOG"), "limited")
	require.Equal(t, "+OK", leader.client().do("ACL SETUSER limited resetpass >other"))
	c = followers[0].client()
	require.Equal(t, "+OK", c.do("AUTH limited secret"))
	require.Contains(t, c.do("SET abc 1"), "WRONGPASS")

	require.Equal(t, "+OK", leader.client().do("CONFIG SET requirepass pw"))
	c = followers[1].client()
	require.Contains(t, c.do("SET abc 1"), "NOAUTH")
	require.Equal(t, "+OK", c.do("CONFIG SET requirepass pw"))
	require.Equal(t, "+OK", c.do("AUTH pw"))
	require.Equal(t, "+OK", c.do("SET abc 1"))
	require.Equal(t, "+OK", c.do("MULTI"))
	require.Contains(t, c.do("DEBUG JMAP"), "DEBUG command not allowed", "the client is not on the leader's machine")
	require.Contains(t, c.do("EXEC"), "EXECABORT")
}

// Acknowledged changes exist exactly once, at whichever server the clients are when the leader is killed.
func TestForwardedWritesSurviveTheLeader(t *testing.T) {
	t.Parallel()
	g, leader, followers := startForwarding(t)
	ctx, stop := context.WithCancel(context.Background())
	var clients sync.WaitGroup
	var acknowledged [4]atomic.Int64
	var unknown [4]atomic.Int64
	for i := range acknowledged {
		c := followers[i%2].goClient(redis.Options{MaxRetries: -1, PoolSize: 1})
		clients.Go(func() {
			for ctx.Err() == nil {
				switch err := c.Incr(context.Background(), fmt.Sprint("n:", i)).Err(); {
				case err == nil:
					acknowledged[i].Add(1)
				case strings.HasPrefix(err.Error(), "CLUSTERDOWN"): // certainly not executed
				default:
					unknown[i].Add(1)
				}
			}
		})
	}
	waitForAll := func(more int64) {
		var want [4]int64
		for i := range want {
			want[i] = acknowledged[i].Load() + more
		}
		require.Eventually(t, func() bool {
			for i := range want {
				if acknowledged[i].Load() < want[i] {
					return false
				}
			}
			return true
		}, testTimeout, time.Millisecond)
	}
	waitForAll(50)
	leader.kill()
	waitForAll(50)
	next := g.leader()
	var other *groupNode
	for _, f := range followers {
		if f != next {
			other = f
		}
	}
	require.NoError(t, next.group.node().Transfer(other.addr))
	waitForAll(50)
	stop()
	clients.Wait()
	c := other.goClient(redis.Options{})
	for i := range acknowledged {
		n, err := c.Get(context.Background(), fmt.Sprint("n:", i)).Int64()
		require.NoError(t, err)
		require.GreaterOrEqual(t, n, acknowledged[i].Load(), "nothing is lost")
		require.LessOrEqual(t, n, acknowledged[i].Load()+unknown[i].Load(), "nothing is done twice")
	}
}

func TestACommandThatNobodyCanDoIsRefused(t *testing.T) {
	g, leader, followers := startForwarding(t, "raft-timeout=300") // the refusal comes after many of them
	c := followers[0].client()
	require.Equal(t, "+OK", c.do("SET key value"))
	followers[1].kill()
	leader.kill()
	require.Equal(t, "-"+string(session.ErrClusterDown), c.do("SET key other"))
	require.Equal(t, "+PONG", c.do("PING"))
	leader.start()
	g.leader()
	c.waitFor("GET key", "value")
}

// A transaction that the leader has begun ends with the connection if it cannot continue at another server.
func TestATransactionDoesNotChangeItsLeader(t *testing.T) {
	t.Parallel()
	_, leader, followers := startForwarding(t)
	c, idle := followers[0].goClient(redis.Options{MaxRetries: -1}), followers[0].client()
	require.Equal(t, "+OK", idle.do("SET key value"))
	err := c.Watch(context.Background(), func(tx *redis.Tx) error {
		require.NoError(t, leader.group.node().Transfer(followers[1].addr))
		require.Eventually(t, func() bool { return !followers[1].group.following.Load() }, testTimeout, time.Millisecond)
		_, err := tx.TxPipelined(context.Background(), func(p redis.Pipeliner) error {
			p.Set(context.Background(), "key", "lost", 0)
			return nil
		})
		return err
	}, "key")
	require.Error(t, err)
	var reply redis.Error
	require.False(t, errors.As(err, &reply), "the connection ends: %v", err)
	require.Equal(t, "value", idle.do("GET key"), "one that owes nothing goes on")
}

// The servers keep replies that a client does not read, and it gets all of them when it reads.
func TestForwardedRepliesWaitForTheirReader(t *testing.T) {
	t.Parallel()
	_, leader, followers := startForwarding(t)
	value := strings.Repeat("v", 600<<10)
	c := followers[0].client()
	require.Equal(t, "+OK", c.do("SET key "+value))
	const n = 8
	for range n {
		c.Append("GET", "key")
	}
	c.Append("STRLEN", "key")
	require.NoError(t, c.Flush())
	other := followers[0].client()
	for range 100 {
		require.Equal(t, fmt.Sprint(len(value)), other.do("STRLEN key"), "others do not wait")
	}
	for range n {
		v, err := c.Read(testTimeout)
		require.NoError(t, err)
		require.Equal(t, value, v.Text)
	}
	require.Equal(t, fmt.Sprint(len(value)), c.read())
	c.Close()
	other.Close()
	require.Eventually(t, func() bool { return leader.sessions.Clients.Len() == 0 }, testTimeout, time.Millisecond,
		"nothing is left of clients that have gone")
}

func TestTrackingIsThatOfTheLeader(t *testing.T) {
	t.Parallel()
	_, leader, followers := startForwarding(t)
	c := followers[0].client()
	require.Contains(t, c.do("HELLO 3"), `"proto" 3`)
	require.Equal(t, "+OK", c.do("CLIENT TRACKING on"))
	require.Equal(t, "null", c.do("GET key"))
	require.Equal(t, "+OK", leader.client().do("SET key value"))
	require.Contains(t, c.read(), "invalidate")
}
