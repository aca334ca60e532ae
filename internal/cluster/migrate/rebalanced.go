package migrate

import (
	"time"

	"github.com/atomredis/atomredis/internal/command"
)

// rebalanced is the visible state of cluster-rebalance auto at the leader of a shard.
type rebalanced struct {
	state      rebalanceState
	load, part int64  // of this shard, when they were compared last
	leftOut    int    // shards that did not answer then
	from       string // the shard of the last batch, or of the one that moves
	slots      int    // of that batch
	problem    error  // why nothing moves

	// Since the start: batches, their slots, and the end of the last one.
	batches, moved int64
	last           time.Time
}

// rebalanceState is what the leader of a shard does about its part of the cluster.
type rebalanceState string

const (
	rebalanceOff       rebalanceState = "off"
	rebalanceFollowing rebalanceState = "following" // another server leads the shard
	rebalanceIdle      rebalanceState = "idle"      // there is nothing to take
	rebalanceWaiting   rebalanceState = "waiting"   // slots migrate already
	rebalanceMoving    rebalanceState = "moving"    // a batch comes from another shard
	rebalanceFailing   rebalanceState = "failing"   // see problem
)

// show changes what INFO shows.
func (h *Migrations) show(change func(s *rebalanced)) {
	h.rebalancer.mu.Lock()
	defer h.rebalancer.mu.Unlock()
	change(&h.rebalancer.shown)
}

// Info calls text and number with the fields of INFO about cluster-rebalance.
func (h *Migrations) Info(text func(name, value string), number func(name string, n int64)) {
	set := &h.o.Config.Get().Cluster
	h.rebalancer.mu.Lock()
	s := h.rebalancer.shown
	h.rebalancer.mu.Unlock()
	word, state := "auto", s.state
	switch {
	case !set.Rebalance:
		word, state = "no", rebalanceOff
	case !h.host.Leads():
		state = rebalanceFollowing
	case state == "":
		state = rebalanceWaiting
	}
	text("cluster_rebalance", word)
	text("cluster_rebalance_by", set.RebalanceBy.String())
	text("cluster_rebalance_state", string(state))
	number("cluster_rebalance_load", s.load)
	number("cluster_rebalance_part", s.part)
	number("cluster_rebalance_left_out", int64(s.leftOut))
	number("cluster_rebalance_batches", s.batches)
	number("cluster_rebalance_slots", s.moved)
	last := int64(0)
	if !s.last.IsZero() {
		last = s.last.Unix()
	}
	number("cluster_rebalance_last_time", last)
	number("cluster_rebalance_last_slots", int64(s.slots))
	if s.from != "" {
		text("cluster_rebalance_last_from", h.shards.LeaderOf(s.from))
	}
	if state == rebalanceFailing {
		text("cluster_rebalance_problem", command.OneLine(s.problem.Error()))
	}
}
