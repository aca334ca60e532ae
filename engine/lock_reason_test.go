package engine

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestWorkThatHoldsCommandsUpIsTold(t *testing.T) {
	clock := NewManualClock(time.UnixMilli(1_000_000))
	store := newMemoryStore()
	var mu sync.Mutex
	var told []LockReason
	take := func() []LockReason {
		mu.Lock()
		defer mu.Unlock()
		list := slices.Compact(told)
		told = nil
		return list
	}
	options := Options{Shards: 1, Clock: clock, Source: store, LockedFor: func(by LockReason, took time.Duration) {
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
	require.Equal(t, []LockReason{LockedForExpiry}, take())

	f := ks.Freeze(func() {})
	require.Equal(t, []LockReason{LockForCheckpoint}, take())
	store.write(t, f, func() {})
	f.Done()
	require.Equal(t, []LockReason{LockForCheckpoint}, take())

	again := New(options)
	require.NoError(t, again.Restore(store.state))
	again.EndReplay(nil)
	require.NoError(t, again.LoadDirectory(store.eachHead, func(int) bool { return true }))
	require.Equal(t, []LockReason{LockForLoading}, take())
}

func TestACheckpointHoldsNobodyUpForManyLongValues(t *testing.T) {
	store := newMemoryStore()
	var held atomic.Int64
	ks := New(Options{Shards: 1, Clock: NewManualClock(time.UnixMilli(1_000_000)), Source: store,
		LockedFor: func(LockReason, time.Duration) { held.Add(1) }})
	const length, locks = lendFrom - 1, 10 // the longest that is copied
	const n = locks * (freezeBytes/length + 1)
	for i := range n {
		set(ks, fmt.Sprint("key:", i), strings.Repeat("v", length), 0)
	}
	store.write(t, ks.Freeze(func() {}), func() {})
	require.Equal(t, int64(locks+1), held.Load(), "no more of them are copied under one lock")
	require.Len(t, store.heads, n)
}
