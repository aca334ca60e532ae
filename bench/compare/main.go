//go:build linux

// Compare measures atomredis and redis-server in one run, at the same settings: both servers are up, and the
// measurements alternate between them. It prints medians, also of the ratios of two measurements side by side, and how
// far these ratios spread. redis-benchmark makes the load of the closed loop where it has the command; everything else
// comes from our own generator, bench/internal/load.
package main

import (
	"flag"
	"fmt"
	"io"
	"log"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/atomredis/atomredis/bench/internal/servers"
)

// defaults are the settings of which each measurement varies one.
var defaults = settings{Durability: "none", Pipeline: 1, Conns: 50, Size: 64, Keys: 100_000}

func main() {
	names := flag.String("workload", "", "workloads, separated by commas (default all)")
	rounds := flag.Int("rounds", 5, "how often each server is measured")
	open := flag.Int("open", 0, "how often its latency is, which varies more (default as often)")
	duration := flag.Duration("time", 350*time.Millisecond, "how long each measurement takes")
	durability := flag.String("durability", defaults.Durability,
		"none, everysec or always; this and the next may be lists with commas")
	pipeline := flag.String("pipeline", "1,16", "operations that a connection has under way at once")
	conns := flag.String("conns", strconv.Itoa(defaults.Conns), "connections")
	size := flag.String("size", strconv.Itoa(defaults.Size), "bytes of a value")
	keys := flag.String("keys", strconv.Itoa(defaults.Keys), "number of keys, or of elements of one key")
	zipf := flag.Float64("zipf", 0, "ask for some keys more often than for others: the exponent, above 1")
	full := flag.Bool("full", false, "measure all durabilities, and one change at a time of connections, sizes, keys and zipf")
	program := flag.String("server", servers.AtomRedis, "the binary of atomredis")
	name := flag.String("name", "compare", "of the files in bench/results")
	all := flag.Int("all", 0, "instead, run redis-benchmark's default list on atomredis, so many requests each, for errors")
	flag.Parse()
	log.SetFlags(0)
	defer servers.Cleanup()
	if *open == 0 {
		*open = *rounds
	}
	b := bench{*program, *rounds, *open, *duration}
	if *all > 0 {
		s := servers.New(b.program)
		s.Start(servers.Durability("none")...)
		runDefaults(s, *all)
		return
	}

	var blocks []block
	if pipelines := numbers(*pipeline); *full {
		blocks = fullBlocks(pipelines)
	} else {
		for _, d := range strings.Split(*durability, ",") {
			for _, n := range numbers(*conns) {
				for _, bytes := range numbers(*size) {
					for _, k := range numbers(*keys) {
						blocks = append(blocks, block{settings{Durability: d, Conns: n, Size: bytes, Keys: k, Zipf: *zipf}, pipelines,
							everything})
					}
				}
			}
		}
	}
	var wanted []string
	if *names != "" {
		wanted = strings.Split(*names, ",")
	}
	known := workloads(defaults)
	for _, n := range wanted {
		if !slices.ContainsFunc(known, func(w workload) bool { return w.name == n }) {
			servers.Fatal("no workload is called ", n)
		}
	}

	base := filepath.Join("bench/results", *name)
	servers.Check(os.MkdirAll(filepath.Dir(base), 0o755))
	text, err := os.Create(base + ".txt")
	servers.Check(err)
	out := io.MultiWriter(os.Stdout, text)
	r := newReport(b)
	r.printHead(out)
	for _, block := range blocks {
		r.run(b, block, wanted, out)
	}
	fmt.Fprintf(out, "\n%.0f s in all\n", time.Since(r.Date).Seconds())
	servers.Check(text.Close())
	r.save(base + ".json")
	servers.Check(r.saveChart(base + ".svg"))
}

// block is a number of rows that differ only in workload and pipeline.
type block struct {
	settings
	pipelines []int
	concerns  func(w workload) bool // whether the settings matter for the workload
}

func everything(workload) bool { return true }

// fullBlocks returns the blocks of the full run.
func fullBlocks(pipelines []int) (blocks []block) {
	add := func(concerns func(w workload) bool, change func(c *settings)) {
		c := defaults
		change(&c)
		blocks = append(blocks, block{c, pipelines, concerns})
	}
	for _, d := range []string{"none", "everysec", "always"} {
		add(everything, func(c *settings) { c.Durability = d })
	}
	for _, n := range []int{1, 500} {
		add(everything, func(c *settings) { c.Conns = n })
	}
	for _, bytes := range []int{16, 4 << 10, 256 << 10} {
		add(func(w workload) bool { return w.bytes > 0 }, func(c *settings) { c.Size = bytes })
	}
	keyed := func(w workload) bool { return w.keyed }
	add(keyed, func(c *settings) { c.Keys = 5_000_000 })
	add(keyed, func(c *settings) { c.Zipf = 1.1 })
	return blocks
}

// run measures the wanted workloads of a block; an empty list means all.
func (r *report) run(b bench, block block, wanted []string, out io.Writer) {
	printBlock(out, block.settings)
	for i := range workloads(block.settings) {
		for _, pipeline := range block.pipelines {
			c := block.settings
			c.Pipeline = pipeline
			w := workloads(c)[i]
			if len(wanted) > 0 && !slices.Contains(wanted, w.name) || w.serial && pipeline > 1 || !block.concerns(w) ||
				w.bytes > largest {
				continue
			}
			row := b.measure(w, c)
			row.print(out)
			r.Rows = append(r.Rows, row)
		}
	}
}

// numbers reads a list of positive numbers.
func numbers(list string) (ns []int) {
	for s := range strings.SplitSeq(list, ",") {
		n, err := strconv.Atoi(s)
		servers.Check(err)
		if n < 1 {
			servers.Fatal(n, " is too small")
		}
		ns = append(ns, n)
	}
	return ns
}
