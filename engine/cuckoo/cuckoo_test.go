package cuckoo

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

// TestRatesAreKept adds as many items as there are slots, some of which find no room, and looks for other items.
func TestRatesAreKept(t *testing.T) {
	const slots = 1 << 18
	for _, c := range []struct {
		bucket uint32
		fill   float64
	}{{2, 0.6}, {4, 0.8}} {
		t.Run(fmt.Sprint(c.bucket), func(t *testing.T) {
			f := New(Options{Capacity: slots, BucketSize: c.bucket, Iterations: 20})
			added, n := make([]bool, slots), 0
			for i := range slots {
				if added[i] = f.Add(item(i), 1) == nil; added[i] {
					n++
				}
			}
			fill, perItem := float64(n)/slots, 8*float64(f.MemoryUsage())/float64(n)
			wrong := 0
			for i := range slots {
				if f.Has(item(slots + i)) {
					wrong++
				}
				if added[i] && !f.Has(item(i)) {
					t.Fatal("an item is missing", i)
				}
			}
			rate := float64(wrong) / slots
			t.Logf("%.3f full, %.5f wrong, %.2f bits for an item", fill, rate, perItem)
			require.LessOrEqual(t, rate, 2*float64(c.bucket)/255)
			require.GreaterOrEqual(t, fill, c.fill)
			require.LessOrEqual(t, perItem, 1.1*8/c.fill)
		})
	}
}

// TestAgainstCounts applies random operations to a filter and to exact counts. Two items can have the same byte, so
// only added items are deleted, and no count may be too low.
func TestAgainstCounts(t *testing.T) {
	testseed.Check(t, func(t *rapid.T) {
		o := Options{Capacity: rapid.SampledFrom([]uint64{8, 100, 5000}).Draw(t, "capacity"),
			BucketSize: uint32(rapid.IntRange(1, 4).Draw(t, "bucket")), Iterations: uint32(rapid.IntRange(1, 50).Draw(t, "iterations")),
			Expansion: uint32(rapid.IntRange(0, 3).Draw(t, "expansion"))}
		f, counts, total := New(o), map[int]int{}, 0
		rnd := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
		n := rapid.IntRange(1, 2000).Draw(t, "items")
		for range rapid.IntRange(1, 4).Draw(t, "rounds") {
			for range 1000 {
				i := rnd.IntN(n)
				if rnd.IntN(3) > 0 {
					if f.Add(item(i), 20) == nil {
						counts[i]++
						total++
					}
				} else if counts[i] > 0 {
					require.True(t, f.Delete(item(i)))
					counts[i]--
					total--
				}
				if len(f.Links()) > 10 {
					break
				}
			}
			if rnd.IntN(2) == 0 {
				f.Compact()
			}
			blob, err := DecodeBlob(f.AppendBlob(nil))
			require.NoError(t, err)
			for _, g := range []*Filter{blob, f.Clone()} {
				require.Equal(t, f.AppendBlob(nil), g.AppendBlob(nil))
				f = g
			}
			require.EqualValues(t, total, f.Items())
			for i, n := range counts {
				if f.Count(item(i)) < n {
					t.Fatalf("%d: %d instead of %d", i, f.Count(item(i)), n)
				}
			}
		}
	})
}

func TestOneItemFillsItsBuckets(t *testing.T) {
	f := New(Options{Capacity: 65536, BucketSize: 2, Iterations: 20})
	for range 4 {
		require.NoError(t, f.Add([]byte("b"), 1))
	}
	require.ErrorIs(t, f.Add([]byte("b"), 1), ErrFull)
	require.Equal(t, 4, f.Count([]byte("b")))
	f = New(Options{Capacity: 64, BucketSize: 2, Iterations: 20, Expansion: 1})
	n := 0
	for f.Add([]byte("b"), 3) == nil {
		n++
	}
	require.Equal(t, 12, n)
	require.ErrorIs(t, f.Add([]byte("b"), 3), ErrLimit)
	for range 8 {
		require.True(t, f.Delete([]byte("b")))
	}
	require.Len(t, f.Links(), 1) // many deletions compact it
	require.Zero(t, f.Deleted())
	require.Equal(t, 4, f.Count([]byte("b")))
}

func TestHostileOptions(t *testing.T) {
	for _, o := range []Options{
		{}, {Capacity: 1, BucketSize: 1, Iterations: 1}, {Capacity: 100, BucketSize: 256, Iterations: 1},
		{Capacity: math.MaxUint64, BucketSize: 1, Iterations: 1}, {Capacity: 1 << 40, BucketSize: 255, Iterations: 1},
		{Capacity: 100, BucketSize: 2}, {Capacity: 100, BucketSize: 2, Iterations: 1 << 20},
	} {
		_, ok := o.Bytes()
		require.False(t, ok, "%v", o)
		require.Nil(t, New(o), "%v", o)
	}
	f := New(Options{Capacity: 1 << 30, BucketSize: 255, Iterations: 20})
	require.Less(t, f.MemoryUsage(), 1<<20)
	require.NoError(t, f.Add([]byte("a"), 1))
}

// TestAnAddChangesFewParts checks which parts of a filter with many items a checkpoint writes.
func TestAnAddChangesFewParts(t *testing.T) {
	f := New(Options{Capacity: 1 << 20, BucketSize: 2, Iterations: 20})
	for i := range 1 << 17 {
		require.NoError(t, f.Add(item(i), 1))
	}
	epochs := &delta.Epochs{Current: 1}
	f.Track(delta.NewLog(1, epochs))
	parts := 0
	for i := range 100 {
		epochs.Current++
		f.Log().Frozen()
		f.Log().Done()
		require.NoError(t, f.Add(item(1<<20+i), 1))
		epochs.Current++
		parts += len(f.Log().Frozen().Sorted())
		f.Log().Done()
	}
	require.Less(t, parts, 450) // the head, and most often one page
}

func TestChunksMakeTheFilter(t *testing.T) {
	f := New(Options{Capacity: 3000, BucketSize: 3, Iterations: 7, Expansion: 2})
	for i := range 20_000 {
		require.NoError(t, f.Add(item(i), 32))
	}
	f.Delete(item(3))
	g, err := LoadHeader(f.Header())
	require.NoError(t, err)
	chunks := 0
	for data, at := f.Chunk(1); at != 0; data, at = f.Chunk(at) {
		require.NoError(t, g.LoadChunk(at, data))
		chunks++
	}
	require.Equal(t, len(f.Links()), chunks)
	require.Equal(t, f.AppendBlob(nil), g.AppendBlob(nil))
	for _, end := range []uint64{0, 3, 4, f.Bytes() + 2, f.Bytes() + 5} {
		require.ErrorIs(t, g.LoadChunk(end, []byte("more")), ErrChunk)
	}
	require.ErrorIs(t, g.LoadChunk(9, nil), ErrChunk)
	_, err = LoadHeader([]byte("garbage"))
	require.ErrorIs(t, err, ErrHeader)
	_, err = LoadHeader(make([]byte, headerSize))
	require.ErrorIs(t, err, ErrFilter)
}

func FuzzStored(f *testing.F) {
	for _, o := range []Options{{100, 2, 20, 1}, {16, 4, 5, 0}, {100_000, 1, 20, 2}} {
		b := New(o)
		for i := range 300 {
			_ = b.Add(item(i), 10)
		}
		f.Add(b.AppendBlob(nil))
		f.Add(b.Header())
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		for _, decode := range []func([]byte) (*Filter, error){DecodeBlob, LoadHeader} {
			g, err := decode(b)
			if err != nil {
				continue
			}
			if g.MemoryUsage() > 1<<22+4*len(b) {
				t.Fatalf("%d bytes make %d", len(b), g.MemoryUsage())
			}
			_ = g.Add([]byte("a"), 2)
			g.Has([]byte("b"))
			g.Delete([]byte("b"))
			if _, err := DecodeBlob(g.AppendBlob(nil)); err != nil {
				t.Fatal(err)
			}
		}
	})
}

func BenchmarkAdd(b *testing.B) {
	f := New(Options{Capacity: 1 << 21, BucketSize: 2, Iterations: 20, Expansion: 1})
	var key [16]byte
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		binary.LittleEndian.PutUint64(key[:], uint64(i))
		if f.Add(key[:], 32) != nil || f.Items() == 1<<20 {
			f = New(Options{Capacity: 1 << 21, BucketSize: 2, Iterations: 20, Expansion: 1})
		}
	}
}

// TestAFullFilterStaysAsItIs checks that moves without success are undone.
func TestAFullFilterStaysAsItIs(t *testing.T) {
	f := New(Options{Capacity: 1000, BucketSize: 2, Iterations: 50})
	failed := 0
	for i := range 2000 {
		before := f.AppendBlob(nil)
		if f.Add(item(i), 1) != nil {
			failed++
			require.Equal(t, before, f.AppendBlob(nil))
		}
	}
	require.Greater(t, failed, 900)
}
