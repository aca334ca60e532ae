package main

import (
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

const mb = 1 << 20

func TestGarbageThatThereMayBe(t *testing.T) {
	for _, c := range []struct {
		live    uint64
		limited bool
		percent int
	}{
		{0, false, 1600}, {4 * mb, false, 1600}, {16 * mb, false, 400}, {64 * mb, false, 100}, {128 * mb, false, 50},
		{4096 * mb, false, 50},
		{0, true, 800}, {16 * mb, true, 200}, {128 * mb, true, 25}, {4096 * mb, true, 25},
	} {
		require.Equal(t, c.percent, garbagePercent(c.live, c.limited), "%d bytes", c.live)
	}
}

func TestMemoryThatTheRuntimeMayTake(t *testing.T) {
	for _, c := range []struct {
		maxMemory   int64
		live, fixed uint64
		limit       int64
	}{
		{64 * mb, 50 * mb, 10 * mb, 192 * mb}, {1024 * mb, 1000 * mb, 150 * mb, 1408 * mb},
		{1024 * mb, 1600 * mb, 100 * mb, 1900 * mb},
	} {
		require.Equal(t, c.limit, memoryLimit(c.maxMemory, c.live, c.fixed))
	}
}

func TestWithMaxMemoryTheRuntimeKeepsWithinALimit(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(100))
	before := debug.SetMemoryLimit(-1)
	defer debug.SetMemoryLimit(before)
	var maxMemory atomic.Int64
	tuner := tuner{maxMemory: maxMemory.Load}
	tuner.start()
	defer tuner.stopped.Store(true)
	require.Equal(t, before, debug.SetMemoryLimit(-1))
	for _, c := range []struct{ maxMemory, limit int64 }{{1024 * mb, 1408 * mb}, {64 * mb, 192 * mb}, {0, before}} {
		maxMemory.Store(c.maxMemory)
		require.Eventually(t, func() bool {
			runtime.GC()
			return debug.SetMemoryLimit(-1) == c.limit
		}, time.Minute, time.Millisecond, "%d bytes", c.maxMemory)
	}
}

func TestGarbageIsDecidedAfterEachCollection(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(100))
	percent := func() int {
		gogc := []metrics.Sample{{Name: "/gc/gogc:percent"}}
		metrics.Read(gogc)
		return int(gogc[0].Value.Uint64())
	}
	tuner := tuner{maxMemory: func() int64 { return 0 }}
	tuner.start()
	defer tuner.stopped.Store(true)
	var data []byte
	for _, size := range []int{400 * mb, 1} { // memory that is never touched
		data = make([]byte, size)
		runtime.GC()
		low, high := garbagePercent(uint64(size), false), garbagePercent(uint64(size+12*mb), false)
		require.Eventually(t, func() bool {
			runtime.GC()
			return min(low, high) <= percent() && percent() <= max(low, high)
		}, time.Minute, time.Millisecond, "%d bytes", size)
	}
	runtime.KeepAlive(data)
}

// Without a rest the runtime collects every two minutes. A memory limit that a rest leaves behind would make it collect
// all the time.
func TestARestLeavesCollectionsToTheSizeOfTheHeap(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(100))
	before := debug.SetMemoryLimit(-1)
	defer debug.SetMemoryLimit(before)
	percent := func() int {
		set := debug.SetGCPercent(100)
		debug.SetGCPercent(set)
		return set
	}
	tuner := tuner{maxMemory: func() int64 { return 0 }}
	tuner.start()
	defer tuner.stopped.Store(true)
	awake := percent()
	for range 3 {
		tuner.rest(true)
		tuner.rest(true)
		require.Equal(t, -1, percent())
		require.Less(t, debug.SetMemoryLimit(-1), before)
		tuner.rest(false)
		require.Equal(t, awake, percent())
		require.Equal(t, before, debug.SetMemoryLimit(-1))
	}
	tuner.rest(true)
	var data [][]byte
	require.Eventually(t, func() bool { // further garbage is still collected, which ends the rest
		data = append(data, make([]byte, 8*mb))
		return percent() > 0 && debug.SetMemoryLimit(-1) == before
	}, time.Minute, time.Millisecond)
	require.Less(t, len(data), 200)
	runtime.KeepAlive(data)
}

func TestPauses(t *testing.T) {
	p := pauses{}
	for i, step := range []struct {
		heap    heap
		rest    int  // quiet seconds after the step
		release bool // expected at the end
	}{
		{heap{0, 1 * mb, 2 * mb, 0, 0}, 0, false},
		{heap{200 * mb, 100 * mb, 200 * mb, 0, 0}, pauseSeconds - 1, false}, // busy
		{heap{400 * mb, 150 * mb, 300 * mb, 0, 0}, pauseSeconds - 1, false},
		{heap{402 * mb, 150 * mb, 300 * mb, 0, 0}, pauseSeconds, true},      // a pause, with 150 MB of garbage
		{heap{402 * mb, 150 * mb, 300 * mb, 0, 0}, 2 * pauseSeconds, false}, // only once
		{heap{600 * mb, 110 * mb, 120 * mb, 0, 0}, pauseSeconds - 1, false},
		{heap{602 * mb, 110 * mb, 120 * mb, 10 * mb, 0}, pauseSeconds, true}, // free memory
		{heap{800 * mb, 90 * mb, 95 * mb, 0, 0}, pauseSeconds, true},         // the last collection's live data may be garbage by now
		{heap{805 * mb, 90 * mb, 95 * mb, 0, 0}, pauseSeconds, false},        // not worth it
		{heap{900 * mb, 26 * mb, 40 * mb, 1 * mb, 0}, pauseSeconds - 1, false},
		{heap{960 * mb, 2 * mb, 40 * mb, 1 * mb, 0}, pauseSeconds, true},
	} {
		_, release := p.next(step.heap)
		for range step.rest {
			require.False(t, release, "step %d", i)
			_, release = p.next(step.heap)
		}
		require.Equal(t, step.release, release, "step %d", i)
	}
	require.NotZero(t, readHeap().objects)
}

// Removed data causes one collection, unless another collection has found it.
func TestDataThatHasGoneIsCollected(t *testing.T) {
	var r releases
	for i, step := range []struct {
		live, cycles uint64
		used         int64
		collect      bool
	}{
		{2 * mb, 1, 0, false},
		{2 * mb, 1, 50 * mb, false},
		{2 * mb, 1, 45 * mb, false}, // little
		{2 * mb, 1, 41 * mb, true},  // in more than one second
		{40 * mb, 2, 41 * mb, false},
		{40 * mb, 2, 0, true},        // FLUSHALL
		{2 * mb, 3, 0, false},        // collected
		{2 * mb, 3, 100 * mb, false}, // and filled again
		{100 * mb, 4, 100 * mb, false},
		{100 * mb, 5, 0, true}, // a collection in the same second may have been too early
		{2 * mb, 6, 0, false},
		{1000 * mb, 7, 1000 * mb, false},
		{1000 * mb, 7, 800 * mb, false}, // a small part of the data
		{1000 * mb, 7, 700 * mb, true},
		{700 * mb, 8, 700 * mb, false},
		{700 * mb, 8, 700 * mb, false},
	} {
		require.Equal(t, step.collect, r.next(heap{live: step.live, cycles: step.cycles}, step.used), "step %d", i)
	}
}

func TestReleasedPagesOfTheProgramComeBack(t *testing.T) {
	releaseProgram()
	for range 3 {
		require.NotZero(t, readHeap().objects)
		releaseProgram()
	}
}
