// Package balance decides which slots move so that each shard of a cluster has its part, and how many of them at once.
package balance

import (
	"errors"
	"slices"
)

// Shard is what a plan needs to know of a shard.
type Shard struct {
	Slots  []int // in order
	Retire bool  // it is to have no slots
}

// Move says that slots go from one shard to another; both are places in a list.
type Move struct {
	From, To int
	Slots    []int // in order
}

// ErrNobody means that all shards are to have no slots.
var ErrNobody = errors.New("no shard is left that could have the slots")

// Plan returns the moves after which the slots of each shard weigh the same, as closely as whole slots allow, and those
// of shards that retire weigh nothing. There are none if each shard is within a threshold, in percent of its part. The error
// is ErrNobody.
func Plan(shards []Shard, weight func(slot int) int64, threshold float64) (moves []Move, err error) {
	sums := make([]float64, len(shards))
	total, left := 0.0, 0
	for i, s := range shards {
		for _, slot := range s.Slots {
			sums[i] += float64(weight(slot))
		}
		total += sums[i]
		if !s.Retire {
			left++
		}
	}
	if left == 0 {
		return nil, ErrNobody
	}
	goal := total / float64(left)
	if balanced(shards, sums, goal, threshold) {
		return nil, nil
	}
	for from, s := range shards {
		for _, slot := range slices.Backward(s.Slots) {
			w := float64(weight(slot))
			if !s.Retire && !spares(sums[from], w, goal) {
				continue
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
		slices.Sort(moves[i].Slots)
	}
	return moves, nil
}

// spares reports whether a shard comes closer to its part without a slot of some weight.
func spares(sum, weight, goal float64) bool { return weight > 0 && sum-weight/2 > goal }

// lacks reports whether a shard lacks at least half of a slot's weight.
func lacks(sum, weight, goal float64) bool { return sum+weight/2 <= goal }

// Batch returns slots of one shard that bring another one closer to its part, at most so many: the next step of a plan of which
// only these shards are known. The shards' slots weigh from and to, and the part of each is goal. No result means that nothing
// is to move between them, even if the same question is asked again and again.
func Batch(slots []int, weight func(slot int) int64, from, to, goal float64, most int) (batch []int) {
	for _, slot := range slices.Backward(slots) {
		w := float64(weight(slot))
		if len(batch) < most && spares(from, w, goal) && lacks(to, w, goal) {
			batch = append(batch, slot)
			from -= w
			to += w
		}
	}
	slices.Reverse(batch)
	return batch
}

// balanced reports whether nothing needs to move.
func balanced(shards []Shard, sums []float64, goal, threshold float64) bool {
	for i, s := range shards {
		switch {
		case s.Retire && len(s.Slots) > 0:
			return false
		case !s.Retire && (sums[i] > goal*(1+threshold/100) || sums[i] < goal*(1-threshold/100)):
			return false
		}
	}
	return true
}

// receiver returns the shard that gets a slot: the first one that lacks at least half of its weight, so that the slots of a
// shard stay together. If none does, the slot stays where it is (-1), or goes to the shard with the least if its own retires.
func receiver(shards []Shard, sums []float64, goal, weight float64, from int) int {
	least := -1
	for i, s := range shards {
		if s.Retire || i == from {
			continue
		}
		if lacks(sums[i], weight, goal) {
			return i
		}
		if least < 0 || sums[i] < sums[least] {
			least = i
		}
	}
	if !shards[from].Retire {
		return -1
	}
	return least
}

// appendMove adds a slot to the last move between the same shards.
func appendMove(moves []Move, from, to, slot int) []Move {
	for i := range slices.Backward(moves) {
		if moves[i].From == from && moves[i].To == to {
			moves[i].Slots = append(moves[i].Slots, slot)
			return moves
		}
	}
	return append(moves, Move{from, to, []int{slot}})
}
