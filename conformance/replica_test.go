// Makes a server in this process a replica of a live Redis that is being written to, breaks the connection, and
// compares both.

package conformance

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/atomredis/atomredis/internal/config"
	"github.com/atomredis/atomredis/internal/testing/oracle"
	"github.com/atomredis/atomredis/internal/testing/testseed"
	"github.com/atomredis/atomredis/server"
)

// followTimeout is the most time for a replica to catch up, and followTick the interval of polling.
const (
	followTimeout = time.Minute
	followTick    = 20 * time.Millisecond
)

// brittleProxy forwards connections to a Unix socket, until it is told to break them.
type brittleProxy struct {
	net.Listener
	socket string

	mu      sync.Mutex // protects the following fields
	conns   map[net.Conn]bool
	refuses bool
	running sync.WaitGroup
}

func newBrittleProxy(t *testing.T, socket string) *brittleProxy {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	p := &brittleProxy{Listener: l, socket: socket, conns: map[net.Conn]bool{}}
	p.running.Go(func() {
		for {
			in, err := l.Accept()
			if err != nil {
				return
			}
			out, err := net.Dial("unix", socket)
			if err != nil || !p.add(in, out) {
				in.Close()
				continue
			}
			for _, ends := range [][2]net.Conn{{in, out}, {out, in}} {
				p.running.Go(func() {
					io.Copy(ends[0], ends[1])
					in.Close()
					out.Close()
				})
			}
		}
	})
	t.Cleanup(func() {
		l.Close()
		p.cut(true)
		p.running.Wait()
	})
	return p
}

// add records a pair of connections, unless connections are refused; then it closes out.
func (p *brittleProxy) add(in, out net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.refuses {
		out.Close()
		return false
	}
	p.conns[in], p.conns[out] = true, true
	return true
}

// cut breaks all connections. refuse rejects new ones until the next call.
func (p *brittleProxy) cut(refuse bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.refuses = refuse
	for c := range p.conns {
		c.Close()
	}
	clear(p.conns)
}

// hostPort returns the arguments of REPLICAOF.
func (p *brittleProxy) hostPort() []any {
	host, port, _ := net.SplitHostPort(p.Addr().String())
	return []any{"REPLICAOF", host, port}
}

// startReplica starts a server on a directory, and returns a client of it.
func startReplica(t *testing.T, dir string) (*server.Server, *redis.Client) {
	sockets, err := os.MkdirTemp("", "replica")
	require.NoError(t, err)
	t.Cleanup(func() { os.RemoveAll(sockets) })
	conf := config.NewConfig()
	socket := filepath.Join(sockets, "s")
	for name, value := range map[string]string{"port": "0", "unixsocket": socket, "dir": dir,
		"enable-debug-command": "yes", "appendfsync": "always",
		"shards": os.Getenv("ATOMREDIS_TEST_SHARDS")} {
		if value != "" {
			require.NoError(t, conf.Set(name, value, false), name)
		}
	}
	srv, err := server.New(conf, slog.New(slog.NewTextHandler(t.Output(), nil)), server.Options{})
	require.NoError(t, err)
	require.NoError(t, srv.Start())
	t.Cleanup(func() { require.NoError(t, srv.Close()) })
	return srv, redisClient(t, socket)
}

// infoField returns a field of INFO.
func infoField(t require.TestingT, c *redis.Client, section, field string) string {
	info, err := c.Info(context.Background(), section).Result()
	require.NoError(t, err)
	_, rest, _ := strings.Cut(info, "\r\n"+field+":")
	value, _, _ := strings.Cut(rest, "\r\n")
	return value
}

// requireEqualSoon waits until the replica has all data of its master.
func requireEqualSoon(t *testing.T, master, replica *redis.Client) {
	require.Eventually(t, func() bool {
		return infoField(t, replica, "replication", "master_link_status") == "up" &&
			infoField(t, master, "replication", "master_repl_offset") == infoField(t, replica, "replication",
				"slave_repl_offset")
	}, followTimeout, followTick)
	requireSame(t, master, replica)
	require.Equal(t, "0", infoField(t, replica, "stats", "unexpected_error_replies"))
}

// copyAtRest copies the directory of a running server that writes nothing for a moment. Expiring keys and checkpoints
// may still write at any time.
func copyAtRest(t *testing.T, to, from string) {
	state := func() (files []string) {
		_ = filepath.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
			if err == nil {
				var info fs.FileInfo
				if info, err = d.Info(); err == nil {
					files = append(files, fmt.Sprint(path, info.Size(), info.ModTime()))
				}
			}
			return nil // a file that is gone by now is left out
		})
		return files
	}
	require.Eventually(t, func() bool {
		before := state()
		return os.RemoveAll(to) == nil && os.CopyFS(to, os.DirFS(from)) == nil && slices.Equal(before, state())
	}, followTimeout, followTick)
}

// requireSame waits until two servers have the same data: keys may be about to expire.
func requireSame(t *testing.T, a, b *redis.Client) {
	for end := time.Now().Add(followTimeout); time.Now().Before(end); time.Sleep(followTick) {
		if slices.Equal(replicaData(t, a), replicaData(t, b)) {
			return
		}
	}
	require.Equal(t, keysOf(t, a), keysOf(t, b))
	require.Equal(t, replicaData(t, a), replicaData(t, b))
}

// replicaData returns a digest of a server's data.
func replicaData(t *testing.T, c *redis.Client) []string {
	ctx := context.Background()
	digest, err := c.Do(ctx, "DEBUG", "DIGEST").Text()
	require.NoError(t, err)
	functions, err := c.Do(ctx, "FUNCTION", "LIST", "WITHCODE").Slice()
	require.NoError(t, err)
	data := []string{digest}
	for _, library := range functions {
		data = append(data, fmt.Sprint(library))
	}
	slices.Sort(data[1:])
	return data
}

// keysOf returns digests and deadlines of all keys, which show where two servers differ.
func keysOf(t *testing.T, c *redis.Client) map[string]string {
	ctx := context.Background()
	data := map[string]string{}
	for db := range 16 {
		conn := c.Conn()
		require.NoError(t, conn.Select(ctx, db).Err())
		keys, err := conn.Keys(ctx, "*").Result()
		require.NoError(t, err)
		for _, key := range keys {
			digest, err := conn.Do(ctx, "DEBUG", "DIGEST-VALUE", key).Result()
			require.NoError(t, err)
			at, err := conn.Do(ctx, "PEXPIRETIME", key).Result()
			require.NoError(t, err)
			data[fmt.Sprint(db, " ", key)] = fmt.Sprint(digest, at)
		}
		conn.Close()
	}
	return data
}

// randomWrites returns commands that belong together: one command, or those of a transaction.
func randomWrites(r *rand.Rand) [][]any {
	if r.IntN(10) == 0 {
		unit := make([][]any, 2+r.IntN(4))
		for i := range unit {
			unit[i] = randomWrite(r)
		}
		return unit
	}
	return [][]any{randomWrite(r)}
}

func randomWrite(r *rand.Rand) []any {
	key := func(kind string) string { return fmt.Sprintf("%s:%d", kind, r.IntN(12)) }
	member := func() string { return fmt.Sprintf("member %d", r.IntN(300)) }
	kinds := []string{"string", "number", "list", "set", "zset", "hash", "stream", "hll", "geo"}
	some := func() string { return key(kinds[r.IntN(len(kinds))]) }
	stream := key("stream")
	all := [][]any{
		{"SET", key("string"), strings.Repeat(member(), r.IntN(30))}, {"SET", key("string"), member(), "PX", 1 + r.IntN(400)},
		{"SET", key("string"), member(), "EX", 1000, "NX"}, {"GETEX", key("string"), "PX", 1 + r.IntN(500)},
		{"GETDEL", key("string")},
		{"APPEND", key("string"), member()}, {"SETRANGE", key("string"), r.IntN(200), member()},
		{"SETBIT", key("string"), r.IntN(2000), 1},
		{"BITOP", "XOR", key("string"), key("string"), key("string")},
		{"BITFIELD", key("string"), "INCRBY", "u5", r.IntN(100), r.IntN(9)},
		{"INCRBY", key("number"), r.IntN(100)}, {"INCRBYFLOAT", key("float"), r.Float64()},
		{"MSET", key("string"), member(), key("number"), r.IntN(99)},
		{"RPUSH", key("list"), member(), member(), member()}, {"LPUSH", key("list"), strings.Repeat(member(), r.IntN(100))},
		{"LPOP", key("list"), 1 + r.IntN(4)},
		{"LMOVE", key("list"), key("list"), "LEFT", "RIGHT"}, {"LTRIM", key("list"), 0, 100},
		{"LREM", key("list"), 0, member()}, {"LINSERT", key("list"), "BEFORE", member(), "x"},
		{"SADD", key("set"), member(), member()}, {"SADD", key("set:n"), r.IntN(1000)}, {"SPOP", key("set"), 1 + r.IntN(3)},
		{"SREM", key("set"), member()},
		{"SMOVE", key("set"), key("set"), member()}, {"SUNIONSTORE", key("set"), key("set"), key("set")},
		{"SORT", key("set"), "ALPHA", "STORE", key("list")},
		{"ZADD", key("zset"), r.Float64(), member(), r.IntN(50), member()}, {"ZINCRBY", key("zset"), r.Float64(), member()},
		{"ZPOPMIN", key("zset"), 1 + r.IntN(3)},
		{"ZREMRANGEBYSCORE", key("zset"), "0.2", "0.25"}, {"ZUNIONSTORE", key("zset"), 2, key("zset"), key("set")},
		{"ZRANGESTORE", key("zset"), key("zset"), 0, 99},
		{"HSET", key("hash"), member(), member(), member(), strings.Repeat("v", r.IntN(99))},
		{"HDEL", key("hash"), member()}, {"HINCRBYFLOAT", key("hash:f"), "f", r.Float64()},
		{"XADD", stream, "*", "f", member(), "g", r.IntN(100)}, {"XADD", stream, "MAXLEN", "~", 200, "*", "f", r.IntN(100)},
		{"XTRIM", stream, "MAXLEN", 150},
		{"XGROUP", "CREATE", stream, "g", r.IntN(2), "MKSTREAM"},
		{"XREADGROUP", "GROUP", "g", fmt.Sprint("c", r.IntN(3)), "COUNT", 5, "STREAMS", stream, ">"},
		{"XAUTOCLAIM", stream, "g", "thief", 0, "0", "COUNT", 3}, {"XGROUP", "DELCONSUMER", stream, "g", "c1"},
		{"XGROUP", "SETID", stream, "g", "0"},
		{"PFADD", key("hll"), member(), member()}, {"PFCOUNT", key("hll")}, {"PFMERGE", key("hll"), key("hll"), key("hll")},
		{"GEOADD", key("geo"), r.Float64() * 90, r.Float64() * 80, member()},
		{"GEOSEARCHSTORE", key("geo"), key("geo"), "FROMLONLAT", 40, 40, "BYRADIUS", 4000, "km"},
		{"DEL", some()}, {"UNLINK", some(), some()}, {"PEXPIRE", some(), 1 + r.IntN(600)}, {"EXPIRE", some(), 500},
		{"PERSIST", some()},
		{"COPY", some(), "copy:" + some(), "REPLACE"}, {"RENAME", some(), "moved:" + some()}, {"MOVE", some(), 4},
		{"SWAPDB", 5, 6}, {"PUBLISH", "channel", member()},
		{"EVAL", "redis.call('SET', KEYS[1], math.random()) redis.call('PEXPIRE', KEYS[1], ARGV[1]) return redis.call('SPOP', KEYS[2])", 2, key("string"), key("set"), 1 + r.IntN(900)},
		{"EVAL", "for i = 1, 5 do redis.call('RPUSH', KEYS[1], redis.call('TIME')[2]) end redis.call('SELECT', 3) return redis.call('INCR', 'scripts')", 1, key("list")},
		{"BLMOVE", key("list"), key("list"), "LEFT", "LEFT", 0.01}, {"BRPOP", key("list"), key("queue"), 0.02},
		{"BZPOPMAX", key("zset"), 0.01}, {"LPUSH", key("queue"), member()},
		{"FUNCTION", "LOAD", "REPLACE", fmt.Sprintf("#!lua name=library%d\nredis.register_function('f%d', function() return %d end)", r.IntN(3), r.IntN(3), r.IntN(99))},
	}
	if r.IntN(300) == 0 {
		return []any{"FLUSHDB"}
	}
	return all[r.IntN(len(all))]
}

// writers write to a Redis until stop is called.
func writers(t *testing.T, socket string, n int) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	random := testseed.Rand(t)
	for i := range n {
		c := redis.NewClient(&redis.Options{Network: "unix", Addr: socket, DB: i % 3, Protocol: 2, DisableIdentity: true,
			PoolSize: 1})
		r := testseed.Fork(random)
		running.Go(func() {
			defer c.Close()
			for ctx.Err() == nil {
				unit := randomWrites(r)
				if len(unit) == 1 {
					c.Do(ctx, unit[0]...) // whatever the reply
					continue
				}
				c.TxPipelined(ctx, func(p redis.Pipeliner) error {
					for _, args := range unit {
						p.Do(ctx, args...)
					}
					return nil
				})
			}
		})
	}
	var once sync.Once
	stop = func() {
		once.Do(func() {
			cancel()
			running.Wait()
		})
	}
	t.Cleanup(stop)
	return stop
}

func TestReplicaFollowsARedisUnderLoad(t *testing.T) {
	for _, form := range []string{"yes", "no"} {
		t.Run("diskless "+form, func(t *testing.T) {
			ctx := context.Background()
			socket := oracle.Start(t, "--repl-diskless-sync", form, "--repl-diskless-sync-delay", "0", "--repl-backlog-size",
				"8mb")
			master := redisClient(t, socket)
			for _, command := range everyEncoding() {
				require.NoError(t, master.Do(ctx, command...).Err(), "%v", command[:2])
			}
			proxy := newBrittleProxy(t, socket)
			dir := t.TempDir()
			srv, replica := startReplica(t, dir)
			require.NoError(t, replica.Set(ctx, "old", "data", 0).Err())

			stop := writers(t, socket, 8)
			require.NoError(t, replica.Do(ctx, proxy.hostPort()...).Err())
			linkUp := func() bool { return infoField(t, replica, "replication", "master_link_status") == "up" }
			require.Eventually(t, linkUp, followTimeout, followTick)
			for range 5 {
				time.Sleep(300 * time.Millisecond) // some time under load
				before := infoField(t, master, "stats", "sync_partial_ok")
				proxy.cut(false)
				require.Eventually(t, func() bool {
					return infoField(t, master, "stats", "sync_partial_ok") != before &&
						linkUp()
				}, followTimeout, followTick)
			}
			stop()
			requireEqualSoon(t, master, replica)
			require.Equal(t, "1", infoField(t, master, "stats", "sync_full"))
			require.ErrorContains(t, replica.Set(ctx, "a", "b", 0).Err(), "READONLY")

			// Data that the master's backlog no longer has is copied anew.
			require.NoError(t, master.ConfigSet(ctx, "repl-backlog-size", "16384").Err())
			proxy.cut(true)
			require.Eventually(t, func() bool { return infoField(t, master, "replication", "connected_slaves") == "0" },
				followTimeout, followTick)
			for range 10 {
				require.NoError(t, master.Append(ctx, "long", strings.Repeat("x", 50_000)).Err())
			}
			proxy.cut(false)
			stop = writers(t, socket, 4)
			require.Eventually(t, linkUp, followTimeout, followTick)
			require.Equal(t, "2", infoField(t, master, "stats", "sync_full"))
			stop()
			requireEqualSoon(t, master, replica)

			require.NoError(t, replica.Do(ctx, "REPLICAOF", "NO", "ONE").Err())
			proxy.cut(true)
			require.NoError(t, replica.Set(ctx, "mine", "value", 0).Err())
			require.ErrorIs(t, replica.Get(ctx, "old").Err(), redis.Nil)
			require.NoError(t, master.Set(ctx, "mine", "value", 0).Err())
			requireSame(t, master, replica)

			// The replica's data is durable through its journal and, when it is closed, through a checkpoint.
			crashed := filepath.Join(t.TempDir(), "copy")
			copyAtRest(t, crashed, dir)
			require.NoError(t, srv.Close())
			for _, stored := range []string{crashed, dir} {
				_, again := startReplica(t, stored)
				requireSame(t, master, again)
			}
		})
	}
}
