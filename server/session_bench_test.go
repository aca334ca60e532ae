package server

import (
	"bytes"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/atomredis/atomredis/internal/command"
	"github.com/atomredis/atomredis/internal/config"
	"github.com/atomredis/atomredis/internal/session"
	"github.com/atomredis/atomredis/internal/transport"
)

const benchmarkKeys = 100_000

// benchmarkRandom is for one goroutine: benchmarks run one after another.
var benchmarkRandom = rand.New(rand.NewPCG(1, 2))

func benchmarkKey() string { return fmt.Sprintf("key:%012d", benchmarkRandom.IntN(benchmarkKeys)) }

var benchmarkValue = strings.Repeat("y", 64)

// BenchmarkCommand measures commands from their bytes to those of their replies, without sockets, in pipelines of
// sixteen, with 100,000 existing keys or elements of a key.
func BenchmarkCommand(b *testing.B) {
	value := benchmarkValue
	for _, c := range []struct {
		name    string
		prepare func(i int) []string
		command func() []string
	}{
		{"GET", setKey, func() []string { return []string{"GET", benchmarkKey()} }},
		{"SET", setKey, func() []string { return []string{"SET", benchmarkKey(), value} }},
		{"INCR", nil, func() []string { return []string{"INCR", benchmarkKey()} }},
		{"MGET10", setKey, func() []string { return append([]string{"MGET"}, repeat(10, benchmarkKey)...) }},
		{"MSET10", setKey, func() []string {
			args := []string{"MSET"}
			for range 10 {
				args = append(args, benchmarkKey(), value)
			}
			return args
		}},
		{"EXPIRE", setKey, func() []string { return []string{"EXPIRE", benchmarkKey(), "1000"} }},
		{"LPUSH+RPOP", nil, alternately([]string{"LPUSH", "k", value}, []string{"RPOP", "k"})},
		{"LRANGE100", func(int) []string { return []string{"LPUSH", "k", value} },
			func() []string { return []string{"LRANGE", "k", "0", "99"} }},
		{"SADD", addMember("SADD", "k"), func() []string { return []string{"SADD", "k", benchmarkKey()} }},
		{"SISMEMBER", addMember("SADD", "k"), func() []string { return []string{"SISMEMBER", "k", benchmarkKey()} }},
		{"HSET", setField, func() []string { return []string{"HSET", "k", benchmarkKey(), value} }},
		{"HGET", setField, func() []string { return []string{"HGET", "k", benchmarkKey()} }},
		{"ZADD", addMember("ZADD", "k", "0"), func() []string {
			return []string{"ZADD", "k", fmt.Sprint(benchmarkRandom.IntN(1e6)),
				benchmarkKey()}
		}},
		{"ZSCORE", addMember("ZADD", "k", "0"), func() []string { return []string{"ZSCORE", "k", benchmarkKey()} }},
		{"XADD", nil, func() []string { return []string{"XADD", "k", "MAXLEN", "~", "1000", "*", "field", value} }},
		{"EVAL", setKey, func() []string { // bench/compare has the same script
			return []string{"EVAL", "redis.call('INCR', KEYS[1]) redis.call('SET', KEYS[2], ARGV[1]) return redis.call('GET', KEYS[2])",
				"2", "counter", benchmarkKey(), value}
		}},
	} {
		b.Run(c.name, func(b *testing.B) { benchmarkSession(b, c.prepare, c.command) })
	}
}

func setKey(i int) []string { return []string{"SET", fmt.Sprintf("key:%012d", i), benchmarkValue} }

func setField(i int) []string {
	return []string{"HSET", "k", fmt.Sprintf("key:%012d", i), benchmarkValue}
}

func addMember(args ...string) func(i int) []string {
	return func(i int) []string { return append(args[:len(args):len(args)], fmt.Sprintf("key:%012d", i)) }
}

func repeat(n int, fn func() string) (all []string) {
	for range n {
		all = append(all, fn())
	}
	return all
}

func alternately(commands ...[]string) func() []string {
	n := -1
	return func() []string {
		n++
		return commands[n%len(commands)]
	}
}

func benchmarkSession(b *testing.B, prepare func(i int) []string, command func() []string) {
	conf := config.NewConfig()
	conf.InMemory()
	require.NoError(b, conf.Set("port", "0", false))
	srv, err := New(conf, slog.New(slog.DiscardHandler), Options{Goroutines: true})
	require.NoError(b, err)
	defer srv.Close()
	s := srv.sessions.Open(transport.Peer{}, func() {})
	defer s.Close()
	encode := func(args []string) string {
		var out strings.Builder
		fmt.Fprintf(&out, "*%d\r\n", len(args))
		for _, a := range args {
			fmt.Fprintf(&out, "$%d\r\n%s\r\n", len(a), a)
		}
		return out.String()
	}
	send := func(input []byte) {
		s.Input(input, time.Now().UnixMilli())
		s.SetOutput(s.Output()[:0])
	}
	if prepare != nil {
		for i := range benchmarkKeys {
			send([]byte(encode(prepare(i))))
		}
	}
	const depth = 16
	pipelines := make([][]byte, 4096)
	for i := range pipelines {
		var p strings.Builder
		for range depth {
			p.WriteString(encode(command()))
		}
		pipelines[i] = []byte(p.String())
	}
	for _, p := range pipelines {
		send(p) // everything that grows has grown
	}
	b.ReportAllocs()
	b.ResetTimer()
	for i := 0; i < b.N; i += depth {
		send(pipelines[i/depth%len(pipelines)])
	}
}

// BenchmarkPublish measures PUBLISH, in pipelines of sixteen, with subscribers that read their messages.
func BenchmarkPublish(b *testing.B) {
	for _, n := range []int{0, 1, 50} {
		b.Run(fmt.Sprint("subscribers=", n), func(b *testing.B) {
			h := newHarness(b)
			publisher := h.session()
			subscribers := make([]*session.Session, n)
			for i := range subscribers {
				subscribers[i] = h.session()
				h.feed(subscribers[i], request("SUBSCRIBE", "c"))
			}
			pipeline := bytes.Repeat(request("PUBLISH", "c", benchmarkValue), 16)
			now := time.Now().UnixMilli()
			b.ReportAllocs()
			for i := 0; i < b.N; i += 16 {
				publisher.Input(pipeline, now)
				publisher.SetOutput(publisher.Output()[:0])
				for _, s := range subscribers {
					s.Advance(now)
					s.SetOutput(s.Output()[:0])
				}
			}
		})
	}
}

// BenchmarkJournal measures how fast the commands of the journal are repeated, in records of one.
func BenchmarkJournal(b *testing.B) {
	conf := config.NewConfig()
	conf.InMemory()
	srv, err := New(conf, slog.New(slog.DiscardHandler), Options{Goroutines: true})
	require.NoError(b, err)
	defer srv.Close()
	records := make([][]byte, 4096)
	for i := range records {
		records[i] = request("SET", benchmarkKey(), benchmarkValue)
	}
	r := srv.sessions.NewReplayer(command.FromJournal)
	now := time.Now().UnixMilli()
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		require.NoError(b, r.Apply(now, records[i%len(records)]))
	}
}

// BenchmarkFollow measures SET, in pipelines of sixteen, on a master whose followers read the stream.
func BenchmarkFollow(b *testing.B) {
	for _, n := range []int{1, 4} {
		b.Run(fmt.Sprint("followers=", n), func(b *testing.B) {
			h := newHarness(b)
			defer h.Close()
			writer := h.session()
			followers := make([]*session.Session, n)
			read := func() {
				for _, s := range followers {
					s.Advance(h.ks.Now())
					s.SetOutput(s.Output()[:0])
				}
			}
			for i := range followers {
				followers[i] = h.session()
				followers[i].Input(request("PSYNC", "?", "-1"), h.ks.Now())
			}
			require.Eventually(b, func() bool {
				read()
				return strings.Count(h.feed(writer, request("INFO", "replication")), "state=online") == n
			}, testTimeout, time.Millisecond)
			pipelines := make([][]byte, 4096)
			for i := range pipelines {
				for range 16 {
					pipelines[i] = append(pipelines[i], request("SET", benchmarkKey(), benchmarkValue)...)
				}
			}
			now := h.ks.Now()
			i := 0
			send := func() {
				writer.Input(pipelines[i/16%len(pipelines)], now)
				writer.SetOutput(writer.Output()[:0])
				read()
			}
			for ; i < 16*len(pipelines); i += 16 {
				send() // every key is there
			}
			b.ReportAllocs()
			b.ResetTimer()
			for i = 0; i < b.N; i += 16 {
				send()
			}
		})
	}
}

// BenchmarkPressure measures commands on queues as BenchmarkCommand measures others: one message, or ten at once, is
// put and taken.
func BenchmarkPressure(b *testing.B) {
	value := strings.Repeat("v", 64)
	prepare := func(i int) []string {
		if i > 0 {
			return []string{"PING"}
		}
		return []string{"PRESSURE.CREATE", "q", "BOUND", "1000"}
	}
	b.Run("PUT+GET", func(b *testing.B) {
		benchmarkSession(b, prepare, alternately([]string{"PRESSURE.PUT", "q", value}, []string{"PRESSURE.GET", "q"}))
	})
	b.Run("PUT10+GET10", func(b *testing.B) {
		put := append([]string{"PRESSURE.PUT", "q"}, repeat(10, func() string { return value })...)
		benchmarkSession(b, prepare, alternately(put, []string{"PRESSURE.GET", "q", "COUNT", "10"}))
	})
}

// BenchmarkAtomCall measures a call from the caller's request to its reply, including the work of the element.
func BenchmarkAtomCall(b *testing.B) {
	h := newHarnessWith(b, "shards", "1")
	defer h.Close()
	element, caller := h.session(), h.session()
	send := func(s *session.Session, in []byte) []byte {
		if in != nil {
			s.Input(in, h.ks.Now())
		}
		s.Advance(h.ks.Now())
		return s.Output()
	}
	taken := func(s *session.Session) { s.SetOutput(s.Output()[:0]) }
	send(element, request("XADD", "command:e", "1-1", "language", "c", "version", "v"))
	next := request("ATOM.NEXT", "e", "TIMEOUT", "0")
	send(element, next)
	call := request("ATOM.CALL", "e", "echo", "DATA", strings.Repeat("x", 64), "FROM", "caller")
	b.ReportAllocs()
	var respond []byte
	for range b.N {
		h.clock.Advance(time.Millisecond)
		send(caller, call)
		out := send(element, nil)
		if len(out) == 0 {
			b.Fatal("no command")
		}
		taken(element)
		respond = append(respond[:0], request("ATOM.RESPOND", "e", fmt.Sprintf("%d-0", h.ks.Now()), "caller", "CMD", "echo",
			"DATA", strings.Repeat("x", 64))...)
		respond = append(respond, next...)
		send(element, respond)
		taken(element)
		if out := send(caller, nil); len(out) == 0 {
			b.Fatal("no answer")
		}
		taken(caller)
	}
}
