package hyperloglog

import (
	"encoding/binary"
	"fmt"
	"math"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/atomredis/atomredis/internal/testing/testseed"
)

func element(i int) []byte { return strconv.AppendInt(nil, int64(i), 10) }

func TestSelfTest(t *testing.T) { require.NoError(t, SelfTest()) }

func TestHashIsMurmurHash64A(t *testing.T) {
	// Registers and ranks of these elements in redis-server 7.0.
	for text, want := range map[string][2]int{
		"": {5938, 2}, "a": {12711, 2}, "ab": {719, 1}, "12345678": {10579, 3}, "123456789": {9293, 2},
		"hello-world-hello-world": {5314, 1},
		"foo bar baz":             {12038, 1},
	} {
		i, rank := locate([]byte(text))
		require.Equal(t, want, [2]int{i, int(rank)}, "%q", text)
	}
}

// TestEditorsKeepTheHighestRanks adds elements one by one and in unions, with limits at which strings become dense
// early, late and never, and compares the registers with a plain list.
func TestEditorsKeepTheHighestRanks(t *testing.T) {
	testseed.Check(t, func(t *rapid.T) {
		limit := rapid.SampledFrom([]int{0, 30, 200, 3000, 1 << 20}).Draw(t, "limit")
		b := Append(nil)
		var want Registers
		for range rapid.IntRange(1, 12).Draw(t, "steps") {
			// Similar elements make long strings of short runs.
			near := rapid.Bool().Draw(t, "near")
			base := rapid.IntRange(0, registers-1).Draw(t, "base")
			n := rapid.IntRange(1, 300).Draw(t, "count")
			top := rapid.SampledFrom([]int{2, 3, maxEqualRank, maxRank}).Draw(t, "top")
			seed := rapid.Uint64().Draw(t, "seed")
			e := Edit(b, limit)
			var other Registers
			union := rapid.Bool().Draw(t, "union")
			changed := false
			for k := range n {
				seed = seed*6364136223846793005 + 1442695040888963407
				i, rank := int(seed>>40)%registers, byte(seed>>33)%byte(top)+1
				if near {
					i = (base + i%64) % registers
				}
				changed = changed || want[i] < rank
				want[i] = max(want[i], rank)
				if union {
					other[i] = max(other[i], rank)
				} else {
					e.at = startCursor
					require.NoError(t, e.raise(i, rank), k)
				}
			}
			if union {
				require.NoError(t, e.Raise(&other))
			}
			require.Equal(t, changed, e.Changed())
			b = e.Bytes()
			require.True(t, Is(b))
			require.True(t, IsDense(b) || len(b) <= max(limit, headerSize+2))
			var got Registers
			require.NoError(t, got.Of(b))
			require.Equal(t, want, got)

			counted, err := Count(b)
			require.NoError(t, err)
			require.Equal(t, want.Count(), counted)
		}
	})
}

// TestUnionsAreTheSameAsSingleSteps checks that continuing from the last register splits a string into the same runs as
// searching from the start.
func TestUnionsAreTheSameAsSingleSteps(t *testing.T) {
	testseed.Check(t, func(t *rapid.T) {
		one, all := Edit(Append(nil), 1<<20), Edit(Append(nil), 1<<20)
		for range rapid.IntRange(1, 6).Draw(t, "unions") {
			var r Registers
			base := rapid.IntRange(0, registers-200).Draw(t, "base")
			for range rapid.IntRange(1, 60).Draw(t, "registers") {
				r[base+rapid.IntRange(0, 150).Draw(t, "i")] = byte(rapid.IntRange(1, 4).Draw(t, "rank"))
			}
			require.NoError(t, all.Raise(&r))
			for i, rank := range r {
				if rank > 0 {
					one.at = startCursor
					require.NoError(t, one.raise(i, rank))
				}
			}
			require.Equal(t, one.Bytes(), all.Bytes())
		}
	})
}

func TestEstimatesStayWithinFiveStandardErrors(t *testing.T) {
	e := Edit(Append(nil), 3000)
	for n := 1; n <= 200_000; n++ {
		require.NoError(t, e.Add(element(n)))
		if n&(n-1) != 0 {
			continue
		}
		got, err := Count(e.Bytes())
		require.NoError(t, err)
		require.InDelta(t, n, got, max(1, 5*1.04/128*float64(n)))
	}
	require.True(t, IsDense(e.Bytes()))
}

func TestCorruptedStringsAreErrors(t *testing.T) {
	header := Append(nil)[:headerSize]
	for name, runs := range map[string][]byte{
		"none":               {},
		"too few":            {0x7f, 0xfe},
		"too many":           {0x7f, 0xff, 0x00},
		"cut off":            {0x7f},
		"cut off in the end": {0x7f, 0xbf, 0x40},
		"values too many":    {0x7f, 0xfe, 0x81},
	} {
		b := append(append([]byte(nil), header...), runs...)
		require.True(t, Is(b))
		_, err := Count(b)
		require.ErrorIs(t, err, ErrCorrupted, name)
		require.ErrorIs(t, new(Registers).Merge(b), ErrCorrupted, name)
		e := Edit(b, 3000)
		require.ErrorIs(t, e.Densify(), ErrCorrupted, name)
	}
	for _, b := range [][]byte{nil, []byte("HYLL"), header[:15], append([]byte("HYLL\x02"), header[5:]...),
		append([]byte("HYLL\x00"), header[5:]...)} {
		require.False(t, Is(b))
	}
}

func TestDenseRegistersAtTheirEnd(t *testing.T) {
	b := make([]byte, denseSize)
	copy(b, Append(nil)[:headerSize])
	b[encodingByte] = dense
	for i := range registers {
		setRegister(b[headerSize:], i, maxRank)
	}
	n, err := Count(b)
	require.NoError(t, err)
	require.Equal(t, uint64(1<<63), n)
}

// FuzzString passes arbitrary bytes to every function that reads strings: the only permitted error is ErrCorrupted.
func FuzzString(f *testing.F) {
	e := Edit(Append(nil), 3000)
	for i := range 500 {
		f.Add(append([]byte(nil), e.Bytes()...), []byte{byte(i)}, 100+i)
		if err := e.Add(element(i)); err != nil {
			f.Fatal(err)
		}
	}
	f.Add([]byte("HYLL\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x7f"), []byte("a"), 0)
	f.Fuzz(func(t *testing.T, b, element []byte, limit int) {
		if !Is(b) {
			return
		}
		var r Registers
		n, err := Count(b)
		require.Equal(t, err, r.Of(b))
		if err == nil {
			require.Equal(t, r.Count(), n)
		}
		if !IsDense(b) {
			AppendRuns(nil, b)
		}
		e := Edit(append([]byte(nil), b...), limit)
		if added := e.Add(element); err == nil {
			require.NoError(t, added)
			i, rank := locate(element)
			r[i] = max(r[i], rank)
			var got Registers
			require.NoError(t, got.Of(e.Bytes()))
			require.Equal(t, r, got)
		}
		if err := e.Raise(&r); err == nil {
			Estimate(e.Bytes())
		}
	})
}

func TestEightReadsRegisters(t *testing.T) {
	testseed.Check(t, func(t *rapid.T) {
		b := rapid.SliceOfN(rapid.Byte(), 6, 6).Draw(t, "bytes")
		var got [8]byte
		binary.LittleEndian.PutUint64(got[:], eight(b))
		for i, rank := range got {
			require.Equal(t, register(b, i), rank)
		}
	})
}

func filled(n int) []byte {
	e := Edit(Append(nil), 3000)
	for i := range n {
		if err := e.Add(element(i)); err != nil {
			panic(err)
		}
	}
	return e.Bytes()
}

func BenchmarkAdd(b *testing.B) {
	for _, n := range []int{100, 1000, 100_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			b.ReportAllocs()
			e := Edit(filled(n), math.MaxInt)
			for i := 0; b.Loop(); i++ {
				if err := e.Add(element(i % n)); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkCount(b *testing.B) {
	for _, n := range []int{100, 1000, 100_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			s := filled(n)
			for b.Loop() {
				if _, err := Count(s); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkMerge(b *testing.B) {
	for _, n := range []int{1000, 100_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			s := filled(n)
			var r Registers
			for b.Loop() {
				if err := r.Merge(s); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
