package session

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/atomredis/atomredis/engine"
	"github.com/atomredis/atomredis/internal/command"
	"github.com/atomredis/atomredis/internal/testing/crashfs"
	"github.com/atomredis/atomredis/internal/testing/testseed"
)

// lentSize is the length in bytes of the shortest strings that are lent.
const lentSize = command.MaxCopied + 1

// lentSession returns a session that lends long values instead of copying them.
func (b *harness) lentSession() *Session {
	s := b.session()
	s.Lend()
	return s
}

// unsentOf returns the output that waits for the client.
func unsentOf(s *Session) string {
	var out strings.Builder
	for p := range s.Pieces(s.Unsent()) {
		out.Write(p)
	}
	return out.String()
}

// takeSent returns the first n bytes of the output and marks them as sent.
func takeSent(s *Session, n int) string {
	out := unsentOf(s)[:n]
	s.Sent(n)
	return out
}

// A client gets the value at the time of its command, even if others change the key before the reply is sent.
func TestLentRepliesAreOfTheTimeOfTheCommand(t *testing.T) {
	const size = 3 * lentSize
	value := strings.Repeat("value ", size/6)
	other := strings.Repeat("other ", size/6)
	for _, read := range []string{"GET k", "GETEX k", "GETEX k PERSIST", "GETEX k PX 1", "GETDEL k", "GETSET k x",
		"SET k x GET", "MGET k k"} {
		for _, write := range []string{
			"SET k " + strings.ReplaceAll(other, " ", "_"), "SETRANGE k 5 abc", "SETRANGE k " + fmt.Sprint(size) + " abc",
			"APPEND k abc", "SETBIT k 100 1", "SETBIT k 100 0",
			"BITFIELD k SET u32 #7 77", "BITFIELD k OVERFLOW WRAP INCRBY u32 #7 77", "BITOP NOT k k", "BITOP AND k k other",
			"DEL k", "UNLINK k", "FLUSHALL", "FLUSHDB", "SWAPDB 0 1",
			"RENAME k j|SETRANGE j 0 abc", "RENAME other k", "COPY k j|SETRANGE j 0 abc", "COPY other k REPLACE",
			"MOVE k 1|SELECT 1|SETRANGE k 0 abc|SELECT 0", "PEXPIRE k 1",
			"GETSET k x", "MSET k x", "SORT list STORE k", "EVAL redis.call('SETRANGE',KEYS[1],0,'abc') 1 k",
			"MULTI|SETRANGE k 0 abc|SETRANGE k 0 def|EXEC", "DEBUG RELOAD",
			"CONFIG SET maxmemory-policy allkeys-lru|CONFIG SET maxmemory 1|CONFIG SET maxmemory 0",
		} {
			b := newHarness(t)
			s, writer := b.lentSession(), b.session()
			b.feed(writer, request("CONFIG", "SET", "enable-debug-command", "yes"), request("SET", "k", value),
				request("SET", "other", other), request("RPUSH", "list", "1"))
			s.Input(request(strings.Fields(read)...), b.Keyspace.Now())
			require.Greater(t, s.Unsent(), size, read)
			require.Less(t, len(s.Output()), 100, "%s: it is lent", read)
			for command := range strings.SplitSeq(write, "|") {
				b.feed(writer, request(strings.Fields(command)...))
			}
			bulk := fmt.Sprintf("$%d\r\n%s\r\n", len(value), value)
			want := bulk
			if read == "MGET k k" {
				want = "*2\r\n" + bulk + bulk
			}
			if got := unsentOf(s); got != want {
				require.Fail(t, "the reply is another", "%.40s after %.40s", read, write)
			}
			require.Equal(t, s.Unsent(), s.snapshot().Output)
			s.Close()
			b.finish(t, writer)
		}
	}
}

// Lent and copied replies are the same.
func TestLendingChangesNoReply(t *testing.T) {
	value := func(n int) string { return strings.Repeat(fmt.Sprintf("%04d", n), lentSize/2) }
	testseed.Check(t, func(t *rapid.T) {
		with, without := newHarness(t), newHarness(t)
		sessions := [2]*Session{with.lentSession(), without.session()}
		writers := [2]*Session{with.session(), without.session()}
		for i, b := range []*harness{with, without} {
			b.feed(sessions[i], request("HELLO", "3"))
			b.feed(sessions[i], request("SUBSCRIBE", "ch"))
		}
		key := rapid.SampledFrom([]string{"a", "b", "c", "none"})
		commands := map[string]func() [][]string{
			"get":    func() [][]string { return [][]string{{"GET", key.Draw(t, "key")}} },
			"mget":   func() [][]string { return [][]string{{"MGET", key.Draw(t, "key"), key.Draw(t, "key"), "small"}} },
			"getdel": func() [][]string { return [][]string{{"GETDEL", key.Draw(t, "key")}} },
			"small":  func() [][]string { return [][]string{{"PING"}} },
			"error":  func() [][]string { return [][]string{{"LPUSH", key.Draw(t, "key"), "x"}, {"NOSUCH"}} },
			"push":   func() [][]string { return [][]string{{"PUBLISH", "ch", "message"}} }, // precedes its own reply
			"exec": func() [][]string {
				return [][]string{{"MULTI"}, {"GET", key.Draw(t, "key")}, {"PUBLISH", "ch", "in a transaction"},
					{"GET", key.Draw(t, "key")}, {"EXEC"}}
			},
			"skip": func() [][]string { return [][]string{{"CLIENT", "REPLY", "SKIP"}, {"GET", key.Draw(t, "key")}} },
			"script": func() [][]string {
				return [][]string{{"EVAL", "return redis.call('GET', KEYS[1])", "1", key.Draw(t, "key")}}
			},
			"set": func() [][]string {
				return [][]string{{"SET", key.Draw(t, "key"), value(rapid.IntRange(0, 99).Draw(t, "value"))}}
			},
			"append": func() [][]string { return [][]string{{"APPEND", key.Draw(t, "key"), "tail"}} },
			"range":  func() [][]string { return [][]string{{"SETRANGE", key.Draw(t, "key"), "70", "patch"}} },
		}
		var got, want strings.Builder
		for range rapid.IntRange(1, 25).Draw(t, "steps") {
			var input []byte
			for range rapid.IntRange(0, 4).Draw(t, "commands") {
				for _, c := range commands[rapid.SampledFrom([]string{"get", "mget", "getdel", "small", "error", "push", "exec",
					"skip", "script", "set", "append", "range"}).Draw(t, "command")]() {
					input = append(input, request(c...)...)
				}
			}
			var others []byte
			for range rapid.IntRange(0, 3).Draw(t, "commands of another") {
				for _, c := range commands[rapid.SampledFrom([]string{"set", "append", "range", "getdel", "push"}).Draw(t,
					"command")]() {
					others = append(others, request(c...)...)
				}
			}
			for i, b := range []*harness{with, without} {
				sessions[i].Input(input, b.Keyspace.Now())
				b.feed(writers[i], others)
				sessions[i].Advance(b.Keyspace.Now())
			}
			require.Equal(t, len(unsentOf(sessions[0])), sessions[0].Unsent())
			n := sessions[0].Unsent()
			if rapid.Bool().Draw(t, "in part") {
				n = rapid.IntRange(0, n).Draw(t, "sent")
			}
			got.WriteString(takeSent(sessions[0], n))
			want.WriteString(takeSent(sessions[1], sessions[1].Unsent()))
			require.Equal(t, sessions[0].Unsent(), sessions[0].snapshot().Output)
		}
		got.WriteString(takeSent(sessions[0], sessions[0].Unsent()))
		if got.String() != want.String() {
			require.Fail(t, "the replies differ")
		}
		for i, b := range []*harness{with, without} {
			sessions[i].Close()
			b.finish(t, writers[i])
		}
	})
}

// Lent strings count where the output of a client is limited or shown.
func TestLentRepliesCountAsOutput(t *testing.T) {
	b := newHarness(t)
	s := b.lentSession()
	require.Equal(t, "+OK\r\n", b.feed(b.session(),
		request("CONFIG", "SET", "client-output-buffer-limit", fmt.Sprintf("normal %d %d 5", 3*lentSize, lentSize))))
	now := b.Keyspace.Now()
	s.Input(request("SET", "k", strings.Repeat("x", lentSize)), now)
	s.Sent(s.Unsent())
	s.Input(request("GET", "k"), now)
	require.Greater(t, s.Unsent(), lentSize)
	require.Equal(t, s.Unsent(), s.Sendable())
	require.False(t, s.overLimit(0))
	require.False(t, s.Expired(now))
	require.True(t, s.Expired(now+5001), "the soft limit")
	s.Input(append(request("GET", "k"), request("GET", "k")...), now)
	require.True(t, s.overLimit(0), "the hard limit")
	reader := b.session()
	require.Contains(t, b.feed(reader, request("CLIENT", "LIST", "ID", fmt.Sprint(s.ID()))),
		fmt.Sprintf(" omem=%d ", s.Unsent()))
	require.Greater(t, b.Clients.memory.Load(), int64(s.Unsent()))
	s.Abort()
	require.Zero(t, s.Unsent())
	s.Close()
	b.finish(t, reader)
}

// Messages that a subscriber leaves unread are its own memory, arrive whole and in order, and are not moved each time
// there are more.
func TestUnreadMessagesPileUpWithoutBeingMoved(t *testing.T) {
	const size, messages = 1000, 5000
	for _, reader := range []string{"SUBSCRIBE c", "PSUBSCRIBE *", "SSUBSCRIBE c", "MONITOR"} {
		b := newHarness(t)
		s, by := b.lentSession(), b.session()
		s.Input(request(strings.Fields(reader)...), b.Keyspace.Now())
		want := unsentOf(s)
		message := strings.Repeat("m", size)
		publish := request("PUBLISH", "c", message)
		switch reader {
		case "SUBSCRIBE c":
			want += strings.Repeat(fmt.Sprintf("*3\r\n$7\r\nmessage\r\n$1\r\nc\r\n$%d\r\n%s\r\n", size, message), messages)
		case "PSUBSCRIBE *":
			want += strings.Repeat(fmt.Sprintf("*4\r\n$8\r\npmessage\r\n$1\r\n*\r\n$1\r\nc\r\n$%d\r\n%s\r\n", size, message),
				messages)
		case "SSUBSCRIBE c":
			publish = request("SPUBLISH", "c", message)
			want += strings.Repeat(fmt.Sprintf("*3\r\n$8\r\nsmessage\r\n$1\r\nc\r\n$%d\r\n%s\r\n", size, message), messages)
		}
		for range messages / 50 {
			b.feed(by, bytes.Repeat(publish, 50))
			s.Advance(b.Keyspace.Now())
			require.LessOrEqual(t, cap(s.Output()), 256<<10, "%s: what is unread has become one piece", reader)
		}
		require.Equal(t, s.Unsent(), s.snapshot().Output)
		require.Greater(t, s.snapshot().Memory, int64(messages*size), reader)
		require.Zero(t, b.Clients.lent.Load(), reader)
		require.Greater(t, b.UsedMemory(), int64(messages*size), reader)
		if got := unsentOf(s); reader == "MONITOR" {
			require.Equal(t, messages, strings.Count(got, `"PUBLISH" "c" "`+message+"\"\r\n"))
		} else if got != want {
			require.Fail(t, "other messages arrive", reader)
		}
		for s.Unsent() > 0 {
			s.Sent(min(100_001, s.Unsent()))
		}
		require.Less(t, s.snapshot().Memory, int64(messages*size/10), reader)
		s.Close()
		b.finish(t, by)
	}
}

// A value counts once, however many clients wait for it: while it is the value of a key, and while it is still to be
// sent after that.
func TestLentRepliesCountOnceInMaxmemory(t *testing.T) {
	const size, clients, times = 100_000, 20, 100
	for _, change := range []string{"SET k x", "DEL k", "FLUSHALL", "RENAME other k",
		"SET k " + strings.Repeat("y", size), "EXPIRE k -1"} {
		b := newHarnessWith(t, "maxmemory", "10mb", "maxmemory-policy", "allkeys-lru", "proto-max-bulk-len", "1mb")
		writer := b.session()
		b.feed(writer, request("SET", "k", strings.Repeat("x", size)), request("SET", "other", strings.Repeat("x", size)))
		before := b.UsedMemory()
		var readers []*Session
		get := bytes.Repeat(request("GET", "k"), times)
		for range clients {
			s := b.lentSession()
			s.Input(get, b.Keyspace.Now())
			require.Equal(t, times*(size+len("$100000\r\n\r\n")), s.Unsent())
			require.Greater(t, s.snapshot().Memory, int64(times*size), "what CLIENT LIST shows, and the limits of a client see")
			readers = append(readers, s)
		}
		require.Less(t, b.UsedMemory()-before, int64(clients*(16<<10)))
		require.Equal(t, ":2\r\n", b.feed(writer, request("DBSIZE")))
		require.Zero(t, b.Keyspace.LentMemory())

		b.feed(writer, request(strings.Fields(change)...))
		require.InDelta(t, size, b.Keyspace.LentMemory(), size/10, change)
		for i, s := range readers {
			require.NotZero(t, b.Keyspace.LentMemory(), change)
			if i%2 == 0 {
				s.Sent(s.Unsent())
			}
			s.Close()
		}
		require.Zero(t, b.Keyspace.LentMemory(), change)
		require.Zero(t, b.Clients.lent.Load(), change)
		b.finish(t, writer)
	}
}

// Values that are no longer in a key but are still to be sent count as memory: keys are evicted for them.
func TestValuesThatOnlyReadersHaveCountInMaxmemory(t *testing.T) {
	const size = 100_000
	b := newHarnessWith(t, "maxmemory", "3mb", "maxmemory-policy", "allkeys-lru", "proto-max-bulk-len", "1mb")
	writer, reader := b.session(), b.lentSession()
	b.feed(writer, request("SET", "kept", strings.Repeat("x", size)))
	for range 40 {
		b.feed(writer, request("SET", "k", strings.Repeat("x", size)))
		reader.Input(request("GETDEL", "k"), b.Keyspace.Now())
	}
	require.Greater(t, b.Keyspace.LentMemory(), int64(2<<20))
	require.Equal(t, ":0\r\n", b.feed(writer, request("EXISTS", "kept")))
	reader.Close()
	require.Zero(t, b.Keyspace.LentMemory())
	b.finish(t, writer)
}

// A value whose reader has gone is changed in place again, however the reader went.
func TestLentValuesComeBack(t *testing.T) {
	for _, end := range []func(s *Session){
		func(s *Session) { s.Sent(s.Unsent()) },
		func(s *Session) { s.Sent(100); s.Sent(s.Unsent()) },
		func(s *Session) { s.Abort() },
		func(s *Session) { s.Sent(20); s.Kill(); s.Advance(0) },
		func(s *Session) { s.Close() },
	} {
		b := newHarness(t)
		s, other := b.lentSession(), b.session()
		b.feed(other, request("SET", "k", strings.Repeat("x", lentSize)))
		s.Input(request("GET", "k"), b.Keyspace.Now())
		end(s)
		at := func() *byte {
			var g engine.Guard
			g.Lock(b.Keyspace, engine.AllShards, b.Keyspace.Now())
			defer g.Unlock()
			return &g.Peek(0, []byte("k")).Bytes()[0]
		}
		before := at()
		b.feed(other, request("SETRANGE", "k", "0", "y"))
		require.Same(t, before, at())
		b.finish(t, other)
	}
}

// Replies that wait for the journal and those that do not are told apart where values are lent.
func TestLentRepliesWaitForTheJournal(t *testing.T) {
	b := newHarnessOn(t, crashfs.Mem(), "proto-max-bulk-len", "1mb")
	s := b.session()
	value := strings.Repeat("v", 2*lentSize)
	require.Equal(t, "+OK\r\n", b.told(s, "SET", "k", value))
	s.Lend()
	bulk := fmt.Sprintf("$%d\r\n%s\r\n", len(value), value)
	waited := false
	for i := range 20 {
		s.Input(append(request("GET", "k"), request("PING")...), b.Keyspace.Now())
		free := len(bulk + "+PONG\r\n")
		require.Equal(t, free, s.Sendable(), "it tells what is durable")
		s.Input(append(append(request("GET", "k"), request("SET", "n", fmt.Sprint(i))...), request("GET", "k")...),
			b.Keyspace.Now())
		got := ""
		// step sends some of what may be sent, which is what came before the change, or everything.
		step := func(n int) {
			sendable := s.Sendable()
			if sendable != s.Unsent() {
				waited = true
				require.Equal(t, free-len(got), sendable)
			}
			got += takeSent(s, min(n, sendable))
		}
		step(free / 2)
		step(free - free/2)
		s.Input(request("GET", "k"), b.Keyspace.Now()) // it may show changes of others, so it waits too
		for s.Unsent() > 0 {
			b.Storage.Kick()
			s.Advance(b.Keyspace.Now())
			got += takeSent(s, s.Sendable())
		}
		if want := bulk + "+PONG\r\n" + bulk + "+OK\r\n" + bulk + bulk; got != want {
			require.Fail(t, "the replies differ")
		}
	}
	require.True(t, waited)
	b.finish(t, s)
}

func TestLentRepliesDoNotAllocate(t *testing.T) {
	b := newHarness(t)
	s := b.lentSession()
	b.feed(s, request("SET", "k", strings.Repeat("x", lentSize)))
	get, args, size := b.Table.Find([]byte("get")), [][]byte{[]byte("GET"), []byte("k")}, 0
	require.Zero(t, testing.AllocsPerRun(100, func() {
		s.execute(get, nil, args) // and not Input: the race detector has pools lose what they hold
		for p := range s.Pieces(s.Unsent()) {
			size += len(p)
		}
		s.Sent(s.Unsent())
	}))
	b.finish(t, s)
}
