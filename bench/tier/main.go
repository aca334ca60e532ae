//go:build linux

// Tier measures a server whose values leave memory (maxmemory-policy tier): reads by the share of values in memory,
// mixed reads and writes, and for comparison the speed of Pebble itself with the same data, and a server without a
// limit.
package main

import (
	"bytes"
	"flag"
	"fmt"
	"io"
	"log"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/atomredis/atomredis/bench/internal/load"
	"github.com/atomredis/atomredis/bench/internal/servers"
	"github.com/atomredis/atomredis/persist/store/lsm"
)

type settings struct {
	program     string
	time        time.Duration
	keys, value int
	pipeline    int

	long  bool // the long run, and its settings
	bytes float64
	rate  float64
	dir   string
	limit string
}

const conns = 50

func main() {
	var o settings
	flag.StringVar(&o.program, "server", servers.AtomRedis, "the binary of atomredis")
	flag.DurationVar(&o.time, "time", 5*time.Second, "how long each measurement takes")
	flag.IntVar(&o.keys, "keys", 1_000_000, "how many keys there are")
	flag.IntVar(&o.value, "value", 1000, "bytes of a value")
	flag.IntVar(&o.pipeline, "pipeline", 16, "commands that a connection has under way")
	flag.BoolVar(&o.long, "long", false, "check and measure a mixed load on far more data than memory, of all types, for -time")
	flag.Float64Var(&o.bytes, "bytes", 20e9, "with -long: how many bytes the values have")
	flag.Float64Var(&o.rate, "rate", 0, "with -long: commands a second; 0 is as many as there can be")
	flag.StringVar(&o.dir, "dir", "bench/results", "with -long: a directory on a disk with room for thrice the values")
	flag.StringVar(&o.limit, "maxmemory", "1gb", "with -long: maxmemory of the server")
	flag.Parse()
	log.SetFlags(0)
	defer servers.Cleanup()
	servers.Check(os.MkdirAll("bench/results", 0o755))
	name := "tier.txt"
	if o.long {
		name = "tier-long.txt"
	}
	file, err := os.Create(filepath.Join("bench/results", name))
	servers.Check(err)
	if o.long {
		measureLong(o, io.MultiWriter(os.Stdout, file))
	} else {
		measure(o, io.MultiWriter(os.Stdout, file))
	}
	servers.Check(file.Close())
}

func measure(o settings, out io.Writer) {
	fmt.Fprintf(out, "%d values of %d bytes, %d connections, pipelines of %d, %v each; times in µs, resident memory in MB\n\n",
		o.keys, o.value, conns, o.pipeline, o.time)
	fmt.Fprintf(out, "%-34s %10s %6s %7s %7s %7s %9s %9s\n", "", "commands/s", "hits", "p50", "p99", "p99.9", "resident", "maxmemory")
	server := servers.New(o.program)
	all := o.keys * (o.value + 200)
	start := func(limit int) {
		server.Start(append(servers.Durability("everysec"), "--maxmemory", strconv.Itoa(limit), "--maxmemory-policy",
			"tier")...)
	}
	start(0)
	server.Fill(o.keys, func(dst []byte, i int) []byte {
		return servers.AppendCommand(dst, "SET", servers.Key(i), value(i, o.value))
	})
	run(server, o, out, "no limit, GET", 0, false)
	run(server, o, out, "no limit, 80 % GET", 0, true)
	for _, part := range []float64{2, 0.5, 0.25} {
		server.Stop()
		limit := int(part * float64(all))
		start(limit)
		server.Settle()
		run(server, o, out, fmt.Sprintf("room for %.0f %% of all, GET", min(part, 1)*100), limit, false)
		run(server, o, out, fmt.Sprintf("room for %.0f %% of all, 80 %% GET", min(part, 1)*100), limit, true)
	}
	server.Stop()
	fmt.Fprintf(out, "%-34s %10.0f\n", "Pebble alone, Get", pebbleGets(server.Dir, o))
}

// run measures GETs of random keys, or four of them for each SET, after a run of the same length to warm up.
func run(server *servers.Server, o settings, out io.Writer, name string, limit int, mixed bool) {
	commands, want := [][]string{{"GET", "key:" + load.Random}}, []string{"$"}
	if mixed {
		for range 3 {
			commands, want = append(commands, commands[0]), append(want, "$")
		}
		commands = append(commands, []string{"SET", "key:" + load.Random, string(bytes.Repeat([]byte("w"), o.value))})
		want = append(want, "+OK")
	}
	keys := load.Uniform(o.keys)
	var connections []load.Connection
	for i := range conns {
		connections = append(connections, load.Connection{Client: load.NewCommands(commands, keys.Source(i), want)})
	}
	g, err := load.New(server.Addr, connections)
	servers.Check(err)
	defer g.Close()
	options := load.Options{Pipeline: max(o.pipeline/len(commands), 1), Duration: o.time}
	_, err = g.Run(options)
	servers.Check(err)
	loaded := count(server, "tier_loaded_values")
	r, err := g.Run(options)
	servers.Check(err)
	loaded = count(server, "tier_loaded_values") - loaded
	resident, _ := server.Memory()
	reads := r.Operations * max(len(commands)-1, 1)
	h := r.Latency[0]
	fmt.Fprintf(out, "%-34s %10.0f %5.1f%% %7d %7d %7d %9d %9d\n", name, r.PerSecond()*float64(len(commands)),
		100*(1-float64(loaded)/float64(reads)), h.ValueAtQuantile(50)/1000, h.ValueAtQuantile(99)/1000,
		h.ValueAtQuantile(99.9)/1000, resident>>20, limit>>20)
}

// value returns a value of size bytes that does not compress to almost nothing.
func value(i, size int) string {
	var b []byte
	for generation := 0; len(b) < size; generation++ {
		b = append(b, servers.Value(i, generation)...)
	}
	return string(b[:size])
}

// count returns a field of INFO stats.
func count(server *servers.Server, name string) int {
	return infoNumber(server.Do("INFO", "stats"), name)
}

// pebbleGets returns how many of the stored values are read per second, by one goroutine for each processor.
func pebbleGets(dir string, o settings) float64 {
	s, err := lsm.Open(lsm.Options{Dir: filepath.Clean(dir)})
	servers.Check(err)
	meta, _ := s.Meta()
	var n atomic.Int64
	var all sync.WaitGroup
	start := time.Now()
	for range runtime.GOMAXPROCS(0) {
		all.Go(func() {
			for time.Since(start) < o.time {
				for range 100 {
					_, err := s.Blob(meta.Spaces[0], servers.Key(rand.IntN(o.keys)))
					servers.Check(err)
				}
				n.Add(100)
			}
		})
	}
	all.Wait()
	perSecond := float64(n.Load()) / time.Since(start).Seconds()
	servers.Check(s.Close())
	return perSecond
}
