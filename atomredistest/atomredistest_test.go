package atomredistest_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/atomredis/atomredis"
	"github.com/atomredis/atomredis/atomredistest"
	"github.com/atomredis/atomredis/engine"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// do executes a command, its words separated by spaces, that must succeed.
func do(t testing.TB, db *atomredis.DB, command string) atomredis.Reply {
	t.Helper()
	r, err := try(t, db, command)
	require.NoError(t, err, command)
	return r
}

func try(t testing.TB, db *atomredis.DB, command string) (atomredis.Reply, error) {
	var args atomredis.Args
	for _, word := range strings.Fields(command) {
		args = append(args, word)
	}
	return db.Do(t.Context(), args...)
}

func number(t testing.TB, r atomredis.Reply) int64 {
	t.Helper()
	n, err := r.Int()
	require.NoError(t, err)
	return n
}

// address is numeric: without an address go-redis resolves "localhost", which blocks a bubble.
const address = "127.0.0.1:6379"

// client returns a client with an in-memory connection and without retries.
func client(t testing.TB, s *atomredistest.Server) *redis.Client {
	c := redis.NewClient(&redis.Options{Addr: address, MaxRetries: -1, PoolSize: 1,
		Dialer: func(ctx context.Context, _, _ string) (net.Conn, error) { return s.Dial(ctx) }})
	t.Cleanup(func() { c.Close() })
	require.NoError(t, c.Ping(t.Context()).Err())
	return c
}

// recorder is a testing.TB that collects failures.
type recorder struct {
	testing.TB
	errors []string
}

func (r *recorder) Helper() {}
func (r *recorder) Errorf(format string, args ...any) {
	r.errors = append(r.errors, fmt.Sprintf(format, args...))
}
func (r *recorder) Fatalf(format string, args ...any) {
	r.Errorf(format, args...)
	panic(r) // ends the call, as Fatalf does
}

// fill makes a key of every type.
func fill(t testing.TB, s *atomredistest.Server) {
	for _, c := range []string{"SET str v", "SET num 12", "SET float 1.5 EX 60", "RPUSH list b a b", "SADD set c a b",
		"HSET hash b 2 a 1",
		"ZADD zset 2 b 1.5 a inf c", "XADD stream 1-1 f v g w", "XADD stream 2-1 f x", "XGROUP CREATE stream gr 0",
		"XREADGROUP GROUP gr me STREAMS stream >",
		"XGROUP CREATE empty gr $ MKSTREAM", "XADD trimmed 1-1 a b", "XADD trimmed 2-1 a b", "XGROUP CREATE trimmed gr 0",
		"XREADGROUP GROUP gr me STREAMS trimmed >", "XTRIM trimmed MAXLEN 1", "HSET session b 2 a 1 c 3",
		"HPEXPIRE session 30000 FIELDS 2 c a", "EXPIRE session 90"} {
		do(t, s.DB, c)
	}
}

func TestDumpIsTheSameForTheSameKeys(t *testing.T) {
	s := atomredistest.RunOptions(t, atomredis.Options{Clock: atomredistest.NewClock(time.Date(2030, 1, 1, 0, 0, 0, 0,
		time.UTC))})
	require.Equal(t, "no keys\n", s.Dump(t))
	fill(t, s)
	three, err := s.Database(3)
	require.NoError(t, err)
	do(t, three, "SET k \x00\"")
	do(t, three, "SET long "+strings.Repeat("x", 2000))
	s.FailNext(-1, "", "ERR it must not need commands")
	require.Equal(t, `database 0
  "empty": stream [] groups "gr"
  "float": string "1.5", expires in 1m0s
  "hash": hash {"a": "1" "b": "2"}
  "list": list ["b" "a" "b"]
  "num": string "12"
  "session": hash {"a": "1" "b": "2" "c": "3"}, expires in 1m30s, field "a" expires in 30s, field "c" expires in 30s
  "set": set {"a" "b" "c"}
  "str": string "v"
  "stream": stream [1-1 {"f" "v" "g" "w"} 2-1 {"f" "x"}] groups "gr"
  "trimmed": stream [2-1 {"a" "b"}] groups "gr"
  "zset": zset {"a": 1.5 "b": 2 "c": inf}
database 3
  "k": string "\x00\""
  "long": string "`+strings.Repeat("x", 992)+`... (2009 bytes)
`, s.Dump(t))
}

func TestCheckKeysComparesEverything(t *testing.T) {
	s := atomredistest.Run(t)
	fill(t, s)
	all := func() map[string]any {
		return map[string]any{
			"str": []byte("v"), "num": 12, "float": 1.5, "list": []string{"b", "a", "b"},
			"set":  atomredistest.Set{"a", "c", "b"},
			"hash": map[string]string{"a": "1", "b": "2"}, "session": map[string]string{"a": "1", "b": "2", "c": "3"},
			"zset":   map[string]float64{"a": 1.5, "b": 2, "c": 1 / zero},
			"stream": []atomredistest.Entry{{"1-1", []string{"f", "v", "g", "w"}}, {"2-1", []string{"f", "x"}}},
			"empty":  atomredistest.Any{}, "trimmed": []atomredistest.Entry{{"2-1", []string{"a", "b"}}},
		}
	}
	require.True(t, s.CheckKeys(t, all()))
	require.True(t, s.CheckDatabase(t, 1, nil))
	for _, c := range []struct {
		key   string
		value any
		want  string
	}{
		{"str", "w", `  "str" is string "v", and should be string "w"`},
		{"num", []string{"12"}, `  "num" is string "12", and should be list ["12"]`},
		{"float", float32(2.5), `  "float" is string "1.5", and should be string "2.5"`},
		{"list", []string{"b", "b", "a"}, `  "list" is list ["b" "a" "b"], and should be list ["b" "b" "a"]`},
		{"set", atomredistest.Set{"a", "b"}, `  "set" is set {"a" "b" "c"}, and should be set {"a" "b"}`},
		{"hash", map[string]string{"a": "1"}, `  "hash" is hash {"a": "1" "b": "2"}, and should be hash {"a": "1"}`},
		{"zset", map[string]float64{"a": 1}, `  "zset" is zset {"a": 1.5 "b": 2 "c": inf}, and should be zset {"a": 1}`},
		{"trimmed", []atomredistest.Entry{}, `  "trimmed" is stream [2-1 {"a" "b"}], and should be stream []`},
		{"none", uint8(1), `  "none" does not exist, and should be string "1"`},
		{"none", atomredistest.Any{}, `  "none" does not exist`},
	} {
		r := &recorder{TB: t}
		want := all()
		want[c.key] = c.value
		require.False(t, s.CheckKeys(r, want))
		require.Equal(t, []string{"database 0 is not as it should be:\n" + c.want + "\n"}, r.errors)
	}
	r := &recorder{TB: t}
	want := all()
	delete(want, "str")
	require.False(t, s.CheckKeys(r, want))
	require.Equal(t, []string{"database 0 is not as it should be:\n  \"str\" is string \"v\", and should not exist\n"},
		r.errors)
	require.PanicsWithValue(t, r, func() { s.CheckKeys(r, map[string]any{"k": struct{}{}}) })
	require.Contains(t, r.errors[1], `key "k": a struct {} cannot be the value of a key`)
}

var zero float64

func TestFastForwardExpiresKeysAndWaits(t *testing.T) {
	s := atomredistest.RunOptions(t, atomredis.Options{Config: map[string]string{"notify-keyspace-events": "Ex",
		"shards": "4"}})
	for i := range 200 {
		do(t, s.DB, fmt.Sprintf("SET k%d v EX %d", i, 3600+i))
	}
	do(t, s.DB, "SET kept v EX 86400")
	events := s.Subscribe(t.Context(), "__keyevent@0__:expired")
	type result struct {
		r   atomredis.Reply
		err error
	}
	timedOut, served := make(chan result, 1), make(chan result, 1)
	go func() {
		r, err := try(t, s.DB, "BLPOP none 3000")
		timedOut <- result{r, err}
	}()
	go func() {
		r, err := try(t, s.DB, "BLPOP queue 0")
		served <- result{r, err}
	}()
	waitForBlocked(t, s, 2)

	before := s.Now()
	s.FastForward(2 * time.Hour)
	require.WithinRange(t, s.Now(), before.Add(2*time.Hour), before.Add(2*time.Hour+time.Minute))
	s.CheckKeys(t, map[string]any{"kept": "v"})
	require.Contains(t, textOf(t, do(t, s.DB, "INFO clients")), "blocked_clients:1\r\n")
	got := <-timedOut
	require.NoError(t, got.err)
	require.True(t, got.r.IsNull())
	n := 0
	for m, err := range events {
		require.NoError(t, err)
		require.Equal(t, fmt.Sprint("k", n), m.Payload, "in the order of their deadlines")
		if n++; n == 200 {
			break
		}
	}
	do(t, s.DB, "RPUSH queue x")
	require.NoError(t, (<-served).err)
	require.InDelta(t, 86400-7200, number(t, do(t, s.DB, "TTL kept")), 60)
}

// waitForBlocked returns when n clients are blocked.
func waitForBlocked(t testing.TB, s *atomredistest.Server, n int) {
	t.Helper()
	require.Eventually(t, func() bool {
		return strings.Contains(textOf(t, do(t, s.DB, "INFO clients")), fmt.Sprintf("blocked_clients:%d\r\n", n))
	}, time.Minute, time.Millisecond)
}

func textOf(t testing.TB, r atomredis.Reply) string {
	t.Helper()
	s, err := r.Text()
	require.NoError(t, err)
	return s
}

func TestFastForwardEndsWaitsOfConnections(t *testing.T) {
	s := atomredistest.RunAddr(t)
	c := redis.NewClient(&redis.Options{Addr: s.Addr(), ReadTimeout: -1})
	defer c.Close()
	got := make(chan error, 1)
	go func() { got <- c.BLPop(context.Background(), 24*time.Hour, "none").Err() }()
	waitForBlocked(t, s, 1)
	s.FastForward(24 * time.Hour)
	require.Contains(t, textOf(t, do(t, s.DB, "INFO clients")), "blocked_clients:0\r\n")
	require.Equal(t, redis.Nil, <-got)
}

func TestSetTimeMovesTheClockBothWays(t *testing.T) {
	s := atomredistest.Run(t)
	at := time.Date(2040, 5, 6, 7, 8, 9, 0, time.UTC)
	s.SetTime(at)
	seconds, err := do(t, s.DB, "TIME").Slice()
	require.NoError(t, err)
	require.InDelta(t, at.Unix(), number(t, seconds[0]), 60)
	do(t, s.DB, fmt.Sprintf("SET k v EXAT %d", at.Unix()+3600))
	s.SetTime(at.Add(-time.Hour))
	require.InDelta(t, 7200, number(t, do(t, s.DB, "TTL k")), 60)
	s.SetTime(at.Add(30 * time.Minute))
	require.InDelta(t, 1800, number(t, do(t, s.DB, "TTL k")), 60)
	s.SetTime(at.Add(time.Hour))
	s.CheckKeys(t, nil)
}

func TestTheClockGoesOn(t *testing.T) {
	base := engine.NewManualClock(time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC))
	s := atomredistest.RunOptions(t, atomredis.Options{Clock: base})
	do(t, s.DB, "SET a v EX 60")
	do(t, s.DB, "SET b v EX 100")
	s.FastForward(50 * time.Second)
	require.Equal(t, base.Now().Add(50*time.Second), s.Now())
	base.Advance(9 * time.Second)
	s.CheckKeys(t, map[string]any{"a": "v", "b": "v"})
	base.Advance(time.Second)
	require.Equal(t, "1", textOf(t, do(t, s.DB, "DBSIZE")), "the timer follows the clock")
	s.FastForward(-30 * time.Second)
	base.Advance(69 * time.Second)
	s.CheckKeys(t, map[string]any{"b": "v"})
	base.Advance(time.Second)
	s.CheckKeys(t, nil)
}

func TestServersCanShareAClock(t *testing.T) {
	start := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	clock := atomredistest.NewClock(start)
	var servers [2]*atomredistest.Server
	replies := make(chan string)
	for i := range servers {
		s := atomredistest.RunOptions(t, atomredis.Options{Clock: clock})
		servers[i] = s
		do(t, s.DB, "SET a v EX 60")
		go func() {
			r, err := try(t, s.DB, "BLPOP none 30")
			replies <- fmt.Sprint(r, err)
		}()
		require.Eventually(t, func() bool { return strings.Contains(textOf(t, do(t, s.DB, "INFO clients")), "blocked_clients:1\r") },
			time.Minute, time.Millisecond)
	}
	clock.FastForward(59 * time.Second)
	for _, s := range servers {
		require.Equal(t, "(nil) <nil>", <-replies)
		require.Equal(t, start.Add(59*time.Second), s.Now())
		s.CheckKeys(t, map[string]any{"a": "v"})
	}
	servers[0].FastForward(time.Second)
	servers[1].CheckKeys(t, nil)
	clock.SetTime(start)
	require.Equal(t, start, servers[1].Now())
}

func TestItRunsInBubbles(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := atomredistest.Run(t)
		c := client(t, s)
		begin := time.Now()
		do(t, s.DB, "SET a v EX 10")
		do(t, s.DB, "SET b v EX 100")
		time.Sleep(10 * time.Second)
		s.CheckKeys(t, map[string]any{"b": "v"})
		s.FastForward(89 * time.Second)
		s.CheckKeys(t, map[string]any{"b": "v"})
		require.Equal(t, time.Second, c.PTTL(t.Context(), "b").Val(),
			"to the millisecond: in a bubble time stands still while others work")
		time.Sleep(time.Second)
		s.CheckKeys(t, nil)
		require.Equal(t, 11*time.Second, time.Since(begin), "the bubble's clock has not moved")

		s.SetLatency(time.Minute)
		do(t, s.DB, "SET c v")
		require.Equal(t, 71*time.Second, time.Since(begin))
		soon, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := s.Do(soon, "SET", "d", "v")
		require.ErrorIs(t, err, context.DeadlineExceeded)
		s.CheckKeys(t, map[string]any{"c": "v", "d": "v"})
	})
}

func TestCommandsFailOnDemand(t *testing.T) {
	s := atomredistest.Run(t)
	c := client(t, s)
	s.FailNext(2, "Incr", "LOADING a while")
	require.EqualError(t, c.Incr(t.Context(), "n").Err(), "LOADING a while")
	require.NoError(t, c.Set(t.Context(), "k", "v", 0).Err())
	_, err := try(t, s.DB, "INCR n")
	require.Equal(t, atomredis.Error("LOADING a while"), err)
	require.EqualValues(t, 1, c.Incr(t.Context(), "n").Val(), "none of both was executed")

	s.FailNext(1, "", "ERR once")
	fresh := redis.NewClient(&redis.Options{Addr: address, MaxRetries: -1,
		Dialer: func(ctx context.Context, _, _ string) (net.Conn, error) { return s.Dial(ctx) }})
	defer fresh.Close()
	require.EqualError(t, fresh.Ping(t.Context()).Err(), "ERR once", "what opens the connection is spared")
	require.NoError(t, fresh.Ping(t.Context()).Err())

	s.FailNext(1, "config", "ERR a sub-command")
	_, err = try(t, s.DB, "CONFIG GET port")
	require.EqualError(t, err, "ERR a sub-command")
	s.FailNext(1, "client|getname", "ERR the client's name")
	do(t, s.DB, "CLIENT ID")
	_, err = try(t, s.DB, "CLIENT GETNAME")
	require.EqualError(t, err, "ERR the client's name")

	s.FailNext(-1, "get", "ERR for ever")
	require.EqualValues(t, "v", do1(t, s, "EVAL", "return redis.call('get', 'k')", 0), "scripts are spared")
	for range 3 {
		_, err = try(t, s.DB, "GET k")
		require.EqualError(t, err, "ERR for ever")
	}
	require.NoError(t, s.Handle(atomredis.Command{Name: "peek",
		Do: func(c *atomredis.Ctx) (any, error) { return c.Call("GET", "k") }}))
	require.Equal(t, "v", textOf(t, do(t, s.DB, "PEEK")))
	s.FailNext(1, "peek", "ERR custom")
	_, err = try(t, s.DB, "PEEK")
	require.EqualError(t, err, "ERR custom")
	pipe := c.TxPipeline()
	incr := pipe.Incr(t.Context(), "n")
	get := pipe.Get(t.Context(), "k")
	pipe.Exec(t.Context())
	require.EqualValues(t, 2, incr.Val())
	require.EqualError(t, get.Err(), "ERR for ever")
	s.ClearFaults()
	require.Equal(t, "v", c.Get(t.Context(), "k").Val())
	s.FailNext(0, "get", "ERR never")
	require.Equal(t, "v", c.Get(t.Context(), "k").Val())
}

// do1 executes a command that must succeed, and returns the text of its reply.
func do1(t testing.TB, s *atomredistest.Server, args ...any) string {
	t.Helper()
	return textOf(t, s.MustDo(t, args...))
}

func TestConnectionsBreakOnDemand(t *testing.T) {
	for name, run := range map[string]func(testing.TB) *atomredistest.Server{"memory": atomredistest.Run,
		"TCP": atomredistest.RunAddr} {
		t.Run(name, func(t *testing.T) {
			s := run(t)
			dial := func() net.Conn {
				var conn net.Conn
				var err error
				if s.Addr() != "" {
					conn, err = net.Dial("tcp", s.Addr())
				} else {
					conn, err = s.Dial(t.Context())
				}
				require.NoError(t, err)
				t.Cleanup(func() { conn.Close() })
				require.NoError(t, conn.SetDeadline(time.Now().Add(time.Minute)))
				return conn
			}
			const reply = ":1\r\n"
			for n := range len(reply) + 1 {
				conn, other := dial(), dial()
				s.DropAfter(n)
				fmt.Fprint(conn, "INCR n\r\n")
				got, err := io.ReadAll(conn)
				require.NoError(t, err)
				require.Equal(t, reply[:n], string(got))
				require.Equal(t, "1", do1(t, s, "GETDEL", "n"), "the command was executed")
				fmt.Fprint(other, "ECHO fine\r\n")
				line := make([]byte, len("$4\r\nfine\r\n"))
				_, err = io.ReadFull(other, line)
				require.NoError(t, err, "only one connection breaks")
			}
			conn := dial()
			s.DropAfter(7)
			fmt.Fprint(conn, "INCR n\r\n")
			line := make([]byte, len(reply))
			_, err := io.ReadFull(conn, line)
			require.NoError(t, err)
			fmt.Fprint(conn, "INCR n\r\n")
			got, err := io.ReadAll(conn)
			require.NoError(t, err)
			require.Equal(t, ":2\r", string(got), "it counts over several replies")
		})
	}
}

func TestRepliesAreLateOnDemand(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := atomredistest.Run(t)
		c := client(t, s)
		took := func(f func()) time.Duration {
			begin := time.Now()
			f()
			return time.Since(begin)
		}
		require.Zero(t, took(func() { do(t, s.DB, "PING") }))
		_, err := c.Pipelined(t.Context(), func(p redis.Pipeliner) error { return p.Ping(t.Context()).Err() })
		require.NoError(t, err)       // there is a connection for pipelines now
		s.SetLatency(2 * time.Second) // longer than the server waits for a client that does not read
		require.Equal(t, 2*time.Second, took(func() { c.Set(t.Context(), "k", "v", 0) }))
		require.Equal(t, 2*time.Second, took(func() {
			_, err := s.DoMany(t.Context(), atomredis.Args{"GET", "k"}, atomredis.Args{"GET", "k"})
			require.NoError(t, err)
		}))
		require.Equal(t, 2*time.Second, took(func() {
			require.NoError(t, s.Tx(t.Context(), func(tx *atomredis.Tx) error {
				tx.Do("INCR", "n")
				tx.Do("INCR", "n")
				return nil
			}))
		}))
		require.Equal(t, 2*time.Second, took(func() {
			pipe := c.Pipeline()
			pipe.Incr(t.Context(), "n")
			pipe.Incr(t.Context(), "n")
			_, err := pipe.Exec(t.Context())
			require.NoError(t, err)
		}))
		impatient := redis.NewClient(&redis.Options{Addr: address, MaxRetries: -1, ReadTimeout: time.Second,
			ContextTimeoutEnabled: true,
			Dialer:                func(ctx context.Context, _, _ string) (net.Conn, error) { return s.Dial(ctx) }})
		defer impatient.Close()
		s.SetLatency(0)
		require.NoError(t, impatient.Ping(t.Context()).Err())
		s.SetLatency(2 * time.Second)
		var timeout net.Error
		err = impatient.Incr(t.Context(), "n").Err()
		require.True(t, errors.As(err, &timeout) && timeout.Timeout(), "%v", err)
		s.CheckKeys(t, map[string]any{"k": "v", "n": 5})

		s.SetLatency(time.Hour)
		go func() {
			time.Sleep(time.Second)
			s.ClearFaults()
		}()
		require.Equal(t, time.Second, took(func() { do(t, s.DB, "PING") }))
		s.SetLatency(time.Hour)
		go s.Do(context.Background(), "PING") // the end of the test does not wait for it
	})
}

func TestTheServerLogsToTheTestAndEndsWithIt(t *testing.T) {
	var s *atomredistest.Server
	t.Run("", func(t *testing.T) { s = atomredistest.RunAddr(t) })
	_, err := s.Do(t.Context(), "PING")
	require.ErrorIs(t, err, atomredis.ErrClosed)
	_, err = net.Dial("tcp", s.Addr())
	require.Error(t, err)
}
