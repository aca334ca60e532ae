package cluster_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/atomredis/atomredis/cluster"
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

// world is shards that hand slots over to each other, and hear of each other late or never.
type world struct {
	r      *rand.Rand
	shards []*cluster.Record
}

// hear has a learn what b says of itself.
func (w *world) hear(a, b *cluster.Record) {
	o := b.Public()
	text, _ := json.Marshal(o) // so that nothing is shared
	var c cluster.Other
	_ = json.Unmarshal(text, &c)
	if a.Learn(c, true) {
		a.Version++
	}
}

// Whatever was handed over, a slot has one shard that serves it at most, and exactly one when all have heard of all.
func TestASlotHasOneOwner(t *testing.T) {
	for seed := range uint64(10) {
		w := &world{r: rand.New(rand.NewPCG(seed, 1))}
		for i := range 3 {
			w.shards = append(w.shards, &cluster.Record{ID: fmt.Sprintf("shard%d", i), Version: 1})
		}
		all := cluster.AllSlots
		w.shards[0].Claim(&all, 1)
		for _, a := range w.shards {
			for _, b := range w.shards {
				w.hear(a, b)
			}
		}
		for range 60 {
			a, b := w.shards[w.r.IntN(3)], w.shards[w.r.IntN(3)]
			first := w.r.IntN(cluster.Slots)
			want := cluster.SetOf(cluster.Range{First: first, Last: min(first+w.r.IntN(4000), cluster.Slots-1)})
			own := a.Owners().SlotsOf(a.ID)
			want = want.Both(&own)
			if a != b && !want.Empty() && w.r.IntN(2) == 0 {
				task := fmt.Sprint(w.r.Uint64())
				a.Give(&want, b.ID, task)
				a.Version++
				if w.r.IntN(2) == 0 { // or it hears of it later
					g := a.GiftOf(task)
					b.Claim(&want, g.Epoch)
					b.Version++
				} else {
					w.hear(b, a)
					b.Claim(&want, a.GiftOf(task).Epoch)
					b.Version++
				}
			} else {
				w.hear(a, b)
			}
			served := 0
			var together cluster.SlotSet
			for _, s := range w.shards {
				own := s.Owners().SlotsOf(s.ID)
				together = together.Union(&own)
				served += own.Len()
			}
			require.Equal(t, cluster.AllSlots, together, "seed %d", seed)
			require.Equal(t, cluster.Slots, served, "seed %d", seed)
		}
		for range 3 {
			for _, a := range w.shards {
				for _, b := range w.shards {
					w.hear(a, b)
				}
			}
		}
		for _, s := range w.shards {
			require.Empty(t, s.Given)
			require.Equal(t, w.shards[0].Owners().SlotsOf("shard1"), s.Owners().SlotsOf("shard1"))
			require.Equal(t, w.shards[0].Owners().SlotsOf("shard2"), s.Owners().SlotsOf("shard2"))
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
	a.AddTrim(&some)
	a.DropTrim(&some)
	require.Empty(t, a.Trim)
}
