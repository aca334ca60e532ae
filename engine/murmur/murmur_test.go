package murmur

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

// The reference implementation has these hashes.
func TestHashes(t *testing.T) {
	const text = "The quick brown fox"
	for _, c := range []struct {
		n     int
		sum32 uint32
		sum64 uint64
	}{
		{0, 0, 0},
		{1, 0x7e46a26f, 0x7e593af62ca6fd8e},
		{2, 0xb5be84e2, 0x493134c16158c970},
		{3, 0xc3456109, 0x96dd02a981df0d3c},
		{4, 0xfa12250d, 0xd0bce89724dc708},
		{5, 0x55bab1bf, 0x8e77bb8ca83b5fb},
		{6, 0xf3d43349, 0x8cbb111c652a4696},
		{7, 0x93fe19d0, 0x6c300924a8717b1f},
		{8, 0x476192b7, 0xbaee51e8ab22e451},
		{9, 0x66516220, 0xc95923a6a4b02782},
		{10, 0x6cb4100c, 0x599acd993ff275cd},
		{11, 0x6d9d72fd, 0xfa2daa74b618f54b},
		{12, 0x8b048a8d, 0xe59a9f9d51f140d6},
		{13, 0x70cde048, 0x565959c5580edcf8},
		{14, 0x95abc07b, 0xce75239638d1b51c},
		{15, 0xc9f64355, 0xda1eccb3b1873fd6},
		{16, 0xf667719f, 0x2013ff384852c4be},
		{17, 0x2cf3cf72, 0xae5f8a6ab2eb42e},
		{18, 0x174cb36f, 0xc8cac1762cc5f15b},
		{19, 0x546fd1c8, 0xf476f9f3ba168d95},
	} {
		require.Equal(t, c.sum32, Sum32([]byte(text[:c.n]), uint32(c.n*77)), c.n)
		require.Equal(t, c.sum64, Sum64([]byte(text[:c.n]), uint64(c.n)*0x9e3779b97f4a7c15), c.n)
	}
}

func TestManyHashesAreThoseOfEachSeed(t *testing.T) {
	for n := range 40 {
		b := []byte("abcdefghijklmnopqrstuvwxyz0123456789ABCDEFG"[:n])
		var sums [9]uint32
		Sums32(sums[:], b, 5)
		for i, sum := range sums {
			require.Equal(t, Sum32(b, uint32(5+i)), sum)
		}
		first, second := Pair64(b, 7)
		require.Equal(t, [2]uint64{Sum64(b, 7), Sum64(b, first)}, [2]uint64{first, second})
	}
}

func BenchmarkPair64(b *testing.B) {
	for _, n := range []int{8, 16, 100} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			data := make([]byte, n)
			for i := 0; b.Loop(); i++ {
				data[0] = byte(i)
				Pair64(data, 1)
			}
		})
	}
}

func BenchmarkSums32(b *testing.B) {
	for _, n := range []int{8, 16, 100} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			data := make([]byte, n)
			var sums [7]uint32
			for i := 0; b.Loop(); i++ {
				data[0] = byte(i)
				Sums32(sums[:], data, 0)
			}
		})
	}
}
