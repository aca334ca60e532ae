//go:build linux

package main

import (
	"fmt"
	"strconv"
	"strings"
	"sync"

	"github.com/atomredis/atomredis/bench/internal/load"
	"github.com/atomredis/atomredis/bench/internal/servers"
)

// settings are the settings of a measurement.
type settings struct {
	Durability string  // none, everysec or always
	Pipeline   int     // operations under way at once per connection
	Conns      int     // connections
	Size       int     // bytes of a value
	Keys       int     // number of keys, or of elements of one key
	Zipf       float64 // how unevenly keys are chosen; 0 chooses all alike
}

// workload is one kind of load.
type workload struct {
	name     string
	commands int  // Redis commands in an operation
	bytes    int  // bytes of values in an operation
	keyed    bool // it chooses keys or elements by random numbers
	serial   bool // it cannot be pipelined: each command waits for the reply to the one before

	fill func(s *servers.Server) // fills the server once; nil if it needs no data
	// prepares for a run of that many operations; nil if runs leave the data unchanged
	before func(s *servers.Server, operations int)

	// The load is either an operation that consists of the same commands each time, apart from random numbers below
	// numbers, with the beginnings of their replies; or a list of connections.
	operation   [][]string
	want        []string
	numbers     int
	connections func() []load.Connection

	benchmark []string // arguments for redis-benchmark to make the same load; nil if it cannot
}

// largest is the most bytes of values that an operation may move. Beyond it, the connections' buffers alone take
// gigabytes.
const largest = 1 << 20

// budget is the most bytes of values in the keys of a workload: the larger the values, the fewer the keys.
const budget = 1 << 30

// Names of keys and elements with a random number, as in redis-benchmark.
const (
	key     = "key:" + load.Random
	counter = "counter:" + load.Random
	element = "element:" + load.Random
)

// workloads returns all workloads with these settings.
func workloads(c settings) []workload {
	value := text(c.Size)
	bulk := fmt.Sprintf("$%d\r\n", c.Size)
	keys := max(min(c.Keys, budget/c.Size), 1000)

	values := fill(keys, func(i int) []string { return []string{"SET", number("key:", i), value} })
	counters := fill(keys, func(i int) []string { return []string{"SET", number("counter:", i), "1"} })
	both := func(s *servers.Server) { values(s); counters(s) }
	hash := fill(keys/atOnce, func(i int) []string {
		return many([]string{"HSET", "myhash"}, i, atOnce,
			func(i int) []string { return []string{number("element:", i), value} })
	})
	list := func(n int) func(s *servers.Server) {
		return fill((n+atOnce-1)/atOnce, func(i int) []string {
			return many([]string{"RPUSH", "mylist"}, i, atOnce, func(int) []string { return []string{value} })
		})
	}
	set := func(n int) func(s *servers.Server) {
		return fill((n+atOnce-1)/atOnce, func(i int) []string {
			return many([]string{"SADD", "myset"}, i, atOnce, func(i int) []string { return []string{number("element:", i)} })
		})
	}
	zset := func(n int) func(s *servers.Server) {
		return fill((n+atOnce-1)/atOnce, func(i int) []string {
			return many([]string{"ZADD", "myzset"}, i, atOnce, func(i int) []string {
				return []string{strconv.Itoa(i), number("element:", i)}
			})
		})
	}
	stream := func(n int) func(s *servers.Server) {
		return fill(n, func(i int) []string { return []string{"XADD", "mystream", number("1", i) + "-0", "field", value} })
	}
	without := func(key string) func(*servers.Server, int) {
		return func(s *servers.Server, _ int) { s.Do("DEL", key) }
	}
	with := func(key string, fill func(n int) func(*servers.Server)) func(*servers.Server, int) {
		return func(s *servers.Server, operations int) {
			s.Do("DEL", key)
			fill(operations)(s)
		}
	}
	// The subscribers' replies may wait while the generator, which is one thread, handles other connections.
	patient := func(s *servers.Server) { s.Do("CONFIG", "SET", "client-output-buffer-limit", "pubsub 0 0 0") }
	const hashes, fields = 10, 20 // one key in this many is a hash, with this many fields

	all := []workload{
		{name: "get", bytes: c.Size, keyed: true, fill: values,
			operation: [][]string{{"GET", key}}, want: []string{bulk}, benchmark: []string{"-t", "get"}},
		{name: "set", bytes: c.Size, keyed: true, fill: values,
			operation: [][]string{{"SET", key, value}}, want: []string{"+OK"}, benchmark: []string{"-t", "set"}},
		{name: "incr", keyed: true, fill: counters,
			operation: [][]string{{"INCR", counter}}, want: []string{":"}, benchmark: []string{"-t", "incr"}},
		{name: "mset10", bytes: 10 * c.Size, keyed: true, fill: values,
			operation: [][]string{many([]string{"MSET"}, 0, 10, func(int) []string { return []string{key, value} })},
			want:      []string{"+OK"}, benchmark: []string{"-t", "mset"}},
		{name: "lpush", bytes: c.Size, before: without("mylist"),
			operation: [][]string{{"LPUSH", "mylist", value}}, want: []string{":"}, benchmark: []string{"-t", "lpush"}},
		{name: "rpop", bytes: c.Size, before: with("mylist", list),
			operation: [][]string{{"RPOP", "mylist"}}, want: []string{bulk}, benchmark: []string{"-t", "rpop"}},
		{name: "lrange100", bytes: 100 * c.Size, fill: list(keys),
			operation: [][]string{{"LRANGE", "mylist", "0", "99"}}, want: []string{"*100"},
			benchmark: []string{"LRANGE", "mylist", "0", "99"}},
		{name: "sadd", keyed: true, before: without("myset"),
			operation: [][]string{{"SADD", "myset", element}}, want: []string{":"}, benchmark: []string{"-t", "sadd"}},
		{name: "spop", before: with("myset", set),
			operation: [][]string{{"SPOP", "myset"}}, want: []string{"$20"}, benchmark: []string{"-t", "spop"}},
		{name: "hset", bytes: c.Size, keyed: true, fill: hash,
			operation: [][]string{{"HSET", "myhash", element, value}}, want: []string{":"}, benchmark: []string{"-t", "hset"}},
		{name: "hgetall20", bytes: fields * c.Size, keyed: true, numbers: keys / hashes,
			fill: fill(keys/hashes, func(i int) []string {
				return many([]string{"HSET", number("key:", i)}, 0, fields, func(i int) []string {
					return []string{fmt.Sprint("field:", i), value}
				})
			}),
			operation: [][]string{{"HGETALL", key}}, want: []string{"*40"}},
		{name: "zadd", keyed: true, fill: zset(keys),
			operation: [][]string{{"ZADD", "myzset", load.Random, element}}, want: []string{":0"},
			benchmark: []string{"-t", "zadd"}},
		{name: "zpopmin", before: with("myzset", zset),
			operation: [][]string{{"ZPOPMIN", "myzset"}}, want: []string{"*2"}, benchmark: []string{"-t", "zpopmin"}},
		{name: "zrange100", keyed: true, fill: zset(keys), numbers: keys - 100,
			operation: [][]string{{"ZRANGE", "myzset", load.Random, "+inf", "BYSCORE", "LIMIT", "0", "100"}},
			want:      []string{"*100"}},
		{name: "xadd", bytes: c.Size,
			operation: [][]string{{"XADD", "mystream", "MAXLEN", "~", "1000", "*", "field", value}}, want: []string{"$"}},
		{name: "xread10", bytes: 10 * c.Size, keyed: true, fill: stream(keys), numbers: keys - 11,
			operation: [][]string{{"XREAD", "COUNT", "10", "STREAMS", "mystream", "1" + load.Random + "-0"}},
			want:      []string{"*1"}},
		{name: "xreadgroup", commands: 2, bytes: c.Size, before: func(s *servers.Server, operations int) {
			s.Do("DEL", "mystream")
			stream(operations)(s)
			s.Do("XGROUP", "CREATE", "mystream", "workers", "0")
		}, connections: func() []load.Connection {
			return connections(c.Conns, func(i int) load.Client { return newWorker("mystream", "workers", i, c.Pipeline) })
		}},
		{name: "expire", keyed: true, fill: values,
			operation: [][]string{{"EXPIRE", key, "100000"}}, want: []string{":1"}},
		{name: "multi5", commands: 7, bytes: 3 * c.Size, keyed: true, fill: func(s *servers.Server) { both(s); hash(s) },
			operation: [][]string{{"MULTI"}, {"SET", key, value}, {"GET", key}, {"INCR", counter},
				{"HSET", "myhash", element, value},
				{"EXPIRE", key, "100000"}, {"EXEC"}},
			want: []string{"+OK", "+QUEUED", "+QUEUED", "+QUEUED", "+QUEUED", "+QUEUED", "*5"}},
		{name: "publish10", bytes: 10 * c.Size, fill: patient, connections: func() []load.Connection {
			const subscribers = 10
			cs := connections(c.Conns, func(int) load.Client {
				return load.NewCommands([][]string{{"PUBLISH", "channel", value}}, nil,
					[]string{fmt.Sprintf(":%d\r\n", subscribers)})
			})
			for range subscribers {
				cs = append(cs, load.Connection{Client: listener{}, Hello: []string{"SUBSCRIBE", "channel"}, Partner: true})
			}
			return cs
		}},
		{name: "pressure", commands: putCommands + getCommands, bytes: c.Size, serial: true,
			before:      func(s *servers.Server, _ int) { createQueues(s, pairs(c.Conns)) },
			connections: func() []load.Connection { return queuePairs(pairs(c.Conns), value) }},
		{name: "atom", commands: atomCommands, bytes: 2 * c.Size, serial: true,
			before:      func(s *servers.Server, _ int) { createElements(s, pairs(c.Conns)) },
			connections: func() []load.Connection { return elementPairs(pairs(c.Conns), value) }},
		atomCalls(c, value),
		nativeQueues(c, value),
		entryLoops(c, value),
	}
	all = append(all, scriptWorkloads(c, value, bulk, both)...)
	for i := range all {
		w := &all[i]
		w.commands = max(w.commands, 1)
		if w.numbers == 0 {
			w.numbers = keys
		}
		if w.connections != nil {
			continue
		}
		numbers := sync.OnceValue(func() load.Keys { return load.Uniform(w.numbers) })
		if c.Zipf > 0 && w.keyed {
			w.benchmark = nil // it has no such distribution
			numbers = sync.OnceValue(func() load.Keys { return load.Zipf(w.numbers, c.Zipf) })
		}
		w.connections = func() []load.Connection {
			return connections(c.Conns, func(i int) load.Client {
				return load.NewCommands(w.operation, numbers().Source(i),
					w.want)
			})
		}
	}
	return all
}

// connections returns n connections.
func connections(n int, client func(i int) load.Client) (cs []load.Connection) {
	for i := range n {
		cs = append(cs, load.Connection{Client: client(i)})
	}
	return cs
}

// pairs returns the number of pairs to make from conns connections.
func pairs(conns int) int { return max(conns/2, 1) }

// text returns n characters that do not compress to almost nothing.
func text(n int) string {
	var b strings.Builder
	for x := uint64(1); b.Len() < n; x++ {
		b.WriteString(strconv.FormatUint(x*6364136223846793005>>16, 36))
	}
	return b.String()[:n]
}

// number returns a name with a number in the form that the load uses.
func number(prefix string, i int) string { return fmt.Sprintf("%s%0*d", prefix, len(load.Random), i) }

// atOnce is the number of elements that a command of the filling adds.
const atOnce = 100

// many returns a command with the arguments of n elements, starting with element i*n.
func many(command []string, i, n int, arguments func(i int) []string) []string {
	for j := range n {
		command = append(command, arguments(i*n+j)...)
	}
	return command
}

// fill returns a function that sends n commands.
func fill(n int, command func(i int) []string) func(s *servers.Server) {
	return func(s *servers.Server) {
		s.Fill(n, func(dst []byte, i int) []byte { return servers.AppendCommand(dst, command(i)...) })
	}
}
