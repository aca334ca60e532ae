//go:build linux

// Types measures the types of Redis 8 against our own limits, since no Redis of that version is at hand: TS.ADD and
// BF.ADD relative to SET, the speed of TS.RANGE in samples, the time of JSON.SET of a path as documents grow, the time
// of VSIM, and the memory of a sample, an item and a vector.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"log"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/atomredis/atomredis/bench/internal/load"
	"github.com/atomredis/atomredis/bench/internal/servers"
)

type settings struct {
	program                       string
	rounds                        int
	time                          time.Duration
	keys, samples, items, vectors int
}

// dimensions is the number of dimensions of a vector.
const dimensions = 128

// pipeline is the number of commands that a connection has under way, conns the number of connections.
const pipeline, conns = 16, 50

var ctx = context.Background()

func main() {
	var o settings
	flag.StringVar(&o.program, "server", servers.AtomRedis, "the binary of atomredis")
	flag.IntVar(&o.rounds, "rounds", 5, "how often each case is measured")
	flag.DurationVar(&o.time, "time", 500*time.Millisecond, "how long each measurement takes")
	flag.IntVar(&o.keys, "keys", 100_000, "keys of SET")
	flag.IntVar(&o.samples, "samples", 100_000, "samples that TS.RANGE gives")
	flag.IntVar(&o.items, "items", 1_000_000, "items of a sketch")
	flag.IntVar(&o.vectors, "vectors", 100_000, "vectors of the set that is searched")
	flag.Parse()
	log.SetFlags(0)
	defer servers.Cleanup()

	servers.Check(os.MkdirAll("bench/results", 0o755))
	file, err := os.Create("bench/results/types.txt")
	servers.Check(err)
	out := io.MultiWriter(os.Stdout, file)
	server := servers.New(o.program)
	server.Start(servers.Durability("none")...)
	rates(server, o, out)
	client := redis.NewClient(&redis.Options{Addr: server.Addr, Protocol: 2, DisableIdentity: true, ReadTimeout: time.Minute})
	ranges(client, o, out)
	documents(client, o, out)
	vectors(client, o, out)
	sketches(client, o, out)
	servers.Check(client.Close())
	servers.Check(file.Close())
}

// rates compares single commands with SET.
func rates(server *servers.Server, o settings, out io.Writer) {
	server.Do("BF.RESERVE", "filter", "0.01", "10000000")
	fmt.Fprintf(out, "%d connections, pipelines of %d, %d rounds of %v; ratios to SET side by side (least-most)\n\n",
		conns, pipeline, o.rounds, o.time)
	uniform := load.Uniform(o.keys)
	cases := []struct {
		name, want string
		command    func(connection int) []string
		number     func(connection int) func() int
		perSecond  []float64
	}{
		{name: "SET", want: "+OK", command: func(int) []string { return []string{"SET", "key:" + load.Random, strings.Repeat("x", 64)} },
			number: uniform.Source},
		// A series for each connection, with ascending times: they have as many digits as load.Random.
		{name: "TS.ADD", want: ":", command: func(i int) []string { return []string{"TS.ADD", fmt.Sprint("series:", i), load.Random, "21.5"} },
			number: func(int) func() int {
				n := 100_000_000_000
				return func() int { n++; return n }
			}},
		{name: "BF.ADD", want: ":", command: func(int) []string { return []string{"BF.ADD", "filter", "item:" + load.Random} },
			number: load.Uniform(1_000_000_000).Source},
	}
	var generators []*load.Generator
	for _, c := range cases {
		var connections []load.Connection
		for i := range conns {
			connections = append(connections,
				load.Connection{Client: load.NewCommands([][]string{c.command(i)}, c.number(i), []string{c.want})})
		}
		g, err := load.New(server.Addr, connections)
		servers.Check(err)
		generators = append(generators, g)
	}
	for round := range o.rounds {
		for i := range cases {
			at := (round + i) % len(cases)
			result, err := generators[at].Run(load.Options{Pipeline: pipeline, Duration: o.time})
			servers.Check(err)
			cases[at].perSecond = append(cases[at].perSecond, result.PerSecond())
		}
	}
	for i, c := range cases {
		var ratios []float64
		for round, n := range c.perSecond {
			ratios = append(ratios, n/cases[0].perSecond[round])
		}
		generators[i].Close()
		fmt.Fprintf(out, "%-8s %9.0f/s  %.2f (%.2f-%.2f)\n", c.name, servers.Quantile(c.perSecond, 0.5),
			servers.Quantile(ratios, 0.5), slices.Min(ratios), slices.Max(ratios))
	}
	fmt.Fprintln(out)
}

// ranges reads a series with TS.RANGE, and reports the memory of a sample.
func ranges(client *redis.Client, o settings, out io.Writer) {
	fill(client, o.samples, func(p redis.Pipeliner, i int) {
		p.Do(ctx, "TS.ADD", "range", 1_700_000_000_000+i*1000, strconv.FormatFloat(20+math.Round(500*math.Sin(float64(i)/600))/100, 'f', -1, 64))
	})
	took := middle(o.rounds*4, func(int) {
		servers.Check(client.Do(ctx, "TS.RANGE", "range", "-", "+").Err())
	})
	// The client's time to read the reply is not the server's, so the server is asked for its own time.
	spent := spentOn(client, "ts.range")
	fmt.Fprintf(out, "TS.RANGE of %d samples: %.1f million samples/s in the server, %.1f with the client's reading; %.2f bytes a sample\n",
		o.samples, float64(o.samples)/spent.Seconds()/1e6, float64(o.samples)/took.Seconds()/1e6, perElement(client, "range", o.samples))
}

// spentOn returns the time of a call of a command, as the server measures it.
func spentOn(client *redis.Client, command string) time.Duration {
	info := client.Info(ctx, "commandstats").Val()
	_, row, _ := strings.Cut(info, "cmdstat_"+command+":")
	_, text, _ := strings.Cut(row, "usec_per_call=")
	text, _, _ = strings.Cut(text, ",")
	micros, err := strconv.ParseFloat(text, 64)
	servers.Check(err)
	return time.Duration(micros * float64(time.Microsecond))
}

// documents sets a path in documents of growing size.
func documents(client *redis.Client, o settings, out io.Writer) {
	fmt.Fprint(out, "JSON.SET of a path:")
	for _, size := range []int{1 << 10, 100 << 10, 10 << 20} {
		var b strings.Builder
		for i := 0; b.Len() < size; i++ {
			fmt.Fprintf(&b, `,"field%d":{"name":"someone","visits":%d,"tags":["a","b"]}`, i, i)
		}
		servers.Check(client.Do(ctx, "JSON.SET", "document", "$", "{"+b.String()[1:]+"}").Err())
		took := middle(o.rounds*400, func(i int) {
			servers.Check(client.Do(ctx, "JSON.SET", "document", "$.field7.visits", i).Err())
		})
		fmt.Fprintf(out, " %d KB %.1f µs;", size>>10, float64(took.Nanoseconds())/1000)
	}
	fmt.Fprintln(out, " with the round trip")
}

// vectors searches a set of vectors.
func vectors(client *redis.Client, o settings, out io.Writer) {
	rnd := rand.New(rand.NewPCG(1, 2))
	began := time.Now()
	fill(client, o.vectors, func(p redis.Pipeliner, i int) {
		p.Do(ctx, append([]any{"VADD", "vectors"}, append(vector(rnd), fmt.Sprint("element:", i))...)...)
	})
	added := time.Since(began)
	took := middle(o.rounds*100, func(int) {
		servers.Check(client.Do(ctx, append(append([]any{"VSIM", "vectors"}, vector(rnd)...), "COUNT", 10)...).Err())
	})
	fmt.Fprintf(out, "VSIM of 10 among %d vectors of %d dimensions (Q8): %.3f ms with the round trip; VADD %.0f/s; %.0f bytes a vector\n",
		o.vectors, dimensions, took.Seconds()*1000, float64(o.vectors)/added.Seconds(), perElement(client, "vectors", o.vectors))
}

// vector returns the arguments of a random vector.
func vector(rnd *rand.Rand) []any {
	blob := make([]byte, 0, 4*dimensions)
	for range dimensions {
		bits := math.Float32bits(float32(rnd.NormFloat64()))
		blob = append(blob, byte(bits), byte(bits>>8), byte(bits>>16), byte(bits>>24))
	}
	return []any{"FP32", blob}
}

// sketches reports the memory of an item in filters that allow one wrong answer in a hundred.
func sketches(client *redis.Client, o settings, out io.Writer) {
	servers.Check(client.Do(ctx, "BF.RESERVE", "bloom", "0.01", o.items).Err())
	servers.Check(client.Do(ctx, "CF.RESERVE", "cuckoo", o.items).Err())
	for _, filter := range []struct{ key, add string }{{"bloom", "BF.ADD"}, {"cuckoo", "CF.ADD"}} {
		fill(client, o.items, func(p redis.Pipeliner, i int) { p.Do(ctx, filter.add, filter.key, i) })
		fmt.Fprintf(out, "%s filter of %d items: %.2f bits an item\n", filter.key, o.items, 8*perElement(client, filter.key, o.items))
	}
}

// fill sends n commands in pipelines.
func fill(client *redis.Client, n int, add func(p redis.Pipeliner, i int)) {
	for i := 0; i < n; {
		p := client.Pipeline()
		for end := min(i+1000, n); i < end; i++ {
			add(p, i)
		}
		_, err := p.Exec(ctx)
		servers.Check(err)
	}
}

// middle returns the median of the times of n calls.
func middle(n int, call func(i int)) time.Duration {
	var times []time.Duration
	for i := range n {
		began := time.Now()
		call(i)
		times = append(times, time.Since(began))
	}
	return servers.Quantile(times, 0.5)
}

// perElement returns the bytes per element of a key.
func perElement(client *redis.Client, key string, n int) float64 {
	bytes, err := client.MemoryUsage(ctx, key, 0).Result()
	servers.Check(err)
	return float64(bytes) / float64(n)
}
