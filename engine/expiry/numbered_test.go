package expiry

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// The index has the deadlines of a table whose elements are added, changed and removed.
func TestNumberedFollowsATable(t *testing.T) {
	for seed := range uint64(20) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		var x Numbered
		var table []int64 // deadlines by number
		most := []int{3, 40, 3000}[seed%3]
		check := func(x *Numbered) {
			in, latest := 0, int64(0)
			for number, at := range table {
				require.Equal(t, at, x.At(number))
				if at != 0 {
					in++
					latest = max(latest, at)
				}
			}
			require.Zero(t, x.At(len(table)))
			require.Equal(t, in, x.Len())
			require.True(t, x.AllBy(latest))
			require.Equal(t, in == 0, x.AllBy(latest-1))
			x.Each(func(number int, at int64) bool {
				in--
				require.Equal(t, table[number], at)
				return true
			})
			require.Zero(t, in)
		}
		for range 4 {
			for len(table) < most || rnd.IntN(5) > 0 {
				table = append(table, 0)
				if i := rnd.IntN(len(table)); rnd.IntN(3) > 0 {
					table[i] = 1 + rnd.Int64N(1000)
					x.Set(i, table[i])
				}
				if i := rnd.IntN(len(table)); rnd.IntN(5) == 0 {
					table[i] = 0
					x.Remove(i)
				}
			}
			check(&x)
			copied, was := x.Clone(), table
			for n := rnd.IntN(len(table) + 1); len(table) > n; {
				i, last := rnd.IntN(len(table)), len(table)-1
				x.Remove(i)
				x.Renumber(last, i)
				table = append([]int64(nil), table...)
				table[i] = table[last]
				table = table[:last]
			}
			check(&x)
			now := table
			table = was
			check(&copied)
			table = now
		}
		before := int64(0)
		for x.Len() > 0 {
			number, at, ok := x.Min()
			require.True(t, ok)
			require.Equal(t, table[number], at)
			require.GreaterOrEqual(t, at, before)
			before = at
			x.Remove(number)
		}
		_, _, ok := x.Min()
		require.False(t, ok)
		require.Zero(t, x.MemoryUsage())
	}
}

// Removed elements take no memory, and indexed ones take 16 bytes.
func TestNumberedTakesSixteenBytes(t *testing.T) {
	var x Numbered
	const n = 100_000
	for i := range n {
		x.Set(i, int64(1+i*7919%n))
	}
	require.InDelta(t, 16*n, x.MemoryUsage(), n)
	for i := n - 1; i >= 10; i-- {
		x.Remove(i)
		x.Renumber(i, i)
	}
	require.Less(t, x.MemoryUsage(), 64<<10)
}

func BenchmarkNumberedMove(b *testing.B) {
	var x Numbered
	for i := range 1 << 20 {
		x.Set(i, int64(1+i))
	}
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		x.Set(i*7919&(1<<20-1), int64(1<<20+i))
	}
}
