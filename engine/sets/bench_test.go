package sets

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"testing"
)

// names returns n members of 20 bytes in random order.
func names(n int) [][]byte {
	out := make([][]byte, n)
	for i, j := range rand.New(rand.NewPCG(1, 2)).Perm(n) {
		out[i] = fmt.Appendf(nil, "element:%012d", j)
	}
	return out
}

// integers returns n integer members in random order.
func integers(n int) [][]byte {
	out := make([][]byte, n)
	for i, j := range rand.New(rand.NewPCG(1, 2)).Perm(n) {
		out[i] = fmt.Append(nil, 1000+j)
	}
	return out
}

func filled(members [][]byte) *Set {
	s := new(Set)
	for _, m := range members {
		s.Add(m, usual)
	}
	return s
}

func BenchmarkSet(b *testing.B) {
	for _, n := range []int{10, 100, 1000, 1000_000} {
		for kind, list := range map[string][][]byte{"words": names(n), "integers": integers(n)} {
			s := filled(list)
			rand.New(rand.NewPCG(3, 4)).Shuffle(n, func(i, j int) { list[i], list[j] = list[j], list[i] })
			run := func(name string, fn func(i int)) {
				b.Run(fmt.Sprintf("%s/%s/%d", name, kind, n), func(b *testing.B) {
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
			miss, scratch := []byte("element:none--------"), make([]byte, 0, 32)
			run("Contains", func(i int) { s.Contains(list[i]) })
			run("Miss", func(int) { s.Contains(miss) })
			run("AddThere", func(i int) { s.Add(list[i], usual) })
			run("RemoveAdd", func(i int) {
				s.Remove(list[i])
				s.Add(list[i], usual)
			})
			run("PopAdd", func(int) {
				m, _ := s.Pop(scratch)
				s.Add(append(scratch[:0], m...), usual)
			})
			fresh := new(Set)
			run("Fill", func(i int) {
				if i == 0 {
					fresh = new(Set)
				}
				fresh.Add(list[i], usual)
			})
		}
	}
}

// BenchmarkMemory reports the bytes of memory per member.
func BenchmarkMemory(b *testing.B) {
	for _, n := range []int{10, 100, 1000, 1000_000} {
		for kind, list := range map[string][][]byte{"words": names(n), "integers": integers(n)} {
			b.Run(fmt.Sprintf("%s/%d", kind, n), func(b *testing.B) {
				kept := make([]*Set, max(1, 100_000/n))
				before := heap()
				for b.Loop() {
					for i := range kept {
						kept[i] = filled(list)
					}
				}
				b.ReportMetric(float64(heap()-before)/float64(n*len(kept)), "B/member")
				runtime.KeepAlive(kept)
				runtime.KeepAlive(list)
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
