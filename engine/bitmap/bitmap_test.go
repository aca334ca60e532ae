package bitmap

import (
	"bytes"
	"math/big"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/atomredis/atomredis/internal/testing/testseed"
)

// text draws a string: random bytes, or long runs of equal ones.
func text(t *rapid.T, max int) []byte {
	if rapid.Bool().Draw(t, "runs") {
		var b []byte
		for len(b) < max && rapid.IntRange(0, 5).Draw(t, "more") > 0 {
			run := make([]byte, rapid.IntRange(0, 40).Draw(t, "length"))
			fill := rapid.SampledFrom([]byte{0, 0xff, 0x10}).Draw(t, "fill")
			for i := range run {
				run[i] = fill
			}
			b = append(b, run...)
		}
		return b[:min(len(b), max)]
	}
	return rapid.SliceOfN(rapid.Byte(), 0, max).Draw(t, "bytes")
}

func TestCountAndFindAgreeWithALookAtEveryBit(t *testing.T) {
	testseed.Check(t, func(t *rapid.T) {
		b := text(t, 150)
		from := rapid.IntRange(0, 8*len(b)).Draw(t, "from")
		to := rapid.IntRange(0, 8*len(b)).Draw(t, "to")
		ones, first := 0, [2]int{-1, -1}
		for i := from; i < to; i++ {
			bit := Get(b, i)
			ones += bit
			if first[bit] < 0 {
				first[bit] = i
			}
		}
		require.Equal(t, ones, Count(b, from, to))
		require.Equal(t, first, [2]int{Find(b, 0, from, to), Find(b, 1, from, to)})
	})
}

func TestFieldsAreTheirBits(t *testing.T) {
	testseed.Check(t, func(t *rapid.T) {
		b := rapid.SliceOfN(rapid.Byte(), 0, 20).Draw(t, "bytes")
		size := rapid.IntRange(1, 64).Draw(t, "size")
		offset := rapid.IntRange(0, 200).Draw(t, "offset")
		field := func() uint64 {
			v := uint64(0)
			for i := range size {
				v = v<<1 | uint64(Get(b, offset+i))
			}
			return v
		}
		require.Equal(t, field(), Field(b, offset, size))
		signed := int64(field())
		if size < 64 && signed>>(size-1) == 1 {
			signed -= 1 << size
		}
		require.Equal(t, signed, SignedField(b, offset, size))

		if offset+size > 8*len(b) {
			return
		}
		want := append([]byte(nil), b...)
		v := rapid.Uint64().Draw(t, "value")
		for i := range size {
			Set(want, offset+i, int(v>>(size-1-i)&1))
		}
		SetField(b, offset, size, v)
		require.Equal(t, want, b)
	})
}

func TestCombineIsRightForEveryBit(t *testing.T) {
	ops := map[Op]func(first bool, others int) bool{
		And:   nil, // depends on the number of strings
		Or:    func(x bool, y int) bool { return x || y > 0 },
		Xor:   func(x bool, y int) bool { return x != (y%2 == 1) },
		Not:   func(x bool, y int) bool { return !x },
		Diff:  func(x bool, y int) bool { return x && y == 0 },
		Diff1: func(x bool, y int) bool { return !x && y > 0 },
		AndOr: func(x bool, y int) bool { return x && y > 0 },
		One:   func(x bool, y int) bool { return x && y == 0 || !x && y == 1 },
	}
	testseed.Check(t, func(t *rapid.T) {
		strings := make([][]byte, rapid.IntRange(1, 5).Draw(t, "strings"))
		longest := 0
		// The second part of a long string lies in another block.
		shift := rapid.SampledFrom([]int{0, blockSize - 20}).Draw(t, "shift")
		for i := range strings {
			if strings[i] = text(t, 60); len(strings[i]) > 0 {
				strings[i] = append(make([]byte, shift), strings[i]...)
			}
			longest = max(longest, len(strings[i]))
		}
		for op, holds := range ops {
			if op == And {
				holds = func(x bool, y int) bool { return x && y == len(strings)-1 }
			}
			got := bytes.Repeat([]byte{0xa5}, longest) // memory that has been used before
			Combine(got, op, strings)
			for i := 8 * min(shift, longest); i < 8*longest; i++ {
				others := 0
				for _, y := range strings[1:] {
					others += Get(y, i)
				}
				require.Equal(t, holds(Get(strings[0], i) == 1, others), Get(got, i) == 1, "%d: bit %d", op, i)
			}
		}
	})
}

func TestAdditionFitsWrapsOrSaturates(t *testing.T) {
	testseed.Check(t, func(t *rapid.T) {
		size := rapid.IntRange(1, 63).Draw(t, "size")
		by := rapid.Int64().Draw(t, "by") >> rapid.IntRange(0, 63).Draw(t, "shift")

		value := rapid.Uint64().Draw(t, "value") >> (64 - size)
		sum := new(big.Int).Add(new(big.Int).SetUint64(value), big.NewInt(by))
		top := new(big.Int).SetUint64(1<<size - 1)
		checkSum(t, sum, new(big.Int), top, size, func(o Overflow) (*big.Int, bool) {
			got, fits := AddUnsigned(value, by, size, o)
			return new(big.Int).SetUint64(got), fits
		})

		size += rapid.IntRange(0, 1).Draw(t, "more")
		signed := rapid.Int64().Draw(t, "signed") >> (64 - size)
		sum = new(big.Int).Add(big.NewInt(signed), big.NewInt(by))
		top = new(big.Int).SetUint64(1<<(size-1) - 1)
		checkSum(t, sum, new(big.Int).Not(top), top, size, func(o Overflow) (*big.Int, bool) {
			got, fits := AddSigned(signed, by, size, o)
			return big.NewInt(got), fits
		})
	})
}

// checkSum checks an addition whose result without limits is sum, in a range of 2^size numbers.
func checkSum(t *rapid.T, sum, bottom, top *big.Int, size int, add func(Overflow) (*big.Int, bool)) {
	want := map[Overflow]*big.Int{Wrap: sum, Saturate: sum}
	fits := true
	switch {
	case sum.Cmp(top) > 0:
		want[Saturate], fits = top, false
	case sum.Cmp(bottom) < 0:
		want[Saturate], fits = bottom, false
	}
	if !fits {
		rest := new(big.Int).Sub(sum, bottom)
		rest.Mod(rest, new(big.Int).Lsh(big.NewInt(1), uint(size)))
		want[Wrap] = rest.Add(rest, bottom)
	}
	for overflow, value := range want {
		got, ok := add(overflow)
		require.Equal(t, value.String(), got.String(), overflow)
		require.Equal(t, fits, ok)
	}
}

func BenchmarkCount(b *testing.B) {
	text := make([]byte, 1<<20)
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		Count(text, 3, 8*len(text)-3)
	}
}

func BenchmarkFind(b *testing.B) {
	text := make([]byte, 1<<20)
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		Find(text, 1, 3, 8*len(text)-3)
	}
}

func BenchmarkCombine(b *testing.B) {
	strings := [][]byte{make([]byte, 1<<20), make([]byte, 1<<20), make([]byte, 1<<20)}
	result := make([]byte, 1<<20)
	for op, name := range map[Op]string{Not: "not", And: "and", One: "one"} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(3 << 20)
			for b.Loop() {
				Combine(result, op, strings)
			}
		})
	}
}
