package pressure_test

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/atomredis/atomredis"
	"github.com/atomredis/atomredis/pressure"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		if realRedis.stop != nil {
			realRedis.stop()
		}
		os.Exit(code)
	}))
}

// long is a timeout that only passes if the test fails.
const long = 30 * time.Second

// realRedis is redis-server, started once for all tests that use it.
var realRedis struct {
	once sync.Once
	addr string
	err  error
	stop func()
}

func startRedis() {
	path, err := exec.LookPath("redis-server")
	if err != nil {
		return
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		realRedis.err = err
		return
	}
	addr := l.Addr().String()
	l.Close()
	_, port, _ := net.SplitHostPort(addr)
	// The shell ends the server when its input ends, so that no server is left behind when the tests crash.
	cmd := exec.Command("sh", "-c", `"$0" --port "$1" --bind 127.0.0.1 --save "" --appendonly no >/dev/null & read _; kill $!; wait`, path, port)
	alive, err := cmd.StdinPipe()
	if err == nil {
		err = cmd.Start()
	}
	if realRedis.err = err; err != nil {
		return
	}
	realRedis.addr = addr
	realRedis.stop = func() {
		alive.Close()
		cmd.Wait()
	}
	c := redis.NewClient(&redis.Options{Addr: addr, MaxRetries: -1})
	defer c.Close()
	for deadline := time.Now().Add(long); ; {
		if realRedis.err = c.Ping(context.Background()).Err(); realRedis.err == nil || time.Now().After(deadline) {
			return
		}
	}
}

// server is a client of a server under test, and the commands that it uses.
type server struct {
	*redis.Client
	o      pressure.Options
	native bool // the queue commands of atomredis are used
}

// onEachServer runs a test with the commands of atomredis, with the sequences on atomredis, and with the sequences on
// redis-server, each without any keys.
func onEachServer(t *testing.T, test func(t *testing.T, s server)) {
	t.Run("atomredis", func(t *testing.T) {
		test(t, server{client(t, startAtomredis(t)), pressure.Options{}, true})
	})
	onSequences(t, test)
}

// onSequences runs a test with the sequences only.
func onSequences(t *testing.T, test func(t *testing.T, s server)) {
	t.Run("sequences", func(t *testing.T) {
		test(t, server{client(t, startAtomredis(t)), pressure.Options{OnlyRedisCommands: true}, false})
	})
	t.Run("redis", func(t *testing.T) {
		realRedis.once.Do(startRedis)
		if realRedis.addr == "" && realRedis.err == nil {
			t.Skip("redis-server is not installed, so only atomredis was tested")
		}
		require.NoError(t, realRedis.err)
		c := client(t, realRedis.addr)
		require.NoError(t, c.FlushAll(t.Context()).Err())
		test(t, server{c, pressure.Options{}, false})
	})
}

func startAtomredis(t *testing.T) (addr string) {
	db, err := atomredis.Open(atomredis.Options{Addr: "127.0.0.1:0"})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	return db.Addr()
}

func client(t *testing.T, addr string) *redis.Client {
	c := redis.NewClient(&redis.Options{Addr: addr, PoolSize: 200})
	t.Cleanup(func() { c.Close() })
	return c
}

func (s server) create(t *testing.T, name string, bound int64) *pressure.Queue {
	q, err := pressure.Create(t.Context(), s.Client, name, bound, s.o)
	require.NoError(t, err)
	return q
}

func (s server) open(t *testing.T, name string) *pressure.Queue {
	q, err := pressure.Open(t.Context(), s.Client, name, s.o)
	require.NoError(t, err)
	return q
}

// keys returns the suffixes of the keys of a queue, and the type of each.
func (s server) keys(t *testing.T, name string) map[string]string {
	found := map[string]string{}
	for _, key := range s.Keys(t.Context(), "*").Val() {
		require.True(t, strings.HasPrefix(key, "__pressure__:"+name), key)
		found[strings.TrimPrefix(key, "__pressure__:"+name)] = s.Type(t.Context(), key).Val()
	}
	return found
}

func key(name, suffix string) string { return "__pressure__:" + name + suffix }

// rolesAreFree requires that both roles of a queue are free, as after every operation.
func (s server) rolesAreFree(t *testing.T, name string) {
	t.Helper()
	require.EqualValues(t, 1, s.LLen(t.Context(), key(name, ":producer_free")).Val(), "the producer's role")
	require.EqualValues(t, 1, s.LLen(t.Context(), key(name, ":consumer_free")).Val(), "the consumer's role")
}

func waitFor(t *testing.T, what string, ready func() bool) {
	t.Helper()
	require.Eventually(t, ready, long, time.Millisecond, what)
}

func texts(messages [][]byte) []string {
	s := make([]string, len(messages))
	for i, m := range messages {
		s[i] = string(m)
	}
	return s
}

func messages(texts ...string) [][]byte {
	m := make([][]byte, len(texts))
	for i, text := range texts {
		m[i] = []byte(text)
	}
	return m
}

// recorder records the commands that a client sends.
type recorder struct {
	mu   sync.Mutex
	sent []string
}

func record(r *redis.Client) *recorder {
	rec := &recorder{}
	r.AddHook(rec)
	return rec
}

func (rec *recorder) note(cmds ...redis.Cmder) {
	rec.mu.Lock()
	defer rec.mu.Unlock()
	for _, cmd := range cmds {
		var words []string
		for _, arg := range cmd.Args() {
			if b, ok := arg.([]byte); ok {
				arg = string(b)
			}
			words = append(words, fmt.Sprint(arg))
		}
		words[0] = strings.ToUpper(words[0])
		switch words[0] {
		case "HELLO", "CLIENT", "MULTI", "EXEC": // they set up connections and are no part of the protocol
			continue
		}
		rec.sent = append(rec.sent, strings.Join(words, " "))
	}
}

// take returns the commands since the last call, with the keys of the queue q as suffixes.
func (rec *recorder) take() []string {
	rec.mu.Lock()
	defer rec.mu.Unlock()
	var sent []string
	for _, cmd := range rec.sent {
		sent = append(sent, strings.ReplaceAll(cmd, "__pressure__:q", ""))
	}
	rec.sent = nil
	return sent
}

func (rec *recorder) DialHook(next redis.DialHook) redis.DialHook { return next }

func (rec *recorder) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		rec.note(cmd)
		return next(ctx, cmd)
	}
}

func (rec *recorder) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		rec.note(cmds...)
		return next(ctx, cmds)
	}
}
