package cli

import (
	"fmt"
	"slices"
	"strings"
)

// shard is what a balance needs to know of a shard.
type shard struct {
	nodes  []string // IDs of its servers
	addrs  []string // their addresses for clients
	leader string   // one of addrs; "" during an election
	slots  []int    // in order
	retire bool     // it is to have no slots
}

// slotMove says that slots go from one shard to another; both are places in a list.
type slotMove struct {
	from, to int
	slots    []int
}

// balance returns the moves after which the slots of each shard weigh the same, as closely as whole slots allow, and those
// of shards that retire weigh nothing. There are none if each shard is within a threshold, in percent of its part.
func balance(shards []shard, weight func(slot int) int64, threshold float64) (moves []slotMove, err error) {
	sums := make([]float64, len(shards))
	total, left := 0.0, 0
	for i, s := range shards {
		for _, slot := range s.slots {
			sums[i] += float64(weight(slot))
		}
		total += sums[i]
		if !s.retire {
			left++
		}
	}
	if left == 0 {
		return nil, fmt.Errorf("no shard is left that could have the slots")
	}
	goal := total / float64(left)
	if balanced(shards, sums, goal, threshold) {
		return nil, nil
	}
	for from, s := range shards {
		for _, slot := range slices.Backward(s.slots) {
			w := float64(weight(slot))
			if !s.retire && (w == 0 || sums[from]-w/2 <= goal) {
				continue // without the slot the shard would be as far from its part, or farther
			}
			to := receiver(shards, sums, goal, w, from)
			if to < 0 {
				continue
			}
			sums[from] -= w
			sums[to] += w
			moves = appendMove(moves, from, to, slot)
		}
	}
	for i := range moves {
		slices.Sort(moves[i].slots)
	}
	return moves, nil
}

// balanced reports whether nothing needs to move.
func balanced(shards []shard, sums []float64, goal, threshold float64) bool {
	for i, s := range shards {
		switch {
		case s.retire && len(s.slots) > 0:
			return false
		case !s.retire && (sums[i] > goal*(1+threshold/100) || sums[i] < goal*(1-threshold/100)):
			return false
		}
	}
	return true
}

// receiver returns the shard that gets a slot: the first one that lacks at least half of its weight, so that the slots of a
// shard stay together. If none does, the slot stays where it is (-1), or goes to the shard with the least if its own retires.
func receiver(shards []shard, sums []float64, goal, weight float64, from int) int {
	least := -1
	for i, s := range shards {
		if s.retire || i == from {
			continue
		}
		if sums[i]+weight/2 <= goal {
			return i
		}
		if least < 0 || sums[i] < sums[least] {
			least = i
		}
	}
	if !shards[from].retire {
		return -1
	}
	return least
}

// appendMove adds a slot to the last move between the same shards.
func appendMove(moves []slotMove, from, to, slot int) []slotMove {
	for i := range slices.Backward(moves) {
		if moves[i].from == from && moves[i].to == to {
			moves[i].slots = append(moves[i].slots, slot)
			return moves
		}
	}
	return append(moves, slotMove{from, to, []int{slot}})
}

// rangesOf returns the first and last slots of the ranges of sorted slots.
func rangesOf(slots []int) (ranges [][2]int) {
	for _, slot := range slots {
		if n := len(ranges); n > 0 && ranges[n-1][1] == slot-1 {
			ranges[n-1][1] = slot
		} else {
			ranges = append(ranges, [2]int{slot, slot})
		}
	}
	return ranges
}

// rangesText is the form of slots in CLUSTER NODES: 0-99 105.
func rangesText(slots []int) string {
	var words []string
	for _, r := range rangesOf(slots) {
		if r[0] == r[1] {
			words = append(words, fmt.Sprint(r[0]))
		} else {
			words = append(words, fmt.Sprintf("%d-%d", r[0], r[1]))
		}
	}
	return strings.Join(words, " ")
}
