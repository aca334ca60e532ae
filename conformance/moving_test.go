// Moves data between a live Redis and a server in this process, in every format and in both directions, and compares
// the result.

package conformance

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/atomredis/atomredis/internal/config"
	"github.com/atomredis/atomredis/internal/testing/oracle"
	"github.com/atomredis/atomredis/server"
)

// moveTimeout is the most time Redis may take to rewrite its append-only file, and moveTick the interval of polling.
const (
	moveTimeout = 20 * time.Second
	moveTick    = 20 * time.Millisecond
)

// everyEncoding makes keys of every type in each of its encodings in Redis 7.0.
func everyEncoding() (commands [][]any) {
	add := func(words ...any) { commands = append(commands, words) }
	add("SET", "text", "value")
	for _, n := range []string{"0", "-1", "127", "-128", "128", "-129", "32767", "32768", "2147483647", "2147483648",
		"-9223372036854775808", "007", "1.5"} {
		add("SET", "number:"+n, n)
	}
	add("SET", "empty", "")
	add("SET", "binary", "\x00\xff\r\n")
	add("SET", "compressed", strings.Repeat("abc", 2000))
	add("SETRANGE", "raw", 3000, "x")
	add("SET", "deadline", "v", "PXAT", "9999999999999")
	long := strings.Repeat("long ", 50)
	for i := range 700 {
		add("RPUSH", "list:long", fmt.Sprintf("element %d %s", i, long[:i%200]))
		add("SADD", "set:long", fmt.Sprintf("member %d", i))
		add("SADD", "set:numbers", i*7)
		add("ZADD", "zset:long", float64(i)/7, fmt.Sprintf("member %d", i))
		add("HSET", "hash:long", fmt.Sprintf("field %d", i), long[:i%200])
		add("XADD", "stream:long", fmt.Sprintf("%d-%d", i+1, i%3), "field", i, fmt.Sprintf("other %d", i%5/4), long[:i%60])
	}
	add("RPUSH", "list", "a", "1", "", "-5", long)
	add("RPUSH", "list:plain", strings.Repeat("y", 70000), "a")
	add("SADD", "set:16", "1", "-2", "3")
	add("SADD", "set:32", "1", "70000")
	add("SADD", "set:64", "1", "5000000000")
	add("SADD", "set:text", "a", "1", long)
	add("ZADD", "zset", "1", "a", "2.5", "b", "-inf", "c", "inf", "d", "0.1", "e", "1e300", "f")
	add("ZADD", "zset:value", "1", strings.Repeat("v", 100))
	add("HSET", "hash", "a", "1", "b", "two", "3", "")
	add("HSET", "hash:value", "a", strings.Repeat("v", 100))
	add("XDEL", "stream:long", "5-1", "7-0", "100-0")
	add("XGROUP", "CREATE", "stream:long", "g", "0")
	add("XGROUP", "CREATE", "stream:long", "later", "50", "ENTRIESREAD", "40")
	add("XREADGROUP", "GROUP", "g", "one", "COUNT", "30", "STREAMS", "stream:long", ">")
	add("XREADGROUP", "GROUP", "g", "two", "COUNT", "3", "STREAMS", "stream:long", ">")
	add("XGROUP", "CREATECONSUMER", "stream:long", "g", "idle")
	add("XACK", "stream:long", "g", "3-2", "4-0")
	add("XDEL", "stream:long", "8-1")
	add("XGROUP", "CREATE", "stream:empty", "g", "$", "MKSTREAM")
	add("XADD", "stream:emptied", "5-5", "a", "b")
	add("XDEL", "stream:emptied", "5-5")
	add("FUNCTION", "LOAD", "#!lua name=library\nredis.register_function('f', function() return 1 end)")
	return commands
}

// redisClient returns a client of a server at a Unix socket.
func redisClient(t *testing.T, socket string) *redis.Client {
	c := redis.NewClient(&redis.Options{Network: "unix", Addr: socket, Protocol: 2, DisableIdentity: true})
	t.Cleanup(func() { c.Close() })
	return c
}

// dataOf returns a digest of all data of a Redis, and the details of a stream that the digest does not include.
func dataOf(t *testing.T, c *redis.Client) []string {
	ctx := context.Background()
	digest, err := c.Do(ctx, "DEBUG", "DIGEST").Text()
	require.NoError(t, err)
	stream, err := c.Do(ctx, "XINFO", "STREAM", "stream:long", "FULL").Result()
	require.NoError(t, err)
	functions, err := c.Do(ctx, "FUNCTION", "LIST").Result()
	require.NoError(t, err)
	text := fmt.Sprint(stream)
	// The form of the blocks, and when consumers were last seen, are not part of the data.
	_, entries, _ := strings.Cut(text, "last-generated-id")
	for _, word := range []string{"seen-time:", "seen-time "} {
		for {
			at := strings.Index(entries, word)
			if at < 0 {
				break
			}
			end := at + len(word)
			for end < len(entries) && entries[end] >= '0' && entries[end] <= '9' {
				end++
			}
			entries = entries[:at] + entries[end:]
		}
	}
	return []string{digest, entries, fmt.Sprint(functions)}
}

// imported starts a server that loads a file into an empty directory, and calls use with it.
func imported(t *testing.T, file string, use func(srv *server.Server)) {
	conf := config.NewConfig()
	conf.ListenNowhere()
	require.NoError(t, conf.Set("dir", t.TempDir(), false))
	srv, err := server.New(conf, slog.New(slog.DiscardHandler), server.Options{Import: file})
	require.NoError(t, err)
	require.NoError(t, srv.Start())
	use(srv)
	require.NoError(t, srv.Close())
}

func TestDataMovesBetweenRedisAndHere(t *testing.T) {
	ctx := context.Background()
	dir := t.TempDir()
	source := redisClient(t, oracle.Start(t, "--dir", dir))
	for _, command := range everyEncoding() {
		require.NoError(t, source.Do(ctx, command...).Err(), "%v", command[:2])
	}
	require.NoError(t, source.Do(ctx, "CONFIG", "SET", "appendonly", "yes").Err())
	require.Eventually(t, func() bool {
		info, err := source.Info(ctx, "persistence").Result()
		return err == nil && strings.Contains(info, "aof_rewrite_in_progress:0") &&
			strings.Contains(info, "aof_rewrite_scheduled:0")
	}, moveTimeout, moveTick)
	require.NoError(t, source.Do(ctx, "INCR", "number:0").Err()) // it is in the part after the base
	require.NoError(t, source.Do(ctx, "SAVE").Err())
	want := dataOf(t, source)

	for _, file := range []string{"dump.rdb", "appendonlydir"} {
		imported(t, filepath.Join(dir, file), func(srv *server.Server) {
			for form, write := range map[string]func(io.Writer) error{"rdb": srv.WriteRDB, "aof": srv.WriteAOF} {
				var out bytes.Buffer
				require.NoError(t, write(&out))
				there := t.TempDir()
				args := []string{"--dir", there}
				if form == "rdb" {
					require.NoError(t, os.WriteFile(filepath.Join(there, "dump.rdb"), out.Bytes(), 0o600))
				} else {
					require.NoError(t, os.Mkdir(filepath.Join(there, "appendonlydir"), 0o700))
					require.NoError(t, os.WriteFile(filepath.Join(there, "appendonlydir", "a.aof"), out.Bytes(), 0o600))
					require.NoError(t, os.WriteFile(filepath.Join(there, "appendonlydir", "appendonly.aof.manifest"),
						[]byte("file a.aof seq 1 type i\n"), 0o600))
					args = append(args, "--appendonly", "yes")
				}
				require.Equal(t, want, dataOf(t, redisClient(t, oracle.Start(t, args...))), "from %s by %s", file, form)
			}
		})
	}
}

func TestPayloadsMoveBetweenRedisAndHere(t *testing.T) {
	ctx := context.Background()
	source, target := redisClient(t, oracle.Start(t)), redisClient(t, oracle.Start(t))
	for _, command := range everyEncoding() {
		require.NoError(t, source.Do(ctx, command...).Err(), "%v", command[:2])
	}
	require.NoError(t, source.Persist(ctx, "deadline").Err()) // a payload has no deadline
	conf := config.NewConfig()
	conf.InMemory()
	conf.ListenNowhere()
	srv, err := server.New(conf, slog.New(slog.DiscardHandler), server.Options{})
	require.NoError(t, err)
	require.NoError(t, srv.Start())
	defer func() { require.NoError(t, srv.Close()) }()
	here, err := srv.Direct(0)
	require.NoError(t, err)
	defer here.Release()
	do := func(args ...string) string {
		words := make([][]byte, len(args))
		for i, a := range args {
			words[i] = []byte(a)
		}
		require.NoError(t, here.Run(ctx, words))
		out, err := here.Flush()
		require.NoError(t, err)
		return string(out)
	}
	keys, err := source.Keys(ctx, "*").Result()
	require.NoError(t, err)
	for _, key := range keys {
		payload, err := source.Dump(ctx, key).Result()
		require.NoError(t, err)
		require.Equal(t, "+OK\r\n", do("RESTORE", key, "0", payload), key)
		reply := do("DUMP", key)
		_, reply, _ = strings.Cut(reply, "\r\n")
		require.NoError(t, target.Do(ctx, "RESTORE", key, 0, strings.TrimSuffix(reply, "\r\n")).Err(), key)
		want, err := source.Do(ctx, "DEBUG", "DIGEST-VALUE", key).Result()
		require.NoError(t, err)
		got, err := target.Do(ctx, "DEBUG", "DIGEST-VALUE", key).Result()
		require.NoError(t, err)
		require.Equal(t, want, got, key)
	}
}
