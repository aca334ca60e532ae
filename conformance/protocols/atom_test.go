package protocols_test

import (
	"context"
	"fmt"
	"net"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
)

// referenceScript makes a reference from each field of a stream entry, without transferring the data: our own version
// of the script that atom's clients load. ARGV: stream, entry ID or "", reference key, timeout in ms.
const referenceScript = `
local stream, id, reference, timeout = ARGV[1], ARGV[2], ARGV[3], tonumber(ARGV[4])
local entries
if id == '' then
	entries = redis.call('xrevrange', stream, '+', '-', 'COUNT', 1)
else
	entries = redis.call('xrange', stream, id, id)
end
local fields = entries[1][2]
local ser = 'none'
for i = 1, #fields, 2 do
	if fields[i] == 'ser' then ser = fields[i + 1] end
end
local keys = {}
for i = 1, #fields, 2 do
	if not string.match(fields[i], '^ser$') then
		local key = reference .. ':ser:' .. ser .. ':' .. fields[i]
		if timeout > 0 then
			redis.call('set', key, fields[i + 1], 'px', timeout)
		else
			redis.call('set', key, fields[i + 1])
		end
		table.insert(keys, key)
	end
end
return keys`

// element is an atom element with the command sequences of the specification.
type element struct {
	r    *redis.Client
	name string
}

func newElement(ctx context.Context, r *redis.Client, name string) (*element, error) {
	e := &element{r, name}
	for _, key := range []string{"response:" + name, "command:" + name} {
		if err := e.add(ctx, key, "language", "Go", "version", "1.0"); err != nil {
			return nil, err
		}
	}
	return e, r.IncrBy(ctx, "command_consumer_group_counter:"+name, 1).Err()
}

func (e *element) add(ctx context.Context, key string, fields ...string) error {
	_, err := e.write(ctx, key, fields...)
	return err
}

func (e *element) write(ctx context.Context, key string, fields ...string) (id string, err error) {
	return e.r.XAdd(ctx, &redis.XAddArgs{Stream: key, MaxLen: 1024, Approx: true, Values: fields}).Result()
}

func (e *element) cleanup(ctx context.Context, streams ...string) error {
	for _, key := range append([]string{"response:" + e.name, "command:" + e.name,
		"command_consumer_group_counter:" + e.name}, streams...) {
		if n, err := e.r.Unlink(ctx, key).Result(); err != nil || n != 1 {
			return fmt.Errorf("unlink %s: %d %w", key, n, err)
		}
	}
	return nil
}

// serve handles one command in a consumer group, as the Python client does.
func (e *element) serve(ctx context.Context, handle func(cmd, data string) string) error {
	stream, group := "command:"+e.name, "command_consumer_group:"+e.name
	read, err := e.r.XReadGroup(ctx, &redis.XReadGroupArgs{Group: group, Consumer: e.name,
		Streams: []string{stream, ">"}, Count: 1, Block: 20 * time.Second}).Result()
	if err != nil {
		return err
	}
	msg := read[0].Messages[0]
	caller := msg.Values["element"].(string)
	cmd := msg.Values["cmd"].(string)
	if err := e.add(ctx, "response:"+caller, "element", e.name, "cmd_id", msg.ID, "timeout", "20000"); err != nil {
		return err
	}
	data := handle(cmd, msg.Values["data"].(string))
	if err := e.add(ctx, "response:"+caller, "data", data, "ser", "none", "err_code", "0", "err_str", "", "cmd_id",
		msg.ID, "element", e.name, "cmd", cmd); err != nil {
		return err
	}
	return e.r.XAck(ctx, stream, group, msg.ID).Err()
}

// send calls a command of another element and returns its response. ack is how long to wait for the acknowledgement.
func (e *element) send(ctx context.Context, to, cmd, data string, ack time.Duration) (string, error) {
	id, err := e.write(ctx, "command:"+to, "element", e.name, "cmd", cmd, "data", data)
	if err != nil {
		return "", err
	}
	last, wait := id, ack
	for {
		read, err := e.r.XRead(ctx, &redis.XReadArgs{Streams: []string{"response:" + e.name, last}, Block: wait}).Result()
		if err != nil {
			return "", err
		}
		for _, msg := range read[0].Messages {
			last = msg.ID
			if msg.Values["cmd_id"] != id || msg.Values["element"] != to {
				continue
			}
			if timeout, ok := msg.Values["timeout"]; ok {
				if wait, err = time.ParseDuration(timeout.(string) + "ms"); err != nil {
					return "", err
				}
				continue
			}
			return msg.Values["data"].(string), nil
		}
	}
}

func TestAtomElements(t *testing.T) {
	ctx := t.Context()
	r := client(t, server(t))
	e, err := newElement(ctx, r, "robot")
	require.NoError(t, err)
	_, err = newElement(ctx, client(t, r.Options().Addr), "camera")
	require.NoError(t, err)

	t.Run("discovery by SCAN", func(t *testing.T) {
		var names []string
		for iter := r.Scan(ctx, 0, "response:*", 1).Iterator(); iter.Next(ctx); {
			name := strings.TrimPrefix(iter.Val(), "response:")
			if r.Exists(ctx, "command:"+name).Val() == 1 {
				names = append(names, name)
			}
		}
		slices.Sort(names)
		require.Equal(t, []string{"camera", "robot"}, names)
		info := r.XRevRangeN(ctx, "response:robot", "+", "-", 1).Val()
		require.Equal(t, map[string]any{"language": "Go", "version": "1.0"}, info[0].Values)
	})

	t.Run("entries", func(t *testing.T) {
		stream := "stream:robot:pose"
		var ids []string
		for i := range 2000 {
			id, err := e.write(ctx, stream, "x", fmt.Sprint(i), "binary", "\x00\r\n\xff", "ser", "none")
			require.NoError(t, err)
			ids = append(ids, id)
		}
		length := r.XLen(ctx, stream).Val()
		require.GreaterOrEqual(t, length, int64(1024))
		require.Less(t, length, int64(1224), "MAXLEN ~ trims")
		newest := r.XRevRangeN(ctx, stream, "+", "-", 3).Val()
		require.Len(t, newest, 3)
		require.Equal(t, ids[1999], newest[0].ID)
		require.Equal(t, "\x00\r\n\xff", newest[0].Values["binary"])
		since := r.XRead(ctx, &redis.XReadArgs{Streams: []string{stream, ids[1990]}, Count: 5, Block: -1}).Val()
		require.Len(t, since[0].Messages, 5)
		require.Equal(t, ids[1991], since[0].Messages[0].ID)
		require.Empty(t, r.XRevRangeN(ctx, "stream:robot:none", "+", "-", 1).Val())
		require.ErrorIs(t, r.XRead(ctx, &redis.XReadArgs{Streams: []string{stream, "$"}, Block: -1}).Err(), redis.Nil)
	})

	t.Run("reading several streams as they are written", func(t *testing.T) {
		got := make(chan []redis.XStream, 1)
		a, b := "stream:robot:a", "stream:camera:b"
		first, err := e.write(ctx, b, "n", "0")
		require.NoError(t, err)
		reader := client(t, r.Options().Addr)
		go func() {
			got <- reader.XRead(ctx, &redis.XReadArgs{Streams: []string{a, b, "$", first}, Block: 20 * time.Second}).Val()
		}()
		waitFor(t, "blocking", func() bool { return strings.Contains(r.Info(ctx, "clients").Val(), "blocked_clients:1") })
		id, err := e.write(ctx, a, "n", "1")
		require.NoError(t, err)
		require.Equal(t, []redis.XStream{{Stream: a,
			Messages: []redis.XMessage{{ID: id, Values: map[string]any{"n": "1"}}}}}, <-got)
		require.Empty(t, r.XRead(ctx, &redis.XReadArgs{Streams: []string{a, "$"}, Block: 10 * time.Millisecond}).Val())
		require.NoError(t, r.Do(ctx, "XREAD", "BLOCK", "999999999999999999", "STREAMS", a, "0").Err(),
			"the longest wait that clients ask for")
	})

	t.Run("commands", func(t *testing.T) {
		require.NoError(t, r.XGroupCreateMkStream(ctx, "command:camera", "command_consumer_group:camera", "$").Err())
		require.ErrorContains(t, r.XGroupCreateMkStream(ctx, "command:camera", "command_consumer_group:camera", "$").Err(),
			"BUSYGROUP")
		camera := &element{client(t, r.Options().Addr), "camera"}
		served := make(chan error, 3)
		go func() {
			for range 3 {
				served <- camera.serve(ctx, func(cmd, data string) string { return cmd + "(" + data + ")" })
			}
		}()
		for i := range 3 {
			response, err := e.send(ctx, "camera", "snap", fmt.Sprint(i), 20*time.Second)
			require.NoError(t, err)
			require.Equal(t, fmt.Sprintf("snap(%d)", i), response)
			require.NoError(t, <-served)
		}
		require.Zero(t, r.XPending(ctx, "command:camera", "command_consumer_group:camera").Val().Count)
		_, err := e.send(ctx, "nobody", "snap", "", 20*time.Millisecond)
		require.ErrorIs(t, err, redis.Nil, "no acknowledgement")
	})

	t.Run("a command loop whose element goes", func(t *testing.T) {
		failed := make(chan error, 1)
		camera := &element{client(t, r.Options().Addr), "camera"}
		go func() { failed <- camera.serve(ctx, nil) }()
		waitFor(t, "blocking", func() bool { return strings.Contains(r.Info(ctx, "clients").Val(), "blocked_clients:1") })
		require.EqualValues(t, 1, r.Unlink(ctx, "command:camera").Val())
		require.ErrorContains(t, <-failed, "NOGROUP No such key")
	})

	t.Run("logs", func(t *testing.T) {
		require.NoError(t, e.add(ctx, "log", "level", "6", "element", "robot", "msg", "hello", "host", "h"))
		now := r.Time(ctx).Val()
		since := fmt.Sprintf("%d", now.Add(-time.Minute).UnixMilli())
		require.Len(t, r.XRead(ctx, &redis.XReadArgs{Streams: []string{"log", since}, Block: -1}).Val()[0].Messages, 1)
	})

	t.Run("references", func(t *testing.T) {
		key := "reference:robot:id:ser:none"
		require.True(t, r.SetNX(ctx, key, "\x00data", 0).Val())
		require.ErrorIs(t, r.SetArgs(ctx, key, "again", redis.SetArgs{Mode: "NX", TTL: time.Second}).Err(), redis.Nil)
		require.Equal(t, "\x00data", r.Get(ctx, key).Val())
		require.EqualValues(t, -1, r.PTTL(ctx, key).Val())
		require.EqualValues(t, -2, r.PTTL(ctx, "reference:robot:none").Val())
		require.True(t, r.PExpire(ctx, key, time.Minute).Val())
		require.InDelta(t, time.Minute, r.PTTL(ctx, key).Val(), float64(time.Second*10))
		require.True(t, r.Persist(ctx, key).Val())
		require.False(t, r.Persist(ctx, key).Val())
		require.EqualValues(t, 1, r.Unlink(ctx, key).Val())
		require.True(t, r.SetNX(ctx, key, "v", 20*time.Millisecond).Val())
		waitFor(t, "expiry", func() bool { return r.Exists(ctx, key).Val() == 0 })
	})

	t.Run("references from a stream", func(t *testing.T) {
		sha := r.ScriptLoad(ctx, referenceScript).Val()
		first, err := e.write(ctx, "stream:robot:ref", "a", "1", "b", "\x00two", "ser", "msgpack")
		require.NoError(t, err)
		_, err = e.write(ctx, "stream:robot:ref", "a", "3")
		require.NoError(t, err)
		keys := r.EvalSha(ctx, sha, nil, "stream:robot:ref", first, "reference:robot:u1", 60000).Val()
		require.Equal(t, []any{"reference:robot:u1:ser:msgpack:a", "reference:robot:u1:ser:msgpack:b"}, keys)
		require.Equal(t, "\x00two", r.Get(ctx, "reference:robot:u1:ser:msgpack:b").Val())
		require.Greater(t, r.PTTL(ctx, "reference:robot:u1:ser:msgpack:a").Val(), time.Duration(0))
		keys = r.EvalSha(ctx, sha, nil, "stream:robot:ref", "", "reference:robot:u2", 0).Val()
		require.Equal(t, []any{"reference:robot:u2:ser:none:a"}, keys)
		require.EqualValues(t, -1, r.PTTL(ctx, "reference:robot:u2:ser:none:a").Val())
		require.Error(t, r.EvalSha(ctx, sha, nil, "stream:robot:missing", "", "reference:robot:u3", 0).Err())
	})

	t.Run("parameters, counters and sorted sets", func(t *testing.T) {
		key := "parameter:gains"
		require.Zero(t, r.Exists(ctx, key).Val())
		for _, field := range []string{"p", "i", "ser", "override"} {
			require.EqualValues(t, 1, r.HSet(ctx, key, field, "\xffvalue").Val())
		}
		require.Equal(t, "\xffvalue", r.HGet(ctx, key, "override").Val())
		require.Len(t, r.HGetAll(ctx, key).Val(), 4)
		require.True(t, r.PExpire(ctx, key, time.Minute).Val())
		found, _ := r.Scan(ctx, 0, "parameter:g*", 1000).Val()
		require.Equal(t, []string{key}, found)
		require.EqualValues(t, 1, r.Del(ctx, key).Val())

		require.EqualValues(t, 5, r.IncrBy(ctx, "counter:c", 5).Val())
		require.EqualValues(t, 3, r.DecrBy(ctx, "counter:c", 2).Val())
		require.Equal(t, "3", r.Get(ctx, "counter:c").Val())

		zset := "sorted_set:queue"
		for i, score := range []float64{1000, 0.5, 3.25, 1234567.123456789} {
			require.EqualValues(t, 1, r.ZAdd(ctx, zset, redis.Z{Score: score, Member: fmt.Sprint(i)}).Val())
		}
		require.Equal(t, []any{"1", "0.5", "2", "3.25", "0", "1000", "3", "1.234567123456789e+6"},
			client2(t, r).Do(ctx, "ZRANGE", zset, 0, -1, "WITHSCORES").Val())
		require.Equal(t, []redis.Z{{Score: 0.5, Member: "1"}}, r.ZPopMin(ctx, zset).Val())
		require.Equal(t, "3", r.BZPopMax(ctx, 0, zset).Val().Member)
		pipe := r.Pipeline()
		popped, left := pipe.BZPopMin(ctx, time.Second, zset), pipe.ZCard(ctx, zset)
		_, err := pipe.Exec(ctx)
		require.NoError(t, err)
		require.Equal(t, "2", popped.Val().Member)
		require.EqualValues(t, 1, left.Val())
		require.Equal(t, 1000.0, r.ZScore(ctx, zset, "0").Val())
		require.EqualValues(t, 1, r.ZRem(ctx, zset, "0").Val())
		require.ErrorIs(t, r.BZPopMin(ctx, 10*time.Millisecond, zset).Err(), redis.Nil)
	})

	t.Run("cleanup", func(t *testing.T) {
		require.NoError(t, e.cleanup(ctx, "stream:robot:pose", "stream:robot:a", "stream:robot:ref"))
		found, _ := r.Scan(ctx, 0, "*robot*", 1000).Val()
		slices.Sort(found)
		require.Equal(t, []string{"reference:robot:u1:ser:msgpack:a", "reference:robot:u1:ser:msgpack:b",
			"reference:robot:u2:ser:none:a"}, found)
	})
}

// client2 returns a client of the same server that uses RESP2, like atom's clients.
func client2(t *testing.T, r *redis.Client) *redis.Client {
	c := redis.NewClient(&redis.Options{Addr: r.Options().Addr, Protocol: 2, DisableIdentity: true})
	t.Cleanup(func() { c.Close() })
	return c
}

// TestAtomThroughRedisCLI sends the same commands as a person would.
func TestAtomThroughRedisCLI(t *testing.T) {
	cli, err := exec.LookPath("redis-cli")
	if err != nil {
		t.Skip("redis-cli is not installed")
	}
	host, port, err := net.SplitHostPort(server(t))
	require.NoError(t, err)
	run := func(args ...string) string {
		out, err := exec.CommandContext(t.Context(), cli,
			append([]string{"-h", host, "-p", port}, args...)...).CombinedOutput()
		require.NoError(t, err, "%s", out)
		return strings.TrimSpace(string(out))
	}
	sha := run("SCRIPT", "LOAD", referenceScript)
	for _, step := range []struct{ command, want string }{
		{"XADD response:e 1-1 language Go version 1", "1-1"},
		{"XADD command:e MAXLEN ~ 1024 1-1 language Go version 1", "1-1"},
		{"XADD stream:e:s MAXLEN ~ 1024 5-1 a 1 b 2", "5-1"},
		{"XREVRANGE stream:e:s + - COUNT 1", "5-1\na\n1\nb\n2"},
		{"XREAD COUNT 1 BLOCK 10 STREAMS stream:e:s 4", "stream:e:s\n5-1\na\n1\nb\n2"},
		{"XREAD BLOCK 10 STREAMS stream:e:s $", ""},
		{"XGROUP CREATE command:e g 0 MKSTREAM", "OK"},
		{"XREADGROUP GROUP g c COUNT 1 BLOCK 10 STREAMS command:e >", "command:e\n1-1\nlanguage\nGo\nversion\n1"},
		{"XACK command:e g 1-1", "1"},
		{"EVALSHA " + sha + " 0 stream:e:s 5-1 reference:e:u 60000", "reference:e:u:ser:none:a\nreference:e:u:ser:none:b"},
		{"GET reference:e:u:ser:none:b", "2"},
		{"SET reference:e:k v NX PX 60000", "OK"},
		{"SET reference:e:k v NX PX 60000", ""},
		{"PERSIST reference:e:k", "1"},
		{"PTTL reference:e:k", "-1"},
		{"PEXPIRE reference:e:k 1000", "1"},
		{"UNLINK reference:e:k", "1"},
		{"HSET parameter:p f v", "1"},
		{"HGETALL parameter:p", "f\nv"},
		{"INCRBY counter:c 3", "3"},
		{"ZADD sorted_set:z 1.5 m", "1"},
		{"ZPOPMIN sorted_set:z", "m\n1.5"},
		{"SCAN 0 MATCH response:* COUNT 1000", "0\nresponse:e"},
		{"XADD log 7-1 level 6 element e msg hi host h", "7-1"},
		{"UNLINK response:e", "1"},
	} {
		require.Equal(t, step.want, run(strings.Fields(step.command)...), step.command)
	}
}
