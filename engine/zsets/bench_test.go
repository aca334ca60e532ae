package zsets

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"testing"
)

func BenchmarkZSet(b *testing.B) {
	var sum byte
	for _, n := range []int{100, 1000, 1000000} {
		names := members(n)
		z := New()
		for i, j := range rand.New(rand.NewPCG(3, 4)).Perm(n) {
			z.Set(names[j], float64(i), DefaultLimits)
		}
		run := func(name string, fn func(i int)) {
			b.Run(fmt.Sprintf("%s/%d", name, n), func(b *testing.B) {
				b.ReportAllocs()
				i := 0
				for b.Loop() {
					i = (i + 7919) % n
					fn(i)
				}
			})
		}
		var fresh *ZSet
		run("Fill", func(i int) {
			if i == 0 || fresh == nil {
				fresh = New()
			}
			fresh.Set(names[i], float64(i*7919%1000003), DefaultLimits)
		})
		run("Score", func(i int) { z.Score(names[i]) })
		run("Rank", func(i int) { z.Rank(names[i]) })
		run("Update", func(i int) { z.Set(names[i], float64(i), DefaultLimits) })
		run("Range10", func(i int) {
			z.RangeByRank(i, i+9, false, func(m []byte, _ float64) bool { sum += m[len(m)-1]; return true })
		})
		run("Step", func(i int) { z.Incr(names[i], 1, DefaultLimits) })
		run("AddRemove", func(i int) {
			z.Remove(names[i])
			z.Set(names[i], float64(i), DefaultLimits)
		})
		run("PopAdd", func(i int) {
			var name [32]byte
			var v []byte
			z.PopMin(1, func(member []byte, _ float64) { v = append(name[:0], member...) })
			z.Set(v, float64(n+i), DefaultLimits)
		})
	}
}

// BenchmarkMemory reports the bytes of memory per member of 20 bytes, with integer scores and with others.
func BenchmarkMemory(b *testing.B) {
	for _, n := range []int{10, 100, 1000, 1000_000} {
		for name, factor := range map[string]float64{"whole": 1, "fraction": 0.7919} {
			b.Run(fmt.Sprintf("%s/%d", name, n), func(b *testing.B) {
				names := make([][]byte, n)
				for i := range names {
					names[i] = fmt.Appendf(nil, "element:%012d", i)
				}
				kept := make([]*ZSet, max(1, 100_000/n))
				before := heap()
				for b.Loop() {
					for i := range kept {
						z := New()
						for j, m := range names {
							z.Set(m, float64(j*7919%1000003)*factor, DefaultLimits)
						}
						kept[i] = z
					}
				}
				b.ReportMetric(float64(heap()-before)/float64(n*len(kept)), "B/member")
				runtime.KeepAlive(kept)
				runtime.KeepAlive(names)
			})
		}
	}
}

// heap returns how many bytes are in use.
func heap() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
