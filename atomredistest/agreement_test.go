package atomredistest_test

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/atomredis/atomredis"
	"github.com/atomredis/atomredis/atomredistest"
	"github.com/atomredis/atomredis/internal/testing/testseed"
)

// commandForms are commands of all types of keys. A word in braces stands for one of the words of that name in
// commandWords. No command has a random effect; only those in unordered return elements in any order.
var commandForms = []string{
	"SET {str} {word}", "SET {str} {word} EX 2000 GET", "GET {str}", "APPEND {str} {word}", "SETRANGE {str} {n} {word}",
	"GETRANGE {str} 1 -2", "GETDEL {str}",
	"MSET {str} {word} {str} {word}", "MGET {str} {num} {list}", "STRLEN {any}", "INCRBY {num} {n}",
	"INCRBYFLOAT {num} {score}", "INCR {any}",
	"SETBIT {bits} {n} 1", "SETBIT {bits} {n} 0", "BITCOUNT {bits}", "BITPOS {bits} 1", "BITOP XOR {bits} {bits} {bits}",
	"BITFIELD {bits} INCRBY u8 {n} 200 GET i5 {n}",
	"PFADD {hll} {word} {word}", "PFCOUNT {hll} {hll}", "PFMERGE {hll} {hll}",
	"RPUSH {list} {word} {word}", "LPUSH {any} {word}", "LPOP {list}", "RPOP {list} 2", "LRANGE {list} 0 -1",
	"LREM {list} 1 {word}", "LSET {list} 0 {word}",
	"LMOVE {list} {list} LEFT RIGHT", "LPOS {list} {word} COUNT 0", "LTRIM {list} 0 5",
	"SADD {set} {word} {word}", "SADD {any} {n}", "SREM {set} {word}", "SMEMBERS {set}", "SISMEMBER {set} {word}",
	"SMISMEMBER {set} {word} {n}", "SINTER {set} {set}",
	"SUNIONSTORE {set} {set} {set}", "SMOVE {set} {set} {word}", "SCARD {any}",
	"HSET {hash} {word} {word} {word} {n}", "HGET {hash} {word}", "HGETALL {hash}", "HKEYS {hash}",
	"HMGET {hash} {word} {word}", "HDEL {hash} {word}",
	"HINCRBY {hash} count {n}", "HEXPIRE {hash} 2000 FIELDS 2 {word} count", "HTTL {hash} FIELDS 1 {word}",
	"HPERSIST {hash} FIELDS 1 {word}",
	"ZADD {zset} {score} {word} {n} {word}", "ZINCRBY {zset} {score} {word}", "ZSCORE {zset} {word}",
	"ZRANGE {zset} 0 -1 WITHSCORES", "ZRANK {zset} {word}",
	"ZREM {zset} {word}", "ZPOPMIN {zset}", "ZRANGEBYSCORE {zset} 2 (9",
	"ZUNIONSTORE {zset} 2 {zset} {zset} WEIGHTS 2 1", "ZMSCORE {zset} {word} {word}",
	"GEOADD {geo} 13.36{n} 38.1 {word} 15.08{n} 37.5 {word}", "GEOPOS {geo} {word} {word}",
	"GEODIST {geo} {word} {word} km", "GEOHASH {geo} {word}",
	"GEOSEARCH {geo} FROMLONLAT 15 37 BYRADIUS 200 km ASC WITHDIST",
	"XADD {stream} * f {word}", "XADD {stream} MAXLEN 4 * f {word} g {n}", "XRANGE {stream} - +", "XLEN {stream}",
	"XREAD COUNT 2 STREAMS {stream} {stream} 0 0", "XTRIM {stream} MAXLEN 2",
	"XGROUP CREATE {stream} readers 0 MKSTREAM", "XREADGROUP GROUP readers me COUNT 1 STREAMS {stream} >",
	"XPENDING {stream} readers", "XACK {stream} readers 0-1",
	"EXPIRE {any} 3000", "PERSIST {any}", "PTTL {any}", "TYPE {any}", "EXISTS {any} {any}", "DEL {any}",
	"RENAME {any} {any}", "COPY {any} {any} REPLACE", "DBSIZE", "KEYS *",
	"SORT {list} ALPHA DESC", "EVAL return{redis.call('set',KEYS[1],ARGV[1]),1,false} 1 {str} {word}",
	"EVAL return#redis.call('hgetall',KEYS[1]) 1 {any}", "NOSUCH {any}", "GET",
}

var unordered = []string{"SMEMBERS", "SINTER", "KEYS", "HKEYS", "HGETALL", "EVAL"}

var commandWords = map[string][]string{
	"str": {"str1", "str2"}, "num": {"num1", "num2"}, "bits": {"bits1", "bits2"}, "hll": {"hll1", "hll2"},
	"list": {"list1", "list2"}, "set": {"set1", "set2"},
	"hash": {"hash1", "hash2"}, "zset": {"zset1", "zset2"}, "geo": {"geo1", "geo2"}, "stream": {"stream1", "stream2"},
	"any":  {"str1", "num1", "bits1", "hll1", "list1", "set1", "hash1", "zset1", "geo1", "stream1", "none"},
	"word": {"", "a", "b", "c", "\x00\r\n\xff", "12", strings.Repeat("long", 300)}, "n": {"0", "1", "7", "100"},
	"score": {"0.1", "-3", "1e10", "2.5"},
}

// randomCommand draws a command of commandForms with words of commandWords.
var randomCommand = rapid.Custom(func(t *rapid.T) []any {
	var args []any
	for _, word := range strings.Fields(rapid.SampledFrom(commandForms).Draw(t, "form")) {
		open, end := strings.IndexByte(word, '{'), strings.IndexByte(word, '}')
		if open >= 0 && end > open {
			if words := commandWords[word[open+1:end]]; words != nil {
				word = word[:open] + rapid.SampledFrom(words).Draw(t, "word") + word[end+1:]
			}
		}
		args = append(args, strings.ReplaceAll(word, "#", " "))
	}
	return args
})

// property is a testing.TB that reports failures to a property.
type property struct {
	testing.TB
	t *rapid.T
}

func (p property) Helper()                           {}
func (p property) FailNow()                          { p.t.FailNow() }
func (p property) Errorf(format string, args ...any) { p.t.Errorf(format, args...) }
func (p property) Fatalf(format string, args ...any) { p.t.Fatalf(format, args...) }

// The same operations, by the methods of a server in the test and by a client library over TCP, have the same replies
// and lead to the same data. The methods and the library also read the same data.
func TestHelpersAndProtocolAgree(t *testing.T) {
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	servers := [2]*atomredistest.Server{} // for the methods, for the library
	for i := range servers {
		servers[i] = atomredistest.RunOptions(t, atomredis.Options{Clock: atomredistest.NewClock(start), Addr: "127.0.0.1:0"})
	}
	direct, remote := servers[0], servers[1]
	var databases [2]*atomredis.DB
	var clients [2][2]*redis.Client // by database, and protocol less 2
	for n := range databases {
		var err error
		databases[n], err = direct.Database(n)
		require.NoError(t, err)
		for p := range clients[n] {
			clients[n][p] = redis.NewClient(&redis.Options{Addr: remote.Addr(), DB: n, Protocol: p + 2, PoolSize: 1})
			defer clients[n][p].Close()
		}
	}
	testseed.Check(t, func(rt *rapid.T) {
		tb := property{t, rt}
		for _, s := range servers {
			s.MustDo(tb, "FLUSHALL")
			s.SetTime(start)
		}
		for range rapid.IntRange(1, 60).Draw(rt, "steps") {
			n, p := rapid.IntRange(0, 1).Draw(rt, "database"), rapid.IntRange(0, 1).Draw(rt, "protocol")
			commands := rapid.SliceOfN(randomCommand, 1, 4).Draw(rt, "commands")
			switch rapid.IntRange(0, 8).Draw(rt, "way") {
			case 0:
				many(tb, databases[n], clients[n][p], commands)
			case 1:
				transaction(tb, databases[n], clients[n][p], commands)
			case 2:
				d := rapid.SampledFrom([]time.Duration{time.Millisecond, time.Minute, 20 * time.Minute}).Draw(rt, "time")
				for _, s := range servers {
					s.FastForward(d)
				}
			case 3:
				at := start.Add(time.Duration(rapid.IntRange(0, 7200).Draw(rt, "second")) * time.Second)
				for _, s := range servers {
					s.SetTime(at)
				}
			default:
				reply, err := databases[n].Do(tb.Context(), commands[0]...)
				got, gotErr := clients[n][p].Do(tb.Context(), commands[0]...).Result()
				agree(tb, p+2, commands[0], reply, err, got, gotErr)
			}
		}
		require.Equal(tb, direct.Dump(tb), remote.Dump(tb))
		for n := range databases {
			want := contents(tb, clients[n][1])
			for _, s := range servers {
				require.True(tb, s.CheckDatabase(tb, n, want))
			}
		}
	})
}

// many executes commands with DoMany and as a pipeline, and compares the replies.
func many(t testing.TB, db *atomredis.DB, c *redis.Client, commands [][]any) {
	var list []atomredis.Args
	pipe := c.Pipeline()
	var sent []*redis.Cmd
	for _, args := range commands {
		list = append(list, args)
		sent = append(sent, pipe.Do(t.Context(), args...))
	}
	replies, err := db.DoMany(t.Context(), list...)
	require.NoError(t, err)
	require.Len(t, replies, len(commands))
	pipe.Exec(t.Context())
	for i, args := range commands {
		agree(t, c.Options().Protocol, args, replies[i], replies[i].Err(), sent[i].Val(), sent[i].Err())
	}
}

// transaction executes commands with Tx, and between MULTI and EXEC. Both execute nothing if one command cannot be
// queued.
func transaction(t testing.TB, db *atomredis.DB, c *redis.Client, commands [][]any) {
	var replies []*atomredis.Reply
	err := db.Tx(t.Context(), func(tx *atomredis.Tx) error {
		replies = nil
		for _, args := range commands {
			replies = append(replies, tx.Do(args...))
		}
		return nil
	})
	pipe := c.TxPipeline()
	var sent []*redis.Cmd
	for _, args := range commands {
		sent = append(sent, pipe.Do(t.Context(), args...))
	}
	_, gotErr := pipe.Exec(t.Context())
	if gotErr != nil && strings.HasPrefix(gotErr.Error(), "EXECABORT") {
		require.Error(t, err)
		require.ErrorIs(t, replies[0].Err(), nil)
		_, err := replies[0].Text()
		require.ErrorIs(t, err, atomredis.ErrNoReply)
		return
	}
	for i, args := range commands {
		agree(t, c.Options().Protocol, args, *replies[i], replies[i].Err(), sent[i].Val(), sent[i].Err())
	}
}

// agree compares the reply of Do with the value that a client library returns. Do has the types of RESP3. A reply in
// RESP2 has another shape, so only its strings and numbers are compared.
func agree(t testing.TB, protocol int, args []any, reply atomredis.Reply, err error, got any, gotErr error) {
	if gotErr == redis.Nil {
		got, gotErr = nil, nil
	}
	if gotErr != nil {
		require.EqualError(t, err, gotErr.Error(), "%q", args)
		return
	}
	require.NoError(t, err, "%q", args)
	want, have := leaves(got), replyLeaves(t, reply)
	if protocol == 3 {
		want, have = describe(got), converted(t, reply, got)
	}
	if slices.Contains(unordered, args[0].(string)) {
		slices.Sort(want)
		slices.Sort(have)
	}
	require.Equal(t, want, have, "%q", args)
}

// leaves returns the strings and numbers in a client library's value.
func leaves(v any) []string {
	switch v := v.(type) {
	case nil:
		return []string{"null"}
	case error:
		return []string{"error " + v.Error()}
	case []any:
		var out []string
		for _, e := range v {
			out = append(out, leaves(e)...)
		}
		return out
	}
	return []string{fmt.Sprint(v)}
}

// replyLeaves is leaves for a Reply.
func replyLeaves(t testing.TB, r atomredis.Reply) []string {
	if r.IsNull() {
		return leaves(nil)
	}
	if err := r.Err(); err != nil {
		return leaves(err)
	}
	elements, err := r.Slice()
	if err != nil {
		return []string{textOf(t, r)}
	}
	var out []string
	for _, e := range elements {
		out = append(out, replyLeaves(t, e)...)
	}
	return out
}

// describe returns a line for each part of a client library's value.
func describe(v any) []string {
	switch v := v.(type) {
	case nil:
		return []string{"null"}
	case error:
		return []string{"error " + v.Error()}
	case []any:
		out := []string{fmt.Sprint("elements ", len(v))}
		for _, e := range v {
			out = append(out, describe(e)...)
		}
		return out
	case map[any]any:
		out := []string{fmt.Sprint("map ", len(v))}
		for key, e := range v {
			out = append(out, fmt.Sprintf("%q: %q", key, describe(e)))
		}
		slices.Sort(out)
		return out
	}
	return []string{fmt.Sprintf("%T %v", v, v)}
}

// converted is describe for a Reply, read with the accessors for the type that the library returned.
func converted(t testing.TB, r atomredis.Reply, like any) []string {
	var v any
	var err error
	switch like := like.(type) {
	case nil:
		require.True(t, r.IsNull(), "%v", r)
		_, err := r.Text()
		require.ErrorIs(t, err, atomredis.ErrNull)
		return describe(nil)
	case error:
		return describe(error(r.Err()))
	case string:
		var b []byte
		b, err = r.Bytes()
		v = string(b)
	case int64:
		v, err = r.Int()
	case float64:
		v, err = r.Float()
	case bool:
		v, err = r.Bool()
	case []any:
		elements, err := r.Slice()
		require.NoError(t, err)
		out := []string{fmt.Sprint("elements ", len(elements))}
		for i, e := range elements {
			if i < len(like) {
				out = append(out, converted(t, e, like[i])...)
			}
		}
		return out
	case map[any]any:
		elements, err := r.Map()
		require.NoError(t, err)
		out := []string{fmt.Sprint("map ", len(elements))}
		for key, e := range elements {
			out = append(out, fmt.Sprintf("%q: %q", key, converted(t, e, like[key])))
		}
		slices.Sort(out)
		return out
	}
	require.NoError(t, err)
	return describe(v)
}

// contents reads all keys of a client's database, as CheckDatabase expects them.
func contents(t testing.TB, c *redis.Client) map[string]any {
	ctx := t.Context()
	all := map[string]any{}
	for _, key := range c.Keys(ctx, "*").Val() {
		var err error
		switch kind := c.Type(ctx, key).Val(); kind {
		case "string":
			all[key], err = c.Get(ctx, key).Result()
		case "list":
			all[key], err = c.LRange(ctx, key, 0, -1).Result()
		case "set":
			var members []string
			members, err = c.SMembers(ctx, key).Result()
			all[key] = atomredistest.Set(members)
		case "hash":
			all[key], err = c.HGetAll(ctx, key).Result()
		case "zset":
			scores := map[string]float64{}
			var members []redis.Z
			members, err = c.ZRangeWithScores(ctx, key, 0, -1).Result()
			for _, z := range members {
				scores[z.Member.(string)] = z.Score
			}
			all[key] = scores
		case "stream":
			entries := []atomredistest.Entry{}
			var reply []any
			reply, err = c.Do(ctx, "XRANGE", key, "-", "+").Slice() // the library's own type loses the order of fields
			for _, e := range reply {
				parts := e.([]any)
				entry := atomredistest.Entry{ID: parts[0].(string)}
				for _, word := range parts[1].([]any) {
					entry.Fields = append(entry.Fields, word.(string))
				}
				entries = append(entries, entry)
			}
			all[key] = entries
		default:
			require.Fail(t, "the type is "+strconv.Quote(kind))
		}
		require.NoError(t, err)
	}
	return all
}
