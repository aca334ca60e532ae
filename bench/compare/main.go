// Compare measures atomredis beside redis-server with redis-benchmark, in one run: both servers are up, the rounds alternate
// between them, and what is printed are medians, also of the ratios of two rounds side by side, and how far these ratios spread.
// It runs the binary bin/atomredis.
package main

import (
	"encoding/csv"
	"flag"
	"fmt"
	"log"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/atomredis/atomredis/bench/internal/servers"
)

// test is a kind of command. Names other than these are tests of redis-benchmark that need no data.
type test struct {
	command []string // for redis-benchmark; if empty it has the test itself
	fill    func(dst []byte, i int) []byte
}

var tests = map[string]test{
	"set": {fill: fillString},
	"get": {fill: fillString},
	"incr": {fill: func(dst []byte, i int) []byte {
		return servers.AppendCommand(dst, "SET", fmt.Sprintf("counter:%012d", i), "1")
	}},
	"hset": {fill: func(dst []byte, i int) []byte {
		return servers.AppendCommand(dst, "HSET", "myhash", element(i), servers.Value(i, 0))
	}},
	"zadd": {fill: func(dst []byte, i int) []byte { return servers.AppendCommand(dst, "ZADD", "myzset", "0", element(i)) }},
	"xadd": {command: []string{"XADD", "mystream", "*", "field", servers.Value(0, 0)}},
}

func fillString(dst []byte, i int) []byte {
	return servers.AppendCommand(dst, "SET", servers.Key(i), servers.Value(i, 0))
}

func element(i int) string { return fmt.Sprintf("element:%012d", i) }

// load is what redis-benchmark is asked for.
type load struct {
	test     string
	pipeline int
	requests int
	keys     int
}

// measure is the outcome of one round.
type measure struct {
	perSecond float64
	cpuMicros float64 // of the server, per command
}

func main() {
	rounds := flag.Int("rounds", 5, "how often each server runs each test")
	requests := flag.Int("requests", 1_000_000, "requests per round with pipelining; a fifth of that without")
	keys := flag.Int("r", 100_000, "number of keys, or of elements of one key; they are there from the beginning")
	policy := flag.String("appendfsync", "none", "durability of both servers: none, everysec or always")
	names := flag.String("tests", "", "tests of redis-benchmark, and xadd (default set,get without durability, otherwise set,incr,lpush,hset,zadd,xadd)")
	all := flag.Bool("all", false, "first run the whole default list of redis-benchmark, for errors")
	flag.Parse()
	log.SetFlags(0)
	if *names == "" {
		*names = "set,incr,lpush,hset,zadd,xadd"
		if *policy == "none" {
			*names = "set,get"
		}
	}

	defer servers.Cleanup()
	redis, ours := servers.New(servers.Redis), servers.New(servers.AtomRedis)
	redis.Start(servers.Durability(*policy)...)
	ours.Start(servers.Durability(*policy)...)
	if *all {
		runAll(ours, *requests/10)
	}
	fmt.Printf("appendfsync %s, %d keys or elements, %d rounds\n", *policy, *keys, *rounds)
	fmt.Printf("%-22s %12s %12s %7s %13s %10s %10s %7s\n", "test", "redis/s", "atomredis/s", "ratio", "spread", "redis µs", "ours µs", "ratio")
	for _, name := range strings.Split(*names, ",") {
		for _, s := range []*servers.Server{redis, ours} {
			prepare(s, name, *keys, *policy)
		}
		for _, pipeline := range []int{16, 1} {
			l := load{name, pipeline, *requests, *keys}
			if pipeline == 1 {
				l.requests /= 5
			}
			compare(redis, ours, l, *rounds)
		}
	}
}

// prepare leaves the server with nothing but the data of a test, which is in a checkpoint.
func prepare(s *servers.Server, name string, keys int, policy string) {
	s.Do("FLUSHALL")
	if t := tests[name]; t.fill != nil {
		s.Fill(keys, t.fill)
	}
	if policy != "none" {
		s.Settle()
	}
}

// compare prints a line of the table.
func compare(redis, ours *servers.Server, l load, rounds int) {
	var columns [6][]float64
	for range rounds {
		a, b := run(redis, l), run(ours, l)
		// The ratio of two rounds side by side says more than that of medians: the machine's speed changes in between.
		for i, v := range []float64{a.perSecond, b.perSecond, b.perSecond / a.perSecond, a.cpuMicros, b.cpuMicros, b.cpuMicros / a.cpuMicros} {
			columns[i] = append(columns[i], v)
		}
	}
	var m [6]float64
	for i := range columns {
		m[i] = servers.Quantile(columns[i], 0.5)
	}
	spread := fmt.Sprintf("%.2f to %.2f", slices.Min(columns[2]), slices.Max(columns[2]))
	fmt.Printf("%-22s %12.0f %12.0f %7.2f %13s %10.3f %10.3f %7.2f\n", fmt.Sprintf("%s, pipeline %d", strings.ToUpper(l.test), l.pipeline),
		m[0], m[1], m[2], spread, m[3], m[4], m[5])
}

// runAll runs every default test of redis-benchmark against the server and ends the program if one fails.
func runAll(s *servers.Server, requests int) {
	for _, pipeline := range []int{1, 16} {
		for _, clients := range []int{50, 500} {
			begin := time.Now()
			out, err := exec.Command("redis-benchmark", "-p", s.Port(), "-P", strconv.Itoa(pipeline), "-c", strconv.Itoa(clients),
				"-n", strconv.Itoa(requests), "--csv").CombinedOutput()
			if err != nil || strings.Contains(string(out), "rror") {
				servers.Fatal(fmt.Sprintf("redis-benchmark -P %d -c %d: %v\n%s", pipeline, clients, err, out))
			}
			fmt.Printf("redis-benchmark -P %d -c %d: %d tests without an error in %.0f s\n", pipeline, clients,
				strings.Count(string(out), "\n")-1, time.Since(begin).Seconds())
		}
	}
}

// run runs one round.
func run(s *servers.Server, l load) measure {
	args := []string{"-p", s.Port(), "-P", strconv.Itoa(l.pipeline), "-c", "50", "-n", strconv.Itoa(l.requests), "-r", strconv.Itoa(l.keys),
		"-d", "64", "--csv"}
	if command := tests[l.test].command; command != nil {
		args = append(args, command...)
	} else {
		args = append(args, "-t", l.test)
	}
	before := s.CPU()
	out, err := exec.Command("redis-benchmark", args...).Output()
	servers.Check(err)
	cpu := s.CPU() - before
	rows, err := csv.NewReader(strings.NewReader(string(out))).ReadAll()
	if err != nil || len(rows) < 2 {
		servers.Fatal(fmt.Sprintf("redis-benchmark printed %q: %v", out, err))
	}
	perSecond, err := strconv.ParseFloat(rows[1][1], 64)
	servers.Check(err)
	return measure{perSecond, cpu.Seconds() * 1e6 / float64(l.requests)}
}
