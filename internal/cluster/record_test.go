package cluster_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/atomredis/atomredis/internal/cluster"
)

func TestSetsOfSlotsAreRanges(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		var s cluster.SlotSet
		for range r.IntN(20) {
			first := r.IntN(cluster.Slots)
			s.AddRange(cluster.Range{First: first, Last: min(first+r.IntN(300), cluster.Slots-1)})
		}
		for range r.IntN(20) {
			s.Remove(r.IntN(cluster.Slots))
		}
		require.Equal(t, s, cluster.SetOf(s.Ranges()...))
		n := 0
		for i, x := range s.Ranges() {
			n += x.Last - x.First + 1
			if i > 0 {
				require.Greater(t, x.First, s.Ranges()[i-1].Last+1)
			}
		}
		require.Equal(t, s.Len(), n)
		all := cluster.AllSlots
		rest := all.Without(&s)
		require.Equal(t, all, s.Union(&rest))
		both := s.Both(&rest)
		require.True(t, both.Empty())
	}
	require.False(t, (&cluster.SlotSet{}).Has(cluster.NoSlot))
}

// Shards that claim and give up slots, and learn of each other late, finally agree on one owner for each slot.
func TestShardsAgreeOnTheOwnersOfSlots(t *testing.T) {
	for seed := range uint64(20) {
		r := rand.New(rand.NewPCG(seed, 1))
		var shards []*cluster.Record
		for i := range 3 {
			shards = append(shards, &cluster.Record{ID: fmt.Sprintf("shard%d", i), Version: 1})
		}
		hear := func(a, b *cluster.Record) {
			text, _ := json.Marshal(b.Public()) // so that nothing is shared
			var o cluster.Other
			require.NoError(t, json.Unmarshal(text, &o))
			a.Learn(o, true)
		}
		for range 100 {
			a, first := shards[r.IntN(3)], r.IntN(cluster.Slots)
			want := cluster.SetOf(cluster.Range{First: first, Last: first + r.IntN(4000)})
			owners := a.Owners()
			switch own, free := owners.SlotsOf(a.ID), owners.SlotsOf(""); r.IntN(3) {
			case 0:
				want = want.Both(&own)
				a.Disclaim(&want)
				a.Version++
			case 1:
				want = want.Both(&free)
				a.Claim(&want, a.NextEpoch())
				a.Version++
			default:
				hear(a, shards[r.IntN(3)])
			}
		}
		for _, a := range shards {
			for _, b := range shards {
				hear(a, b)
			}
		}
		for _, s := range shards[1:] {
			for _, id := range []string{"", "shard0", "shard1", "shard2"} {
				require.Equal(t, shards[0].Owners().SlotsOf(id), s.Owners().SlotsOf(id), "seed %d", seed)
			}
		}
	}
}

func TestTheLaterClaimCounts(t *testing.T) {
	a := &cluster.Record{ID: "a", Version: 1}
	all, some := cluster.AllSlots, cluster.SetOf(cluster.Range{First: 5, Last: 9})
	a.Claim(&all, 1)
	require.True(t, a.Learn(cluster.Other{ID: "b", Version: 1, Claims: []cluster.Claim{{Range: cluster.Range{First: 5, Last: 9}, Epoch: 2}}}, false))
	require.Equal(t, some, a.Owners().SlotsOf("b"))
	require.False(t, a.Learn(cluster.Other{ID: "b", Version: 1}, false), "no news")
	require.True(t, a.Learn(cluster.Other{ID: "b", Version: 2, Claims: []cluster.Claim{{Range: cluster.Range{First: 5, Last: 9}, Epoch: 1}}}, false))
	none := a.Owners().SlotsOf("b")
	require.True(t, none.Empty(), "of the same epoch it is the shard with the smaller ID")
	require.Equal(t, uint64(2), a.NextEpoch())
	a.Disclaim(&some)
	require.Equal(t, []cluster.Claim{{Range: cluster.Range{First: 0, Last: 4}, Epoch: 1},
		{Range: cluster.Range{First: 10, Last: 16383}, Epoch: 1}}, a.Claims)
}
