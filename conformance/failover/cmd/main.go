//go:build linux

// Command failover runs package failover, as root.
package main

import (
	"context"
	"flag"
	"fmt"
	"maps"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/atomredis/atomredis/conformance/failover"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "failover:", err)
		os.Exit(1)
	}
}

func run() error {
	o := failover.Options{Progress: os.Stderr}
	flag.StringVar(&o.Server, "server", "bin/atomredis", "the server's binary")
	flag.StringVar(&o.Before, "before", "", "the binary of an earlier version, which the servers begin with")
	flag.IntVar(&o.Rounds, "rounds", 500, "how many faults there are")
	flag.Uint64Var(&o.Seed, "seed", 1, "the seed of the faults")
	flag.StringVar(&o.Dir, "dir", "", "the directory for data and log (default: a temporary one, deleted after success)")
	clients := flag.String("clients", "plain,sentinel,cluster", "the sorts of clients that write")
	flag.Parse()
	o.Clients = strings.Split(*clients, ",")
	var err error
	temporary := o.Dir == ""
	if temporary {
		o.Dir, err = os.MkdirTemp("", "failover")
	} else {
		err = os.MkdirAll(o.Dir, 0o755)
	}
	if err != nil {
		return err
	}
	for _, binary := range []*string{&o.Server, &o.Before} {
		if *binary == "" {
			continue
		}
		if *binary, err = filepath.Abs(*binary); err != nil {
			return err
		}
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	r, err := failover.Run(ctx, o)
	if err != nil {
		return err
	}
	if temporary {
		os.RemoveAll(o.Dir)
	}
	fmt.Printf("failover: seed %d: %v: %d acknowledged writes found, %d reads, %d messages of a queue, "+
		"%d entries and %d answers of elements, 0 losses\n", o.Seed, r.Faults, r.Writes, r.Reads, r.Messages, r.Entries, r.Answers)
	for _, fault := range slices.Sorted(maps.Keys(r.Gaps)) {
		for _, kind := range slices.Sorted(maps.Keys(r.Gaps[fault])) {
			gaps := r.Gaps[fault][kind]
			part := func(p float64) time.Duration { return failover.Percentile(gaps, p).Round(time.Millisecond) }
			fmt.Printf("failover: %s of a leader, %s clients: %d times, nothing acknowledged for %v (median), %v (p99), %v (longest)\n",
				fault, kind, len(gaps), part(0.5), part(0.99), part(1))
		}
	}
	return nil
}
