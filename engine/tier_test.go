package engine

import (
	"runtime"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A key with an unloaded value takes at most 100 bytes, including its place in the table and a short name.
func TestKeysWhoseValuesAreAwayAreSmall(t *testing.T) {
	if testing.Short() {
		t.Skip("under the race detector, where tests are short, what is allocated is larger")
	}
	const keys, most = 100_000, 100
	names := make([]string, keys)
	for i := range names {
		names[i] = strconv.Itoa(i)
	}
	for name, h := range map[string]Head{
		"hash": {Type: Hash, Parts: 1, Count: 10}, "set": {Type: Set, Parts: 1, Count: 10},
		"sorted set": {Type: ZSet, Parts: 1, Count: 10}, "list": {Type: List, Parts: 1, Count: 10},
		"stream": {Type: Stream, Parts: 1, Count: 10}, "long string": {Type: String, Parts: 1, Length: 1 << 21},
		"external string": {Type: String, External: true}, "string in the head": {Type: String, Blob: make([]byte, 100)},
		"external hash": {Type: Hash, External: true},
	} {
		ks := New(Options{Shards: 1, Databases: 1, Clock: NewManualClock(time.UnixMilli(1e12)), Source: newMemoryStore()})
		ks.SetTier(true)
		heap := func() uint64 {
			runtime.GC()
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			return m.HeapAlloc
		}
		before := heap()
		under(ks, func(g *Guard) {
			for _, key := range names {
				_, err := g.restore(0, key, h)
				require.NoError(t, err)
			}
		})
		measured := (heap() - before) / keys
		counted := uint64(ks.UsedMemory()) / keys
		require.LessOrEqual(t, measured, uint64(most), name)
		require.LessOrEqual(t, counted, uint64(most), name)
		ks.Close()
	}
}
