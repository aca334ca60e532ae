package topk

import (
	"encoding/binary"
	"encoding/json"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/atomredis/atomredis/engine/delta"
	"github.com/atomredis/atomredis/internal/testing/testseed"
)

func item(i int) []byte { return []byte("item:" + strconv.Itoa(i)) }

// TestTheMostFrequentAreFound also counts a million items exactly.
func TestTheMostFrequentAreFound(t *testing.T) {
	const n, k = 1_000_000, 50
	l := New(k, 2000, 7, 0.9)
	zipf := rand.NewZipf(rand.New(rand.NewPCG(1, 2)), 1.1, 10, 100_000)
	counts := make([]int, 100_001)
	for range n {
		i := int(zipf.Uint64())
		counts[i]++
		l.Add(item(i), 1)
	}
	order := make([]int, len(counts))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return counts[b] - counts[a] })
	found := 0
	for _, i := range order[:k] {
		if l.Has(item(i)) {
			found++
		}
	}
	t.Logf("%d of %d", found, k)
	require.GreaterOrEqual(t, found, k*9/10)
	for _, i := range order[:10] {
		require.InEpsilon(t, counts[i], l.Count(item(i)), 0.02)
	}
	last := uint32(math.MaxUint32)
	l.Each(func(_ string, count uint32) {
		require.LessOrEqual(t, count, last)
		last = count
	})
}

// TestWithRoomForAllCountsAreExact compares with a map, through the stored forms.
func TestWithRoomForAllCountsAreExact(t *testing.T) {
	testseed.Check(t, func(t *rapid.T) {
		rnd := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
		k := rapid.IntRange(1, 100).Draw(t, "k")
		l, counts := New(uint64(k), 4000, 5, 0.9), map[string]uint32{}
		for range 2000 {
			name, n := item(rnd.IntN(150)), rnd.Uint32N(20)
			expelled, ok := l.Add(name, n)
			if counts[string(name)] += n; counts[string(name)] == 0 {
				delete(counts, string(name))
			}
			if ok {
				require.False(t, l.Has([]byte(expelled)))
			}
			if rnd.IntN(300) == 0 {
				g, err := DecodeBlob(l.AppendBlob(nil))
				require.NoError(t, err)
				require.Equal(t, l.AppendBlob(nil), g.AppendBlob(nil))
				l = g.Clone()
			}
		}
		require.Equal(t, min(k, len(counts)), l.Len())
		var listed, all []uint32
		l.Each(func(name string, count uint32) {
			require.Equal(t, counts[name], count)
			listed = append(listed, count)
		})
		for name, count := range counts {
			all = append(all, count)
			require.Equal(t, count, l.Count([]byte(name)))
		}
		slices.Sort(all)
		slices.Reverse(all)
		require.Equal(t, all[:len(listed)], listed)
	})
}

func TestTheSameCallsGiveTheSame(t *testing.T) {
	a, b := New(10, 8, 7, 0.9), New(10, 8, 7, 0.9)
	for i := range 20_000 {
		if i%1000 == 0 {
			var err error
			b, err = DecodeBlob(b.AppendBlob(nil))
			require.NoError(t, err)
		}
		n := uint32(i*i) % 7
		x, ok := a.Add(item(i*i%97), n)
		y, ok2 := b.Add(item(i*i%97), n)
		require.Equal(t, x, y)
		require.Equal(t, ok, ok2)
	}
	require.Equal(t, a.AppendBlob(nil), b.AppendBlob(nil))
}

func TestOneCounterForAll(t *testing.T) {
	l := New(1, 1, 1, 1)
	for _, name := range []string{"a", "a", "b", "b", "b"} {
		l.Add([]byte(name), 1)
	}
	require.True(t, l.Has([]byte("b")))
	require.EqualValues(t, 2, l.Count([]byte("b")))
	l.Add([]byte("c"), MaxIncrement)
	require.EqualValues(t, MaxIncrement-1, l.Count([]byte("c")))
}

func TestHostileSizes(t *testing.T) {
	for _, c := range [][3]uint64{{0, 1, 1}, {1, 0, 1}, {1, 1, 0}, {1, 1 << 63, 2}, {1, 1, 256}, {1 << 40, 1, 1}, {1, 1 << 40, 7}} {
		require.Nil(t, New(c[0], c[1], c[2], 0.9), "%v", c)
	}
	for _, decay := range []float64{0, -1, 1.1, math.NaN(), math.Inf(1)} {
		require.Nil(t, New(1, 1, 1, decay))
	}
	require.Less(t, New(MaxK, 1<<30, 7, 0.9).MemoryUsage(), 1<<20)
}

// TestPartsThatChangeAreNoted stores changes as checkpoints do, and compares.
func TestPartsThatChangeAreNoted(t *testing.T) {
	l := New(100, 3000, 4, 0.9)
	epochs := &delta.Epochs{Current: 1}
	l.Track(delta.NewLog(1, epochs))
	stored := map[string][]byte{}
	rnd := rand.New(rand.NewPCG(1, 2))
	for range 50 {
		for range rnd.IntN(100) {
			l.Add(item(rnd.IntN(1000)), rnd.Uint32N(5))
		}
		epochs.Current++
		for _, name := range l.Log().Frozen().Sorted() {
			data, ok := l.Log().AppendFrozen(nil, name, l)
			require.True(t, ok)
			stored[name] = data
		}
		l.Log().Done()
		names := make([]string, 0, len(stored))
		for name := range stored {
			names = append(names, name)
		}
		slices.Sort(names)
		loader := NewLoader()
		for _, name := range names {
			require.NoError(t, loader.Add([]byte(name), stored[name]))
		}
		g, err := loader.Finish(nil)
		require.NoError(t, err)
		require.Equal(t, l.AppendBlob(nil), g.AppendBlob(nil))
	}
}

// formerList is a list in form 1. The last version that wrote this form wrote testdata/form1.json.
type formerList struct {
	Blob  []byte
	Parts []struct{ Name, Data []byte }
	Items [][2]any // and counts
}

func formerLists(t *testing.T) (lists map[string]formerList) {
	b, err := os.ReadFile("testdata/form1.json")
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(b, &lists))
	return lists
}

// The first form is read, and the first change converts all parts to the present one.
func TestTheFirstFormIsRead(t *testing.T) {
	for name, former := range formerLists(t) {
		l, err := DecodeBlob(former.Blob)
		require.NoError(t, err, name)
		want := map[string]float64{}
		for _, item := range former.Items {
			want[item[0].(string)] = item[1].(float64)
		}
		has := func(l *List) {
			got := map[string]float64{}
			l.Each(func(item string, count uint32) { got[item] = float64(count) })
			require.Equal(t, want, got, name)
		}
		has(l)

		loader := NewLoader()
		stored := map[string][]byte{}
		for _, p := range former.Parts {
			require.NoError(t, loader.Add(p.Name, p.Data))
			stored[string(p.Name)] = p.Data
		}
		epochs := &delta.Epochs{Current: 1}
		l, err = loader.Finish(delta.NewLog(1, epochs))
		require.NoError(t, err, name)
		has(l)
		l.Add([]byte("new"), 100)
		epochs.Current++
		for _, name := range l.Log().Frozen().Sorted() {
			data, ok := l.Log().AppendFrozen(nil, name, l)
			require.True(t, ok)
			stored[name] = data
		}
		loader = NewLoader()
		for _, name := range slices.Sorted(maps.Keys(stored)) {
			require.NoError(t, loader.Add([]byte(name), stored[name]))
		}
		g, err := loader.Finish(nil)
		require.NoError(t, err, name)
		require.Equal(t, l.AppendBlob(nil), g.AppendBlob(nil), name)
	}
}

// A stored heap out of order is refused.
func TestDamagedHeaps(t *testing.T) {
	l := New(5, 100, 3, 0.9)
	for i := range 4 {
		l.Add(item(i), uint32(i+1))
	}
	for _, places := range [][5]uint32{{0, 1, 2, 3, 0}, {0, 1, 2, 3, 3}, {0, 1, 2, 3, 5}, {0, 1, 2, math.MaxUint32, 4}} {
		damaged := l.Clone()
		for i, p := range places {
			binary.LittleEndian.PutUint32(damaged.Write(heapArray, 0)[i*placeSize:], p)
		}
		_, err := DecodeBlob(damaged.AppendBlob(nil))
		require.ErrorIs(t, err, errHeap, "%v", places)
	}
	former := append([]byte(nil), l.AppendBlob(nil)...)
	i := slices.Index(former, format)
	former[i] = heaplessFormat
	_, err := DecodeBlob(former)
	require.ErrorIs(t, err, errHeap)
}

func FuzzStored(f *testing.F) {
	for _, width := range []uint64{1, 20, 2000} {
		l := New(20, width, 3, 0.9)
		for i := range 100 {
			l.Add(item(i), uint32(i))
		}
		f.Add(l.AppendBlob(nil))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		l, err := DecodeBlob(b)
		if err != nil {
			return
		}
		if l.MemoryUsage() > 1<<22+100*len(b) {
			t.Fatalf("%d bytes make %d", len(b), l.MemoryUsage())
		}
		l.Add([]byte("a"), 1)
		if _, err := DecodeBlob(l.AppendBlob(nil)); err != nil {
			t.Fatal(err)
		}
	})
}

func BenchmarkAdd(b *testing.B) {
	l := New(50, 2000, 7, 0.9)
	zipf := rand.NewZipf(rand.New(rand.NewPCG(1, 2)), 1.1, 10, 100_000)
	keys := make([][]byte, 1<<16)
	for i := range keys {
		keys[i] = binary.LittleEndian.AppendUint64(nil, zipf.Uint64())
	}
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		l.Add(keys[i%len(keys)], 1)
	}
}
