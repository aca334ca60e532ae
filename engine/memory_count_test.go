package engine

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/atomredis/atomredis/engine/hashes"
	"github.com/atomredis/atomredis/engine/lists"
	"github.com/atomredis/atomredis/engine/sets"
	"github.com/atomredis/atomredis/engine/streams"
	"github.com/atomredis/atomredis/engine/zsets"
	"github.com/atomredis/atomredis/internal/testing/testseed"
)

// recount counts the memory of all databases, whose shards must be held.
func (ks *Keyspace) recount() int64 {
	sum := 0
	for i := range ks.shards {
		s := &ks.shards[i]
		for db := range s.dbs {
			d := &s.dbs[db]
			sum += d.tableSize()
			for p := range d.dict.All() {
				sum += (*p).size()
			}
		}
		sum += s.indexSize()
	}
	return int64(sum)
}

// requireCounted compares the count of memory with a walk over all keys.
func requireCounted(t require.TestingT, ks *Keyspace) {
	var g Guard
	g.Lock(ks, AllShards, ks.Now())
	defer g.Unlock()
	was := ks.used.Load()
	require.Equal(t, ks.recount(), was)
	requireSlotsCounted(t, &g)
}

// requireSlotsCounted compares the memory of slots with a walk over all keys. The guard holds all shards.
func requireSlotsCounted(t require.TestingT, g *Guard) {
	if g.ks.slotMemory == nil {
		return
	}
	want := make([]int64, g.ks.slots)
	for i := range g.ks.shards {
		for db := range g.ks.shards[i].dbs {
			for p := range g.ks.shards[i].dbs[db].dict.All() {
				want[g.ks.slotOf([]byte((*p).Key()))] += int64((*p).size())
			}
		}
	}
	for slot, n := range want {
		require.Equal(t, n, g.SlotMemory(slot), slot)
	}
}

// The count equals that of a walk over all keys, whatever happens to them, and is zero without keys.
func TestMemoryIsCountedAsItIs(t *testing.T) {
	keyspaces(t, func(t *testing.T, ks *Keyspace, clock *ManualClock, _ *eventLog) {
		testseed.Check(t, func(t *rapid.T) {
			key := func(name string) []byte { return []byte(rapid.SampledFrom([]string{"a", "b", "c", "d"}).Draw(t, name)) }
			db := func() int { return rapid.IntRange(0, 2).Draw(t, "db") }
			text := func() []byte {
				return []byte(strings.Repeat("v", rapid.SampledFrom([]int{0, 1, 10, 100, 1000, 2000, 100_000}).Draw(t, "length")))
			}
			// change calls fn to change the value of a key, or of a new one made by make.
			change := func(g *Guard, db int, key []byte, typ Type, make func() any, fn func(e *Entry)) {
				e := g.Write(db, key)
				if e != nil && e.Type() != typ {
					g.OverwriteCollection(e, make())
					e.typ = typ
				}
				if e == nil {
					e = g.Create(db, key, make())
				}
				fn(e)
				g.Changed(e, EventGeneric, "changed")
			}
			// Several changes happen under one guard.
			steps := []func(g *Guard){
				func(g *Guard) {
					d, k, v := db(), key("key"), text()
					if e := g.Write(d, k); e != nil {
						g.Overwrite(e, v)
					} else {
						g.CreateString(d, k, v)
					}
				},
				func(g *Guard) {
					change(g, db(), key("key"), List, func() any { return lists.New(lists.DefaultLimit) },
						func(e *Entry) { e.List().PushBack(text()) })
				},
				func(g *Guard) {
					change(g, db(), key("key"), Set, func() any { return new(sets.Set) },
						func(e *Entry) { e.Set().Add(text(), sets.Limits{}) })
				},
				func(g *Guard) {
					change(g, db(), key("key"), ZSet, func() any { return zsets.New() },
						func(e *Entry) { e.ZSet().Set(text(), 1, zsets.Limits{}) })
				},
				func(g *Guard) {
					change(g, db(), key("key"), Hash, func() any { return new(hashes.Hash) }, func(e *Entry) {
						e.Hash().Set([]byte("f"), text(), hashes.Limits{})
						e.Hash().SetDeadline([]byte("f"), rapid.Int64Range(0, 1).Draw(t, "expires")*(g.Now()+100))
					})
				},
				func(g *Guard) {
					change(g, db(), key("key"), Stream, func() any { return streams.New() }, func(e *Entry) {
						id, ok := e.Stream().NextID(1)
						require.True(t, ok)
						require.NoError(t, e.Stream().Append(id, [][]byte{[]byte("f"), text()}, streams.DefaultLimits))
					})
				},
				func(g *Guard) {
					if e := g.Write(db(), key("key")); e != nil {
						g.Remove(e, EventGeneric, "del")
					}
				},
				func(g *Guard) {
					if e := g.Write(db(), key("key")); e != nil {
						g.SetDeadline(e, rapid.Int64Range(0, 1).Draw(t, "deadline")*(g.Now()+50))
					}
				},
				func(g *Guard) {
					d, to := db(), key("to")
					if e, other := g.Write(d, key("key")), g.Write(d, to); e != nil && other == nil {
						if rapid.Bool().Draw(t, "move") {
							g.Move(e, d, to)
						} else {
							g.Copy(e, e.CopyValue(), d, to)
						}
					}
				},
				func(g *Guard) { g.Flush(rapid.IntRange(-1, 2).Draw(t, "flushed")) },
				func(g *Guard) { g.Swap(db(), db()) },
				func(g *Guard) { g.countSlotMemory(rapid.IntRange(0, 5).Draw(t, "slots") > 0) },
				func(g *Guard) { require.NoError(t, g.Reload()) },
			}
			for range rapid.IntRange(1, 30).Draw(t, "guards") {
				under(ks, func(g *Guard) {
					for range rapid.IntRange(1, 4).Draw(t, "steps") {
						rapid.SampledFrom(steps).Draw(t, "step")(g)
					}
				})
				if rapid.IntRange(0, 5).Draw(t, "advance") == 0 {
					clock.Advance(60e6)
				}
				requireCounted(t, ks)
				checkSlots(t, ks)
			}
			under(ks, func(g *Guard) {
				for db := range 3 {
					for _, name := range []string{"a", "b", "c", "d"} {
						if e := g.Write(db, []byte(name)); e != nil {
							g.Remove(e, EventGeneric, "del")
						}
					}
				}
			})
			require.Zero(t, ks.UsedMemory())
		})
	})
}

// The count is zero after databases are emptied, one by one or all at once.
func TestFlushedMemoryIsNotCounted(t *testing.T) {
	keyspaces(t, func(t *testing.T, ks *Keyspace, _ *ManualClock, _ *eventLog) {
		fill := func(db int) {
			under(ks, func(g *Guard) {
				for i := range 100 {
					g.SetDeadline(g.CreateString(db, fmt.Appendf(nil, "key:%d", i), []byte("value")), ks.Now()+1e6)
				}
			})
			requireCounted(t, ks)
		}
		fill(0)
		fill(1)
		both := ks.UsedMemory()
		under(ks, func(g *Guard) { g.Flush(0) })
		requireCounted(t, ks)
		require.Positive(t, ks.UsedMemory())
		require.Less(t, ks.UsedMemory(), both)
		fill(0)
		under(ks, func(g *Guard) { g.Flush(-1) })
		require.Zero(t, ks.UsedMemory())
	})
}
