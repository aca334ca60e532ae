package session

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/atomredis/atomredis/engine"
	"github.com/atomredis/atomredis/internal/command"
	"github.com/atomredis/atomredis/internal/testing/testseed"
	"github.com/atomredis/atomredis/internal/transport"
)

// manyElements are enough for a command to be offloaded.
const manyElements = command.LongFrom + 100

// offloadHarness is a server with large values, and sessions that a test drives.
type offloadHarness struct {
	*harness
	t testing.TB
}

// offloadSession is a session with a signal that it has mail.
type offloadSession struct {
	*Session
	b     *offloadHarness
	woken chan struct{}
}

func newOffloadHarness(t testing.TB) *offloadHarness {
	b := &offloadHarness{newHarnessWith(t, "proto-max-bulk-len", "16mb", "shards", "4"), t}
	t.Cleanup(func() {
		require.NoError(t, b.Close())
		require.Empty(t, b.panics.Found)
	})
	s := b.client()
	fill := func(name, key string, elements func(i int) []string) {
		args := []string{name, key}
		for i := range manyElements {
			args = append(args, elements(i)...)
		}
		require.Equal(t, byte(':'), s.do(args...)[0])
	}
	fill("SADD", "s", func(i int) []string { return []string{"m" + strconv.Itoa(i)} })
	fill("HSET", "h", func(i int) []string { return []string{"f" + strconv.Itoa(i), strings.Repeat("v", 80)} })
	fill("ZADD", "z", func(i int) []string { return []string{strconv.Itoa(i), "m" + strconv.Itoa(i)} })
	fill("RPUSH", "l", func(i int) []string { return []string{strconv.Itoa(i * 7919 % manyElements)} })
	s.do("SADD", "s2", "m1", "m2", "other")
	for _, key := range []string{"b1", "b2", "b3"} {
		require.Equal(t, ":0", s.do("SETBIT", key, strconv.Itoa(command.LongFrom*256*8), "1"))
	}
	fill("SADD", "texts", func(i int) []string { return []string{"text" + strconv.Itoa(i)} })
	s.do("XGROUP", "CREATE", "x", "g", "$", "MKSTREAM")
	for range manyElements {
		s.do("XADD", "x", "*", "n", "1")
	}
	fill("GEOADD", "g", func(i int) []string {
		return []string{strconv.FormatFloat(float64(i%128)/128, 'f', 6, 64), strconv.FormatFloat(float64(i/128)/128, 'f', 6, 64),
			"m" + strconv.Itoa(i)}
	})
	require.Equal(t, "+OK", s.do("JSON.SET", "j", "$", largeJSON(0)))
	array := []string{"ARSET", "a", "0"}
	for i := range manyElements {
		array = append(array, "value:"+strconv.Itoa(i))
	}
	require.Equal(t, byte(':'), s.do(array...)[0])
	for i := range manyElements {
		s.do("VADD", "v", "VALUES", "2", strconv.Itoa(i%251), strconv.Itoa(i%241-120), "e"+strconv.Itoa(i), "EF", "1", "M", "4")
	}
	s.do("SET", "t1", strings.Repeat("abcdefgh", 200))
	s.do("SET", "t2", strings.Repeat("hgfedcba", 200))
	s.Close()
	return b
}

// largeJSON returns a document that takes long to read and to parse.
func largeJSON(from int) string {
	var b strings.Builder
	for i := range 2 * manyElements {
		fmt.Fprintf(&b, `,{"p":%d,"name":"m%d"}`, from+i, i)
	}
	return `{"a":[` + b.String()[1:] + `]}`
}

func (b *offloadHarness) client() *offloadSession {
	s := &offloadSession{b: b, woken: make(chan struct{}, 1)}
	s.Session = b.Open(transport.Peer{Addr: "127.0.0.1:1", Local: "127.0.0.1:2"}, func() {
		select {
		case s.woken <- struct{}{}:
		default:
		}
	})
	return s
}

// begin sends a command and returns the immediate output.
func (s *offloadSession) begin(args ...string) string {
	s.Input(request(args...), s.b.Keyspace.Now())
	return s.output()
}

func (s *offloadSession) output() string {
	out := string(s.Output())
	s.SetOutput(nil)
	return strings.TrimSuffix(out, "\r\n")
}

// end waits until no command of the client is offloaded any more, and returns the replies.
func (s *offloadSession) end() string {
	var out strings.Builder
	for s.Waiting() {
		<-s.woken
		s.Advance(s.b.Keyspace.Now())
		out.WriteString(s.output())
	}
	return out.String()
}

func (s *offloadSession) do(args ...string) string { return s.begin(args...) + s.end() }

// whole executes a command in a transaction, where it is never offloaded.
func (s *offloadSession) whole(args ...string) string {
	s.begin("MULTI")
	s.begin(args...)
	return strings.TrimPrefix(s.begin("EXEC"), "*1\r\n")
}

// sortedReply puts the elements of a reply in order, because sets and hashes have none.
func sortedReply(reply string) string {
	lines := strings.Split(reply, "\r\n")
	slices.Sort(lines)
	return strings.Join(lines, "\r\n")
}

// longCommands are offloaded on the data of an offloadHarness.
var longCommands = []string{
	"SMEMBERS s", "SUNION s s2", "SDIFF s s2", "SINTER s s", "SUNIONCARD 2 s s2", "SINTERCARD 2 s s", "HGETALL h", "HKEYS h",
	"HVALS h", "LRANGE l 0 -1", "ZRANGE z 0 -1 WITHSCORES", "ZRANGEBYSCORE z -inf +inf", "ZREVRANGE z 0 -1", "ZUNION 2 z s",
	"ZINTER 2 z s WITHSCORES", "ZDIFF 2 z s2", "ZINTERCARD 2 z s", "SORT l", "SORT_RO l DESC", "SORT s ALPHA", "DUMP h", "DUMP z",
	"JSON.GET j", "JSON.GET j $..[?(@.p>32000)]", "JSON.MGET j none $.a", "JSON.RESP j $.a[0:30000]", "JSON.TYPE j $.a[*].p",
	"JSON.ARRINDEX j $.a 7", "XRANGE x - +", "BITCOUNT b1", "BITCOUNT b1 0 -1 BIT", "BITPOS b3 1", "BITPOS b3 1 0 -1 BIT",
	"GEOSEARCH g FROMLONLAT 0 0 BYRADIUS 400 km ASC", "GEOSEARCH g FROMMEMBER m7 BYBOX 900 900 km WITHDIST DESC COUNT 99",
	"GEORADIUS g 0 0 400 km WITHHASH", "GEORADIUSBYMEMBER_RO g m9 400 km WITHCOORD",
	"GEOSEARCHSTORE to g FROMLONLAT 0 0 BYRADIUS 400 km", "GEORADIUS g 0 0 400 km STOREDIST to", "SORT texts",
	"ARGREP a - + MATCH 7", "ARGREP a - + RE ^value:1.*8$ LIMIT 1000", "AROP a 0 99999 USED", "ARSCAN a 0 99999", "ARGETRANGE a 0 16400",
	"ARLASTITEMS a 16400 REV", "VSIM v VALUES 2 1 1 TRUTH COUNT 1", "LCS t1 t2 LEN",
	"SUNIONSTORE to s s2", "SDIFFSTORE to s s2", "SINTERSTORE s2 s s", "SUNIONSTORE s s s2",
	"ZUNIONSTORE to 2 z s WEIGHTS 2 3", "ZINTERSTORE to 2 z s", "ZDIFFSTORE to 2 z s2", "ZRANGESTORE to z 0 -1", "SORT l STORE to",
	"SORT l BY nosort GET # STORE l", "COPY h to", "COPY z to", "COPY s to", "COPY b1 to", "BITOP XOR to b1 b2", "BITOP NOT b1 b1",
	"SORT texts STORE to",
}

// tried returns which of longCommands are tried. With -short it is one of three: they share their code.
func tried(r *rand.Rand) func(i int) bool {
	first := r.IntN(3)
	return func(i int) bool { return !testing.Short() || i%3 == first }
}

// changesOfLong change all that longCommands read.
var changesOfLong = []string{"SADD s new", "SREM s m7", "SMOVE s2 s other", "HSET h f5 other", "HDEL h f9", "LPUSH l 5", "LSET l 9 0",
	"JSON.NUMINCRBY j $.a[32005].p 100", "JSON.DEL j $.a[9].p", "ZADD z 9.5 m3", "ZREM z m4", "SETBIT b1 9 1", "SETBIT b2 11 1",
	"XDEL x 1000000000000-5", "ARSET a 7 other", "VREM v e0", "APPEND t1 h", "ZREM g m8", "SADD texts 1", "DEL l", "RENAME h h2"}

// The reply of a command that only reads shows the instant at which it began, whatever changes later.
func TestOffloadedReadsAreOfOneInstant(t *testing.T) {
	b := newOffloadHarness(t)
	s, other := b.client(), b.client()
	defer s.Close()
	defer other.Close()
	random := testseed.Rand(t)
	tried := tried(random)
	for i, line := range longCommands {
		args := strings.Fields(line)
		if !tried(i) || strings.Contains(strings.ToUpper(line), "STORE") || args[0] == "COPY" || args[0] == "BITOP" {
			continue
		}
		want := other.whole(args...)
		require.Empty(t, s.begin(args...), line)
		require.True(t, s.Waiting(), line)
		change := changesOfLong[random.IntN(len(changesOfLong)-2)] // without those that remove the key
		require.NotEqual(t, byte('-'), other.do(strings.Fields(change)...)[0], change)
		got := s.end()
		if args[0] != "SORT" && args[0] != "DUMP" && args[0][0] != 'Z' && args[0] != "LRANGE" {
			want, got = sortedReply(want), sortedReply(got)
		}
		if args[0] == "DUMP" && args[1] == "h" {
			require.Equal(t, len(want), len(got), line) // its fields have no order
			continue
		}
		if want != got {
			require.Fail(t, "another reply", "%s: %.200q, not %.200q", line, got, want)
		}
	}
}

// A command stores the same as if it had been executed as a whole at its end.
func TestOffloadedStoresAreOfTheirEnd(t *testing.T) {
	b := newOffloadHarness(t)
	s, other := b.client(), b.client()
	defer s.Close()
	defer other.Close()
	other.do("COPY", "l", "l2")
	tried := tried(testseed.Rand(t))
	for i, line := range longCommands {
		args := strings.Fields(line)
		if !tried(i) || !strings.Contains(strings.ToUpper(line), "STORE") && args[0] != "COPY" && args[0] != "BITOP" {
			continue
		}
		for _, change := range [][]string{nil, {"SADD s a" + strconv.Itoa(i), "HSET h a" + strconv.Itoa(i) + " 1", "LPUSH l2 5",
			"ZADD z 0.5 a" + strconv.Itoa(i), "SETBIT b1 " + strconv.Itoa(i) + " 1", "ZREM g m" + strconv.Itoa(i+10), "XADD x * n 1"}} {
			for _, key := range []string{"to", "copy"} {
				other.do("DEL", key)
			}
			require.Empty(t, s.begin(args...), line)
			require.True(t, s.Waiting(), line)
			for _, c := range change {
				require.NotEqual(t, byte('-'), other.do(strings.Fields(c)...)[0], c)
			}
			got := s.end()
			to := args[len(args)-1]
			if slices.Contains(args, "to") {
				to = "to"
			} else if !strings.HasPrefix(line, "SORT") {
				to = args[1]
			}
			if to != "to" { // the source is gone
				continue
			}
			kept := other.do("DUMP", "to")
			other.do("DEL", "to")
			want := other.whole(args...)
			require.Equal(t, want, got, line)
			require.Equal(t, len(other.do("DUMP", "to")), len(kept), "%s %v", line, change)
		}
	}
}

// Elements are moved between two sets all the time, so that their union has the same number of elements at each instant.
func TestOffloadedStoresAreAtomic(t *testing.T) {
	b := newOffloadHarness(t)
	s := b.client()
	defer s.Close()
	want := s.do("SUNIONCARD", "2", "s", "s2")
	var movers sync.WaitGroup
	stop := make(chan struct{})
	random := testseed.Rand(t)
	for range 2 {
		m, r := b.client(), testseed.Fork(random)
		movers.Go(func() {
			defer m.Close()
			for i := 0; ; i++ {
				select {
				case <-stop:
					return
				case <-time.After(time.Duration(r.IntN(20)) * time.Millisecond):
				}
				from, to := "s", "s2"
				if r.IntN(2) == 0 {
					from, to = to, from
				}
				m.do("SMOVE", from, to, "m"+strconv.Itoa(r.IntN(manyElements)))
			}
		})
	}
	for range 10 {
		require.Equal(t, want, s.do("SUNIONSTORE", "to", "s", "s2"))
		require.Equal(t, want, s.do("SCARD", "to"))
		require.Equal(t, want, s.do("SUNIONCARD", "2", "s", "s2"))
	}
	close(stop)
	movers.Wait()
}

// A command whose keys change each time is executed under its guard in the end.
func TestStoresAreExecutedWholeInTheEnd(t *testing.T) {
	b := newOffloadHarness(t)
	s, other := b.client(), b.client()
	defer s.Close()
	defer other.Close()
	require.Empty(t, s.begin("SUNIONSTORE", "to", "s", "s2"))
	for i := range maxOffloads {
		require.True(t, s.Waiting())
		other.do("SADD", "s", "new"+strconv.Itoa(i))
		<-s.woken
		s.Advance(b.Keyspace.Now())
	}
	require.False(t, s.Waiting())
	require.Equal(t, fmt.Sprintf(":%d", manyElements+1+maxOffloads), s.output())
}

func TestNamesOfKeysAreAsOfOneInstant(t *testing.T) {
	b := newOffloadHarness(t)
	s, other := b.client(), b.client()
	defer s.Close()
	defer other.Close()
	args := []string{"MSET"}
	for i := range manyElements {
		args = append(args, "key"+strconv.Itoa(i), "")
	}
	other.do(args...)
	for _, pattern := range []string{"*", "key1*"} {
		want := other.whole("KEYS", pattern)
		require.Empty(t, s.begin("KEYS", pattern))
		require.True(t, s.Waiting())
		other.do("SET", "key1new", "")
		other.do("DEL", "key7")
		other.do("RENAME", "key100", "key1renamed")
		require.Empty(t, other.begin("KEYS", "*")) // only one may run at a time, so it waits
		if sortedReply(want) != sortedReply(s.end()) {
			require.Fail(t, "other names", pattern)
		}
		require.NotEmpty(t, other.end())
		other.do("RENAME", "key1renamed", "key100")
	}
	require.Empty(t, s.begin("KEYS", "*"))
	other.do("FLUSHALL")
	require.Equal(t, ":0", other.do("DBSIZE"))
	require.Greater(t, strings.Count(s.end(), "$"), manyElements)
}

// scans are commands of the SCAN family that are offloaded, and change nothing.
var scans = []string{"SCAN 0 COUNT 1000000", "SCAN 0 COUNT 17000 MATCH key1*", "SCAN 0 COUNT 1000000 TYPE set", "HSCAN h 0 COUNT 1000000",
	"HSCAN h 0 COUNT 16400 NOVALUES", "SSCAN s 0 COUNT 1000000 MATCH *7", "SSCAN s 0 COUNT 16385", "ZSCAN z 0 COUNT 1000000"}

// addKeys adds many small keys.
func (s *offloadSession) addKeys() {
	args := []string{"MSET"}
	for i := range manyElements {
		args = append(args, "key"+strconv.Itoa(i), "")
	}
	s.do(args...)
}

// A scan in steps returns the same elements in the same order as a scan at once.
func TestOffloadedScansReplyAsOthers(t *testing.T) {
	b := newOffloadHarness(t)
	s, other := b.client(), b.client()
	defer s.Close()
	defer other.Close()
	other.addKeys()
	other.do("CONFIG", "RESETSTAT")
	for _, line := range scans {
		args := strings.Fields(line)
		require.Empty(t, s.begin(args...), line)
		require.True(t, s.Waiting(), line)
		if got := s.end(); got != other.whole(args...) {
			require.Fail(t, "another reply", line)
		}
	}
	require.Contains(t, other.do("INFO", "stats"), "keyspace_hits:10\r\n", "each of those of values has read one key, twice")
}

// Elements that exist throughout a scan are found, whatever else is added and removed, and the removal of the value
// ends the scan.
func TestOffloadedScansFindWhatIsThereThroughout(t *testing.T) {
	b := newOffloadHarness(t)
	s, other := b.client(), b.client()
	defer s.Close()
	defer other.Close()
	other.addKeys()
	for _, line := range scans {
		var want []string
		for part := range strings.SplitSeq(other.whole(strings.Fields(line)...), "\r\n") {
			if n := len(part); n > 1 && part[0] != '$' && part[0] != '*' && (part[n-1] == '7' || part[n-1] == '9') {
				want = append(want, part)
			}
		}
		if strings.Contains(line, "0000") && !strings.Contains(line, "TYPE") {
			require.NotEmpty(t, want, line)
		}
		require.Empty(t, s.begin(strings.Fields(line)...), line)
		for i := 0; s.offload != nil && b.offloads.is(s.offload) != offloadDone; i++ {
			n := strconv.Itoa(i % manyElements / 10 * 10) // so that it ends with 0
			for _, change := range []string{"DEL key" + n, "HDEL h f" + n, "SREM s m" + n, "ZREM z m" + n} {
				other.do(strings.Fields(change)...)
			}
			for _, change := range []string{"SET key" + n + " 1", "HSET h f" + n + " 1", "SADD s m" + n, "ZADD z 1 m" + n} {
				other.do(strings.Fields(change)...)
			}
		}
		got := map[string]bool{}
		for part := range strings.SplitSeq(s.end(), "\r\n") {
			got[part] = true
		}
		if !strings.HasSuffix(line, "1000000") && !strings.HasPrefix(line, "SSCAN s 0 COUNT 1000000") {
			continue // with a small count it may end before the last ones
		}
		for _, part := range want {
			require.True(t, got[part], "%s: %s", line, part)
		}
	}
	for _, change := range []string{"DEL h", "SET h text"} {
		require.Empty(t, s.begin("HSCAN", "h", "0", "COUNT", "1000000"))
		other.do(strings.Fields(change)...)
		require.Regexp(t, `^(\*2\r\n|-WRONGTYPE)`, s.end())
		other.do("DEL", "h")
		for i := range manyElements {
			other.do("HSET", "h", "f"+strconv.Itoa(i), "1")
		}
	}
}

// The offloaded command decodes a payload, and the key's state at the end decides whether it is stored.
func TestRestoreIsOffloaded(t *testing.T) {
	b := newOffloadHarness(t)
	s, other := b.client(), b.client()
	defer s.Close()
	defer other.Close()
	payloads := map[string]string{}
	text, random := make([]byte, 5<<20), rand.New(rand.NewPCG(1, 2)) // does not compress
	for i := range text {
		text[i] = byte(random.Uint32())
	}
	other.do("SET", "text", string(text))
	for _, key := range []string{"h", "text"} {
		_, payload, _ := strings.Cut(other.whole("DUMP", key), "\r\n")
		payloads[key] = payload
		require.Empty(t, s.begin("RESTORE", "to", "0", payload), key)
		require.True(t, s.Waiting(), key)
		require.Equal(t, ":0", other.do("EXISTS", "to"))
		require.Equal(t, "+OK", s.end())
		if key == "h" {
			require.Equal(t, sortedReply(other.whole("HGETALL", "h")), sortedReply(other.whole("HGETALL", "to")))
		} else {
			require.Equal(t, other.whole("GET", key), other.whole("GET", "to"))
		}
		require.Equal(t, "-BUSYKEY Target key name already exists.", s.begin("RESTORE", "to", "0", payload))
		require.Empty(t, s.begin("RESTORE", "to", "1000", payload, "REPLACE"))
		require.Equal(t, "+OK", s.end())
		require.Equal(t, ":1000", other.do("PTTL", "to"))
		other.do("DEL", "to")
	}
	require.Empty(t, s.begin("RESTORE", "to", "0", payloads["h"]))
	other.do("SET", "to", "text")
	require.Equal(t, "-BUSYKEY Target key name already exists.", s.end())
	other.do("DEL", "to")
	damaged := []byte(payloads["h"])
	damaged[len(damaged)/2] ^= 1
	require.Empty(t, s.begin("RESTORE", "to", "0", string(damaged)))
	require.Equal(t, "-ERR DUMP payload version or checksum are wrong", s.end())
	require.Equal(t, ":0", other.do("EXISTS", "to"))
}

// Long texts are parsed before the document is read.
func TestParsingOfDocumentsIsOffloaded(t *testing.T) {
	b := newOffloadHarness(t)
	s, other := b.client(), b.client()
	defer s.Close()
	defer other.Close()
	text := largeJSON(7)
	bulkOf := func(text string) string { return fmt.Sprintf("$%d\r\n%s", len(text), text) }
	require.Empty(t, s.begin("JSON.SET", "new", "$", text))
	require.True(t, s.Waiting())
	require.Equal(t, ":0", other.do("EXISTS", "new"))
	require.Equal(t, "+OK", s.end())
	require.Equal(t, bulkOf(text), other.whole("JSON.GET", "new"))
	require.Empty(t, s.begin("JSON.SET", "new", "$.b", text))
	require.Equal(t, ":1", other.do("JSON.DEL", "new", "$.a"))
	require.Equal(t, "-ERR new objects must be created at the root", s.end())
	require.Empty(t, s.begin("JSON.MSET", "new", "$", text, "j", "$.a", "1"))
	require.Equal(t, "+OK", s.end())
	require.Equal(t, bulkOf(`{"a":1}`), other.whole("JSON.GET", "j"))
	require.Equal(t, bulkOf(text), other.whole("JSON.GET", "new"))
	require.Empty(t, s.begin("JSON.SET", "new", "$", text+"x"))
	require.Contains(t, s.end(), "-trailing characters at line 1 column ")
	other.do("SET", "text", "x")
	require.Equal(t, "-Existing key has wrong Redis type", s.begin("JSON.SET", "text", "$", text))
	require.Empty(t, s.begin("JSON.MERGE", "j", "$", text))
	require.Equal(t, "+OK", s.end())
	require.Equal(t, bulkOf(text), other.whole("JSON.GET", "j"))
	require.Empty(t, s.begin("JSON.ARRAPPEND", "j", "$.a", text))
	require.Equal(t, "*1\r\n:"+strconv.Itoa(2*manyElements+1), s.end())
}

// keysReads read many keys, which @ stands for.
var keysReads = []string{"MGET @", "EXISTS @", "TOUCH @", "JSON.MGET @ $"}

// Many keys are read in steps; concurrent changes of other keys have no effect.
func TestManyKeysAreReadInSteps(t *testing.T) {
	b := newOffloadHarness(t)
	s, other := b.client(), b.client()
	defer s.Close()
	defer other.Close()
	var names, set []string
	for i := range manyElements {
		names = append(names, "key"+strconv.Itoa(i%(manyElements-50)))
		if i%3 > 0 {
			set = append(set, names[i], "value "+strconv.Itoa(i))
		}
	}
	other.do(append([]string{"MSET"}, set...)...)
	other.do("RPUSH", "key3", "a")
	other.do("JSON.SET", "key0", "$", "[1]")
	names = append(names, "j", "text", "h")
	other.do("SET", "text", strings.Repeat("x", 1<<20))
	for _, line := range keysReads {
		words := strings.Fields(line)
		args := slices.Concat(words[:1], names, words[2:])
		want := other.whole(args...)
		other.do("CONFIG", "RESETSTAT")
		require.Empty(t, s.begin(args...), line)
		require.True(t, s.Waiting(), line)
		require.Equal(t, "+OK", other.do("SET", "another", "1"))
		if got := s.end(); want != got {
			require.Fail(t, "another reply", "%s: %.200q, not %.200q", line, got, want)
		}
		n := strconv.Itoa(len(names))
		require.Contains(t, other.do("INFO", "commandstats"), "cmdstat_"+strings.ToLower(words[0])+":calls=1,", line)
		require.Regexp(t, "keyspace_hits:[0-9]{5}\r", other.do("INFO", "stats"), "of %s", n)
	}
	// Replies with more bytes than are copied are made under the guard.
	var texts []string
	for i := range manyElements {
		texts = append(texts, []string{"text", "key1"}[btoi(i >= 65)])
	}
	require.Empty(t, s.begin(append([]string{"MGET"}, texts...)...))
	require.Equal(t, manyElements-65, strings.Count(s.end(), "\r\nvalue "))
	require.Equal(t, "+OK", s.do("CLIENT", "NO-TOUCH", "ON"))
	b.clock.Advance(100 * time.Second)
	require.Empty(t, s.begin(append([]string{"MGET"}, names...)...))
	s.end()
	require.Equal(t, ":100", other.do("OBJECT", "IDLETIME", "key1"))
	require.Empty(t, s.begin(append([]string{"TOUCH"}, names...)...))
	s.end()
	require.Equal(t, ":0", other.do("OBJECT", "IDLETIME", "key1"))
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

// manyNames returns a command with very many keys, of which only the first exists.
func manyNames(command string) []string {
	args := []string{command, "first"}
	for i := range manyElements {
		args = append(args, "name"+strconv.Itoa(i))
	}
	return args
}

// A key that expires while many are read exists for the whole reply, or not at all.
func TestManyKeysMayExpireMeanwhile(t *testing.T) {
	b := newOffloadHarness(t)
	s, other := b.client(), b.client()
	defer s.Close()
	defer other.Close()
	for range 5 {
		require.Equal(t, "+OK", other.do("SET", "first", "1", "PX", "1000"))
		require.Empty(t, s.begin(manyNames("EXISTS")...))
		b.clock.Advance(2 * time.Second)
		require.Contains(t, []string{":0", ":1"}, s.end())
		require.Equal(t, ":0", s.do(manyNames("EXISTS")...))
		// The key has expired but is still stored, so the first step removes it.
		require.Equal(t, "+OK", other.do("SET", "first", "1", "PX", "1000"))
		b.clock.Advance(2 * time.Second)
		require.Equal(t, ":0", s.do(manyNames("TOUCH")...))
	}
}

// One client repeatedly sets the first key and the last one to the same value: commands that read many keys always
// find them equal.
func TestManyKeysAreAsOfOneInstant(t *testing.T) {
	b := newOffloadHarness(t)
	s := b.client()
	defer s.Close()
	names := []string{"MGET"}
	for i := range manyElements {
		names = append(names, "key"+strconv.Itoa(i))
	}
	first, last := names[1], names[len(names)-1]
	s.do("MSET", first, "0", last, "0")
	stop := make(chan struct{})
	var setter sync.WaitGroup
	m := b.client()
	setter.Go(func() {
		defer m.Close()
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
			}
			n := strconv.Itoa(i)
			m.do("MSET", first, n, last, n)
		}
	})
	for range 20 {
		lines := strings.Split(s.do(names...), "\r\n")
		require.Equal(t, lines[2], lines[len(lines)-1])
	}
	close(stop)
	setter.Wait()
	b.offloads.running.Wait()
}

// longChanges change many places of the document j, of which @ stands for a text that takes long to parse. Those that reply
// that nothing changes come last.
var longChanges = []string{"JSON.NUMINCRBY j $.a[*].p 3", "JSON.NUMMULTBY j $..p 2", "JSON.NUMPOWBY j $.a[*].p 2", "JSON.TOGGLE j $.a[*].t",
	"JSON.STRAPPEND j $.a[*].name \"+\"", "JSON.ARRAPPEND j $.a[*].l 7", "JSON.ARRINSERT j $.a[*].l 0 @", "JSON.ARRPOP j $.a[*].l",
	"JSON.ARRTRIM j $.a[*].l 0 0", "JSON.SET j $.a[*].p {\"x\":[1]}", "JSON.SET j $.a[*].name @", "JSON.MSET j $.a[*].p 1 k $ 2 j $.b 3",
	"JSON.MERGE j $.a[*] {\"n\":1,\"p\":null}", "JSON.MERGE j $ @", "JSON.CLEAR j $.a[*].l", "JSON.DEL j $.a[*].p",
	"JSON.CLEAR j $.a[*].t", "JSON.NUMPOWBY j $.a[*].p 1e9"}

// changeableJSON returns a document of which longChanges change many places.
func changeableJSON() string {
	var b strings.Builder
	for i := range manyElements / 3 {
		fmt.Fprintf(&b, `,{"p":%d.5,"name":"m%d","t":true,"l":[1,2]}`, i%7, i)
	}
	return `{"a":[` + b.String()[1:] + `]}`
}

// Changes of many places of a document are offloaded: a copy is changed, and replaces the document unless that changes
// meanwhile.
func TestChangesOfDocumentsAreOffloaded(t *testing.T) {
	b := newOffloadHarness(t)
	s, other := b.client(), b.client()
	defer s.Close()
	defer other.Close()
	watcher := b.client()
	defer watcher.Close()
	require.Equal(t, "+OK", other.do("JSON.SET", "start", "$", changeableJSON()))
	for i, line := range longChanges {
		args := strings.Fields(line)
		for j, arg := range args {
			switch {
			case arg == "@" && args[0] == "JSON.MERGE":
				args[j] = flatJSON(manyElements)
			case arg == "@": // for each place
				args[j] = strconv.Quote(strings.Repeat("text", 100))
			}
		}
		reset := func() {
			other.whole("DEL", "k")
			require.Equal(t, ":1", other.whole("COPY", "start", "j", "REPLACE"))
			require.Equal(t, ":1", other.do("PEXPIRE", "j", "100000"))
		}
		changes := []string{"", "JSON.NUMINCRBY j $.a[5].p 1", "SET other 1", "EXPIRE j 1000", "DEL j"}
		for _, change := range changes[:2+max(3-i, 0)] {
			reset()
			if change != "" && i < len(longChanges)-2 {
				other.do(strings.Fields(change)...)
			}
			want := other.whole(args...)
			kept, ttl := other.whole("JSON.GET", "j"), other.do("PTTL", "j")
			reset()
			watcher.do("WATCH", "j")
			require.Empty(t, s.begin(args...), line)
			require.True(t, s.Waiting(), line)
			b.offloads.running.Wait()
			made := i < len(longChanges)-2
			require.Equal(t, made, s.offload.handler.Result != nil, "%s has been computed", line)
			if change != "" && made {
				require.NotEqual(t, byte('-'), other.do(strings.Fields(change)...)[0], change)
			}
			if got := s.end(); want != got {
				require.Fail(t, "another reply", "%s, %s: %.200q, not %.200q", line, change, got, want)
			}
			if kept != other.whole("JSON.GET", "j") {
				require.Fail(t, "another document", "%s, %s", line, change)
			}
			require.Equal(t, ttl, other.do("PTTL", "j"), line)
			require.Equal(t, !made, watcher.whole("PING") == "+PONG", "%s, %s: who watches the document sees the change", line, change)
		}
	}
}

// A document of which nothing is left is removed.
func TestEmptyingOfDocumentsIsOffloaded(t *testing.T) {
	b := newOffloadHarness(t)
	s, other := b.client(), b.client()
	defer s.Close()
	defer other.Close()
	for _, line := range []string{"JSON.DEL flat $.*", "JSON.MSET flat $ 1 new $ [] flat $.* 2 new $ 3"} {
		other.do("DEL", "flat", "new")
		require.Equal(t, "+OK", other.do("JSON.SET", "flat", "$", flatJSON(manyElements/3)))
		want := other.whole(strings.Fields(line)...)
		kept := other.whole("JSON.MGET", "flat", "new", "$")
		other.do("DEL", "flat", "new")
		require.Equal(t, "+OK", other.do("JSON.SET", "flat", "$", flatJSON(manyElements/3)))
		require.Empty(t, s.begin(strings.Fields(line)...), line)
		require.Equal(t, want, s.end(), line)
		require.Equal(t, kept, other.whole("JSON.MGET", "flat", "new", "$"), line)
	}
}

// flatJSON returns an object of many members.
func flatJSON(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, `,"member %d":%d`, i, i)
	}
	return "{" + b.String()[1:] + "}"
}

func TestRepliesOfAPipelineKeepTheirOrder(t *testing.T) {
	b := newOffloadHarness(t)
	s := b.client()
	defer s.Close()
	s.Input(slices.Concat(request("PING"), request("SUNIONCARD", "1", "s"), request("ECHO", "a"), request("COPY", "h", "to"),
		request("HLEN", "to"), request("SINTERCARD", "1", "s")), b.Keyspace.Now())
	n := strconv.Itoa(manyElements)
	got := s.output()
	require.Equal(t, "+PONG", got)
	got = s.end()
	require.Equal(t, ":"+n+"$1a:1:"+n+":"+n, strings.ReplaceAll(got, "\r\n", ""))
}

func TestWhatIsNotOffloaded(t *testing.T) {
	b := newOffloadHarness(t)
	s := b.client()
	defer s.Close()
	n := ":" + strconv.Itoa(manyElements)
	require.Equal(t, n, s.begin("EVAL", "return redis.call('SUNIONCARD', 1, 's')", "1", "s"))
	require.Equal(t, n, s.whole("SUNIONCARD", "1", "s"))
	require.Equal(t, "+OK", s.begin("CLIENT", "TRACKING", "ON", "BCAST"))
	require.Equal(t, n, s.begin("SUNIONCARD", "1", "s"))
	require.Equal(t, ":0", s.begin(manyNames("EXISTS")...))
	require.Equal(t, "+OK", s.begin("CLIENT", "TRACKING", "OFF"))
	require.Equal(t, ":0", s.whole(manyNames("EXISTS")...))
	require.Equal(t, ":0", s.begin(append([]string{"EVAL", "local n = 0 for i = 1, #KEYS, 5000 do " +
		"n = n + redis.call('EXISTS', unpack(KEYS, i, math.min(i + 4999, #KEYS))) end return n", strconv.Itoa(manyElements + 1)},
		manyNames("EXISTS")[1:]...)...))
	require.Empty(t, s.begin("SUNIONCARD", "1", "s"))
	require.Equal(t, n, s.end())
}

// Nothing remains of the offload of a client that disconnects or is killed, or whose server ends.
func TestClientsThatDisconnectEndTheirOffload(t *testing.T) {
	b := newOffloadHarness(t)
	other := b.client()
	for i := range 6 {
		s := b.client()
		require.Empty(t, s.begin("SUNIONSTORE", "to", "s", "s2"))
		waits := b.client()
		require.Empty(t, waits.begin("HGETALL", "h"))
		require.True(t, waits.Waiting())
		switch i % 3 {
		case 0:
			s.Close()
			waits.Close()
		case 1:
			require.Equal(t, ":1", other.do("CLIENT", "KILL", "ID", strconv.FormatInt(s.ID(), 10)))
			s.Advance(b.Keyspace.Now())
			require.True(t, s.Closing())
			s.Close()
			require.NotEmpty(t, waits.end()) // it is its turn
			waits.Close()
		case 2:
			waits.Close()
			require.NotEmpty(t, s.end())
			s.Close()
		}
		scans := b.client()
		require.Empty(t, scans.begin("ZSCAN", "z", "0", "COUNT", "1000000"))
		scans.Close()
		reads := b.client()
		require.Empty(t, reads.begin(manyNames("MGET")...))
		reads.Close()
	}
	b.offloads.running.Wait()
	require.Equal(t, b.offloads.most, b.offloads.free)
	require.Empty(t, b.offloads.waiting)
	b.guarded(func(g *engine.Guard) {
		watched, _, _ := g.Remembered()
		require.Zero(t, watched)
	})
	last := b.client()
	require.Empty(t, last.begin("SUNIONSTORE", "to", "s", "s2"))
	last.Close() // the server ends while it runs
	other.Close()
}

func (b *offloadHarness) guarded(fn func(g *engine.Guard)) {
	var g engine.Guard
	g.Lock(b.Keyspace, engine.AllShards, b.Keyspace.Now())
	defer g.Unlock()
	fn(&g)
}

func TestSourcesMayExpireMeanwhile(t *testing.T) {
	b := newOffloadHarness(t)
	s, other := b.client(), b.client()
	defer s.Close()
	defer other.Close()
	other.do("PEXPIRE", "h", "1000")
	require.Empty(t, s.begin("COPY", "h", "to"))
	b.clock.Advance(2 * time.Second)
	require.Equal(t, ":0", s.end())
	other.do("PEXPIRE", "s", "1000")
	require.Empty(t, s.begin("SUNIONCARD", "1", "s"))
	b.clock.Advance(2 * time.Second)
	require.Equal(t, ":"+strconv.Itoa(manyElements), s.end())
	require.Equal(t, ":0", s.do("SUNIONCARD", "1", "s"))
}

func TestErrorsOfOffloadedCommands(t *testing.T) {
	b := newOffloadHarness(t)
	s, other := b.client(), b.client()
	defer s.Close()
	defer other.Close()
	const noNumber = "-ERR One or more scores can't be converted into double"
	require.Empty(t, s.begin("SORT", "texts"))
	require.Equal(t, noNumber, s.end())
	require.Empty(t, s.begin("SORT", "texts", "STORE", "to"))
	require.Equal(t, noNumber, s.end())
	require.Empty(t, s.begin("COPY", "h", "to"))
	other.do("SET", "to", "there")
	require.Equal(t, ":0", s.end())
	require.Empty(t, s.begin("SUNIONSTORE", "to", "s", "s2"))
	other.do("DEL", "s")
	other.do("SET", "s", "text")
	require.Equal(t, "-WRONGTYPE Operation against a key holding the wrong kind of value", s.end())
}
