package engine

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/atomredis/atomredis/internal/testing/testseed"
)

// testSlots is the number of slots of testSlotOf.
const testSlots = 7

func testSlotOf(key []byte) int {
	sum := 0
	for _, b := range key {
		sum += int(b)
	}
	return sum % testSlots
}

// checkSlots fails if the entries of the slots differ from a walk over all entries.
func checkSlots(t require.TestingT, ks *Keyspace) {
	var g Guard
	g.Lock(ks, AllShards, 0)
	defer g.unlockShards()
	for i := range ks.shards {
		for db := range ks.databases {
			d := &ks.shards[i].dbs[db]
			var want, got [testSlots][]*Entry
			for p := range d.dict.All() {
				slot := testSlotOf([]byte((*p).Key()))
				want[slot] = append(want[slot], *p)
			}
			for slot := range testSlots {
				require.Equal(t, len(want[slot]), d.len(slot))
				if d.slots == nil {
					continue
				}
				for i := range d.slots.All(slot) {
					got[slot] = append(got[slot], *d.dict.At(i))
				}
				require.ElementsMatch(t, namesOf(want[slot]), namesOf(got[slot]))
			}
		}
	}
}

func namesOf(entries []*Entry) []string {
	keys := make([]string, 0, len(entries))
	for _, e := range entries {
		keys = append(keys, e.Key())
	}
	return keys
}

func TestKeysHaveNoSlotsUnlessAskedFor(t *testing.T) {
	ks := New(Options{})
	defer ks.Close()
	set(ks, "a", "v", 0)
	require.Nil(t, ks.shards[0].dbs[0].slots)
	under(ks, func(g *Guard) {
		require.Zero(t, g.SlotLen(0, 1))
		require.Zero(t, g.ScanSlot(0, 1, 0, 10, nil, func(*Entry) { t.Fatal("no slots") }))
		g.EachOfSlot(0, 1, func(*Entry) bool {
			t.Fatal("no slots")
			return true
		})
	})
}

// A walk through a slot visits all keys that stay in it, and no keys of other slots or expired ones.
func TestScanVisitsWhatStaysInASlot(t *testing.T) {
	for _, shards := range []int{1, 4} {
		testseed.Check(t, func(t *rapid.T) {
			clock := NewManualClock(time.UnixMilli(1000))
			ks := New(Options{Shards: shards, Clock: clock, Slots: testSlots, SlotOf: testSlotOf})
			defer ks.Close()
			ks.SetActiveExpiry(false)
			const slot = 3
			stay := map[string]bool{}
			for i := range rapid.IntRange(0, 200).Draw(t, "keys") {
				key := fmt.Sprint("stay", i)
				stay[key] = testSlotOf([]byte(key)) == slot
				set(ks, key, "v", 0)
				set(ks, fmt.Sprint("go", i), "v", 0)
				set(ks, fmt.Sprint("expired", i), "v", 1)
			}
			clock.Advance(time.Millisecond)
			visited := map[string]bool{}
			var cursor uint64
			for i := 0; ; i++ {
				require.Less(t, i, 10_000)
				under(ks, func(g *Guard) {
					cursor = g.ScanSlot(0, slot, cursor, rapid.IntRange(1, 20).Draw(t, "count"), nil, func(e *Entry) {
						require.Equal(t, slot, testSlotOf([]byte(e.Key())))
						require.NotContains(t, e.Key(), "expired")
						visited[e.Key()] = true
					})
				})
				if cursor == 0 {
					break
				}
				if rapid.Bool().Draw(t, "add") {
					set(ks, fmt.Sprint("new", i), "v", 0)
				}
				under(ks, func(g *Guard) {
					for range rapid.IntRange(0, 5).Draw(t, "removed") {
						if e := g.Peek(0, fmt.Append(nil, "go", rapid.IntRange(0, 200).Draw(t, "gone"))); e != nil {
							g.Remove(e, 0, "")
						}
					}
				})
			}
			of := map[string]bool{}
			under(ks, func(g *Guard) {
				g.EachOfSlot(0, slot, func(e *Entry) bool {
					of[e.Key()] = true
					return true
				})
			})
			for key, in := range stay {
				require.Equal(t, in, visited[key], key)
				require.Equal(t, in, of[key], key)
			}
			checkSlots(t, ks)
		})
	}
}
