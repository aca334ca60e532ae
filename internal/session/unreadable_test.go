package session

import (
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestUnreadableKeysAreLoggedOnceAMinute(t *testing.T) {
	var u unreadable
	require.True(t, u.first("a", 0))
	require.True(t, u.first("b", 10))
	require.False(t, u.first("a", unreadableInterval-1))
	require.True(t, u.first("a", unreadableInterval))
	require.False(t, u.first("b", unreadableInterval+9))
	for i := range maxUnreadable - 2 {
		require.True(t, u.first(strconv.Itoa(i), unreadableInterval))
	}
	require.False(t, u.first("one more", unreadableInterval))
	require.True(t, u.first("one more", 3*unreadableInterval), "the others are forgotten")
	require.Len(t, u.logged, 1)
}
