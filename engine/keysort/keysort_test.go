package keysort

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/atomredis/atomredis/internal/background"
	"github.com/atomredis/atomredis/internal/testing/testseed"
)

func TestKeysAreSorted(t *testing.T) {
	testseed.Check(t, func(t *rapid.T) {
		key := rapid.OneOf(rapid.StringMatching("key:00000[0-9]{0,12}"),
			rapid.StringMatching("(key:0*)?[ab\\x00\\xff]{0,10}"))
		keys := rapid.SliceOf(key).Draw(t, "keys")
		for _, prefix := range []string{"h:", "key:0000", "key:00000000000", "key:0000000000000000000000000000000000000000"} {
			for i := range rapid.IntRange(0, 3*radixFew).Draw(t, "more") {
				keys = append(keys, prefix+strconv.Itoa(i*7919%1000))
			}
		}
		keyOf := func(r Ref) string { return keys[r.At] }
		var refs []Ref
		for i := range keys {
			refs = append(refs, Ref{At: uint32(i), Space: uint32(rapid.IntRange(0, 1).Draw(t, "space"))})
		}
		want := slices.Clone(refs)
		slices.SortFunc(want, func(a, b Ref) int {
			return cmp.Or(cmp.Compare(a.Space, b.Space), cmp.Compare(keyOf(a), keyOf(b)))
		})
		Sort(refs, keyOf, func() {})
		for i := range refs {
			require.Equal(t, want[i].Space, refs[i].Space)
			require.Equal(t, keyOf(want[i]), keyOf(refs[i]))
		}
	})
}

func BenchmarkSort(b *testing.B) {
	for _, format := range []string{"key:%012d", "user:%d:name"} {
		b.Run(format, func(b *testing.B) {
			var keys []string
			var shuffled []Ref
			for i, n := range rand.New(rand.NewPCG(1, 2)).Perm(1_000_000) {
				keys = append(keys, fmt.Sprintf(format, n))
				shuffled = append(shuffled, Ref{At: uint32(i)})
			}
			refs := make([]Ref, len(keys))
			var pacer background.Pacer // as in a checkpoint: reading the clock takes time too
			pauses := 0
			pause := func() { pacer.Pause(); pauses++ }
			for b.Loop() {
				b.StopTimer()
				copy(refs, shuffled)
				b.StartTimer()
				Sort(refs, func(r Ref) string { return keys[r.At] }, pause)
			}
			b.ReportMetric(float64(pauses)/float64(b.N), "pauses/op")
		})
	}
}
