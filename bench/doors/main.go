//go:build linux

// Doors measures the protocols of doors, in one run: the same operations through the door, as commands in RESP, and,
// for Skein, on etcd. All clients are Go programs with the same number of connections, and none of them pipelines. The
// servers are up together, measurements alternate between them, and the others are paused meanwhile.
package main

import (
	"flag"
	"fmt"
	"io"
	"log"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/atomredis/atomredis/bench/internal/servers"
)

// settings are the same for all contenders.
type settings struct {
	program string // of atomredis
	conns   int
	keys    int // number of keys
	rounds  int
	time    time.Duration // of each measurement
}

func main() {
	var o settings
	flag.StringVar(&o.program, "server", servers.AtomRedis, "the binary of atomredis")
	flag.IntVar(&o.conns, "conns", 50, "connections")
	flag.IntVar(&o.keys, "keys", 10_000, "keys that are there")
	flag.IntVar(&o.rounds, "rounds", 5, "how often each contender is measured")
	flag.DurationVar(&o.time, "time", 500*time.Millisecond, "how long each measurement takes")
	names := flag.String("case", "", "cases, separated by commas (default all)")
	flag.Parse()
	log.SetFlags(0)
	defer servers.Cleanup()

	servers.Check(os.MkdirAll("bench/results", 0o755))
	file, err := os.Create("bench/results/doors.txt")
	servers.Check(err)
	out := io.MultiWriter(os.Stdout, file)
	fmt.Fprintf(out, "%d connections, %d keys, %d rounds of %v; ratios are medians of rounds side by side (least-most)\n\n",
		o.conns, o.keys, o.rounds, o.time)
	fmt.Fprintf(out, "%-14s %-9s %9s %9s   %-22s %s\n", "case", "through", "op/s", "cpu µs/op", "op/s beside", "cpu beside")
	for _, c := range cases() {
		if *names == "" || slices.Contains(strings.Split(*names, ","), c.name) {
			c.measure(o, out)
		}
	}
	servers.Check(file.Close())
}

// cases returns all cases. Contenders are compared with the first contender of their case, and with etcd.
func cases() []benchmark {
	return slices.Concat([]benchmark{spiderqCase()}, skeinCases(), igniteCases())
}
