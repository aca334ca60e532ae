package server

import (
	"fmt"
	"log/slog"
	"math"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/atomredis/atomredis/engine"
	"github.com/atomredis/atomredis/internal/config"
	"github.com/atomredis/atomredis/internal/session"
	"github.com/atomredis/atomredis/internal/testing/crashfs"
	"github.com/atomredis/atomredis/internal/transport"
	"github.com/atomredis/atomredis/persist/disk"
)

// tiered is a server with storage, whose values leave memory when a test wants it.
type tiered struct {
	*Server
	t       *testing.T
	clock   *engine.ManualClock
	log     *panicLog
	clients []*session.Session
	woken   chan struct{}
	wakes   atomic.Int64 // how often one of them was woken
}

func openTiered(t *testing.T, fs disk.FS, clients int, settings ...string) *tiered {
	conf := config.NewConfig()
	for _, pair := range append([]string{"dir=/db", "port=0", "save=", "shards=4", "maxmemory=1gb", "maxmemory-policy=tier",
		"hash-max-listpack-entries=8", "set-max-listpack-entries=4", "list-max-listpack-size=4", "stream-node-max-entries=3",
		"zset-max-listpack-entries=8"}, settings...) {
		name, value, _ := strings.Cut(pair, "=")
		require.NoError(t, conf.Set(name, value, false))
	}
	b := &tiered{t: t, clock: engine.NewManualClock(time.UnixMilli(1e12)), log: &panicLog{}, woken: make(chan struct{}, 1)}
	var err error
	b.Server, err = New(conf, slog.New(b.log), Options{FS: fs, Clock: b.clock, Goroutines: true})
	require.NoError(t, err)
	require.NoError(t, b.Start())
	b.MakeRoom(b.ks.Now())
	for range clients {
		b.clients = append(b.clients, b.Server.sessions.Open(transport.Peer{Addr: "127.0.0.1:1", Local: "127.0.0.1:2"}, func() {
			b.wakes.Add(1)
			select {
			case b.woken <- struct{}{}:
			default:
			}
		}))
	}
	return b
}

// leave stores everything and removes all values from memory.
func (b *tiered) leave() {
	require.NoError(b.t, b.storage.Save())
	b.ks.Evict(b.ks.Now(), func() bool { return true })
}

// send gives a client's session input, and returns the output of all clients.
func (b *tiered) send(client int, input []byte) []string {
	b.clients[client].Input(input, b.ks.Now())
	return b.settle()
}

// settle waits until no client waits for values, and returns the output of all clients.
func (b *tiered) settle() []string {
	for {
		before := b.wakes.Load()
		for _, s := range b.clients {
			s.Advance(b.ks.Now())
		}
		if !slices.ContainsFunc(b.clients, (*session.Session).Fetching) && b.wakes.Load() == before {
			break
		}
		select {
		case <-b.woken:
		case <-time.After(time.Millisecond): // the mail may have been taken already
		}
	}
	var replies []string
	for _, s := range b.clients {
		replies = append(replies, string(s.Output()))
		s.SetOutput(nil)
	}
	return replies
}

func (b *tiered) do(lines ...string) string {
	var input []byte
	for _, line := range lines {
		input = append(input, request(strings.Fields(line)...)...)
	}
	return b.send(0, input)[0]
}

func (b *tiered) close() {
	for _, s := range b.clients {
		s.Close()
	}
	require.NoError(b.t, b.Close())
	require.Empty(b.t, b.log.Found)
}

// stats returns how many values have left memory, and how many have been read again.
func (b *tiered) stats() (left, came int64) {
	var g engine.Guard
	g.Lock(b.ks, engine.AllShards, b.ks.Now())
	defer g.Unlock()
	s := g.Stats()
	return s.Unloaded, s.Loaded
}

// sorted returns replies with their elements sorted, because large sets and hashes have no order.
func sorted(replies []string) []string {
	for i, r := range replies {
		lines := strings.Split(r, "\r\n")
		slices.Sort(lines)
		replies[i] = strings.Join(lines, "\r\n")
	}
	return replies
}

// blocks are commands that may wait.
var blocks = regexp.MustCompile("^B[LRZ]|BLOCK")

// If values leave memory whenever they can, random commands have the same replies and results as if all values stay.
func TestValuesThatLeaveChangeNothing(t *testing.T) {
	var templates []string
	for _, line := range journalTemplates {
		// No commands with random results. When a stream forgets the old entries of producers depends on its
		// history.
		if !strings.Contains(line, "RAND") && !strings.Contains(strings.ToUpper(line), "SPOP") &&
			!strings.Contains(line, "IDMP") {
			templates = append(templates, line)
		}
	}
	templates = append(templates, "GET $A", "STRLEN $A", "MGET $A $A", "HGETALL $H", "HLEN $H", "LRANGE $L 0 -1", "LLEN $L",
		"SMEMBERS $S", "ZRANGE $Z 0 -1 WITHSCORES", "XRANGE $X - +", "XRANGE $X - + COUNT $n", "XREVRANGE $X + - COUNT $n",
		"XRANGE $X $i + COUNT $n", "XREVRANGE $X $i $i", "XINFO STREAM $X FULL", "TYPE $K", "EXISTS $K",
		"PTTL $K", "SORT $L ALPHA", "OBJECT ENCODING $A", "EVAL return{redis.call('TYPE',KEYS[1])} 1 $K",
		"SINTER $S $S", "ZUNION 2 $Z $Z", "DBSIZE")
	left, came := int64(0), int64(0)
	rounds := uint64(12)
	if fullTests() {
		rounds = 300
	}
	for seed := range rounds {
		r := rand.New(rand.NewPCG(seed, 0))
		with := openTiered(t, crashfs.Mem(), 3)
		without := openTiered(t, crashfs.Mem(), 3, "maxmemory-policy=noeviction")
		for range 300 {
			client := r.IntN(3)
			line := randomCommand(r, templates[r.IntN(len(templates))])
			switch r.IntN(12) {
			case 0, 1, 2:
				with.leave()
			case 3:
				with.ks.Evict(with.ks.Now(), func() bool { return true })
			case 4:
				ms := time.Duration(r.IntN(100)) * time.Millisecond
				with.clock.Advance(ms)
				without.clock.Advance(ms)
				require.Equal(t, sorted(without.settle()), sorted(with.settle()))
			}
			switch s := without.clients[client]; {
			case s.Waiting():
				continue
			case s.InTransaction() && r.IntN(3) == 0:
				line = "EXEC"
			}
			input := request(strings.Fields(line)...)
			for range r.IntN(2) * r.IntN(4) {
				// The time at which commands after a blocking one run would depend on other clients.
				if next := randomCommand(r, templates[r.IntN(len(templates))]); !blocks.MatchString(line) {
					input = append(input, request(strings.Fields(next)...)...)
					line = next
				}
			}
			want, got := sorted(without.send(client, input)), sorted(with.send(client, input))
			for i := range want {
				require.True(t, want[i] == got[i], "seed %d, client %d: %q answers\n%q\n%q\n%s", seed, i, input, want[i], got[i], with.log.Found)
			}
		}
		now := with.ks.Now()
		require.Equal(t, withoutEncodings(dump(without.ks, now)), withoutEncodings(dump(with.ks, now)), "seed %d", seed)
		l, c := with.stats()
		left, came = left+l, came+c
		with.close()
		without.close()
	}
	require.Greater(t, left, int64(rounds)*20)
	require.Greater(t, came, int64(rounds)*10)
}

// largeTemplates are commands on collections that are large enough to be stored in parts: $1 is one of some names, $2 a
// number, $3 a score.
var largeTemplates = strings.Split(strings.TrimSpace(`
HSET h $1 $2
HSET h $1 $2 $1 $2
HSETNX h $1 $2
HDEL h $1
HDEL h $1 $1 $1
HINCRBY h $1 $2
HINCRBYFLOAT h $1 $3
HGET h $1
HMGET h $1 $1 $1
HEXISTS h $1
HSTRLEN h $1
HLEN h
HSETEX h EX 100 FIELDS 1 $1 $2
HPEXPIRE h 50 FIELDS 1 $1
HEXPIRE h 100 NX FIELDS 2 $1 $1
HPEXPIRE h 200 GT FIELDS 1 $1
HPEXPIREAT h 1 FIELDS 1 $1
HPERSIST h FIELDS 2 $1 $1
HTTL h FIELDS 1 $1
HPTTL h FIELDS 2 $1 $1
HPEXPIRETIME h FIELDS 1 $1
HSETEX h FNX PX 300 FIELDS 1 $1 $2
HSETEX h FXX KEEPTTL FIELDS 2 $1 $2 $1 $2
HSETEX h FIELDS 1 $1 $2
HGETEX h FIELDS 1 $1
HGETEX h PX 90 FIELDS 2 $1 $1
HGETEX h PERSIST FIELDS 1 $1
HGETDEL h FIELDS 2 $1 $1
HGETALL h
HSCAN h 0 COUNT 1000
SADD s $1 $1
SREM s $1 $1
SISMEMBER s $1
SMISMEMBER s $1 $1
SMOVE s t $1
SMOVE t s $1
SCARD s
SMEMBERS t
SINTER s t
SADDEX s EX 100 MEMBERS 2 $1 $1
SADDEX s MXX KEEPTTL MEMBERS 1 $1
SADDEX s MNX PX 300 MEMBERS 1 $1
SADDEX s MEMBERS 1 $1
SPEXPIRE s 50 MEMBERS 1 $1
SEXPIRE s 100 NX MEMBERS 2 $1 $1
SPEXPIREAT s 1 MEMBERS 1 $1
SPERSIST s MEMBERS 2 $1 $1
STTL s MEMBERS 1 $1
SPEXPIRETIME s MEMBERS 2 $1 $1
ZADD z $3 $1 $3 $1
ZADD z XX CH $3 $1
ZADD z GT $3 $1
ZADD z NX $3 $1
ZADD z INCR $3 $1
ZINCRBY z $3 $1
ZREM z $1
ZREM z $1 $1 $1
ZSCORE z $1
ZMSCORE z $1 $1
ZCARD z
ZRANK z $1
ZRANGE z 0 3 WITHSCORES
ZRANGE z 0 -1 WITHSCORES
ZPOPMIN z
LLEN l
LINDEX l $2
LINDEX l -$2
LRANGE l $2 $2
LRANGE l -$2 -1
LRANGE l 0 3
LRANGE l 0 -1
LSET l $2 $1
LSET l -$2 $1
LPUSH l $1
LPUSH l $1 $1 $1 $1 $1
LPUSHX l $1
RPUSH l $1
RPUSH l $1 $1 $1 $1 $1
RPUSHX l $1
LPOP l
RPOP l
LPOP l $2
RPOP l $2
LSET l $2 a-longer-element
LSET l -$2 x
LTRIM l 2 -2
LTRIM l 0 -$2
LTRIM l $2 -1
LTRIM l 5 4
LPUSH m $1 $1 $1 $1 $1 $1 $1 $1 $1
LMOVE l m LEFT RIGHT
LMOVE m l RIGHT LEFT
RPOPLPUSH l l
RPOPLPUSH l m
LMOVE m l LEFT LEFT
LMOVEM l m RIGHT LEFT COUNT 3 BULK
LMOVEM m l LEFT RIGHT EXACTLY 2 OBO
LMOVEM l l LEFT RIGHT COUNT 3 OBO
BLMOVE l m LEFT RIGHT 0.2
BLMOVE m l RIGHT LEFT 0.2
BLMOVE l l LEFT RIGHT 0.2
BRPOPLPUSH l m 0.1
BRPOPLPUSH m m 0.1
BLMPOP 0.1 2 m l LEFT COUNT 3
BLMPOP 0.1 1 l RIGHT COUNT 2
BLPOP m l 0.1
BRPOP l 0.1
XREAD BLOCK 100 STREAMS x $
XREAD BLOCK 100 COUNT 2 STREAMS x $4
XREADGROUP GROUP g c BLOCK 100 COUNT 2 STREAMS x >
LREM l 1 $1
LINSERT l BEFORE $1 $1
LMOVE l l LEFT RIGHT
LMOVE l l RIGHT LEFT
XADD x * f $1
XADD x * f $1 g $1
XADD x MAXLEN ~ 40 * f $1
XADD x MAXLEN 40 * f $1
XADD x NOMKSTREAM * f $1
XADD x 1-1 f v
XLEN x
XRANGE x - + COUNT 3
XREVRANGE x + - COUNT 3
XRANGE x - +
XINFO STREAM x
XINFO GROUPS x
XINFO CONSUMERS x g
XREADGROUP GROUP g c COUNT 2 STREAMS x >
XREADGROUP GROUP g d COUNT $2 NOACK STREAMS x >
XREADGROUP GROUP g d COUNT 2 STREAMS x x > >
XREADGROUP GROUP g c COUNT 3 STREAMS x 0
XREADGROUP GROUP g c MAXSIZE 100 STREAMS x >
XREADGROUP GROUP g c CLAIM 50 COUNT 2 STREAMS x >
XREAD COUNT 2 STREAMS x 0
XREAD COUNT $2 STREAMS x $4
XREAD STREAMS x $4
XREAD STREAMS x +
XRANGE x $4 +
XRANGE x $4 $4
XRANGE x $4 $4 COUNT 2
XRANGE x $4 + COUNT $2
XREVRANGE x $4 - COUNT $2
XREVRANGE x $4 $4 COUNT 1
XREVRANGE x + $4
XTRIM x MAXLEN 30
XTRIM x MINID $4
XTRIM x MINID ~ $4
XTRIM x MAXLEN ~ 20 LIMIT 10
XTRIM x MAXLEN 20 ACKED
XADD x MINID $4 * f $1
XADD x MAXLEN 30 DELREF * f $1
XDEL x 1000000000000-0
XDEL x $4 $4
XDELEX x DELREF IDS 2 $4 $4
XACKDEL x g ACKED IDS 1 $4
XACK x g $4 $4
XPENDING x g
XPENDING x g - + 5
XCLAIM x g d 0 $4 $4
XCLAIM x g c 20 $4 FORCE JUSTID
XAUTOCLAIM x g c 10 0 COUNT 3
XNACK x g FAIL IDS 2 $4 $4 FORCE
XGROUP CREATE x h $4
XGROUP DESTROY x h
XGROUP SETID x g $4
XGROUP CREATECONSUMER x g $1
XGROUP DELCONSUMER x g c
XSETID x $4
OBJECT ENCODING $k
TYPE $k
EXISTS $k
COPY $k copy REPLACE
RENAME copy $k
PEXPIRE $k 400
PERSIST $k
DEL $k
EXPIRE $k 100
EVAL return{redis.call('HLEN','h'),redis.call('HSET','h',ARGV[1],'v')} 1 h $1
EVAL return{redis.call('LLEN','l'),redis.call('LPUSH','l',ARGV[1])} 1 l $1
SORT l ALPHA
WATCH $k
MULTI
EXEC
`), "\n")

// fillLarge returns commands that make the collections of largeTemplates large.
func fillLarge(r *rand.Rand) (input []byte) {
	add := func(words ...string) { input = append(input, request(words...)...) }
	for i := range 60 + r.IntN(100) {
		name := fmt.Sprint("n", i)
		add("HSET", "h", name, fmt.Sprint(i))
		add("SADD", "s", name)
		add("SADD", "t", fmt.Sprint("n", 2*i))
		add("ZADD", "z", fmt.Sprint(i%7), name)
		add("RPUSH", "l", name)
		add("XADD", "x", "*", "f", name)
	}
	add("XGROUP", "CREATE", "x", "g", "0")
	return input
}

// Commands that need only some parts of large collections read and change those without the other parts. They have
// the same replies and results as if everything is in memory, also after a restart.
func TestLargeCollectionsThatLeaveChangeNothing(t *testing.T) {
	rounds := uint64(20)
	switch {
	case fullTests():
		rounds = 400
	case testing.Short():
		rounds = 5
	}
	for seed := range rounds {
		r := rand.New(rand.NewPCG(seed, 7))
		fs := crashfs.Mem()
		with := openTiered(t, fs, 2)
		without := openTiered(t, crashfs.Mem(), 2, "maxmemory-policy=noeviction")
		fill := fillLarge(r)
		with.send(0, fill)
		without.send(0, fill)
		// Most commands of a round are on the same few keys, which then stay partly in memory.
		var templates []string
		for range 12 {
			templates = append(templates, largeTemplates[r.IntN(len(largeTemplates))])
		}
		names := 1 + r.IntN(200)
		word := func(kind byte) string {
			switch kind {
			case '1':
				return fmt.Sprint("n", r.IntN(names))
			case '2':
				return fmt.Sprint(r.IntN(12))
			case '3':
				return fmt.Sprint(r.IntN(20) - 5)
			case '4':
				return fmt.Sprint("1000000000000-", r.IntN(170))
			}
			return []string{"h", "s", "t", "z", "l", "x"}[r.IntN(6)]
		}
		for range 200 {
			client := r.IntN(2)
			switch r.IntN(16) {
			case 0, 1:
				with.leave()
			case 2:
				with.ks.Evict(with.ks.Now(), func() bool { return true })
			case 3:
				_ = with.storage.Begin() // fails if a checkpoint is under way
			case 4:
				ms := time.Duration(r.IntN(60)) * time.Millisecond
				with.clock.Advance(ms)
				without.clock.Advance(ms)
				require.Equal(t, sorted(without.settle()), sorted(with.settle()), "seed %d", seed)
			case 5:
				if r.IntN(6) == 0 && !without.clients[0].Waiting() {
					with.send(0, fill)
					without.send(0, fill)
				}
			}
			if without.clients[client].Waiting() {
				continue
			}
			var input []byte
			for more := 1 + r.IntN(2)*r.IntN(4); more > 0; more-- {
				line := templates[r.IntN(len(templates))]
				if r.IntN(8) == 0 {
					line = largeTemplates[r.IntN(len(largeTemplates))]
				}
				words := strings.Fields(line)
				for i, w := range words {
					if at := strings.IndexByte(w, '$'); at >= 0 && at+1 < len(w) {
						words[i] = w[:at] + word(w[at+1])
					}
				}
				input = append(input, request(words...)...)
				if blocks.MatchString(line) {
					break // the time at which later commands run would depend on other clients
				}
			}
			want, got := sorted(without.send(client, input)), sorted(with.send(client, input))
			for i := range want {
				require.True(t, want[i] == got[i], "seed %d, client %d: %q answers\n%q\n%q\n%s", seed, i, input, want[i], got[i], with.log.Found)
			}
		}
		now := without.ks.Now()
		want := withoutEncodings(dump(without.ks, now))
		if r.IntN(2) == 0 {
			with.close()
			with = openTiered(t, fs, 0)
			with.clock.Advance(time.UnixMilli(now).Sub(with.clock.Now()))
			require.Eventually(t, with.complete, time.Minute, time.Millisecond)
		}
		require.Equal(t, want, withoutEncodings(dump(with.ks, now)), "seed %d", seed)
		with.close()
		without.close()
	}
}

// complete reports whether all keys are known.
func (b *tiered) complete() bool {
	var g engine.Guard
	g.Lock(b.ks, engine.AllShards, b.ks.Now())
	defer g.Unlock()
	return g.Complete()
}

// Reads of values that are not in memory are counted and shown once, and the reads of a whole pipeline run in
// parallel.
func TestAPipelineWaitsOnceForItsValues(t *testing.T) {
	b := openTiered(t, crashfs.Mem(), 1)
	defer b.close()
	long := strings.Repeat("v", 500)
	var lines []string
	for i := range 10 {
		b.do(fmt.Sprint("SET k", i, " ", long))
		lines = append(lines, fmt.Sprint("GET k", i))
	}
	b.do("HSET h f "+long, "CONFIG RESETSTAT")
	b.leave()
	require.Equal(t, strings.Repeat("$500\r\n"+long+"\r\n", 10), b.do(lines...))
	left, came := b.stats()
	require.Equal(t, [2]int64{11, 10}, [2]int64{left, came})
	stats := b.do("INFO stats")
	for _, line := range []string{"keyspace_hits:10", "keyspace_misses:0", "tier_waits:1"} {
		require.Contains(t, stats, "\n"+line+"\r")
	}
	require.Contains(t, b.do("INFO commandstats"), "cmdstat_get:calls=10,")
}

// While values cannot leave memory because they are not stored yet, clients write the more slowly the fuller the
// memory is, and none stops until it is full. Reading continues.
func TestWritingSlowsDownUntilValuesCanLeave(t *testing.T) {
	b := openTiered(t, crashfs.Mem(), 2, "maxmemory=16mb")
	defer b.close()
	b.storage.SetCheckpointSize(math.MaxInt64)
	b.eviction.WithoutCheckpoints() // nor does the limit have a checkpoint made
	value := strings.Repeat("v", 10_000)
	written := 0
	// write writes a value, and returns how many ms it has waited, at most 10 s.
	write := func() (waited int64) {
		began := b.ks.Now()
		written++
		reply := b.do(fmt.Sprint("SET k", written, " ", value))
		for s := b.clients[0]; reply == "" && b.ks.Now()-began < 10_000; reply = b.settle()[0] {
			b.clock.Advance(time.Duration(s.Deadline()-b.ks.Now()) * time.Millisecond)
			s.Advance(b.ks.Now())
		}
		if reply != "" {
			require.Equal(t, "+OK\r\n", reply)
		}
		return b.ks.Now() - began
	}
	for b.Server.sessions.Excess() < 0 {
		require.Zero(t, write())
	}
	var sums [3]int64 // of waiting, in each third
	for e := b.Server.sessions.Excess(); e < 1; e = b.Server.sessions.Excess() {
		waited := write()
		sums[int(e*3)] += waited
		require.Less(t, waited, int64(1000+2))
	}
	require.Less(t, sums[0], int64(30))
	require.Greater(t, sums[1], 3*sums[0])
	require.Greater(t, sums[2], 3*sums[1])
	require.Greater(t, sums[2], int64(3000))
	require.Equal(t, int64(10_000), write()/session.TierPause*session.TierPause, "there is no room at all")
	require.Equal(t, "$1\r\nx\r\n", b.send(1, request("ECHO", "x"))[1])
	require.Len(t, b.send(1, request("GET", "k1"))[1], len(value)+len("$10000\r\n\r\n"))
	require.Equal(t, "$-1\r\n", b.send(1, request("GET", fmt.Sprint("k", written)))[1])

	require.NoError(t, b.storage.Save())
	b.eviction.HoldValues(false)
	b.clock.Advance(session.TierPause * time.Millisecond)
	require.Equal(t, "+OK\r\n", b.settle()[0])
	require.Zero(t, write())
}

// Scripts that may write wait too, whether or not they declare flags, and those that only read continue.
func TestScriptsWaitUntilValuesCanLeave(t *testing.T) {
	b := openTiered(t, crashfs.Mem(), 3, "maxmemory=1mb")
	defer b.close()
	b.storage.SetCheckpointSize(math.MaxInt64)
	b.eviction.WithoutCheckpoints() // nor does the limit have a checkpoint made
	write := "for i = 1, 100 do redis.call('SET', ARGV[1] .. i, string.rep('v', 1000)) end return 'written'"
	n := 0
	for b.Server.sessions.Excess() < 1 {
		n++
		reply := b.send(0, request("EVAL", write, "0", fmt.Sprint(n, ":")))[0]
		for s := b.clients[0]; reply == ""; reply = b.settle()[0] { // the client is throttled
			b.clock.Advance(time.Duration(s.Deadline()-b.ks.Now()) * time.Millisecond)
			s.Advance(b.ks.Now())
		}
		require.Equal(t, "$7\r\nwritten\r\n", reply)
	}
	require.Less(t, b.UsedMemory(), int64(1<<20+1<<20/8+200_000), "one script too many")
	require.Empty(t, b.send(0, request("EVAL", write, "0", "undeclared:"))[0])
	require.Empty(t, b.send(1, request("EVAL", "#!lua\n"+write, "0", "declared:"))[1])
	require.Equal(t, "$-1\r\n", b.send(2, request("EVAL_RO", "return redis.call('GET', 'undeclared:1')", "0"))[2])
	require.Equal(t, "$-1\r\n",
		b.send(2, request("EVAL", "#!lua flags=no-writes\nreturn redis.call('GET', 'declared:1')", "0"))[2])

	require.NoError(t, b.storage.Save())
	b.eviction.HoldValues(false)
	var replies [2]string
	for range 1000 {
		b.clock.Advance(session.TierPause * time.Millisecond)
		all := b.settle()
		replies[0], replies[1] = replies[0]+all[0], replies[1]+all[1]
	}
	require.Equal(t, [2]string{"$7\r\nwritten\r\n", "$7\r\nwritten\r\n"}, replies)
}

// Commands that need no old value do not read it.
func TestWhatIsOverwrittenIsNotRead(t *testing.T) {
	b := openTiered(t, crashfs.Mem(), 1)
	defer b.close()
	long := strings.Repeat("v", 5000)
	for _, line := range []string{"SET k 1", "DEL k", "UNLINK k", "EXISTS k", "TYPE k", "PTTL k", "EXPIRE k 100",
		"MSET k 1", "GETSET other 1", "PERSIST k", "TOUCH k"} {
		b.do("SET k " + long)
		b.leave()
		_, before := b.stats()
		b.do(line)
		_, after := b.stats()
		require.Equal(t, before, after, line)
	}
}

// Only a few elements are read of a large collection that is not in memory.
func TestElementsOfWhatIsAwayAreRead(t *testing.T) {
	b := openTiered(t, crashfs.Mem(), 1)
	defer b.close()
	long := strings.Repeat("v", 100)
	var input []byte
	for i := range 2000 {
		field := fmt.Sprint("field:", i)
		input = append(input, request("HSET", "h", field, long+field)...)
		input = append(input, request("HSET", "due", field, long+field)...)
		input = append(input, request("ZADD", "z", fmt.Sprint(i), field)...)
		input = append(input, request("SADD", "s", field)...)
		input = append(input, request("XADD", "x", fmt.Sprint(i+1), "f", "v")...)
		input = append(input, request("RPUSH", "l", field)...)
	}
	b.send(0, input)
	b.do("HPEXPIRE due 5000 FIELDS 2 field:3 field:4")
	b.leave()
	value := func(i int) string { return fmt.Sprintf("$107\r\n%sfield:%d\r\n", long, i) }
	entry := func(i int) string {
		id := fmt.Sprint(i, "-0")
		return fmt.Sprintf("*2\r\n$%d\r\n%s\r\n*2\r\n$1\r\nf\r\n$1\r\nv\r\n", len(id), id)
	}
	for line, want := range map[string]string{
		"HGET h field:7": value(7), "HGET h none": "$-1\r\n", "HEXISTS h field:8": ":1\r\n", "HEXISTS h none": ":0\r\n",
		"HMGET h field:9 none field:5": "*3\r\n" + value(9) + "$-1\r\n" + value(5), "HSTRLEN h field:1": ":107\r\n",
		"HGET due field:3": value(3), "HGET due field:5": value(5), "ZSCORE z field:10": "$2\r\n10\r\n",
		"ZSCORE z none": "$-1\r\n", "ZMSCORE z none field:7 field:7": "*3\r\n$-1\r\n$1\r\n7\r\n$1\r\n7\r\n",
		"SISMEMBER s field:1": ":1\r\n", "SISMEMBER s none": ":0\r\n",
		"SMISMEMBER s none field:3": "*2\r\n:0\r\n:1\r\n",
		"XRANGE x 700 701":          "*2\r\n" + entry(700) + entry(701), "XRANGE x - + COUNT 1": "*1\r\n" + entry(1),
		"XREVRANGE x + - COUNT 2": "*2\r\n" + entry(2000) + entry(1999), "XREVRANGE x 4 3": "*2\r\n" + entry(4) + entry(3),
		"XRANGE x 5000 +": "*0\r\n", "XRANGE x 9 8": "*0\r\n", "XREVRANGE x 8 9": "*0\r\n",
		"TYPE h": "+hash\r\n", "HGET z a": "-WRONGTYPE Operation against a key holding the wrong kind of value\r\n",
	} {
		require.Equal(t, want, b.do(line), line)
		if line[0] != 'X' { // streams are read completely before a transaction
			require.Equal(t, want, b.do("MULTI", line, "EXEC")[len("+OK\r\n+QUEUED\r\n*1\r\n"):], line)
		}
	}
	for _, pair := range [][2]string{
		{"HLEN h", ":2000\r\n"}, {"SCARD s", ":2000\r\n"}, {"ZCARD z", ":2000\r\n"}, {"XLEN x", ":2000\r\n"},
		{"LLEN l", ":2000\r\n"}, {"OBJECT ENCODING h", "$9\r\nhashtable\r\n"},
		{"OBJECT ENCODING z", "$8\r\nskiplist\r\n"}, {"OBJECT ENCODING s", "$9\r\nhashtable\r\n"},
		{"OBJECT IDLETIME h", ":0\r\n"},
		{"LINDEX l 3", "$7\r\nfield:3\r\n"}, {"LINDEX l -1", "$10\r\nfield:1999\r\n"},
		{"LRANGE l 1 2", "*2\r\n$7\r\nfield:1\r\n$7\r\nfield:2\r\n"}, {"LRANGE l 5 4", "*0\r\n"},
		{"LRANGE l -2 -1", "*2\r\n$10\r\nfield:1998\r\n$10\r\nfield:1999\r\n"},
		{"LPUSH l a b", ":2002\r\n"}, {"RPUSHX l c", ":2003\r\n"}, {"LPOP l 3", "*3\r\n$1\r\nb\r\n$1\r\na\r\n$7\r\nfield:0\r\n"},
		{"RPOP l", "$1\r\nc\r\n"}, {"RPOP l", "$10\r\nfield:1999\r\n"}, {"LINDEX l 0", "$7\r\nfield:1\r\n"},
		{"LLEN l", ":1998\r\n"},
		{"HSET h field:1 a new b", ":1\r\n"}, {"HLEN h", ":2001\r\n"}, {"HGET h field:1", "$1\r\na\r\n"},
		{"HDEL h field:1 field:2 none", ":2\r\n"}, {"HSETNX h field:1 c", ":1\r\n"}, {"HLEN h", ":2000\r\n"},
		{"HINCRBY h n 5", ":5\r\n"}, {"HINCRBYFLOAT h n 0.5", "$3\r\n5.5\r\n"}, {"HMGET h n field:2", "*2\r\n$3\r\n5.5\r\n$-1\r\n"},
		{"SADD s field:1 new", ":1\r\n"}, {"SREM s field:1 none", ":1\r\n"}, {"SMISMEMBER s field:1 new", "*2\r\n:0\r\n:1\r\n"},
		{"SCARD s", ":2000\r\n"}, {"ZADD z CH 5 field:1 6 field:6 7 new", ":2\r\n"}, {"ZINCRBY z 1 field:1", "$1\r\n6\r\n"},
		{"ZREM z field:1 field:2", ":2\r\n"}, {"ZCARD z", ":1999\r\n"}, {"ZSCORE z field:1", "$-1\r\n"},
	} {
		require.Equal(t, pair[1], b.do(pair[0]), pair[0])
	}
	_, came := b.stats()
	require.Zero(t, came, "as a whole")
	b.leave() // changed values are stored and leave memory
	require.Equal(t, "$1\r\nc\r\n:2001\r\n:2000\r\n:1999\r\n", b.do("HGET h field:1", "HLEN h", "SCARD s", "ZCARD z"))
	require.Equal(t, "$1\r\n6\r\n*2\r\n:0\r\n:1\r\n", b.do("ZSCORE z field:6", "SMISMEMBER s field:1 new"))
	require.Equal(t, "$7\r\nfield:1\r\n$7\r\nfield:8\r\n:1997\r\n", b.do("LPOP l", "LINDEX l 6", "LLEN l"))
	_, came = b.stats()
	require.Zero(t, came, "as a whole")
	b.clock.Advance(4 * time.Second)
	require.Equal(t, value(3), b.do("HGET due field:3"))
	b.clock.Advance(time.Second)
	require.Equal(t, "$-1\r\n", b.do("HGET due field:3"))

	// The elements read are the stored ones, even if the key changes meanwhile.
	require.Equal(t, ":0\r\n"+value(8)+"$3\r\nnew\r\n", b.do("HSET h field:7 new", "HGET h field:8", "HGET h field:7"))
	b.leave()
	require.Equal(t, "$3\r\nnew\r\n", b.do("HGET h field:7"))
	require.Equal(t, "+OK\r\n$3\r\nnew\r\n$-1\r\n", b.do("RENAME h g", "HGET g field:7", "HGET h field:7"))
}

// The number of parts that commands read of large collections that are not in memory.
func TestCommandsReadFewPartsOfWhatIsAway(t *testing.T) {
	b := openTiered(t, crashfs.Mem(), 1)
	defer b.close()
	var input []byte
	for i := range 2000 {
		name := fmt.Sprint("n", i)
		for _, key := range []string{"h", "due"} {
			input = append(input, request("HSET", key, name, "v")...)
		}
		for _, key := range []string{"l", "m"} { // with four elements in a block
			input = append(input, request("RPUSH", key, name)...)
		}
		input = append(input, request("SADD", "s", name)...)
		input = append(input, request("XADD", "x", fmt.Sprint(i+1), "f", "v")...) // with three entries in a block
	}
	b.send(0, input)
	b.do("XGROUP CREATE x g 1000", "XGROUP CREATE x h 0")
	entries := func(ids ...int) string {
		reply := fmt.Sprintf("*%d\r\n", len(ids))
		for _, id := range ids {
			text := fmt.Sprint(id, "-0")
			reply += fmt.Sprintf("*2\r\n$%d\r\n%s\r\n*2\r\n$1\r\nf\r\n$1\r\nv\r\n", len(text), text)
		}
		return reply
	}
	ofX := "*1\r\n*2\r\n$1\r\nx\r\n"
	b.do("HPEXPIRE due 500000 FIELDS 1 n5")
	for _, row := range []struct {
		line, reply string
		parts       int64
	}{
		{"HGET h n1", "$1\r\nv\r\n", 1},
		{"HTTL h FIELDS 2 n1 n2", "*2\r\n:-1\r\n:-1\r\n", 2},
		{"HPTTL due FIELDS 1 n5", "*1\r\n:500000\r\n", 1},
		{"HPEXPIRETIME due FIELDS 2 n5 none", "*2\r\n:1000000500000\r\n:-2\r\n", 2},
		{"HEXPIRE h 100 FIELDS 2 n1 n2", "*2\r\n:1\r\n:1\r\n", 2},
		{"HPEXPIRE due 700000 GT FIELDS 1 n5", "*1\r\n:1\r\n", 1},
		{"HTTL h FIELDS 2 n1 n3", "*2\r\n:100\r\n:-1\r\n", 2},
		{"HPERSIST due FIELDS 1 n5", "*1\r\n:1\r\n", 1},
		{"HGETEX h EX 200 FIELDS 1 n6", "*1\r\n$1\r\nv\r\n", 1},
		{"HSETEX h FXX EX 50 FIELDS 1 n7 w", ":1\r\n", 1},
		{"HGETDEL h FIELDS 2 n6 n7", "*2\r\n$1\r\nv\r\n$1\r\nw\r\n", 2},
		{"HLEN h", ":1998\r\n", 0},
		{"STTL s MEMBERS 2 n1 none", "*2\r\n:-1\r\n:-2\r\n", 2},
		{"SEXPIRE s 100 MEMBERS 1 n1", "*1\r\n:1\r\n", 1},
		{"SADDEX s PX 700000 MEMBERS 1 n2", ":1\r\n", 1},
		{"STTL s MEMBERS 2 n1 n2", "*2\r\n:100\r\n:700\r\n", 2},
		{"SPERSIST s MEMBERS 1 n2", "*1\r\n:1\r\n", 1},
		// One more part has the state of a list that is not in its nodes.
		{"LSET l 9 a", "+OK\r\n", 4},
		{"LSET l -9 a", "+OK\r\n", 4},
		{"LSET l 5000 a", "-ERR index out of range\r\n", 0},
		{"LINDEX l 9", "$1\r\na\r\n", 4},
		{"LTRIM l 1 -3", "+OK\r\n", 4},
		{"LLEN l", ":1997\r\n", 0},
		{"LTRIM l 0 -1", "+OK\r\n", 0},
		{"LMOVE l l LEFT RIGHT", "$2\r\nn1\r\n", 4},
		{"LMOVE l m RIGHT RIGHT", "$2\r\nn1\r\n", 4},
		{"RPOPLPUSH m m", "$2\r\nn1\r\n", 5},
		{"LMOVEM m l LEFT RIGHT COUNT 3 BULK", "*3\r\n$2\r\nn1\r\n$2\r\nn0\r\n$2\r\nn1\r\n", 5},
		{"LTRIM m 5 2", "+OK\r\n", 0},
		// Three more parts, four once there is a consumer, have the state of a stream that is not in its entries.
		{"XADD x 2001 f v", "$6\r\n2001-0\r\n", 4},
		{"XADD x 2001 f v", "-ERR The ID specified in XADD is equal or smaller than the target stream top item\r\n", 4},
		{"XADD x MAXLEN 2000 2002 f v", "$6\r\n2002-0\r\n", 5},
		{"XADD x MAXLEN ~ 1998 2003 f v", "$6\r\n2003-0\r\n", 6},
		{"XADD x MINID 7 2004 f v", "$6\r\n2004-0\r\n", 6},
		{"XLEN x", ":1998\r\n", 0},
		{"XTRIM x MAXLEN 2500", ":0\r\n", 4},
		{"XTRIM x MINID ~ 10", ":3\r\n", 6},
		{"XRANGE x 700 701", entries(700, 701), 4},
		{"XRANGE x - + COUNT 2", entries(10, 11), 4},
		{"XREVRANGE x + - COUNT 3", entries(2004, 2003, 2002), 4},
		{"XREAD STREAMS x 2002", ofX + entries(2003, 2004), 4},
		{"XREAD COUNT 2 STREAMS x 1000", ofX + entries(1001, 1002), 4},
		{"XREAD STREAMS x $", "*-1\r\n", 4},
		{"XREAD STREAMS x +", ofX + entries(2004), 4},
		{"XREADGROUP GROUP g c COUNT 2 STREAMS x >", ofX + entries(1001, 1002), 5},
		{"XREADGROUP GROUP g c COUNT 2 STREAMS x >", ofX + entries(1003, 1004), 9},
		{"XREADGROUP GROUP g c STREAMS x 0", ofX + entries(1001, 1002, 1003, 1004), 12},
		{"XPENDING x g - + 1", "*1\r\n*4\r\n$6\r\n1001-0\r\n$1\r\nc\r\n:0\r\n:2\r\n", 8},
		{"XACK x g 1001 1002 1003", ":3\r\n", 8},
		{"XDEL x 1500", ":1\r\n", 6},
		{"XCLAIM x g d 0 1004 JUSTID", "*1\r\n$6\r\n1004-0\r\n", 6},
		{"XGROUP SETID x h $", "+OK\r\n", 6},
		{"XLEN x", ":1994\r\n", 0},
	} {
		b.leave()
		before := b.loadedParts()
		require.Equal(t, row.reply, b.do(row.line), row.line)
		require.Equal(t, row.parts, b.loadedParts()-before, row.line)
	}
	_, came := b.stats()
	require.Zero(t, came, "as a whole")
	require.Equal(t, entries(1499, 1501)+entries(2004), b.do("XRANGE x 1499 1501", "XREVRANGE x + - COUNT 1"))
	require.Equal(t, ":0\r\n*3\r\n:-2\r\n:-2\r\n:100\r\n", b.do("EXISTS m", "HTTL h FIELDS 3 n6 n7 n2"))
	b.clock.Advance(101 * time.Second)
	require.Equal(t, "*3\r\n$-1\r\n$-1\r\n$1\r\nv\r\n:1996\r\n", b.do("HMGET h n1 n2 n3", "HLEN h"))
}

// loadedParts returns how many parts of values have been read without the others.
func (b *tiered) loadedParts() int64 {
	var g engine.Guard
	g.Lock(b.ks, engine.AllShards, b.ks.Now())
	defer g.Unlock()
	return g.Stats().LoadedParts
}
