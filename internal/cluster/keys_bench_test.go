package cluster_test

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"testing"

	"github.com/atomredis/atomredis/engine"
	"github.com/atomredis/atomredis/internal/cluster"
)

// BenchmarkSlotsOfKeys measures the cost of finding keys by slot: the memory of a million keys, and the time to
// create, remove and overwrite a key and to list the keys of a slot.
func BenchmarkSlotsOfKeys(b *testing.B) {
	const n = 1_000_000
	value := make([]byte, 10)
	for _, o := range []engine.Options{{}, {Slots: cluster.Slots, SlotOf: cluster.SlotOf}, {Shards: 16},
		{Shards: 16, Slots: cluster.Slots, SlotOf: cluster.SlotOf}} {
		name := func(what string) string {
			return fmt.Sprintf("%s/shards=%d/slots=%d", what, max(o.Shards, 1), o.Slots)
		}
		heap := func() float64 {
			var m runtime.MemStats
			runtime.GC()
			runtime.ReadMemStats(&m)
			return float64(m.HeapAlloc)
		}
		before := heap()
		ks := engine.New(o)
		key := func(i int) []byte { return fmt.Appendf(nil, "key:%012d", i) }
		var g engine.Guard
		under := func(key []byte, fn func(e *engine.Entry)) {
			g.Lock(ks, ks.ShardOf(key), 1)
			fn(g.Write(0, key))
			g.Unlock()
		}
		create := func(k []byte) {
			under(k, func(*engine.Entry) { g.Changed(g.CreateString(0, k, value), engine.EventString, "set") })
		}
		for i := range n {
			create(key(i))
		}
		perKey := (heap() - before) / n
		next := n
		b.Run(name("create and remove"), func(b *testing.B) {
			random := rand.New(rand.NewPCG(0, 0))
			b.ReportAllocs()
			for b.Loop() {
				create(key(next))
				under(key(next-1-random.IntN(n)), func(e *engine.Entry) {
					if e != nil {
						g.Remove(e, engine.EventGeneric, "del")
					}
				})
				next++
			}
			b.ReportMetric(perKey, "B/key")
		})
		b.Run(name("overwrite"), func(b *testing.B) {
			random := rand.New(rand.NewPCG(0, 0))
			for b.Loop() {
				under(key(next-1-random.IntN(n)), func(e *engine.Entry) {
					if e != nil {
						g.Overwrite(e, value)
						g.Changed(e, engine.EventString, "set")
					}
				})
			}
		})
		if o.Slots > 0 {
			b.Run(name("a slot"), func(b *testing.B) {
				found := 0
				for i := 0; b.Loop(); i++ {
					g.Lock(ks, engine.AllShards, 1)
					g.EachOfSlot(0, i%cluster.Slots, func(*engine.Entry) bool {
						found++
						return true
					})
					g.Unlock()
				}
				b.ReportMetric(float64(found)/float64(b.N), "keys/op")
			})
		}
		ks.Close()
	}
}
