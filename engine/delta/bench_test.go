package delta

import (
	"math/rand/v2"
	"strconv"
	"testing"
)

// BenchmarkAfter notes changes of random parts of a large value.
func BenchmarkAfter(b *testing.B) {
	names := make([]string, 100_000)
	for i := range names {
		names[i] = "element:" + strconv.Itoa(i)
	}
	l, random := NewLog(1, &Epochs{Current: 1}), rand.New(rand.NewPCG(1, 2))
	b.ReportAllocs()
	for b.Loop() {
		l.After(names[random.IntN(len(names))], len(names))
	}
}
