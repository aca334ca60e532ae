package server

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/atomredis/atomredis/engine"
	"github.com/atomredis/atomredis/engine/hashes"
	"github.com/atomredis/atomredis/internal/replication"
	"github.com/atomredis/atomredis/persist/rdb"
	"github.com/atomredis/atomredis/resp"
)

// rawFollower is a client that follows a server.
type rawFollower struct {
	net.Conn
	t        *testing.T
	in       *bufio.Reader
	commands *resp.CommandReader
	// The ID and the offset of the history at the follower's full copy.
	id, offset string
}

func newRawFollower(t *testing.T, host, port string) *rawFollower {
	conn, err := net.Dial("tcp", net.JoinHostPort(host, port))
	require.NoError(t, err)
	t.Cleanup(func() { conn.Close() })
	require.NoError(t, conn.SetDeadline(time.Now().Add(testTimeout)))
	return &rawFollower{Conn: conn, t: t, in: bufio.NewReader(conn)}
}

func (f *rawFollower) say(line string) {
	_, err := f.Write(request(strings.Fields(line)...))
	require.NoError(f.t, err)
}

// line reads a line that is not empty.
func (f *rawFollower) line() string {
	require.NoError(f.t, f.SetDeadline(time.Now().Add(testTimeout)))
	text, err := line(f.in)
	require.NoError(f.t, err)
	return text
}

// line reads a line that is not empty, without its end.
func line(in *bufio.Reader) (string, error) {
	for {
		text, err := in.ReadString('\n')
		if text = strings.TrimRight(text, "\r\n"); text != "" || err != nil {
			return text, err
		}
	}
}

// linkStatus returns the state of a replica's link to its master; the zero Link if there is none.
func (srv *Server) linkStatus() replication.Link {
	st, _ := srv.replica.Status()
	return st
}

// file reads the RDB file that the server sends, and acknowledges it.
func (f *rawFollower) file() []byte {
	head := f.line()
	mark, marked := strings.CutPrefix(head, "$EOF:")
	if !marked {
		n, err := strconv.Atoi(strings.TrimPrefix(head, "$"))
		require.NoError(f.t, err, head)
		b := make([]byte, n)
		_, err = io.ReadFull(f.in, b)
		require.NoError(f.t, err)
		return b
	}
	var b []byte
	for !bytes.HasSuffix(b, []byte(mark)) {
		c, err := f.in.ReadByte()
		require.NoError(f.t, err)
		b = append(b, c)
	}
	require.Zero(f.t, f.in.Buffered(), "a Redis finds the end of the file only if nothing comes behind it")
	f.say("REPLCONF ACK 0")
	return b[:len(b)-len(mark)]
}

// follow makes the client a follower and returns the file.
func (f *rawFollower) follow(capa string) []byte {
	if capa != "" {
		f.say("REPLCONF capa " + capa)
		require.Equal(f.t, "+OK", f.line())
	}
	f.say("PSYNC ? -1")
	answer := f.line()
	require.Regexp(f.t, `^\+FULLRESYNC [0-9a-f]{40} \d+$`, answer)
	f.id, f.offset = strings.Fields(answer)[1], strings.Fields(answer)[2]
	b := f.file()
	f.commands = resp.NewCommandReader(f.in)
	return b
}

// next returns the next command other than PING.
func (f *rawFollower) next() string {
	for {
		args, err := f.commands.Next()
		require.NoError(f.t, err)
		words := make([]string, len(args))
		for i, a := range args {
			words[i] = string(a)
		}
		if text := strings.Join(words, " "); text != "PING" {
			return text
		}
	}
}

func TestFollowersGetEverythingAndThenWhatChanges(t *testing.T) {
	t.Parallel()
	for _, capa := range []string{"eof", ""} {
		t.Run("capa "+capa, func(t *testing.T) {
			srv, host, port := listening(t)
			c := newRawFollower(t, host, port)
			do := func(line string) string {
				c.say(line)
				return c.line()
			}
			do("SET a 1")
			do("SELECT 2")
			f := newRawFollower(t, host, port)
			copied := newHarness(t)
			require.NoError(t, copied.load(bytes.NewReader(f.follow(capa))))
			require.Equal(t, 1, copied.importer.Loaded().Keys)
			require.NoError(t, copied.Close())

			do("INCR b")
			do("INCR b")
			do("SELECT 0")
			do("APPEND a x")
			for _, want := range []string{"SELECT 2", "INCR b", "INCR b", "SELECT 0", "APPEND a x"} {
				require.Equal(t, want, f.next())
			}
			f.say("GET a")
			require.Contains(t, f.line(), "-ERR Replica can't interact with the keyspace")
			f.say("REPLCONF listening-port 77")
			f.line()
			list, _ := srv.followed.Status()
			require.Len(t, list, 1)
			require.Equal(t, "127.0.0.1 77 online", fmt.Sprint(list[0].Host, " ", list[0].Port, " ", list[0].State))

			other := newRawFollower(t, host, port)
			other.say("REPLCONF rdb-only 1")
			other.line()
			if capa != "" {
				other.say("REPLCONF capa eof")
				other.line()
			}
			other.say("SYNC")
			require.Contains(t, string(other.file()), "REDIS0010")
			do("INCR n")
			require.Equal(t, "INCR n", f.next(), "the database is as before")
			f.Close()
			other.Close()
			require.Eventually(t, func() bool {
				list, _ := srv.followed.Status()
				return len(list) == 0
			}, testTimeout, time.Millisecond)
			do("INCR n")
		})
	}
}

// A follower's commands have the same effect at any time.
// A follower that is a Valkey 9 gets a file in the form of Valkey, all others one in that of Redis.
func TestAFollowerIsSentTheFormThatItReads(t *testing.T) {
	t.Parallel()
	_, host, port := listening(t)
	c := newRawFollower(t, host, port)
	for _, line := range []string{"HSET h a 1 b 2", "HPEXPIREAT h 4000000000000 FIELDS 1 b"} {
		c.say(line)
		c.line()
	}
	c.line() // of the array
	for version, magic := range map[string]string{"9.1.2": "VALKEY080", "9.0.0": "VALKEY080", "8.1.4": "REDIS0012", "": "REDIS0012"} {
		f := newRawFollower(t, host, port)
		if version != "" {
			f.say("REPLCONF version " + version)
			require.Equal(t, "+OK", f.line())
		}
		b := f.follow("eof")
		require.Equal(t, magic, string(b[:9]), version)
		copied := newHarness(t)
		require.NoError(t, copied.load(bytes.NewReader(b)))
		require.Equal(t, 1, copied.importer.Loaded().Keys)
		var g engine.Guard
		g.Lock(copied.ks, engine.AllShards, copied.ks.Now())
		for field, want := range map[string]int64{"a": 0, "b": 4_000_000_000_000} {
			at, _ := g.Read(0, []byte("h")).Hash().Deadline([]byte(field))
			require.Equal(t, want, at)
		}
		g.Unlock()
		require.NoError(t, copied.Close())
	}
	for _, wrong := range []string{"9", "9.1.x", "9.1.300", "9.1.2.3"} {
		c.say("REPLCONF version " + wrong)
		require.Equal(t, "-ERR Unrecognized version format: "+wrong, c.line())
	}
}

func TestTheStreamDoesNotDependOnTheTime(t *testing.T) {
	b := newJournalled(t)
	const now = "1000000000000"
	var stream replication.Stream
	for _, c := range []struct{ line, want string }{
		{"SET k v", "SELECT 0|SET k v"},
		{"SET k v EX 10", "SET k v PXAT 1000000010000"},
		{"set k v px 10 nx", ""},
		{"SET k v PX 10 XX GET", "SET k v PXAT 1000000000010"},
		{"SET k v KEEPTTL", "SET k v KEEPTTL"},
		{"SETEX k 5 v", "SET k v PXAT 1000000005000"},
		{"PSETEX k 5 v", "SET k v PXAT 1000000000005"},
		{"GETEX k", ""},
		{"GETEX k EX 7", "PEXPIREAT k 1000000007000"},
		{"GETEX k PERSIST", "PERSIST k"},
		{"EXPIRE k 3 NX", "PEXPIREAT k 1000000003000"},
		{"PEXPIRE k 9 LT", "PEXPIREAT k 1000000000009"},
		{"EXPIREAT k 2000000000", "PEXPIREAT k 2000000000000"},
		{"EXPIRE k -1", "DEL k"},
		{"MSETEX 2 k EX f v EX 1", "MULTI|SET k EX PXAT 1000000001000|SET f v PXAT 1000000001000|EXEC"},
		{"GETDEL f", "DEL f"},
		{"DELEX k IFEQ EX", "DEL k"},
		{"XADD s MAXLEN 10 * f v", "XADD s MAXLEN 10 1000000000000-0 f v"},
		{"XADD s NOMKSTREAM MINID = 5 1000000000000-* maxlen v", "XADD s NOMKSTREAM MINID = 5 1000000000000-1 maxlen v"},
		{"XADD s MAXLEN ~ 10 LIMIT 5 * f v", "XADD s 1000000000000-2 f v"},
		{"INCRBYFLOAT n 0.1", "SET n 0.1 KEEPTTL"},
		{"HSET h a 1 b 2 c 3", "HSET h a 1 b 2 c 3"},
		{"HINCRBYFLOAT h a 0.5", "HSET h a 1.5"},
		{"HEXPIRE h 5 FIELDS 2 a x", "HPEXPIREAT h 1000000005000 FIELDS 1 a"},
		{"HINCRBYFLOAT h a 0.5", "MULTI|HSET h a 2|HPEXPIREAT h 1000000005000 FIELDS 1 a|EXEC"},
		{"HGETEX h PX 5 FIELDS 1 b", "HPEXPIREAT h 1000000000005 FIELDS 1 b"},
		{"HSETEX h EX 1 FIELDS 1 d 4", "MULTI|HSET h d 4|HPEXPIREAT h 1000000001000 FIELDS 1 d|EXEC"},
		{"HEXPIRE h 0 FIELDS 2 a b", "HDEL h a b"},
		{"HPEXPIREAT h 1 FIELDS 1 d", "HDEL h d"},
		{"HGETDEL h FIELDS 1 c", "HDEL h c"},
		{"SADD members a b c", "SADD members a b c"},
		{"SEXPIRE members 5 MEMBERS 2 a x", "SPEXPIREAT members 1000000005000 MEMBERS 1 a"},
		{"SADDEX members EX 1 MEMBERS 2 a d", "SADDEX members PXAT 1000000001000 MEMBERS 2 a d"},
		{"SPERSIST members MEMBERS 1 a", "SPERSIST members MEMBERS 1 a"},
		{"SEXPIRE members 0 MEMBERS 2 a b", "SREM members a b"},
		{"XGROUP CREATE s g 0", "XGROUP CREATE s g 0"},
		{"XREADGROUP GROUP g c COUNT 2 STREAMS s >", "XREADGROUP GROUP g c COUNT 2 STREAMS s >"},
		{"XCLAIM s g d 0 1000000000000-0", "XCLAIM s g d 0 1000000000000-0 TIME 1000000000000 RETRYCOUNT 2 FORCE JUSTID"},
		{"XAUTOCLAIM s g e 0 (0-1 COUNT 1", "XCLAIM s g e 0 1000000000000-0 TIME 1000000000000 RETRYCOUNT 3 FORCE JUSTID"},
		{"SADD set a", "SADD set a"},
		{"SPOP set", "DEL set"},
		{"SELECT 3", ""},
		{"EVAL redis.call('SET','a',1,'EX',1)redis.call('SELECT',4)redis.call('INCR','b') 0",
			"SELECT 3|MULTI|SET a 1 PXAT 1000000001000|SELECT 4|INCR b|EXEC"},
		{"SELECT 4", ""},
		{"EXPIRE b 1", "PEXPIREAT b 1000000001000"},
	} {
		before := len(b.journal.records)
		reply := b.step(c.line)
		require.NotContains(t, reply, "ERR", c.line)
		var got []string
		for _, r := range b.journal.records[before:] {
			got = append(got, memoryRecord{commands: stream.Translate(r.commands)}.text(t)...)
		}
		require.Equal(t, c.want, strings.Join(got, "|"), c.line)
	}
	require.Equal(t, now, fmt.Sprint(b.ks.Now()))
	b.finish(t)
}

// A copy shows one instant, and the stream after it begins at that instant. Writers keep a sum constant, which the
// follower's data must have after both.
func TestACopyAndWhatFollowsAreTheData(t *testing.T) {
	t.Parallel()
	const accounts, initial = 300, 100
	for _, shards := range []string{"1", "16"} {
		t.Run("shards "+shards, func(t *testing.T) {
			master, host, port := listening(t, "shards="+shards)
			setUp := newRawFollower(t, host, port)
			for i := range accounts {
				setUp.say(fmt.Sprintf("SET account:%d %d", i, initial))
				require.Equal(t, "+OK", setUp.line())
				setUp.say(fmt.Sprintf("HSET hash account:%d %d", i, initial))
				setUp.line()
			}
			stop := make(chan struct{})
			var running sync.WaitGroup
			for w := range 3 {
				running.Go(func() { transferOver(t, host, port, rand.New(rand.NewPCG(uint64(w), 3)), accounts, stop) })
			}
			replicas := make([]*Server, 2)
			for i := range replicas {
				var replicaHost, replicaPort string
				replicas[i], replicaHost, replicaPort = listening(t, "shards="+shards)
				c := newRawFollower(t, replicaHost, replicaPort)
				c.say("REPLICAOF " + host + " " + port)
				require.Equal(t, "+OK", c.line())
			}
			for range 5 {
				f := newRawFollower(t, host, port)
				sum, inHash := sums(t, f.follow("eof"))
				require.Equal(t, accounts*initial, sum)
				require.Equal(t, accounts*initial, inHash)
				f.Close()
			}
			require.Eventually(t, func() bool {
				return replicas[0].linkStatus().State == replication.LinkConnected &&
					replicas[1].linkStatus().State == replication.LinkConnected
			},
				testTimeout, time.Millisecond)
			close(stop)
			running.Wait()
			for _, replica := range replicas {
				require.Eventually(t, func() bool {
					_, offset := master.followed.Status()
					return replica.linkStatus().Offset == offset
				}, testTimeout, time.Millisecond)
				now := master.ks.Now()
				require.Equal(t, dump(master.ks, now), dump(replica.ks, now))
			}
		})
	}
}

// transferOver moves amounts between keys, and between fields of a hash, each time in one transaction.
func transferOver(t *testing.T, host, port string, r *rand.Rand, accounts int, stop chan struct{}) {
	c := newRawFollower(t, host, port)
	for {
		select {
		case <-stop:
			return
		default:
		}
		from, to, n := r.IntN(accounts), r.IntN(accounts), r.IntN(9)
		lines := []string{"MULTI", fmt.Sprintf("DECRBY account:%d %d", from, n), fmt.Sprintf("INCRBY account:%d %d", to, n),
			fmt.Sprintf("HINCRBY hash account:%d -%d", from, n), fmt.Sprintf("HINCRBY hash account:%d %d", to, n),
			fmt.Sprintf("SET other:%d %d PX 100000", r.IntN(50), n), fmt.Sprintf("RENAME account:%d account:%d", from, from),
			"EXEC"}
		var b []byte
		for _, l := range lines {
			b = append(b, request(strings.Fields(l)...)...)
		}
		if _, err := c.Write(b); err != nil {
			t.Error(err)
			return
		}
		for range 2*len(lines) - 2 { // the replies of EXEC have lines of their own
			if _, err := line(c.in); err != nil {
				t.Error(err)
				return
			}
		}
	}
}

// sums returns the sums over keys and over fields in a file.
func sums(t *testing.T, file []byte) (keys, fields int) {
	r := rdb.NewReader(bytes.NewReader(file), *newHarness(t).RDBLimits())
	number := func(v []byte) int {
		n, err := strconv.Atoi(string(v))
		require.NoError(t, err)
		return n
	}
	for {
		item, err := r.Next()
		if err == io.EOF {
			return keys, fields
		}
		require.NoError(t, err)
		k, ok := item.(*rdb.Key)
		switch {
		case !ok:
		case strings.HasPrefix(string(k.Key), "account:"):
			keys += number(k.Value.([]byte))
		case string(k.Key) == "hash":
			for _, v := range k.Value.(*hashes.Hash).All() {
				fields += number(v)
			}
		}
	}
}

// A follower that does not read delays its copy, and is disconnected when too much of the stream waits for it.
func TestAFollowerThatDoesNotReadIsClosed(t *testing.T) {
	t.Parallel()
	srv, host, port := listening(t, "client-output-buffer-limit=replica 2mb 0 0")
	c := newRawFollower(t, host, port)
	value := strings.Repeat("x", 4000)
	do := func(line string) {
		c.say(line)
		require.Equal(t, "+OK", c.line())
	}
	for i := range 4000 { // more than fits into the buffers of a connection
		do(fmt.Sprintf("SET key:%d %d%s", i, i, random(value, i)))
	}
	f := newRawFollower(t, host, port)
	f.say("REPLCONF capa eof")
	f.line()
	f.say("SYNC")
	require.Regexp(t, `^\$EOF:`, f.line())
	for i := range 4000 { // everything not copied yet is kept in its old state
		do(fmt.Sprintf("SET key:%d %s", i, value))
	}
	require.Eventually(t, func() bool {
		list, _ := srv.followed.Status()
		return len(list) == 0
	}, testTimeout, time.Millisecond)
	require.NoError(t, srv.WriteRDB(io.Discard), "nobody waits for the copy that was given up")
	var g engine.Guard
	g.Lock(srv.ks, engine.AllShards, srv.ks.Now())
	require.Equal(t, 4000, g.Len(0))
	g.Unlock()
}

// random returns a text that cannot be compressed well.
func random(text string, seed int) string {
	r := rand.New(rand.NewPCG(uint64(seed), 4))
	b := []byte(text)
	for i := range b {
		b[i] = byte('!' + r.IntN(90))
	}
	return string(b)
}

func TestWritesNeedReplicas(t *testing.T) {
	clock := engine.NewManualClock(time.UnixMilli(1e12))
	srv := startTestServer(t, Options{Clock: clock}, "min-replicas-to-write", "1", "enable-debug-command", "yes")
	host, port, _ := net.SplitHostPort(srv.Addrs()[0].String())
	const refused = "-NOREPLICAS Not enough good replicas to write."
	c := srv.connect()
	require.Equal(t, refused, c.do("SET a b"))
	require.Empty(t, c.do("GET a"), "reads do not need any")
	require.Contains(t, c.do("EVAL return(redis.call('set','a','b')) 0"), "NOREPLICAS Not enough good replicas to write.")
	c.send("EVAL", "#!lua\nreturn redis.call('get','a')", "0")
	require.Equal(t, refused, c.read(), "by its flags it may write")
	c.send("EVAL", "#!lua flags=no-writes\nreturn redis.call('get','a')", "0")
	require.Equal(t, "nil", c.read())
	require.Equal(t, "+OK", c.do("MULTI"))
	require.Equal(t, refused, c.do("SET a b"))
	require.Contains(t, c.do("EXEC"), "EXECABORT")
	require.Contains(t, c.do("INFO replication"), "min_slaves_good_slaves:0")

	f := newRawFollower(t, host, port)
	f.follow("eof")
	c.waitFor("SET a b", "+OK")
	require.Contains(t, c.do("INFO replication"), "min_slaves_good_slaves:1")
	clock.Advance(5 * time.Second)
	f.say("REPLCONF ACK 10")
	c.waitFor("INFO replication", "offset=10,lag=0")
	clock.Advance(10 * time.Second)
	require.Equal(t, "+OK", c.do("SET a b"), "not longer than min-replicas-max-lag")
	clock.Advance(time.Second)
	c.waitFor("SET a b", "NOREPLICAS")
	f.say("REPLCONF ACK 20")
	c.waitFor("SET a b", "+OK")
	require.Equal(t, "+OK", c.do("CONFIG SET min-slaves-to-write 2"))
	require.Equal(t, refused, c.do("SET a b"))
	require.Equal(t, "+OK", c.do("CONFIG SET min-replicas-max-lag 0"))
	require.Equal(t, "+OK", c.do("SET a b"), "that is off too")
	require.Equal(t, "+OK", c.do("CONFIG SET min-replicas-max-lag 10 min-replicas-to-write 1"))
	require.Equal(t, "+OK", c.do("SET a b"))
	f.Close()
	c.waitFor("SET a b", "NOREPLICAS")
	require.Equal(t, "+OK", c.do("CONFIG SET min-replicas-to-write 0"))
	require.Equal(t, "+OK", c.do("SET a b"))
}

func TestAFollowerTellsWhereItIs(t *testing.T) {
	srv := startTestServer(t, Options{})
	host, port, _ := net.SplitHostPort(srv.Addrs()[0].String())
	f := newRawFollower(t, host, port)
	f.say("REPLCONF ip-address " + strings.Repeat("1", 46))
	require.Equal(t, "-ERR REPLCONF ip-address provided by replica instance is too long: 46 bytes", f.line())
	f.say("REPLCONF listening-port 7 ip-address 192.0.2.1")
	require.Equal(t, "+OK", f.line())
	f.follow("eof")
	c := srv.connect()
	c.waitFor("INFO replication", "slave0:ip=192.0.2.1,port=7,state=online")
	c.waitFor("ROLE", `"192.0.2.1"`)
}
