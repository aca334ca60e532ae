package engine

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/atomredis/atomredis/engine/hashes"
	"github.com/atomredis/atomredis/engine/lists"
	"github.com/atomredis/atomredis/engine/sets"
	"github.com/atomredis/atomredis/engine/streams"
	"github.com/atomredis/atomredis/engine/zsets"
)

// MemoryUsage of a value equals the growth of the heap when it is made.
func TestMemoryUsageIsWhatTheHeapGrowsBy(t *testing.T) {
	const n = 50_000
	value := []byte(strings.Repeat("v", 64))
	name := func(i int) []byte { return fmt.Appendf(nil, "element:%012d", i) }
	for _, c := range []struct {
		name string
		make func() any
	}{
		{"list", func() any {
			l := lists.New(lists.Limit(-2))
			for range n {
				l.PushBack(value)
			}
			return l
		}},
		{"hash", func() any {
			h := new(hashes.Hash)
			for i := range n {
				h.Set(name(i), value, hashes.Limits{})
			}
			return h
		}},
		{"set", func() any {
			s := new(sets.Set)
			for i := range n {
				s.Add(name(i), sets.Limits{})
			}
			return s
		}},
		{"sorted set", func() any {
			z := zsets.New()
			for i := range n {
				z.Set(name(i), float64(i*7919%n), zsets.Limits{})
			}
			return z
		}},
		{"stream", func() any {
			s := streams.New()
			for i := range n {
				require.NoError(t, s.Append(streams.ID{Ms: uint64(i + 1)}, [][]byte{[]byte("field"), value},
					streams.Limits{Bytes: 4096, Entries: 100}))
			}
			return s
		}},
		{"string", func() any { return nil }},
	} {
		t.Run(c.name, func(t *testing.T) {
			before := heapInUse()
			var e *Entry
			if v := c.make(); v != nil {
				e = newEntry("key", nil)
				e.setCollection(v)
			} else {
				e = newEntry("key", make([]byte, 1<<20))
			}
			grown := heapInUse() - before
			require.InEpsilon(t, grown, e.MemoryUsage(), 0.1)
			runtime.KeepAlive(e)
		})
	}
}

func heapInUse() int {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc)
}
