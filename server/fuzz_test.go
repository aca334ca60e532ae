package server

import (
	"bytes"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/atomredis/atomredis/engine"
	"github.com/atomredis/atomredis/internal/command"
	"github.com/atomredis/atomredis/internal/config"
	"github.com/atomredis/atomredis/internal/session"
	"github.com/atomredis/atomredis/internal/testing/commandtest"
	"github.com/atomredis/atomredis/internal/testing/testseed"
	"github.com/atomredis/atomredis/internal/transport"
)

// panicLog keeps the messages about handlers that panicked.
type panicLog = commandtest.PanicLog

// harness is a server without sockets, for sessions that are fed directly.
type harness struct {
	*Server
	clock *engine.ManualClock
	log   *panicLog
}

func newHarness(t require.TestingT) *harness {
	return newHarnessWith(t, "proto-max-bulk-len", "1mb", "shards", "4")
}

// newHarnessWith is newHarness with directives and their values.
func newHarnessWith(t require.TestingT, settings ...string) *harness {
	conf := config.NewConfig()
	conf.InMemory()
	for i := 0; i < len(settings); i += 2 {
		require.NoError(t, conf.Set(settings[i], settings[i+1], false))
	}
	b := &harness{clock: engine.NewManualClock(time.UnixMilli(1e12)), log: &panicLog{}}
	var err error
	b.Server, err = New(conf, slog.New(b.log), Options{Clock: b.clock, Goroutines: true})
	require.NoError(t, err)
	return b
}

func (b *harness) session() *session.Session {
	return b.sessions.Open(transport.Peer{Addr: "127.0.0.1:1", Local: "127.0.0.1:2"}, func() {})
}

// feed gives the session input, advances the clock by a second, and returns the output.
func (b *harness) feed(s *session.Session, pieces ...[]byte) string {
	for _, p := range pieces {
		if !s.Closing() {
			s.Input(p, b.ks.Now())
		}
	}
	b.clock.Advance(time.Second)
	s.Advance(b.ks.Now())
	out := string(s.Output())
	s.SetOutput(nil)
	return out
}

// finish closes the session and the server, and fails the test if a handler has panicked.
func (b *harness) finish(t require.TestingT, s *session.Session) {
	s.Close()
	require.NoError(t, b.Close())
	require.Empty(t, b.log.Found)
}

// request encodes a command.
func request(args ...string) []byte { return commandtest.Request(args...) }

// fuzzSeeds are lines of commands, a few of every group.
var fuzzSeeds = [][]string{
	{"PING", "ECHO hello", "HELLO 3 SETNAME me", "CLIENT LIST", "CLIENT INFO", "CLIENT NO-TOUCH ON", "SELECT 3", "RESET",
		"QUIT"},
	{"CLIENT REPLY SKIP", "PING", "CLIENT REPLY OFF", "PING", "CLIENT REPLY ON", "CLIENT PAUSE 10 WRITE", "SET a 1",
		"CLIENT UNPAUSE", "CLIENT KILL ID 1 SKIPME no"},
	{"CLIENT TRACKING ON OPTIN", "CLIENT CACHING YES", "GET a", "SET a 1", "CLIENT TRACKINGINFO", "HELLO 3",
		"CLIENT TRACKING ON BCAST PREFIX a", "FLUSHALL", "CLIENT TRACKING OFF"},
	{"SET a 1 EX 10 GET", "TTL a", "PERSIST a", "PEXPIREAT a 1000000000500 NX", "RENAME a b", "COPY b c REPLACE",
		"TYPE b", "OBJECT ENCODING b", "SCAN 0 MATCH * COUNT 2 TYPE string", "RANDOMKEY", "KEYS ?", "TOUCH a b", "UNLINK b",
		"MOVE c 2", "SWAPDB 0 2", "DBSIZE"},
	{"HSET h a 1 b 2", "HINCRBYFLOAT h a 1.5", "HRANDFIELD h -5 WITHVALUES", "HSCAN h 0 COUNT 1", "HGETALL h",
		"HDEL h a b"},
	{"RPUSH l a b c", "LINSERT l BEFORE b x", "LPOS l b RANK -1 COUNT 0", "LMPOP 2 k l LEFT COUNT 2",
		"LMOVE l m RIGHT LEFT", "LSET l 0 z", "LTRIM l 1 -1", "LRANGE l 0 -1", "BLPOP nothing 0.5",
		"BLMOVE nothing l LEFT RIGHT 1", "LPUSH nothing x"},
	{"SADD s a b 1", "SRANDMEMBER s -5", "SPOP s 2", "SUNIONSTORE d s s", "SINTERCARD 2 s d LIMIT 1", "SMOVE s d a",
		"SSCAN s 0", "SMISMEMBER s a x"},
	{"ZADD z NX CH 1 a 2 b inf c", "ZRANGE z (1 +inf BYSCORE LIMIT 0 1 WITHSCORES", "ZRANGE z [a (c BYLEX REV",
		"ZUNION 2 z z WEIGHTS 1 2 AGGREGATE MAX WITHSCORES", "ZRANGESTORE d z 0 -1", "ZINCRBY z 1 a",
		"ZRANDMEMBER z -3 WITHSCORES", "ZPOPMIN z 2", "BZPOPMAX nothing 0.1", "BZMPOP 1 1 nothing MIN", "ZLEXCOUNT z - +"},
	{"XADD x MAXLEN ~ 10 1-* f v", "XADD x * f v g w", "XRANGE x - + COUNT 1", "XGROUP CREATE x g 0",
		"XREADGROUP GROUP g c COUNT 1 STREAMS x >", "XPENDING x g - + 5", "XCLAIM x g d 0 1-0 JUSTID",
		"XAUTOCLAIM x g c 0 0", "XACK x g 1-0", "XINFO STREAM x FULL", "XTRIM x MINID 2", "XREAD BLOCK 5 STREAMS x $",
		"XDEL x 1-0", "XSETID x 9-9",
		"XREADGROUP GROUP g c BLOCK 5 CLAIM 3 STREAMS x x > >", "XTRIM x ACKED MAXLEN ~ 1", "XADD x DELREF MAXLEN 2 * f v"},
	{"APPEND a x", "SETRANGE a 10 y", "GETRANGE a 0 -1", "INCRBYFLOAT n 1.5", "INCR n", "MSETNX a 1 b 2",
		"GETEX a PX 100", "LCS a b IDX WITHMATCHLEN", "STRLEN a", "GETDEL a", "SETEX q 1 v", "DECRBY r 5"},
	{"SETBIT b 77 1", "GETBIT b 77", "BITCOUNT b 1 -2 BIT", "BITPOS b 0 1 9 BYTE", "BITOP DIFF1 c b b",
		"BITFIELD b OVERFLOW SAT INCRBY i9 #3 -900 GET u63 70 OVERFLOW FAIL SET u2 1 9", "BITFIELD_RO b GET i64 0"},
	{"PFADD p a b c", "PFCOUNT p", "PFMERGE q p none", "PFCOUNT p q", "PFDEBUG DECODE p", "SETRANGE p 16 \x7f",
		"PFADD p d", "PFDEBUG TODENSE q", "PFDEBUG GETREG p"},
	{"GEOADD g NX CH 13.3 38.1 a 180 85.05112878 b", "GEODIST g a b KM", "GEOPOS g a x", "GEOHASH g a b",
		"GEOSEARCH g FROMMEMBER a BYBOX 400 inf mi DESC COUNT 1 ANY WITHCOORD WITHDIST WITHHASH",
		"GEOSEARCHSTORE h g FROMLONLAT 1 1 BYRADIUS 1e300 km STOREDIST", "GEORADIUS g 1 1 9 km STORE x STORE y STOREDIST z",
		"GEORADIUSBYMEMBER_RO h a 1 ft"},
	{"SUBSCRIBE a b", "PSUBSCRIBE a*", "SSUBSCRIBE c", "PING x", "UNSUBSCRIBE", "PUNSUBSCRIBE a*", "SUNSUBSCRIBE",
		"HELLO 3", "SUBSCRIBE a", "PUBLISH a hello", "SPUBLISH c x", "PUBSUB CHANNELS *", "PUBSUB NUMSUB a", "PUBSUB NUMPAT"},
	{"WATCH a", "MULTI", "SET a 1", "GET a", "BLPOP l 0", "INFO", "CLIENT INFO", "NOSUCH", "EXEC", "MULTI", "INCR a",
		"SELECT 2", "EXEC", "MULTI", "DISCARD", "UNWATCH"},
	{"INFO all", "MONITOR", "GET a", "ROLE", "TIME", "COMMAND COUNT", "COMMAND INFO get set", "COMMAND DOCS get",
		"COMMAND GETKEYS mset a b c d", "CONFIG GET *max*",
		"CONFIG SET hash-max-listpack-entries 1 notify-keyspace-events KEA", "CONFIG RESETSTAT", "LATENCY LATEST",
		"MEMORY USAGE a"},
	{`EVAL "return {KEYS[1], ARGV[1], redis.call('set', KEYS[1], 1)}" 1 k a`, `EVAL "return redis.pcall('nosuch')" 0`,
		`SCRIPT LOAD "return 1"`, `EVALSHA e0e1f9fabfc9d4800c877a703b823ac0578ff8db 0`, "SCRIPT EXISTS x", "SCRIPT FLUSH"},
}

// outOfBounds are words of input that no run of the fuzzer may contain: they stop or stall the server, lift the limit
// on memory, or make a script run for ever.
var outOfBounds = []string{"shutdown", "migrate", "debug", "proto-max", "query-buffer", "rewrite", "for", "while",
	"repeat", "goto", "function", "rep(", "loadstring"}

func mayRun(input []byte) bool {
	text := bytes.ToLower(input)
	script := bytes.Contains(text, []byte("eval")) || bytes.Contains(text, []byte("script"))
	for i, word := range outOfBounds {
		if (script || i < 6) && bytes.Contains(text, []byte(word)) {
			return false
		}
	}
	return len(input) <= 4096
}

// FuzzDispatch feeds a session input that no client should send. No handler may panic, wherever the input is split.
func FuzzDispatch(f *testing.F) {
	for _, lines := range fuzzSeeds {
		var encoded, inline []byte
		for _, line := range lines {
			if !strings.Contains(line, `"`) {
				encoded = append(encoded, request(strings.Fields(line)...)...)
			}
			inline = append(append(inline, line...), "\r\n"...)
		}
		f.Add(encoded, uint16(len(encoded)/2))
		f.Add(inline, uint16(7))
	}
	f.Fuzz(func(t *testing.T, input []byte, split uint16) {
		if !mayRun(input) {
			t.Skip()
		}
		b := newHarness(t)
		s := b.session()
		at := min(int(split), len(input))
		// The pieces are in memory of their own, as in a transport, which reuses its buffer.
		for _, piece := range [][]byte{slices.Clone(input[:at]), slices.Clone(input[at:])} {
			b.feed(s, piece)
			clear(piece)
		}
		b.finish(t, s)
	})
}

func TestNoCommandPanicsWhateverItsArguments(t *testing.T) {
	names := func() (out [][]string) {
		for _, cmd := range command.NewTable().List {
			if cmd.Name == "shutdown" || cmd.Name == "debug" || cmd.Name == "migrate" {
				// the last one connects to any address
				continue
			}
			out = append(out, []string{cmd.Name})
			for _, sub := range cmd.Subs {
				if sub.Name != "config|rewrite" && sub.Name != "client|kill" {
					out = append(out, strings.Split(sub.Name, "|"))
				}
			}
		}
		return out
	}()
	words := []string{
		"str", "num", "list", "set", "ints", "hash", "zset", "stream", "none", "none2", "g", "c",
		"0", "1", "2", "3", "-1", "-2", "-100", "1.5", "-inf", "+inf", "nan", "1e400", "9223372036854775807",
		"-9223372036854775808", "99999999999999999999",
		"", "*", "a", "[a", "(b", "-", "+", "$", ">", "1-1", "1-*", "0-0", "(1", "?", "\x00",
		"count", "limit", "withscores", "withvalues", "byscore", "bylex", "rev", "left", "right", "min", "max", "before",
		"nx", "xx", "gt", "ch", "incr",
		"ex", "px", "exat", "keepttl", "persist", "get", "block", "streams", "group", "maxlen", "minid", "~", "=", "justid",
		"mkstream", "noack", "full",
		"weights", "aggregate", "sum", "match", "type", "store", "replace", "db", "idx", "len", "rank", "on", "off", "yes",
		"no", "bcast", "prefix", "optin",
	}
	setup := [][]string{
		{"SET", "str", "value"}, {"SET", "num", "12"}, {"RPUSH", "list", "a", "b", "c"}, {"SADD", "set", "a", "b"},
		{"SADD", "ints", "1", "2"},
		{"HSET", "hash", "a", "1", "b", "x"}, {"ZADD", "zset", "1", "a", "2", "b"}, {"XADD", "stream", "1-1", "a", "b"},
		{"XGROUP", "CREATE", "stream", "g", "0"},
		{"XREADGROUP", "GROUP", "g", "c", "STREAMS", "stream", ">"},
	}
	testseed.Check(t, func(t *rapid.T) {
		b := newHarness(t)
		s := b.session()
		for _, args := range setup {
			b.feed(s, request(args...))
		}
		for range 60 {
			args := slices.Clone(rapid.SampledFrom(names).Draw(t, "command"))
			args = append(args, rapid.SliceOfN(rapid.SampledFrom(words), 0, 7).Draw(t, "arguments")...)
			b.feed(s, request(args...))
			if s.Closing() || s.Waiting() || s.Subscriptions().Any() {
				s.Close()
				s = b.session()
			}
		}
		b.finish(t, s)
	})
}

func TestRandomElementsThatRepeatAreBounded(t *testing.T) {
	b := newHarness(t) // its replies may take 2 MiB
	s := b.session()
	long := strings.Repeat("x", 100_000)
	for _, args := range [][]string{{"SADD", "set", long}, {"HSET", "hash", long, "v"}, {"ZADD", "zset", "1", long},
		{"SADD", "short", "1"}} {
		b.feed(s, request(args...))
	}
	refused := "-" + string(command.ErrOutOfRange) + "\r\n"
	for _, name := range []string{"SRANDMEMBER set", "HRANDFIELD hash", "ZRANDMEMBER zset"} {
		words := strings.Fields(name)
		for _, count := range []string{"-100", "-400000", "-9223372036854775807"} {
			require.Equal(t, refused, b.feed(s, request(words[0], words[1], count)), "%s %s", name, count)
		}
		require.Equal(t, 20, strings.Count(b.feed(s, request(words[0], words[1], "-20")), "$100000\r\n"), name)
		reply := b.feed(s, request("EVAL", "return redis.call(ARGV[1], ARGV[2], -100)", "0", words[0], words[1]))
		require.True(t, strings.HasPrefix(reply, "-"+string(command.ErrOutOfRange)), name)
	}
	require.NoError(t, b.config.Set("proto-max-bulk-len", "9223372036854775807", false))
	require.Equal(t, 5000, strings.Count(b.feed(s, request("SRANDMEMBER", "short", "-5000")), "$1\r\n1\r\n"))
	b.finish(t, s)
}
