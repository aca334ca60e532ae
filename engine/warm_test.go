package engine

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTryWarmWaitsForNobodyAndLeavesNothingLocked(t *testing.T) {
	ks := New(Options{Databases: 2, Shards: 4})
	defer ks.Close()
	var g Guard
	g.Lock(ks, AllShards, 1)
	for _, key := range []string{"a", "b", "c"} {
		g.CreateString(1, []byte(key), []byte("v"))
	}
	hints := []Hint{{Key: []byte("a")}, {Key: []byte("none"), Element: []byte("x")},
		{Key: []byte("b"), Element: []byte("x")}, {Key: []byte("c")}}
	ks.TryWarm(1, hints) // a guard holds everything
	require.True(t, g.Holds(AllShards))
	g.Unlock()
	for db := range 2 {
		ks.TryWarm(db, hints)
	}
	g.Lock(ks, AllShards, 1)
	require.Equal(t, 3, g.Len(1))
	g.Unlock()
}
