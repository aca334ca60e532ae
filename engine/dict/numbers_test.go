package dict

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/atomredis/atomredis/internal/testing/testseed"
)

func TestNumbersAreFoundByHashAndComparison(t *testing.T) {
	r := testseed.Rand(t)
	var n Numbers
	_, ok := n.Find(1, func(uint32) bool { return true })
	require.False(t, ok)
	model := map[uint32]Hash{MaxNumber: 7}
	n.Add(7, MaxNumber)
	for range 50_000 {
		number := uint32(r.IntN(5000))
		hash, there := model[number]
		switch {
		case !there:
			hash = Hash(r.Uint32N(4000) * 1_000_003) // several numbers share a hash
			model[number] = hash
			n.Add(hash, number)
		case r.IntN(2) == 0:
			delete(model, number)
			n.Remove(hash, number)
		}
		got, ok := n.Find(hash, func(i uint32) bool { return i == number })
		_, there = model[number]
		require.Equal(t, there, ok)
		require.Equal(t, there, ok && got == number)
	}
	for number, hash := range model {
		_, ok := n.Find(hash, func(i uint32) bool { return i == number })
		require.True(t, ok)
	}
}
