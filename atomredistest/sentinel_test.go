package atomredistest_test

import (
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/atomredis/atomredis/atomredistest"
)

func TestClientsFailOverBySentinel(t *testing.T) {
	a, b := atomredistest.RunAddr(t), atomredistest.RunAddr(t)
	do(t, a.DB, "SET before 1")
	sentinel := atomredistest.RunSentinel(t, "mymaster", a, b)
	client := redis.NewFailoverClient(&redis.FailoverOptions{MasterName: "mymaster",
		SentinelAddrs: []string{sentinel.Addr()}, MaxRetries: 20,
		MinRetryBackoff: time.Millisecond, DialTimeout: time.Minute})
	defer client.Close()
	ctx := t.Context()
	require.NoError(t, client.Set(ctx, "k", "v", 0).Err())
	for i, want := range []*atomredistest.Server{b, a, b} {
		sentinel.Failover(t)
		require.Same(t, want, sentinel.Master())
		require.Eventually(t, func() bool { return client.Set(ctx, "round", i, 0).Err() == nil }, time.Minute,
			time.Millisecond)
		want.CheckKeys(t, map[string]any{"before": "1", "k": "v", "round": i})
		_, err := sentinel.Replicas()[0].Do(ctx, "SET", "k", "v")
		require.ErrorContains(t, err, "READONLY")
	}
}

func TestSentinelAnswers(t *testing.T) {
	a, b, c := atomredistest.RunAddr(t), atomredistest.RunAddr(t), atomredistest.RunAddr(t)
	s := atomredistest.RunSentinel(t, "main", a, b, c)
	client := redis.NewSentinelClient(&redis.Options{Addr: s.Addr()})
	defer client.Close()
	ctx := t.Context()
	addr, err := client.GetMasterAddrByName(ctx, "main").Result()
	require.NoError(t, err)
	require.Equal(t, a.Addr(), addr[0]+":"+addr[1])
	require.Equal(t, redis.Nil, client.GetMasterAddrByName(ctx, "other").Err())
	master, err := client.Master(ctx, "main").Result()
	require.NoError(t, err)
	require.Equal(t, []string{"main", "master", "2"}, []string{master["name"], master["flags"], master["num-slaves"]})
	replicas, err := client.Replicas(ctx, "main").Result()
	require.NoError(t, err)
	require.Equal(t, []string{b.Addr(), c.Addr()}, []string{replicas[0]["name"], replicas[1]["name"]})
	sentinels, err := client.Sentinels(ctx, "main").Result()
	require.NoError(t, err)
	require.Empty(t, sentinels)
	masters, err := client.Masters(ctx).Result()
	require.NoError(t, err)
	require.Len(t, masters, 1)
	require.ErrorContains(t, client.Master(ctx, "other").Err(), "No such master with that name")
	_, err = s.Do(ctx, "SENTINEL", "NOSUCH")
	require.ErrorContains(t, err, "Unknown sentinel subcommand 'NOSUCH'")
	_, err = s.Do(ctx, "SENTINEL", "MASTER")
	require.ErrorContains(t, err, "wrong number of arguments")

	switches := client.Subscribe(ctx, "+switch-master")
	defer switches.Close()
	_, err = switches.Receive(ctx)
	require.NoError(t, err)
	s.Failover(t)
	message, err := switches.ReceiveMessage(ctx)
	require.NoError(t, err)
	require.Regexp(t, `^main 127\.0\.0\.1 \d+ 127\.0\.0\.1 \d+$`, message.Payload)
	require.Same(t, b, s.Master())
	require.Equal(t, []*atomredistest.Server{c, a}, s.Replicas())
	for _, r := range s.Replicas() {
		require.Contains(t, do1(t, r, "INFO", "replication"), "role:slave")
	}
	require.Contains(t, do1(t, b, "INFO", "replication"), "connected_slaves:2")
}
