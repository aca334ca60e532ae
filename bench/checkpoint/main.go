//go:build linux

// Checkpoint measures how long requests take while BGREWRITEAOF runs on redis-server and on atomredis, after a change
// to every key, and compares that with the same load without BGREWRITEAOF. The load is an open loop: requests are due
// at fixed times, whatever the replies, and their time counts from then. So a server that stops for an instant pays for
// all requests that were due meanwhile.
package main

import (
	"flag"
	"fmt"
	"log"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/atomredis/atomredis/bench/internal/load"
	"github.com/atomredis/atomredis/bench/internal/servers"
)

var (
	keys   = flag.Int("keys", 2_000_000, "strings of 64 bytes; the fields of hashes are a tenth as many more")
	rate   = flag.Int("rate", 20_000, "requests per second")
	conns  = flag.Int("conns", 20, "connections")
	rounds = flag.Int("rounds", 5, "how often each server makes a checkpoint")
	policy = flag.String("appendfsync", "everysec", "durability of both servers: everysec or always")
	binary = flag.String("server", servers.AtomRedis, "the binary of atomredis")
	quiet  = flag.Duration("quiet", 5*time.Second, "how long each round measures without a checkpoint")
)

// hashFields is how many fields each hash has.
const hashFields = 100

func main() {
	flag.Parse()
	log.SetFlags(0)
	defer servers.Cleanup()
	all := []*servers.Server{servers.New(servers.Redis), servers.New(*binary)}
	for _, s := range all {
		s.Start(append(servers.Durability(*policy), s.OnDemand()...)...)
	}

	var without, during [2][]result
	for round := range *rounds + 1 {
		for i, s := range all {
			change(s, round)
			if round == 0 {
				s.Settle() // otherwise everything would be new to it
				continue
			}
			a := measure(s, func() { time.Sleep(*quiet) })
			b := measure(s, s.Settle)
			a.show(s, fmt.Sprintf("round %d, without", round))
			b.show(s, fmt.Sprintf("round %d, during", round))
			without[i], during[i] = append(without[i], a), append(during[i], b)
		}
	}
	// Medians of the rounds, not quantiles over all rounds together: one round on a busy machine would determine their
	// tail.
	fmt.Printf("\nmedians of %d rounds, %d keys, %d requests/s, appendfsync %s\n", *rounds, *keys, *rate, *policy)
	for i, s := range all {
		medians(without[i]).show(s, "without")
		medians(during[i]).show(s, "during")
	}
}

// quantiles are the latency quantiles shown; the last one is the maximum.
var quantiles = [...]float64{0.5, 0.99, 0.999, 1}

// result is the outcome of one round.
type result struct {
	latency [len(quantiles)]time.Duration
	took    time.Duration
}

func (r result) show(s *servers.Server, what string) {
	fmt.Printf("%-16s %-18s %5.1f s", s.Program, what, r.took.Seconds())
	for i, name := range [len(quantiles)]string{"p50", "p99", "p99.9", "max"} {
		fmt.Printf("  %s %8.3f ms", name, r.latency[i].Seconds()*1000)
	}
	fmt.Println()
}

// medians returns the median of each value.
func medians(results []result) (m result) {
	values := make([]time.Duration, len(results))
	for q := range quantiles {
		for i, r := range results {
			values[i] = r.latency[q]
		}
		m.latency[q] = servers.Quantile(values, 0.5)
	}
	for i, r := range results {
		values[i] = r.took
	}
	m.took = servers.Quantile(values, 0.5)
	return m
}

// change gives every key a new value.
func change(s *servers.Server, generation int) {
	s.Fill(*keys, func(dst []byte, i int) []byte {
		return servers.AppendCommand(dst, "SET", servers.Key(i), servers.Value(i, generation))
	})
	s.Fill(*keys/10, func(dst []byte, i int) []byte {
		return servers.AppendCommand(dst, "HSET", hash(i/hashFields), fmt.Sprint("field:", i%hashFields),
			servers.Value(i, generation))
	})
	time.Sleep(2 * time.Second) // until the journalled changes are on disk
}

func hash(i int) string { return fmt.Sprintf("hash:%012d", i) }

// client sends random requests: half of them are reads.
type client struct{}

// Append implements load.Client.
func (client) Append(dst []byte, _, step int) ([]byte, int) {
	if step > 0 {
		return dst, 0
	}
	i := rand.IntN(*keys)
	switch rand.IntN(4) {
	case 0:
		dst = servers.AppendCommand(dst, "SET", servers.Key(i), servers.Value(i, 0xff))
	case 1:
		dst = servers.AppendCommand(dst, "HSET", hash(i/10/hashFields), fmt.Sprint("field:", i%hashFields),
			servers.Value(i, 0xff))
	default:
		dst = servers.AppendCommand(dst, "GET", servers.Key(i))
	}
	return dst, 1
}

// Reply implements load.Client.
func (client) Reply(_ int, reply []byte) error {
	if reply[0] == '-' {
		return fmt.Errorf("%.60q", reply)
	}
	return nil
}

// measure loads the server while f runs.
func measure(s *servers.Server, f func()) (r result) {
	connections := make([]load.Connection, *conns)
	for i := range connections {
		connections[i].Client = client{}
	}
	g, err := load.New(s.Addr, connections)
	servers.Check(err)
	defer g.Close()
	var stop atomic.Bool
	var generated load.Result
	done := make(chan error)
	go func() {
		var err error
		generated, err = g.Run(load.Options{Pipeline: 1, Duration: time.Hour, Rate: float64(*rate), Stop: &stop})
		done <- err
	}()
	begin := time.Now()
	f()
	r.took = time.Since(begin)
	stop.Store(true)
	servers.Check(<-done)
	for i, q := range quantiles {
		r.latency[i] = time.Duration(generated.Latency[0].ValueAtQuantile(q * 100))
	}
	return r
}
