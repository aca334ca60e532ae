package engine

import (
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTryLockTakesAllShardsOrNone(t *testing.T) {
	ks := New(Options{Shards: 4})
	defer ks.Close()
	var g, other Guard
	g.Lock(ks, 1<<2, 1)
	require.False(t, other.TryLock(ks, AllShards, 1))
	require.False(t, other.Locked())
	require.True(t, other.TryLock(ks, 0b1011, 1), "nothing is left locked")
	other.Unlock()
	g.Unlock()
	require.True(t, other.TryLock(ks, AllShards, 7))
	require.EqualValues(t, 7, other.Now())
	require.True(t, other.HoldsOnly(AllShards))
	other.Unlock()
}

// A caller that stops waiting for shards leaves them to others, at whatever moment it stops.
func TestLockUnlessGivesUp(t *testing.T) {
	ks := New(Options{Shards: 4})
	defer ks.Close()
	stop := make(chan struct{})
	var g Guard
	g.Lock(ks, AllShards, 1)
	var waiters sync.WaitGroup
	for range 10 {
		waiters.Go(func() {
			var w Guard
			require.False(t, w.LockUnless(stop, ks, 0b101, 1))
		})
	}
	close(stop)
	waiters.Wait()
	g.Unlock()
	g.Lock(ks, AllShards, 1)
	g.Unlock()
}

func TestLockUnlessWaits(t *testing.T) {
	ks := New(Options{Shards: 4})
	defer ks.Close()
	stop := make(chan struct{})
	defer close(stop)
	n := 0 // protected by the shards
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for range 500 {
				var g Guard
				require.True(t, g.LockUnless(stop, ks, AllShards, 1))
				n++
				g.Unlock()
			}
		})
	}
	all.Wait()
	require.Equal(t, 2000, n)
}
