//go:build linux

// Group measures the cost of three servers agreeing on every write, on one machine. It compares them with one server
// that syncs every write, with a redis-server with a replica whose clients wait for it (WAIT 1), and with three servers
// of etcd. In each round every contender is measured alone, one after the other.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"log"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/atomredis/atomredis/bench/internal/load"
	"github.com/atomredis/atomredis/bench/internal/rawgrpc"
	"github.com/atomredis/atomredis/bench/internal/servers"
)

type settings struct {
	program string
	rounds  int
	time    time.Duration
	keys    int
}

// shape is how clients write.
type shape struct{ pipeline, conns int }

var shapes = []shape{{1, 50}, {16, 50}, {1, 500}, {16, 500}}

// measured is the outcome.
type measured struct {
	perSecond float64
	p50, p99  time.Duration
}

// contender starts its servers. It returns a function that writes to them and one that ends them; nil if a program is
// missing.
type contender struct {
	name  string
	start func(o settings) (write func(s shape) measured, stop func())
}

func main() {
	var o settings
	flag.StringVar(&o.program, "server", servers.AtomRedis, "the binary of atomredis")
	flag.IntVar(&o.rounds, "rounds", 3, "how often each contender is measured")
	flag.DurationVar(&o.time, "time", 3*time.Second, "how long each measurement takes")
	flag.IntVar(&o.keys, "keys", 100_000, "how many keys are written to")
	flag.Parse()
	log.SetFlags(0)
	defer servers.Cleanup()
	servers.Check(os.MkdirAll("bench/results", 0o755))
	file, err := os.Create("bench/results/group.txt")
	servers.Check(err)
	measure(o, io.MultiWriter(os.Stdout, file))
	servers.Check(file.Close())
}

func measure(o settings, out io.Writer) {
	contenders := []contender{
		{"group of three", startGroup},
		{"one, always", startOne},
		{"redis, WAIT 1", startRedis},
		{"etcd, three", startEtcd},
	}
	results := make([]map[shape][]measured, len(contenders))
	for round := range o.rounds {
		for i := range contenders {
			i = (round + i) % len(contenders)
			write, stop := contenders[i].start(o)
			if write == nil {
				continue
			}
			if results[i] == nil {
				results[i] = map[shape][]measured{}
			}
			for _, s := range shapes {
				results[i][s] = append(results[i][s], write(s))
			}
			stop()
		}
	}
	fmt.Fprintf(out, "SET of %d keys, %d rounds of %v; medians, and ratios of the group to the others in each round (least-most)\n\n",
		o.keys, o.rounds, o.time)
	fmt.Fprintf(out, "%-16s %9s %6s %10s %10s %10s   %s\n", "", "pipeline", "conns", "writes/s",
		"p50", "p99", "group beside it: writes/s, p99")
	for _, s := range shapes {
		for i, c := range contenders {
			if results[i] == nil {
				fmt.Fprintf(out, "%-16s is not installed\n", c.name)
				continue
			}
			all := results[i][s]
			row := fmt.Sprintf("%-16s %9d %6d %10.0f %10v %10v", c.name, s.pipeline, s.conns, servers.Median(all, measured.rate),
				time.Duration(servers.Median(all, measured.middle)).Round(10*time.Microsecond),
				time.Duration(servers.Median(all, measured.tail)).Round(10*time.Microsecond))
			if i > 0 {
				row += fmt.Sprintf("   %s  %s", servers.Ratio(results[0][s], all, measured.rate), servers.Ratio(results[0][s], all, measured.tail))
			}
			fmt.Fprintln(out, row)
		}
	}
}

func (m measured) rate() float64   { return m.perSecond }
func (m measured) middle() float64 { return float64(m.p50) }
func (m measured) tail() float64   { return float64(m.p99) }

// startGroup starts three servers that share a journal.
func startGroup(o settings) (func(shape) measured, func()) {
	var all []*servers.Server
	var peers []string
	for range 3 {
		all, peers = append(all, servers.New(o.program)), append(peers, servers.FreeAddr())
	}
	for i, s := range all {
		s.Launch("--save", "", "--appendonly", "yes", "--raft-addr", peers[i], "--raft-peers", strings.Join(peers, ","))
	}
	for _, s := range all {
		s.Await("raft_leader:127", "INFO", "replication")
	}
	for {
		for _, s := range all {
			if strings.Contains(s.Do("INFO", "replication"), "raft_state:leader") {
				return func(sh shape) measured { return writeRESP(s.Addr, o, sh, nil) }, func() { remove(all) }
			}
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// startOne starts a server by itself.
func startOne(o settings) (func(shape) measured, func()) {
	s := servers.New(o.program)
	s.Start(servers.Durability("always")...)
	return func(sh shape) measured { return writeRESP(s.Addr, o, sh, nil) }, func() { remove([]*servers.Server{s}) }
}

// startRedis starts a redis-server with a replica. Neither syncs anything: WAIT waits for the replica's memory.
func startRedis(o settings) (func(shape) measured, func()) {
	if _, err := exec.LookPath("redis-server"); err != nil {
		return nil, nil
	}
	master, replica := servers.New("redis-server"), servers.New("redis-server")
	master.Start("--save", "")
	host, port, _ := strings.Cut(master.Addr, ":")
	replica.Start("--save", "", "--replicaof", host+" "+port)
	replica.Await("master_link_status:up", "INFO", "replication")
	wait := []string{"WAIT", "1", "0"}
	return func(sh shape) measured { return writeRESP(master.Addr, o, sh, wait) },
		func() { remove([]*servers.Server{replica, master}) }
}

func remove(all []*servers.Server) {
	for _, s := range all {
		s.Remove()
	}
}

// writeRESP has each client send s.pipeline SETs at once, followed by the command then, and again after their replies.
// The latency is that of all of them together.
func writeRESP(addr string, o settings, s shape, then []string) measured {
	var commands [][]string
	var want []string
	for range s.pipeline {
		commands, want = append(commands, []string{"SET", "key:" + load.Random, servers.Value(1, 1)}), append(want, "+OK")
	}
	if then != nil {
		commands, want = append(commands, then), append(want, ":")
	}
	keys := load.Uniform(o.keys)
	var connections []load.Connection
	for i := range s.conns {
		connections = append(connections, load.Connection{Client: load.NewCommands(commands, keys.Source(i), want)})
	}
	g, err := load.New(addr, connections)
	servers.Check(err)
	defer g.Close()
	_, err = g.Run(load.Options{Pipeline: 1, Duration: o.time / 5})
	servers.Check(err)
	r, err := g.Run(load.Options{Pipeline: 1, Duration: o.time})
	servers.Check(err)
	h := r.Latency[0]
	return measured{r.PerSecond() * float64(s.pipeline), time.Duration(h.ValueAtQuantile(50)), time.Duration(h.ValueAtQuantile(99))}
}

// The method of etcd used here.
const etcdPut = "/etcdserverpb.KV/Put"

// startEtcd starts three servers of etcd in their default configuration, without TLS.
func startEtcd(o settings) (func(shape) measured, func()) {
	if _, err := exec.LookPath("etcd"); err != nil {
		return nil, nil
	}
	var all []*servers.Server
	var cluster, peers []string
	for i := range 3 {
		s := servers.New("etcd")
		s.Addr = servers.FreeAddr()
		all, peers = append(all, s), append(peers, "http://"+servers.FreeAddr())
		cluster = append(cluster, "n"+strconv.Itoa(i)+"="+peers[i])
	}
	for i, s := range all {
		client := "http://" + s.Addr
		s.Run("--name", "n"+strconv.Itoa(i), "--data-dir", filepath.Join(s.Dir, "data"), "--listen-client-urls", client,
			"--advertise-client-urls", client, "--listen-peer-urls", peers[i], "--initial-advertise-peer-urls", peers[i],
			"--initial-cluster", strings.Join(cluster, ","), "--logger", "zap", "--log-level", "panic")
	}
	return func(sh shape) measured { return writeEtcd(all[0].Addr, o, sh) }, func() { remove(all) }
}

// writeEtcd has clients put one key after the other. etcd has no pipelines: instead, s.pipeline clients share each
// connection.
func writeEtcd(addr string, o settings, s shape) measured {
	var conns []*grpc.ClientConn
	for range s.conns {
		c, err := grpc.NewClient("passthrough:///"+addr, grpc.WithTransportCredentials(insecure.NewCredentials()),
			grpc.WithDefaultCallOptions(grpc.ForceCodec(rawgrpc.Codec{})))
		servers.Check(err)
		defer c.Close()
		conns = append(conns, c)
	}
	run := func(length time.Duration) (n int64, h *hdrhistogram.Histogram) {
		var stop atomic.Bool
		var mu sync.Mutex
		var running sync.WaitGroup
		h = hdrhistogram.New(1, int64(time.Minute), 3)
		for _, c := range conns {
			for range s.pipeline {
				running.Go(func() {
					var reply []byte
					var took []time.Duration
					for !stop.Load() {
						request := rawgrpc.Field(rawgrpc.Field(nil, 1, servers.Key(rand.IntN(o.keys))), 2, servers.Value(1, 1))
						begun := time.Now()
						if c.Invoke(context.Background(), etcdPut, &request, &reply, grpc.WaitForReady(true)) == nil {
							took = append(took, time.Since(begun))
						} else { // it refuses some when more than 5,000 are under way
							time.Sleep(time.Millisecond)
						}
					}
					mu.Lock()
					defer mu.Unlock()
					n += int64(len(took))
					for _, d := range took {
						h.RecordValue(int64(d))
					}
				})
			}
		}
		time.Sleep(length)
		stop.Store(true)
		running.Wait()
		return n, h
	}
	run(o.time / 5)
	begun := time.Now()
	n, h := run(o.time)
	return measured{float64(n) / time.Since(begun).Seconds(), time.Duration(h.ValueAtQuantile(50)),
		time.Duration(h.ValueAtQuantile(99))}
}
