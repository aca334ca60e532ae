package roaring

import (
	"encoding/hex"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/atomredis/atomredis/engine/bitmap"
	"github.com/atomredis/atomredis/engine/delta"
	"github.com/atomredis/atomredis/internal/testing/testseed"
)

// someBytes returns strings that are sparse, dense, full of runs, or random, of up to three pages.
func someBytes(t *rapid.T, label string) []byte {
	b := make([]byte, rapid.IntRange(0, 3*pageBytes).Draw(t, label+" length"))
	if len(b) == 0 {
		return b
	}
	for range rapid.IntRange(0, 20).Draw(t, label+" strokes") {
		from := rapid.IntRange(0, len(b)-1).Draw(t, label+" at")
		n := min(rapid.SampledFrom([]int{1, 3, 700, 20_000, pageBytes}).Draw(t, label+" bytes"), len(b)-from)
		c := byte(rapid.SampledFrom([]int{0, 1, 0x80, 0x55, 0xff}).Draw(t, label+" of"))
		for i := range n {
			b[from+i] = c
		}
	}
	return b
}

// requireBits fails unless a bitmap has the bits of a string, in whatever form it is read.
func requireBits(t require.TestingT, want []byte, r *Bitmap) {
	require.EqualValues(t, len(want), r.Len())
	require.True(t, slices.Equal(want, r.AppendBytes([]byte("x"), r.Len())[1:]))
	require.Equal(t, bitmap.Count(want, 0, 8*len(want)), int(r.Count(0, int64(8*len(want)))))
	memory := 0
	for i, p := range r.pages {
		require.False(t, p.bits.IsEmpty())
		require.True(t, i == 0 || r.pages[i-1].number < p.number)
		memory += p.memory
	}
	require.Equal(t, memory, r.memory)
}

func TestBitmapsAreLikeStrings(t *testing.T) {
	testseed.Check(t, func(t *rapid.T) {
		want := someBytes(t, "string")
		r := FromBytes(want)
		requireBits(t, want, r)
		offset := func(label string) int { return rapid.IntRange(0, 8*3*pageBytes-65).Draw(t, label) }
		for range rapid.IntRange(0, 30).Draw(t, "steps") {
			at := offset("at")
			switch rapid.IntRange(0, 5).Draw(t, "step") {
			case 0, 1:
				bit := rapid.IntRange(0, 1).Draw(t, "bit")
				for len(want) <= at/8 {
					want = append(want, 0)
				}
				require.Equal(t, bitmap.Get(want, at), r.Set(int64(at), bit))
				bitmap.Set(want, at, bit)
			case 2:
				size := rapid.IntRange(1, 64).Draw(t, "size")
				v := rapid.Uint64().Draw(t, "v")
				for len(want) <= (at+size-1)/8 {
					want = append(want, 0)
				}
				bitmap.SetField(want, at, size, v)
				r.SetField(int64(at), size, v)
				require.Equal(t, bitmap.Field(want, at, size), r.Field(int64(at), size))
			case 3:
				require.Equal(t, bitmap.Get(want, at), r.Get(int64(at)))
			default:
				from, to := min(at, 8*len(want)), min(offset("to"), 8*len(want))
				require.Equal(t, bitmap.Count(want, from, to), int(r.Count(int64(from), int64(to))))
				for bit := range 2 {
					require.Equal(t, bitmap.Find(want, bit, from, to), int(r.Find(bit, int64(from), int64(to))))
				}
			}
		}
		requireBits(t, want, r)
		requireBits(t, want, r.Clone())
		again, err := DecodeBlob(r.AppendBlob(nil))
		require.NoError(t, err)
		requireBits(t, want, again)
		again, err = FromPortable(r.AppendPortable(nil), r.Len())
		require.NoError(t, err)
		requireBits(t, want, again)
	})
}

func TestCombinationsAreThoseOfStrings(t *testing.T) {
	testseed.Check(t, func(t *rapid.T) {
		var texts [][]byte
		var of []Source
		n := 0
		op := bitmap.Op(rapid.IntRange(int(bitmap.And), int(bitmap.One)).Draw(t, "op"))
		count := rapid.IntRange(2, 4).Draw(t, "operands")
		if op == bitmap.Not {
			count = 1
		}
		for range count {
			b := someBytes(t, "operand")
			texts, n = append(texts, b), max(n, len(b))
			if rapid.Bool().Draw(t, "compressed") {
				of = append(of, Source{Bitmap: FromBytes(b)})
			} else {
				of = append(of, Source{Bytes: b})
			}
		}
		want := make([]byte, n)
		bitmap.Combine(want, op, texts)
		requireBits(t, want, Combine(op, of))
		for i, s := range of {
			if s.Bitmap != nil {
				requireBits(t, texts[i], s.Bitmap)
			}
		}
	})
}

// Bits far apart take little memory, also beyond 32 bits.
func TestFewBitsTakeLittle(t *testing.T) {
	r := New()
	for i := range 100 {
		require.Zero(t, r.Set(int64(i)*1e9, 1))
	}
	require.Zero(t, r.Set(8*MaxBytes-1, 1))
	require.EqualValues(t, uint64(MaxBytes), r.Len())
	require.EqualValues(t, 101, r.Count(0, 8*MaxBytes))
	require.EqualValues(t, int64(8*MaxBytes-1), r.Find(1, 99e9+1, math.MaxInt64))
	require.Less(t, r.MemoryUsage(), 101*400)
	again, err := FromPortable(r.AppendPortable(nil), r.Len())
	require.NoError(t, err)
	require.EqualValues(t, 101, again.Count(0, 8*MaxBytes))

	runs := FromBytes([]byte(strings.Repeat("\xff", 1<<20)))
	require.Less(t, runs.MemoryUsage(), 20_000)
}

// The portable format is that of other libraries: these are bytes that CRoaring writes.
func TestPortableFormat(t *testing.T) {
	one, wide := New(), New()
	one.Set(0, 1)
	wide.Set(0x1234, 1)
	wide.Set(1<<32+0x16000, 1)
	run := FromBytes(append(make([]byte, 576), strings.Repeat("\xff", 32)...))
	for want, r := range map[string]*Bitmap{
		"0000000000000000": New(),
		"0100000000000000000000003a3000000100000000000000100000000000": one,
		"0100000000000000000000003b300000010000ff0001000012ff00":       run,
		"0200000000000000000000003a3000000100000000000000100000003412" +
			"010000003a3000000100000001000000100000000060": wide,
	} {
		require.Equal(t, want, hex.EncodeToString(r.AppendPortable(nil)))
		data, err := hex.DecodeString(want)
		require.NoError(t, err)
		again, err := FromPortable(data, r.Len())
		require.NoError(t, err)
		require.Equal(t, r.AppendBlob(nil), again.AppendBlob(nil))
		for n := range data {
			_, err := FromPortable(data[:n], r.Len())
			require.Error(t, err)
		}
		_, err = FromPortable(append(data, 0), r.Len())
		require.Error(t, err)
		if r.Len() > 0 {
			_, err = FromPortable(data, 0)
			require.Error(t, err)
		}
	}
	_, err := FromPortable(make([]byte, 8), MaxBytes+1)
	require.Error(t, err)
}

// Damaged forms are errors, or other bitmaps.
func FuzzPortable(f *testing.F) {
	f.Add(FromBytes([]byte(strings.Repeat("ab\xff\xff", 5000))).AppendPortable(nil))
	f.Add(FromBytes([]byte{1, 2, 3}).AppendPortable(nil))
	f.Fuzz(func(t *testing.T, data []byte) {
		r, err := FromPortable(data, MaxBytes)
		if err != nil {
			return
		}
		again, err := FromPortable(r.AppendPortable(nil), MaxBytes)
		require.NoError(t, err)
		require.Equal(t, r.Count(0, math.MaxInt64), again.Count(0, math.MaxInt64))
	})
}

// Changed parts are recorded, and a copy keeps the old ones.
func TestChangedPartsAreRecorded(t *testing.T) {
	r := FromBytes(make([]byte, 10))
	for i := range 10 {
		r.Set(int64(i)*pageBits, 1)
	}
	epochs := &delta.Epochs{Current: 1}
	log := delta.NewLog(1, epochs)
	r.Track(log)
	epochs.Current++
	require.Len(t, log.Frozen().Sorted(), 11)
	log.Done()
	before := r.AppendBlob(nil)
	epochs.Current++
	log.Frozen()
	copied := log.BeginCopy()
	r.Set(3*pageBits, 0)          // goes
	r.Set(3*pageBits+1, 1)        // comes back
	r.Set(5*pageBits+7, 1)        // changes
	r.Set(1000*pageBits, 1)       // comes
	r.Set(2000*pageBits, 0)       // only the length
	require.Zero(t, r.Get(1<<40)) // reads nothing
	parts := map[string][]byte{}
	log.EndCopy(copied, func(name string, data []byte) { parts[name] = data })
	for c, more := (delta.Cursor{}), true; more; {
		c, more = r.Walk(c, 2, func(name string) {
			if _, touched := parts[name]; !touched && name != string(new(tracking).partName(1000)) {
				parts[name], _ = r.AppendPart(nil, name)
			}
		})
	}
	l := NewLoader()
	for _, name := range slices.Sorted(maps.Keys(parts)) {
		require.NoError(t, l.Add([]byte(name), parts[name]))
	}
	old, err := l.Finish(nil)
	require.NoError(t, err)
	require.Equal(t, before, old.AppendBlob(nil))
	epochs.Current++
	require.Len(t, log.Frozen().Sorted(), 4)
}

// The library's Xor in place changes its argument where that has a dense container and the receiver one of runs.
func TestCombinationsLeaveTheirOperandsAlone(t *testing.T) {
	runs, dense := make([]byte, 8192), make([]byte, 8192)
	for i := range dense {
		dense[i] = byte(i * 167)
		if i < 5000 {
			runs[i] = 0xff
		}
	}
	for op := bitmap.And; op <= bitmap.One; op++ {
		a, b := FromBytes(runs), FromBytes(dense)
		of, texts := []Source{{Bitmap: a}, {Bitmap: b}}, [][]byte{runs, dense}
		if op == bitmap.Not {
			of, texts = of[:1], texts[:1]
		}
		want := make([]byte, 8192)
		bitmap.Combine(want, op, texts)
		requireBits(t, want, Combine(op, of))
		requireBits(t, runs, a)
		requireBits(t, dense, b)
	}
}
