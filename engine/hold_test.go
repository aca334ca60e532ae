package engine

import (
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestWorkThatHoldsCommandsUpIsTold(t *testing.T) {
	clock := NewManualClock(time.UnixMilli(1_000_000))
	store := newMemoryStore()
	var mu sync.Mutex
	var told []Hold
	take := func() []Hold {
		mu.Lock()
		defer mu.Unlock()
		list := slices.Compact(told)
		told = nil
		return list
	}
	options := Options{Shards: 1, Clock: clock, Source: store, Held: func(by Hold, took time.Duration) {
		require.GreaterOrEqual(t, took, time.Duration(0))
		mu.Lock()
		defer mu.Unlock()
		told = append(told, by)
	}}
	ks := New(options)
	set(ks, "stays", "1", 0)
	set(ks, "goes", "1", 5)
	require.Empty(t, take(), "commands are not such work")
	clock.Advance(10 * time.Millisecond)
	ks.running.Wait()
	require.Equal(t, []Hold{HoldExpiry}, take())

	f := ks.Freeze(func() {})
	require.Equal(t, []Hold{HoldCheckpoint}, take())
	store.write(t, f, func() {})
	f.Done()
	require.Equal(t, []Hold{HoldCheckpoint}, take())

	again := New(options)
	require.NoError(t, again.Restore(store.state))
	again.EndReplay(nil)
	require.NoError(t, again.LoadDirectory(store.eachHead, func(int) bool { return true }))
	require.Equal(t, []Hold{HoldLoading}, take())
}
