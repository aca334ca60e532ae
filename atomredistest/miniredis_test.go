package atomredistest_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/atomredis/atomredis"
	"github.com/atomredis/atomredis/atomredistest"
	"github.com/atomredis/atomredis/engine"
)

// TestMigrationFromMiniredis has the right-hand sides of the table in docs/miniredis.md, in its order.
func TestMigrationFromMiniredis(t *testing.T) {
	s := atomredistest.RunOptions(t, atomredis.Options{Addr: "127.0.0.1:0", Config: map[string]string{"requirepass": "secret"},
		Clock: engine.NewManualClock(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))})
	client := redis.NewClient(&redis.Options{Addr: s.Addr(), Password: "secret"})
	defer client.Close()
	require.NoError(t, client.Ping(t.Context()).Err())

	s.MustDo(t, "SET", "k", "v")
	text, err := s.MustDo(t, "GET", "k").Text()
	require.NoError(t, err)
	require.Equal(t, "v", text)
	_, err = s.MustDo(t, "GET", "none").Text()
	require.ErrorIs(t, err, atomredis.ErrNull)
	n, err := s.MustDo(t, "EXISTS", "k").Bool()
	require.NoError(t, err)
	require.True(t, n)
	s.MustDo(t, "HSET", "h", "f", "1", "g", "2")
	fields, err := s.MustDo(t, "HGETALL", "h").Map()
	require.NoError(t, err)
	require.Len(t, fields, 2)
	s.MustDo(t, "RPUSH", "l", "a", "b")
	words, err := s.MustDo(t, "LRANGE", "l", 0, -1).Texts()
	require.NoError(t, err)
	require.Equal(t, []string{"a", "b"}, words)
	s.MustDo(t, "SADD", "set", "x", "y")
	s.MustDo(t, "ZADD", "z", 1.5, "m")
	s.MustDo(t, "XADD", "stream", "1-1", "f", "v")
	s.MustDo(t, "EXPIRE", "k", 60)
	ttl, err := s.MustDo(t, "TTL", "k").Int()
	require.NoError(t, err)
	require.EqualValues(t, 60, ttl)
	one, err := s.Database(1)
	require.NoError(t, err)
	_, err = one.Do(t.Context(), "SET", "k", "of 1")
	require.NoError(t, err)

	s.CheckKeys(t, map[string]any{"k": "v", "h": map[string]string{"f": "1", "g": "2"}, "l": []string{"a", "b"},
		"set": atomredistest.Set{"x", "y"}, "z": map[string]float64{"m": 1.5}, "stream": []atomredistest.Entry{{"1-1", []string{"f", "v"}}}})
	s.CheckDatabase(t, 1, map[string]any{"k": "of 1"})
	require.Contains(t, s.Dump(t), `"k": string "v", expires in 1m0s`)

	s.FastForward(time.Minute)
	require.ErrorIs(t, client.Get(t.Context(), "k").Err(), redis.Nil)
	s.SetTime(time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC))
	require.Equal(t, 2030, client.Time(t.Context()).Val().UTC().Year())

	s.FailNext(-1, "", "ERR broken")
	require.EqualError(t, client.Get(t.Context(), "k").Err(), "ERR broken")
	s.ClearFaults()
	require.ErrorIs(t, client.Get(t.Context(), "k").Err(), redis.Nil)

	messages := s.Subscribe(t.Context(), "news")
	require.EqualValues(t, 1, client.Publish(t.Context(), "news", "x").Val())
	for m, err := range messages {
		require.NoError(t, err)
		require.Equal(t, "x", m.Payload)
		break
	}
	stats := s.MustDo(t, "INFO", "stats")
	require.Regexp(t, `total_connections_received:[12]\r\n`, textOf(t, stats))

	addr := s.Addr()
	require.NoError(t, s.Close())
	require.Error(t, client.Ping(t.Context()).Err())
	atomredistest.RunOptions(t, atomredis.Options{Addr: addr, Config: map[string]string{"requirepass": "secret"}})
	require.NoError(t, client.Ping(t.Context()).Err())
}

// The same operations, by MustDo and by a client library over TCP, have the same effect.
func TestHelpersAndProtocolAgree(t *testing.T) {
	const steps = 3000
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	direct := atomredistest.RunOptions(t, atomredis.Options{Clock: engine.NewManualClock(now)})
	remote := atomredistest.RunOptions(t, atomredis.Options{Clock: engine.NewManualClock(now), Addr: "127.0.0.1:0"})
	client := redis.NewClient(&redis.Options{Addr: remote.Addr()})
	defer client.Close()
	ctx := context.Background()
	seed := rand.Uint64()
	t.Log("seed", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	key := func(kind string) string { return fmt.Sprint(kind, r.IntN(4)) }
	word := func() string { return fmt.Sprint("w", r.IntN(10)) }
	for i := range steps {
		var err error
		switch n := r.IntN(100); r.IntN(12) {
		case 0:
			k, w := key("str"), word()
			direct.MustDo(t, "SET", k, w)
			err = client.Set(ctx, k, w, 0).Err()
		case 1:
			k := key("num")
			direct.MustDo(t, "INCRBY", k, n)
			err = client.IncrBy(ctx, k, int64(n)).Err()
		case 2:
			k, a, b := key("list"), word(), word()
			direct.MustDo(t, "RPUSH", k, a, b)
			err = client.RPush(ctx, k, a, b).Err()
		case 3:
			k := key("list")
			have, err1 := direct.MustDo(t, "LPOP", k).Text()
			got, err2 := client.LPop(ctx, k).Result()
			require.Equal(t, err1 == nil, err2 == nil)
			require.Equal(t, have, got)
		case 4:
			k, a, b := key("set"), word(), word()
			direct.MustDo(t, "SADD", k, a, b)
			err = client.SAdd(ctx, k, a, b).Err()
		case 5:
			k, a := key("set"), word()
			direct.MustDo(t, "SREM", k, a)
			err = client.SRem(ctx, k, a).Err()
		case 6:
			k, f, w := key("hash"), word(), word()
			direct.MustDo(t, "HSET", k, f, w)
			err = client.HSet(ctx, k, f, w).Err()
		case 7:
			k, f := key("hash"), word()
			direct.MustDo(t, "HDEL", k, f)
			err = client.HDel(ctx, k, f).Err()
		case 8:
			k, m, score := key("zset"), word(), float64(n)/8
			direct.MustDo(t, "ZADD", k, score, m)
			err = client.ZAdd(ctx, k, redis.Z{Score: score, Member: m}).Err()
		case 9:
			k, id, w := key("stream"), fmt.Sprint(i+1, "-1"), word()
			direct.MustDo(t, "XADD", k, id, "f", w)
			err = client.XAdd(ctx, &redis.XAddArgs{Stream: k, ID: id, Values: []string{"f", w}}).Err()
		case 10:
			k := key([]string{"str", "num", "list", "set", "hash", "zset", "stream"}[r.IntN(7)])
			direct.MustDo(t, "EXPIREAT", k, now.Unix()+1800+int64(n))
			err = client.ExpireAt(ctx, k, now.Add(time.Duration(1800+n)*time.Second)).Err()
		case 11:
			if n < 5 {
				now = now.Add(15 * time.Minute)
				direct.SetTime(now)
				remote.SetTime(now)
			}
		}
		require.NoError(t, err)
		if i%100 == 0 || i == steps-1 {
			require.Equal(t, direct.Dump(t), remote.Dump(t), "after %d steps", i+1)
		}
	}
}
