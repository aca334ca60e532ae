package command

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// Memory that is prefetched too early has left the cache when it is used, and listing a hundred thousand keys takes
// time.
func TestOnlySomeKeysOfACommandAreWarmedBefore(t *testing.T) {
	cmd := &Command{Keys: Keys("i1+r-1/1/0[RO,ACCESS]"), Lock: LockKeys}
	for _, n := range []int{1, MaxHints - 1, MaxHints, MaxHints + 1, 100_000} {
		args := make([][]byte, 1+n)
		require.Len(t, cmd.AppendHints(nil, args), min(n, MaxHints))
	}
}
