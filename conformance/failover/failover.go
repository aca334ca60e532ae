//go:build linux

// Package failover runs a group of three servers as separate processes, each in a network namespace. Again and again
// the leader is killed, stopped or cut off, while plain clients, clients of Sentinel and clients of clusters write, and
// a queue of pressure is in use. Nothing acknowledged may be missing, and nothing old may be read; the time in which
// nobody could write is measured.
package failover

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"time"
)

// Options configure a run.
type Options struct {
	Server string // the binary
	// Before is the binary of an earlier version, "" for none. The servers begin with it, and the first faults upgrade
	// them to Server, one after the other.
	Before string
	Rounds int
	Seed   uint64
	Dir    string // for data and logs
	// Clients are the kinds of clients that write: plain, sentinel, cluster.
	Clients []string
	// Progress receives lines about what happens.
	Progress io.Writer
}

// Result counts the work of Run.
type Result struct {
	Faults   map[string]int
	Writes   int // acknowledged, and found
	Reads    int // of data acknowledged before
	Messages int // of the queue, acknowledged, and received
	Entries  int // of an element of atom, acknowledged, and found
	Answers  int // of an element to another one's command
	// Gaps has the periods without an acknowledged write around each fault, by kind of client.
	Gaps map[string][]time.Duration
}

// fault is something that goes wrong with a server.
type fault struct {
	name  string
	begin func(g *group, n *node) error
	lasts time.Duration
	end   func(g *group, n *node) error
}

var faults = []fault{
	{"kill -9", (*group).kill, 500 * time.Millisecond, (*group).start},
	{"stopped for 3 s", (*group).suspend, 3 * time.Second, (*group).resume},
	{"cut off for 3 s", (*group).cutOff, 3 * time.Second, (*group).reconnect},
	{"cannot send for 3 s", (*group).silence, 3 * time.Second, (*group).reconnect},
	{"stopped for 30 s", (*group).suspend, 30 * time.Second, (*group).resume},
}

var upgrade = fault{"upgraded", (*group).end, 0, (*group).upgrade}

// choose chooses the next fault: long pauses are rare, and every fifth fault hits a server other than the leader.
func choose(r *rand.Rand) (f fault, leader bool) {
	if r.IntN(25) == 0 {
		return faults[4], true
	}
	return faults[r.IntN(4)], r.IntN(5) > 0
}

// Run runs the group, and returns an error if acknowledged data is missing or old, or if the group does not recover.
// When the context ends, the current round is the last one.
func Run(until context.Context, o Options) (result Result, err error) {
	ctx := context.WithoutCancel(until)
	result = Result{Faults: map[string]int{}, Gaps: map[string][]time.Duration{}}
	g, err := newGroup(o)
	if err != nil {
		return result, err
	}
	defer func() { err = errors.Join(err, g.close()) }()
	for _, n := range g.nodes {
		if err := g.start(n); err != nil {
			return result, err
		}
	}
	if _, err := g.awaitWhole(ctx); err != nil {
		return result, err
	}
	q, err := newQueue(ctx, g)
	if err != nil {
		return result, err
	}
	e, err := newElements(ctx, g)
	if err != nil {
		return result, err
	}
	rnd := rand.New(rand.NewPCG(o.Seed, 0))
	for round := 1; round <= o.Rounds && until.Err() == nil; round++ {
		if err := g.round(ctx, round, rnd, &result); err != nil {
			return result, fmt.Errorf("round %d: %w", round, err)
		}
		if err := errors.Join(q.failed(), e.goOn(ctx)); err != nil {
			return result, fmt.Errorf("round %d: %w", round, err)
		}
	}
	result.Messages, err = q.end()
	if err == nil {
		result.Entries, result.Answers, err = e.end(ctx)
	}
	return result, err
}

// round causes one fault under load, and checks everything afterwards.
func (g *group) round(ctx context.Context, round int, rnd *rand.Rand, result *Result) error {
	leader, err := g.awaitWhole(ctx)
	if err != nil {
		return err
	}
	loads := g.load(ctx, round)
	time.Sleep(200 * time.Millisecond)
	f, hitsLeader := choose(rnd)
	n := leader
	if old := g.old(leader); old != nil {
		f, hitsLeader, n = upgrade, old == leader, old
	} else if !hitsLeader {
		n = g.nodes[(slices.Index(g.nodes, leader)+1+rnd.IntN(len(g.nodes)-1))%len(g.nodes)]
	}
	result.Faults[f.name]++
	began := time.Now()
	err = f.begin(g, n)
	if err == nil {
		time.Sleep(f.lasts)
		err = f.end(g, n)
	}
	if err == nil {
		leader, err = g.awaitWhole(ctx)
	}
	time.Sleep(200 * time.Millisecond)
	for _, l := range loads {
		l.stop()
	}
	if err != nil {
		return fmt.Errorf("%s: %w", f.name, err)
	}
	line := fmt.Sprintf("%s round %d: %s of %s", time.Now().Format(time.TimeOnly), round, f.name, n.name)
	for _, l := range loads {
		if err := l.check(ctx, leader); err != nil {
			return fmt.Errorf("%s: %w", f.name, err)
		}
		writes, reads := l.counts()
		result.Writes, result.Reads = result.Writes+writes, result.Reads+reads
		gap := l.gap(began)
		if hitsLeader {
			result.Gaps[l.kind] = append(result.Gaps[l.kind], gap)
		}
		line += fmt.Sprintf("; %s: %d writes, longest wait %v", l.kind, writes, gap.Round(time.Millisecond))
	}
	fmt.Fprintln(g.o.Progress, line)
	return nil
}

// Percentile returns the duration that the given share of the gaps does not exceed.
func Percentile(gaps []time.Duration, part float64) time.Duration {
	if len(gaps) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(gaps))
	return sorted[min(int(part*float64(len(sorted))), len(sorted)-1)]
}
