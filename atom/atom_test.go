package atom_test

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
	"github.com/atomredis/atomredis/atom"
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

// onEachServer runs a test against atomredis in this process, with its own commands and as if it had only those of
// Redis, and against redis-server, each without any keys.
func onEachServer(t *testing.T, test func(t *testing.T, r *redis.Client)) {
	t.Run("atomredis", func(t *testing.T) { test(t, client(t, openServer(t))) })
	t.Run("atomredis with the commands of Redis", func(t *testing.T) {
		addr := openServer(t)
		plain.Store(addr, true)
		t.Cleanup(func() { plain.Delete(addr) })
		test(t, client(t, addr))
	})
	t.Run("redis", func(t *testing.T) {
		realRedis.once.Do(startRedis)
		if realRedis.addr == "" && realRedis.err == nil {
			t.Skip("redis-server is not installed, so only atomredis was tested")
		}
		require.NoError(t, realRedis.err)
		c := client(t, realRedis.addr)
		require.NoError(t, c.FlushAll(t.Context()).Err())
		test(t, c)
	})
}

func openServer(t *testing.T) (addr string) {
	db, err := atomredis.Open(atomredis.Options{Addr: "127.0.0.1:0"})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	return db.Addr()
}

// plain has the addresses of servers whose clients see only the commands of Redis.
var plain sync.Map

// likeRedis is a hook that answers for the server that it has no ATOM commands.
type likeRedis struct{}

func (likeRedis) DialHook(next redis.DialHook) redis.DialHook { return next }

func (likeRedis) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if info, ok := cmd.(*redis.Cmd); ok && cmd.Name() == "command" {
			info.SetVal([]any{nil})
			return nil
		}
		if strings.HasPrefix(cmd.Name(), "atom.") {
			panic("a command of atomredis is sent to a server without it: " + cmd.String())
		}
		return next(ctx, cmd)
	}
}

func (likeRedis) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

// native reports whether elements on r use the commands of atomredis.
func native(r *redis.Client) bool {
	_, isPlain := plain.Load(r.Options().Addr)
	return !isPlain && r.Options().Addr != realRedis.addr
}

func client(t *testing.T, addr string) *redis.Client {
	c := redis.NewClient(&redis.Options{Addr: addr, PoolSize: 200})
	if _, ok := plain.Load(addr); ok {
		c.AddHook(likeRedis{})
	}
	t.Cleanup(func() { c.Close() })
	return c
}

func element(t *testing.T, r *redis.Client, name string) *atom.Element {
	e, err := atom.New(t.Context(), r, name, atom.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, e.Close(context.Background())) })
	return e
}

// serve runs the command loop of an element until the test ends.
func serve(t *testing.T, e *atom.Element, workers int) {
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- e.CommandLoop(ctx, atom.CommandLoopOptions{Workers: workers}) }()
	t.Cleanup(func() {
		cancel()
		require.ErrorIs(t, <-done, context.Canceled)
	})
}

func waitFor(t *testing.T, what string, ready func() bool) {
	require.Eventually(t, ready, long, time.Millisecond, what)
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
		if words[0] == "HELLO" || words[0] == "CLIENT" || words[0] == "COMMAND" { // connection setup, no part of an operation
			continue
		}
		rec.sent = append(rec.sent, strings.Join(words, " "))
	}
}

// take returns the commands since the last call.
func (rec *recorder) take() []string {
	rec.mu.Lock()
	defer rec.mu.Unlock()
	sent := rec.sent
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

// peer simulates an element of another language by the commands that it sends.
type peer struct {
	t    *testing.T
	r    *redis.Client
	name string
	last string // ID of the last response that it read
}

// pythonPeer registers as the Python client 2.7.0 does.
func pythonPeer(t *testing.T, r *redis.Client, name string) *peer {
	p := &peer{t: t, r: r, name: name}
	require.NoError(t, r.IncrBy(t.Context(), "command_consumer_group_counter:"+name, 1).Err())
	p.last = p.add("response:"+name, "language", "Python", "version", "2.7.0")
	first := p.add("command:"+name, "language", "Python", "version", "2.7.0")
	require.NoError(t, r.XGroupCreateMkStream(t.Context(), "command:"+name, "command_consumer_group:"+name, first).Err())
	return p
}

// cPeer registers as the C library does.
func cPeer(t *testing.T, r *redis.Client, name string) *peer {
	p := &peer{t: t, r: r, name: name}
	p.last = p.add("response:"+name, "language", "c", "version", "v0.1.0")
	p.add("command:"+name, "language", "c", "version", "v0.1.0")
	return p
}

func (p *peer) add(key string, fields ...any) string {
	id, err := p.r.XAdd(p.t.Context(), &redis.XAddArgs{Stream: key, MaxLen: 1024, Approx: true, Values: fields}).Result()
	if p.t.Context().Err() == nil { // otherwise the test ended before this reply came
		require.NoError(p.t, err)
	}
	return id
}

// next reads the next command as the Python client does.
func (p *peer) next() redis.XMessage {
	read, err := p.r.XReadGroup(p.t.Context(), &redis.XReadGroupArgs{Group: "command_consumer_group:" + p.name,
		Consumer: "c",
		Streams:  []string{"command:" + p.name, ">"}, Count: 1, Block: long}).Result()
	require.NoError(p.t, err)
	return read[0].Messages[0]
}

// ack and respond answer as the Python client does.
func (p *peer) ack(cmd redis.XMessage, ms int64) {
	p.add("response:"+cmd.Values["element"].(string), "element", p.name, "cmd_id", cmd.ID, "timeout", ms)
}

func (p *peer) respond(cmd redis.XMessage, data, ser string, code int, text string) {
	p.r.XAck(p.t.Context(), "command:"+p.name, "command_consumer_group:"+p.name, cmd.ID)
	p.add("response:"+cmd.Values["element"].(string), "data", data, "ser", ser, "err_code", code, "err_str", text,
		"cmd_id", cmd.ID, "element", p.name, "cmd", cmd.Values["cmd"])
}

// call sends a command and reads the acknowledgement and the response.
func (p *peer) call(element, cmd, data string) (ack, response map[string]any) {
	id := p.add("command:"+element, "element", p.name, "cmd", cmd, "data", data)
	next := func() map[string]any {
		for {
			read, err := p.r.XRead(p.t.Context(), &redis.XReadArgs{Streams: []string{"response:" + p.name, p.last}, Count: 1,
				Block: long}).Result()
			require.NoError(p.t, err)
			p.last = read[0].Messages[0].ID
			if v := read[0].Messages[0].Values; v["cmd_id"] == id && v["element"] == element {
				return v
			}
		}
	}
	return next(), next()
}

// strange are unusual names that must work everywhere: spaces, colons, glob characters, NUL, line ends, invalid UTF-8.
var strange = []string{"two words", "a:b:c", "*", "[a-z]?", `back\slash`, "nul\x00byte", "line\r\nend", "\xff\xfe",
	strings.Repeat("long", 1000)}
