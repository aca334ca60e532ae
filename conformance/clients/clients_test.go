// Package clients_test exercises the main uses of Go's clients, over TCP and in both protocols. The programs in the
// directories beside it do the same with clients in other languages; run.sh runs all of them.
package clients_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	redigo "github.com/gomodule/redigo/redis"
	"github.com/redis/go-redis/v9"
	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/atomredis/atomredis"
)

// addrVariable names a server to test instead of one in this process.
const addrVariable = "ATOMREDIS_CONFORMANCE_ADDR"

// pipelined is the number of commands that a test sends before it reads replies.
const pipelined = 5000

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// server returns the address of a server, and a prefix for the keys of the test, which are removed at the end.
func server(t *testing.T) (addr, prefix string) {
	if addr = os.Getenv(addrVariable); addr == "" {
		config := map[string]string{}
		if shards := os.Getenv("ATOMREDIS_TEST_SHARDS"); shards != "" {
			config["shards"] = shards
		}
		db, err := atomredis.Open(atomredis.Options{Addr: "127.0.0.1:0", Config: config})
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, db.Close()) })
		addr = db.Addr()
	}
	prefix = fmt.Sprintf("%s-%d:", strings.ReplaceAll(t.Name(), "/", "-"), os.Getpid())
	t.Cleanup(func() {
		c := redis.NewClient(&redis.Options{Addr: addr})
		defer c.Close()
		for keys := c.Scan(context.Background(), 0, prefix+"*", 1000).Iterator(); keys.Next(context.Background()); {
			require.NoError(t, c.Unlink(context.Background(), keys.Val()).Err())
		}
	})
	return addr, prefix
}

// binary returns a string of all byte values.
func binary() string {
	b := make([]byte, 256)
	for i := range b {
		b[i] = byte(i)
	}
	return string(b)
}

func TestGoRedis(t *testing.T) {
	for _, protocol := range []int{2, 3} {
		t.Run(fmt.Sprint("RESP", protocol), func(t *testing.T) {
			ctx := t.Context()
			addr, prefix := server(t)
			key := func(k string) string { return prefix + k }
			c := redis.NewClient(&redis.Options{Addr: addr, Protocol: protocol, ClientName: "smoke"})
			defer c.Close()

			// Requests of tools.
			info, err := c.Info(ctx).Result()
			require.NoError(t, err)
			require.Contains(t, info, "redis_version:")
			commands, err := c.Command(ctx).Result()
			require.NoError(t, err)
			require.Greater(t, len(commands), 200)
			require.Equal(t, int8(2), commands["get"].Arity)
			name, err := c.ClientGetName(ctx).Result()
			require.NoError(t, err)
			require.Equal(t, "smoke", name)
			settings, err := c.ConfigGet(ctx, "maxmemory").Result()
			require.NoError(t, err)
			require.Equal(t, map[string]string{"maxmemory": "0"}, settings)

			// Strings and bytes.
			set, err := c.SetNX(ctx, key("s"), "v", time.Minute).Result()
			require.NoError(t, err)
			require.True(t, set)
			require.Equal(t, redis.Nil, c.SetArgs(ctx, key("s"), "w", redis.SetArgs{Mode: "NX"}).Err())
			require.Equal(t, redis.Nil, c.Get(ctx, key("missing")).Err())
			require.NoError(t, c.Set(ctx, key(binary()), binary(), 0).Err())
			require.Equal(t, binary(), c.Get(ctx, key(binary())).Val())
			require.NoError(t, c.HSet(ctx, key("h"), "a", 1, "b", "x").Err())
			require.Equal(t, map[string]string{"a": "1", "b": "x"}, c.HGetAll(ctx, key("h")).Val())
			require.NoError(t, c.ZAdd(ctx, key("z"), redis.Z{Score: 1.5, Member: "a"}, redis.Z{Score: 1, Member: "b"}).Err())
			require.Equal(t, []redis.Z{{Score: 1, Member: "b"}, {Score: 1.5, Member: "a"}},
				c.ZRangeWithScores(ctx, key("z"), 0, -1).Val())

			// A pipeline, with an error in it.
			pipe := c.Pipeline()
			for range pipelined {
				pipe.Incr(ctx, key("p"))
			}
			pipe.LPush(ctx, key("p"), "x")
			replies, err := pipe.Exec(ctx)
			require.ErrorContains(t, err, "WRONGTYPE Operation against a key")
			for i, r := range replies[:pipelined] {
				require.Equal(t, int64(i+1), r.(*redis.IntCmd).Val())
			}
			require.ErrorContains(t, c.Do(ctx, "NOSUCH").Err(), "unknown command 'NOSUCH'")

			// MULTI and WATCH.
			replies, err = c.TxPipelined(ctx, func(p redis.Pipeliner) error {
				p.Set(ctx, key("t"), 1, 0)
				p.Incr(ctx, key("t"))
				return nil
			})
			require.NoError(t, err)
			require.Equal(t, int64(2), replies[1].(*redis.IntCmd).Val())
			err = c.Watch(ctx, func(tx *redis.Tx) error {
				require.NoError(t, c.Incr(ctx, key("t")).Err())
				_, err := tx.TxPipelined(ctx, func(p redis.Pipeliner) error { return p.Set(ctx, key("t"), "lost", 0).Err() })
				return err
			}, key("t"))
			require.ErrorIs(t, err, redis.TxFailedErr)
			require.Equal(t, "3", c.Get(ctx, key("t")).Val())

			// Messages.
			sub := c.Subscribe(ctx, key("news"))
			require.NoError(t, sub.PSubscribe(ctx, key("new?")))
			for range 2 {
				_, err := sub.ReceiveTimeout(ctx, time.Minute)
				require.NoError(t, err)
			}
			require.Equal(t, int64(2), c.Publish(ctx, key("news"), binary()).Val())
			for _, pattern := range []string{"", key("new?")} {
				m, err := sub.ReceiveMessage(ctx)
				require.NoError(t, err)
				require.Equal(t, &redis.Message{Channel: key("news"), Pattern: pattern, Payload: binary()}, m)
			}
			require.NoError(t, sub.Close())

			// Blocking pops: a timeout, and a push by another client.
			require.Equal(t, redis.Nil, c.BLPop(ctx, time.Second, key("l")).Err())
			popped := make(chan []string, 1)
			go func() { popped <- c.BLPop(ctx, time.Minute, key("l"), key("l2")).Val() }()
			require.NoError(t, c.RPush(ctx, key("l2"), "x").Err())
			require.Equal(t, []string{key("l2"), "x"}, <-popped)

			// Scripts: EVALSHA, and EVAL if the server does not know the script.
			script := redis.NewScript("-- " + prefix + "\nreturn {redis.call('INCRBY', KEYS[1], ARGV[1]), {ok = 'fine'}}")
			require.True(t, redis.HasErrorPrefix(script.EvalSha(ctx, c, []string{key("e")}, 5).Err(), "NOSCRIPT"))
			for _, want := range []int64{5, 10} {
				got, err := script.Run(ctx, c, []string{key("e")}, 5).Slice()
				require.NoError(t, err)
				require.Equal(t, []any{want, "fine"}, got)
			}

			// Streams and groups.
			require.NoError(t, c.XGroupCreateMkStream(ctx, key("x"), "g", "$").Err())
			var ids []string
			for i := range 3 {
				id, err := c.XAdd(ctx, &redis.XAddArgs{Stream: key("x"), MaxLen: 1000, Approx: true,
					Values: []any{"i", i}}).Result()
				require.NoError(t, err)
				ids = append(ids, id)
			}
			read, err := c.XReadGroup(ctx, &redis.XReadGroupArgs{Group: "g", Consumer: "c", Streams: []string{key("x"), ">"},
				Count: 2, Block: time.Second}).Result()
			require.NoError(t, err)
			require.Len(t, read[0].Messages, 2)
			require.Equal(t, map[string]any{"i": "1"}, read[0].Messages[1].Values)
			require.Equal(t, int64(1), c.XAck(ctx, key("x"), "g", ids[0]).Val())
			require.Equal(t, int64(1), c.XPending(ctx, key("x"), "g").Val().Count)
			claimed, _, err := c.XAutoClaim(ctx, &redis.XAutoClaimArgs{Stream: key("x"), Group: "g", Consumer: "d",
				Start: "0"}).Result()
			require.NoError(t, err)
			require.Equal(t, ids[1], claimed[0].ID)
			stream, err := c.XInfoStreamFull(ctx, key("x"), 10).Result()
			require.NoError(t, err)
			require.Len(t, stream.Groups[0].Consumers, 2)

			// SCAN.
			pipe = c.Pipeline()
			for i := range 1000 {
				pipe.Set(ctx, key(fmt.Sprint("scan:", i)), i, 0)
			}
			_, err = pipe.Exec(ctx)
			require.NoError(t, err)
			keys := map[string]bool{}
			scan := c.Scan(ctx, 0, key("scan:*"), 100).Iterator()
			for scan.Next(ctx) {
				keys[scan.Val()] = true
			}
			require.NoError(t, scan.Err())
			require.Len(t, keys, 1000)
		})
	}
}

// Redigo speaks RESP2 only.
func TestRedigo(t *testing.T) {
	addr, prefix := server(t)
	key := func(k string) string { return prefix + k }
	dial := func() redigo.Conn {
		c, err := redigo.DialContext(t.Context(), "tcp", addr, redigo.DialClientName("smoke"),
			redigo.DialReadTimeout(time.Minute))
		require.NoError(t, err)
		t.Cleanup(func() { c.Close() })
		return c
	}
	c, other := dial(), dial()
	do := func(command string, args ...any) any {
		reply, err := c.Do(command, args...)
		require.NoError(t, err, command)
		return reply
	}

	require.Contains(t, string(do("INFO").([]byte)), "redis_version:")
	require.Greater(t, len(do("COMMAND").([]any)), 200)
	require.Equal(t, "OK", do("SET", key("s"), binary(), "EX", 100, "NX"))
	require.Nil(t, do("SET", key("s"), "w", "NX"))
	require.Equal(t, []byte(binary()), do("GET", key("s")))
	require.NoError(t, c.Send("HSET", redigo.Args{key("h")}.AddFlat(map[string]string{"a": "1", "b": "x"})...))
	fields, err := redigo.StringMap(c.Do("HGETALL", key("h")))
	require.NoError(t, err)
	require.Equal(t, map[string]string{"a": "1", "b": "x"}, fields)
	_, err = c.Do("LPUSH", key("s"), "x")
	require.ErrorContains(t, err, "WRONGTYPE Operation against a key")

	for range pipelined {
		require.NoError(t, c.Send("INCR", key("p")))
	}
	require.NoError(t, c.Flush())
	for i := range pipelined {
		n, err := redigo.Int(c.Receive())
		require.NoError(t, err)
		require.Equal(t, i+1, n)
	}

	require.NoError(t, c.Send("MULTI"))
	require.NoError(t, c.Send("SET", key("t"), 1))
	require.NoError(t, c.Send("INCR", key("t")))
	require.Equal(t, []any{"OK", int64(2)}, do("EXEC"))
	do("WATCH", key("t"))
	_, err = other.Do("INCR", key("t"))
	require.NoError(t, err)
	do("MULTI")
	do("SET", key("t"), "lost")
	require.Nil(t, do("EXEC"))

	sub := redigo.PubSubConn{Conn: dial()}
	require.NoError(t, sub.Subscribe(key("news")))
	require.Equal(t, redigo.Subscription{Kind: "subscribe", Channel: key("news"), Count: 1}, sub.Receive())
	do("PUBLISH", key("news"), "hello")
	require.Equal(t, redigo.Message{Channel: key("news"), Data: []byte("hello")}, sub.Receive())
	require.NoError(t, sub.Ping("x"))
	require.Equal(t, redigo.Pong{Data: "x"}, sub.Receive())

	require.Nil(t, do("BLPOP", key("l"), "0.01"))
	require.NoError(t, c.Send("BLPOP", key("l"), 20))
	require.NoError(t, c.Flush())
	_, err = other.Do("RPUSH", key("l"), "x")
	require.NoError(t, err)
	popped, err := redigo.Strings(c.Receive())
	require.NoError(t, err)
	require.Equal(t, []string{key("l"), "x"}, popped)

	script := redigo.NewScript(1, "-- "+prefix+"\nreturn redis.call('INCRBY', KEYS[1], ARGV[1])")
	require.NoError(t, script.SendHash(c, key("e"), 5))
	require.NoError(t, c.Flush())
	_, err = c.Receive()
	require.ErrorContains(t, err, "NOSCRIPT")
	for _, want := range []int{5, 10} {
		n, err := redigo.Int(script.DoContext(t.Context(), c, key("e"), 5))
		require.NoError(t, err)
		require.Equal(t, want, n)
	}

	do("XGROUP", "CREATE", key("x"), "g", "$", "MKSTREAM")
	do("XADD", key("x"), "1-1", "i", 0)
	read := do("XREADGROUP", "GROUP", "g", "c", "BLOCK", 1000, "STREAMS", key("x"), ">")
	require.Equal(t, []any{[]any{[]byte(key("x")), []any{[]any{[]byte("1-1"), []any{[]byte("i"), []byte("0")}}}}}, read)
	require.Equal(t, int64(1), do("XACK", key("x"), "g", "1-1"))

	for i := range 1000 {
		require.NoError(t, c.Send("SET", key(fmt.Sprint("scan:", i)), i))
	}
	keys := map[string]bool{}
	for cursor := "0"; ; {
		page, err := redigo.Values(c.Do("SCAN", cursor, "MATCH", key("scan:*"), "COUNT", 100))
		require.NoError(t, err)
		var batch []string
		_, err = redigo.Scan(page, &cursor, &batch)
		require.NoError(t, err)
		for _, k := range batch {
			keys[k] = true
		}
		if cursor == "0" {
			break
		}
	}
	require.Len(t, keys, 1000)
}

func TestRueidis(t *testing.T) {
	for name, resp2 := range map[string]bool{"RESP2": true, "RESP3": false} {
		t.Run(name, func(t *testing.T) {
			ctx := t.Context()
			addr, prefix := server(t)
			key := func(k string) string { return prefix + k }
			options := rueidis.ClientOption{InitAddress: []string{addr}, ClientName: "smoke", AlwaysRESP2: resp2,
				DisableCache: resp2}
			c, err := rueidis.NewClient(options)
			require.NoError(t, err)
			defer c.Close()
			b := c.B

			info, err := c.Do(ctx, b().Info().Build()).ToString()
			require.NoError(t, err)
			require.Contains(t, info, "redis_version:")
			commands, err := c.Do(ctx, b().Command().Build()).ToArray()
			require.NoError(t, err)
			require.Greater(t, len(commands), 200)

			require.NoError(t, c.Do(ctx, b().Set().Key(key("s")).Value(binary()).Nx().ExSeconds(100).Build()).Error())
			require.True(t, rueidis.IsRedisNil(c.Do(ctx, b().Set().Key(key("s")).Value("w").Nx().Build()).Error()))
			got, err := c.Do(ctx, b().Get().Key(key("s")).Build()).ToString()
			require.NoError(t, err)
			require.Equal(t, binary(), got)
			require.NoError(t, c.Do(ctx, b().Hset().Key(key("h")).FieldValue().FieldValue("a", "1").FieldValue("b",
				"x").Build()).Error())
			fields, err := c.Do(ctx, b().Hgetall().Key(key("h")).Build()).AsStrMap()
			require.NoError(t, err)
			require.Equal(t, map[string]string{"a": "1", "b": "x"}, fields)
			require.NoError(t, c.Do(ctx, b().Zadd().Key(key("z")).ScoreMember().ScoreMember(1.5, "a").Build()).Error())
			scores, err := c.Do(ctx, b().Zrange().Key(key("z")).Min("0").Max("-1").Withscores().Build()).AsZScores()
			require.NoError(t, err)
			require.Equal(t, []rueidis.ZScore{{Member: "a", Score: 1.5}}, scores)
			require.ErrorContains(t, c.Do(ctx, b().Lpush().Key(key("s")).Element("x").Build()).Error(),
				"WRONGTYPE Operation against a key")

			pipeline := make(rueidis.Commands, pipelined)
			for i := range pipeline {
				pipeline[i] = b().Incr().Key(key("p")).Build()
			}
			for i, r := range c.DoMulti(ctx, pipeline...) {
				n, err := r.AsInt64()
				require.NoError(t, err)
				require.Equal(t, int64(i+1), n)
			}

			err = c.Dedicated(func(d rueidis.DedicatedClient) error {
				require.NoError(t, d.Do(ctx, b().Watch().Key(key("t")).Build()).Error())
				require.NoError(t, c.Do(ctx, b().Incr().Key(key("t")).Build()).Error())
				lost := d.DoMulti(ctx, b().Multi().Build(), b().Set().Key(key("t")).Value("lost").Build(), b().Exec().Build())
				require.True(t, rueidis.IsRedisNil(lost[2].Error()))
				kept := d.DoMulti(ctx, b().Multi().Build(), b().Incr().Key(key("t")).Build(), b().Exec().Build())
				numbers, err := kept[2].AsIntSlice()
				require.Equal(t, []int64{2}, numbers)
				return err
			})
			require.NoError(t, err)

			subscribed, received := make(chan struct{}), make(chan rueidis.PubSubMessage, 1)
			listening, stop := context.WithCancel(ctx)
			ended := make(chan error, 1)
			listener, err := rueidis.NewClient(options)
			require.NoError(t, err)
			defer listener.Close()
			go func() {
				listening := rueidis.WithOnSubscriptionHook(listening, func(rueidis.PubSubSubscription) { close(subscribed) })
				ended <- listener.Receive(listening, b().Subscribe().Channel(key("news")).Build(),
					func(m rueidis.PubSubMessage) { received <- m })
			}()
			<-subscribed
			require.NoError(t, c.Do(ctx, b().Publish().Channel(key("news")).Message("hello").Build()).Error())
			require.Equal(t, rueidis.PubSubMessage{Channel: key("news"), Message: "hello"}, <-received)
			stop()
			require.ErrorIs(t, <-ended, context.Canceled)

			require.True(t, rueidis.IsRedisNil(c.Do(ctx, b().Blpop().Key(key("l")).Timeout(0.01).Build()).Error()))
			popped := make(chan []string, 1)
			go func() {
				got, _ := c.Do(ctx, b().Blpop().Key(key("l")).Timeout(20).Build()).AsStrSlice()
				popped <- got
			}()
			require.NoError(t, c.Do(ctx, b().Rpush().Key(key("l")).Element("x").Build()).Error())
			require.Equal(t, []string{key("l"), "x"}, <-popped)

			script := rueidis.NewLuaScript("-- " + prefix + "\nreturn redis.call('INCRBY', KEYS[1], ARGV[1])")
			for _, want := range []int64{5, 10} {
				n, err := script.Exec(ctx, c, []string{key("e")}, []string{"5"}).AsInt64()
				require.NoError(t, err)
				require.Equal(t, want, n)
			}

			require.NoError(t, c.Do(ctx, b().XgroupCreate().Key(key("x")).Group("g").Id("$").Mkstream().Build()).Error())
			require.NoError(t, c.Do(ctx, b().Xadd().Key(key("x")).Id("1-1").FieldValue().FieldValue("i", "0").Build()).Error())
			read, err := c.Do(ctx, b().Xreadgroup().Group("g",
				"c").Block(1000).Streams().Key(key("x")).Id(">").Build()).AsXRead()
			require.NoError(t, err)
			require.Equal(t, []rueidis.XRangeEntry{{ID: "1-1", FieldValues: map[string]string{"i": "0"}}}, read[key("x")])
			acked, err := c.Do(ctx, b().Xack().Key(key("x")).Group("g").Id("1-1").Build()).AsInt64()
			require.NoError(t, err)
			require.Equal(t, int64(1), acked)

			sets := make(rueidis.Commands, 1000)
			for i := range sets {
				sets[i] = b().Set().Key(key(fmt.Sprint("scan:", i))).Value("x").Build()
			}
			for _, r := range c.DoMulti(ctx, sets...) {
				require.NoError(t, r.Error())
			}
			scanner := rueidis.NewScanner(func(cursor uint64) (rueidis.ScanEntry, error) {
				return c.Do(ctx, b().Scan().Cursor(cursor).Match(key("scan:*")).Count(100).Build()).AsScanEntry()
			})
			keys := map[string]bool{}
			for k := range scanner.Iter() {
				keys[k] = true
			}
			require.NoError(t, scanner.Err())
			require.Len(t, keys, 1000)

			if !resp2 {
				// Its cache is notified of changes.
				cached := b().Get().Key(key("t")).Cache().Pin()
				for i, hit := range []bool{false, true} {
					r := c.DoCache(ctx, cached, time.Minute)
					require.NoError(t, r.Error())
					require.Equal(t, hit, r.IsCacheHit(), i)
				}
				require.NoError(t, c.Do(ctx, b().Set().Key(key("t")).Value("new").Build()).Error())
				require.Eventually(t, func() bool {
					got, err := c.DoCache(ctx, cached, time.Minute).ToString()
					return err == nil && got == "new"
				}, time.Minute, time.Millisecond)
			}
		})
	}
}
