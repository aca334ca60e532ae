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
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/atomredis/atomredis/internal/testing/oracle"
	"github.com/atomredis/atomredis/internal/testing/testseed"
)

// The environment variables with the number of values of each kind, and with the names of kinds, separated by commas.
const (
	exchangedVariable      = "ATOMREDIS_EXCHANGED"
	exchangedKindsVariable = "ATOMREDIS_EXCHANGED_KINDS"
)

// exchangedKind makes random values of a type, and shows them.
type exchangedKind struct {
	needs string // a command that the other server must have; "" for those of all
	make  func(r *rand.Rand, key string) [][]any
	// views are commands whose replies describe a value. Those whose order means nothing begin with "sorted".
	views func(key string) [][]any
	// streamed are those that are the same if two servers execute the same commands; nil means all.
	streamed func(key string) [][]any
	// more are commands that continue a value after a full copy; nil means none.
	more func(r *rand.Rand, key string) [][]any
	// whole says that DUMP has only a part of a value.
	whole bool
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
	"bloom filter":           bloomFilters,
	"cuckoo filter":          cuckooFilters,
	"count-min sketch":       countMinSketches,
	"top-k":                  topKLists,
	"t-digest":               tDigests,
	"time series":            timeSeries,
	"time series with rules": timeSeriesWithRules,
}

// batch is how many values are sent at a time.
const batch = 50

// maxShown is the most differences that are shown.
const maxShown = 5

// compare requires that the views of a kind's values are the same. streamed says that the same commands made them on both servers.
func (k *exchangedKind) compare(t *testing.T, from, to *redis.Client, keys []string, streamed bool) {
	t.Helper()
	views, shown := k.views, 0
	if streamed && k.streamed != nil {
		views = k.streamed
	}
	for some := range slices.Chunk(keys, batch) {
		var commands [][]any
		for _, key := range some {
			commands = append(append(commands, views(key)...), words("PEXPIRETIME", key), words("TYPE", key))
		}
		replies := pipelined(to, commands)
		for i, want := range pipelined(from, commands) {
			want, got := replyText(commands[i], want, streamed), replyText(commands[i], replies[i], streamed)
			if want != got && shown < maxShown {
				t.Errorf("%.500q: %.500s, not %.500s", commands[i], got, want)
				shown++
			}
		}
	}
	if shown > 0 {
		t.FailNow()
	}
}

func replyText(command []any, reply *redis.Cmd, streamed bool) string {
	return fmt.Sprintf("%q %v", fmt.Sprint(meaningful(command, reply.Val(), streamed)), reply.Err())
}

// pipelined returns the replies to commands. It removes "sorted" from the list.
func pipelined(c *redis.Client, commands [][]any) (replies []*redis.Cmd) {
	ctx := context.Background()
	p := c.Pipeline()
	for _, command := range commands {
		if command[0] == "sorted" {
			command = command[1:]
		}
		replies = append(replies, p.Do(ctx, command...))
	}
	p.Exec(ctx) // errors are in the replies
	return replies
}

// meaningful returns a reply without what means nothing, or is each server's own.
func meaningful(command []any, reply any, streamed bool) any {
	reply = exact(reply)
	list, ok := reply.([]any)
	if !ok {
		return reply
	}
	sorted := command[0] == "sorted"
	if sorted {
		command = command[1:]
	}
	switch command[0] {
	case "HGETALL":
		for i := 0; i+1 < len(list); i += 2 {
			list[i/2] = fmt.Sprintf("%q=%q", list[i], list[i+1])
		}
		list = list[:len(list)/2]
	case "XINFO":
		for i, group := range list { // without the lag at the end, which servers compute differently
			g := group.([]any)
			list[i] = g[:len(g)-2]
		}
	case "TS.INFO":
		list = seriesInfo(list, streamed)
	case "CMS.INFO":
		list = list[:min(len(list), 6)] // behind width, depth and count is the size of a counter, which only Redis 8.12 has
	}
	if sorted {
		sortList(list)
	}
	return list
}

func sortList(list []any) {
	slices.SortFunc(list, func(a, b any) int { return strings.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
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

// mayRefuse are commands that are refused at times: entries with too small an ID, words for a filter that is full, deletion of
// samples that a rule still needs.
var mayRefuse = []any{"XADD", "XGROUP", "BF.ADD", "CF.ADD", "CF.ADDNX", "CF.DEL", "TS.DEL"}

// fill makes random values with the commands of a server, and returns the names of the keys by kind.
func fill(t *testing.T, r *rand.Rand, c *redis.Client, kinds []string, n int) map[string][]string {
	keys := map[string][]string{}
	for _, name := range kinds {
		kind := exchangedKinds[name]
		for i := range n {
			keys[name] = append(keys[name], fmt.Sprint(name, " ", i))
		}
		executeAll(t, c, keys[name], func(key string) [][]any {
			commands := kind.make(r, key)
			if r.IntN(4) == 0 {
				commands = append(commands, words("PEXPIREAT", key, 4_000_000_000_000+r.Int64N(1<<40)))
			}
			return commands
		})
	}
	return keys
}

// executeAll executes the commands for each key, of which only those of mayRefuse may be refused.
func executeAll(t *testing.T, c *redis.Client, keys []string, of func(key string) [][]any) {
	for some := range slices.Chunk(keys, batch) {
		var commands [][]any
		for _, key := range some {
			commands = append(commands, of(key)...)
		}
		for i, reply := range pipelined(c, commands) {
			if err := reply.Err(); err != nil && err != redis.Nil {
				require.Contains(t, mayRefuse, commands[i][0], "%.500q: %v", commands[i], err)
			}
		}
	}
}

// restore copies values with DUMP and RESTORE.
func restore(t *testing.T, from, to *redis.Client, keys []string) {
	for some := range slices.Chunk(keys, batch) {
		var dumps, restores [][]any
		for _, key := range some {
			dumps = append(dumps, words("DUMP", key), words("PEXPIRETIME", key))
		}
		replies := pipelined(from, dumps)
		for i, key := range some {
			dump, err := replies[2*i].Text()
			if err == redis.Nil { // a stream without a valid entry
				continue
			}
			require.NoError(t, err, key)
			at, err := replies[2*i+1].Int64()
			require.NoError(t, err)
			command := words("RESTORE", key, max(at, 0), dump)
			if at > 0 {
				command = append(command, "ABSTTL")
			}
			restores = append(restores, command)
		}
		for i, reply := range pipelined(to, restores) {
			require.NoError(t, reply.Err(), restores[i][1])
		}
	}
}

// kindsOf returns the names of the chosen kinds that both servers have.
func kindsOf(t *testing.T, a, b *redis.Client) (names []string) {
	chosen := slices.Sorted(maps.Keys(exchangedKinds))
	if text := os.Getenv(exchangedKindsVariable); text != "" {
		chosen = strings.Split(text, ",")
		slices.Sort(chosen) // the same random numbers in any order
	}
	for _, name := range chosen {
		require.Contains(t, exchangedKinds, name)
		if needs := exchangedKinds[name].needs; needs == "" || has(t, a, needs) && has(t, b, needs) {
			names = append(names, name)
		}
	}
	return names
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
			kinds := kindsOf(t, from, to)
			t.Logf("%s: %d values of each of %d kinds: %s", version, n, len(kinds), strings.Join(kinds, ", "))
			keys := fill(t, r, from, kinds, n)
			compare := func(streamed bool) {
				t.Helper()
				for _, name := range kinds {
					kind := exchangedKinds[name]
					kind.compare(t, from, to, keys[name], streamed)
				}
			}
			valkey := infoField(t, real, "server", "server_name") == "valkey"
			for _, name := range kinds {
				kind := exchangedKinds[name]
				if kind.whole || name == "hash with deadlines" && valkey && to == real { // Valkey does not read the form of Redis
					continue
				}
				restore(t, from, to, keys[name])
				kind.compare(t, from, to, keys[name], false)
			}

			proxy := newBrittleProxy(t, from.Options().Addr)
			require.NoError(t, to.Do(ctx, proxy.hostPort()...).Err())
			requireFollows(t, from, to, n)
			compare(false)
			for _, name := range kinds {
				if more := exchangedKinds[name].more; more != nil {
					executeAll(t, from, keys[name], func(key string) [][]any { return more(r, key) })
				}
			}
			requireFollows(t, from, to, n)
			compare(true)
			require.NoError(t, from.FlushAll(ctx).Err())
			keys = fill(t, r, from, kinds, n) // now through the stream
			requireFollows(t, from, to, n)
			compare(true)
			require.NoError(t, to.Do(ctx, "REPLICAOF", "NO", "ONE").Err())
		})
	}
}

// requireFollows waits until a replica has all that its master has written: n values of each kind.
func requireFollows(t *testing.T, master, replica *redis.Client, n int) {
	require.Eventually(t, func() bool {
		return infoField(t, replica, "replication", "master_link_status") == "up" &&
			infoField(t, master, "replication", "master_repl_offset") == infoField(t, replica, "replication", "slave_repl_offset")
	}, followTimeout+time.Duration(n)*20*time.Millisecond, followTick)
}
