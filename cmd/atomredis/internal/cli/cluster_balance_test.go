package cli

import (
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

func TestBalanceMovesWhatIsTooMuch(t *testing.T) {
	for name, c := range map[string]struct {
		shards    []shard
		threshold float64
		want      []slotMove
	}{
		"equal":            {[]shard{{slots: span(0, 4)}, {slots: span(5, 9)}}, 0, nil},
		"within threshold": {[]shard{{slots: span(0, 51)}, {slots: span(52, 99)}}, 4, nil},
		"above threshold":  {[]shard{{slots: span(0, 51)}, {slots: span(52, 99)}}, 3, []slotMove{{0, 1, []int{50, 51}}}},
		"new shard":        {[]shard{{slots: span(0, 5)}, {slots: span(6, 11)}, {}}, 2, []slotMove{{0, 2, []int{4, 5}}, {1, 2, []int{10, 11}}}},
		"retire": {[]shard{{slots: span(0, 5)}, {slots: span(6, 11)}, {slots: span(12, 17), retire: true}}, 2,
			[]slotMove{{2, 0, []int{15, 16, 17}}, {2, 1, []int{12, 13, 14}}}},
		"retire without slots": {[]shard{{slots: span(0, 9)}, {retire: true}}, 2, nil},
		"odd":                  {[]shard{{slots: span(0, 4)}, {}}, 0, []slotMove{{0, 1, []int{3, 4}}}},
	} {
		moves, err := balance(c.shards, one, c.threshold)
		require.NoError(t, err, name)
		require.Equal(t, c.want, moves, name)
	}
	_, err := balance([]shard{{slots: span(0, 9), retire: true}}, one, 0)
	require.EqualError(t, err, "no shard is left that could have the slots")
}

func TestBalanceLeavesNobodyWithMuchMore(t *testing.T) {
	testseed.Check(t, func(rt *rapid.T) {
		shards := make([]shard, rapid.IntRange(1, 5).Draw(rt, "shards"))
		weights := rapid.SliceOfN(rapid.Int64Range(0, 100), 50, 50).Draw(rt, "weights")
		var heaviest int64
		for slot, w := range weights {
			i := rapid.IntRange(0, len(shards)-1).Draw(rt, "owner")
			shards[i].slots = append(shards[i].slots, slot)
			heaviest = max(heaviest, w)
		}
		for i := range shards[1:] {
			shards[1+i].retire = rapid.Bool().Draw(rt, "retire")
		}
		moves, err := balance(shards, func(slot int) int64 { return weights[slot] }, 0)
		require.NoError(rt, err)
		owner := map[int]int{}
		for i, s := range shards {
			for _, slot := range s.slots {
				owner[slot] = i
			}
		}
		for _, m := range moves {
			require.False(rt, shards[m.to].retire)
			for _, slot := range m.slots {
				require.Equal(rt, m.from, owner[slot], "each slot moves once, from its owner")
				owner[slot] = m.to
			}
		}
		sums, left := make([]int64, len(shards)), int64(0)
		var total int64
		for slot, i := range owner {
			require.False(rt, shards[i].retire, slot)
			sums[i] += weights[slot]
			total += weights[slot]
		}
		for _, s := range shards {
			if !s.retire {
				left++
			}
		}
		for i, s := range shards {
			if !s.retire {
				require.LessOrEqual(rt, sums[i], total/left+heaviest+1, "more than its part by a slot")
			}
		}
	})
}

func TestRanges(t *testing.T) {
	require.Equal(t, "0-2 4 7-8", rangesText([]int{0, 1, 2, 4, 7, 8}))
	require.Empty(t, rangesText(nil))
}
