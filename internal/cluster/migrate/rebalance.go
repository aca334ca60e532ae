package migrate

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/atomredis/atomredis/engine"
	"github.com/atomredis/atomredis/internal/cluster"
	"github.com/atomredis/atomredis/internal/cluster/balance"
	"github.com/atomredis/atomredis/internal/cluster/peers"
	"github.com/atomredis/atomredis/internal/cluster/shards"
	"github.com/atomredis/atomredis/internal/config"
	"github.com/atomredis/atomredis/internal/wire/peer"
)

// With cluster-rebalance auto, shards take slots by themselves until each has its part. Every leader compares the loads of all
// shards now and then. The one whose shard has least imports slots from the shard that has most, a batch at a time. So leaders
// that see the same do not act at once. Those that see different loads for a moment move slots that the next batch may move back.
// A shard that does not answer is left out: it neither gives nor takes, and the part of the others is that of what they have.

const (
	rebalancePause = 5 * time.Second // between two looks at the loads
	settlePause    = time.Second     // after a batch, until all shards know of it

	// A shard that differs from its part by more than beginAt percent begins to take slots, and ends within endAt percent.
	beginAt = 10
	endAt   = 2

	mostSlots      = 512 // in a batch
	rebalanceDelay = 20 * time.Millisecond
	probePause     = 50 * time.Millisecond
)

// rebalancer is the state of cluster-rebalance auto.
type rebalancer struct {
	mu      sync.Mutex // protects the fields up to shown
	working bool       // a goroutine looks at the loads, or moves slots
	next    time.Time  // when to look again
	rates   rates
	shown   rebalanced

	// Of the goroutine that works.
	moving   string // the shard from which slots come; "" while nothing is to move
	throttle balance.Throttle
	problem  string   // the last one that was logged
	leftOut  []string // likewise, the shards that do not answer
}

// rebalance looks at the loads of all shards when it is time.
func (h *Migrations) rebalance(now time.Time) {
	if h.o.Node == nil {
		return
	}
	set := &h.o.Config.Get().Cluster
	r := &h.rebalancer
	r.mu.Lock()
	defer r.mu.Unlock()
	leads := h.host.Leads()
	if leads {
		r.rates.sample(now, h.o.Node.Stats.Load())
	} else {
		r.rates.forget()
	}
	if !set.Rebalance || !leads || r.working || now.Before(r.next) {
		return
	}
	r.working = true
	h.running.Go(func() {
		wait, err := h.takeSlots(set.RebalanceBy)
		if err != nil {
			h.rebalanceFails(err)
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		r.working, r.next = false, time.Now().Add(wait)
	})
}

// rebalanceFails logs why no slots can be taken, once for each reason.
func (h *Migrations) rebalanceFails(err error) {
	r := &h.rebalancer
	r.moving = ""
	h.show(func(s *rebalanced) { s.state, s.problem = rebalanceFailing, err })
	if text := err.Error(); text != r.problem {
		r.problem = text
		h.o.Log.Warn("slots are not rebalanced", "error", text)
	}
}

// takeSlots imports a batch of slots if this shard has least, and another one has too much. It returns how long to wait until the
// next call. Only the goroutine of rebalance calls it.
func (h *Migrations) takeSlots(by config.RebalanceBy) (wait time.Duration, err error) {
	r := &h.rebalancer
	now := h.shards.Now()
	if !quiet(now.Record, h.answering(now.Record)) {
		h.show(func(s *rebalanced) { s.state, s.problem = rebalanceWaiting, nil })
		return settlePause, nil
	}
	loads, silent, err := h.allLoads(now.Record, by)
	if err != nil {
		return rebalancePause, err
	}
	r.problem = ""
	h.without(silent)
	from, goal, ok := source(now.ID, loads, r.moving != "")
	h.show(func(s *rebalanced) {
		s.load, s.part, s.leftOut = int64(loads[now.ID].n), int64(goal), len(silent)
		s.state, s.problem = rebalanceIdle, nil
	})
	if !ok {
		r.moving = ""
		return rebalancePause, nil
	}
	o := now.Record.Other(from)
	probe := func(context.Context) time.Duration { return h.probe(o) }
	if r.moving != from {
		r.moving = from
		r.throttle = balance.Throttle{Limit: rebalanceDelay, Most: mostSlots, Pause: probePause}
		r.throttle.Begin(h.ctx, probe)
	}
	a, err := h.askLoad(o, by, true)
	if err != nil {
		return rebalancePause, err
	}
	weight := func(slot int) int64 { return a.Loads[slot] }
	free := spare(now, o)
	batch := balance.Batch(slices.Collect(free.All()), weight, loads[from].n, loads[now.ID].n, goal, r.throttle.Size())
	if len(batch) == 0 {
		r.moving = ""
		return rebalancePause, nil
	}
	h.show(func(s *rebalanced) { s.state, s.from, s.slots = rebalanceMoving, from, len(batch) })
	err = r.throttle.During(h.ctx, probe, func() error { return h.take(from, batch) })
	if err != nil || by != config.RebalanceTime {
		return settlePause, err
	}
	return 2 * h.rateWindow(), nil // until then the rates tell of the time before
}

// take imports slots from a shard, and waits until they are here.
func (h *Migrations) take(from string, slots []int) error {
	var set cluster.SlotSet
	for _, slot := range slots {
		set.Add(slot)
	}
	began := time.Now()
	id, err := h.Import(set)
	if err == nil {
		err = h.AwaitImport(id)
	}
	if err != nil {
		return err
	}
	h.o.Log.Info("slots moved here, to balance the cluster", "from", from, "slots", len(slots), "took", time.Since(began))
	h.show(func(s *rebalanced) {
		s.batches++
		s.moved += int64(len(slots))
		s.last, s.state = time.Now(), rebalanceIdle
	})
	return nil
}

// answering returns a function that reports whether a shard answers and has a leader. It asks each shard once.
func (h *Migrations) answering(r *cluster.Record) func(id string) bool {
	known := map[string]bool{r.ID: true}
	return func(id string) bool {
		o := r.Other(id)
		if _, asked := known[id]; !asked && o != nil {
			a, err := h.shards.AskShard(o, peers.Question{Ask: peers.AskNews})
			known[id] = err == nil && a.Leader != ""
		}
		return known[id]
	}
}

// quiet reports whether no slots migrate between shards that answer, as far as the shard knows.
func quiet(r *cluster.Record, answers func(id string) bool) bool {
	exports := func(from string, list []cluster.Export) bool {
		return slices.ContainsFunc(list, func(e cluster.Export) bool { return answers(from) && answers(e.To) })
	}
	for i := range r.Others {
		if exports(r.Others[i].ID, r.Others[i].Exports) {
			return false
		}
	}
	return r.ID != "" && len(r.Others) > 0 && len(r.Trims) == 0 && !exports(r.ID, r.Exports) &&
		!slices.ContainsFunc(r.Imports, func(i cluster.Import) bool { return answers(i.From) })
}

// spare returns the slots of another shard that may move: those that do not migrate already, to or from a shard that does not answer.
func spare(now *shards.State, o *cluster.Other) cluster.SlotSet {
	free, busy := now.Owners.SlotsOf(o.ID), now.Record.Busy()
	for _, e := range o.Exports {
		exported := cluster.SetOf(e.Slots...)
		busy = busy.Union(&exported)
	}
	return free.Without(&busy)
}

// without logs which shards are left out, when that changes.
func (h *Migrations) without(silent map[string]error) {
	ids := slices.Sorted(maps.Keys(silent))
	if r := &h.rebalancer; !slices.Equal(ids, r.leftOut) {
		r.leftOut = ids
		for _, id := range ids {
			h.o.Log.Warn("a shard does not answer: slots are rebalanced without it", "error", silent[id])
		}
	}
}

// load is what a shard has.
type load struct {
	n     float64
	takes bool // its leader has cluster-rebalance auto
}

// source returns the shard from which this one is to take slots, and the part of each shard; ok is false if this shard does not
// have least of those that take slots, or each has its part. begun says that slots move already.
func source(own string, loads map[string]load, begun bool) (from string, goal float64, ok bool) {
	total, n, least := 0.0, 0, true
	for id, l := range loads {
		total += l.n
		if l.takes || l.n > 0 { // one that is to stay empty has no part
			n++
		}
		if most := loads[from].n; from == "" || l.n > most || l.n == most && id < from {
			from = id
		}
		if l.takes && (l.n < loads[own].n || l.n == loads[own].n && id < own) {
			least = false
		}
	}
	goal = total / float64(max(n, 1))
	differs := beginAt / 100.0
	if begun {
		differs = endAt / 100.0
	}
	return from, goal, least && from != own && (loads[from].n > goal*(1+differs) || loads[own].n < goal*(1-differs))
}

// allLoads returns the loads of the shards that answer, by ID. silent has an error for each of the others. err is that of this shard,
// or of one that answers and does not know its load: it is not left out, because its leader can be told to count.
func (h *Migrations) allLoads(r *cluster.Record, by config.RebalanceBy) (loads map[string]load, silent map[string]error, err error) {
	own, err := h.loads(by)
	if err != nil {
		return nil, nil, err
	}
	loads, silent = map[string]load{r.ID: {float64(sum(own)), true}}, map[string]error{}
	for i := range r.Others {
		o := &r.Others[i]
		a, err := h.askLoad(o, by, false)
		if answer, ok := errors.AsType[*peer.Error](err); ok && answer.Code == "" {
			return nil, nil, err
		}
		if err != nil {
			silent[o.ID] = err
			continue
		}
		loads[o.ID] = load{float64(a.Load), a.Takes}
	}
	return loads, silent, nil
}

// askLoad asks the leader of another shard for its load, and perhaps for that of each of its slots.
func (h *Migrations) askLoad(o *cluster.Other, by config.RebalanceBy, slots bool) (a peers.News, err error) {
	a, err = h.shards.AskShard(o, peers.Question{Ask: peers.AskLoad, By: by.String(), Slots: slots})
	switch {
	case shards.Unknown(err):
		err = errors.New("it is of a version that does not tell its load")
	case err == nil && !a.Leads:
		err = errors.New("it has no leader")
	case err == nil && slots && len(a.Loads) != cluster.Slots:
		err = errors.New("it does not tell the loads of its slots")
	}
	if err != nil {
		err = fmt.Errorf("shard %s: %w", o.ID, err)
	}
	return a, err
}

// answerLoad answers peers.AskLoad.
func (h *Migrations) answerLoad(q *peers.Question, a *peers.News) error {
	by, ok := config.RebalanceByName(q.By)
	switch {
	case !ok:
		return fmt.Errorf("unknown measure %q", q.By)
	case !a.Leads:
		return nil
	}
	loads, err := h.loads(by)
	if err != nil {
		return err
	}
	a.Takes = h.o.Config.Get().Cluster.Rebalance
	if a.Load = sum(loads); q.Slots {
		a.Loads = loads[:]
	}
	return nil
}

func sum(loads *[cluster.Slots]int64) (n int64) {
	for _, load := range loads {
		n += load
	}
	return n
}

var (
	errNoMemoryCounts = errors.New("the memory of slots is not counted: CONFIG SET cluster-slot-stats-enabled mem")
	errNoTimes        = errors.New("the time of commands is not counted: CONFIG SET cluster-slot-stats-enabled cpu")
	errNoRates        = errors.New("the time of commands is not measured for long enough yet")
)

// loads returns the loads of the slots that the shard serves.
func (h *Migrations) loads(by config.RebalanceBy) (loads *[cluster.Slots]int64, err error) {
	loads = new([cluster.Slots]int64)
	own := h.shards.Now().Own
	node := h.o.Node
	switch by {
	case config.RebalanceSlots:
		for slot := range loads {
			if own.Has(slot) {
				loads[slot] = 1
			}
		}
	case config.RebalanceTime:
		h.rebalancer.mu.Lock()
		defer h.rebalancer.mu.Unlock()
		return loads, h.rebalancer.rates.read(time.Now(), node.Stats.Load(), &own, loads)
	default:
		if by == config.RebalanceMemory && config.SlotStats(node.Counted.Load())&config.SlotMemory == 0 {
			return nil, errNoMemoryCounts
		}
		h.countSlots(by == config.RebalanceMemory, &own, loads)
	}
	return loads, nil
}

// countSlots counts the keys of slots, or their memory.
func (h *Migrations) countSlots(memory bool, own *cluster.SlotSet, loads *[cluster.Slots]int64) {
	var g engine.Guard
	g.Lock(h.ks, engine.AllShards, h.ks.Now())
	defer g.Unlock()
	for db := range h.ks.Databases() {
		if g.Len(db) == 0 {
			continue
		}
		for slot := range loads {
			if own.Has(slot) && !memory {
				loads[slot] += int64(g.SlotLen(db, slot))
			}
		}
	}
	for slot := range loads {
		if own.Has(slot) && memory {
			loads[slot] = g.SlotMemory(slot)
		}
	}
}

// probe returns how long a lock on keys here and a question at another shard take: what clients wait for, too.
func (h *Migrations) probe(o *cluster.Other) time.Duration {
	began := time.Now()
	var g engine.Guard
	g.Lock(h.ks, 1, h.ks.Now())
	g.Unlock()
	_, _ = h.shards.AskShard(o, peers.Question{Ask: peers.AskNews}) // without an answer it is slow
	return time.Since(began)
}
