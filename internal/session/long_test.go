package session

import (
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/atomredis/atomredis/internal/stats"
	"github.com/atomredis/atomredis/internal/testing/testseed"
)

// longValue returns a value of n bytes that differs from others.
func longValue(n, seed int) string {
	return strings.Repeat(fmt.Sprintf("%07d ", seed), n/8+1)[:n]
}

// allocated returns how many bytes the calls of f allocate.
func allocated(times int, f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range times {
		f()
	}
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// feedPieces is feed for input that arrives in pieces of at most most() bytes, which are read into Room. It does not
// advance the clock. It returns when no command is offloaded any more.
func (b *harness) feedPieces(s *Session, input []byte, most func() int) string {
	var out strings.Builder
	for len(input) > 0 && !s.Closing() {
		n := min(len(input), most())
		if room := s.Room(); room != nil {
			n = copy(room, input[:n])
			s.Received(n, b.Keyspace.Now())
		} else {
			s.Input(input[:n], b.Keyspace.Now())
		}
		input = input[n:]
	}
	s.Advance(b.Keyspace.Now())
	for s.wait.reason == forOffload {
		time.Sleep(50 * time.Microsecond)
		s.Advance(b.Keyspace.Now())
	}
	out.WriteString(unsentOf(s))
	s.Sent(s.Unsent())
	return out.String()
}

// Input that arrives in pieces, so that long values are kept and memory is reused, has the same effect as input that
// arrives as a whole.
func TestLongArgumentsThatAreKept(t *testing.T) {
	testseed.Check(t, func(t *rapid.T) {
		var all [2]*harness
		var sessions, others, monitors [2]*Session
		for i := range all {
			b := newHarness(t)
			all[i], sessions[i], others[i], monitors[i] = b, b.lentSession(), b.session(), b.session()
			b.feed(others[i], request("CONFIG", "SET", "slowlog-log-slower-than", "0"))
			b.feed(monitors[i], request("MONITOR"))
		}
		key := rapid.SampledFrom([]string{"a", "b", "list", "hash", "stream"})
		size := rapid.SampledFrom([]int{10, minLong - 1, minLong, minLong + 1, minLong + 1000, 2*minLong + 7, 300_000})
		seed := 0
		value := func() string {
			seed++
			return longValue(size.Draw(t, "size"), seed)
		}
		commands := map[string]func() [][]string{
			"set":    func() [][]string { return [][]string{{"SET", key.Draw(t, "key"), value()}} },
			"keep":   func() [][]string { return [][]string{{"SET", key.Draw(t, "key"), value(), "KEEPTTL"}} },
			"nx":     func() [][]string { return [][]string{{"SETNX", key.Draw(t, "key"), value()}} },
			"ex":     func() [][]string { return [][]string{{"SETEX", key.Draw(t, "key"), "100", value()}} },
			"getset": func() [][]string { return [][]string{{"GETSET", key.Draw(t, "key"), value()}} },
			"mset": func() [][]string {
				return [][]string{{"MSET", key.Draw(t, "key"), value(), key.Draw(t, "key"), value()}}
			},
			"get":    func() [][]string { return [][]string{{"GET", key.Draw(t, "key")}} },
			"append": func() [][]string { return [][]string{{"APPEND", key.Draw(t, "key"), value()}} },
			"range":  func() [][]string { return [][]string{{"SETRANGE", key.Draw(t, "key"), "70", "patch"}} },
			"del":    func() [][]string { return [][]string{{"DEL", key.Draw(t, "key")}} },
			"copy":   func() [][]string { return [][]string{{"COPY", key.Draw(t, "key"), key.Draw(t, "to"), "REPLACE"}} },
			"push":   func() [][]string { return [][]string{{"LPUSH", "list", value()}, {"RPUSH", "list", value()}} },
			"pop":    func() [][]string { return [][]string{{"LPOP", "list"}, {"LMOVE", "list", "list", "RIGHT", "LEFT"}} },
			"wait":   func() [][]string { return [][]string{{"BRPOP", "waited", "0"}} },
			"serve":  func() [][]string { return [][]string{{"!LPUSH", "waited", value()}} },
			"hash":   func() [][]string { return [][]string{{"HSET", "hash", "f", value()}, {"HGET", "hash", "f"}} },
			"stream": func() [][]string {
				return [][]string{{"XADD", "stream", "MAXLEN", "2", fmt.Sprintf("%d-1", seed+1), "f", value()},
					{"XRANGE", "stream", "-", "+"}}
			},
			"exec": func() [][]string {
				return [][]string{{"MULTI"}, {"SET", key.Draw(t, "key"), value()}, {"LPUSH", "list", value()},
					{"GET", key.Draw(t, "key")}, {"EXEC"}}
			},
			"discard": func() [][]string { return [][]string{{"MULTI"}, {"SET", key.Draw(t, "key"), value()}, {"DISCARD"}} },
			"script": func() [][]string {
				return [][]string{{"EVAL", "return redis.call('SET', KEYS[1], ARGV[1])", "1", key.Draw(t, "key"), value()}}
			},
			"pause":   func() [][]string { return [][]string{{"!CLIENT", "PAUSE", "10", "WRITE"}} },
			"unknown": func() [][]string { return [][]string{{"NOSUCH", value()}, {"SET", value()}} },
			"logged":  func() [][]string { return [][]string{{"!SLOWLOG", "RESET"}} },
		}
		names := slices.Sorted(maps.Keys(commands)) // in an order that a seed repeats
		most := rapid.SampledFrom([]int{100, 16 << 10, 100_000, 1 << 20})
		for range rapid.IntRange(1, 20).Draw(t, "steps") {
			var input []byte
			for _, command := range commands[rapid.SampledFrom(names).Draw(t, "command")]() {
				if word, ok := strings.CutPrefix(command[0], "!"); ok {
					for i, b := range all {
						b.feed(others[i], request(append([]string{word}, command[1:]...)...))
					}
					continue
				}
				input = append(input, request(command...)...)
			}
			whole := all[0].feedPieces(sessions[0], input, func() int { return len(input) })
			pieces := all[1].feedPieces(sessions[1], input, func() int { return most.Draw(t, "piece") })
			require.True(t, whole == pieces, "%.300q\n%.300q", whole, pieces)
			for i, b := range all {
				b.clock.Advance(20 * time.Millisecond) // which ends a pause
				sessions[i].Advance(b.Keyspace.Now())
			}
			require.Equal(t, sessions[0].Waiting(), sessions[1].Waiting())
		}
		var seen [2][]string
		for i, b := range all {
			seen[i] = append(seen[i], b.feed(monitors[i]), b.feed(others[i], request("LRANGE", "list", "0", "-1")),
				b.feed(others[i], request("MGET", "a", "b")))
			for _, e := range b.CommandLogs[stats.SlowCommands].Latest(1000) {
				seen[i] = append(seen[i], strings.Join(e.Args, " "))
			}
			require.Empty(t, sessions[i].in.owned.kept)
		}
		require.Equal(t, len(seen[0]), len(seen[1]))
		for i := range seen[0] {
			require.True(t, seen[0][i] == seen[1][i], "%d: %.200q\n%.200q", i, seen[0][i], seen[1][i])
		}
		for i, b := range all {
			others[i].Close()
			monitors[i].Close()
			b.finish(t, sessions[i])
		}
	})
}

// Overwriting a long value takes no new memory: the memory of the old value receives the next one.
func TestLongValuesTakeTurns(t *testing.T) {
	b := newHarness(t)
	s := b.session()
	const n = 4 * minLong
	input := request("SET", "k", longValue(n, 1))
	set := func() { require.Equal(t, "+OK\r\n", b.feedPieces(s, input, func() int { return 16 << 10 })) }
	set()
	set()
	const times = 200
	require.Less(t, allocated(times, set), uint64(times*n/2), "the pools forget now and then")
	b.finish(t, s)
}

// The slow log reads an argument after the guard has ended, when others may change the value that the argument has
// become.
func TestKeptArgumentsStayUntilTheyAreLogged(t *testing.T) {
	b := newHarness(t)
	s, other := b.session(), b.session()
	b.feed(other, request("CONFIG", "SET", "slowlog-log-slower-than", "0", "slowlog-max-len", "1000"))
	b.Timing.exact.Store(false) // so that a run of commands is logged when it has ended
	input := request("SET", "k", strings.Repeat("v", minLong))
	var wg sync.WaitGroup
	wg.Go(func() {
		for range 300 {
			b.feedPieces(s, input, func() int { return minLong / 2 })
		}
	})
	for range 300 {
		other.Input(request("SETRANGE", "k", "0", "patch"), b.Keyspace.Now())
	}
	wg.Wait()
	for _, e := range b.CommandLogs[stats.SlowCommands].Latest(1000) {
		if e.Args[0] == "SET" {
			require.True(t, strings.HasPrefix(e.Args[2], "vvvvv"), e.Args[2])
		}
	}
	other.Close()
	b.finish(t, s)
}

// A client may be killed at any point within a long argument.
func TestClientsAreKilledAmidLongArguments(t *testing.T) {
	input := request("SET", "k", longValue(3*minLong, 1))
	for _, arrived := range []int{10, 40, 1000, minLong, 2 * minLong, len(input) - 1} {
		for _, received := range []bool{false, true} {
			b := newHarness(t)
			s := b.session()
			s.Input(input[:30], b.Keyspace.Now())
			for at := 30; at < arrived; {
				n := min(arrived-at, minLong/2)
				if room := s.Room(); room != nil {
					n = copy(room[:min(len(room), n)], input[at:])
					s.Received(n, b.Keyspace.Now())
				} else {
					s.Input(input[at:at+n], b.Keyspace.Now())
				}
				at += n
			}
			s.Kill()
			if room := s.Room(); room != nil && received {
				s.Received(min(len(room), 100), b.Keyspace.Now())
			} else {
				s.Input(input[arrived:], b.Keyspace.Now())
			}
			require.True(t, s.Closing())
			require.Empty(t, s.Output())
			b.finish(t, s)
		}
	}
}

// Bytes that a client only announces get no memory.
func TestVeryLongArgumentsGetMemoryAsTheyArrive(t *testing.T) {
	b := newHarness(t)
	b.feed(b.session(), request("CONFIG", "SET", "proto-max-bulk-len", "512mb"))
	s := b.session()
	s.Input([]byte("*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$200000000\r\n"), b.Keyspace.Now())
	for range 3 {
		room := s.Room()
		require.NotEmpty(t, room)
		require.LessOrEqual(t, len(room), 4*directStep)
		s.Received(len(room), b.Keyspace.Now())
	}
	require.Less(t, cap(s.in.input)+s.in.long.Memory(), 16*directStep)
	b.finish(t, s)
}

// An argument is assembled correctly from any pieces, and before it has memory of its own it never takes much more
// memory than has arrived.
func TestVeryLongArgumentsAreReceivedInParts(t *testing.T) {
	longest := make([]byte, 80<<20+12345) // one that is received in parts of every size
	for i := range longest {
		longest[i] = byte(uint32(i) * 2654435761 >> 13)
	}
	sizes := []int{64 << 10, directStep, 4<<20 + 1, len(longest)}
	if testing.Short() {
		sizes = sizes[1:2]
	}
	for _, most := range sizes {
		value := longest
		if most != directStep {
			value = value[:20<<20]
		}
		head := request("SET", "k", "")
		head = append(head[:len(head)-len("$0\r\n\r\n")], fmt.Sprintf("$%d\r\n", len(value))...)
		input := append(append(head, value...), "\r\n"...)
		for _, direct := range []bool{false, true} {
			b := newHarness(t)
			b.feed(b.session(), request("CONFIG", "SET", "proto-max-bulk-len", "512mb"))
			s := b.session()
			for rest := input; len(rest) > 0; {
				n := min(most, len(rest))
				if room := s.Room(); direct && len(room) > 0 {
					n = copy(room[:min(len(room), n)], rest)
					s.Received(n, b.Keyspace.Now())
				} else {
					s.Input(rest[:n], b.Keyspace.Now())
				}
				rest = rest[n:]
				if arrived := s.in.long.Arrived(); 4*arrived < s.in.long.Size() {
					require.LessOrEqual(t, 2*s.in.long.Memory(), 3*arrived)
				}
			}
			require.Equal(t, "+OK\r\n", string(s.Output()))
			s.Sent(len("+OK\r\n"))
			require.True(t, b.feed(s, request("GET", "k")) == fmt.Sprintf("$%d\r\n%s\r\n", len(value), value))
			b.finish(t, s)
		}
	}
}

// Long arguments of transactions are in shared memory, which is reused.
func TestQueuedArgumentsUseMemoryAgain(t *testing.T) {
	b := newHarness(t)
	s := b.session()
	value := longValue(16000, 1)
	var input []byte
	for _, command := range [][]string{{"MULTI"}, {"SET", "k", value}, {"HSET", "h", "f", value},
		{"SET", "k", value, "EX", "100"}, {"EXEC"}} {
		input = append(input, request(command...)...)
	}
	run := func() {
		require.Equal(t, "+OK\r\n"+strings.Repeat("+QUEUED\r\n", 3)+"*3\r\n+OK\r\n:0\r\n+OK\r\n",
			b.feedPieces(s, input, func() int { return len(input) }))
		require.Empty(t, s.in.owned.spare)
	}
	b.feedPieces(s, request("HSET", "h", "f", ""), func() int { return 1 << 20 })
	run()
	const times = 500
	// run itself allocates the reply and little else.
	require.Less(t, allocated(times, run), uint64(times*2*len(value)), "the pools forget now and then")
	require.Equal(t, "$16000\r\n"+value+"\r\n", b.feedPieces(s, request("HGET", "h", "f"), func() int { return 1 << 20 }))
	b.feed(s, request("MULTI"), request("SET", "k", value), request("DISCARD"))
	require.Empty(t, s.in.owned.spare)
	b.finish(t, s)
}

// A read may end anywhere within its last command. The beginning of that command must not make the session allocate
// memory for everything after it again and again.
func TestPipelinesThatAreCutUseMemoryAgain(t *testing.T) {
	b := newHarness(t)
	s := b.lentSession()
	var pipeline []byte
	for i := range 16 {
		args := []string{"MSET"}
		for k := range 10 {
			args = append(args, fmt.Sprint("key:", k), longValue(4096, i))
		}
		pipeline = append(pipeline, request(args...)...)
	}
	send := func() {
		require.Equal(t, strings.Repeat("+OK\r\n", 16), b.feedPieces(s, pipeline, func() int { return 128 << 10 }))
	}
	send()
	const times = 200
	require.Less(t, allocated(times, send), uint64(times*len(pipeline)/4), "the pools forget now and then")
	b.finish(t, s)
}
