package strings

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/atomredis/atomredis/internal/testing/testseed"
)

func TestLCSIsALongestCommonSubsequence(t *testing.T) {
	testseed.Check(t, func(t *rapid.T) {
		letters := rapid.SliceOfN(rapid.SampledFrom([]byte("abc")), 0, 20)
		a, b := letters.Draw(t, "a"), letters.Draw(t, "b")
		up := make(bitset, (len(a)*len(b)+63)/64)
		n := lcsLength(a, b, up)
		require.Equal(t, longestCommon(a, b), n)
		require.Equal(t, n, lcsLength(a, b, nil))

		lastI, lastJ, total := len(a), len(b), 0
		lcsMatches(a, b, up, func(i, j, size int) {
			require.Positive(t, size)
			require.LessOrEqual(t, i+size, lastI)
			require.LessOrEqual(t, j+size, lastJ)
			require.True(t, bytes.Equal(a[i:i+size], b[j:j+size]))
			lastI, lastJ, total = i, j, total+size
		})
		require.Equal(t, n, total)
	})
}

// longestCommon is the textbook recursion.
func longestCommon(a, b []byte) int {
	memo := map[[2]int]int{}
	var length func(i, j int) int
	length = func(i, j int) int {
		if i == 0 || j == 0 {
			return 0
		}
		if n, ok := memo[[2]int{i, j}]; ok {
			return n
		}
		n := max(length(i-1, j), length(i, j-1))
		if a[i-1] == b[j-1] {
			n = length(i-1, j-1) + 1
		}
		memo[[2]int{i, j}] = n
		return n
	}
	return length(len(a), len(b))
}
