package bloom

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/atomredis/atomredis/engine/delta"
	"github.com/atomredis/atomredis/internal/testing/testseed"
)

func item(i int) []byte { return binary.AppendUvarint([]byte("item:"), uint64(i)) }

// bitsNeeded returns the bits per item that the public documentation states for a rate.
func bitsNeeded(rate float64, scaling bool) float64 {
	n := -math.Log(rate) / (math.Ln2 * math.Ln2)
	if scaling { // one more hash function
		n += 1 / math.Ln2
	}
	return n
}

// TestRatesAreKept adds up to a million items and looks for others.
func TestRatesAreKept(t *testing.T) {
	const n = 1_000_000
	for _, c := range []struct {
		name string
		o    Options
		n    int
	}{
		{"1%", Options{0.01, n, 0}, n},
		{"0.1%", Options{0.001, n, 0}, n},
		{"0.01%", Options{0.0001, n / 4, 0}, n / 4},
		{"25%", Options{0.25, n / 4, 0}, n / 4},
		{"one page", Options{0.01, 3000, 0}, 3000},
		{"small", Options{0.01, 100, 0}, 100},
		{"scaling", Options{0.01, n, 2}, n},
		{"grown twofold", Options{0.01, 1000, 2}, n},
		{"grown by as much", Options{0.01, 10_000, 1}, n / 10},
	} {
		if testing.Short() && c.name != "1%" && c.n > 10_000 {
			continue
		}
		t.Run(c.name, func(t *testing.T) {
			f := New(c.o)
			added := 0
			for i := range c.n {
				if ok, err := f.Add(item(i)); ok {
					added++
				} else {
					require.NoError(t, err)
				}
			}
			require.EqualValues(t, added, f.Items())
			for i := range c.n {
				if !f.Has(item(i)) {
					t.Fatal("an item is missing", i)
				}
			}
			wrong := 0
			const others = n / 2
			for i := range others {
				if f.Has(item(n + i)) {
					wrong++
				}
			}
			rate := float64(wrong) / others
			perItem := 8 * float64(f.MemoryUsage()) / float64(c.n)
			t.Logf("%.6f of %g, %.2f bits for an item, %d sub-filters", rate, c.o.Rate, perItem, len(f.links))
			deviation := 4 * math.Sqrt(c.o.Rate/others) // of the sample
			if c.n < 10_000 {
				deviation = c.o.Rate // few items
			}
			// The number of hash functions is rounded up, which makes a high rate a little higher.
			require.LessOrEqual(t, rate, 1.1*c.o.Rate+deviation)
			require.LessOrEqual(t, float64(c.n-added)/float64(c.n), c.o.Rate)
			if c.n == int(c.o.Capacity) && c.n > 10_000 {
				require.LessOrEqual(t, perItem, 1.1*bitsNeeded(c.o.Rate, c.o.Expansion > 0))
			}
		})
	}
}

func TestFiltersGrowOrAreFull(t *testing.T) {
	f := New(Options{0.0001, 3, 0})
	for i := range 3 {
		ok, err := f.Add(item(i))
		require.NoError(t, err)
		require.True(t, ok)
	}
	_, err := f.Add(item(3))
	require.ErrorIs(t, err, ErrFull)
	ok, err := f.Add(item(1))
	require.NoError(t, err)
	require.False(t, ok)

	f = New(Options{0.0001, 4, 2})
	for i := range 13 {
		_, err := f.Add(item(i))
		require.NoError(t, err)
	}
	require.Len(t, f.Links(), 3)
	require.EqualValues(t, 28, f.Capacity())

	f = New(Options{0.01, 1, 1})
	for i := 0; err == nil || i < 2; i++ {
		_, err = f.Add(item(i))
		require.Less(t, i, 4*MaxLinks) // to such small sub-filters many items seem present
	}
	require.ErrorIs(t, err, ErrLimit)
	require.Len(t, f.Links(), MaxLinks)
}

func TestHostileOptions(t *testing.T) {
	for _, o := range []Options{
		{0, 100, 2}, {1, 100, 2}, {math.NaN(), 1, 0}, {math.Inf(1), 1, 0}, {-1, 1, 0}, {0.01, 0, 2},
		{0.01, 1 << 63, 2}, {0.01, math.MaxUint64, 0}, {1e-18, 1 << 40, 0},
		{math.SmallestNonzeroFloat64, 100, 2},
	} {
		_, ok := o.Bytes()
		require.False(t, ok, "%v", o)
		require.Nil(t, New(o), "%v", o)
	}
	// A large filter takes no memory before something is written to it.
	f := New(Options{1e-9, 1 << 30, 32768})
	require.Less(t, f.MemoryUsage(), 1<<20)
	_, err := f.Add([]byte("a"))
	require.NoError(t, err)
	require.True(t, f.Has([]byte("a")))
	require.False(t, f.Has([]byte("b")))
}

// stored returns the filter built from the parts of f.
func stored(t require.TestingT, f *Filter) *Filter {
	var err error
	l := NewLoader()
	parts(f, func(name string) {
		data, ok := f.AppendPart(nil, name)
		require.True(t, ok)
		require.NoError(t, l.Add([]byte(name), data))
	})
	g, err := l.Finish(nil)
	require.NoError(t, err)
	return g
}

// parts calls fn with all names, a few at a time.
func parts(f *Filter, fn func(name string)) {
	for c, more := (delta.Cursor{}), true; more; {
		c, more = f.Walk(c, 3, fn)
	}
}

// TestAgainstASet applies random operations to a filter and a set: every item of the set is in the filter.
func TestAgainstASet(t *testing.T) {
	testseed.Check(t, func(t *rapid.T) {
		o := Options{rapid.SampledFrom([]float64{0.5, 0.01, 1e-4, 1e-9}).Draw(t, "rate"),
			rapid.SampledFrom([]uint64{1, 10, 1000, 30_000}).Draw(t, "capacity"), uint32(rapid.IntRange(1, 4).Draw(t, "expansion"))}
		f, set, n := New(o), map[int]bool{}, rapid.IntRange(1, 5000).Draw(t, "items")
		rnd := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
		for range rapid.IntRange(1, 4).Draw(t, "rounds") {
			for range n {
				i, had := rnd.IntN(n), false
				had = f.Has(item(i))
				added, err := f.Add(item(i))
				if err != nil {
					require.ErrorIs(t, err, ErrLimit)
					return
				}
				if added == had || set[i] && added {
					t.Fatalf("%d added: %v, was there: %v", i, added, had)
				}
				set[i] = true
			}
			blob, err := DecodeBlob(f.AppendBlob(nil))
			require.NoError(t, err)
			for _, g := range []*Filter{blob, stored(t, f), f.Clone()} {
				require.Equal(t, f.AppendBlob(nil), g.AppendBlob(nil))
				// The lists of a filter that has grown may have room for as much again.
				most := max(f.MemoryUsage(), g.MemoryUsage())
				require.InDelta(t, f.MemoryUsage(), g.MemoryUsage(), float64(most)/2)
				f = g
			}
			for i := range set {
				if !f.Has(item(i)) {
					t.Fatalf("%d is missing", i)
				}
			}
		}
	})
}

// TestAnAddChangesFewParts checks what a checkpoint writes: the head, and the pages of the item's bits.
func TestAnAddChangesFewParts(t *testing.T) {
	f := New(Options{0.01, 1_000_000, 2})
	for i := range 100_000 {
		_, _ = f.Add(item(i))
	}
	require.True(t, f.Large())
	epochs := &delta.Epochs{Current: 1}
	f.Track(delta.NewLog(1, epochs))
	all := 0
	parts(f, func(string) { all++ })
	epochs.Current++
	require.Len(t, f.Log().Frozen().Sorted(), all)
	f.Log().Done()

	before, err := DecodeBlob(f.AppendBlob(nil))
	require.NoError(t, err)
	added, err := f.Add([]byte("another"))
	require.NoError(t, err)
	require.True(t, added)
	epochs.Current++
	names := f.Log().Frozen().Sorted()
	require.Greater(t, len(names), 1)
	require.LessOrEqual(t, len(names), 1+int(f.Links()[0].Hashes))
	// While the checkpoint is written, it still sees the state before another add.
	want := map[string][]byte{}
	for _, name := range names {
		want[name], _ = f.AppendPart(nil, name)
	}
	for i := range 10_000 {
		_, _ = f.Add(item(500_000 + i))
	}
	for _, name := range names {
		data, ok := f.Log().AppendFrozen(nil, name, f)
		require.True(t, ok)
		require.Equal(t, want[name], data)
	}
	f.Log().Done()
	require.Equal(t, before.Items()+1, f.Items()-uint64(countNew(before, 10_000)))
}

// countNew returns how many of the items that the test adds last are new to f.
func countNew(f *Filter, n int) (added int) {
	_, _ = f.Add([]byte("another"))
	for i := range n {
		if ok, _ := f.Add(item(500_000 + i)); ok {
			added++
		}
	}
	return added
}

func TestChunksMakeTheFilter(t *testing.T) {
	f := New(Options{0.01, 1000, 2})
	for i := range 300_000 {
		_, _ = f.Add(item(i))
	}
	g, err := LoadHeader(f.Header())
	require.NoError(t, err)
	chunks := 0
	for at := uint64(1); ; chunks++ {
		data, next := f.Chunk(at)
		if next == 0 {
			break
		}
		require.Greater(t, next, at)
		require.NoError(t, g.LoadChunk(next, data))
		at = next
	}
	require.Equal(t, len(f.Links()), chunks)
	require.Equal(t, f.AppendBlob(nil), g.AppendBlob(nil))

	_, err = LoadHeader([]byte("garbage"))
	require.ErrorIs(t, err, ErrData)
	end := f.Bytes() + 1
	require.ErrorIs(t, g.LoadChunk(3, []byte("more")), ErrData)
	require.ErrorIs(t, g.LoadChunk(4, []byte("more")), ErrPlace)
	require.ErrorIs(t, g.LoadChunk(end+4, []byte("more")), ErrPlace)
	require.ErrorIs(t, g.LoadChunk(end+1, []byte("more")), ErrLarge)
	require.NoError(t, g.LoadChunk(end, []byte("more")))
	data, _ := g.Chunk(end - 4)
	require.Equal(t, "more", string(data))
}

func FuzzStored(f *testing.F) {
	for _, o := range []Options{{0.01, 100, 2}, {0.5, 1, 0}, {1e-9, 10_000, 1}} {
		b := New(o)
		for i := range 300 {
			_, _ = b.Add(item(i))
		}
		f.Add(b.AppendBlob(nil))
		f.Add(b.Header())
		data, _ := b.Chunk(1)
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		header := New(Options{0.01, 10_000, 2})
		_ = header.LoadChunk(uint64(len(b))+1, b)
		for _, decode := range []func([]byte) (*Filter, error){DecodeBlob, LoadHeader} {
			g, err := decode(b)
			if err != nil {
				continue
			}
			if g.MemoryUsage() > 1<<22+4*len(b) {
				t.Fatalf("%d bytes make %d", len(b), g.MemoryUsage())
			}
			_, _ = g.Add([]byte("a"))
			again, err := DecodeBlob(g.AppendBlob(nil))
			if err != nil {
				t.Fatal(err, g.links)
			}
			require.Equal(t, g.AppendBlob(nil), again.AppendBlob(nil))
		}
	})
}

func BenchmarkAdd(b *testing.B) {
	for _, capacity := range []uint64{100, 10_000, 1_000_000, 100_000_000} {
		b.Run(fmt.Sprint(capacity), func(b *testing.B) {
			f := New(Options{0.01, capacity, 2})
			f.Track(delta.NewLog(1, &delta.Epochs{Current: 1}))
			b.ReportAllocs()
			var key [16]byte
			for i := 0; b.Loop(); i++ {
				binary.LittleEndian.PutUint64(key[:], uint64(i)%min(capacity, 1_000_000))
				_, _ = f.Add(key[:])
			}
		})
	}
}

// BenchmarkAddToMany adds new items to a filter that has grown many times, as BF.ADD of a key without BF.RESERVE does.
func BenchmarkAddToMany(b *testing.B) {
	f := New(Options{0.01, 100, 2})
	f.Track(delta.NewLog(1, &delta.Epochs{Current: 1}))
	var key [16]byte
	n := uint64(0)
	add := func() {
		n++
		binary.LittleEndian.PutUint64(key[:], n*0x9e3779b97f4a7c15)
		_, _ = f.Add(key[:])
	}
	for range 2_000_000 {
		add()
	}
	for b.Loop() {
		add()
	}
	b.ReportMetric(float64(len(f.links)), "links")
}
