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
	require.False(t, u.first("a", unreadablePace-1))
	require.True(t, u.first("a", unreadablePace))
	require.False(t, u.first("b", unreadablePace+9))
	for i := range maxUnreadable - 2 {
		require.True(t, u.first(strconv.Itoa(i), unreadablePace))
	}
	require.False(t, u.first("one more", unreadablePace))
	require.True(t, u.first("one more", 3*unreadablePace), "the others are forgotten")
	require.Len(t, u.logged, 1)
}
