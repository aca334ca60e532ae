// Exchanges random values of all types with the server of the oracle: by DUMP and RESTORE, and by replication, both ways.

package conformance

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/atomredis/atomredis/internal/testing/oracle"
	"github.com/atomredis/atomredis/internal/testing/testseed"
)

// exchangedVariable is the environment variable with the number of values of each type.
const exchangedVariable = "ATOMREDIS_EXCHANGED"

// exchangedKind makes random values of a type, and shows them.
type exchangedKind struct {
	needs string // a command that the other server must have; "" for those of all
	make  func(r *rand.Rand, key string) [][]any
	// views are commands whose replies describe a value. Those whose order means nothing begin with "sorted".
	views func(key string) [][]any
	// streamed are those that are the same if two servers execute the same commands; nil means all.
	streamed func(key string) [][]any
}

func words(list ...any) []any { return list }

// randomText is a random string that may be compressible, a number, or long.
func randomText(r *rand.Rand) string {
	switch r.IntN(6) {
	case 0:
		return strconv.FormatInt(r.Int64()>>r.IntN(64)*int64(1-2*r.IntN(2)), 10)
	case 1:
		return strings.Repeat(string(rune('a'+r.IntN(26))), r.IntN(3000))
	case 2:
		return ""
	}
	b := make([]byte, r.IntN(70))
	for i := range b {
		b[i] = byte(r.IntN(256))
	}
	return string(b)
}

// several returns the results of n calls.
func several(n int, one func(i int) []any) (list []any) {
	for i := range n {
		list = append(list, one(i)...)
	}
	return list
}

// length is a number of elements: mostly few, at times more than compact forms have.
func length(r *rand.Rand) int {
	if r.IntN(8) == 0 {
		return 1 + r.IntN(700)
	}
	return 1 + r.IntN(12)
}

var exchangedKinds = map[string]exchangedKind{
	"string": {
		make:  func(r *rand.Rand, key string) [][]any { return [][]any{words("SET", key, randomText(r))} },
		views: func(key string) [][]any { return [][]any{words("GET", key)} },
	},
	"list": {
		make: func(r *rand.Rand, key string) [][]any {
			return [][]any{append(words("RPUSH", key), several(length(r), func(int) []any {
				if r.IntN(200) == 0 {
					return words(strings.Repeat("long", 3000))
				}
				return words(randomText(r))
			})...)}
		},
		views: func(key string) [][]any { return [][]any{words("LRANGE", key, 0, -1)} },
	},
	"set": {
		make: func(r *rand.Rand, key string) [][]any {
			numbers := r.IntN(2) == 0
			return [][]any{append(words("SADD", key), several(length(r), func(int) []any {
				if numbers {
					return words(r.Int64() >> r.IntN(64))
				}
				return words(randomText(r))
			})...)}
		},
		views: func(key string) [][]any { return [][]any{words("sorted", "SMEMBERS", key)} },
	},
	"zset": {
		make: func(r *rand.Rand, key string) [][]any {
			return [][]any{append(words("ZADD", key), several(length(r), func(int) []any {
				score := []any{r.IntN(5), r.NormFloat64(), "inf", "-inf", r.Int64(), 1e300 * r.Float64()}[r.IntN(6)]
				return words(score, randomText(r))
			})...)}
		},
		views: func(key string) [][]any { return [][]any{words("ZRANGE", key, 0, -1, "WITHSCORES")} },
	},
	"hash": {
		make: func(r *rand.Rand, key string) [][]any {
			return [][]any{append(words("HSET", key), several(length(r), func(int) []any {
				return words(randomText(r), randomText(r))
			})...)}
		},
		views: func(key string) [][]any { return [][]any{words("sorted", "HGETALL", key)} },
	},
	"hash with deadlines": {
		needs: "hpexpire",
		make: func(r *rand.Rand, key string) [][]any {
			n := length(r)
			name := func(i int) string { return "f" + strconv.Itoa(i) }
			commands := [][]any{append(words("HSET", key), several(n, func(i int) []any { return words(name(i), randomText(r)) })...)}
			for i := range n {
				if r.IntN(3) == 0 {
					commands = append(commands, words("HPEXPIREAT", key, 4_000_000_000_000+r.Int64N(1<<41), "FIELDS", 1, name(i)))
				}
			}
			return commands
		},
		views: func(key string) [][]any {
			fields := several(800, func(i int) []any { return words("f" + strconv.Itoa(i)) })
			return [][]any{words("sorted", "HGETALL", key), append(words("HPEXPIRETIME", key, "FIELDS", len(fields)), fields...)}
		},
	},
	"stream": {
		make: func(r *rand.Rand, key string) (commands [][]any) {
			id := 1 + r.IntN(1000)
			for range length(r) {
				id += r.IntN(3) * r.IntN(1000)
				commands = append(commands, append(words("XADD", key, fmt.Sprint(id, "-", "*")), several(1+r.IntN(3), func(int) []any {
					return words([]any{"same", randomText(r)}[r.IntN(2)], randomText(r))
				})...))
			}
			commands = append(commands, words("XDEL", key, id), words("XGROUP", "CREATE", key, "g", r.IntN(id)),
				words("XGROUP", "CREATE", key, "h", "$"), words("XREADGROUP", "GROUP", "g", "c", "COUNT", 1+r.IntN(9), "STREAMS", key, ">"),
				words("XREADGROUP", "GROUP", "g", "d", "COUNT", 1+r.IntN(9), "STREAMS", key, ">"), words("XACK", key, "g", id, id-1))
			if r.IntN(3) == 0 {
				commands = append(commands, words("XTRIM", key, "MAXLEN", r.IntN(20)))
			}
			return commands
		},
		views: func(key string) [][]any {
			return [][]any{words("XRANGE", key, "-", "+"), words("XPENDING", key, "g"), words("XLEN", key), words("XINFO", "GROUPS", key)}
		},
		// Redis does not send its replicas that XREADGROUP without an entry has made a consumer, nor how many entries were read.
		streamed: func(key string) [][]any {
			return [][]any{words("XRANGE", key, "-", "+"), words("XPENDING", key, "g"), words("XLEN", key)}
		},
	},
	"hyperloglog": {
		make: func(r *rand.Rand, key string) [][]any {
			return [][]any{append(words("PFADD", key), several(length(r), func(int) []any { return words(randomText(r)) })...)}
		},
		views:    func(key string) [][]any { return [][]any{words("PFCOUNT", key), words("GET", key)} },
		streamed: func(key string) [][]any { return [][]any{words("PFCOUNT", key)} }, // which keeps the number in the value
	},
	"vector set": {
		needs: "vadd",
		make: func(r *rand.Rand, key string) (commands [][]any) {
			form, dim := []string{"NOQUANT", "Q8", "BIN"}[r.IntN(3)], 1+r.IntN(40)
			for i := range 1 + r.IntN(30) {
				command := append(words("VADD", key, "VALUES", dim), several(dim, func(int) []any {
					return words(float32(r.NormFloat64()))
				})...)
				if command = append(command, "e"+strconv.Itoa(i), form); r.IntN(3) == 0 {
					command = append(command, "SETATTR", `{"n":`+strconv.Itoa(i)+`}`)
				}
				commands = append(commands, command)
			}
			return commands
		},
		views: func(key string) (commands [][]any) {
			commands = [][]any{words("VCARD", key), words("VDIM", key)}
			for i := range 30 {
				e := "e" + strconv.Itoa(i)
				commands = append(commands, words("VEMB", key, e, "RAW"), words("VGETATTR", key, e))
			}
			return commands
		},
		streamed: func(key string) (commands [][]any) { // norms differ in the last bit
			return [][]any{words("VCARD", key), words("VDIM", key), words("VGETATTR", key, "e0"), words("VGETATTR", key, "e1")}
		},
	},
	"json": {
		needs: "json.set",
		make: func(r *rand.Rand, key string) [][]any {
			return [][]any{words("JSON.SET", key, "$", fmt.Sprintf(`{"a":[%d,null,%g,{"b":%q}],"c":true}`, r.Int64(), r.NormFloat64(),
				strings.Repeat("x", r.IntN(99))))}
		},
		views: func(key string) [][]any { return [][]any{words("JSON.GET", key)} },
	},
	"bloom filter": {
		needs: "bf.add",
		make: func(r *rand.Rand, key string) [][]any {
			return [][]any{words("BF.RESERVE", key, 0.001+r.Float64()/10, 1+r.IntN(50)), append(words("BF.MADD", key),
				several(length(r), func(int) []any { return words(r.IntN(1000)) })...)}
		},
		views: func(key string) [][]any {
			return [][]any{append(words("BF.MEXISTS", key), several(1000, func(i int) []any { return words(i) })...), words("BF.CARD", key)}
		},
	},
	"cuckoo filter": {
		needs: "cf.add",
		make: func(r *rand.Rand, key string) [][]any {
			return [][]any{words("CF.RESERVE", key, 8+r.IntN(500)), append(words("CF.INSERT", key, "ITEMS"),
				several(length(r), func(int) []any { return words(r.IntN(1000)) })...)}
		},
		views: func(key string) [][]any {
			return [][]any{append(words("CF.MEXISTS", key), several(1000, func(i int) []any { return words(i) })...),
				words("CF.COUNT", key, 7)}
		},
	},
	"count-min sketch": {
		needs: "cms.incrby",
		make: func(r *rand.Rand, key string) [][]any {
			return [][]any{words("CMS.INITBYDIM", key, 1+r.IntN(200), 1+r.IntN(9)), append(words("CMS.INCRBY", key),
				several(length(r), func(int) []any { return words(r.IntN(100), 1+r.IntN(9)) })...)}
		},
		views: func(key string) [][]any {
			return [][]any{append(words("CMS.QUERY", key), several(100, func(i int) []any { return words(i) })...), words("CMS.INFO", key)}
		},
	},
	"top-k": {
		needs: "topk.add",
		make: func(r *rand.Rand, key string) [][]any {
			return [][]any{words("TOPK.RESERVE", key, 1+r.IntN(20)), append(words("TOPK.ADD", key),
				several(length(r), func(int) []any { return words(r.IntN(30)) })...)}
		},
		views: func(key string) [][]any {
			return [][]any{words("TOPK.LIST", key, "WITHCOUNT"), words("TOPK.INFO", key)}
		},
	},
	"t-digest": {
		needs: "tdigest.add",
		make: func(r *rand.Rand, key string) [][]any {
			return [][]any{words("TDIGEST.CREATE", key, "COMPRESSION", 20+r.IntN(200)), append(words("TDIGEST.ADD", key),
				several(length(r), func(int) []any { return words(r.NormFloat64()) })...)}
		},
		views: func(key string) [][]any {
			return [][]any{words("TDIGEST.QUANTILE", key, 0, 0.1, 0.5, 0.9, 1), words("TDIGEST.MIN", key), words("TDIGEST.MAX", key)}
		},
	},
	"time series": {
		needs: "ts.add",
		make: func(r *rand.Rand, key string) (commands [][]any) {
			form := []string{"COMPRESSED", "UNCOMPRESSED"}[r.IntN(2)]
			commands = [][]any{words("TS.CREATE", key, "ENCODING", form, "CHUNK_SIZE", 128, "LABELS", "l", r.IntN(9))}
			at := int64(0)
			for range length(r) {
				at += 1 + r.Int64N(1000)
				commands = append(commands, words("TS.ADD", key, at, []any{r.IntN(100), r.NormFloat64()}[r.IntN(2)]))
			}
			return commands
		},
		views: func(key string) [][]any {
			return [][]any{words("TS.RANGE", key, "-", "+"), words("TS.MRANGE", "-", "+", "WITHLABELS", "COUNT", 1, "FILTER", "l=1")}
		},
	},
}

// view returns the replies of a kind's views as text. streamed says that the value was made by the same commands on two servers.
func (k *exchangedKind) view(t *testing.T, c *redis.Client, key string, streamed bool) (text []string) {
	ctx := context.Background()
	views := k.views
	if streamed && k.streamed != nil {
		views = k.streamed
	}
	for _, command := range append(views(key), words("PEXPIRETIME", key), words("TYPE", key)) {
		var sorted bool
		if command[0] == "sorted" {
			command, sorted = command[1:], true
		}
		reply, err := c.Do(ctx, command...).Result()
		reply = exact(reply)
		if list, ok := reply.([]any); ok && command[0] == "HGETALL" {
			for i := 0; i+1 < len(list); i += 2 {
				list[i/2] = fmt.Sprintf("%q=%q", list[i], list[i+1])
			}
			reply = list[:len(list)/2]
		}
		if list, ok := reply.([]any); ok && command[0] == "XINFO" {
			for i, group := range list { // without the lag at the end, which servers compute differently
				g := group.([]any)
				list[i] = g[:len(g)-2]
			}
		}
		if list, ok := reply.([]any); ok && sorted {
			slices.SortFunc(list, func(a, b any) int { return strings.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
		}
		text = append(text, fmt.Sprintf("%v: %q %v", command[:1], fmt.Sprint(reply), err))
	}
	return text
}

// exact replaces numbers with a fraction by the same ones in one form: versions write different ones of several that are right.
func exact(reply any) any {
	switch v := reply.(type) {
	case string:
		if n, err := strconv.ParseFloat(v, 64); err == nil && strings.ContainsAny(v, ".e") || len(v) > 15 && err == nil {
			return strconv.FormatFloat(n, 'g', -1, 64)
		}
	case []any:
		for i := range v {
			v[i] = exact(v[i])
		}
	}
	return reply
}

// fill makes random values with the commands of a server, and returns the names of the keys by kind.
func fill(t *testing.T, r *rand.Rand, c, other *redis.Client, n int) map[string][]string {
	ctx := context.Background()
	keys := map[string][]string{}
	for _, name := range slices.Sorted(maps.Keys(exchangedKinds)) {
		kind := exchangedKinds[name]
		if kind.needs != "" && (!has(t, c, kind.needs) || !has(t, other, kind.needs)) {
			continue
		}
		for i := range n {
			key := fmt.Sprint(name, " ", i)
			keys[name] = append(keys[name], key)
			commands := kind.make(r, key)
			if r.IntN(4) == 0 {
				commands = append(commands, words("PEXPIREAT", key, 4_000_000_000_000+r.Int64N(1<<40)))
			}
			for _, command := range commands {
				_, err := c.Do(ctx, command...).Result()
				if err != nil && err != redis.Nil {
					require.Contains(t, []string{"XADD", "XGROUP"}, command[0], "%v: %v", command[:2], err) // an ID that is too small
				}
			}
		}
	}
	return keys
}

// has reports whether a server has a command.
func has(t *testing.T, c *redis.Client, command string) bool {
	info, err := c.Do(context.Background(), "COMMAND", "INFO", command).Slice()
	require.NoError(t, err)
	return info[0] != nil
}

// Values of each type that two servers have are the same after DUMP and RESTORE, and after replication, both ways.
func TestValuesAreExchanged(t *testing.T) {
	n := 40
	if text := os.Getenv(exchangedVariable); text != "" {
		var err error
		n, err = strconv.Atoi(text)
		require.NoError(t, err)
	}
	ctx := context.Background()
	real := redisClient(t, oracle.Start(t, "--hz", "100"))
	_, ours := startReplica(t, t.TempDir())
	version := infoField(t, real, "server", "redis_version") + " " + infoField(t, real, "server", "valkey_version")
	for _, way := range []struct {
		name     string
		from, to *redis.Client
	}{{"from the other server", real, ours}, {"to the other server", ours, real}} {
		t.Run(way.name, func(t *testing.T) {
			from, to := way.from, way.to
			for _, c := range []*redis.Client{from, to} {
				require.NoError(t, c.Do(ctx, "REPLICAOF", "NO", "ONE").Err())
				require.NoError(t, c.FlushAll(ctx).Err())
			}
			r := testseed.Rand(t)
			keys := fill(t, r, from, to, n)
			t.Logf("%s: %d kinds, %d values of each", version, len(keys), n)
			compare := func(keys map[string][]string, streamed bool) {
				t.Helper()
				for name, list := range keys {
					kind := exchangedKinds[name]
					for _, key := range list {
						want := kind.view(t, from, key, streamed)
						for i, got := range kind.view(t, to, key, streamed) {
							require.True(t, want[i] == got, "%s: %.500s, not %.500s", key, got, want[i])
						}
					}
				}
			}
			restored := maps.Clone(keys)
			if to == real && infoField(t, real, "server", "server_name") == "valkey" {
				delete(restored, "hash with deadlines") // DUMP has the form of Redis, which Valkey does not read
			}
			for _, list := range restored {
				for _, key := range list {
					dump, err := from.Dump(ctx, key).Result()
					if err == redis.Nil { // a stream without a valid entry
						continue
					}
					require.NoError(t, err, key)
					at, err := from.Do(ctx, "PEXPIRETIME", key).Int64()
					require.NoError(t, err)
					args := words("RESTORE", key, max(at, 0), dump)
					if at > 0 {
						args = append(args, "ABSTTL")
					}
					require.NoError(t, to.Do(ctx, args...).Err(), key)
				}
			}
			compare(restored, false)

			proxy := newBrittleProxy(t, from.Options().Addr)
			require.NoError(t, to.Do(ctx, proxy.hostPort()...).Err())
			requireFollows(t, from, to)
			compare(keys, false)
			require.NoError(t, from.FlushAll(ctx).Err())
			keys = fill(t, r, from, to, n) // now through the stream
			requireFollows(t, from, to)
			compare(keys, true)
			require.NoError(t, to.Do(ctx, "REPLICAOF", "NO", "ONE").Err())
		})
	}
}

// requireFollows waits until a replica has all that its master has written.
func requireFollows(t *testing.T, master, replica *redis.Client) {
	require.Eventually(t, func() bool {
		return infoField(t, replica, "replication", "master_link_status") == "up" &&
			infoField(t, master, "replication", "master_repl_offset") == infoField(t, replica, "replication", "slave_repl_offset")
	}, followTimeout, followTick)
}
