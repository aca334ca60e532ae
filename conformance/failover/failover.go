//go:build linux

// Package failover runs a group of three servers as separate processes, each in a network namespace and with a disk of
// its own. Again and again one of them, mostly the leader, is killed, stopped or cut off, finds its disk full or empty,
// passes the lead on or is replaced by a fourth server. Meanwhile plain clients, clients of Sentinel and clients of
// clusters write, and a queue of pressure is in use. Nothing acknowledged may be missing, and nothing old may be read;
// the time in which nobody could write is measured.
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
	// Gaps has the periods without an acknowledged write around each fault of a leader, by name of the fault and kind of
	// client.
	Gaps map[string]map[string][]time.Duration
}

// fault is something that goes wrong with a server, or is done to it.
type fault struct {
	name  string
	begin func(g *group, ctx context.Context, n *node) error
	lasts time.Duration
	end   func(g *group, ctx context.Context, n *node) error
}

var (
	faults = []fault{
		{"kill", (*group).kill, 500 * time.Millisecond, (*group).start},
		{"stop for 3 s", (*group).suspend, 3 * time.Second, (*group).resume},
		{"cut for 3 s", (*group).cutOff, 3 * time.Second, (*group).reconnect},
		{"silence for 3 s", (*group).silence, 3 * time.Second, (*group).reconnect},
		{"full disk", (*group).fillDisk, 0, (*group).freeDisk},
		{"lost directory", (*group).loseDirectory, 500 * time.Millisecond, (*group).start},
		{"replacement", (*group).join, 0, (*group).leave},
		{"transfer", (*group).transfer, 0, nil},
	}
	longStop = fault{"stop for 30 s", (*group).suspend, 30 * time.Second, (*group).resume}
	upgrade  = fault{"upgrade", (*group).end, 0, (*group).upgrade}
)

// choose chooses the next fault: long pauses are rare, and every fifth fault hits a server other than the leader.
func choose(r *rand.Rand) (f fault, leader bool) {
	if r.IntN(25) == 0 {
		return longStop, true
	}
	f = faults[r.IntN(len(faults))]
	return f, r.IntN(5) > 0 || f.end == nil
}

// Run runs the group, and returns an error if acknowledged data is missing or old, or if the group does not recover.
// When the context ends, the current round is the last one.
func Run(until context.Context, o Options) (result Result, err error) {
	ctx := context.WithoutCancel(until)
	result = Result{Faults: map[string]int{}, Gaps: map[string]map[string][]time.Duration{}}
	g, err := newGroup(o)
	if err != nil {
		return result, err
	}
	defer func() { err = errors.Join(err, g.close()) }()
	for _, n := range g.members {
		if err := g.start(ctx, n); err != nil {
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
		n = g.members[(slices.Index(g.members, leader)+1+rnd.IntN(len(g.members)-1))%len(g.members)]
	}
	result.Faults[f.name]++
	began := time.Now()
	err = f.begin(g, ctx, n)
	if err == nil && f.end != nil {
		time.Sleep(f.lasts)
		err = f.end(g, ctx, n)
	}
	if err == nil {
		_, err = g.awaitWhole(ctx)
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
		if err := l.check(ctx, g); err != nil {
			return fmt.Errorf("%s: %w", f.name, err)
		}
		writes, reads := l.counts()
		result.Writes, result.Reads = result.Writes+writes, result.Reads+reads
		gap := l.gap(began)
		if hitsLeader {
			if result.Gaps[f.name] == nil {
				result.Gaps[f.name] = map[string][]time.Duration{}
			}
			result.Gaps[f.name][l.kind] = append(result.Gaps[f.name][l.kind], gap)
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
