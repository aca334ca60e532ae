//go:build linux

// Checkpoint measures how long requests take while BGREWRITEAOF runs on redis-server and BGSAVE on atomredis, every key having
// changed since the last one, beside the same without. The load is an open loop: requests are due at fixed times whatever the
// replies do, and their time counts from then, so that a server that stops for an instant pays for all who would have come.
// It runs the binary bin/atomredis.
package main

import (
	"flag"
	"fmt"
	"log"
	"math/rand/v2"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/atomredis/atomredis/bench/internal/servers"
)

var (
	keys   = flag.Int("keys", 2_000_000, "strings of 64 bytes; the fields of hashes are a tenth as many more")
	rate   = flag.Int("rate", 20_000, "requests per second")
	conns  = flag.Int("conns", 20, "connections")
	rounds = flag.Int("rounds", 5, "how often each server makes a checkpoint")
	policy = flag.String("appendfsync", "everysec", "durability of both servers: everysec or always")
	quiet  = flag.Duration("quiet", 5*time.Second, "how long each round measures without a checkpoint")
)

// hashFields is how many fields each hash has.
const hashFields = 100

func main() {
	flag.Parse()
	log.SetFlags(0)
	debug.SetGCPercent(1000) // this program must not stop for what it measures
	defer servers.Cleanup()
	all := []*servers.Server{servers.New(servers.Redis), servers.New(servers.AtomRedis)}
	for _, s := range all {
		s.Start(append(servers.Durability(*policy), s.OnDemand()...)...)
	}

	var without, during [2][]result
	for round := range *rounds + 1 {
		for i, s := range all {
			change(s, round)
			if round == 0 {
				s.Settle() // of this one everything would be new
				continue
			}
			a := measure(s, func() { time.Sleep(*quiet) })
			b := measure(s, s.Settle)
			a.show(s, fmt.Sprintf("round %d, without", round))
			b.show(s, fmt.Sprintf("round %d, during", round))
			without[i], during[i] = append(without[i], a), append(during[i], b)
		}
	}
	// Medians, not the quantiles of all rounds together: one round in which the machine was busy would make up their tail.
	fmt.Printf("\nmedians of %d rounds, %d keys, %d requests/s, appendfsync %s\n", *rounds, *keys, *rate, *policy)
	for i, s := range all {
		medians(without[i]).show(s, "without")
		medians(during[i]).show(s, "during")
	}
}

// quantiles are those of the latency that are shown; the last one is the longest.
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
		return servers.AppendCommand(dst, "HSET", hash(i/hashFields), fmt.Sprint("field:", i%hashFields), servers.Value(i, generation))
	})
	time.Sleep(2 * time.Second) // until what was journalled is on the disk
}

func hash(i int) string { return fmt.Sprintf("hash:%012d", i) }

// appendRequest appends a random request: half of them read.
func appendRequest(dst []byte) []byte {
	i := rand.IntN(*keys)
	switch rand.IntN(4) {
	case 0:
		return servers.AppendCommand(dst, "SET", servers.Key(i), servers.Value(i, 0xff))
	case 1:
		return servers.AppendCommand(dst, "HSET", hash(i/10/hashFields), fmt.Sprint("field:", i%hashFields), servers.Value(i, 0xff))
	default:
		return servers.AppendCommand(dst, "GET", servers.Key(i))
	}
}

// measure loads the server while f runs.
func measure(s *servers.Server, f func()) (r result) {
	type connection struct {
		*servers.Conn
		due   chan time.Time // when the requests that have been sent were due
		times []time.Duration
	}
	all := make([]connection, *conns)
	var readers sync.WaitGroup
	for i := range all {
		c := &all[i]
		c.Conn, c.due = s.Dial(), make(chan time.Time, 1<<16)
		readers.Go(func() {
			for due := range c.due {
				reply, err := c.Reply()
				servers.Check(err)
				c.times = append(c.times, time.Since(due))
				if strings.HasPrefix(reply, "-") {
					servers.Fatal(s.Program, ": ", reply)
				}
			}
		})
	}

	var stop atomic.Bool
	sent := make(chan struct{})
	go func() {
		defer close(sent)
		runtime.LockOSThread() // so that sleeping is as exact as the system can
		interval := time.Second / time.Duration(*rate)
		var b []byte
		due := time.Now()
		for i := 0; !stop.Load(); i = (i + 1) % len(all) {
			due = due.Add(interval)
			if wait := time.Until(due); wait > 0 {
				t := unix.NsecToTimespec(int64(wait))
				unix.Nanosleep(&t, nil)
			}
			b = appendRequest(b[:0])
			all[i].due <- due
			_, err := all[i].Write(b)
			servers.Check(err)
		}
	}()
	begin := time.Now()
	f()
	r.took = time.Since(begin)
	stop.Store(true)
	<-sent

	var times []time.Duration
	for i := range all {
		close(all[i].due)
	}
	readers.Wait()
	for i := range all {
		all[i].Close()
		times = append(times, all[i].times...)
	}
	for i, q := range quantiles {
		r.latency[i] = servers.Quantile(times, q)
	}
	return r
}
