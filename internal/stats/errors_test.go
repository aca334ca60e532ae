package stats

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestErrorsAreCountedByTheirCode(t *testing.T) {
	var errors Errors
	errors.Count([]byte("WRONGTYPE no"))
	errors.Count([]byte("ERR no"))
	errors.Count([]byte("nospace"))
	for i := range 1000 {
		errors.Count([]byte("C" + string(rune('A'+i%26)) + string(rune('A'+i/26)) + " x"))
	}
	counts := map[string]int64{}
	errors.Each(func(code string, n int64) { counts[code] = n })
	require.Equal(t, int64(1), counts["WRONGTYPE"])
	require.Equal(t, int64(2), counts["ERR"])
	require.LessOrEqual(t, len(counts), maxErrorCodes+1)
	require.Positive(t, counts[otherErrors])
	require.Equal(t, int64(1003), errors.Replies())
}
