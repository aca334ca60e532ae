package engine

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
)

// BenchmarkContention measures contention of guards: sixteen goroutines change random keys of 100,000, each under a
// guard of its own.
func BenchmarkContention(b *testing.B) {
	const goroutines, keys = 16, 100_000
	for _, shards := range []int{1, 4, 16} {
		b.Run(fmt.Sprintf("shards=%d", shards), func(b *testing.B) {
			ks := New(Options{Shards: shards})
			defer ks.Close()
			names := make([][]byte, keys)
			value := make([]byte, 64)
			for i := range names {
				names[i] = fmt.Appendf(nil, "key:%012d", i)
				var g Guard
				g.Lock(ks, ks.ShardOf(names[i]), 1)
				g.CreateString(0, names[i], value)
				g.Unlock()
			}
			b.ReportAllocs()
			b.ResetTimer()
			var wg sync.WaitGroup
			for n := range goroutines {
				wg.Go(func() {
					random := rand.New(rand.NewPCG(uint64(n), 0))
					var g Guard
					for range b.N / goroutines {
						key := names[random.IntN(keys)]
						g.Lock(ks, ks.ShardOf(key), 1)
						e := g.Write(0, key)
						e.SetBytes(value)
						g.Changed(e, EventString, "set")
						g.Unlock()
					}
				})
			}
			wg.Wait()
		})
	}
}
