package balance

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/atomredis/atomredis/internal/testing/testseed"
)

// span returns slots from first to last.
func span(first, last int) (list []int) {
	for slot := first; slot <= last; slot++ {
		list = append(list, slot)
	}
	return list
}

func one(int) int64 { return 1 }

func TestAPlanMovesWhatIsTooMuch(t *testing.T) {
	for name, c := range map[string]struct {
		shards    []Shard
		threshold float64
		want      []Move
	}{
		"equal":            {[]Shard{{Slots: span(0, 4)}, {Slots: span(5, 9)}}, 0, nil},
		"within threshold": {[]Shard{{Slots: span(0, 51)}, {Slots: span(52, 99)}}, 4, nil},
		"above threshold":  {[]Shard{{Slots: span(0, 51)}, {Slots: span(52, 99)}}, 3, []Move{{0, 1, []int{50, 51}}}},
		"new shard":        {[]Shard{{Slots: span(0, 5)}, {Slots: span(6, 11)}, {}}, 2, []Move{{0, 2, []int{4, 5}}, {1, 2, []int{10, 11}}}},
		"retire": {[]Shard{{Slots: span(0, 5)}, {Slots: span(6, 11)}, {Slots: span(12, 17), Retire: true}}, 2,
			[]Move{{2, 0, []int{15, 16, 17}}, {2, 1, []int{12, 13, 14}}}},
		"retire without slots": {[]Shard{{Slots: span(0, 9)}, {Retire: true}}, 2, nil},
		"odd":                  {[]Shard{{Slots: span(0, 4)}, {}}, 0, []Move{{0, 1, []int{3, 4}}}},
	} {
		moves, err := Plan(c.shards, one, c.threshold)
		require.NoError(t, err, name)
		require.Equal(t, c.want, moves, name)
	}
	_, err := Plan([]Shard{{Slots: span(0, 9), Retire: true}}, one, 0)
	require.EqualError(t, err, "no shard is left that could have the slots")
}

func TestAPlanLeavesNobodyWithMuchMore(t *testing.T) {
	testseed.Check(t, func(rt *rapid.T) {
		shards := make([]Shard, rapid.IntRange(1, 5).Draw(rt, "shards"))
		weights := rapid.SliceOfN(rapid.Int64Range(0, 100), 50, 50).Draw(rt, "weights")
		var heaviest int64
		for slot, w := range weights {
			i := rapid.IntRange(0, len(shards)-1).Draw(rt, "owner")
			shards[i].Slots = append(shards[i].Slots, slot)
			heaviest = max(heaviest, w)
		}
		for i := range shards[1:] {
			shards[1+i].Retire = rapid.Bool().Draw(rt, "retire")
		}
		moves, err := Plan(shards, func(slot int) int64 { return weights[slot] }, 0)
		require.NoError(rt, err)
		owner := map[int]int{}
		for i, s := range shards {
			for _, slot := range s.Slots {
				owner[slot] = i
			}
		}
		for _, m := range moves {
			require.False(rt, shards[m.To].Retire)
			for _, slot := range m.Slots {
				require.Equal(rt, m.From, owner[slot], "each slot moves once, from its owner")
				owner[slot] = m.To
			}
		}
		sums, left := make([]int64, len(shards)), int64(0)
		var total int64
		for slot, i := range owner {
			require.False(rt, shards[i].Retire, slot)
			sums[i] += weights[slot]
			total += weights[slot]
		}
		for _, s := range shards {
			if !s.Retire {
				left++
			}
		}
		for i, s := range shards {
			if !s.Retire {
				require.LessOrEqual(rt, sums[i], total/left+heaviest+1, "more than its part by a slot")
			}
		}
	})
}

// Batches that two shards exchange, each by the weights of its time, lead to an end at which both are close to their part.
func TestBatchesEnd(t *testing.T) {
	require.Equal(t, []int{7, 8, 9}, Batch(span(0, 9), one, 10, 0, 5, 3))
	require.Empty(t, Batch([]int{3}, func(int) int64 { return 100 }, 100, 0, 50, 9), "it would only change places")
	testseed.Check(t, func(rt *rapid.T) {
		weights := rapid.SliceOfN(rapid.Int64Range(0, 100), 30, 30).Draw(rt, "weights")
		weight := func(slot int) int64 { return weights[slot] }
		sum := func(slots []int) (n float64) {
			for _, slot := range slots {
				n += float64(weight(slot))
			}
			return n
		}
		own := [2][]int{span(0, 29), nil}
		goal := sum(own[0]) / 2
		for steps := 0; ; steps++ {
			require.Less(rt, steps, 100, "it does not end")
			from := 0
			if sum(own[1]) > sum(own[0]) {
				from = 1
			}
			batch := Batch(own[from], weight, sum(own[from]), sum(own[1-from]), goal, rapid.IntRange(1, 9).Draw(rt, "most"))
			if len(batch) == 0 {
				break
			}
			own[from] = slices.DeleteFunc(own[from], func(slot int) bool { return slices.Contains(batch, slot) })
			own[1-from] = append(own[1-from], batch...)
			slices.Sort(own[1-from])
		}
		require.InDelta(rt, goal, sum(own[0]), 51)
	})
}
