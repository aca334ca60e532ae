package hashes

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"testing"
)

// names returns n fields of 20 bytes in random order.
func names(n int) [][]byte {
	out := make([][]byte, n)
	for i, j := range rand.New(rand.NewPCG(1, 2)).Perm(n) {
		out[i] = fmt.Appendf(nil, "element:%012d", j)
	}
	return out
}

// filled returns a hash with the given fields and values of 64 bytes.
func filled(fields [][]byte, lim Limits) *Hash {
	h, value := new(Hash), make([]byte, 64)
	for _, f := range fields {
		h.Set(f, value, lim)
	}
	return h
}

func BenchmarkHash(b *testing.B) {
	for _, n := range []int{10, 100, 1000, 1000_000} {
		fields, value, lim := names(n), make([]byte, 64), Limits{Entries: 128, Value: 64}
		h := filled(fields, lim)
		rand.New(rand.NewPCG(3, 4)).Shuffle(n, func(i, j int) { fields[i], fields[j] = fields[j], fields[i] })
		run := func(name string, fn func(i int)) {
			b.Run(fmt.Sprintf("%s/%d", name, n), func(b *testing.B) {
				b.ReportAllocs()
				i := 0
				for b.Loop() {
					if i++; i == n {
						i = 0
					}
					fn(i)
				}
			})
		}
		miss := []byte("element:none--------")
		run("Get", func(i int) { h.Get(fields[i]) })
		run("GetMiss", func(int) { h.Get(miss) })
		run("Replace", func(i int) { h.Set(fields[i], value, lim) })
		run("Resize", func(i int) { h.Set(fields[i], value[:10+i%50], lim) })
		run("DeleteSet", func(i int) {
			h.Delete(fields[i])
			h.Set(fields[i], value, lim)
		})
		fresh := new(Hash)
		run("Fill", func(i int) {
			if i == 0 {
				fresh = new(Hash)
			}
			fresh.Set(fields[i], value, lim)
		})
	}
}

// BenchmarkMemory reports the bytes of memory per field.
func BenchmarkMemory(b *testing.B) {
	for _, n := range []int{10, 100, 1000, 100_000, 1000_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			fields, lim := names(n), Limits{Entries: 128, Value: 64}
			kept := make([]*Hash, max(1, 100_000/n))
			before := heap()
			for b.Loop() {
				for i := range kept {
					kept[i] = filled(fields, lim)
				}
			}
			b.ReportMetric(float64(heap()-before)/float64(n*len(kept)), "B/field")
			runtime.KeepAlive(kept)
			runtime.KeepAlive(fields)
		})
	}
}

// heap returns how many bytes are in use.
func heap() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// BenchmarkDeadlines measures fields with deadlines in a small and in a large hash.
func BenchmarkDeadlines(b *testing.B) {
	for _, n := range []int{100, 100_000} {
		fields, lim := names(n), Limits{Entries: 128, Value: 64}
		volatile := func() *Hash {
			h := filled(fields, lim)
			for i, f := range fields {
				h.SetDeadline(f, int64(1+i%1000))
			}
			return h
		}
		h := volatile()
		b.Run(fmt.Sprintf("SetDeadline/%d", n), func(b *testing.B) {
			b.ReportAllocs()
			i := 0
			for b.Loop() {
				i++
				h.SetDeadline(fields[i%n], int64(1+i%5000))
			}
		})
		b.Run(fmt.Sprintf("NextDeadline/%d", n), func(b *testing.B) {
			for b.Loop() {
				h.NextDeadline()
			}
		})
		b.Run(fmt.Sprintf("Expire/%d", n), func(b *testing.B) {
			for b.Loop() {
				b.StopTimer()
				h := volatile()
				b.StartTimer()
				h.Expire(1000, n, func([]byte) {})
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*n), "ns/field")
		})
		b.Run(fmt.Sprintf("Memory/%d", n), func(b *testing.B) {
			kept := make([]*Hash, max(1, 100_000/n))
			before := heap()
			for b.Loop() {
				for i := range kept {
					kept[i] = volatile()
				}
			}
			b.ReportMetric(float64(heap()-before)/float64(n*len(kept)), "B/field")
			runtime.KeepAlive(kept)
		})
	}
}
