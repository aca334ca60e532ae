package rdb

import (
	"encoding/json"
	"math"
	"os"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/atomredis/atomredis/engine/bloom"
	"github.com/atomredis/atomredis/engine/countmin"
	"github.com/atomredis/atomredis/engine/cuckoo"
	"github.com/atomredis/atomredis/engine/tdigest"
	"github.com/atomredis/atomredis/engine/topk"
)

// formerSketch is a sketch of the last version with layouts of its own, and the answers of that version. Its items are
// item:0, item:1 and so on.
type formerSketch struct {
	Type, Name    string
	Payload       []byte
	Header, Chunk []byte
	Next          uint64
	Has           string // a digit for each item
	Items         uint64
	About         string
	Counts        []uint64
	List          []any
	Quantiles     []string
}

func formerSketches(t *testing.T, typ string) (all []formerSketch) {
	b, err := os.ReadFile("testdata/formersketches.json")
	require.NoError(t, err)
	var list []formerSketch
	require.NoError(t, json.Unmarshal(b, &list))
	for _, f := range list {
		if f.Type == typ {
			all = append(all, f)
		}
	}
	require.NotEmpty(t, all)
	return all
}

// digits returns a digit for each of the first n items: 1 if has is true for it.
func digits(n int, has func(item []byte) bool) string {
	b := make([]byte, n)
	for i := range b {
		b[i] = '0'
		if has(numbered(i)) {
			b[i] = '1'
		}
	}
	return string(b)
}

func numbered(i int) []byte { return strconv.AppendInt([]byte("item:"), int64(i), 10) }

// TestFormerTDigestsAreRead compares quantiles, which are computed a little differently now.
func TestFormerTDigestsAreRead(t *testing.T) {
	for _, f := range formerSketches(t, "tdigest") {
		v, err := Restore(f.Payload, &limits)
		require.NoError(t, err)
		d := v.(*tdigest.Digest)
		for i, q := range []float64{0, 0.01, 0.25, 0.5, 0.75, 0.99, 1} {
			want, err := strconv.ParseFloat(f.Quantiles[i], 64)
			require.NoError(t, err)
			if f.Name == "empty" {
				require.True(t, math.IsNaN(want) && math.IsNaN(d.Quantile(q)))
			} else {
				require.InDelta(t, want, d.Quantile(q), 45, "%s: %v", f.Name, q) // of numbers up to 334, in few nodes
			}
		}
		d.Add(1000)
		require.EqualValues(t, 1000, d.Max())
	}
}

// again restores a payload, dumps the value, and restores that. It requires that both payloads are equal.
func again(t *testing.T, payload []byte) (first, second any) {
	first, err := Restore(payload, &limits)
	require.NoError(t, err)
	w := newWorld()
	dumped := dump(t, w.entry(first))
	require.Equal(t, payload, dumped)
	second, err = Restore(dumped, &limits)
	require.NoError(t, err)
	return first, second
}

func TestFormerBloomFiltersAreReadAndGrow(t *testing.T) {
	for _, f := range formerSketches(t, "bloom") {
		loaded, err := bloom.LoadHeader(f.Header)
		require.NoError(t, err)
		if f.Next > 0 {
			require.NoError(t, loaded.LoadChunk(f.Next, f.Chunk))
		}
		first, second := again(t, f.Payload)
		for _, filter := range []*bloom.Filter{first.(*bloom.Filter), second.(*bloom.Filter), loaded} {
			require.True(t, filter.Former())
			require.Equal(t, f.Items, filter.Items())
			require.Equal(t, f.Has, digits(len(f.Has), filter.Has), f.Name)
			for i := range 1000 {
				_, err := filter.Add(numbered(i))
				if err != nil {
					require.ErrorIs(t, err, bloom.ErrFull)
					require.Equal(t, "nonscaling", f.Name)
					break
				}
				require.True(t, filter.Has(numbered(i)))
			}
		}
	}
}

func TestFormerCountMinSketchesAreReadAndCount(t *testing.T) {
	for _, f := range formerSketches(t, "countmin") {
		first, second := again(t, f.Payload)
		for _, s := range []*countmin.Sketch{first.(*countmin.Sketch), second.(*countmin.Sketch)} {
			for i, n := range f.Counts {
				require.Equal(t, n, s.Count(numbered(i)), f.Name)
			}
			n, err := s.Add(numbered(1), 3)
			require.NoError(t, err)
			require.Equal(t, f.Counts[1]+3, n)
		}
	}
}

func TestFormerTopKListsAreReadAndCount(t *testing.T) {
	for _, f := range formerSketches(t, "topk") {
		first, second := again(t, f.Payload)
		for _, l := range []*topk.List{first.(*topk.List), second.(*topk.List)} {
			var list []any
			l.Each(func(item string, count uint32) { list = append(list, item, float64(count)) })
			require.Equal(t, f.List, list, f.Name)
			require.Equal(t, f.Has, digits(len(f.Has), l.Has))
			l.Add([]byte("new"), topk.MaxIncrement)
			require.True(t, l.Has([]byte("new")))
		}
	}
}

func TestFormerCuckooFiltersAreReadAndGrow(t *testing.T) {
	for _, f := range formerSketches(t, "cuckoo") {
		loaded, err := cuckoo.LoadHeader(f.Header)
		require.NoError(t, err)
		require.NoError(t, loaded.LoadChunk(f.Next, f.Chunk))
		first, second := again(t, f.Payload)
		for _, filter := range []*cuckoo.Filter{first.(*cuckoo.Filter), second.(*cuckoo.Filter), loaded} {
			require.True(t, filter.Former())
			require.Equal(t, f.Has, digits(len(f.Has), filter.Has), f.Name)
			for i := range 1000 {
				require.NoError(t, filter.Add(numbered(i), 32))
				require.True(t, filter.Has(numbered(i)))
			}
			for i := range 1000 {
				require.True(t, filter.Delete(numbered(i)))
			}
		}
	}
}
