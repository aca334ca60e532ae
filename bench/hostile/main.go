//go:build linux

// Hostile runs clients that are malicious or careless against atomredis and redis-server, and prints the effects on an
// ordinary client beside them and on the server's memory and processor time. Each case gets a new server, is bounded in
// time and in the bytes it sends, and uses only the loopback interface.
package main

import (
	"flag"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/atomredis/atomredis/bench/internal/load"
	"github.com/atomredis/atomredis/bench/internal/servers"
)

const (
	attackLimit = 12 * time.Second // the most time for the hostile clients of a case
	calm        = time.Second      // how long the bystander continues after them
	// the time after which the remaining memory is measured; atomredis returns memory after ten quiet seconds
	rest       = 12 * time.Second
	rate       = 500     // operations of the bystander per second
	clientHeap = 1 << 30 // bytes that this program may use
)

func main() {
	wanted := flag.String("case", "", "cases, separated by commas, or what their names begin with (default all but long and doors)")
	program := flag.String("server", servers.AtomRedis, "the binary of atomredis")
	redis := flag.Bool("redis", true, "measure redis-server too")
	limit := flag.Duration("limit", 9*time.Minute, "no case begins later than this")
	name := flag.String("name", "hostile", "of the file in bench/results")
	flag.Parse()
	log.SetFlags(0)
	defer servers.Cleanup()
	debug.SetMemoryLimit(clientHeap) // otherwise the load generator switches the garbage collector off
	servers.Check(os.MkdirAll("bench/results", 0o755))

	programs := []string{*program}
	if *redis {
		programs = []string{servers.Redis, *program}
	}
	begun := time.Now()
	var rows []*row
	var resting sync.WaitGroup
	for _, c := range slices.Concat(cases, longCases, doorCases) {
		if !chosen(c.name, *wanted) {
			continue
		}
		for _, p := range programs {
			if c.ours && p == servers.Redis {
				continue
			}
			r := &row{name: c.name, program: filepath.Base(p)}
			rows = append(rows, r)
			if time.Since(begun) > *limit {
				r.note = "left out: no time"
				continue
			}
			s := run(p, &c, r)
			fmt.Fprintln(os.Stderr, r)
			resting.Go(func() { // while the next cases run
				time.Sleep(rest)
				r.after, _ = s.Memory()
				s.Discard()
			})
		}
	}
	resting.Wait()
	report(rows, filepath.Join("bench/results", *name+".md"))
}

// row is a line of the table.
type row struct {
	name, program       string
	latency             *hdrhistogram.Histogram // of the bystander, in ns
	before, peak, after int64                   // resident bytes
	cpu                 time.Duration
	note                string
}

// String returns the row as a line of a Markdown table.
func (r *row) String() string {
	if r.latency == nil {
		return fmt.Sprintf("| %s | %s | | | | | | | %s |", r.name, r.program, r.note)
	}
	const mib = 1 << 20
	return fmt.Sprintf("| %s | %s | %.1f | %.1f | %d | %d | %d | %.2f | %s |", r.name, r.program,
		float64(r.latency.ValueAtQuantile(99.9))/1e6, float64(r.latency.Max())/1e6, r.before/mib, r.peak/mib, r.after/mib,
		r.cpu.Seconds(), r.note)
}

// report prints the table, and writes it to a file.
func report(rows []*row, file string) {
	var b strings.Builder
	b.WriteString("| case | server | bystander p99.9, ms | maximum, ms | MiB before | at the peak | after | processor, s | |\n")
	b.WriteString("|---|---|---:|---:|---:|---:|---:|---:|---|\n")
	for _, r := range rows {
		fmt.Fprintln(&b, r)
	}
	fmt.Print(b.String())
	servers.Check(os.WriteFile(file, []byte(b.String()), 0o644))
}

// run measures a case on a new server, which is left running.
func run(program string, c *hostileCase, r *row) *servers.Server {
	s := servers.New(program)
	args := c.args
	if !slices.Contains(args, "--appendonly") {
		args = append(servers.Durability("none"), args...)
	}
	s.Start(args...)
	if c.fill != nil {
		c.fill(s)
	}
	client := &bystander{Commands: load.NewCommands([][]string{{"GET", "bystander"},
		{"SET", "bystander", servers.Value(1, 1)}}, nil, nil)}
	generator, err := load.New(s.Addr, []load.Connection{{Client: client, Errors: true}})
	servers.Check(err)
	defer generator.Close()

	s.ResetPeak()
	r.before, _ = s.Memory()
	cpu := s.CPU()
	var stop atomic.Bool
	options := load.Options{Pipeline: 1, Duration: 4 * attackLimit, Rate: rate, Stop: &stop}
	if c.quiet {
		options.Rate = quietRate
	}
	var result load.Result
	var beside sync.WaitGroup
	beside.Go(func() { result, err = generator.Run(options) })
	a := &attack{Server: s, until: time.Now().Add(attackLimit)}
	c.attack(a)
	a.close()
	time.Sleep(calm)
	stop.Store(true)
	beside.Wait()
	if err != nil {
		a.note("the bystander: %v", err)
	}
	if client.refused > 0 {
		a.note("%d errors for the bystander", client.refused)
	}
	if len(result.Latency) == 0 {
		result.Latency = []*hdrhistogram.Histogram{hdrhistogram.New(1, 2, 3)}
	}
	r.latency = result.Latency[0]
	used := s.CPU().Since(cpu)
	r.cpu = max(used.Total, used.User+used.System) // the total misses threads that have ended
	_, r.peak = s.Memory()
	r.note = strings.Join(a.notes, "; ")
	return s
}

// bystander counts the error replies that it gets.
type bystander struct {
	*load.Commands
	refused int
}

// Reply implements load.Client.
func (b *bystander) Reply(op int, reply []byte) error {
	if reply[0] == '-' {
		b.refused++
	}
	return b.Commands.Reply(op, reply)
}
